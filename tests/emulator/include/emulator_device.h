/* SPDX-License-Identifier: Apache-2.0
 * What device code finds without a header: qualifiers, built-in variables, functions. Included by
 * cuda_runtime.h. Warp functions meet the other lanes through emulator.h; arithmetic with a
 * rounding in its name rounds so; everything else is the host's libm. */
#ifndef HO_EMULATOR_DEVICE_H
#define HO_EMULATOR_DEVICE_H

#include <assert.h>
#include <math.h>
#include <string.h>
#include <type_traits>

#include "emulator.h"

/* ---- qualifiers; __shared__ and <<<>>> are rewrite.py's ---- */

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __noinline__    __attribute__((noinline))
#define __restrict__ __restrict
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

#define threadIdx (*ho_emu::running_thread)
#define blockIdx  ho_emu::block_index
#define blockDim  ho_emu::block_dim
#define gridDim   ho_emu::grid_dim
static const int warpSize = 32;

/* ---- barriers ---- */

#define __syncthreads()        (void)ho_emu::barrier(ho_emu::BARRIER, 0, __FILE__, __LINE__)
#define __syncthreads_or(x)    ho_emu::barrier(ho_emu::BARRIER_OR, (x) != 0, __FILE__, __LINE__)
#define __syncthreads_and(x)   ho_emu::barrier(ho_emu::BARRIER_AND, (x) != 0, __FILE__, __LINE__)
#define __syncthreads_count(x) ho_emu::barrier(ho_emu::BARRIER_COUNT, (x) != 0, __FILE__, __LINE__)

static inline void __syncwarp(uint32_t mask = 0xffffffffu)
{
    char nothing;
    ho_emu::join(
        mask, "__syncwarp", &nothing, [](void *const[32]) {}, true);
}

static inline void __threadfence_block(void)
{
}

static inline void __threadfence(void)
{
}

static inline void __threadfence_system(void)
{
}

/* ---- shuffles ---- */

namespace ho_emu
{
template <typename T> struct shuffled {
    T value, result;
    int from; /* lane */
};

/* A lane that takes no part gives bytes of 0xff: its value is undefined on a device. */
template <typename T> static inline T shuffle(uint32_t mask, const char *what, T value, int from)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a shuffle moves 4 or 8 bytes");
    shuffled<T> mine = {value, value, from};
    join(mask, what, &mine, [](void *const lane[32]) {
        for (int i = 0; i < 32; i++) {
            if (lane[i]) {
                shuffled<T> *to = (shuffled<T> *)lane[i];
                const shuffled<T> *source = (const shuffled<T> *)lane[to->from];
                if (source) {
                    to->result = source->value;
                } else {
                    memset(&to->result, 0xff, sizeof to->result);
                }
            }
        }
    });
    return mine.result;
}
} // namespace ho_emu

template <typename T>
static inline T __shfl_sync(uint32_t mask, T value, int source, int width = 32)
{
    const int first = (int)ho_emu::lane() / width * width;
    return ho_emu::shuffle(mask, "__shfl_sync", value, first + (source & (width - 1)));
}

template <typename T>
static inline T __shfl_xor_sync(uint32_t mask, T value, int bits, int width = 32)
{
    const int l = (int)ho_emu::lane(), from = l ^ bits;
    const int end = l / width * width + width;
    return ho_emu::shuffle(mask, "__shfl_xor_sync", value, from < end ? from : l);
}

template <typename T>
static inline T __shfl_up_sync(uint32_t mask, T value, unsigned delta, int width = 32)
{
    const int l = (int)ho_emu::lane(), from = l - (int)delta;
    return ho_emu::shuffle(mask, "__shfl_up_sync", value, from >= l / width * width ? from : l);
}

template <typename T>
static inline T __shfl_down_sync(uint32_t mask, T value, unsigned delta, int width = 32)
{
    const int l = (int)ho_emu::lane(), from = l + (int)delta;
    return ho_emu::shuffle(mask, "__shfl_down_sync", value,
                           from < l / width * width + width ? from : l);
}

/* ---- votes and reductions ---- */

static inline unsigned __ballot_sync(uint32_t mask, int predicate)
{
    struct vote {
        int mine;
        unsigned all;
    } v = {predicate != 0, 0};
    ho_emu::join(mask, "a vote", &v, [](void *const lane[32]) {
        unsigned all = 0;
        for (int i = 0; i < 32; i++) {
            all |= lane[i] && ((const vote *)lane[i])->mine ? 1u << i : 0u;
        }
        for (int i = 0; i < 32; i++) {
            if (lane[i]) {
                ((vote *)lane[i])->all = all;
            }
        }
    });
    return v.all;
}

static inline int __any_sync(uint32_t mask, int predicate)
{
    return __ballot_sync(mask, predicate) != 0;
}

static inline int __all_sync(uint32_t mask, int predicate)
{
    return __ballot_sync(mask, !predicate) == 0;
}

template <typename T> static inline unsigned __match_any_sync(uint32_t mask, T value)
{
    struct match {
        T value;
        unsigned same;
    } m = {value, 0};
    ho_emu::join(mask, "__match_any_sync", &m, [](void *const lane[32]) {
        for (int i = 0; i < 32; i++) {
            for (int j = 0; lane[i] && j < 32; j++) {
                match *a = (match *)lane[i];
                const match *b = (const match *)lane[j];
                a->same |= b && memcmp(&a->value, &b->value, sizeof(T)) == 0 ? 1u << j : 0u;
            }
        }
    });
    return m.same;
}

namespace ho_emu
{
template <typename T, typename F>
static inline T reduce(uint32_t mask, const char *what, T value, F)
{
    struct part {
        T value, all;
    } p = {value, value};
    join(mask, what, &p, [](void *const lane[32]) {
        bool any = false;
        T all = T();
        for (int i = 0; i < 32; i++) {
            if (lane[i]) {
                const T x = ((const part *)lane[i])->value;
                all = any ? F::of(all, x) : x;
                any = true;
            }
        }
        for (int i = 0; i < 32; i++) {
            if (lane[i]) {
                ((part *)lane[i])->all = all;
            }
        }
    });
    return p.all;
}
} // namespace ho_emu

#define HO_EMULATOR_REDUCE(name, expression)                                                       \
    template <typename T> static inline T __reduce_##name##_sync(uint32_t mask, T value)           \
    {                                                                                              \
        struct operation {                                                                         \
            static T of(T a, T b)                                                                  \
            {                                                                                      \
                return (T)(expression);                                                            \
            }                                                                                      \
        };                                                                                         \
        return ho_emu::reduce(mask, "__reduce_" #name "_sync", value, operation());                \
    }
HO_EMULATOR_REDUCE(add, a + b)
HO_EMULATOR_REDUCE(min, a < b ? a : b)
HO_EMULATOR_REDUCE(max, a > b ? a : b)
HO_EMULATOR_REDUCE(and, a &b)
HO_EMULATOR_REDUCE(or, a | b)
HO_EMULATOR_REDUCE(xor, a ^ b)
#undef HO_EMULATOR_REDUCE

/* ---- atomics: no other thread runs between a read and its write ---- */

#define HO_EMULATOR_ATOMIC(name, expression)                                                       \
    template <typename T> static inline T name(T *p, std::common_type_t<T> x)                      \
    {                                                                                              \
        T old;                                                                                     \
        __atomic_load(p, &old, __ATOMIC_RELAXED);                                                  \
        T now = (T)(expression);                                                                   \
        __atomic_store(p, &now, __ATOMIC_RELAXED);                                                 \
        return old;                                                                                \
    }
HO_EMULATOR_ATOMIC(atomicAdd, old + x)
HO_EMULATOR_ATOMIC(atomicSub, old - x)
HO_EMULATOR_ATOMIC(atomicExch, x)
HO_EMULATOR_ATOMIC(atomicMin, x < old ? x : old)
HO_EMULATOR_ATOMIC(atomicMax, x > old ? x : old)
HO_EMULATOR_ATOMIC(atomicAnd, old &x)
HO_EMULATOR_ATOMIC(atomicOr, old | x)
HO_EMULATOR_ATOMIC(atomicXor, old ^ x)
HO_EMULATOR_ATOMIC(atomicInc, old >= x ? 0 : old + 1)
HO_EMULATOR_ATOMIC(atomicDec, old == 0 || old > x ? x : old - 1)
#undef HO_EMULATOR_ATOMIC

template <typename T>
static inline T atomicCAS(T *p, std::common_type_t<T> expected, std::common_type_t<T> x)
{
    T old, now = x;
    __atomic_load(p, &old, __ATOMIC_RELAXED);
    if (old == expected) {
        __atomic_store(p, &now, __ATOMIC_RELAXED);
    }
    return old;
}

/* ---- loads and stores with a cache hint ---- */

#define HO_EMULATOR_LOAD(name)                                                                     \
    template <typename T> static inline T name(const T *p)                                         \
    {                                                                                              \
        return *p;                                                                                 \
    }
HO_EMULATOR_LOAD(__ldg)
HO_EMULATOR_LOAD(__ldca)
HO_EMULATOR_LOAD(__ldcg)
HO_EMULATOR_LOAD(__ldcs)
HO_EMULATOR_LOAD(__ldlu)
#undef HO_EMULATOR_LOAD

#define HO_EMULATOR_STORE(name)                                                                    \
    template <typename T> static inline void name(T *p, std::common_type_t<T> x)                   \
    {                                                                                              \
        *p = x;                                                                                    \
    }
HO_EMULATOR_STORE(__stwb)
HO_EMULATOR_STORE(__stcg)
HO_EMULATOR_STORE(__stcs)
HO_EMULATOR_STORE(__stwt)
#undef HO_EMULATOR_STORE

static inline size_t __cvta_generic_to_shared(const void *p)
{
    return ho_emu::shared_address(p);
}

/* ---- bits ---- */

namespace ho_emu
{
template <typename To, typename From> static inline To bits_as(From from)
{
    static_assert(sizeof(To) == sizeof(From), "the same bits in another type");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
} // namespace ho_emu

#define HO_EMULATOR_BITS(name, from, to)                                                           \
    static inline to name(from x)                                                                  \
    {                                                                                              \
        return ho_emu::bits_as<to>(x);                                                             \
    }
HO_EMULATOR_BITS(__float_as_uint, float, unsigned)
HO_EMULATOR_BITS(__float_as_int, float, int)
HO_EMULATOR_BITS(__uint_as_float, unsigned, float)
HO_EMULATOR_BITS(__int_as_float, int, float)
HO_EMULATOR_BITS(__double_as_longlong, double, long long)
HO_EMULATOR_BITS(__longlong_as_double, long long, double)
#undef HO_EMULATOR_BITS

static inline double __hiloint2double(int high, int low)
{
    return ho_emu::bits_as<double>((uint64_t)(uint32_t)high << 32 | (uint32_t)low);
}

static inline int __double2hiint(double x)
{
    return (int)(uint32_t)(ho_emu::bits_as<uint64_t>(x) >> 32);
}

static inline int __double2loint(double x)
{
    return (int)(uint32_t)ho_emu::bits_as<uint64_t>(x);
}

static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}

static inline int __popcll(unsigned long long x)
{
    return __builtin_popcountll(x);
}

static inline int __clz(int x)
{
    return x ? __builtin_clz((unsigned)x) : 32;
}

static inline int __clzll(long long x)
{
    return x ? __builtin_clzll((unsigned long long)x) : 64;
}

static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}

static inline int __ffsll(long long x)
{
    return __builtin_ffsll(x);
}

static inline unsigned __brev(unsigned x)
{
    unsigned r = 0;
    for (int i = 0; i < 32; i++) {
        r |= (x >> i & 1u) << (31 - i);
    }
    return r;
}

static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((unsigned long long)a * b >> 32);
}

static inline int __mulhi(int a, int b)
{
    return (int)((long long)a * b >> 32);
}

__extension__ typedef unsigned __int128 ho_emulator_u128;

static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((ho_emulator_u128)a * b >> 64);
}

/* ---- arithmetic ---- */

/* min and max of any two numbers, as CUDA's overloads have them; NaN loses, as on a device. */
template <typename A, typename B> static inline std::common_type_t<A, B> min(A a, B b)
{
    typedef std::common_type_t<A, B> T;
    const T x = (T)a, y = (T)b;
    return y < x || x != x ? y : x;
}

template <typename A, typename B> static inline std::common_type_t<A, B> max(A a, B b)
{
    typedef std::common_type_t<A, B> T;
    const T x = (T)a, y = (T)b;
    return y > x || x != x ? y : x;
}

#define HO_EMULATOR_BINARY(T, name, expression)                                                    \
    static inline T name(T a, T b)                                                                 \
    {                                                                                              \
        return expression;                                                                         \
    }
HO_EMULATOR_BINARY(float, __fadd_rn, a + b)
HO_EMULATOR_BINARY(float, __fsub_rn, a - b)
HO_EMULATOR_BINARY(float, __fmul_rn, a *b)
HO_EMULATOR_BINARY(float, __fdiv_rn, a / b)
HO_EMULATOR_BINARY(double, __dadd_rn, a + b)
HO_EMULATOR_BINARY(double, __dsub_rn, a - b)
HO_EMULATOR_BINARY(double, __dmul_rn, a *b)
HO_EMULATOR_BINARY(double, __ddiv_rn, a / b)
HO_EMULATOR_BINARY(float, __fdividef, a / b)
#undef HO_EMULATOR_BINARY

#define HO_EMULATOR_UNARY(T, name, expression)                                                     \
    static inline T name(T x)                                                                      \
    {                                                                                              \
        return expression;                                                                         \
    }
HO_EMULATOR_UNARY(float, __frcp_rn, 1.0f / x)
HO_EMULATOR_UNARY(float, __fsqrt_rn, sqrtf(x))
HO_EMULATOR_UNARY(double, __drcp_rn, 1.0 / x)
HO_EMULATOR_UNARY(double, __dsqrt_rn, sqrt(x))
HO_EMULATOR_UNARY(float, rsqrtf, 1.0f / sqrtf(x))
HO_EMULATOR_UNARY(double, rsqrt, 1.0 / sqrt(x))
HO_EMULATOR_UNARY(float, __frsqrt_rn, (float)(1.0 / sqrt((double)x)))
HO_EMULATOR_UNARY(float, __saturatef, x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f)
#undef HO_EMULATOR_UNARY

static inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}

static inline double __fma_rn(double a, double b, double c)
{
    return fma(a, b, c);
}

/* The fast forms; macros, since glibc has functions of these names. */
#define __expf(x)          expf(x)
#define __exp10f(x)        powf(10.0f, x)
#define __logf(x)          logf(x)
#define __log2f(x)         log2f(x)
#define __log10f(x)        log10f(x)
#define __sinf(x)          sinf(x)
#define __cosf(x)          cosf(x)
#define __tanf(x)          tanf(x)
#define __powf(x, y)       powf(x, y)
#define __sincosf(x, s, c) ((void)(*(s) = sinf(x), *(c) = cosf(x)))

static inline void sincospif(float x, float *s, float *c)
{
    *s = (float)sin(M_PI * (double)x);
    *c = (float)cos(M_PI * (double)x);
}

static inline void sincospi(double x, double *s, double *c)
{
    *s = sin(M_PI * x);
    *c = cos(M_PI * x);
}

/* Conversions clamp to the type's range; NaN becomes 0. */
#define HO_EMULATOR_CONVERT(name, from, to, round, low, high)                                      \
    static inline to name(from x)                                                                  \
    {                                                                                              \
        const from r = round(x);                                                                   \
        return r != r ? 0 : r <= (from)(low) ? (to)(low) : r >= (from)(high) ? (to)(high) : (to)r; \
    }
HO_EMULATOR_CONVERT(__float2int_rn, float, int, nearbyintf, INT32_MIN, INT32_MAX)
HO_EMULATOR_CONVERT(__float2int_rz, float, int, truncf, INT32_MIN, INT32_MAX)
HO_EMULATOR_CONVERT(__float2int_rd, float, int, floorf, INT32_MIN, INT32_MAX)
HO_EMULATOR_CONVERT(__float2int_ru, float, int, ceilf, INT32_MIN, INT32_MAX)
HO_EMULATOR_CONVERT(__float2uint_rn, float, unsigned, nearbyintf, 0, UINT32_MAX)
HO_EMULATOR_CONVERT(__float2uint_rz, float, unsigned, truncf, 0, UINT32_MAX)
HO_EMULATOR_CONVERT(__double2int_rn, double, int, nearbyint, INT32_MIN, INT32_MAX)
HO_EMULATOR_CONVERT(__double2int_rz, double, int, trunc, INT32_MIN, INT32_MAX)
HO_EMULATOR_CONVERT(__double2ll_rn, double, long long, nearbyint, INT64_MIN, INT64_MAX)
HO_EMULATOR_CONVERT(__double2ll_rz, double, long long, trunc, INT64_MIN, INT64_MAX)
#undef HO_EMULATOR_CONVERT

static inline float __int2float_rn(int x)
{
    return (float)x;
}

static inline float __uint2float_rn(unsigned x)
{
    return (float)x;
}

static inline double __ll2double_rn(long long x)
{
    return (double)x;
}

static inline float __double2float_rn(double x)
{
    return (float)x;
}

[[noreturn]] static inline void __trap(void)
{
    ho_emu::fault("__trap()");
}

#endif
