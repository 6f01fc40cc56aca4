/* SPDX-License-Identifier: Apache-2.0
 * Forward and backward passes of one network over a block of rows (kernels/agents/net_layout.h
 * says which layers there are). Single-threaded; callers share work out over blocks of fixed size.
 * Compiled a second time in double for the gradient checks.
 *
 *   parameters [size] --pack--> ho_net_pack --forward--> ho_net_rows.act
 *   ho_net_rows.delta[MAIN1, VALUE1] --backward--> gradient [size]
 *
 * A pack holds what the products read: both orientations of the effective weights (noise already
 * in them). It must be rebuilt after every change of the parameters.
 * With net->bf16 the products take rounded inputs (net_bf16.c); packs and rows then hold halves in
 * the place of the numbers that only products read. */
#ifndef HO_KERNELS_CPU_NET_H
#define HO_KERNELS_CPU_NET_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/agents/net_layout.h"
#include "kernels/cpu/bf16.h"
#include "kernels/cpu/carve.h"
#include "kernels/cpu/simd.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_net_pack {
    ho_real *forward[HO_LAYERS];  /* panels [ceil(out / 32), in, 32] */
    ho_real *backward[HO_LAYERS]; /* panels [ceil(in / 32), out, 32]; NULL: forward only */
    ho_real *bias[HO_LAYERS];     /* [out padded to 32] */
    /* bf16, instead of forward and backward: panels of pairs [ceil(out / 32), ceil(in / 2), 32],
     * [ceil(in / 32), ceil(out / 2), 32] */
    ho_bf16_pair *forward_pair[HO_LAYERS], *backward_pair[HO_LAYERS];
    ho_bf16 *rounded; /* [2, rounded_row] scratch of packing */
    ho_real *wide;    /* [rounded_row] likewise */
    int32_t rounded_row;
    int32_t e4m3; /* 1: forward passes round on to E4M3 (e4m3.h), but for noisy layers' weights */
} ho_net_pack;

/* Outputs of every layer for a block of rows, and the gradients on them.
 * act[MAIN1] and act[VALUE1] are the raw outputs, without activation. */
typedef struct ho_net_rows {
    int32_t capacity;
    int32_t x_row;             /* elements between rows of the input */
    int32_t q_row;             /* elements between rows of q */
    int32_t row[HO_LAYERS];    /* elements between rows of a layer's outputs */
    ho_real *act[HO_LAYERS];   /* [capacity, row] */
    ho_real *delta[HO_LAYERS]; /* [capacity, row]; NULL: forward only */
    /* bf16; hidden layers have `half` instead of `act` */
    ho_bf16 *x_half;                     /* [capacity, x_row] the input of the last forward pass */
    ho_bf16 *half[HO_LAYERS];            /* [capacity, row] */
    ho_bf16 *delta_half;                 /* [capacity, widest row] of the layer at hand */
    ho_bf16_pair *delta_pair, *act_pair; /* [capacity / 2 rounded up, widest row] likewise */
    ho_real *q; /* [capacity, q_row] action values, filled by ho_dqn_values; act[MAIN1]
                   itself without C51 */
} ho_net_rows;

/* Elements between rows of a block of `width` columns: whole panels, and an odd number of cache
 * lines so that a column does not fall into few cache sets. */
int32_t ho_net_row(int32_t width);

void ho_net_pack_carve(ho_net_pack *pack, const ho_net_layout *net, int with_backward,
                       ho_carve *carve);
void ho_net_rows_carve(ho_net_rows *rows, const ho_net_layout *net, int32_t capacity,
                       int with_delta, ho_carve *carve);

/* noise: [net->noise_size] factors already shaped by f, or NULL for the mean weights. */
void ho_net_pack_fill(ho_net_pack *pack, const ho_net_layout *net, const ho_real *parameters,
                      const ho_real *noise);

/* The noisy layers alone: enough when nothing but the noise has changed since the last fill. */
void ho_net_pack_renoise(ho_net_pack *pack, const ho_net_layout *net, const ho_real *parameters,
                         const ho_real *noise);

enum { HO_NET_MAIN = 1, HO_NET_VALUE = 2, HO_NET_BOTH = 3 };

/* x: [n, rows->x_row]. `streams` HO_NET_*: which outputs are wanted. */
void ho_net_forward(const ho_net_layout *net, const ho_net_pack *pack, const ho_real *x, int32_t n,
                    int streams, ho_net_rows *rows);

/* After ho_net_forward of the same x: from delta[MAIN1] and delta[VALUE1] (both filled by the
 * caller) to the gradient of the effective weights; overwrites gradient [size] but for sigma's
 * places, which ho_net_noise_gradient fills. trunk_scale multiplies what the streams hand to the
 * shared trunk (1 / (D + 1) for branches). */
void ho_net_backward(const ho_net_layout *net, const ho_net_pack *pack, const ho_real *x, int32_t n,
                     ho_real trunk_scale, ho_net_rows *rows, ho_real *gradient);

/* d sigma = d weight * noise: linear, so once after the blocks have been summed. */
void ho_net_noise_gradient(const ho_net_layout *net, const ho_real *noise, ho_real *gradient);

#ifdef __cplusplus
}
#endif
#endif
