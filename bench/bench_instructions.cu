/* SPDX-License-Identifier: Apache-2.0
 * How fast a GPU's warps get their instructions when each runs code of its own: cycles an
 * instruction by the code's size, the number of such warps and the number of busy multiprocessors.
 * Every warp repeats N dependent products (4 cycles each when the code is at hand), all meet at a
 * barrier after each round, as the roles of the backtest kernel do (docs/gpu.md "Instructions").
 * usage: bench_instructions     exit status: 77 without a GPU */
#include <stdio.h>
#include <stdlib.h>

#include <cuda_runtime.h>

enum { ROUNDS = 60, WARM_UP = 10, WARPS = 8, BLOCKS = 128, INSTRUCTION = 16 /* bytes */ };

/* A block a multiprocessor. */
enum { SHARED = 200 * 1024 };

static void check(cudaError_t rc, const char *what)
{
    if (rc != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(rc));
        exit(1);
    }
}

/* N instructions of role R. */
template <int N, int R> static __device__ __noinline__ float work(float x, float a)
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        x = fmaf(x, a, (float)(R * 7 + 1));
    }
    return x;
}

/* cycles: [gridDim.x] of a round; sink: keeps the work */
template <int N> static __global__ void roles(float *sink, long long *cycles, float a)
{
    extern __shared__ char whole[]; /* unused: one block a multiprocessor */
    float x = a;
    long long from = 0;
    for (int i = 0; i < ROUNDS; i++) {
        if (i == WARM_UP) {
            from = clock64();
        }
        __syncthreads();
        switch (threadIdx.x / 32) {
        case 0:
            x = work<N, 0>(x, a);
            break;
        case 1:
            x = work<N, 1>(x, a);
            break;
        case 2:
            x = work<N, 2>(x, a);
            break;
        case 3:
            x = work<N, 3>(x, a);
            break;
        case 4:
            x = work<N, 4>(x, a);
            break;
        case 5:
            x = work<N, 5>(x, a);
            break;
        case 6:
            x = work<N, 6>(x, a);
            break;
        default:
            x = work<N, 7>(x, a);
            break;
        }
    }
    if (threadIdx.x == 0) {
        cycles[blockIdx.x] = (clock64() - from) / (ROUNDS - WARM_UP);
    }
    sink[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

template <int N> static void measure(float *sink, long long *cycles)
{
    check(cudaFuncSetAttribute(roles<N>, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED),
          "shared memory");
    for (int blocks = 8; blocks <= BLOCKS; blocks *= 16) {
        for (int warps = 1; warps <= WARPS; warps *= 2) {
            long long of_block[BLOCKS];
            double sum = 0.0;
            roles<N><<<blocks, warps * 32, SHARED>>>(sink, cycles, 0.5f);
            check(cudaGetLastError(), "launch");
            check(cudaMemcpy(of_block, cycles, (size_t)blocks * sizeof *of_block,
                             cudaMemcpyDeviceToHost),
                  "cycles");
            for (int i = 0; i < blocks; i++) {
                sum += (double)of_block[i];
            }
            printf("%3d blocks, %d warps of %3d KB: %4d KB, %5.2f cycles an instruction\n", blocks,
                   warps, N * INSTRUCTION / 1024, warps * N * INSTRUCTION / 1024, sum / blocks / N);
        }
    }
}

int main(void)
{
    float *sink;
    long long *cycles;
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("no GPU: skipped\n");
        return 77;
    }
    check(cudaMalloc((void **)&sink, BLOCKS * WARPS * 32 * sizeof *sink), "memory");
    check(cudaMalloc((void **)&cycles, BLOCKS * sizeof *cycles), "memory");
    measure<256>(sink, cycles);
    measure<512>(sink, cycles);
    measure<1024>(sink, cycles);
    measure<2048>(sink, cycles);
    measure<4096>(sink, cycles);
    cudaFree(sink);
    cudaFree(cycles);
    return 0;
}
