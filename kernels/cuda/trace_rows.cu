/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cuda/trace_rows.h"

#include "kernels/cuda/device.h"

enum { ROW_THREADS = 256, ROW_WARPS = ROW_THREADS / 32 };

static __device__ __forceinline__ bool is_chosen(const ho_trace_step *t, int choice, bool last)
{
    return t->valid && (choice == HO_TRACE_VALID || last || t->end != HO_END_NONE);
}

/* One block a lane: a prefix sum over flags, 256 positions at a time. */
static __global__ void __launch_bounds__(ROW_THREADS)
    trace_rows(const __grid_constant__ ho_experience_view v, int choice, int32_t *__restrict__ row,
               int32_t *__restrict__ count)
{
    __shared__ int32_t in_warp[ROW_WARPS];
    const int k = (int)blockIdx.x, t = (int)threadIdx.x, warp = t / 32;
    const int64_t all = (int64_t)v.steps * v.episodes;
    const ho_trace_step *trace = v.trace + (size_t)k * all;
    int32_t *to = row + (size_t)k * all;
    int32_t n = 0;
    const bool runs = v.lane[k].active && v.lane[k].guard == 0;
    for (int64_t first = 0; runs && first < all; first += ROW_THREADS) {
        const int64_t at = first + t;
        const bool chosen =
            at < all && is_chosen(&trace[at], choice, at >= all - (int64_t)v.episodes);
        const unsigned mask = __ballot_sync(0xffffffffu, chosen);
        if (t % 32 == 0) {
            in_warp[warp] = __popc(mask);
        }
        __syncthreads();
        int32_t before = n + __popc(mask & ((1u << t % 32) - 1));
        for (int w = 0; w < ROW_WARPS; w++) {
            before += w < warp ? in_warp[w] : 0;
            n += in_warp[w];
        }
        if (chosen) {
            to[before] = (int32_t)at;
        }
        __syncthreads(); /* counts are read before the next ones */
    }
    if (t == 0) {
        count[k] = n;
    }
}

ho_status ho_trace_rows(const ho_experience_view *v, ho_trace_choice choice, int32_t *row,
                        int32_t *count, cudaStream_t stream)
{
    trace_rows<<<(unsigned)v->lanes, ROW_THREADS, 0, stream>>>(*v, (int)choice, row, count);
    return ho_cuda_status(cudaGetLastError(), "trace_rows");
}
