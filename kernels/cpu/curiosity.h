/* SPDX-License-Identifier: Apache-2.0
 * The forward model of the curiosity reward: 35 -> 64 LeakyReLU(0.01) -> 32
 * (spec/environment.md). Input: first 32 market features of s_t, one-hot (short, flat, long);
 * output: the first 32 features of s_{t+1}. It has its own optimiser; nothing of it reaches the
 * agent's network. */
#ifndef HO_KERNELS_CPU_CURIOSITY_H
#define HO_KERNELS_CPU_CURIOSITY_H

#include <stdint.h>

#include "kernels/agents/curiosity_net.h"
#include "kernels/cpu/carve.h"
#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HO_CURIOSITY_ROWS = 128, /* rows of a block when training */
    HO_CURIOSITY_BLOCKS = HO_CURIOSITY_BATCH / HO_CURIOSITY_ROWS,
};

typedef struct ho_curiosity {
    float *parameter, *m, *v; /* [HO_CURIOSITY_SIZE]; NULL when off */
    float *first, *second;    /* packed forward weights: [2 panels, 35, 32], [64, 32] */
    float *second_back;       /* [2 panels, 32, 32] */
} ho_curiosity;

typedef struct ho_curiosity_rows {
    float *x;      /* [rows, 64] inputs, padded */
    float *hidden; /* [rows, 64] */
    float *out;    /* [rows, 32] */
    float *dhidden, *dout;
    float *gradient; /* [HO_CURIOSITY_SIZE] */
} ho_curiosity_rows;

void ho_curiosity_carve(ho_curiosity *c, ho_carve *carve);
void ho_curiosity_rows_carve(ho_curiosity_rows *r, int32_t rows, int training, ho_carve *carve);

/* The initial parameters [HO_CURIOSITY_SIZE] of a lane: He, biases 0. HO_ENOMEM. */
ho_status ho_curiosity_parameters(const uint32_t key[2], float *parameter);

ho_status ho_curiosity_init(ho_curiosity *c, const uint32_t key[2]);

/* After the parameters changed. */
void ho_curiosity_pack(ho_curiosity *c);

/* Fills row i of the inputs. features: the state's market row. category: 0 short, 1 flat, 2 long.
 */
void ho_curiosity_input(ho_curiosity_rows *r, int32_t i, const float *features, int32_t category);

/* out = prediction for n rows of inputs. */
void ho_curiosity_forward(const ho_curiosity *c, int32_t n, ho_curiosity_rows *r);

/* Mean squared error of row i against the next state's market row. */
float ho_curiosity_error(const ho_curiosity_rows *r, int32_t i, const float *next_features);

/* Gradient of the mean over `batch` rows of ho_curiosity_error; next[i]: the next state's row. */
void ho_curiosity_backward(const ho_curiosity *c, int32_t n, int32_t batch,
                           const float *const *next, ho_curiosity_rows *r);

#ifdef __cplusplus
}
#endif
#endif
