/* SPDX-License-Identifier: Apache-2.0
 * The walk is an odometer in topological order. A continuous parameter has CONTINUOUS_POINTS random
 * points, so that a walk of a mixed space ends too. */
#include "coordinator/search/walk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CONTINUOUS_POINTS = 64 };
static const int64_t STEPS_MAX = 1 << 22; /* per call; a requirement may refuse almost everything */

static int64_t digits(const ho_param *param)
{
    int64_t n = ho_param_cardinality(param);

    return n > 0 ? n : CONTINUOUS_POINTS;
}

ho_status ho_walk_init(ho_walk *walk, const ho_space *space, const ho_dim *dim, uint64_t seed,
                       bool shuffled, ho_err *err)
{
    size_t n = space->count > 0 ? (size_t)space->count : 1;

    memset(walk, 0, sizeof *walk);
    walk->space = space;
    walk->dim = dim;
    walk->seed = seed;
    walk->digit = calloc(n, sizeof *walk->digit);
    walk->offset = calloc(n, sizeof *walk->offset);
    walk->config = calloc(n, sizeof *walk->config);
    if (!walk->digit || !walk->offset || !walk->config) {
        ho_walk_free(walk);
        return ho_err_set(err, HO_ENOMEM, "out of memory for walking the space");
    }
    for (int p = 0; p < space->count && shuffled; p++) {
        ho_draw draw = ho_draw_start(seed, p, HO_DRAW_SPACE, 0);

        walk->offset[p] = ho_draw_below(&draw, digits(&space->param[p]));
    }
    return HO_OK;
}

void ho_walk_free(ho_walk *walk)
{
    free(walk->digit);
    free(walk->offset);
    free(walk->config);
    memset(walk, 0, sizeof *walk);
}

void ho_walk_restart(ho_walk *walk)
{
    walk->started = walk->ended = false;
}

static double digit_value(const ho_walk *walk, int p, int64_t digit)
{
    const ho_param *param = &walk->space->param[p];
    int64_t n = digits(param), i = (digit + walk->offset[p]) % n;
    ho_draw draw;

    if (ho_param_cardinality(param) > 0) {
        return ho_param_grid_value(param, i);
    }
    draw = ho_draw_start(walk->seed, p, HO_DRAW_SPACE, 1 + (int)i);
    return ho_dim_random(&walk->dim[p], &draw);
}

/* Digits from p on become 0, or -1 where the parameter is inactive. */
static void zero_from(ho_walk *walk, int p)
{
    for (; p < walk->space->count; p++) {
        bool active = ho_space_active(walk->space, walk->config, p);

        walk->digit[p] = active ? 0 : -1;
        walk->config[p] = active ? digit_value(walk, p, 0) : NAN;
    }
}

static bool advance(ho_walk *walk)
{
    for (int p = walk->space->count - 1; p >= 0; p--) {
        if (walk->digit[p] < 0 || walk->digit[p] + 1 >= digits(&walk->space->param[p])) {
            continue;
        }
        walk->config[p] = digit_value(walk, p, ++walk->digit[p]);
        zero_from(walk, p + 1);
        return true;
    }
    return false;
}

ho_status ho_walk_next_unseen(ho_walk *walk, const ho_history *history, double *config, ho_err *err)
{
    if (!walk->started) {
        zero_from(walk, 0);
        walk->started = true;
    }
    for (int64_t step = 0; !walk->ended && step < STEPS_MAX; step++) {
        if (!ho_history_seen(history, walk->config) &&
            ho_space_check(walk->space, walk->config, NULL) == HO_OK) {
            if (walk->space->count > 0) {
                memcpy(config, walk->config, (size_t)walk->space->count * sizeof *config);
            }
            return HO_OK;
        }
        walk->ended = !advance(walk);
    }
    return walk->ended
               ? ho_err_set(err, HO_EDONE, "every configuration of the space has been tried")
               : ho_err_set(err, HO_EDONE,
                            "no untried configuration that satisfies `require` among %lld looked "
                            "at",
                            (long long)STEPS_MAX);
}

double ho_walk_size(const ho_space *space)
{
    double size = 1.0;

    for (int p = 0; p < space->count; p++) {
        int64_t n = ho_param_cardinality(&space->param[p]);

        size *= n > 0 ? (double)n : INFINITY;
    }
    return size;
}
