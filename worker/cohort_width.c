/* SPDX-License-Identifier: Apache-2.0
 * How many lanes workers.lanes = "auto" trains at once on a GPU. The pool begins with a width that
 * is known to use a device well, measures lane-epochs a second while it is full, and allows one
 * more cohort as long as that gained WORTH_PCT at least. It never stops a lane: a width that was
 * not worth it ends with the trials that were let in. */
#include <string.h>

#include "study/log.h"
#include "worker/cohort_pool_internal.h"

enum {
    WORTH_PCT = 3,
    EPOCHS = 12,   /* of each cohort, that one measurement takes */
    FULL_PCT = 90, /* of the width is filled, or nothing is measured */
};

static void begin(struct width *w, int64_t now_ns)
{
    w->since_ns = now_ns;
    w->epochs = w->lane_epochs = 0;
}

static bool one_shape(const ho_pool *pool)
{
    const struct cohort *first = NULL;
    for (int i = 0; i < pool->cohorts; i++) {
        const struct cohort *cohort = pool->cohort[i];
        if (cohort->active > 0 && first && memcmp(&first->key, &cohort->key, sizeof first->key)) {
            return false;
        }
        first = cohort->active > 0 ? cohort : first;
    }
    return true;
}

/* What a full width of so many lanes does a second: a verdict on the last step, and the next. */
static void judge(ho_pool *pool, int lanes, double rate)
{
    struct width *w = &pool->measured;
    double gain_pct = w->rate > 0.0 ? (rate / w->rate - 1.0) * 100.0 : 0.0;
    if (w->rate > 0.0 && gain_pct < WORTH_PCT) {
        ho_log(HO_LOG_INFO, "cohort", "auto lanes=%d: %d gain %.1f %%, less than %d %%", w->lanes,
               lanes, gain_pct, WORTH_PCT);
        pool->width = w->lanes;
        w->settled = true;
        return;
    }
    w->rate = rate;
    w->lanes = lanes;
    w->settled = lanes + HO_POOL_COHORT_LANES > HO_POOL_COHORTS * HO_POOL_COHORT_LANES;
    pool->width = w->settled ? lanes : lanes + HO_POOL_COHORT_LANES;
    ho_log(HO_LOG_INFO, "cohort",
           "auto lanes=%d lane_epochs_per_s=%.1f gain_percent=%.1f trying=%d", lanes, rate,
           gain_pct, pool->width);
}

void ho_pool_measure_width(ho_pool *pool, int lanes)
{
    struct width *w = &pool->measured;
    if (pool->options.lanes > 0 || pool->cpu || pool->options.together > 0 || w->settled) {
        return;
    }
    int64_t now = pool->options.clock_ns ? pool->options.clock_ns() : ho_pool_now_ns();
    int width = ho_pool_lane_capacity(pool, 1);
    if (pool->fits > 0 && w->rate > 0.0) {
        ho_log(HO_LOG_INFO, "cohort", "auto lanes=%d: memory holds no more", pool->fits);
        w->settled = true;
        return;
    }
    if (w->since_ns == 0 || ho_pool_active_lanes(pool) * 100 < width * FULL_PCT ||
        !one_shape(pool)) {
        begin(w, now);
        return;
    }
    w->epochs++;
    w->lane_epochs += lanes;
    if (w->epochs >= EPOCHS * pool->cohorts && now > w->since_ns) {
        judge(pool, width, (double)w->lane_epochs * 1e9 / (double)(now - w->since_ns));
        begin(w, now);
    }
}
