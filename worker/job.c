/* SPDX-License-Identifier: Apache-2.0
 * Dispatch of jobs by name; see job.h. */
#include "worker/job.h"

#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

ho_status ho_job_parts_add(ho_job_parts *parts, const void *data, size_t size, ho_err *err)
{
    ho_job_part *grown = realloc(parts->part, (size_t)(parts->count + 1) * sizeof *grown);
    void *copy = malloc(size > 0 ? size : 1);
    if (grown) {
        parts->part = grown;
    }
    if (!grown || !copy) {
        free(copy);
        return ho_err_set(err, HO_ENOMEM, "out of memory for a job");
    }
    if (size > 0) {
        memcpy(copy, data, size);
    }
    parts->part[parts->count++] = (ho_job_part){.data = copy, .size = size};
    return HO_OK;
}

void ho_job_parts_free(ho_job_parts *parts)
{
    for (int i = 0; i < parts->count; i++) {
        free(parts->part[i].data);
    }
    free(parts->part);
    *parts = (ho_job_parts){0};
}

/* What this worker computes on. */
ho_status ho_job_devices(const ho_job_context *context, const cJSON *arguments,
                         const ho_job_parts *in, cJSON **reply, ho_job_parts *out, ho_err *err)
{
    (void)arguments, (void)in, (void)out;
    ho_device_info info;
    ho_status rc = ho_backend_info(context->backend, &info, err);
    if (rc != HO_OK) {
        return rc;
    }
    *reply = cJSON_CreateObject();
    if (!cJSON_AddStringToObject(*reply, "name", info.name) ||
        !cJSON_AddStringToObject(*reply, "uuid", info.uuid) ||
        !cJSON_AddNumberToObject(*reply, "processors", info.processors)) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for a job");
    }
    return HO_OK;
}

ho_status ho_job_run(const char *name, const ho_job_context *context, const cJSON *arguments,
                     const ho_job_parts *in, cJSON **reply, ho_job_parts *out, ho_err *err)
{
    static const struct {
        const char *name;
        ho_job_fn *run;
    } table[] = {
#define ROW(id) {#id, ho_job_##id},
        HO_JOB_MAP(ROW)
#undef ROW
    };
    *reply = NULL;
    *out = (ho_job_parts){0};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(name, table[i].name) == 0) {
            ho_status rc = table[i].run(context, arguments, in, reply, out, err);
            if (rc != HO_OK) {
                cJSON_Delete(*reply);
                *reply = NULL;
                ho_job_parts_free(out);
            }
            return rc;
        }
    }
    return ho_err_set(err, HO_ENOTFOUND, "this worker has no job named \"%.40s\"", name);
}
