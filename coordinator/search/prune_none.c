/* SPDX-License-Identifier: Apache-2.0
 * `none`: every trial runs to its end. */
#include "coordinator/search/reports.h"

static void none_decide(ho_reports *reports, ho_reported *own, ho_decision *out)
{
    (void)reports;
    (void)own;
    ho_decision_add(out, "none: trials run to their end");
}

const ho_pruner_kind ho_prune_none = {
    .name = "none",
    .help = "every trial runs to its end",
    .decide = none_decide,
};
