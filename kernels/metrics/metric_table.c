/* SPDX-License-Identifier: Apache-2.0
 * The metric table as arrays, and look-ups in it. */
#include "kernels/metrics/metric_table.h"

#include <string.h>

typedef struct row {
    const char *name;
    int direction;
    const char *unit, *convention;
} row;

static const row table[HO_METRIC_COUNT] = {
#define ROW(id, name, direction, unit, convention) {name, direction, unit, convention},
    HO_METRIC_MAP(ROW)
#undef ROW
};

static const char *const reason_name[] = {
#define REASON(id, name) name,
    HO_METRIC_REASON_MAP(REASON)
#undef REASON
};

const char *ho_metric_name(ho_metric metric)
{
    return table[metric].name;
}

int ho_metric_direction(ho_metric metric)
{
    return table[metric].direction;
}

const char *ho_metric_unit(ho_metric metric)
{
    return table[metric].unit;
}

const char *ho_metric_convention(ho_metric metric)
{
    return table[metric].convention;
}

int ho_metric_find(const char *name)
{
    for (int i = 0; i < HO_METRIC_COUNT; i++) {
        if (strcmp(table[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

const char *ho_metric_reason_name(unsigned char reason)
{
    return reason < sizeof reason_name / sizeof reason_name[0] ? reason_name[reason] : "unknown";
}
