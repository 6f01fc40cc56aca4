/* SPDX-License-Identifier: Apache-2.0
 * What the parts of the pool share: cohort_pool.c (trials, admission), cohort_epoch.c (epochs and
 * scores) and cohort_room.c (cohorts and the memory they take). */
#ifndef HO_WORKER_COHORT_POOL_INTERNAL_H
#define HO_WORKER_COHORT_POOL_INTERNAL_H

#include "worker/cohort_pool.h"
#include "worker/lane_score.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HO_POOL_COHORTS = 8,
    HO_POOL_COHORT_LANES =
        64, /* of one cohort on a GPU: two of one shape overlap, see docs/gpu.md */
};

struct slot {
    ho_trial_run *run; /* NULL: free */
    int lane;
    bool leaves; /* its lane stops when the epochs under way have ended */
};

struct cohort {
    ho_cohort_key key;
    ho_cohort *cohort;
    int capacity, active;
    int launched;         /* epochs under way */
    bool expects;         /* somebody could enter if no epoch were under way */
    bool judged;          /* scores were told since its last launch: trials may be pruned */
    struct slot *slot;    /* [capacity] */
    ho_epoch_stat *stats; /* [capacity] */
};

/* A trial and the cohort its lanes live in; the cohort is chosen at its first start. */
struct entry {
    ho_trial_run *run;
    struct cohort *cohort;
    bool failed;   /* leaves at the end of this step */
    bool ending;   /* all windows are scored, and the sink knows */
    bool waits;    /* found no room in this admission */
    bool prepared; /* the preparer was asked */
};

/* What is known of the width of "auto"; times are of one window of measurement. */
struct width {
    double rate;      /* lane-epochs a second of `lanes`; 0: not measured yet */
    int lanes;        /* the widest that was worth it */
    bool settled;     /* no wider one is, or fits */
    int64_t since_ns; /* 0: no window is open */
    int64_t epochs, lane_epochs;
};

/* 1. A cohort's active slots hold lanes of entries in `entry`.  2. entry is in order of arrival.
 * 3. Lanes enter and leave, and are read, only while none of their cohort's epochs is under way. */
struct ho_pool {
    ho_pool_options options;
    bool cpu;
    bool overlap; /* epochs and scores may be under way between steps */
    int threads;
    ho_preparer *preparer;
    int width; /* of "auto" on a GPU, as measured (cohort_width.c); 0 before */
    struct width measured;
    int fits; /* lanes that memory had room for; 0: as many as were wanted */
    struct cohort *cohort[HO_POOL_COHORTS];
    int cohorts, turn;
    ho_score **score; /* [scores] under way, oldest first */
    int scores, score_room;
    ho_pool_times times;
    int under_way;        /* epochs of all cohorts */
    int64_t under_way_ns; /* since when */
    struct entry *entry;
    int entries, room;
};

/* A cohort of this key: a held one with room for the trial, else a new one as large as memory and
 * the lanes of the device allow, else a held one. HO_EAGAIN: no room until another cohort becomes
 * idle. HO_ENOMEM: not even one lane fits an empty device. */
ho_status ho_pool_cohort_for(ho_pool *pool, const ho_cohort_key *key, int trial_lanes,
                             struct cohort **out, ho_err *err);
/* Destroys cohort i. */
void ho_pool_remove_cohort(ho_pool *pool, int i);

/* Launches, collects, scores and tells; see ho_pool_step. HO_EGPU: every trial has failed. */
ho_status ho_pool_run(ho_pool *pool, bool *worked, ho_err *err);
/* The same until nothing is under way of this entry, or with NULL of any. */
ho_status ho_pool_run_out(ho_pool *pool, const struct entry *entry, ho_err *err);

/* After every epoch of a cohort with so many lanes. */
void ho_pool_measure_width(ho_pool *pool, int lanes);

void ho_pool_remove_entry(ho_pool *pool, int i);
/* Stops the lanes and tells the sink, once. */
void ho_pool_fail_entry(ho_pool *pool, struct entry *entry, ho_trial_failure failure);
void ho_pool_fail_with(ho_pool *pool, struct entry *entry, ho_status rc, int lane,
                       const ho_err *err);
/* Stops the lane of a slot, now or when the epochs under way have ended. */
void ho_pool_free_slot(struct cohort *cohort, int slot);
int64_t ho_pool_now_ns(void);
/* Adds what has passed since *since to *sum, and sets *since to now. */
void ho_pool_spend(int64_t *sum, int64_t *since);

#ifdef __cplusplus
}
#endif
#endif
