/* SPDX-License-Identifier: Apache-2.0
 * Sums over a block of 256 threads in one order: inside a warp by halves, then the warps one after
 * the other. */
#ifndef HO_CUDA_ROW_BLOCK_CUH
#define HO_CUDA_ROW_BLOCK_CUH

enum { ROW_BLOCK = 256 };

/* The sum of every thread's value, on all threads. Ends with a barrier. */
static __device__ double row_block_sum(double value)
{
    __shared__ double in_warp[ROW_BLOCK / 32];
    for (int step = 16; step > 0; step >>= 1) {
        value += __shfl_xor_sync(0xffffffffu, value, step);
    }
    if (threadIdx.x % 32 == 0) {
        in_warp[threadIdx.x / 32] = value;
    }
    __syncthreads();
    double sum = 0.0;
    for (int w = 0; w < ROW_BLOCK / 32; w++) {
        sum += in_warp[w];
    }
    __syncthreads(); /* the next call writes again */
    return sum;
}

#endif
