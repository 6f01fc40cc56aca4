/* SPDX-License-Identifier: Apache-2.0
 * What the two halves of the pool share: cohort_pool.c (trials, admission, epochs) and
 * cohort_room.c (cohorts and the memory they take). */
#ifndef HO_WORKER_COHORT_POOL_INTERNAL_H
#define HO_WORKER_COHORT_POOL_INTERNAL_H

#include "worker/cohort_pool.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HO_POOL_COHORTS = 8 };

struct slot {
    ho_trial_run *run; /* NULL: free */
    int lane;
};

struct cohort {
    ho_cohort_key key;
    ho_cohort *cohort;
    int capacity, active;
    struct slot *slot;    /* [capacity] */
    ho_epoch_stat *stats; /* [capacity] */
};

/* A trial and the cohort its lanes live in; the cohort is chosen at its first start. */
struct entry {
    ho_trial_run *run;
    struct cohort *cohort;
    bool failed;   /* leaves at the end of this step */
    bool waits;    /* found no room in this admission */
    bool prepared; /* the preparer was asked */
};

/* 1. A cohort's active slots hold lanes of entries in `entry`.  2. entry is in order of arrival. */
struct ho_pool {
    ho_pool_options options;
    bool cpu;
    int threads;
    ho_preparer *preparer;
    int auto_lanes; /* what "auto" gave last; 0 before */
    struct cohort *cohort[HO_POOL_COHORTS];
    int cohorts, turn;
    struct entry *entry;
    int entries, room;
};

/* A cohort of this key: a held one, or a new one as large as memory allows. HO_EAGAIN: no room
 * until another cohort becomes idle. HO_ENOMEM: not even one lane fits an empty device. */
ho_status ho_pool_cohort_for(ho_pool *pool, const ho_cohort_key *key, int trial_lanes,
                             struct cohort **out, ho_err *err);
/* Destroys cohort i. */
void ho_pool_remove_cohort(ho_pool *pool, int i);

#ifdef __cplusplus
}
#endif
#endif
