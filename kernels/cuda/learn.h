/* SPDX-License-Identifier: Apache-2.0
 * The gradient step of DQN for all lanes of a cohort: sample, forward, td error, backward, weight
 * gradients, gate (norm, guard, schedule), Adam and target, new priorities.
 *
 * The portable path runs it layer by layer (learn_rows.cu, learn_atoms.cu, noise.cu, dense.cu) for
 * every form of DQN; on sm_90a, for dueling DQN of one shape (ho_fused_fits), fused kernels replace
 * everything between the sample and the gate (fused_*.cu). Both leave float32 gradients in
 * `gradient` and share gate and Adam (update.cu), so the state of a lane has one layout.
 * Launchers return at once; nothing here synchronises or allocates. */
#ifndef HO_CUDA_LEARN_H
#define HO_CUDA_LEARN_H

#include <cuda_runtime.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/cuda/lane_device.h"
#include "kernels/cuda/device_net.h"
#include "kernels/cuda/priority.h"
#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HO_PASSES = 3,     /* forward passes of a DQN update: online s, online s', target s' */
    HO_LOSS_ROWS = 32, /* rows whose losses one block sums */
    HO_FUSED_FEW = 4,  /* up to so many lanes the fused path is bound by the chain of layers */
};

/* Sums over some rows of a batch; the gate adds them in order. */
typedef struct ho_loss_part {
    float loss, td_abs;
    float q, q_square, q_min, q_max; /* Q(s, a) of the taken action */
    float pad[2];
} ho_loss_part;

static inline HO_HD void ho_loss_part_add(ho_loss_part *sum, const ho_loss_part *p)
{
    sum->loss += p->loss;
    sum->td_abs += p->td_abs;
    sum->q += p->q;
    sum->q_square += p->q_square;
    sum->q_min = p->q_min < sum->q_min ? p->q_min : sum->q_min;
    sum->q_max = p->q_max > sum->q_max ? p->q_max : sum->q_max;
}

/* Pointers of a cohort's learner; every array has a leading lane axis [K]. T is bf16 or float. */
typedef struct ho_learn_view {
    ho_device_net net;
    int32_t lanes, batch;
    int32_t passes;     /* forward passes over a batch: HO_PASSES, or 1 without a target network */
    int32_t states;     /* states of a sampled transition: 2 (s, s'), or 1 */
    int32_t bf16;       /* T: 1 bf16, 0 float */
    int32_t fused;      /* the sm_90a kernels run */
    int32_t processors; /* multiprocessors of the device */
    int32_t replay_capacity;
    int32_t loss_parts, norm_parts;
    int32_t first_new;    /* -1: an update. Else the rows are this epoch's transitions from this one
                             on, and only their td errors are wanted, as priorities */
    const void *features; /* [T bars, HO_STATE_PAD] of T; columns past F are 0 */
    ho_lane_device *lane;
    ho_update_gate *gate;
    ho_replay_record *replay; /* [K, capacity] */
    /* state of the optimiser, float32 [K, params] */
    float *online, *target, *moment1, *moment2, *gradient;
    /* bf16 copies of the matrices, [K, net.weights]; NULL in float32 */
    void *online_copy, *target_copy;
    /* fused path: bf16 copies in the order its kernels read (fused_layout.h) */
    uint8_t *fused_weights, *fused_backward, *fused_activations;
    /* workspace */
    ho_sample *sample;                    /* [K, B] */
    const int32_t *rows;                  /* [K] rows that forward passes compute; NULL: B */
    void *state;                          /* [K, states, B, HO_STATE_PAD] of T: s, s' */
    void *hidden[HO_DEVICE_LAYERS - 1];   /* [K, passes, B, width] of T */
    float *output;                        /* [K, passes, B, outputs padded] */
    void *d_output;                       /* [K, B, outputs padded] of T */
    void *d_hidden[HO_DEVICE_LAYERS - 1]; /* [K, B, width] of T */
    ho_loss_part *loss_part;              /* [K, loss_parts] */
    float *norm_part;                     /* [K, norm_parts] sums of squared gradients */
    /* td errors of new experience; NULL where nothing reads them or where they go into the leaves
     * at once, as on the portable path */
    float *new_td;       /* [K, new_rows] |td| of this epoch's transitions, in ring order */
    uint8_t *new_greedy; /* [K, new_rows] work of ho_fused_new_td */
    int32_t *new_list;   /* [K, ho_new_list_room(new_rows)] likewise */
    int32_t new_rows;    /* most transitions an epoch leaves in the ring */
    ho_priority_view priority;
    /* noisy networks: draws of noise [K, 2, noise_size] (online, target) and, of the last two
     * layers, this update's weights and biases [K, net.means]; the bf16 copies are of them, too */
    float *noise, *noisy_online, *noisy_target;
} ho_learn_view;

/* Ring slot of the i-th of the transitions that the epoch stored. */
static inline HO_HD int32_t ho_new_slot(const ho_lane_device *lane, int32_t i, int32_t capacity)
{
    const int32_t at = lane->replay_head - lane->stored + i;
    return at < 0 ? at + capacity : at;
}

/* Numbers in a lane's list of transitions, its length first; a multiple of 16 bytes. */
static inline HO_HD size_t ho_new_list_room(int32_t new_rows)
{
    return ((size_t)new_rows + 1 + 3) / 4 * 4;
}

/* Number of gradient tiles of the portable path, and of parts of the sigmas' gradient after them:
 * its norm_parts. */
int ho_dense_gradient_tiles(const ho_device_net *net);
int ho_noise_parts(const ho_device_net *net);

/* state, sample: draws the batch of update `update` (within the epoch) and gathers its rows. */
ho_status ho_learn_gather(const ho_learn_view *v, int update, cudaStream_t stream);
/* output of all passes, hidden. */
ho_status ho_learn_forward(const ho_learn_view *v, cudaStream_t stream);
/* d_output, loss_part; priority.td. */
ho_status ho_learn_td(const ho_learn_view *v, cudaStream_t stream);
/* The same with C51. */
ho_status ho_learn_td_atoms(const ho_learn_view *v, cudaStream_t stream);
/* d_hidden. */
ho_status ho_learn_backward(const ho_learn_view *v, cudaStream_t stream);
/* gradient, norm_part. */
ho_status ho_learn_gradient(const ho_learn_view *v, cudaStream_t stream);
/* gate: the guard, the clip factor and the step of every lane. */
ho_status ho_learn_gate(const ho_learn_view *v, cudaStream_t stream);
/* online, target, moments and their bf16 copies. */
ho_status ho_learn_adam(const ho_learn_view *v, cudaStream_t stream);
/* Writes the bf16 copies of the lanes from online and target: after a start, import or restore. */
ho_status ho_learn_copies(const ho_learn_view *v, int lane, cudaStream_t stream);

/* ---- priorities; nothing with uniform replay ---- */

/* The td errors of the epoch's new transitions become their leaves; then the sums. Once an epoch,
 * before its updates. */
ho_status ho_learn_first_priorities(const ho_learn_view *v, cudaStream_t stream);
/* The leaves of new_td. */
ho_status ho_priority_enter(const ho_learn_view *v, cudaStream_t stream);
/* sum, mass: anew from the leaves. */
ho_status ho_priority_open(const ho_learn_view *v, cudaStream_t stream);
/* index, weight, weight_part; sorts by rank when it is due. */
ho_status ho_priority_draw_batch(const ho_learn_view *v, int update, cudaStream_t stream);
/* leaf and sum from priority.td of the update that was just applied. */
ho_status ho_priority_write(const ho_learn_view *v, cudaStream_t stream);

/* ---- noise; nothing without noisy layers ---- */

/* noise, and with it noisy_online, noisy_target and the bf16 copies. */
ho_status ho_noise_renew(const ho_learn_view *v, int update, cudaStream_t stream);
/* The same of the mean weights. */
ho_status ho_noise_none(const ho_learn_view *v, cudaStream_t stream);
/* The sigmas' part of gradient and norm_part, from the weights' part. */
ho_status ho_noise_gradient(const ho_learn_view *v, cudaStream_t stream);

/* One whole update. */
ho_status ho_learn_update(const ho_learn_view *v, int update, cudaStream_t stream);

/* ---- fused path, sm_90a ---- */

/* 1 when the shape fits the fused kernels: 64 -> 256 -> 256 -> 2 x 128 -> 46 outputs, bf16, the
 * batch a multiple of 128. */
int ho_fused_fits(const ho_device_net *net, int batch, int bf16);
/* Asks for the shared memory of the kernels that so many lanes run. */
ho_status ho_fused_forward_prepare(int lanes);
ho_status ho_fused_gradient_prepare(int lanes);
/* What gather, forward, td and backward leave: activations, deltas, loss_part [batch / 16]. */
ho_status ho_fused_forward_backward(const ho_learn_view *v, int update, cudaStream_t stream);
/* new_td of the lanes that run, of transitions 0 .. lane.stored - 1: number i lies in the ring at
 * ho_new_slot. After ho_experience_store. */
ho_status ho_fused_new_td(const ho_learn_view *v, cudaStream_t stream);
ho_status ho_fused_new_td_prepare(void);
/* gradient, norm_part [4 * HO_FUSED_UNITS]. */
ho_status ho_fused_gradient(const ho_learn_view *v, cudaStream_t stream);
/* ho_learn_gate and ho_learn_adam of up to HO_FUSED_FEW lanes, right after ho_fused_gradient. */
ho_status ho_fused_few_gate(const ho_learn_view *v, cudaStream_t stream);
ho_status ho_fused_few_adam(const ho_learn_view *v, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
