/* SPDX-License-Identifier: Apache-2.0
 * Dispatch of jobs by name; see job.h. */
#include "worker/job.h"

#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

void ho_job_reply_clear(ho_job_reply *reply)
{
    for (int32_t i = 0; i < reply->window_count; i++) {
        ho_backtest_free(&reply->window[i].result);
    }
    free(reply->window);
    cJSON_Delete(reply->body);
    *reply = (ho_job_reply){0};
}

/* What this worker computes on. */
ho_status ho_job_devices(const ho_job_context *context, const cJSON *arguments, ho_job_reply *reply,
                         ho_err *err)
{
    (void)arguments;
    ho_device_info info;
    ho_status rc = ho_backend_info(context->backend, &info, err);
    if (rc != HO_OK) {
        return rc;
    }
    reply->body = cJSON_CreateObject();
    if (!cJSON_AddStringToObject(reply->body, "name", info.name) ||
        !cJSON_AddStringToObject(reply->body, "uuid", info.uuid) ||
        !cJSON_AddNumberToObject(reply->body, "processors", info.processors)) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for a job");
    }
    return HO_OK;
}

ho_status ho_job_folds(const cJSON *arguments, int32_t *fold, int32_t *count, ho_err *err)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(arguments, "fold"), *item;
    *count = 0;
    if (list && (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > HO_FOLDS_MAX)) {
        return ho_err_set(err, HO_EINVAL, "fold is no list, or too long");
    }
    cJSON_ArrayForEach(item, list)
    {
        double x = cJSON_IsNumber(item) ? item->valuedouble : -1.0;
        if (!(x >= 0.0 && x < HO_FOLDS_MAX)) {
            return ho_err_set(err, HO_EINVAL, "fold is no list of folds");
        }
        fold[(*count)++] = (int32_t)x;
    }
    return HO_OK;
}

ho_status ho_job_run(const char *name, const ho_job_context *context, const cJSON *arguments,
                     ho_job_reply *reply, ho_err *err)
{
    static const struct {
        const char *name;
        ho_job_fn *run;
    } table[] = {
#define ROW(id, function) {id, ho_job_##function},
        HO_JOB_MAP(ROW)
#undef ROW
    };
    *reply = (ho_job_reply){0};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(name, table[i].name) == 0) {
            ho_status rc = table[i].run(context, arguments, reply, err);
            if (rc != HO_OK) {
                ho_job_reply_clear(reply);
            }
            return rc;
        }
    }
    return ho_err_set(err, HO_ENOTFOUND, "this worker has no job named \"%.40s\"", name);
}
