/* SPDX-License-Identifier: Apache-2.0
 * Small search spaces made by hand, for tests of the search. */
#ifndef HO_TESTS_SEARCH_SPACES_H
#define HO_TESTS_SEARCH_SPACES_H

#include <stdio.h>

#include "study/space.h"

static inline ho_param spaces_float(const char *name, double low, double high)
{
    ho_param p = {.kind = HO_PARAM_FLOAT, .low = low, .high = high, .key = -1};

    snprintf(p.name, sizeof p.name, "%s", name);
    return p;
}

static inline ho_param spaces_int(const char *name, double low, double high)
{
    ho_param p = spaces_float(name, low, high);

    p.kind = HO_PARAM_INT;
    p.step = 1.0;
    return p;
}

static inline ho_param spaces_choice(const char *name, ho_choice *choice, int count)
{
    ho_param p = spaces_float(name, 0.0, 0.0);

    p.kind = HO_PARAM_CHOICE;
    p.choice = choice;
    p.choice_count = count;
    return p;
}

static inline void spaces_when(ho_param *p, int parent, uint64_t mask)
{
    p->when[p->when_count].param = parent;
    p->when[p->when_count++].mask = mask;
}

#endif
