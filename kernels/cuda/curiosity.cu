/* SPDX-License-Identifier: Apache-2.0
 * One block trains one lane's forward model through a whole pass: updates follow one another, and
 * 4,384 parameters are too few for more blocks. Weights stay in shared memory, gradients in
 * registers, each thread's own; every sum runs over the rows in order. */
#include "kernels/cuda/curiosity.h"

#include "kernels/agents/optim.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/row_block.cuh"
#include "kernels/env/orders.h"

enum {
    IN = HO_CURIOSITY_IN,
    HIDDEN = HO_CURIOSITY_HIDDEN,
    OUT = HO_CURIOSITY_OUT,
    ROWS = 64, /* rows in shared memory at a time */
    /* A thread's tile of a product is 4 by some: fewer loads from shared memory an operation. */
    TILE = 4,
    HIDDEN_PER = HIDDEN / 16,                 /* hidden units of a thread: every 16th */
    OUT_PER = OUT / 16,                       /* outputs of a thread likewise */
    W2_PER = OUT * HIDDEN / ROW_BLOCK / TILE, /* inputs of each of its 4 outputs */
    W1_PER = (IN + 15) / 16,                  /* inputs of each of its 4 hidden units */
};

/* Odd pitches: threads that walk rows or units meet different banks. Below the 64 KB of sm_75. */
typedef struct train_block {
    float w1[HIDDEN][IN];
    float b1[HIDDEN];
    float w2[OUT][HIDDEN + 1];
    float b2[OUT];
    float x[ROWS][IN + 2];
    float hidden[ROWS][HIDDEN + 1]; /* of the backward pass: their gradients */
    float error[ROWS][OUT + 1];     /* prediction - next state */
    int32_t bar[ROWS];              /* of the states */
    ho_adam adam;
} train_block;

/* What thread t owns: w2[t / 32 * 4 + a][t % 32 + 32 i], w1[t / 16 * 4 + a][t % 16 + 16 i], and one
 * bias of threads below HIDDEN + OUT. */
typedef struct train_gradient {
    float w2[TILE][W2_PER], w1[TILE][W1_PER], bias;
} train_gradient;

static __device__ __forceinline__ float *weight_at(train_block *b, int i)
{
    return i < HO_CURIOSITY_B1   ? &b->w1[i / IN][i % IN]
           : i < HO_CURIOSITY_W2 ? &b->b1[i - HO_CURIOSITY_B1]
           : i < HO_CURIOSITY_B2
               ? &b->w2[(i - HO_CURIOSITY_W2) / HIDDEN][(i - HO_CURIOSITY_W2) % HIDDEN]
               : &b->b2[i - HO_CURIOSITY_B2];
}

/* Inputs of rows [0, n); the rows beyond are 0. Ends with a barrier. */
static __device__ void load_rows(train_block *b, const ho_experience_view &v,
                                 const ho_trace_step *trace, const int32_t *row, int n)
{
    for (int i = (int)threadIdx.x; i < ROWS * IN; i += ROW_BLOCK) {
        const int r = i / IN, column = i % IN;
        float x = 0.0f;
        if (r < n && column < HO_CURIOSITY_FEATURES) {
            x = v.features_f32[(int64_t)trace[row[r]].bar * HO_STATE_PAD + column];
        } else if (r < n) {
            const int category = ho_order_from_action(trace[row[r]].action).category;
            x = category == column - HO_CURIOSITY_FEATURES ? 1.0f : 0.0f;
        }
        b->x[r][column] = x;
    }
    if (threadIdx.x < ROWS) {
        b->bar[threadIdx.x] = (int)threadIdx.x < n ? trace[row[threadIdx.x]].bar : 0;
    }
    __syncthreads();
}

/* hidden and error; rows beyond n get no error. Ends with a barrier. */
static __device__ void forward_rows(train_block *b, const ho_experience_view &v, int n)
{
    const int r0 = (int)threadIdx.x / 16 * TILE, first = (int)threadIdx.x % 16;
    float y[TILE][HIDDEN_PER] = {};
    for (int i = 0; i < IN; i++) {
#pragma unroll
        for (int j = 0; j < HIDDEN_PER; j++) {
            const float w = b->w1[first + 16 * j][i];
#pragma unroll
            for (int a = 0; a < TILE; a++) {
                y[a][j] = fmaf(b->x[r0 + a][i], w, y[a][j]);
            }
        }
    }
#pragma unroll
    for (int a = 0; a < TILE; a++) {
#pragma unroll
        for (int j = 0; j < HIDDEN_PER; j++) {
            const float h = y[a][j] + b->b1[first + 16 * j];
            b->hidden[r0 + a][first + 16 * j] = h > 0.0f ? h : h * 0.01f;
        }
    }
    __syncthreads();
    float z[TILE][OUT_PER] = {};
    for (int j = 0; j < HIDDEN; j++) {
#pragma unroll
        for (int o = 0; o < OUT_PER; o++) {
            const float w = b->w2[first + 16 * o][j];
#pragma unroll
            for (int a = 0; a < TILE; a++) {
                z[a][o] = fmaf(b->hidden[r0 + a][j], w, z[a][o]);
            }
        }
    }
#pragma unroll
    for (int a = 0; a < TILE; a++) {
        const float *next = v.features_f32 + ((int64_t)b->bar[r0 + a] + 1) * HO_STATE_PAD;
#pragma unroll
        for (int o = 0; o < OUT_PER; o++) {
            const int out = first + 16 * o;
            b->error[r0 + a][out] = r0 + a < n ? z[a][o] + b->b2[out] - next[out] : 0.0f;
        }
    }
    __syncthreads();
}

/* The gradients of the rows' hidden units, in their place. Ends with a barrier. */
static __device__ void backward_hidden(train_block *b)
{
    const int r0 = (int)threadIdx.x / 16 * TILE, first = (int)threadIdx.x % 16;
    float d[TILE][HIDDEN_PER] = {};
    for (int o = 0; o < OUT; o++) {
#pragma unroll
        for (int j = 0; j < HIDDEN_PER; j++) {
            const float w = b->w2[o][first + 16 * j];
#pragma unroll
            for (int a = 0; a < TILE; a++) {
                d[a][j] = fmaf(b->error[r0 + a][o], w, d[a][j]);
            }
        }
    }
#pragma unroll
    for (int a = 0; a < TILE; a++) {
#pragma unroll
        for (int j = 0; j < HIDDEN_PER; j++) {
            float *hidden = &b->hidden[r0 + a][first + 16 * j];
            *hidden = *hidden > 0.0f ? d[a][j] : d[a][j] * 0.01f;
        }
    }
    __syncthreads();
}

/* Adds the rows' part to the thread's sums, all but the common factor. Ends with a barrier. */
static __device__ void backward_rows(train_block *b, train_gradient *g)
{
    const int t = (int)threadIdx.x, out0 = t / 32 * TILE, hidden0 = t / 16 * TILE;
    for (int r = 0; r < ROWS; r++) {
#pragma unroll
        for (int i = 0; i < W2_PER; i++) {
            const float h = b->hidden[r][t % 32 + 32 * i];
#pragma unroll
            for (int a = 0; a < TILE; a++) {
                g->w2[a][i] = fmaf(b->error[r][out0 + a], h, g->w2[a][i]);
            }
        }
        g->bias += t >= HIDDEN && t < HIDDEN + OUT ? b->error[r][t - HIDDEN] : 0;
    }
    __syncthreads();
    backward_hidden(b);
    for (int r = 0; r < ROWS; r++) {
#pragma unroll
        for (int i = 0; i < W1_PER; i++) {
            const int column = t % 16 + 16 * i;
            const float x = column < IN ? b->x[r][column] : 0.0f;
#pragma unroll
            for (int a = 0; a < TILE; a++) {
                g->w1[a][i] = fmaf(b->hidden[r][hidden0 + a], x, g->w1[a][i]);
            }
        }
        g->bias += t < HIDDEN ? b->hidden[r][t] : 0;
    }
    __syncthreads();
}

/* One parameter's Adam step, in global memory and in the block. */
static __device__ __forceinline__ void step_one(train_block *b, float *state, int i, float gradient)
{
    float *p = state + i;
    ho_adam_step(&b->adam, gradient, p, p + HO_CURIOSITY_SIZE, p + 2 * HO_CURIOSITY_SIZE);
    *weight_at(b, i) = *p;
}

static __device__ void step_all(train_block *b, float *state, const train_gradient *g, float scale)
{
    const int t = (int)threadIdx.x, out0 = t / 32 * TILE, hidden0 = t / 16 * TILE;
#pragma unroll
    for (int a = 0; a < TILE; a++) {
#pragma unroll
        for (int i = 0; i < W2_PER; i++) {
            step_one(b, state, HO_CURIOSITY_W2 + (out0 + a) * HIDDEN + t % 32 + 32 * i,
                     scale * g->w2[a][i]);
        }
#pragma unroll
        for (int i = 0; i < W1_PER; i++) {
            const int column = t % 16 + 16 * i;
            if (column < IN) {
                step_one(b, state, HO_CURIOSITY_W1 + (hidden0 + a) * IN + column,
                         scale * g->w1[a][i]);
            }
        }
    }
    if (t < HIDDEN + OUT) {
        step_one(b, state, t < HIDDEN ? HO_CURIOSITY_B1 + t : HO_CURIOSITY_B2 + t - HIDDEN,
                 scale * g->bias);
    }
}

static __global__ void __launch_bounds__(ROW_BLOCK)
    curiosity_train(const __grid_constant__ ho_experience_view v, const int32_t *__restrict__ rows,
                    const int32_t *__restrict__ row_count, float *__restrict__ states)
{
    extern __shared__ __align__(16) uint8_t shared[];
    train_block *b = (train_block *)shared;
    const int k = (int)blockIdx.x, t = (int)threadIdx.x, count = row_count[k];
    ho_lane_device *lane = &v.lane[k];
    if (count == 0 || (lane->epoch + 1) % lane->agent.curiosity_every != 0) {
        return;
    }
    const size_t all = (size_t)v.steps * v.episodes;
    const ho_trace_step *trace = v.trace + k * all;
    const int32_t *row = rows + k * all;
    float *state = states + (size_t)k * HO_CURIOSITY_STATE;
    for (int i = t; i < HO_CURIOSITY_SIZE; i += ROW_BLOCK) {
        *weight_at(b, i) = state[i];
    }
    double loss = 0.0;
    int64_t updates = lane->curiosity_updates;
    for (int first = 0; first < count; first += HO_CURIOSITY_BATCH) {
        const int n = count - first < HO_CURIOSITY_BATCH ? count - first : HO_CURIOSITY_BATCH;
        train_gradient g = {};
        updates++;
        if (t == 0) {
            b->adam = ho_adam_of(&lane->agent, lane->agent.curiosity_lr, updates, 1.0);
        }
        for (int at = 0; at < n; at += ROWS) {
            const int left = n - at < ROWS ? n - at : ROWS;
            load_rows(b, v, trace, row + first + at, left);
            forward_rows(b, v, left);
            float square = 0.0f;
            for (int o = 0; t < ROWS && o < OUT; o++) {
                square += b->error[t][o] * b->error[t][o];
            }
            loss += (double)(square / OUT);
            backward_rows(b, &g);
        }
        step_all(b, state, &g, 2.0f / ((float)OUT * (float)n));
        __syncthreads();
    }
    loss = row_block_sum(loss);
    if (t == 0) {
        lane->curiosity_updates = updates;
        lane->curiosity_loss = loss / (double)count;
    }
}

ho_status ho_curiosity_prepare(void)
{
    return ho_cuda_status(cudaFuncSetAttribute(curiosity_train,
                                               cudaFuncAttributeMaxDynamicSharedMemorySize,
                                               (int)sizeof(train_block)),
                          "shared memory of curiosity_train");
}

ho_status ho_curiosity_train(const ho_experience_view *v, const int32_t *row,
                             const int32_t *row_count, float *state, cudaStream_t stream)
{
    curiosity_train<<<(unsigned)v->lanes, ROW_BLOCK, sizeof(train_block), stream>>>(
        *v, row, row_count, state);
    return ho_cuda_status(cudaGetLastError(), "curiosity_train");
}
