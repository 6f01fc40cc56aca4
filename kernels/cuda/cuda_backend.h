/* SPDX-License-Identifier: Apache-2.0
 * The objects of the CUDA backend and who fills them. Internal to kernels/cuda. */
#ifndef HO_CUDA_BACKEND_H
#define HO_CUDA_BACKEND_H

#include <cuda_runtime.h>

#include "kernels/agents/net_layout.h"
#include "kernels/backend_ops.h"
#include "kernels/cuda/cohort_memory.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/device_pool.h"
#include "kernels/cuda/experience.h"
#include "kernels/cuda/learn.h"
#include "kernels/cuda/ppo.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cuda_backend {
    ho_backend base;
    ho_device_pool pool; /* all memory of the device but pinned buffers */
    char name[128];      /* of the device, and */
    cudaUUID_t uuid;     /* its UUID: asking for properties takes milliseconds */
    int device;
    int sm;    /* 90 for 9.0 */
    int image; /* architecture of the kernels that the driver chose: 75, 80, 86, 89, 90, 120 */
    int processors;
    int shared_limit;    /* bytes a block may have */
    int fused;           /* the sm_90a kernels may run */
    size_t memory_limit; /* 0: what is free */
    int lost;            /* a sticky error: every later call fails with HO_EGPU */
} cuda_backend;

enum { HO_SIGMA_TABLES = 64 };

typedef struct cuda_market {
    ho_market base;
    ho_market_view view; /* device pointers */
    void *features_bf16; /* [T, HO_STATE_PAD] */
    float *features_f32; /* [T, HO_STATE_PAD] */
    void *
        features_e4m3; /* [T, HO_STATE_PAD] as bf16, an allocation of its own; NULL: not used yet */
    uint8_t *block;    /* the allocation the above lie in */
    int sigma_count;
    struct {
        int32_t window;
        double *value; /* [T], device */
    } sigma[HO_SIGMA_TABLES];
} cuda_market;

typedef struct cuda_cohort {
    ho_cohort base;
    ho_cohort_key key;
    int capacity;
    ho_device_net net;
    ho_net_layout layout; /* of the flat vector weights travel in */
    ho_cohort_plan memory;
    uint8_t *block; /* device */
    ho_learn_view learn;
    ho_experience_view experience;
    ho_ppo_view ppo;        /* used with PPO */
    ho_lane_config *config; /* [capacity] */
    int *used;              /* [capacity] 1: the slot holds a lane */
    ho_epoch_stat *stat;    /* [HO_COHORT_DEPTH, capacity], pinned: epoch e's at [e % depth] */
    cudaStream_t stream;
    cudaGraphExec_t epoch;             /* captured at the first epoch */
    int without_graph;                 /* HYPEROPT_CUDA_GRAPH=0, for profilers */
    cudaEvent_t done[HO_COHORT_DEPTH]; /* the statistics there are whole */
    int64_t epochs_launched, epochs_collected;
} cuda_cohort;

/* Makes the backend's device current. HO_EGPU after a sticky error. */
ho_status ho_cuda_enter(cuda_backend *b, ho_err *err);
/* Fills err from the last CUDA failure and, when the context is gone, marks the backend. */
ho_status ho_cuda_leave(cuda_backend *b, ho_status status, ho_err *err);

/* market.cu */
ho_status ho_cuda_market_load(ho_backend *backend, ho_market_host *host, ho_market **out,
                              ho_err *err);
void ho_cuda_market_unload(ho_market *market);
/* sigma_t of a window on the device, uploaded at its first use. */
ho_status ho_cuda_market_sigma(cuda_market *m, ho_market_host *host, int32_t window,
                               const double **out, ho_err *err);

/* features_e4m3, made at its first use. */
ho_status ho_cuda_market_e4m3(cuda_market *m);

/* cohort.cu */
ho_status ho_cuda_cohort_memory(ho_backend *backend, const ho_cohort_key *key, size_t *per_lane,
                                size_t *fixed, ho_err *err);
ho_status ho_cuda_cohort_create(ho_backend *backend, ho_market *market, const ho_cohort_key *key,
                                int capacity, ho_cohort **out, ho_err *err);
void ho_cuda_cohort_destroy(ho_cohort *cohort);
ho_status ho_cuda_launch_epoch(ho_cohort *cohort, ho_err *err);
ho_status ho_cuda_collect_epoch(ho_cohort *cohort, ho_epoch_stat *stats, ho_err *err);
/* HO_EGPU: a kernel wrote outside its slice; err names it. For tests. */
ho_status ho_cuda_cohort_check_guards(ho_cohort *cohort, ho_err *err);

/* lane.cu */
ho_status ho_cuda_lane_start(ho_cohort *cohort, int slot, const ho_lane_config *config,
                             ho_err *err);
ho_status ho_cuda_lane_stop(ho_cohort *cohort, int slot);
ho_status ho_cuda_lane_export(ho_cohort *cohort, int slot, ho_tensors *out, ho_err *err);
ho_status ho_cuda_lane_import(ho_cohort *cohort, int slot, const ho_tensors *weights, ho_err *err);
ho_status ho_cuda_lane_save(ho_cohort *cohort, int slot, int replay, void **blob, size_t *size,
                            ho_err *err);
ho_status ho_cuda_lane_restore(ho_cohort *cohort, int slot, const ho_lane_config *config,
                               const void *blob, size_t size, ho_err *err);
ho_status ho_cuda_lane_copy(ho_cohort *cohort, int dst, int src, ho_err *err);
ho_status ho_cuda_lane_set_agent(ho_cohort *cohort, int slot, const ho_agent_config *agent,
                                 ho_err *err);

/* backtest.cu */
ho_status ho_cuda_backtest(ho_market *market, ho_cohort *cohort_or_null,
                           const ho_backtest_request *requests, int n, ho_backtest_result *results,
                           ho_err *err);
ho_status ho_cuda_backtest_begin(ho_market *market, ho_cohort *cohort_or_null,
                                 const ho_backtest_request *requests, int n, ho_backtest_job **out,
                                 ho_err *err);
int ho_cuda_backtest_ready(const ho_backtest_job *job);
ho_status ho_cuda_backtest_collect(ho_backtest_job *job, ho_backtest_result *results, ho_err *err);
void ho_cuda_backtest_drop(ho_backtest_job *job);

#ifdef __cplusplus
}
#endif
#endif
