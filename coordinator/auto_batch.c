/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/auto_batch.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "coordinator/job.h"
#include "study/log.h"

/* The batch itself may be searched over numbers; then nothing is automatic. */
static bool is_needed(const ho_study *study)
{
    const bool dqn = strcmp(ho_settings_str(study->settings, HO_KEY_AGENT_ALGORITHM), "dqn") == 0 ||
                     ho_space_find(&study->space, "agent.algorithm") >= 0;
    return dqn && ho_settings_is_auto(study->settings, HO_KEY_DQN_BATCH) &&
           ho_space_find(&study->space, "dqn.batch") < 0;
}

static ho_status measure(const ho_setup *setup, bool cpu, int32_t *out, ho_err *err)
{
    const ho_job_request request = {.command = "auto_batch", .setup = setup, .cpu = cpu};
    ho_job_answer answer;
    ho_status rc = ho_job_call(&request, &answer, err);
    if (rc != HO_OK) {
        return ho_err_prefix(err, "measuring dqn.batch = \"auto\"");
    }
    const cJSON *batch = cJSON_GetObjectItemCaseSensitive(answer.body, "batch");
    if (!cJSON_IsNumber(batch) || batch->valueint < 1) {
        rc = ho_err_set(err, HO_EPROTO, "the worker gave no batch");
    } else {
        *out = batch->valueint;
    }
    ho_job_answer_free(&answer);
    return rc;
}

ho_status ho_auto_batch_find(ho_setup *setup, ho_store *store, const ho_store_info *info,
                             bool local, bool cpu, ho_err *err)
{
    ho_status rc = HO_OK;
    setup->auto_batch = (int32_t)info->auto_batch;
    if (setup->auto_batch > 0 || !is_needed(setup->study)) {
        return HO_OK;
    }
    if (!local) {
        return ho_err_set(err, HO_ECONFIG,
                          "dqn.batch = \"auto\" is measured by a local worker, and there is none: "
                          "write a number, or run once without --no-local");
    }
    ho_log(HO_LOG_INFO, "run", "measuring dqn.batch = \"auto\"");
    if ((rc = measure(setup, cpu, &setup->auto_batch, err)) == HO_OK) {
        ho_log(HO_LOG_INFO, "run", "dqn.batch = %d", setup->auto_batch);
        rc = ho_store_put_auto_batch(store, setup->auto_batch, err);
    }
    return rc;
}
