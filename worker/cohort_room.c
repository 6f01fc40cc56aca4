/* SPDX-License-Identifier: Apache-2.0
 * Cohorts of a pool: made as large as memory allows, evicted when idle, halved when memory runs
 * out. */
#include <stdlib.h>
#include <string.h>

#include "study/log.h"
#include "worker/cohort_pool_internal.h"

enum {
    GPU_LANES = 128,      /* of a new pool; what is measured then may widen it */
    MEMORY_SHARE_PCT = 90 /* of what is free: the rest is for backtests and the driver */
};

static void cohort_destroy(struct cohort **cohort)
{
    if (*cohort) {
        ho_cohort_destroy(&(*cohort)->cohort);
        free((*cohort)->slot);
        free((*cohort)->stats);
        free(*cohort);
        *cohort = NULL;
    }
}

void ho_pool_remove_cohort(ho_pool *pool, int i)
{
    pool->under_way -= pool->cohort[i]->launched;
    pool->fits = 0; /* there may be room for more now */
    cohort_destroy(&pool->cohort[i]);
    pool->cohorts--;
    memmove(&pool->cohort[i], &pool->cohort[i + 1],
            (size_t)(pool->cohorts - i) * sizeof pool->cohort[0]);
}

static bool cohort_in_use(const ho_pool *pool, const struct cohort *cohort)
{
    for (int i = 0; i < pool->entries; i++) {
        if (pool->entry[i].cohort == cohort && !pool->entry[i].failed) {
            return true;
        }
    }
    return false;
}

/* Destroys the oldest cohort that no trial uses; false when there is none. */
static bool evict_idle(ho_pool *pool)
{
    for (int i = 0; i < pool->cohorts; i++) {
        if (!cohort_in_use(pool, pool->cohort[i])) {
            ho_pool_remove_cohort(pool, i);
            return true;
        }
    }
    return false;
}

static int gcd(int a, int b)
{
    return b == 0 ? a : gcd(b, a % b);
}

static int max_int(int a, int b)
{
    return a > b ? a : b;
}

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

int ho_pool_lane_capacity(const ho_pool *pool, int trial_lanes)
{
    if (pool->options.lanes > 0) {
        return pool->options.lanes;
    }
    if (!pool->cpu) {
        int lanes = max_int(pool->width > 0 ? pool->width : GPU_LANES, pool->options.together);
        return pool->fits > 0 ? min_int(lanes, pool->fits) : lanes;
    }
    /* Whole trials whose lanes fill the threads evenly, as long as that is not absurdly many. */
    int whole = trial_lanes / gcd(trial_lanes, pool->threads) * pool->threads;
    int bound = trial_lanes > 4 * pool->threads ? trial_lanes : 4 * pool->threads;
    return max_int(whole <= bound ? whole : bound / trial_lanes * trial_lanes,
                   pool->options.together);
}

/* Lanes that cohorts of a key can hold. */
static int key_capacity(const ho_pool *pool, const ho_cohort_key *key)
{
    int n = 0;
    for (int i = 0; i < pool->cohorts; i++) {
        n += memcmp(&pool->cohort[i]->key, key, sizeof *key) == 0 ? pool->cohort[i]->capacity : 0;
    }
    return n;
}

/* Lanes of one more cohort of this key; 0: those it has are all. A GPU's lanes of one shape live in
 * cohorts of whole trials, so that while one is scored or waits for the host the others train. */
static int wanted_lanes(const ho_pool *pool, const ho_cohort_key *key, int trial_lanes)
{
    int held = key_capacity(pool, key);
    int left = ho_pool_lane_capacity(pool, trial_lanes) - held;
    if (held > 0 && (pool->cpu || left < trial_lanes)) {
        return 0;
    }
    if (pool->cpu || pool->options.together > 0) {
        return left;
    }
    int whole = HO_POOL_COHORT_LANES / trial_lanes * trial_lanes;
    return min_int(left, max_int(whole, trial_lanes));
}

/* Slots for a new cohort of this key from free memory. 0: not even one. */
static ho_status plan_capacity(ho_pool *pool, const ho_cohort_key *key, int wanted, int *out,
                               ho_err *err)
{
    *out = 0;
    size_t per_lane = 0, fixed = 0;
    ho_device_info info;
    ho_status rc = ho_cohort_memory(pool->options.backend, key, &per_lane, &fixed, err);
    if (rc != HO_OK || (rc = ho_backend_info(pool->options.backend, &info, err)) != HO_OK) {
        return rc;
    }
    size_t usable = info.memory_free / 100 * MEMORY_SHARE_PCT;
    size_t fits = usable > fixed && per_lane > 0 ? (usable - fixed) / per_lane : 0;
    *out = fits < (size_t)wanted ? (int)fits : wanted;
    return HO_OK;
}

static ho_status cohort_create(ho_pool *pool, const ho_cohort_key *key, int capacity,
                               struct cohort **out, ho_err *err)
{
    struct cohort *cohort = calloc(1, sizeof *cohort);
    ho_status rc = HO_ENOMEM;
    if (!cohort) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for a cohort");
    }
    cohort->key = *key;
    cohort->capacity = capacity;
    cohort->slot = calloc((size_t)capacity, sizeof *cohort->slot);
    cohort->stats = calloc((size_t)capacity, sizeof *cohort->stats);
    if (cohort->slot && cohort->stats) {
        rc = ho_cohort_create(pool->options.backend, pool->options.market, key, capacity,
                              &cohort->cohort, err);
    }
    if (rc != HO_OK) {
        cohort_destroy(&cohort);
    }
    *out = cohort;
    return rc;
}

/* The cohort of this key that takes the trial soonest: one between two epochs with room for it, one
 * with room, any; NULL: none. */
static struct cohort *held_cohort(const ho_pool *pool, const ho_cohort_key *key, int trial_lanes,
                                  bool *has_room)
{
    struct cohort *best = NULL;
    int best_rank = -1;
    *has_room = false;
    for (int i = 0; i < pool->cohorts; i++) {
        struct cohort *cohort = pool->cohort[i];
        if (memcmp(&cohort->key, key, sizeof *key) == 0) {
            bool room = cohort->capacity - cohort->active >= min_int(trial_lanes, cohort->capacity);
            int rank = room ? 1 + (cohort->launched == 0) : 0;
            if (rank > best_rank) {
                best = cohort;
                best_rank = rank;
            }
            *has_room = *has_room || room;
        }
    }
    return best;
}

/* As many slots as memory has room for, at most `wanted`. HO_ENOMEM: not one. */
static ho_status create_largest(ho_pool *pool, const ho_cohort_key *key, int wanted,
                                int trial_lanes, struct cohort **out, ho_err *err)
{
    int capacity = 0;
    ho_status rc = plan_capacity(pool, key, wanted, &capacity, err);
    while (rc == HO_OK && capacity < min_int(trial_lanes, wanted) && evict_idle(pool)) {
        rc = plan_capacity(pool, key, wanted, &capacity, err);
    }
    if (rc != HO_OK) {
        return rc;
    }
    for (rc = HO_ENOMEM; capacity > 0; capacity /= 2) {
        rc = cohort_create(pool, key, capacity, out, err);
        while (rc == HO_ENOMEM && evict_idle(pool)) {
            rc = cohort_create(pool, key, capacity, out, err);
        }
        if (rc != HO_ENOMEM) {
            break;
        }
        ho_log(HO_LOG_WARN, "cohort", "out of memory with %d lanes, halving", capacity);
    }
    return rc;
}

ho_status ho_pool_cohort_for(ho_pool *pool, const ho_cohort_key *key, int trial_lanes,
                             struct cohort **out, ho_err *err)
{
    bool has_room = false;
    struct cohort *held = held_cohort(pool, key, trial_lanes, &has_room);
    int wanted = has_room ? 0 : wanted_lanes(pool, key, trial_lanes);
    *out = held;
    if (held && (wanted == 0 || pool->cohorts == HO_POOL_COHORTS)) {
        return HO_OK;
    }
    if (pool->cohorts == HO_POOL_COHORTS && !evict_idle(pool)) {
        return HO_EAGAIN;
    }
    struct cohort *made = NULL;
    ho_status rc = create_largest(pool, key, wanted, trial_lanes, &made, err);
    if (rc == HO_ENOMEM && held) { /* the device holds no more than it does */
        pool->fits = key_capacity(pool, key);
        ho_err_clear(err);
        return HO_OK;
    }
    if (rc == HO_ENOMEM) {
        return pool->cohorts > 0 ? HO_EAGAIN
                                 : ho_err_set(err, HO_ENOMEM,
                                              "not even one agent of this shape fits the device; "
                                              "make replay_capacity, episodes or hidden1 smaller");
    }
    if (rc == HO_OK) {
        pool->cohort[pool->cohorts++] = made;
        if (pool->options.lanes == 0 && !pool->cpu) {
            pool->fits = made->capacity < wanted ? key_capacity(pool, key) : 0;
        }
        ho_log(HO_LOG_INFO, "cohort", "created lanes=%d hidden1=%d hidden2=%d batch=%d",
               made->capacity, key->hidden1, key->hidden2, key->batch);
        *out = made;
    }
    return rc;
}
