/* SPDX-License-Identifier: Apache-2.0
 * Device memory of a cohort: one allocation, carved from one table of names and sizes. Every slice
 * has a leading lane axis and is followed by a guard zone that tests look at. */
#ifndef HO_CUDA_COHORT_MEMORY_H
#define HO_CUDA_COHORT_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/agent_config.h"
#include "kernels/cuda/device_net.h"

#ifdef __cplusplus
extern "C" {
#endif

/* id; what it holds is said in learn.h, experience.h, ppo.h and curiosity.h */
#define HO_COHORT_SLICES(X)                                                                        \
    X(LANE)                                                                                        \
    X(GATE)                                                                                        \
    X(STAT)                                                                                        \
    X(ONLINE)                                                                                      \
    X(TARGET)                                                                                      \
    X(MOMENT1)                                                                                     \
    X(MOMENT2)                                                                                     \
    X(GRADIENT)                                                                                    \
    X(ONLINE_COPY)                                                                                 \
    X(TARGET_COPY)                                                                                 \
    X(FUSED_WEIGHTS)                                                                               \
    X(FUSED_BACKWARD)                                                                              \
    X(FUSED_ACTIVATIONS)                                                                           \
    X(PACKED)                                                                                      \
    X(REPLAY)                                                                                      \
    X(TRACE)                                                                                       \
    X(ACTIVE_STEPS)                                                                                \
    X(SLOT)                                                                                        \
    X(RING)                                                                                        \
    X(LEDGER)                                                                                      \
    X(MOMENTS)                                                                                     \
    X(SLOT_STAT)                                                                                   \
    X(PRIORITY)                                                                                    \
    X(SAMPLE)                                                                                      \
    X(STATE)                                                                                       \
    X(HIDDEN1)                                                                                     \
    X(HIDDEN2)                                                                                     \
    X(HIDDEN3)                                                                                     \
    X(OUTPUT)                                                                                      \
    X(D_OUTPUT)                                                                                    \
    X(D_HIDDEN1)                                                                                   \
    X(D_HIDDEN2)                                                                                   \
    X(D_HIDDEN3)                                                                                   \
    X(LOSS_PART)                                                                                   \
    X(NORM_PART)                                                                                   \
    X(ROW)                                                                                         \
    X(ROW_COUNT)                                                                                   \
    X(CURIOSITY)                                                                                   \
    X(PPO)                                                                                         \
    X(PPO_ROWS)                                                                                    \
    X(PPO_ENDED)                                                                                   \
    X(PPO_ENDED_COUNT)                                                                             \
    X(PPO_VALUE)                                                                                   \
    X(PPO_NEXT)                                                                                    \
    X(PPO_LOG_P)                                                                                   \
    X(PPO_ADVANTAGE)                                                                               \
    X(PPO_BATCH)                                                                                   \
    X(PPO_PART)                                                                                    \
    X(PRIORITY_SUM)                                                                                \
    X(RANK_MASS)                                                                                   \
    X(RANK_KEY0)                                                                                   \
    X(RANK_KEY1)                                                                                   \
    X(RANK_SLOT0)                                                                                  \
    X(RANK_SLOT1)                                                                                  \
    X(RANK_COUNT)                                                                                  \
    X(DRAW_INDEX)                                                                                  \
    X(DRAW_WEIGHT)                                                                                 \
    X(DRAW_PART)                                                                                   \
    X(DRAW_TD)                                                                                     \
    X(NEW_TD)                                                                                      \
    X(NEW_GREEDY)                                                                                  \
    X(NEW_LIST)                                                                                    \
    X(NOISE)                                                                                       \
    X(NOISY_ONLINE)                                                                                \
    X(NOISY_TARGET)

typedef enum ho_cohort_slice {
#define HO_COHORT_SLICE_ENUM(id) HO_SLICE_##id,
    HO_COHORT_SLICES(HO_COHORT_SLICE_ENUM)
#undef HO_COHORT_SLICE_ENUM
        HO_SLICE_COUNT
} ho_cohort_slice;

enum { HO_SLICE_ALIGN = 256, HO_GUARD_BYTES = 256, HO_GUARD_VALUE = 0xa5 };

typedef struct ho_cohort_plan {
    size_t lane_bytes[HO_SLICE_COUNT]; /* of one lane; a multiple of 16; 0: not needed */
    size_t at[HO_SLICE_COUNT];         /* offset of the slice for `capacity` lanes */
    size_t per_lane;                   /* sum of lane_bytes */
    size_t total;                      /* bytes of the allocation */
    int loss_parts, norm_parts;
} ho_cohort_plan;

/* Rows of the learner's batch: key->batch, but PPO's minibatches are at most the whole rollout. */
int ho_cohort_batch(const ho_cohort_key *key);

ho_cohort_plan ho_cohort_plan_of(const ho_cohort_key *key, const ho_device_net *net, int bf16,
                                 int fused, int capacity);

const char *ho_cohort_slice_name(int slice);
/* 1: every epoch writes it before reading it. */
int ho_cohort_slice_is_scratch(int slice);

#ifdef __cplusplus
}
#endif
#endif
