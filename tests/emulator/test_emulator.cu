/* SPDX-License-Identifier: Apache-2.0
 * The emulator itself: what its functions compute, when its streams run, what it refuses, and that
 * faults of kernels are seen. Expected values are CUDA's documented ones, computed here plainly. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

extern "C" {
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
}

#include "check.h"
#include "kernels/cuda/ptx.cuh"

#define CUDA_OK(call) assert_int_equal(call, cudaSuccess)

template <typename T> static T *device_array(size_t n)
{
    T *p = NULL;
    CUDA_OK(cudaMalloc(&p, n * sizeof(T)));
    CUDA_OK(cudaMemset(p, 0, n * sizeof(T)));
    return p;
}

template <typename T> static void fetch(T *to, const T *from, size_t n)
{
    CUDA_OK(cudaMemcpy(to, from, n * sizeof(T), cudaMemcpyDeviceToHost));
}

/* ---- numbers ---- */

static void bfloat16_rounds_to_nearest_ties_to_even(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x7f80; bits++) {
        const float low = ho_emu::bf16_value((uint16_t)bits);
        const float high = ho_emu::bf16_value((uint16_t)(bits + 1));
        assert_int_equal(__bfloat16_as_ushort(__float2bfloat16(low)), bits);
        if (isfinite(high)) {
            const float middle = (float)(((double)low + (double)high) / 2.0);
            const uint32_t even = bits % 2 ? bits + 1 : bits;
            assert_int_equal(__bfloat16_as_ushort(__float2bfloat16(middle)), even);
            assert_int_equal(__bfloat16_as_ushort(__float2bfloat16(nextafterf(middle, high))),
                             bits + 1);
            assert_int_equal(__bfloat16_as_ushort(__float2bfloat16(nextafterf(-middle, 0.0f))),
                             bits | 0x8000);
        }
    }
    assert_true(isnan(__bfloat162float(__float2bfloat16(NAN))));
    assert_true(isinf(__bfloat162float(__float2bfloat16(3.4e38f))));
}

static uint32_t half_of(float x)
{
    return __half_as_ushort(__float2half_rn(x));
}

static void float16_rounds_to_nearest_ties_to_even(void **state)
{
    (void)state;
    assert_int_equal(half_of(1.0f), 0x3c00);
    assert_int_equal(half_of(65504.0f), 0x7bff);
    assert_int_equal(half_of(5.9604645e-8f), 1); /* 2^-24 */
    for (uint32_t bits = 0; bits < 0x7c00; bits++) {
        const float low = __half2float(__ushort_as_half((unsigned short)bits));
        const float high =
            bits < 0x7bff ? __half2float(__ushort_as_half((unsigned short)(bits + 1))) : 65536.0f;
        const float middle = (low + high) / 2.0f; /* exact */
        assert_true(low < high);
        assert_int_equal(half_of(low), bits);
        assert_int_equal(half_of(middle), bits % 2 ? bits + 1 : bits);
        assert_int_equal(half_of(nextafterf(middle, high)), bits + 1);
        assert_int_equal(half_of(nextafterf(-middle, 0.0f)), bits | 0x8000);
    }
    assert_true(isnan(__half2float(__float2half_rn(NAN))));
    assert_true(isinf(__half2float(__float2half_rn(-1e30f))));
}

/* ---- warps ---- */

enum { SHUFFLES = 7 };

static __global__ void shuffle_all(int *out)
{
    const int l = (int)threadIdx.x, x = 100 + l;
    int *to = out + l * SHUFFLES;
    to[0] = __shfl_sync(0xffffffffu, x, 5);
    to[1] = __shfl_sync(0xffffffffu, x, 3, 8);
    to[2] = __shfl_xor_sync(0xffffffffu, x, 9);
    to[3] = __shfl_up_sync(0xffffffffu, x, 2, 16);
    to[4] = __shfl_down_sync(0xffffffffu, x, 3);
    to[5] = l < 7 ? (int)__shfl_sync(0x7fu, (double)x, l + 1 < 7 ? l + 1 : 0) : 0;
    to[6] = (int)__ballot_sync(0xffffffffu, l % 3 == 0);
}

static void shuffles_and_votes_are_cudas(void **state)
{
    (void)state;
    int *device = device_array<int>(32 * SHUFFLES), got[32 * SHUFFLES];
    shuffle_all<<<1, 32>>>(device);
    CUDA_OK(cudaGetLastError());
    fetch(got, device, 32 * SHUFFLES);
    for (int l = 0; l < 32; l++) {
        const int *g = got + l * SHUFFLES;
        assert_int_equal(g[0], 105);
        assert_int_equal(g[1], 100 + l / 8 * 8 + 3);
        assert_int_equal(g[2], 100 + (l ^ 9));
        assert_int_equal(g[3], 100 + (l % 16 < 2 ? l : l - 2));
        assert_int_equal(g[4], 100 + (l < 29 ? l + 3 : l));
        assert_int_equal(g[5], l < 7 ? 100 + (l + 1) % 7 : 0);
        assert_int_equal(g[6], 0x49249249);
    }
    CUDA_OK(cudaFree(device));
}

/* C = A B of small whole numbers by ldmatrix and mma: exact in any order of sums. */
static __global__ void multiply_tile(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c,
                                     bool b_transposed)
{
    __shared__ __align__(16) __nv_bfloat16 tile_a[16][24], tile_b[16][24];
    const int l = (int)threadIdx.x;
    for (int i = l; i < 256; i += 32) {
        tile_a[i / 16][i % 16] = a[i];
        tile_b[i / 16][i % 16] = b[i];
    }
    __syncthreads();
    uint32_t fa[4], fb[4];
    load_matrix4(fa, shared_address(&tile_a[l % 16][l / 16 * 8]));
    if (b_transposed) { /* stored [n][k] */
        load_matrix4(fb, shared_address(&tile_b[l % 8 + l / 16 * 8][l / 8 % 2 * 8]));
    } else { /* stored [k][n] */
        load_matrix4_transposed(fb, shared_address(&tile_b[l % 8 + l / 8 % 2 * 8][l / 16 * 8]));
    }
    for (int half = 0; half < 2; half++) {
        float d[4] = {1.0f, 1.0f, 1.0f, 1.0f};
        mma_16x8x16(d, make_uint4(fa[0], fa[1], fa[2], fa[3]), fb[2 * half], fb[2 * half + 1]);
        for (int r = 0; r < 4; r++) {
            c[(l / 4 + r / 2 * 8) * 16 + half * 8 + l % 4 * 2 + r % 2] = d[r];
        }
    }
}

static void fragments_multiply_as_matrices_do(void **state)
{
    (void)state;
    __nv_bfloat16 a[256], b[256];
    for (int i = 0; i < 256; i++) {
        a[i] = (float)(i * 7 % 23 - 11);
        b[i] = (float)(i * 5 % 19 - 9);
    }
    __nv_bfloat16 *da = device_array<__nv_bfloat16>(256), *db = device_array<__nv_bfloat16>(256);
    float *dc = device_array<float>(256), c[256];
    CUDA_OK(cudaMemcpy(da, a, sizeof a, cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy(db, b, sizeof b, cudaMemcpyHostToDevice));
    for (int transposed = 0; transposed < 2; transposed++) {
        multiply_tile<<<1, 32>>>(da, db, dc, transposed != 0);
        CUDA_OK(cudaGetLastError());
        fetch(c, dc, 256);
        for (int m = 0; m < 16; m++) {
            for (int n = 0; n < 16; n++) {
                float want = 1.0f;
                for (int k = 0; k < 16; k++) {
                    want += (float)a[m * 16 + k] * (float)b[transposed ? n * 16 + k : k * 16 + n];
                }
                assert_true(c[m * 16 + n] == want);
            }
        }
    }
    CUDA_OK(cudaFree(da));
    CUDA_OK(cudaFree(db));
    CUDA_OK(cudaFree(dc));
}

/* ---- blocks ---- */

enum { BLOCK = 96 };

static __global__ void sums_of_blocks(int *out)
{
    __shared__ int sum, number[BLOCK];
    extern __shared__ __align__(16) char extra[];
    const int i = (int)threadIdx.x;
    if (i >= 90) {
        return; /* counts as arrived */
    }
    number[i] = i;
    ((int *)extra)[i] = number[i] * 2;
    if (i == 0) {
        sum = 0;
    }
    __syncthreads();
    atomicAdd(&sum, number[89 - i] + ((int *)extra)[i]);
    const int all = __syncthreads_count(i % 2 == 0), any = __syncthreads_or(i == 17);
    if (i == 0) {
        out[blockIdx.x * 3 + 0] = sum;
        out[blockIdx.x * 3 + 1] = all;
        out[blockIdx.x * 3 + 2] = any;
    }
}

static void barriers_join_a_block(void **state)
{
    (void)state;
    int *device = device_array<int>(9), got[9];
    sums_of_blocks<<<3, BLOCK, BLOCK * sizeof(int)>>>(device);
    CUDA_OK(cudaGetLastError());
    fetch(got, device, 9);
    for (int b = 0; b < 3; b++) {
        assert_int_equal(got[b * 3 + 0], 3 * 89 * 90 / 2);
        assert_int_equal(got[b * 3 + 1], 45);
        assert_int_equal(got[b * 3 + 2], 1);
    }
    CUDA_OK(cudaFree(device));
}

static __global__ void copy_and_look(const uint4 *from, uint32_t *out)
{
    __shared__ uint4 to[2];
    copy16_async(&to[0], from);
    copies_commit();
    copy16_async(&to[1], from, false);
    copies_commit();
    out[0] = to[0].x;
    copies_wait<1>();
    out[1] = to[0].x;
    out[2] = to[1].x;
    copies_wait<0>();
    out[3] = to[1].x;
}

static void an_asynchronous_copy_arrives_at_the_wait_for_it(void **state)
{
    (void)state;
    const uint4 source = {42, 43, 44, 45};
    uint4 *from = device_array<uint4>(1);
    uint32_t *device = device_array<uint32_t>(4), got[4];
    CUDA_OK(cudaMemcpy(from, &source, sizeof source, cudaMemcpyHostToDevice));
    copy_and_look<<<1, 1>>>(from, device);
    CUDA_OK(cudaGetLastError());
    fetch(got, device, 4);
    assert_int_equal(got[0], 0xffffffffu); /* shared memory starts so */
    assert_int_equal(got[1], 42);
    assert_int_equal(got[2], 0xffffffffu);
    assert_int_equal(got[3], 0);
    CUDA_OK(cudaFree(from));
    CUDA_OK(cudaFree(device));
}

/* ---- streams ---- */

template <typename T> static __global__ void add_to(T *to, T x)
{
    *to += x;
}

static void work_runs_at_the_wait_and_not_before(void **state)
{
    (void)state;
    int *device = device_array<int>(1), *host, now = -1;
    cudaStream_t apart, joined;
    CUDA_OK(cudaMallocHost((void **)&host, sizeof *host));
    CUDA_OK(cudaStreamCreateWithFlags(&apart, cudaStreamNonBlocking));
    CUDA_OK(cudaStreamCreate(&joined));
    *host = -1;
    CUDA_OK(cudaDeviceSynchronize());
    add_to<int><<<1, 1, 0, apart>>>(device, 5);
    CUDA_OK(cudaMemcpyAsync(host, device, sizeof *host, cudaMemcpyDeviceToHost, apart));
    fetch(&now, device, 1); /* the default stream does not wait for it */
    assert_int_equal(now, 0);
    assert_int_equal(*host, -1);
    CUDA_OK(cudaStreamSynchronize(apart));
    assert_int_equal(*host, 5);
    add_to<int><<<1, 1, 0, joined>>>(device, 7);
    fetch(&now, device, 1); /* for this one it does */
    assert_int_equal(now, 12);
    CUDA_OK(cudaStreamDestroy(apart));
    CUDA_OK(cudaStreamDestroy(joined));
    CUDA_OK(cudaFreeHost(host));
    CUDA_OK(cudaFree(device));
}

static void a_graph_repeats_what_was_captured(void **state)
{
    (void)state;
    int *device = device_array<int>(1), x = 3, now = -1;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA_OK(cudaDeviceSynchronize());
    CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    add_to<int><<<1, 1, 0, stream>>>(device, x);
    x = 1000; /* arguments were copied */
    CUDA_OK(cudaStreamEndCapture(stream, &graph));
    CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
    CUDA_OK(cudaGraphDestroy(graph));
    fetch(&now, device, 1);
    assert_int_equal(now, 0);
    for (int i = 0; i < 3; i++) {
        CUDA_OK(cudaGraphLaunch(exec, stream));
    }
    CUDA_OK(cudaStreamSynchronize(stream));
    fetch(&now, device, 1);
    assert_int_equal(now, 9);

    CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    void *p;
    assert_int_equal(cudaMalloc(&p, 16), cudaErrorStreamCaptureUnsupported);
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    (void)cudaGetLastError();
    CUDA_OK(cudaGraphExecDestroy(exec));
    CUDA_OK(cudaStreamDestroy(stream));
    CUDA_OK(cudaFree(device));
}

/* ---- limits ---- */

static void memory_is_counted_and_checked(void **state)
{
    (void)state;
    size_t before, after, total;
    CUDA_OK(cudaMemGetInfo(&before, &total));
    uint8_t *p, byte = 0, many[64] = {0};
    CUDA_OK(cudaMalloc(&p, 1000));
    CUDA_OK(cudaMemGetInfo(&after, &total));
    assert_true(before - after == 1000);
    fetch(&byte, p, 1);
    assert_int_equal(byte, 0xff); /* fresh memory is not zero */
    assert_int_equal(cudaMemcpy(p + 960, many, 64, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpy(p, many, 64, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
    assert_int_equal(cudaMemset(many, 0, 64), cudaErrorInvalidValue);
    void *none = &byte;
    assert_int_equal(cudaMalloc(&none, total - 999), cudaErrorMemoryAllocation);
    assert_null(none);
    assert_int_equal(cudaFree(p + 1), cudaErrorInvalidValue);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidValue);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    CUDA_OK(cudaFree(p));
    CUDA_OK(cudaMemGetInfo(&after, &total));
    assert_true(before == after);
}

static __global__ void nothing(void)
{
}

static size_t free_bytes(void)
{
    size_t left = 0, total = 0;
    CUDA_OK(cudaMemGetInfo(&left, &total));
    return left;
}

static void a_pool_keeps_its_threshold_and_no_more(void **state)
{
    (void)state;
    enum { MB = 1 << 20 };
    const size_t start = free_bytes();
    cudaMemPoolProps props = {
        cudaMemAllocationTypePinned, cudaMemHandleTypeNone, {cudaMemLocationTypeDevice, 0}};
    cudaMemPool_t pool = NULL;
    cudaStream_t stream = NULL;
    uint64_t kept = 2 * MB, reserved = 0, used = 0;
    void *a = NULL, *b = NULL, *none = NULL;
    CUDA_OK(cudaMemPoolCreate(&pool, &props));
    CUDA_OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept));
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA_OK(cudaMallocFromPoolAsync(&a, MB, pool, stream));
    CUDA_OK(cudaMallocFromPoolAsync(&b, 4 * MB, pool, stream));
    assert_true(free_bytes() == start - 5 * MB);
    assert_int_equal(cudaFree(b), cudaErrorInvalidValue); /* a pool's memory goes back to it */
    CUDA_OK(cudaMemsetAsync(b, 1, 4 * MB, stream));
    CUDA_OK(cudaFreeAsync(b, stream)); /* after the stream's work, and not before */
    CUDA_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    assert_true(used == 5 * MB);
    CUDA_OK(cudaStreamSynchronize(stream));
    CUDA_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    CUDA_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
    assert_true(used == MB && reserved == 2 * MB);
    assert_true(free_bytes() == start - 2 * MB);
    CUDA_OK(cudaMallocFromPoolAsync(&b, MB, pool, stream)); /* from what is kept */
    assert_true(free_bytes() == start - 2 * MB);
    assert_int_equal(cudaMallocFromPoolAsync(&none, start, pool, stream),
                     cudaErrorMemoryAllocation);
    CUDA_OK(cudaFreeAsync(a, stream));
    CUDA_OK(cudaFreeAsync(b, stream));
    CUDA_OK(cudaStreamSynchronize(stream));
    assert_true(free_bytes() == start - 2 * MB);
    CUDA_OK(cudaMemPoolTrimTo(pool, 0));
    assert_true(free_bytes() == start);
    CUDA_OK(cudaStreamDestroy(stream));
    CUDA_OK(cudaMemPoolDestroy(pool));
    (void)cudaGetLastError();
}

static void launches_beyond_the_device_are_refused(void **state)
{
    (void)state;
    nothing<<<1, 1025>>>();
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidConfiguration);
    nothing<<<0, 32>>>();
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidConfiguration);
    nothing<<<dim3(1, 65536), 32>>>();
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidConfiguration);
    nothing<<<1, 32, 50000>>>();
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidValue);
    CUDA_OK(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 50000));
    nothing<<<1, 32, 50000>>>();
    CUDA_OK(cudaGetLastError());
    CUDA_OK(cudaDeviceSynchronize());
}

/* ---- faults: each in a process of its own, which must say what it found and die ---- */

static void check_dies(void (*body)(void), const char *order, const char *says)
{
    int ends[2];
    char text[16384];
    size_t n = 0;
    ssize_t got;
    assert_int_equal(pipe(ends), 0);
    (void)fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        setenv("HYPEROPT_EMULATOR_ORDER", order, 1);
        body();
        (void)cudaDeviceSynchronize();
        exit(0); /* another number where ThreadSanitizer has a report */
    }
    close(ends[1]);
    while (n < sizeof text - 1 && (got = read(ends[0], text + n, sizeof text - 1 - n)) > 0) {
        n += (size_t)got;
    }
    text[n] = 0;
    close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_CONTAINS(text, says);
}

static __global__ void half_waits(void)
{
    if (threadIdx.x < 16) {
        __syncthreads();
    } else {
        __syncwarp();
    }
}

static __global__ void two_barriers(void)
{
    if (threadIdx.x < 16) {
        __syncthreads();
    } else {
        __syncthreads();
    }
}

static __global__ void not_in_its_mask(void)
{
    __syncwarp(0xfffeu);
}

static __global__ void shuffle_meets_vote(void)
{
    if (threadIdx.x == 3) {
        __any_sync(0xffffffffu, 1);
    } else {
        __shfl_sync(0xffffffffu, 1, 0);
    }
}

static void a_kernel_that_would_hang_is_reported(void **state)
{
    (void)state;
    check_dies([] { half_waits<<<1, 32>>>(); }, "0", "kernel half_waits");
    check_dies([] { half_waits<<<1, 32>>>(); }, "0", "the kernel would hang");
    check_dies([] { half_waits<<<1, 32>>>(); }, "0", "in __syncwarp of lanes ffffffff");
    check_dies([] { two_barriers<<<1, 32>>>(); }, "1", "threads meet at different barriers");
    check_dies([] { not_in_its_mask<<<1, 32>>>(); }, "0", "called by lane 0");
    check_dies([] { shuffle_meets_vote<<<1, 32>>>(); }, "7", "__shfl_sync");
}

/* A neighbour's number is read without a barrier: right in one order, wrong in the other. */
static __global__ void reads_too_early(int *wrong)
{
    __shared__ int number[64];
    const int i = (int)threadIdx.x;
    number[i] = i;
    if (i > 0 && number[i - 1] != i - 1) {
        *wrong = 1;
    }
}

static void run_reads_too_early(void)
{
    int *device = NULL, wrong = 0;
    (void)cudaMalloc(&device, sizeof wrong);
    (void)cudaMemset(device, 0, sizeof wrong);
    reads_too_early<<<1, 64>>>(device);
    (void)cudaMemcpy(&wrong, device, sizeof wrong, cudaMemcpyDeviceToHost);
    if (wrong) {
        ho_emu::fault("a number was not there");
    }
}

static void another_order_shows_a_missing_barrier(void **state)
{
    (void)state;
    check_dies(run_reads_too_early, "1", "a number was not there");
    check_dies(run_reads_too_early, "5", "a number was not there");
}

/* ---- what no barrier orders, for ThreadSanitizer ---- */

static __global__ void reads_another_warps(int *sum)
{
    __shared__ int number[64];
    const int i = (int)threadIdx.x;
    number[i] = i;
    __syncwarp();
    if (i == 32) {
        *sum = number[0] + number[32]; /* the other warp's */
    }
}

static __global__ void reads_another_lanes(int *sum)
{
    __shared__ int number[32];
    const int i = (int)threadIdx.x;
    number[i] = i;
    if (__any_sync(0xffffffffu, number[i] > 40) || i == 3) { /* a vote orders no memory */
        *sum = number[4];
    }
}

static __global__ void all_blocks_write(int *sum)
{
    if (threadIdx.x == 0) {
        *sum = (int)blockIdx.x;
    }
    __syncthreads();
}

static __global__ void in_order(int *sum)
{
    __shared__ int number[64], other[64], same;
    const int i = (int)threadIdx.x;
    number[i] = i;
    if (i < 32) {
        same = 7; /* by all lanes of a warp at once */
    }
    __syncthreads();
    other[i] = number[63 - i] + same;
    __syncwarp(i % 32 < 16 ? 0xffffu : 0xffff0000u);
    const int near = other[i ^ 8];
    __syncwarp();
    other[i] = near;
    __syncwarp();
    if (i % 32 == 0) {
        atomicAdd(sum, other[i + 31]);
    }
}

template <typename K> static void run_on_number(K *kernel, unsigned blocks, unsigned threads)
{
    int *number = NULL;
    (void)cudaMalloc(&number, sizeof *number);
    (void)cudaMemset(number, 0, sizeof *number);
    kernel<<<blocks, threads>>>(number);
    (void)cudaDeviceSynchronize();
    (void)cudaFree(number);
}

static void a_race_is_seen(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    const char *says = "ThreadSanitizer: data race";
    check_dies([] { run_on_number(reads_another_warps, 1, 64); }, "0", says);
    check_dies([] { run_on_number(reads_another_warps, 1, 64); }, "1", says);
    check_dies([] { run_on_number(reads_another_lanes, 1, 32); }, "0", says);
    check_dies([] { run_on_number(all_blocks_write, 2, 32); }, "0", says);
    run_on_number(all_blocks_write, 1, 32); /* and what is in order is not */
    run_on_number(in_order, 3, 64);
#else
    (void)reads_another_warps;
    (void)reads_another_lanes;
    (void)all_blocks_write;
    (void)in_order;
    print_message("not built with ThreadSanitizer: skipped\n");
    skip();
#endif
}

static __global__ void write_at(uint8_t *p, size_t at)
{
    p[at] = 1;
}

static __global__ void write_shared_at(int at)
{
    __shared__ int number[10];
    int *to = number; /* UndefinedBehaviorSanitizer knows the array's length, not the pointer's */
    to[at] = 1;
    __syncthreads();
}

static __global__ void write_extra_at(int at)
{
    extern __shared__ char extra[];
    extra[at] = 1;
}

static uint8_t *guarded(void)
{
    uint8_t *p = NULL;
    (void)cudaMalloc(&p, 1024);
    ho_emulator_guard(p + 512, 256);
    return p;
}

static void a_kernel_that_leaves_its_memory_is_seen(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    check_dies([] { write_at<<<1, 1>>>(guarded(), 512); }, "0", "AddressSanitizer");
    check_dies([] { write_at<<<1, 1>>>(guarded(), 1024); }, "0", "AddressSanitizer");
    check_dies([] { write_shared_at<<<1, 64>>>(10); }, "0", "AddressSanitizer");
    check_dies([] { write_extra_at<<<1, 64, 100>>>(104); }, "0", "AddressSanitizer");
    uint8_t *p = guarded();
    write_at<<<1, 1>>>(p, 511); /* and what is allowed is not */
    write_at<<<1, 1>>>(p, 768);
    CUDA_OK(cudaMemset(p, 0, 1024));
    CUDA_OK(cudaDeviceSynchronize());
    CUDA_OK(cudaFree(p));
    write_shared_at<<<1, 64>>>(9);
    write_extra_at<<<1, 64, 100>>>(99);
    CUDA_OK(cudaDeviceSynchronize());
#else
    (void)guarded;
    print_message("not built with AddressSanitizer: skipped\n");
    skip();
#endif
}

static void a_block_has_the_shared_memory_of_its_generation(void **state)
{
    (void)state;
    const char *sm[] = {"75", "80", "90"};
    const size_t kilobytes[] = {64, 163, 227};
    for (int i = 0; i < 3; i++) {
        cudaDeviceProp prop;
        setenv("HYPEROPT_EMULATOR_SM", sm[i], 1);
        assert_int_equal(cudaGetDeviceProperties(&prop, 0), cudaSuccess);
        assert_int_equal(prop.sharedMemPerBlockOptin, kilobytes[i] << 10);
    }
    unsetenv("HYPEROPT_EMULATOR_SM");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_race_is_seen), /* first: ThreadSanitizer forks no process with threads */
        cmocka_unit_test(bfloat16_rounds_to_nearest_ties_to_even),
        cmocka_unit_test(float16_rounds_to_nearest_ties_to_even),
        cmocka_unit_test(shuffles_and_votes_are_cudas),
        cmocka_unit_test(fragments_multiply_as_matrices_do),
        cmocka_unit_test(barriers_join_a_block),
        cmocka_unit_test(an_asynchronous_copy_arrives_at_the_wait_for_it),
        cmocka_unit_test(work_runs_at_the_wait_and_not_before),
        cmocka_unit_test(a_graph_repeats_what_was_captured),
        cmocka_unit_test(memory_is_counted_and_checked),
        cmocka_unit_test(a_pool_keeps_its_threshold_and_no_more),
        cmocka_unit_test(launches_beyond_the_device_are_refused),
        cmocka_unit_test(a_block_has_the_shared_memory_of_its_generation),
        cmocka_unit_test(a_kernel_that_would_hang_is_reported),
        cmocka_unit_test(another_order_shows_a_missing_barrier),
        cmocka_unit_test(a_kernel_that_leaves_its_memory_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
