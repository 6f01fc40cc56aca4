/* SPDX-License-Identifier: Apache-2.0
 * The cohort of the CPU backend: slots of lanes and the scratch they share. Internal to
 * kernels/cpu; the functions are entries of the table in ops.c, their contracts are in
 * kernels/backend.h. */
#ifndef HO_KERNELS_CPU_COHORT_H
#define HO_KERNELS_CPU_COHORT_H

#include "kernels/cpu/lane.h"
#include "kernels/cpu/policy.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_cpu_cohort {
    ho_cpu_acting acting;
    ho_lane_shape shape;
    const ho_market_host *host;
    int capacity;
    int threads;
    ho_lane **lane; /* [capacity], NULL for a free slot */
    int scratches;
    ho_scratch **scratch; /* [scratches], one a lane that is advanced at the same time */
} ho_cpu_cohort;

static inline ho_cpu_cohort *ho_cpu_cohort_of(ho_cohort *cohort)
{
    return (ho_cpu_cohort *)(void *)cohort;
}

/* The lane of a slot; HO_EINVAL when it is free. */
ho_status ho_cpu_cohort_lane(ho_cohort *cohort, int slot, ho_lane **out, ho_err *err);

ho_status ho_cpu_cohort_memory(ho_backend *backend, const ho_cohort_key *key, size_t *per_lane,
                               size_t *fixed, ho_err *err);
ho_status ho_cpu_cohort_create(ho_backend *backend, ho_market *market, const ho_cohort_key *key,
                               int capacity, ho_cohort **out, ho_err *err);
void ho_cpu_cohort_destroy(ho_cohort *cohort);
ho_status ho_cpu_lane_start(ho_cohort *cohort, int slot, const ho_lane_config *config, ho_err *err);
ho_status ho_cpu_lane_stop(ho_cohort *cohort, int slot);
ho_status ho_cpu_run_epoch(ho_cohort *cohort, ho_epoch_stat *stats, ho_err *err);

/* lane_state.c */
ho_status ho_cpu_lane_export(ho_cohort *cohort, int slot, ho_tensors *out, ho_err *err);
ho_status ho_cpu_lane_import(ho_cohort *cohort, int slot, const ho_tensors *weights, ho_err *err);
ho_status ho_cpu_lane_save(ho_cohort *cohort, int slot, int replay, void **blob, size_t *size,
                           ho_err *err);
ho_status ho_cpu_lane_restore(ho_cohort *cohort, int slot, const ho_lane_config *config,
                              const void *blob, size_t size, ho_err *err);
ho_status ho_cpu_lane_copy(ho_cohort *cohort, int dst, int src, ho_err *err);
ho_status ho_cpu_lane_set_agent(ho_cohort *cohort, int slot, const ho_agent_config *agent,
                                ho_err *err);

/* act.c: ho_act_fn and its scratch */
ho_status ho_cpu_act(const ho_cohort *cohort, int slot, const float *state, int n, uint32_t step,
                     float *score, uint8_t *action, void *scratch);
size_t ho_cpu_act_scratch(const ho_cohort *cohort, int n);

#ifdef __cplusplus
}
#endif
#endif
