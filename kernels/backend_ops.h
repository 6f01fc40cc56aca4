/* SPDX-License-Identifier: Apache-2.0
 * What a backend implements: one table of functions, and the first members of its objects.
 * kernels/backend.c holds the public functions of backend.h: it checks arguments, prepares the
 * market on the host (the same tables for every backend) and calls through the table.
 *
 * A backend embeds the base structs first in its own:
 *     typedef struct cpu_cohort { ho_cohort base; ... } cpu_cohort;
 * create allocates the whole; destroy frees it and accepts a half-built object. The base's fields
 * are filled by backend.c after a successful create. A NULL entry answers HO_EUNSUPPORTED. */
#ifndef HO_KERNELS_BACKEND_OPS_H
#define HO_KERNELS_BACKEND_OPS_H

#include "kernels/backend.h"
#include "kernels/env/market_host.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_backend_ops {
    const char *name; /* "cpu", "cuda" */

    ho_status (*open)(const ho_backend_options *options, ho_backend **out, ho_err *err);
    void (*close)(ho_backend *backend);
    ho_status (*info)(ho_backend *backend, ho_device_info *out, ho_err *err);

    /* host: prepared and owned by the base of the new market; valid until market_unload returns.
     * On failure backend.c frees it. */
    ho_status (*market_load)(ho_backend *backend, ho_market_host *host, ho_market **out,
                             ho_err *err);
    void (*market_unload)(ho_market *market);

    ho_status (*cohort_memory)(ho_backend *backend, const ho_cohort_key *key, size_t *per_lane,
                               size_t *fixed, ho_err *err);
    ho_status (*cohort_create)(ho_backend *backend, ho_market *market, const ho_cohort_key *key,
                               int capacity, ho_cohort **out, ho_err *err);
    void (*cohort_destroy)(ho_cohort *cohort);

    /* slot is in range; the lane's windows and environment have been checked */
    ho_status (*lane_start)(ho_cohort *cohort, int slot, const ho_lane_config *config, ho_err *err);
    ho_status (*lane_stop)(ho_cohort *cohort, int slot);
    /* run_epoch, or both others: up to HO_COHORT_DEPTH epochs are launched and not collected */
    ho_status (*run_epoch)(ho_cohort *cohort, ho_epoch_stat *stats, ho_err *err);
    ho_status (*launch_epoch)(ho_cohort *cohort, ho_err *err);
    ho_status (*collect_epoch)(ho_cohort *cohort, ho_epoch_stat *stats, ho_err *err);

    /* requests are checked; results are cleared */
    ho_status (*backtest)(ho_market *market, ho_cohort *cohort_or_null,
                          const ho_backtest_request *requests, int n, ho_backtest_result *results,
                          ho_err *err);
    /* the last three, or none: then backtest does the work of begin. requests live until begin has
     * returned; collect and drop free the job, base included; a failed collect fills no result */
    ho_status (*backtest_begin)(ho_market *market, ho_cohort *cohort_or_null,
                                const ho_backtest_request *requests, int n, ho_backtest_job **out,
                                ho_err *err);
    int (*backtest_ready)(const ho_backtest_job *job);
    ho_status (*backtest_collect)(ho_backtest_job *job, ho_backtest_result *results, ho_err *err);
    void (*backtest_drop)(ho_backtest_job *job);

    ho_status (*lane_export)(ho_cohort *cohort, int slot, ho_tensors *out, ho_err *err);
    ho_status (*lane_import)(ho_cohort *cohort, int slot, const ho_tensors *weights, ho_err *err);
    ho_status (*lane_save)(ho_cohort *cohort, int slot, int replay, void **blob, size_t *size,
                           ho_err *err);
    ho_status (*lane_restore)(ho_cohort *cohort, int slot, const ho_lane_config *config,
                              const void *blob, size_t size, ho_err *err);
    ho_status (*lane_copy)(ho_cohort *cohort, int dst, int src, ho_err *err);
    ho_status (*lane_set_agent)(ho_cohort *cohort, int slot, const ho_agent_config *agent,
                                ho_err *err);
} ho_backend_ops;

struct ho_backend {
    const ho_backend_ops *ops;
};

struct ho_market {
    const ho_backend_ops *ops;
    ho_backend *backend;
    ho_market_host *host; /* owned */
};

struct ho_cohort {
    const ho_backend_ops *ops;
    ho_backend *backend;
    ho_market *market;
    ho_cohort_key key;
    int capacity;
    int launched; /* epochs under way */
};

struct ho_backtest_job {
    const ho_backend_ops *ops;
    int n;
    ho_backtest_result *results; /* [n] of a backend without jobs of its own; else NULL */
};

enum { HO_COHORT_DEPTH = 2 /* epochs under way, of a backend with launch_epoch */ };

extern const ho_backend_ops ho_cpu_ops;
#ifdef HO_HAVE_CUDA
extern const ho_backend_ops ho_cuda_ops;
int ho_cuda_device_count(void); /* 0 without a driver; never fails */
#endif

#ifdef __cplusplus
}
#endif
#endif
