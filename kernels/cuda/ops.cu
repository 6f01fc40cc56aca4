/* SPDX-License-Identifier: Apache-2.0
 * The CUDA backend's table and the backend object: which device, what it can do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/range.h"

enum { SM_MIN = 75 };

int ho_cuda_device_count(void)
{
    int n = 0;
    if (cudaGetDeviceCount(&n) != cudaSuccess) {
        (void)cudaGetLastError();
        return 0;
    }
    return n;
}

/* "GPU-xxxxxxxx-xxxx-..." as nvidia-smi prints it; room: 48 */
static void format_uuid(const cudaUUID_t *uuid, char *out, size_t room)
{
    const unsigned char *b = (const unsigned char *)uuid->bytes;
    snprintf(out, room, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
             b[14], b[15]);
}

static ho_status find_device(const ho_backend_options *o, int *out, ho_err *err)
{
    const int n = ho_cuda_device_count();
    if (n == 0) {
        return ho_err_set(err, HO_EGPU, "no GPU: the driver is missing or sees no device");
    }
    for (int i = 0; o->gpu_uuid && i < n; i++) {
        cudaDeviceProp prop;
        char uuid[48];
        if (cudaGetDeviceProperties(&prop, i) != cudaSuccess) {
            continue;
        }
        format_uuid(&prop.uuid, uuid, sizeof uuid);
        if (strcmp(uuid, o->gpu_uuid) == 0) {
            *out = i;
            return HO_OK;
        }
    }
    if (o->gpu_uuid) {
        return ho_err_set(err, HO_EGPU, "no GPU with UUID %s among %d", o->gpu_uuid, n);
    }
    if (o->device < 0 || o->device >= n) {
        return ho_err_set(err, HO_EGPU, "no GPU %d: this machine has %d", o->device, n);
    }
    *out = o->device;
    return HO_OK;
}

/* Portable kernels were asked for, by the option or by HYPEROPT_CUDA_PORTABLE=1. */
static int portable_wanted(const ho_backend_options *o)
{
    const char *variable = getenv("HYPEROPT_CUDA_PORTABLE");
    return o->force_portable || (variable && variable[0] && strcmp(variable, "0") != 0);
}

/* Does nothing; its image is of the architecture that the driver chose among the compiled ones. */
static __global__ void chosen_image(void)
{
}

static ho_status find_image(const cudaDeviceProp *prop, int device, int *out, ho_err *err)
{
    cudaFuncAttributes attributes;
    const cudaError_t error = cudaFuncGetAttributes(&attributes, chosen_image);
    if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction) {
        (void)cudaGetLastError();
        return ho_err_set(err, HO_EUNSUPPORTED,
                          "GPU %d (%s): this build has no kernels for compute capability %d.%d; "
                          "add %d%d to HYPEROPT_CUDA_ARCHITECTURES",
                          device, prop->name, prop->major, prop->minor, prop->major, prop->minor);
    }
    *out = attributes.ptxVersion;
    return ho_cuda_err(ho_cuda_status(error, "image of the kernels"), err);
}

static ho_status backend_open(const ho_backend_options *options, ho_backend **out, ho_err *err)
{
    cudaDeviceProp prop;
    int device = 0;
    ho_status rc = find_device(options, &device, err);
    if (rc != HO_OK) {
        return rc;
    }
    rc = ho_cuda_status(cudaSetDevice(device), "cudaSetDevice");
    rc = rc == HO_OK ? ho_cuda_status(cudaGetDeviceProperties(&prop, device), "device properties")
                     : rc;
    if (rc != HO_OK) {
        return ho_cuda_err(rc, err);
    }
    const int sm = prop.major * 10 + prop.minor;
    int image = 0;
    if (sm < SM_MIN) {
        return ho_err_set(err, HO_EUNSUPPORTED,
                          "GPU %d (%s) has compute capability %d.%d; 7.5 or later is needed",
                          device, prop.name, prop.major, prop.minor);
    }
    rc = find_image(&prop, device, &image, err);
    if (rc != HO_OK) {
        return rc;
    }
    cuda_backend *b = (cuda_backend *)calloc(1, sizeof *b);
    if (!b) {
        return ho_err_set(err, HO_ENOMEM, "backend: out of memory");
    }
    b->device = device;
    b->sm = sm;
    b->image = image;
    b->processors = prop.multiProcessorCount;
    b->uuid = prop.uuid;
    snprintf(b->name, sizeof b->name, "%s", prop.name);
    b->shared_limit = (int)prop.sharedMemPerBlockOptin;
    b->memory_limit = options->memory_limit;
#ifdef HO_CUDA_SM90A
    b->fused = sm == 90 && image == 90 && !portable_wanted(options);
#else
    (void)portable_wanted;
#endif
    rc = ho_device_pool_create(&b->pool, device);
    if (rc != HO_OK) {
        free(b);
        return ho_cuda_err(rc, err);
    }
    *out = &b->base;
    return HO_OK;
}

static void backend_close(ho_backend *backend)
{
    cuda_backend *b = (cuda_backend *)backend;
    cudaSetDevice(b->device);
    ho_device_pool_destroy(&b->pool);
    free(b);
}

static ho_status backend_info(ho_backend *backend, ho_device_info *out, ho_err *err)
{
    cuda_backend *b = (cuda_backend *)backend;
    int toolkit = CUDART_VERSION, driver = 0;
    ho_status rc = ho_cuda_enter(b, err);
    if (rc != HO_OK) {
        return rc;
    }
    rc = ho_cuda_status(cudaMemGetInfo(&out->memory_free, &out->memory_total), "cudaMemGetInfo");
    rc = rc == HO_OK ? ho_cuda_status(cudaDriverGetVersion(&driver), "driver version") : rc;
    if (rc != HO_OK) {
        return ho_cuda_leave(b, rc, err);
    }
    snprintf(out->name, sizeof out->name, "%s", b->name);
    format_uuid(&b->uuid, out->uuid, sizeof out->uuid);
    out->sm = b->sm;
    out->image = b->image;
    out->processors = b->processors;
    if (b->memory_limit > 0 && b->memory_limit < out->memory_free) {
        out->memory_free = b->memory_limit;
    }
    snprintf(out->toolkit, sizeof out->toolkit, "CUDA %d.%d", toolkit / 1000, toolkit % 1000 / 10);
    snprintf(out->driver, sizeof out->driver, "CUDA %d.%d", driver / 1000, driver % 1000 / 10);
    return HO_OK;
}

ho_status ho_cuda_enter(cuda_backend *b, ho_err *err)
{
    if (b->lost) {
        return ho_err_set(err, HO_EGPU, "GPU %d: an earlier error ended its context", b->device);
    }
    return ho_cuda_leave(b, ho_cuda_status(cudaSetDevice(b->device), "cudaSetDevice"), err);
}

ho_status ho_cuda_leave(cuda_backend *b, ho_status status, ho_err *err)
{
    ho_cuda_err(status, err);
    if (status == HO_EGPU && cudaDeviceSynchronize() != cudaSuccess) {
        b->lost = 1;
    }
    return status;
}

/* ---- the calls that do work, as ranges ---- */

static ho_status market_load(ho_backend *backend, ho_market_host *host, ho_market **out,
                             ho_err *err)
{
    ho_range_begin("hyperopt market: upload");
    return ho_range_end(ho_cuda_market_load(backend, host, out, err));
}

static ho_status cohort_create(ho_backend *backend, ho_market *market, const ho_cohort_key *key,
                               int capacity, ho_cohort **out, ho_err *err)
{
    ho_range_begin("hyperopt cohort: create");
    return ho_range_end(ho_cuda_cohort_create(backend, market, key, capacity, out, err));
}

static ho_status lane_start(ho_cohort *cohort, int slot, const ho_lane_config *config, ho_err *err)
{
    ho_range_begin("hyperopt lane: start");
    return ho_range_end(ho_cuda_lane_start(cohort, slot, config, err));
}

static ho_status launch_epoch(ho_cohort *cohort, ho_err *err)
{
    ho_range_begin("hyperopt epoch: launch");
    return ho_range_end(ho_cuda_launch_epoch(cohort, err));
}

static ho_status collect_epoch(ho_cohort *cohort, ho_epoch_stat *stats, ho_err *err)
{
    ho_range_begin("hyperopt epoch: statistics");
    return ho_range_end(ho_cuda_collect_epoch(cohort, stats, err));
}

static ho_status backtest(ho_market *market, ho_cohort *cohort, const ho_backtest_request *requests,
                          int n, ho_backtest_result *results, ho_err *err)
{
    ho_range_begin("hyperopt backtest");
    return ho_range_end(ho_cuda_backtest(market, cohort, requests, n, results, err));
}

static ho_status backtest_begin(ho_market *market, ho_cohort *cohort,
                                const ho_backtest_request *requests, int n, ho_backtest_job **out,
                                ho_err *err)
{
    ho_range_begin("hyperopt backtest: begin");
    return ho_range_end(ho_cuda_backtest_begin(market, cohort, requests, n, out, err));
}

static ho_status backtest_collect(ho_backtest_job *job, ho_backtest_result *results, ho_err *err)
{
    ho_range_begin("hyperopt backtest: results");
    return ho_range_end(ho_cuda_backtest_collect(job, results, err));
}

static ho_status lane_export(ho_cohort *cohort, int slot, ho_tensors *out, ho_err *err)
{
    ho_range_begin("hyperopt lane: weights out");
    return ho_range_end(ho_cuda_lane_export(cohort, slot, out, err));
}

static ho_status lane_import(ho_cohort *cohort, int slot, const ho_tensors *weights, ho_err *err)
{
    ho_range_begin("hyperopt lane: weights in");
    return ho_range_end(ho_cuda_lane_import(cohort, slot, weights, err));
}

static ho_status lane_save(ho_cohort *cohort, int slot, int replay, void **blob, size_t *size,
                           ho_err *err)
{
    ho_range_begin("hyperopt lane: checkpoint");
    return ho_range_end(ho_cuda_lane_save(cohort, slot, replay, blob, size, err));
}

static ho_status lane_restore(ho_cohort *cohort, int slot, const ho_lane_config *config,
                              const void *blob, size_t size, ho_err *err)
{
    ho_range_begin("hyperopt lane: restore");
    return ho_range_end(ho_cuda_lane_restore(cohort, slot, config, blob, size, err));
}

static ho_status lane_copy(ho_cohort *cohort, int dst, int src, ho_err *err)
{
    ho_range_begin("hyperopt lane: copy");
    return ho_range_end(ho_cuda_lane_copy(cohort, dst, src, err));
}

extern "C" const ho_backend_ops ho_cuda_ops = {
    "cuda",
    backend_open,
    backend_close,
    backend_info,
    market_load,
    ho_cuda_market_unload,
    ho_cuda_cohort_memory,
    cohort_create,
    ho_cuda_cohort_destroy,
    lane_start,
    ho_cuda_lane_stop,
    NULL, /* run_epoch: in two halves */
    launch_epoch,
    collect_epoch,
    backtest,
    backtest_begin,
    ho_cuda_backtest_ready,
    backtest_collect,
    ho_cuda_backtest_drop,
    lane_export,
    lane_import,
    lane_save,
    lane_restore,
    lane_copy,
    ho_cuda_lane_set_agent,
};
