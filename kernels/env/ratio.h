/* SPDX-License-Identifier: Apache-2.0
 * Quotients to be made: what needs several says what of, so that a GPU can divide for all at once,
 * a thread each. */
#ifndef HO_KERNELS_ENV_RATIO_H
#define HO_KERNELS_ENV_RATIO_H

#include "kernels/env/reward.h"
#include "kernels/hd.h"

#define HO_NO_LIMIT 1e300

typedef struct ho_ratio {
    double num, den;
} ho_ratio;

static inline HO_HD ho_ratio ho_ratio_of(double num, double den)
{
    ho_ratio r;
    r.num = num;
    r.den = den;
    return r;
}

/* A column of the state: clip(num / den, -limit, limit). */
static inline HO_HD float ho_ratio_value(const ho_ratio *r, double limit)
{
    return (float)ho_clip(ho_quotient(r->num, r->den), -limit, limit);
}

#endif
