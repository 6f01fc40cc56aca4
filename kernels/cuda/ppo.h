/* SPDX-License-Identifier: Apache-2.0
 * PPO for all lanes of a cohort, inside the epoch's graph: what the rollout needs beside the trace
 * (values, log-probabilities, advantages; ppo_rollout.cu), then shuffled minibatches over it
 * (ppo_update.cu). The network passes and the Adam step are those of the portable path (learn.h),
 * with one state and one pass a row. Formulas: kernels/agents/ppo.h.
 *
 * A lane's bits depend on its config alone: rows are numbered as on the CPU, every sum has one
 * order. A lane that target_kl stops loses its `learning` flag: the epoch's remaining kernels pass
 * it over, and the host is not asked. Launchers return at once. */
#ifndef HO_CUDA_PPO_H
#define HO_CUDA_PPO_H

#include "kernels/cuda/experience.h"
#include "kernels/cuda/learn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of one lane and epoch. */
typedef struct ho_ppo_lane {
    double mean, scale;                /* advantages of the present minibatch: (A - mean) * scale */
    double loss, kl, clipped, entropy; /* sums over minibatches, of their means */
    int64_t batches;                   /* judged; the stopping one included */
    double explained_variance, value_mean, value_std; /* over the rollout */
} ho_ppo_lane;

/* Sums over HO_LOSS_ROWS rows of a minibatch; the gate adds them in order. */
typedef struct ho_ppo_part {
    float policy, value, entropy, kl;
    float clipped, value_min, value_max;
    float pad;
} ho_ppo_part;

/* Pointers; every array has a leading lane axis [K]. R = L * N rows of a rollout. */
typedef struct ho_ppo_view {
    ho_learn_view learn;
    ho_experience_view experience;
    int32_t passes;       /* over a rollout */
    ho_ppo_lane *lane;    /* [K] */
    int32_t *row;         /* [K, R] positions of the valid steps */
    int32_t *row_count;   /* [K] */
    int32_t *ended;       /* [K, R] positions of steps at an end */
    int32_t *ended_count; /* [K] */
    int32_t *rows;        /* [K] rows of the batch in work */
    float *value, *log_p; /* [K, R] by position */
    float *next;          /* [K, R] V after a step at an end, by position */
    float *advantage;     /* [K, R] by position */
    int32_t *index;       /* [K, B] positions of the present minibatch */
    ho_ppo_part *part;    /* [K, loss_parts] */
} ho_ppo_view;

/* Everything between experience and epoch_close. */
ho_status ho_ppo_learn(const ho_ppo_view *v, cudaStream_t stream);
/* PPO's figures into the statistics, after epoch_close. */
ho_status ho_ppo_close(const ho_ppo_view *v, cudaStream_t stream);

/* ---- parts, in the order of ho_ppo_learn ---- */

/* row, row_count, ended, value, log_p, next, advantage, lane; sets `learning`. */
ho_status ho_ppo_rollout(const ho_ppo_view *v, cudaStream_t stream);
/* One minibatch: rows [first, first + B) of the shuffle of pass `pass`. */
ho_status ho_ppo_update(const ho_ppo_view *v, int pass, int first, cudaStream_t stream);

/* state of the batch's rows: positions list[from, from + B) of each lane's [K, list_stride] list,
 * those beyond count[k] zero. next: the states after the steps. */
ho_status ho_ppo_gather(const ho_ppo_view *v, const int32_t *list, int64_t list_stride,
                        const int32_t *count, int from, int next, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
