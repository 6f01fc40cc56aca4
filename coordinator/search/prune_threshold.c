/* SPDX-License-Identifier: Apache-2.0
 * `threshold`: a trial stops when the first objective is undefined or outside [lower, upper]. */
#include <math.h>

#include "coordinator/search/reports.h"

static ho_status threshold_check(const ho_pruner_options *o, ho_err *err)
{
    if (!(o->lower <= o->upper)) {
        return ho_err_set(err, HO_ECONFIG, "pruner.lower %g is above pruner.upper %g", o->lower,
                          o->upper);
    }
    if (isinf(o->lower) && isinf(o->upper)) {
        return ho_err_set(err, HO_ECONFIG,
                          "pruner.kind = \"threshold\" needs pruner.lower or pruner.upper");
    }
    return HO_OK;
}

static void threshold_decide(ho_reports *r, ho_reported *own, ho_decision *out)
{
    const ho_pruner_options *o = &r->options;
    int64_t last = own->count - 1;
    double value = -o->direction[0] * *ho_reports_loss(r, own, last);

    if (own->step[last] < o->min_epochs) {
        ho_decision_add(out, "threshold: speaks from epoch %lld on", (long long)o->min_epochs);
        return;
    }
    out->compared = true;
    out->score = value;
    out->threshold = value > o->upper ? o->upper : o->lower;
    if (!(value >= o->lower && value <= o->upper)) {
        out->verdict = HO_VERDICT_PRUNE;
    }
    ho_decision_add(out, "threshold: %.6g, legal are %.6g to %.6g: %s", value, o->lower, o->upper,
                    out->verdict == HO_VERDICT_PRUNE ? "pruned" : "goes on");
}

const ho_pruner_kind ho_prune_threshold = {
    .name = "threshold",
    .help = "stops what leaves a fixed range",
    .check = threshold_check,
    .decide = threshold_decide,
};
