/* SPDX-License-Identifier: Apache-2.0
 * `patient`: the inner pruner speaks only when the last patience + 1 reports brought no improvement
 * of more than min_delta in any objective. */
#include <math.h>
#include <string.h>

#include "coordinator/search/reports.h"

static ho_status patient_check(const ho_pruner_options *o, ho_err *err)
{
    const ho_pruner_kind *inner = ho_pruner_find(o->inner);

    if (!inner || inner == &ho_prune_patient) {
        return ho_err_set(err, HO_ECONFIG, "pruner.inner: \"%s\" is no pruner that can be inner",
                          o->inner ? o->inner : "");
    }
    if (o->promote) {
        return ho_err_set(err, HO_ECONFIG, "pruner.promote goes with kind = \"asha\" only");
    }
    if (o->patience < 0 || !(o->min_delta >= 0.0)) {
        return ho_err_set(err, HO_ECONFIG, "pruner.patience and pruner.min_delta: not negative");
    }
    return inner->check ? inner->check(o, err) : HO_OK;
}

/* Smallest loss m over reports [begin, end), NaN ignored; INFINITY when there is none. */
static double least(const ho_reports *r, const ho_reported *own, int m, int64_t begin, int64_t end)
{
    double low = INFINITY;

    for (int64_t i = begin; i < end; i++) {
        low = fmin(low, ho_reports_loss(r, own, i)[m]);
    }
    return low;
}

static void patient_decide(ho_reports *r, ho_reported *own, ho_decision *out)
{
    const ho_pruner_options *o = &r->options;
    int64_t recent = own->count - o->patience - 1;
    bool improved = recent < 1;

    for (int m = 0; m < o->objectives && !improved; m++) {
        improved =
            least(r, own, m, recent, own->count) < least(r, own, m, 0, recent) - o->min_delta;
    }
    if (improved) {
        ho_decision_add(out, "patient: %s in the last %lld reports",
                        recent < 1 ? "not yet enough reports" : "improved",
                        (long long)o->patience + 1);
        return;
    }
    ho_decision_add(out, "patient: no gain in %lld reports; ", (long long)o->patience + 1);
    ho_pruner_find(o->inner)->decide(r, own, out);
}

const ho_pruner_kind ho_prune_patient = {
    .name = "patient",
    .help = "lets another pruner speak only after some reports without a gain",
    .check = patient_check,
    .decide = patient_decide,
};
