/* SPDX-License-Identifier: Apache-2.0
 * Cuts one allocation into aligned parts. With a NULL base it only measures, so that one function
 * both sizes a block and lays it out. */
#ifndef HO_KERNELS_CPU_CARVE_H
#define HO_KERNELS_CPU_CARVE_H

#include <stddef.h>

enum { HO_CARVE_ALIGN = 64 };

typedef struct ho_carve {
    char *base; /* NULL: measure */
    size_t used;
} ho_carve;

/* The next `count` items of `size` bytes; NULL while measuring. */
static inline void *ho_carve_take(ho_carve *c, size_t count, size_t size)
{
    char *at = c->base ? c->base + c->used : (char *)0;
    c->used += (count * size + HO_CARVE_ALIGN - 1) / HO_CARVE_ALIGN * HO_CARVE_ALIGN;
    return at;
}

#endif
