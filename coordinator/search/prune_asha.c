/* SPDX-License-Identifier: Apache-2.0
 * `asha`: asynchronous successive halving over all trials. Stopping by default; with promote = true
 * a trial that is not in the best 1/eta is paused with a checkpoint and may be promoted later. */
#include "coordinator/search/rungs.h"

static ho_status asha_check(const ho_pruner_options *o, ho_err *err)
{
    if (o->reduction < 2) {
        return ho_err_set(err, HO_ECONFIG, "pruner.reduction: at least 2, not %d", o->reduction);
    }
    return HO_OK;
}

static ho_rungs asha_rungs(const ho_pruner_options *o)
{
    ho_rungs rungs = {.name = "asha",
                      .first = o->min_epochs,
                      .eta = o->reduction,
                      .end = o->max_epochs,
                      .bracket = -1};

    return rungs;
}

static void asha_decide(ho_reports *reports, ho_reported *own, ho_decision *out)
{
    ho_rungs rungs = asha_rungs(&reports->options);

    ho_rungs_decide(reports, own, &rungs, out);
}

static ho_status asha_promote(ho_reports *reports, int64_t *number, ho_decision *out, ho_err *err)
{
    ho_rungs rungs = asha_rungs(&reports->options);

    if (!reports->options.promote) {
        return ho_err_set(err, HO_EDONE, "asha: promote is off, nothing is paused");
    }
    return ho_rungs_promote(reports, &rungs, number, out, err);
}

const ho_pruner_kind ho_prune_asha = {
    .name = "asha",
    .help = "asynchronous successive halving: one in `reduction` goes on at each rung",
    .check = asha_check,
    .decide = asha_decide,
    .promote = asha_promote,
};
