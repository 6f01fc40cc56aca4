/* SPDX-License-Identifier: Apache-2.0
 * C51 on the portable path: targets, cross-entropy and its gradient on the raw outputs of the last
 * layer (formulas: kernels/agents/value.h). A warp owns a row; thread l of it the atoms l, l + 32,
 * ... Sums over atoms run over the warp by halves, so they differ from the CPU's in order only. */
#include "kernels/agents/agent_check.h"
#include "kernels/agents/value.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/learn.h"
#include "kernels/cuda/priority.cuh"
#include "kernels/cuda/row_ops.cuh"

enum {
    WARPS = 8,
    SLOTS = (HO_ATOMS_MAX + 31) / 32, /* atoms of a thread */
    ATOMS_ROOM = SLOTS * 32,
};

/* The support and how a network's outputs of one row become logits. */
typedef struct atom_row {
    const float *out;
    int atoms;
    float v_max, delta;
} atom_row;

/* Dueling: what each atom of branch d adds to its advantages. */
static __device__ __forceinline__ void branch_shift(const ho_device_net &net, const atom_row &r,
                                                    int d, float (&shift)[SLOTS])
{
    const int l = (int)threadIdx.x % 32;
#pragma unroll
    for (int s = 0; s < SLOTS; s++) {
        const int i = l + 32 * s;
        shift[s] = 0.0f;
        if (i < r.atoms && net.dueling) {
            float sum = 0.0f;
            for (int a = 0; a < net.branches.size[d]; a++) {
                sum += r.out[(net.branches.first[d] + a) * r.atoms + i];
            }
            shift[s] = r.out[net.values + i] - sum / (float)net.branches.size[d];
        }
    }
}

/* The distribution of choice `output`, p = 0 past the last atom; returns its mean. */
static __device__ __forceinline__ float choice_mean(const atom_row &r, int output,
                                                    const float (&shift)[SLOTS], float (&p)[SLOTS])
{
    const int l = (int)threadIdx.x % 32;
    float top = -INFINITY, sum = 0.0f, mean = 0.0f;
#pragma unroll
    for (int s = 0; s < SLOTS; s++) {
        const int i = l + 32 * s;
        p[s] = i < r.atoms ? r.out[output * r.atoms + i] + shift[s] : -INFINITY;
        top = fmaxf(top, p[s]);
    }
    top = warp_max(top);
#pragma unroll
    for (int s = 0; s < SLOTS; s++) {
        p[s] = l + 32 * s < r.atoms ? expf(p[s] - top) : 0.0f;
        sum += p[s];
    }
    const float inverse = 1.0f / warp_sum(sum);
#pragma unroll
    for (int s = 0; s < SLOTS; s++) {
        p[s] *= inverse;
        mean += p[s] * (-r.v_max + r.delta * (float)(l + 32 * s));
    }
    return warp_sum(mean);
}

/* The best output of branch d, lowest on ties. */
static __device__ __forceinline__ int best_of_branch(const ho_device_net &net, const atom_row &r,
                                                     int d)
{
    float shift[SLOTS], p[SLOTS], best = 0.0f;
    int at = net.branches.first[d];
    branch_shift(net, r, d, shift);
    for (int a = 0; a < net.branches.size[d]; a++) {
        const float q = choice_mean(r, net.branches.first[d] + a, shift, p);
        if (a == 0 || q > best) {
            best = q;
            at = net.branches.first[d] + a;
        }
    }
    return at;
}

/* The projected target of a row into `target` [atoms], by its warp. mean, at: [ATOMS_ROOM]. */
static __device__ __forceinline__ void project(const ho_device_net &net, const atom_row &choose,
                                               const atom_row &value, float reward, float discount,
                                               float *mean, float *at, float (&target)[SLOTS])
{
    const int l = (int)threadIdx.x % 32;
    const float share = 1.0f / (float)net.branches.count, inverse = 1.0f / value.delta;
    float sum[SLOTS] = {0};
    for (int d = 0; d < net.branches.count; d++) {
        float shift[SLOTS], p[SLOTS];
        const int best = best_of_branch(net, choose, d);
        branch_shift(net, value, d, shift);
        (void)choice_mean(value, best, shift, p);
#pragma unroll
        for (int s = 0; s < SLOTS; s++) {
            sum[s] += share * p[s];
        }
    }
#pragma unroll
    for (int s = 0; s < SLOTS; s++) {
        const int i = l + 32 * s;
        const float z = reward + discount * (-value.v_max + value.delta * (float)i);
        mean[i] = sum[s];
        at[i] = (fminf(fmaxf(z, -value.v_max), value.v_max) + value.v_max) * inverse;
        target[s] = 0.0f;
    }
    __syncwarp();
    for (int j = 0; j < value.atoms; j++) {
        const float probability = mean[j], where = at[j];
#pragma unroll
        for (int s = 0; s < SLOTS; s++) {
            const float w = 1.0f - fabsf(where - (float)(l + 32 * s));
            target[s] += w > 0.0f ? probability * w : 0.0f;
        }
    }
    __syncwarp();
}

/* One warp a row, HO_LOSS_ROWS rows a block; grid (loss parts, lanes) */
template <typename T>
static __global__ void __launch_bounds__(WARPS * 32)
    td_atoms(const __grid_constant__ ho_learn_view v)
{
    __shared__ ho_loss_part row_part[HO_LOSS_ROWS];
    __shared__ float work[WARPS][2][ATOMS_ROOM];
    const int k = (int)blockIdx.y, warp = (int)threadIdx.x / 32, l = (int)threadIdx.x % 32;
    if (!ho_lane_takes_part(v, k)) {
        return;
    }
    const ho_lane_device *lane = &v.lane[k];
    const ho_device_net &net = v.net;
    const int width = net.layer[HO_DEVICE_LAYERS - 1].out, atoms = net.atoms;
    const size_t pass = (size_t)v.batch * width;
    const float *out = v.output + (size_t)k * HO_PASSES * pass;
    const float v_max = (float)lane->agent.v_max, delta = ho_c51_delta(v_max, atoms);
    const float share = 1.0f / (float)net.branches.count, largest = ho_largest_weight(v, k);
    for (int in = warp; in < HO_LOSS_ROWS; in += WARPS) {
        const int row = (int)blockIdx.x * HO_LOSS_ROWS + in;
        if (row >= v.batch) {
            break;
        }
        const float *first = out + (size_t)row * width;
        const atom_row now = {first, atoms, v_max, delta};
        const atom_row next = {first + pass, atoms, v_max, delta};
        const atom_row next_target = {first + 2 * pass, atoms, v_max, delta};
        const ho_sample s = v.sample[(size_t)k * v.batch + row];
        const float weight = ho_row_weight(v, k, row, largest);
        const float slope = weight * share / (float)v.batch;
        float target[SLOTS], slope_of[HO_BRANCHES_MAX][SLOTS], q = 0.0f, td = 0.0f;
        int32_t choice[HO_BRANCHES_MAX];
        ho_branches_choice(&net.branches, s.action, choice);
        project(net, lane->agent.double_q ? next : next_target, next_target, s.reward, s.discount,
                work[warp][0], work[warp][1], target);
#pragma unroll
        for (int d = 0; d < HO_BRANCHES_MAX; d++) {
            if (d >= net.branches.count) {
                continue;
            }
            float shift[SLOTS], p[SLOTS], entropy = 0.0f;
            branch_shift(net, now, d, shift);
            q += share * choice_mean(now, net.branches.first[d] + choice[d], shift, p);
#pragma unroll
            for (int i = 0; i < SLOTS; i++) {
                entropy -= l + 32 * i < atoms ? target[i] * logf(fmaxf(p[i], 1e-30f)) : 0.0f;
                entropy = p[i] == p[i] ? entropy : p[i]; /* fmaxf would hide a NaN */
                slope_of[d][i] = slope * (p[i] - target[i]);
            }
            td += share * warp_sum(entropy);
        }
        if (l == 0) {
            ho_keep_td(v, k, row, td);
            const ho_loss_part part = {weight * td, td, q, q * q, q, q, {0, 0}};
            row_part[in] = part;
        }
        if (v.first_new >= 0) {
            continue;
        }
        T *gradient = (T *)v.d_output + ((size_t)k * v.batch + row) * width;
        for (int i = net.outputs + l; i < width; i += 32) {
            put(&gradient[i], 0.0f);
        }
#pragma unroll
        for (int i = 0; i < SLOTS; i++) {
            const int atom = l + 32 * i;
            float value = 0.0f;
            if (atom >= atoms) {
                break;
            }
#pragma unroll
            for (int d = 0; d < HO_BRANCHES_MAX; d++) {
                if (d >= net.branches.count) {
                    continue;
                }
                const float g = slope_of[d][i];
                const float shared = net.dueling ? g / (float)net.branches.size[d] : 0.0f;
                value += g;
                for (int a = 0; a < net.branches.size[d]; a++) {
                    put_delta(&gradient[(net.branches.first[d] + a) * atoms + atom],
                              (a == choice[d] ? g : 0.0f) - shared);
                }
            }
            if (net.dueling) {
                put_delta(&gradient[net.values + atom], value);
            }
        }
    }
    __syncthreads();
    if (threadIdx.x == 0 && v.first_new < 0) {
        ho_loss_part sum = row_part[0];
        for (int i = 1; i < HO_LOSS_ROWS && (int)blockIdx.x * HO_LOSS_ROWS + i < v.batch; i++) {
            ho_loss_part_add(&sum, &row_part[i]);
        }
        v.loss_part[(size_t)k * v.loss_parts + blockIdx.x] = sum;
    }
}

ho_status ho_learn_td_atoms(const ho_learn_view *v, cudaStream_t stream)
{
    const dim3 grid((unsigned)((v->batch + HO_LOSS_ROWS - 1) / HO_LOSS_ROWS), (unsigned)v->lanes);
    if (v->bf16) {
        td_atoms<__nv_bfloat16><<<grid, WARPS * 32, 0, stream>>>(*v);
    } else {
        td_atoms<float><<<grid, WARPS * 32, 0, stream>>>(*v);
    }
    return ho_cuda_status(cudaGetLastError(), "td_atoms");
}
