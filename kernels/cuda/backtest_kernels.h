/* SPDX-License-Identifier: Apache-2.0
 * The backtest's kernels: passes of a network, side by side in a block, and passes of rules.
 * Internal to kernels/cuda; the host part is backtest.cu. */
#ifndef HO_CUDA_BACKTEST_KERNELS_H
#define HO_CUDA_BACKTEST_KERNELS_H

#include <cuda_runtime.h>

#include "kernels/cuda/experience.h"

enum { PASSES_BLOCK = 8 /* passes of one network that share a block */ };

struct pass_plan;
struct pass_state;

/* The passes of one block: plans [first, first + count), all of the same members. */
typedef struct pass_block {
    int32_t first, count;
    int32_t policy; /* ho_policy */
    int32_t members;
    int32_t slots[64];
} pass_block;

typedef struct backtest_view {
    ho_policy_net policy;
    ho_market_view market;
    const void *features;
    const uint8_t *packed;      /* [K, policy.bytes] */
    const ho_lane_device *lane; /* [K] */
    int32_t state_columns, market_columns;
    const struct pass_plan *plan; /* [n] */
    struct pass_state *state;     /* [n] */
    const pass_block *block;      /* [blocks] of networks */
    int32_t blocks, most;         /* most: passes of a block */
    int32_t rule_first, rules;    /* plans of rules: the last ones */
    int32_t samples;              /* PPO: some agent's ppo_sample_eval is on */
    int32_t ensemble;             /* some block has several members */
    int32_t shared_limit;
    int32_t roomy;     /* blocks have room for offers and tables */
    int32_t few;       /* blocks of few passes work out quiet states */
    int32_t racecheck; /* ho_cuda_racecheck */
} backtest_view;

/* HO_EUNSUPPORTED: the network does not fit a backtest's block. */
ho_status ho_cuda_backtest_check(const ho_policy_net *policy, int shared_limit, ho_err *err);
ho_status ho_cuda_backtest_networks(const backtest_view *v, cudaStream_t stream);
ho_status ho_cuda_backtest_rules(const backtest_view *v, cudaStream_t stream);

#endif
