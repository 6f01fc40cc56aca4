/* SPDX-License-Identifier: Apache-2.0
 * Wrappers of the sm_90a instructions the fused kernels use beside wgmma: shared-memory barriers
 * (mbarrier), bulk copies that complete on them, clusters, register hand-over between warpgroups.
 * PTX ISA names in the comments. Addresses are shared-memory addresses (32 bits). */
#ifndef HO_CUDA_HOPPER_CUH
#define HO_CUDA_HOPPER_CUH

#include <cuda_bf16.h>
#include <stdint.h>

/* Elsewhere the kernels are empty and never launched (ho_fused_fits, cuda_backend.fused). */
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define FUSED_CODE       1
#define CLUSTER_OF_THREE __cluster_dims__(3, 1, 1)
#else
#define FUSED_CODE 0
#define CLUSTER_OF_THREE
#endif

static __device__ __forceinline__ uint32_t shared_u32(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* ---- mbarrier ---- */

static __device__ __forceinline__ void barrier_init(uint32_t barrier, uint32_t arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals)
                 : "memory");
}

/* Makes initialised barriers visible to the copy engine and the cluster. */
static __device__ __forceinline__ void barrier_init_fence(void)
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

static __device__ __forceinline__ void barrier_arrive(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* Arrives and announces `bytes` of copies that will complete on the barrier. */
static __device__ __forceinline__ void barrier_expect(uint32_t barrier, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

/* Waits until the phase with this parity has completed. */
static __device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t parity)
{
    asm volatile("{\n.reg .pred p;\nWAIT_%=:\n"
                 "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%0], %1;\n"
                 "@!p bra WAIT_%=;\n}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

/* ---- copies ---- */

/* cp.async.bulk global -> shared; bytes and both addresses are multiples of 16. */
static __device__ __forceinline__ void bulk_load(uint32_t to, const void *from, uint32_t bytes,
                                                 uint32_t barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], "
                 "%2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

static __device__ __forceinline__ void bulk_store(void *to, uint32_t from, uint32_t bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
                 "cp.async.bulk.commit_group;" ::"l"(to),
                 "r"(from), "r"(bytes)
                 : "memory");
}

/* The thread's bulk stores have read their source: it may be overwritten. */
static __device__ __forceinline__ void bulk_store_wait_read(void)
{
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

static __device__ __forceinline__ void bulk_store_wait(void)
{
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/* Orders ordinary shared-memory accesses with those of wgmma and the copy engine. A reader of a
 * bulk-copied stage needs it before it gives the stage back, too: without it the refill overtook
 * the loads (seen as rare differences between runs). */
static __device__ __forceinline__ void proxy_fence(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* ---- warpgroups, clusters ---- */

template <int REGISTERS> static __device__ __forceinline__ void registers_give(void)
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

template <int REGISTERS> static __device__ __forceinline__ void registers_take(void)
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

/* bar.sync / bar.arrive on a named barrier of `threads` threads */
static __device__ __forceinline__ void named_sync(int name, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(name), "r"(threads) : "memory");
}

static __device__ __forceinline__ void named_arrive(int name, int threads)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(name), "r"(threads) : "memory");
}

static __device__ __forceinline__ void cluster_arrive(void)
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

static __device__ __forceinline__ void cluster_wait(void)
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* The same shared-memory address in another block of the cluster. */
static __device__ __forceinline__ uint32_t cluster_address(uint32_t address, uint32_t rank)
{
    uint32_t r;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(address), "r"(rank));
    return r;
}

static __device__ __forceinline__ void cluster_store(uint32_t address, float x)
{
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(address), "f"(x) : "memory");
}

/* ---- programmatic dependent launch ---- */

/* Waits until the kernels this one follows are complete and their writes visible. */
static __device__ __forceinline__ void grid_wait(void)
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

/* The kernel that follows may start its blocks, once every block here said so. */
static __device__ __forceinline__ void grid_launch(void)
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

/* ---- plain shared memory by address ---- */

static __device__ __forceinline__ float shared_load(uint32_t address)
{
    float x;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(address));
    return x;
}

static __device__ __forceinline__ float2 shared_load2(uint32_t address)
{
    float2 x;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(address));
    return x;
}

static __device__ __forceinline__ void shared_store(uint32_t address, float x)
{
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(address), "f"(x) : "memory");
}

static __device__ __forceinline__ uint32_t shared_load_bits(uint32_t address)
{
    uint32_t x;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(address));
    return x;
}

static __device__ __forceinline__ void shared_store_bits(uint32_t address, uint32_t x)
{
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(x) : "memory");
}

/* Two floats as bf16, the first in the low half. */
static __device__ __forceinline__ uint32_t pack_bf16(float low, float high)
{
    uint32_t r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

#endif
