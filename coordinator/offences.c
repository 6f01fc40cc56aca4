/* SPDX-License-Identifier: Apache-2.0
 * See offences.h. */
#include "coordinator/offences.h"

#include <stdio.h>
#include <string.h>

static const int64_t second_ns = 1000000000;

/* Its place, or -1. */
static int find(const ho_offences *o, const char *address, int64_t now_ns)
{
    for (int i = 0; i < HO_OFFENDERS_MAX; i++) {
        if (o->offender[i].address[0] && strcmp(o->offender[i].address, address) == 0 &&
            now_ns - o->offender[i].at_ns < HO_OFFENDER_S * second_ns) {
            return i;
        }
    }
    return -1;
}

void ho_offences_refuse(ho_offences *o, const char *address, int64_t now_ns)
{
    int at = find(o, address, now_ns);
    if (!address[0]) {
        return;
    }
    for (int i = 0; at < 0 && i < HO_OFFENDERS_MAX; i++) {
        if (!o->offender[i].address[0]) {
            at = i;
        }
    }
    if (at < 0) {
        at = 0;
        for (int i = 1; i < HO_OFFENDERS_MAX; i++) {
            at = o->offender[i].at_ns < o->offender[at].at_ns ? i : at;
        }
    }
    (void)snprintf(o->offender[at].address, sizeof o->offender[at].address, "%s", address);
    o->offender[at].at_ns = now_ns;
}

bool ho_offences_known(ho_offences *o, const char *address, int64_t now_ns)
{
    int at = find(o, address, now_ns);
    if (at >= 0) {
        o->offender[at].at_ns = now_ns;
    }
    return at >= 0;
}

bool ho_offences_may_log(ho_offences *o, int64_t now_ns, int64_t *unlogged)
{
    if (!o->counting) {
        o->counting = true;
        o->lines = HO_OFFENCE_LINES;
        o->since_ns = now_ns;
    }
    int64_t more = (now_ns - o->since_ns) / (HO_OFFENCE_LINE_S * second_ns);
    if (more > 0) {
        o->lines = more < HO_OFFENCE_LINES - o->lines ? o->lines + (int)more : HO_OFFENCE_LINES;
        o->since_ns += more * HO_OFFENCE_LINE_S * second_ns;
    }
    *unlogged = o->unlogged;
    if (o->lines == 0) {
        o->unlogged++;
        return false;
    }
    o->lines--;
    o->unlogged = 0;
    return true;
}
