/* SPDX-License-Identifier: Apache-2.0
 * The job "auto_batch": measures dqn.batch = "auto" on this worker's device for the study's own
 * shape and first fold. The answer: {"batch": N}. */
#include <cjson/cJSON.h>
#include <string.h>

#include "kernels/auto_batch.h"
#include "worker/job.h"
#include "worker/lane_config.h"

ho_status ho_job_auto_batch(const ho_job_context *context, const cJSON *arguments,
                            ho_job_reply *reply, ho_err *err)
{
    (void)arguments;
    ho_cohort_key key;
    ho_lane_config lane;
    int32_t batch = 0;
    ho_status rc = HO_OK;
    memset(&lane, 0, sizeof lane);
    if (!context->study) {
        return ho_err_set(err, HO_EINVAL, "job auto_batch: there is no study");
    }
    ho_settings *s = ho_settings_copy(context->study->settings);
    if (!s) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for a job");
    }
    /* where the algorithm is searched, the batch is DQN's all the same */
    if ((rc = ho_settings_set_text(s, HO_KEY_AGENT_ALGORITHM, "dqn", err)) != HO_OK ||
        (rc = ho_lane_config_key(s, context->features->F, HO_BATCH_DEFAULT, &key, err)) != HO_OK ||
        (rc = ho_lane_config_agent(s, &key, &lane.agent, err)) != HO_OK ||
        (rc = ho_lane_config_env(s, context->bars, context->folds->fold[0].train, &lane.env,
                                 err)) != HO_OK) {
        goto out;
    }
    lane.train = context->folds->fold[0].train;
    rc = ho_auto_batch_measure(context->backend, context->market, &key, &lane, HO_AUTO_BATCH_MOST,
                               &batch, err);
    if (rc == HO_OK) {
        reply->body = cJSON_CreateObject();
        if (!cJSON_AddNumberToObject(reply->body, "batch", batch)) {
            rc = ho_err_set(err, HO_ENOMEM, "out of memory for a job");
        }
    }
out:
    ho_settings_destroy(&s);
    return rc;
}
