/* SPDX-License-Identifier: Apache-2.0
 * `hyperband` (Li et al., JMLR 2018), asynchronous: trials are dealt to brackets whose first rung
 * lies eta times further each, so that a slow starter has somewhere to survive. The last bracket
 * prunes nothing. */
#include "coordinator/search/rungs.h"

static ho_status hyperband_check(const ho_pruner_options *o, ho_err *err)
{
    if (o->reduction < 2) {
        return ho_err_set(err, HO_ECONFIG, "pruner.reduction: at least 2, not %d", o->reduction);
    }
    if (o->max_epochs < o->min_epochs) {
        return ho_err_set(err, HO_ECONFIG,
                          "pruner.min_epochs: %lld is more than the %lld epochs of a trial",
                          (long long)o->min_epochs, (long long)o->max_epochs);
    }
    if (o->promote) {
        return ho_err_set(err, HO_ECONFIG, "pruner.promote goes with kind = \"asha\" only");
    }
    return HO_OK;
}

static void hyperband_decide(ho_reports *reports, ho_reported *own, ho_decision *out)
{
    const ho_pruner_options *o = &reports->options;
    ho_rungs rungs = {
        .name = "hyperband", .first = o->min_epochs, .eta = o->reduction, .end = o->max_epochs};

    rungs.brackets = ho_rungs_brackets(o->min_epochs, o->max_epochs, o->reduction);
    rungs.bracket = ho_rungs_bracket(o->seed, own->number, rungs.brackets, rungs.eta);
    for (int b = 0; b < rungs.bracket; b++) {
        rungs.first *= rungs.eta;
    }
    ho_rungs_decide(reports, own, &rungs, out);
}

const ho_pruner_kind ho_prune_hyperband = {
    .name = "hyperband",
    .help = "successive halving in brackets that start later and prune less",
    .check = hyperband_check,
    .decide = hyperband_decide,
};
