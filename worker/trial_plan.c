/* SPDX-License-Identifier: Apache-2.0
 * Allocation and lane arithmetic of a trial plan. */
#include "worker/trial_plan.h"

#include <stdlib.h>

ho_status ho_trial_plan_create(ho_trial_plan **out, int folds, int agent_folds, int seeds,
                               ho_err *err)
{
    *out = NULL;
    if (folds < 1 || seeds < 1 || (agent_folds != folds && agent_folds != 1)) {
        return ho_err_set(err, HO_EINVAL, "a trial of %d folds, %d agents' folds and %d seeds",
                          folds, agent_folds, seeds);
    }
    ho_trial_plan *plan = calloc(1, sizeof *plan);
    if (!plan) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for a trial's plan");
    }
    size_t lanes = (size_t)agent_folds * (size_t)seeds;
    plan->folds = folds;
    plan->agent_folds = agent_folds;
    plan->seeds = seeds;
    plan->lanes = (int32_t)lanes;
    plan->lane = calloc(lanes, sizeof *plan->lane);
    plan->validation = calloc((size_t)agent_folds, sizeof *plan->validation);
    plan->test = calloc((size_t)folds, sizeof *plan->test);
    plan->fold = calloc((size_t)folds, sizeof *plan->fold);
    if (!plan->lane || !plan->validation || !plan->test || !plan->fold) {
        ho_trial_plan_destroy(&plan);
        return ho_err_set(err, HO_ENOMEM, "out of memory for a trial of %zu lanes", lanes);
    }
    plan->study_folds = folds;
    for (int f = 0; f < folds; f++) {
        plan->fold[f] = f;
    }
    *out = plan;
    return HO_OK;
}

void ho_trial_plan_destroy(ho_trial_plan **plan)
{
    if (!plan || !*plan) {
        return;
    }
    free((*plan)->lane);
    free((*plan)->config);
    free((*plan)->validation);
    free((*plan)->test);
    free((*plan)->fold);
    free(*plan);
    *plan = NULL;
}

int ho_trial_plan_first_test(const ho_trial_plan *plan, int lane)
{
    return plan->agent_folds == plan->folds ? lane / plan->seeds : 0;
}

int ho_trial_plan_test_count(const ho_trial_plan *plan)
{
    return plan->agent_folds == plan->folds ? 1 : plan->folds;
}
