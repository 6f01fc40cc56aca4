/* SPDX-License-Identifier: Apache-2.0
 * The final retest: the best trials run again with fresh seeds, so that the luck in being the best
 * of many shows (study.final_retest). A retest is a trial of its own number, whose keys are
 * therefore new; the sampler never hears of it. Contracts: dispatch_internal.h. */
#include "coordinator/dispatch_internal.h"

#include <math.h>

/* Whether trial a is better than trial b, both complete: feasible first, then the objective. */
static bool better(const ho_dispatch *d, int64_t a, int64_t b)
{
    const ho_slot *x = &d->slot[a], *y = &d->slot[b];
    double u = isnan(x->violation) ? 0.0 : x->violation,
           v = isnan(y->violation) ? 0.0 : y->violation;
    if (u != v) {
        return u < v;
    }
    double gain = (x->value[0] - y->value[0]) * d->config.direction[0];
    return gain > 0.0 || (gain == 0.0 && a < b);
}

/* The best trial behind `after` in the ranking (-1: the very best); -1: none. */
static int64_t next_best(const ho_dispatch *d, int64_t after)
{
    int64_t best = -1;
    for (int64_t i = 0; i < d->proposed; i++) {
        const ho_slot *slot = &d->slot[i];
        if (slot->ask < 0 || slot->state != HO_TRIAL_COMPLETE || isnan(slot->value[0]) ||
            !slot->fits) {
            continue;
        }
        if ((after < 0 || better(d, after, i)) && i != after && (best < 0 || better(d, i, best))) {
            best = i;
        }
    }
    return best;
}

static int64_t retests_of(const ho_dispatch *d, int64_t parent)
{
    int64_t n = 0;
    for (int64_t i = 0; i < d->proposed; i++) {
        n += d->slot[i].parent == parent;
    }
    return n;
}

static ho_status retest(ho_dispatch *d, int64_t parent, ho_err *err)
{
    ho_slot *slot = NULL;
    int64_t number = d->proposed;
    ho_status rc = ho_dispatch_add(d, d->slot[parent].config, parent, &slot, err);
    if (rc != HO_OK) {
        return rc;
    }
    ho_trial_new row = {
        .number = number,
        .parent = parent,
        .asked_after = d->told,
        .now_ns = d->io.unix_ns(d->io.user),
        .source = HO_SOURCE_RETEST,
        .seeds = slot->seeds,
        .bracket = -1,
        .config = slot->config,
        .why = "final retest: one of the best, with fresh seeds",
    };
    d->waiting++;
    return ho_store_put_trial(d->store, d->space, &row);
}

ho_status ho_dispatch_retest(ho_dispatch *d, bool *any, ho_err *err)
{
    ho_status rc = HO_OK;
    int64_t best = -1;
    *any = false;
    for (int64_t k = 0; k < d->config.retest && rc == HO_OK; k++) {
        if ((best = next_best(d, best)) < 0) {
            break;
        }
        for (int64_t n = retests_of(d, best); n < d->config.retest_times && rc == HO_OK; n++) {
            rc = retest(d, best, err);
            *any = true;
        }
    }
    return rc;
}
