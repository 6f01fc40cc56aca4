/* SPDX-License-Identifier: Apache-2.0
 * The instructions of the portable path that CUDA C has no function for: asynchronous copies to
 * shared memory, fragments, the tensor-core product, loads by address. sm_75 lacks some of them and
 * gets the same from what it has: copies at once, products of float16 (short_float.cuh) in halves.
 * PTX ISA names in the comments. Addresses are shared-memory addresses (32 bits).
 *
 * tests/emulator/include has a header of the same name that says the same in C++: a function added
 * here is added there, and tests of the kernels then run without a GPU (docs/gpu.md). */
#ifndef HO_CUDA_PTX_CUH
#define HO_CUDA_PTX_CUH

#include <cuda_bf16.h>
#include <stdint.h>

static __device__ __forceinline__ uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* bar.sync: barrier ID (1 to 15; 0 is __syncthreads's) of the block's first THREADS threads, a
 * multiple of 32. */
template <int THREADS, int ID> static __device__ __forceinline__ void barrier_of_first(void)
{
    asm volatile("bar.sync %0, %1;" ::"n"(ID), "n"(THREADS) : "memory");
}

/* barrier.sync: the same for threads that come from different places in the code, which
 * compute-sanitizer's synccheck accepts of this one only. */
template <int THREADS, int ID> static __device__ __forceinline__ void barrier_of_roles(void)
{
    asm volatile("barrier.sync %0, %1;" ::"n"(ID), "n"(THREADS) : "memory");
}

/* This thread's warp, of which the compiler then knows that all its threads have the same. Work
 * that one thread would do for a warp is shorter when all do it alike, from what belongs to their
 * warp: no branch can part them, so nothing has to join them again, which takes longer than most
 * branches. All read before any stores (__syncwarp), and they store the same. */
static __device__ __forceinline__ int warp_number(void)
{
    return __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);
}

/* ---- asynchronous copies: cp.async ---- */

/* 16 bytes to shared memory; both addresses are multiples of 16. */
static __device__ __forceinline__ void copy16_async(void *dst, const void *src)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(dst)), "l"(src)
                 : "memory");
#else
    *(uint4 *)dst = *(const uint4 *)src;
#endif
}

/* The same; zeros when !valid. */
static __device__ __forceinline__ void copy16_async(void *dst, const void *src, bool valid)
{
#if __CUDA_ARCH__ >= 800
    const int bytes = valid ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(dst)),
                 "l"(src), "r"(bytes)
                 : "memory");
#else
    *(uint4 *)dst = valid ? *(const uint4 *)src : make_uint4(0, 0, 0, 0);
#endif
}

/* 8 bytes; both addresses are multiples of 8. */
static __device__ __forceinline__ void copy8_async(void *dst, const void *src)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(shared_address(dst)), "l"(src)
                 : "memory");
#else
    *(uint64_t *)dst = *(const uint64_t *)src;
#endif
}

/* Closes the group of this thread's copies since the last call. */
static __device__ __forceinline__ void copies_commit(void)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits for this thread's copies but those of the PENDING latest groups. */
template <int PENDING> static __device__ __forceinline__ void copies_wait(void)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

/* ---- fragments: ldmatrix ---- */

/* Four 8 x 8 matrices of bf16; thread l gives the address of row l % 8 of matrix l / 8. */
static __device__ __forceinline__ void load_matrix4(uint32_t (&r)[4], uint32_t address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

static __device__ __forceinline__ void load_matrix4_transposed(uint32_t (&r)[4], uint32_t address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

/* ---- the product: mma.sync ---- */

/* d += a b: a 16x16 (row), b 16x8 (column), float32 accumulators; bfloat16, on sm_75 float16. */
static __device__ __forceinline__ void mma_16x8x16(float (&d)[4], const uint4 &a, uint32_t b0,
                                                   uint32_t b1)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
#else
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
                 "{%4,%5}, {%8}, {%0,%1,%2,%3};\n"
                 "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
                 "{%6,%7}, {%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
#endif
}

/* ---- over a warp ---- */

/* redux.sync.max: the greatest of all 32 lanes' values. */
static __device__ __forceinline__ uint32_t warp_max_u32(uint32_t x)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(0xffffffffu, x);
#else
    for (int step = 16; step > 0; step >>= 1) {
        const uint32_t other = __shfl_xor_sync(0xffffffffu, x, step);
        x = other > x ? other : x;
    }
    return x;
#endif
}

/* ---- loads ---- */

/* 16 bytes of shared memory: ld.shared.v4 */
static __device__ __forceinline__ uint4 shared_load16(uint32_t address)
{
    uint4 r;
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
                 : "r"(address));
    return r;
}

/* The thread's number in its block. What hangs on it is worked out anew each time, not kept in
 * registers from one round of a loop to the next. */
static __device__ __forceinline__ int thread_anew(void)
{
    int thread = (int)threadIdx.x;
    asm volatile("" : "+r"(thread));
    __builtin_assume(thread >= 0 && thread < 1024);
    return thread;
}

#endif
