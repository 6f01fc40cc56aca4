/* SPDX-License-Identifier: Apache-2.0
 * See population.h. */
#include "worker/population.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/env/rng.h"

/* Draws of one member at one epoch: purpose in the low bits of the counter, never reused. */
enum draw_purpose { DRAW_PARENT = 1, DRAW_EXPLORE = 2 };

struct member {
    int64_t trial;
    bool here;        /* has not left */
    int epoch;        /* of the last value */
    int decided;      /* boundary at which it was looked at last */
    double *config;   /* [P] */
    bool *may_change; /* [P] */
};

/* A value of some member at a boundary; kept when the member leaves. */
struct mark {
    int64_t trial;
    int epoch;
    double value;
};

struct ho_population {
    ho_population_options options;
    const ho_space *space;
    struct member *member; /* by trial number */
    int members;
    struct mark *mark;
    int marks, mark_room;
};

ho_status ho_population_create(ho_population **out, const ho_population_options *options,
                               const ho_space *space, ho_err *err)
{
    *out = calloc(1, sizeof **out);
    if (!*out) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for the population");
    }
    (*out)->options = *options;
    (*out)->space = space;
    return HO_OK;
}

void ho_population_destroy(ho_population **population)
{
    if (!population || !*population) {
        return;
    }
    for (int i = 0; i < (*population)->members; i++) {
        free((*population)->member[i].config);
        free((*population)->member[i].may_change);
    }
    free((*population)->member);
    free((*population)->mark);
    free(*population);
    *population = NULL;
}

static struct member *find(ho_population *p, int64_t trial)
{
    for (int i = 0; i < p->members; i++) {
        if (p->member[i].trial == trial) {
            return &p->member[i];
        }
    }
    return NULL;
}

ho_status ho_population_join(ho_population *p, int64_t trial, const double *config,
                             const bool *may_change, ho_err *err)
{
    struct member *known = find(p, trial);
    if (known) {
        known->here = true;
        return HO_OK;
    }
    size_t n = (size_t)p->space->count;
    struct member *grown = realloc(p->member, (size_t)(p->members + 1) * sizeof *grown);
    double *own_config = malloc((n + 1) * sizeof *own_config);
    bool *own_change = malloc((n + 1) * sizeof *own_change);
    if (grown) {
        p->member = grown;
    }
    if (!grown || !own_config || !own_change) {
        free(own_config);
        free(own_change);
        return ho_err_set(err, HO_ENOMEM, "out of memory for the population");
    }
    memcpy(own_config, config, n * sizeof *config);
    memcpy(own_change, may_change, n * sizeof *may_change);
    int at = p->members;
    while (at > 0 && p->member[at - 1].trial > trial) {
        at--;
    }
    memmove(&p->member[at + 1], &p->member[at], (size_t)(p->members - at) * sizeof *p->member);
    p->member[at] = (struct member){
        .trial = trial, .here = true, .config = own_config, .may_change = own_change};
    p->members++;
    return HO_OK;
}

void ho_population_leave(ho_population *p, int64_t trial)
{
    struct member *member = find(p, trial);
    if (member) {
        member->here = false;
    }
}

void ho_population_note(ho_population *p, int64_t trial, int epoch, double value)
{
    struct member *member = find(p, trial);
    if (!member || epoch % p->options.every != 0 || epoch <= member->epoch) {
        return;
    }
    if (p->marks == p->mark_room) {
        int room = p->mark_room > 0 ? 2 * p->mark_room : 64;
        struct mark *grown = realloc(p->mark, (size_t)room * sizeof *grown);
        if (!grown) {
            return; /* without its mark the member stays as it is */
        }
        p->mark = grown;
        p->mark_room = room;
    }
    p->mark[p->marks++] = (struct mark){.trial = trial, .epoch = epoch, .value = value};
    member->epoch = epoch;
}

/* ---- decisions ----------------------------------------------------------------------------- */

static ho_rng4 draw(const ho_population_options *o, int64_t trial, int epoch, uint32_t purpose,
                    uint32_t index)
{
    uint64_t key[2];
    ho_rng_key(o->seed, (uint64_t)trial, UINT64_MAX, 0, key);
    return ho_philox(index, purpose, (uint32_t)epoch, 0, (uint32_t)key[0], (uint32_t)key[1]);
}

/* Whether a ranks before b: better value, undefined last, ties by number. */
static bool before(const struct mark *a, const struct mark *b, int direction)
{
    bool a_known = !isnan(a->value), b_known = !isnan(b->value);
    if (a_known != b_known) {
        return a_known;
    }
    if (a_known && a->value != b->value) {
        return direction < 0 ? a->value < b->value : a->value > b->value;
    }
    return a->trial < b->trial;
}

/* Rank of the trial among the marks of an epoch, from 0; *n: marks there. */
static int rank_of(const ho_population *p, int64_t trial, int epoch, int *n)
{
    const struct mark *mine = NULL;
    int rank = 0;
    *n = 0;
    for (int i = 0; i < p->marks; i++) {
        if (p->mark[i].epoch == epoch && p->mark[i].trial == trial) {
            mine = &p->mark[i];
        }
    }
    for (int i = 0; mine && i < p->marks; i++) {
        if (p->mark[i].epoch == epoch) {
            (*n)++;
            rank += &p->mark[i] != mine && before(&p->mark[i], mine, p->options.direction);
        }
    }
    return mine ? rank : -1;
}

/* A member of the best share that is still here, drawn evenly; NULL: none but the trial itself. */
static const struct member *choose_parent(ho_population *p, int64_t trial, int epoch, int share)
{
    const struct member *best[64];
    uint32_t count = 0;
    for (int i = 0; i < p->members && count < 64; i++) {
        int n = 0;
        const struct member *m = &p->member[i];
        int rank = m->here && m->trial != trial ? rank_of(p, m->trial, epoch, &n) : -1;
        if (rank >= 0 && rank < share) {
            best[count++] = m;
        }
    }
    if (count == 0) {
        return NULL;
    }
    return best[ho_rng_below(draw(&p->options, trial, epoch, DRAW_PARENT, 0).v[0], count)];
}

bool ho_population_next(ho_population *p, int64_t *trial, int64_t *parent, int *epoch,
                        const double **config)
{
    for (int i = 0; i < p->members; i++) {
        struct member *m = &p->member[i];
        if (!m->here || m->decided == m->epoch) {
            continue;
        }
        m->decided = m->epoch;
        int n = 0;
        int rank = rank_of(p, m->trial, m->epoch, &n);
        int share = (int)ceil(p->options.quantile * n);
        if (n < 2 || rank < n - share || rank < share) {
            continue;
        }
        const struct member *from = choose_parent(p, m->trial, m->epoch, share);
        if (!from) {
            continue;
        }
        for (int k = 0; k < p->space->count; k++) {
            if (m->may_change[k]) {
                m->config[k] = from->config[k];
            }
        }
        ho_population_explore(p->space, &p->options, m->may_change, m->trial, m->epoch, m->config);
        *trial = m->trial;
        *parent = from->trial;
        *epoch = m->epoch;
        *config = m->config;
        return true;
    }
    return false;
}

static double drawn_anew(const ho_param *param, double u)
{
    if (param->kind == HO_PARAM_CHOICE) {
        double index = floor(u * param->choice_count);
        return index < param->choice_count ? index : param->choice_count - 1;
    }
    return param->log ? param->low * pow(param->high / param->low, u)
                      : param->low + u * (param->high - param->low);
}

static double perturbed(const ho_param *param, double value, double factor, bool up)
{
    if (param->kind == HO_PARAM_CHOICE) {
        return value;
    }
    double moved = up ? value * factor : value / factor;
    double least = param->step > 0.0 ? param->step : param->kind == HO_PARAM_INT ? 1.0 : 0.0;
    if (fabs(moved - value) < least) {
        moved = up ? value + least : value - least;
    }
    return moved;
}

void ho_population_explore(const ho_space *space, const ho_population_options *options,
                           const bool *may_change, int64_t trial, int epoch, double *config)
{
    for (int i = 0; i < space->count; i++) {
        if (!may_change[i] || isnan(config[i])) {
            continue;
        }
        const ho_param *param = &space->param[i];
        ho_rng4 r = draw(options, trial, epoch, DRAW_EXPLORE, (uint32_t)i);
        double value = (double)ho_rng_float(r.v[0]) < options->resample
                           ? drawn_anew(param, ho_rng_double(r.v[1], r.v[2]))
                           : perturbed(param, config[i], options->perturb, r.v[3] & 1);
        config[i] = ho_param_snap(param, value);
    }
}
