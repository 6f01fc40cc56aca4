/* SPDX-License-Identifier: Apache-2.0
 * The experience of one epoch: N x L environment steps of every lane in one launch, then what
 * follows from the trace: n-step transitions into the ring, statistics per slot. Launchers return
 * at once. */
#ifndef HO_CUDA_EXPERIENCE_H
#define HO_CUDA_EXPERIENCE_H

#include <cuda_runtime.h>
#include <stdint.h>

#include "kernels/backend.h"
#include "kernels/cuda/lane_device.h"
#include "kernels/cuda/policy.h"
#include "kernels/env/market_view.h"
#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a slot's steps add up to in an epoch; merged in slot order. All doubles, so that a thread
 * can sum one field over the slots; counts stay exact below 2^53. */
typedef struct ho_slot_stat {
    double steps, reward, reward_square, ret, ret_square;
    double exposure[HO_EXPOSURES], order[HO_ORDERS], urgency[HO_URGENCIES];
    double ended[HO_END_LENGTH + 1]; /* by ho_episode_end */
    double exits[HO_EXIT_REASONS];
    double count[HO_ACTIONS]; /* outputs chosen */
    double reward_min, reward_max;
} ho_slot_stat;

/* Pointers of a cohort's experience; leading lane axis [K]. */
typedef struct ho_experience_view {
    ho_policy_net policy;
    ho_market_view market;
    int32_t lanes, episodes, steps; /* K, N, L */
    int32_t samples;                /* PPO: actions are drawn from the policy */
    int32_t state_columns;          /* portfolio columns of a state */
    int32_t market_columns;         /* F */
    int32_t ring_words;             /* of a slot's category ring */
    int32_t batch, replay_capacity;
    const void *features;      /* [T, HO_STATE_PAD] of the network's type */
    const float *features_f32; /* the same in float32 */
    const float *curiosity;    /* [K, HO_CURIOSITY_STATE] forward models; NULL: off */
    ho_lane_device *lane;
    const uint8_t *packed;            /* [K, policy.bytes] */
    ho_slot_device *slot;             /* [K, N] */
    uint32_t *ring;                   /* [K, ring_words, N] */
    ho_ledger *ledger;                /* [K, N], used with Kelly sizing */
    ho_moments *moments;              /* [K, N] likewise */
    ho_trace_step *trace;             /* [K, L, N] */
    int32_t *active_steps;            /* [K, N] steps before a slot went idle */
    ho_slot_stat *slot_stat;          /* [K, N] */
    ho_replay_record *replay;         /* [K, capacity] */
    ho_epoch_stat *stat;              /* [K] */
    int32_t processors, shared_limit; /* of the device */
    int32_t helpers;                  /* blocks of few states may have warps that help */
    int32_t racecheck;                /* ho_cuda_racecheck */
} ho_experience_view;

/* Asks for the shared memory of the one kernel this cohort will run, so that only that one is
 * loaded. HO_EUNSUPPORTED: the network does not fit a block of this device. */
ho_status ho_experience_prepare(const ho_experience_view *v, ho_err *err);

ho_status ho_epoch_open(const ho_experience_view *v, cudaStream_t stream);
ho_status ho_experience_run(const ho_experience_view *v, cudaStream_t stream);
ho_status ho_experience_store(const ho_experience_view *v, cudaStream_t stream);
ho_status ho_experience_stats(const ho_experience_view *v, cudaStream_t stream);
/* stat of every lane; epoch + 1. */
ho_status ho_epoch_close(const ho_experience_view *v, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
