/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cuda/cohort_memory.h"

#include "kernels/agents/agent_check.h"
#include "kernels/agents/curiosity_net.h"
#include "kernels/backend.h"
#include "kernels/cuda/experience.h"
#include "kernels/cuda/fused_layout.h"
#include "kernels/cuda/learn.h"
#include "kernels/cuda/ppo.h"
#include "kernels/env/diversity.h"

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* The arrays of the layer-by-layer path. */
static void portable_slices(ho_cohort_plan *m, const ho_device_net *net, size_t batch, int bf16,
                            int ppo)
{
    const size_t element = bf16 ? 2 : 4, passes = (size_t)(ppo ? 1 : HO_PASSES);
    size_t *b = m->lane_bytes;
    b[HO_SLICE_SAMPLE] = ppo ? 0 : batch * sizeof(ho_sample);
    b[HO_SLICE_STATE] = (ppo ? 1 : 2) * batch * HO_STATE_PAD * element;
    for (int l = 0; l < HO_DEVICE_LAYERS - 1; l++) {
        const size_t width = (size_t)net->layer[l].out;
        b[HO_SLICE_HIDDEN1 + l] = passes * batch * width * element;
        b[HO_SLICE_D_HIDDEN1 + l] = batch * width * element;
    }
    const size_t outputs = (size_t)net->layer[HO_DEVICE_LAYERS - 1].out;
    b[HO_SLICE_OUTPUT] = passes * batch * outputs * sizeof(float);
    b[HO_SLICE_D_OUTPUT] = batch * outputs * element;
    if (bf16) {
        b[HO_SLICE_ONLINE_COPY] = (size_t)net->weights * 2;
        b[HO_SLICE_TARGET_COPY] = ppo ? 0 : (size_t)net->weights * 2;
    }
    m->loss_parts = (int)((batch + HO_LOSS_ROWS - 1) / HO_LOSS_ROWS);
    m->norm_parts = ho_dense_gradient_tiles(net);
    if (net->noisy) {
        b[HO_SLICE_NOISE] = 2 * (size_t)net->noise_size * sizeof(float);
        b[HO_SLICE_NOISY_ONLINE] = (size_t)net->means * sizeof(float);
        b[HO_SLICE_NOISY_TARGET] = (size_t)net->means * sizeof(float);
        m->norm_parts += ho_noise_parts(net);
    }
}

/* Prioritised replay: the leaves, which outlive an epoch, and its work. */
static void priority_slices(ho_cohort_plan *m, const ho_cohort_key *key, int fused)
{
    const ho_priority_shape s = ho_priority_shape_of(key);
    const size_t capacity = (size_t)key->replay_capacity, batch = (size_t)key->batch;
    size_t *b = m->lane_bytes;
    if (s.kind == HO_REPLAY_UNIFORM) {
        return;
    }
    b[HO_SLICE_PRIORITY] = (size_t)s.leaves * sizeof(uint32_t);
    b[HO_SLICE_DRAW_INDEX] = batch * sizeof(int32_t);
    b[HO_SLICE_DRAW_WEIGHT] = batch * sizeof(float);
    b[HO_SLICE_DRAW_TD] = batch * sizeof(float);
    b[HO_SLICE_DRAW_PART] = (size_t)s.draw_parts * sizeof(float);
    if (fused) {
        const int32_t rows = ho_epoch_new_rows(key);
        b[HO_SLICE_NEW_TD] = (size_t)rows * sizeof(float);
        b[HO_SLICE_NEW_GREEDY] = round_up((size_t)rows, 16);
        b[HO_SLICE_NEW_LIST] = ho_new_list_room(rows) * sizeof(int32_t);
    }
    if (s.kind == HO_REPLAY_PER) {
        b[HO_SLICE_PRIORITY_SUM] = (size_t)s.blocks * sizeof(uint64_t);
        return;
    }
    b[HO_SLICE_PRIORITY_SUM] = (size_t)s.tiles * sizeof(uint64_t);
    b[HO_SLICE_RANK_MASS] = (size_t)s.mass_room * sizeof(uint64_t);
    b[HO_SLICE_RANK_COUNT] = (size_t)s.tiles * HO_RANK_DIGITS * sizeof(uint32_t);
    for (int i = 0; i < 2; i++) {
        b[HO_SLICE_RANK_KEY0 + i] = capacity * sizeof(uint32_t);
        b[HO_SLICE_RANK_SLOT0 + i] = capacity * sizeof(int32_t);
    }
}

/* What PPO keeps of a rollout and of a minibatch. */
static void ppo_slices(ho_cohort_plan *m, size_t rollout, size_t batch)
{
    size_t *b = m->lane_bytes;
    b[HO_SLICE_PPO] = sizeof(ho_ppo_lane);
    b[HO_SLICE_PPO_ROWS] = sizeof(int32_t);
    b[HO_SLICE_PPO_ENDED_COUNT] = sizeof(int32_t);
    b[HO_SLICE_PPO_ENDED] = rollout * sizeof(int32_t);
    b[HO_SLICE_PPO_VALUE] = rollout * sizeof(float);
    b[HO_SLICE_PPO_NEXT] = rollout * sizeof(float);
    b[HO_SLICE_PPO_LOG_P] = rollout * sizeof(float);
    b[HO_SLICE_PPO_ADVANTAGE] = rollout * sizeof(float);
    b[HO_SLICE_PPO_BATCH] = batch * sizeof(int32_t);
    b[HO_SLICE_PPO_PART] = (size_t)m->loss_parts * sizeof(ho_ppo_part);
}

static void fused_slices(ho_cohort_plan *m, size_t batch)
{
    m->lane_bytes[HO_SLICE_FUSED_WEIGHTS] = 2 * HO_FUSED_WEIGHT_BYTES;
    m->lane_bytes[HO_SLICE_FUSED_BACKWARD] = HO_FUSED_BACKWARD_BYTES;
    m->lane_bytes[HO_SLICE_FUSED_ACTIVATIONS] = (size_t)ho_fused_activation_bytes((int)batch);
    m->loss_parts = (int)batch / 16;
    m->norm_parts = 4 * HO_FUSED_UNITS;
}

int ho_cohort_batch(const ho_cohort_key *key)
{
    const int64_t rollout = (int64_t)key->episodes * ho_epoch_steps(key);
    return key->algorithm == HO_PPO && rollout < key->batch ? (int)rollout : key->batch;
}

ho_cohort_plan ho_cohort_plan_of(const ho_cohort_key *key, const ho_device_net *net, int bf16,
                                 int fused, int capacity)
{
    ho_cohort_plan m = {};
    const size_t params = (size_t)net->params * sizeof(float);
    const size_t n = (size_t)key->episodes, steps = (size_t)ho_epoch_steps(key);
    const int ppo = key->algorithm == HO_PPO;
    size_t *b = m.lane_bytes;
    b[HO_SLICE_LANE] = sizeof(ho_lane_device);
    b[HO_SLICE_GATE] = sizeof(ho_update_gate);
    b[HO_SLICE_STAT] = sizeof(ho_epoch_stat);
    b[HO_SLICE_ONLINE] = params;
    b[HO_SLICE_TARGET] = ppo ? 0 : params;
    b[HO_SLICE_MOMENT1] = params;
    b[HO_SLICE_MOMENT2] = params;
    b[HO_SLICE_GRADIENT] = params;
    b[HO_SLICE_PACKED] = (size_t)ho_policy_net_of(net, (ho_precision)key->precision).bytes;
    b[HO_SLICE_REPLAY] = ppo ? 0 : (size_t)key->replay_capacity * sizeof(ho_replay_record);
    b[HO_SLICE_TRACE] = steps * n * sizeof(ho_trace_step);
    b[HO_SLICE_ACTIVE_STEPS] = n * sizeof(int32_t);
    b[HO_SLICE_SLOT] = n * sizeof(ho_slot_device);
    b[HO_SLICE_RING] = n * HO_RING_WORDS_MAX * sizeof(uint32_t);
    b[HO_SLICE_LEDGER] = n * sizeof(ho_ledger);
    b[HO_SLICE_MOMENTS] = n * sizeof(ho_moments);
    b[HO_SLICE_SLOT_STAT] = n * sizeof(ho_slot_stat);
    if (fused) {
        fused_slices(&m, (size_t)key->batch);
    } else {
        portable_slices(&m, net, (size_t)ho_cohort_batch(key), bf16, ppo);
    }
    if (ppo) {
        ppo_slices(&m, n * steps, (size_t)ho_cohort_batch(key));
    }
    if (ppo || key->curiosity) {
        b[HO_SLICE_ROW] = n * steps * sizeof(int32_t);
        b[HO_SLICE_ROW_COUNT] = sizeof(int32_t);
    }
    if (key->curiosity) {
        b[HO_SLICE_CURIOSITY] = 3 * HO_CURIOSITY_SIZE * sizeof(float);
    }
    priority_slices(&m, key, fused);
    b[HO_SLICE_LOSS_PART] = ppo ? 0 : (size_t)m.loss_parts * sizeof(ho_loss_part);
    b[HO_SLICE_NORM_PART] = (size_t)m.norm_parts * sizeof(float);
    for (int i = 0; i < HO_SLICE_COUNT; i++) {
        m.per_lane += b[i];
        m.at[i] = m.total;
        m.total += round_up(b[i] * (size_t)capacity, HO_SLICE_ALIGN) + HO_GUARD_BYTES;
    }
    return m;
}

const char *ho_cohort_slice_name(int slice)
{
    static const char *const name[] = {
#define HO_COHORT_SLICE_NAME(id) #id,
        HO_COHORT_SLICES(HO_COHORT_SLICE_NAME)
#undef HO_COHORT_SLICE_NAME
    };
    return slice >= 0 && slice < HO_SLICE_COUNT ? name[slice] : "?";
}

int ho_cohort_slice_is_scratch(int slice)
{
    switch (slice) {
    case HO_SLICE_GRADIENT:
    case HO_SLICE_FUSED_ACTIVATIONS:
    case HO_SLICE_REPLAY:
    case HO_SLICE_TRACE:
    case HO_SLICE_SLOT_STAT:
        return 1;
    case HO_SLICE_CURIOSITY:
        return 0;
    default:
        return slice >= HO_SLICE_SAMPLE;
    }
}
