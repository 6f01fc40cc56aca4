/* SPDX-License-Identifier: Apache-2.0
 * CUDA's vector types with CUDA's sizes and alignments, and their make_ functions. */
#ifndef HO_EMULATOR_TYPES_H
#define HO_EMULATOR_TYPES_H

#define HO_EMULATOR_VECTORS(T, name, align2, align4)                                               \
    struct name##1                                                                                 \
    {                                                                                              \
        T x;                                                                                       \
    };                                                                                             \
    struct alignas(align2) name##2                                                                 \
    {                                                                                              \
        T x, y;                                                                                    \
    };                                                                                             \
    struct name##3                                                                                 \
    {                                                                                              \
        T x, y, z;                                                                                 \
    };                                                                                             \
    struct alignas(align4) name##4                                                                 \
    {                                                                                              \
        T x, y, z, w;                                                                              \
    };                                                                                             \
    static inline name##2 make_##name##2(T x, T y)                                                 \
    {                                                                                              \
        return {x, y};                                                                             \
    }                                                                                              \
    static inline name##3 make_##name##3(T x, T y, T z)                                            \
    {                                                                                              \
        return {x, y, z};                                                                          \
    }                                                                                              \
    static inline name##4 make_##name##4(T x, T y, T z, T w)                                       \
    {                                                                                              \
        return {x, y, z, w};                                                                       \
    }

HO_EMULATOR_VECTORS(signed char, char, 2, 4)
HO_EMULATOR_VECTORS(unsigned char, uchar, 2, 4)
HO_EMULATOR_VECTORS(short, short, 4, 8)
HO_EMULATOR_VECTORS(unsigned short, ushort, 4, 8)
HO_EMULATOR_VECTORS(int, int, 8, 16)
HO_EMULATOR_VECTORS(unsigned, uint, 8, 16)
HO_EMULATOR_VECTORS(long long, longlong, 16, 16)
HO_EMULATOR_VECTORS(unsigned long long, ulonglong, 16, 16)
HO_EMULATOR_VECTORS(float, float, 8, 16)
HO_EMULATOR_VECTORS(double, double, 16, 16)
#undef HO_EMULATOR_VECTORS

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1) : x(vx), y(vy), z(vz)
    {
    }
};

#endif
