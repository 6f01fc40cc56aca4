/* SPDX-License-Identifier: Apache-2.0
 * The same lane on the CPU backend and on the CUDA backend, for tests of parity. */
#ifndef HO_TESTS_GPU_PAIR_H
#define HO_TESTS_GPU_PAIR_H

#include "agents/world.h"

typedef struct pair {
    world *cpu, *gpu;
} pair;

/* The same bars and features on both; the CPU has 4 threads. */
pair open_pair(int64_t bars, int force_portable, int F);
void close_pair(pair *p);

typedef struct lanes {
    ho_cohort *cpu, *gpu; /* one slot each */
} lanes;

lanes open_lanes(pair *p, const ho_cohort_key *key, const ho_lane_config *lane);
void close_lanes(lanes *l);
void run_both(lanes *l, ho_epoch_stat *cpu, ho_epoch_stat *gpu);

/* What the CPU backend keeps of an epoch's steps; index step * N + slot. Its headers and those of
 * the CUDA backend do not go into one file: they have structs of one name. */
typedef struct cpu_steps {
    const int32_t *bar;
    const uint8_t *action; /* composed */
    const uint8_t *flags;
    const float *reward;
    const float *log_p, *value, *value_next, *advantage; /* PPO */
    const float *forward_model;                          /* curiosity: its parameters */
} cpu_steps;

cpu_steps cpu_steps_of(ho_cohort *cpu);
int cpu_step_valid(const cpu_steps *s, size_t at);
int cpu_step_terminal(const cpu_steps *s, size_t at);
int cpu_step_ended(const cpu_steps *s, size_t at); /* terminal or truncated */

/* What an epoch's steps add up to, bit for bit. */
void check_experience_equal(const ho_epoch_stat *a, const ho_epoch_stat *b);

/* ||gpu - cpu|| / ||cpu - start|| over all tensors: the error of what training changed. */
double relative_error(const ho_tensors *start, const ho_tensors *cpu, const ho_tensors *gpu);

/* 1: the same tensors, bit for bit. */
int tensors_equal(const ho_tensors *a, const ho_tensors *b);

#endif
