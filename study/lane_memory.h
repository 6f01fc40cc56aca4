/* SPDX-License-Identifier: Apache-2.0
 * What an agent takes of a GPU's memory, about: for plans that are printed where there is no GPU.
 * The worker plans with ho_cohort_memory, exactly; test_gpu_memory holds the two together. */
#ifndef HO_STUDY_LANE_MEMORY_H
#define HO_STUDY_LANE_MEMORY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_lane_size {
    double weights;          /* of one network */
    double hidden;           /* sum of its layers' widths */
    int64_t episodes, steps; /* side by side; of each in an epoch */
    int64_t batch;           /* rows of an update */
    int64_t replay;          /* transitions; 0: none (PPO) */
    int replay_bytes;        /* of a transition beyond its record: priorities */
    int bf16;
} ho_lane_size;

/* Bytes of one agent. */
typedef struct ho_lane_bytes {
    double networks; /* online, target, moments, gradient, copies in the precision of products */
    double replay;
    double rollout; /* an epoch's steps and what episodes keep */
    double batch;   /* states, activations and their gradients */
} ho_lane_bytes;

static inline ho_lane_bytes ho_lane_memory(const ho_lane_size *size)
{
    enum { RECORD = 96, STEP = 96, PPO_STEP = 24, EPISODE = 1500, STATE = 64, OUTPUT = 46 };
    const double element = size->bf16 ? 2.0 : 4.0;
    const double states = size->replay > 0 ? 2.0 : 1.0, passes = size->replay > 0 ? 3.0 : 1.0;
    const double steps = (double)size->episodes * (double)size->steps;
    ho_lane_bytes b;
    b.networks = size->weights * (4.0 * (size->replay > 0 ? 5.0 : 4.0) + element +
                                  (size->bf16 ? 2.0 * states : 0.0));
    b.replay = (double)size->replay * (RECORD + size->replay_bytes);
    b.rollout =
        steps * (STEP + (size->replay > 0 ? 0 : PPO_STEP)) + (double)size->episodes * EPISODE;
    b.batch =
        (double)size->batch * (states * STATE * element + (passes + 1.0) * size->hidden * element +
                               OUTPUT * (4.0 * passes + element));
    return b;
}

/* Bytes of the market, once: features padded to 64 columns in both precisions, bars, tables. */
static inline double ho_market_memory(int64_t bars)
{
    return (double)bars * (64.0 * 6.0 + 60.0);
}

#ifdef __cplusplus
}
#endif
#endif
