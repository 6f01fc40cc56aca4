/* SPDX-License-Identifier: Apache-2.0
 * PPO's minibatches: the shuffle evaluated where it is needed, advantages normalised, the clipped
 * losses and their gradient, the gate with KL stop and guard. Network passes and Adam: learn.h. */
#include <math.h>

#include "kernels/agents/permutation.h"
#include "kernels/agents/ppo.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/gate.cuh"
#include "kernels/cuda/ppo.h"
#include "kernels/cuda/ppo_heads.cuh"
#include "kernels/cuda/row_block.cuh"

enum { LOSS_WARPS = 8 };

/* index and rows of a minibatch; mean and 1 / (deviation + 1e-8) of its advantages, {0, 1} for one
 * row or no deviation (ddof 1, as torch's std). One block a lane. */
static __global__ void __launch_bounds__(ROW_BLOCK)
    ppo_minibatch(const __grid_constant__ ho_ppo_view v, int pass, int from)
{
    const int k = (int)blockIdx.x, t = (int)threadIdx.x;
    if (!ho_lane_takes_part(v.learn, k)) {
        return;
    }
    const ho_lane_device *lane = &v.learn.lane[k];
    const size_t first = ppo_rollout_at(v, k);
    const int B = v.learn.batch, left = v.row_count[k] - from;
    const int rows = left < 0 ? 0 : left < B ? left : B;
    const ho_permutation shuffle = ho_permutation_of(
        lane->env.key, (uint32_t)pass, (uint32_t)lane->epoch, (uint32_t)v.row_count[k]);
    int32_t *index = v.index + (size_t)k * B;
    double sum = 0.0;
    for (int i = t; i < rows; i += ROW_BLOCK) {
        index[i] = v.row[first + ho_permutation_at(&shuffle, (uint32_t)(from + i))];
        sum += (double)v.advantage[first + index[i]];
    }
    const double mean = row_block_sum(sum) / (rows > 0 ? rows : 1);
    double square = 0.0;
    for (int i = t; i < rows; i += ROW_BLOCK) {
        const double d = (double)v.advantage[first + index[i]] - mean;
        square += d * d;
    }
    square = row_block_sum(square);
    if (t == 0) {
        const bool scaled = rows > 1 && square > 0.0;
        v.rows[k] = rows;
        v.lane[k].mean = scaled ? mean : 0.0;
        v.lane[k].scale = scaled ? 1.0 / (sqrt(square / (rows - 1)) + 1e-8) : 1.0;
    }
}

/* ---- losses ---- */

/* Adds the losses of the row to `sum`'s fields and leaves its gradient in d_output; one warp. */
template <typename T>
static __device__ __forceinline__ ho_ppo_part loss_row(const ho_ppo_view &v, int k, int row)
{
    const int l = (int)threadIdx.x & 31;
    const ho_learn_view &learn = v.learn;
    const ho_agent_config *agent = &learn.lane[k].agent;
    const ho_branches &b = learn.net.branches;
    const size_t at = ppo_rollout_at(v, k) + v.index[(size_t)k * learn.batch + row];
    const int action = v.experience.trace[at].action;
    const float inv = 1.0f / (float)v.rows[k], entropy_weight = (float)agent->ent_coef;
    float log_p[PPO_SLOTS], delta[PPO_SLOTS], value;
    ppo_row_log_p(learn, k, row, log_p, &value);
    const float now = ppo_row_taken(b, log_p, action), old = v.log_p[at];
    const float advantage = (float)(((double)v.advantage[at] - v.lane[k].mean) * v.lane[k].scale);
    const ho_ppo_term term = ho_ppo_surrogate(now, old, advantage, (float)agent->clip);
    int32_t choice[HO_BRANCHES_MAX];
    ho_branches_choice(&b, action, choice);
    ho_ppo_part part = {term.loss,           0.0f,  0.0f,  ho_ppo_kl(now, old),
                        (float)term.clipped, value, value, 0.0f};
    delta[0] = delta[1] = 0.0f;
    for (int d = 0; d < b.count; d++) {
        float p[PPO_SLOTS], sum = 0.0f;
#pragma unroll
        for (int s = 0; s < PPO_SLOTS; s++) {
            p[s] = ppo_in_branch(b, d, l + 32 * s) ? ho_real_exp(log_p[s]) : 0.0f;
            sum -= p[s] * log_p[s];
        }
        const float entropy = warp_sum(sum);
        part.entropy += entropy;
#pragma unroll
        for (int s = 0; s < PPO_SLOTS; s++) {
            const float taken = l + 32 * s == b.first[d] + choice[d] ? 1.0f : 0.0f;
            if (ppo_in_branch(b, d, l + 32 * s)) {
                delta[s] = inv * (term.slope * (taken - p[s]) +
                                  entropy_weight * p[s] * (log_p[s] + entropy));
            }
        }
    }
    float slope;
    const float value_old = v.value[at], target = v.advantage[at] + value_old;
    part.value = ho_ppo_value_loss(value, value_old, target, (float)agent->value_clip, &slope);
    const int width = learn.net.layer[HO_DEVICE_LAYERS - 1].out;
    T *to = (T *)learn.d_output + ((size_t)k * learn.batch + row) * width;
#pragma unroll
    for (int s = 0; s < PPO_SLOTS; s++) {
        if (l + 32 * s < width) {
            const bool is_value = l + 32 * s == learn.net.actions;
            put_delta(&to[l + 32 * s], is_value ? inv * (float)agent->vf_coef * slope : delta[s]);
        }
    }
    return part;
}

static __device__ __forceinline__ void part_add(ho_ppo_part *sum, const ho_ppo_part *p)
{
    sum->policy += p->policy;
    sum->value += p->value;
    sum->entropy += p->entropy;
    sum->kl += p->kl;
    sum->clipped += p->clipped;
    sum->value_min = fminf(sum->value_min, p->value_min);
    sum->value_max = fmaxf(sum->value_max, p->value_max);
}

/* One warp a row, HO_LOSS_ROWS rows a block; rows beyond the minibatch send no gradient.
 * grid (loss parts, lanes) */
template <typename T>
static __global__ void __launch_bounds__(LOSS_WARPS * 32)
    ppo_loss(const __grid_constant__ ho_ppo_view v)
{
    __shared__ ho_ppo_part row_part[HO_LOSS_ROWS];
    const int k = (int)blockIdx.y, l = (int)threadIdx.x & 31;
    const int width = v.learn.net.layer[HO_DEVICE_LAYERS - 1].out;
    if (!ho_lane_takes_part(v.learn, k)) {
        return;
    }
    const ho_ppo_part none = {0, 0, 0, 0, 0, INFINITY, -INFINITY, 0};
    for (int i = (int)threadIdx.x / 32; i < HO_LOSS_ROWS; i += LOSS_WARPS) {
        const int row = (int)blockIdx.x * HO_LOSS_ROWS + i;
        ho_ppo_part part = none;
        if (row < v.rows[k]) {
            part = loss_row<T>(v, k, row);
        } else if (row < v.learn.batch) {
            T *to = (T *)v.learn.d_output + ((size_t)k * v.learn.batch + row) * width;
            for (int c = l; c < width; c += 32) {
                put(&to[c], 0.0f);
            }
        }
        if (l == 0) {
            row_part[i] = part;
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        ho_ppo_part sum = row_part[0];
        for (int i = 1; i < HO_LOSS_ROWS; i++) {
            part_add(&sum, &row_part[i]);
        }
        v.part[(size_t)k * v.learn.loss_parts + blockIdx.x] = sum;
    }
}

/* ---- gate ---- */

/* One warp a lane: sums, KL stop, guard, the numbers of the Adam step. */
static __global__ void ppo_gate(const __grid_constant__ ho_ppo_view v)
{
    const int k = (int)blockIdx.x, l = (int)threadIdx.x;
    ho_lane_device *lane = &v.learn.lane[k];
    ho_update_gate *gate = &v.learn.gate[k];
    if (!lane->learning || lane->guard != 0 || v.rows[k] == 0) {
        if (l == 0) {
            gate->apply = 0;
        }
        return;
    }
    double policy = 0, value = 0, entropy = 0, kl = 0, clipped = 0, square = 0;
    double low = INFINITY, high = -INFINITY;
    for (int i = l; i < v.learn.loss_parts; i += 32) {
        const ho_ppo_part p = v.part[(size_t)k * v.learn.loss_parts + i];
        policy += p.policy;
        value += p.value;
        entropy += p.entropy;
        kl += p.kl;
        clipped += p.clipped;
        low = fmin(low, (double)p.value_min);
        high = fmax(high, (double)p.value_max);
    }
    for (int i = l; i < v.learn.norm_parts; i += 32) {
        square += v.learn.norm_part[(size_t)k * v.learn.norm_parts + i];
    }
    const double n = (double)v.rows[k];
    policy = gate_sum(policy);
    value = gate_sum(value);
    entropy = gate_sum(entropy);
    kl = gate_sum(kl) / n;
    clipped = gate_sum(clipped);
    low = gate_extreme(low, false);
    high = gate_extreme(high, true);
    const double norm = sqrt(gate_sum(square));
    __syncwarp(); /* all have read of the lane what one writes now */
    if (l != 0) {
        return;
    }
    const ho_agent_config *agent = &lane->agent;
    const double loss = (policy + agent->vf_coef * value - agent->ent_coef * entropy) / n;
    ho_ppo_lane *ppo = &v.lane[k];
    ppo->loss += loss;
    ppo->kl += kl;
    ppo->clipped += clipped / n;
    ppo->entropy += entropy / n;
    ppo->batches++;
    ho_update_sums *s = &lane->sums;
    s->rows += v.rows[k];
    s->loss_last = loss;
    s->q_min = fmin(s->q_min, low);
    s->q_max = fmax(s->q_max, high);
    if (agent->target_kl > 0.0 && kl > agent->target_kl) {
        lane->learning = 0; /* until the next epoch */
        gate->apply = 0;
        return;
    }
    s->grad_norm = norm;
    const gate_step step = gate_step_of(lane, 0.0f);
    gate_decide(lane, gate, loss, norm, fmax(fabs(low), fabs(high)), &step);
}

/* One thread a lane. */
static __global__ void ppo_close(const __grid_constant__ ho_ppo_view v)
{
    const int k = (int)blockIdx.x;
    const ho_ppo_lane *lane = &v.lane[k];
    ho_epoch_stat *out = &v.experience.stat[k];
    if (!v.learn.lane[k].active || lane->batches == 0) {
        return;
    }
    const double n = (double)lane->batches;
    out->loss_mean = lane->loss / n;
    out->kl = lane->kl / n;
    out->clip_fraction = lane->clipped / n;
    out->entropy = lane->entropy / n;
    out->explained_variance = lane->explained_variance;
    out->q_mean = lane->value_mean;
    out->q_std = lane->value_std;
}

/* ---- launchers ---- */

ho_status ho_ppo_update(const ho_ppo_view *v, int pass, int first, cudaStream_t stream)
{
    const unsigned lanes = (unsigned)v->learn.lanes;
    ppo_minibatch<<<lanes, ROW_BLOCK, 0, stream>>>(*v, pass, first);
    ho_status rc = ho_cuda_status(cudaGetLastError(), "ppo_minibatch");
    rc = rc == HO_OK ? ho_ppo_gather(v, v->index, v->learn.batch, v->rows, 0, 0, stream) : rc;
    rc = rc == HO_OK ? ho_learn_forward(&v->learn, stream) : rc;
    if (rc == HO_OK) {
        const dim3 grid((unsigned)v->learn.loss_parts, lanes);
        if (v->learn.bf16) {
            ppo_loss<__nv_bfloat16><<<grid, LOSS_WARPS * 32, 0, stream>>>(*v);
        } else {
            ppo_loss<float><<<grid, LOSS_WARPS * 32, 0, stream>>>(*v);
        }
        rc = ho_cuda_status(cudaGetLastError(), "ppo_loss");
    }
    rc = rc == HO_OK ? ho_learn_backward(&v->learn, stream) : rc;
    rc = rc == HO_OK ? ho_learn_gradient(&v->learn, stream) : rc;
    if (rc == HO_OK) {
        ppo_gate<<<lanes, 32, 0, stream>>>(*v);
        rc = ho_cuda_status(cudaGetLastError(), "ppo_gate");
    }
    return rc == HO_OK ? ho_learn_adam(&v->learn, stream) : rc;
}

ho_status ho_ppo_learn(const ho_ppo_view *v, cudaStream_t stream)
{
    const int64_t all = (int64_t)v->experience.steps * v->experience.episodes;
    ho_status rc = ho_ppo_rollout(v, stream);
    for (int pass = 0; pass < v->passes && rc == HO_OK; pass++) {
        for (int64_t first = 0; first < all && rc == HO_OK; first += v->learn.batch) {
            rc = ho_ppo_update(v, pass, (int)first, stream);
        }
    }
    return rc;
}

ho_status ho_ppo_close(const ho_ppo_view *v, cudaStream_t stream)
{
    ppo_close<<<(unsigned)v->learn.lanes, 1, 0, stream>>>(*v);
    return ho_cuda_status(cudaGetLastError(), "ppo_close");
}
