/* SPDX-License-Identifier: Apache-2.0
 * The frame round every kind of sampler: the table of kinds, the queue, replicates, duplicates,
 * requirements, deterministic order. The kinds themselves are one file each. */
#include "coordinator/search/sampler.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/search/kind.h"
#include "coordinator/search/walk.h"

enum { PROPOSE_TRIES = 16, PERTURB_TRIES = 64 };

static const ho_sampler_kind *const KINDS[] = {
    &ho_kind_tpe,   &ho_kind_random, &ho_kind_grid,  &ho_kind_sobol,
    &ho_kind_cmaes, &ho_kind_gp,     &ho_kind_nsga2,
};
enum { KIND_COUNT = sizeof KINDS / sizeof KINDS[0] };

/* A tell that deterministic order holds back. */
typedef struct held_tell {
    int64_t number;
    ho_told told;
} held_tell;

struct ho_sampler {
    ho_search_context context;
    const ho_sampler_kind *kind;
    void *self;
    ho_dim *dim;
    ho_history history;
    ho_walk walk;  /* when only few configurations are left */
    double *queue; /* [queue_count, P], taken from queue_head */
    int64_t queue_head, queue_count, queue_room;
    double *work; /* [P] */
    held_tell *held;
    int64_t held_count, held_room;
    int64_t released; /* deterministic: trials below this number have been told to the kind */
};

ho_sampler_options ho_sampler_defaults(void)
{
    ho_sampler_options options = {.kind = "tpe",
                                  .objectives = 1,
                                  .direction = {1, 1, 1, 1, 1, 1, 1, 1},
                                  .startup = -1,
                                  .candidates = -1,
                                  .population = -1,
                                  .sigma0 = 1.0 / 6.0,
                                  .crossover = 0.9,
                                  .mutation = -1.0,
                                  .replicates = 1,
                                  .parallel = 1};
    return options;
}

int ho_sampler_kind_count(void)
{
    return KIND_COUNT;
}

const char *ho_sampler_kind_name(int i)
{
    return KINDS[i]->name;
}

const char *ho_sampler_kind_help(int i)
{
    return KINDS[i]->help;
}

void ho_why_add(ho_why *why, const char *format, ...)
{
    va_list args;
    int n;

    if (why->used >= sizeof why->text - 1) {
        return;
    }
    va_start(args, format);
    n = vsnprintf(why->text + why->used, sizeof why->text - why->used, format, args);
    va_end(args);
    if (n > 0) {
        why->used += (size_t)n;
    }
    if (why->used >= sizeof why->text) {
        why->used = sizeof why->text - 1;
    }
}

static ho_status find_kind(const char *name, const ho_sampler_kind **out, ho_err *err)
{
    ho_why names = {.used = 0};

    for (int i = 0; i < KIND_COUNT; i++) {
        if (name && strcmp(name, KINDS[i]->name) == 0) {
            *out = KINDS[i];
            return HO_OK;
        }
        ho_why_add(&names, "%s%s", i ? ", " : "", KINDS[i]->name);
    }
    return ho_err_set(err, HO_ECONFIG, "sampler.kind: there is no \"%s\"; there are %s",
                      name ? name : "", names.text);
}

static ho_status check_options(const ho_sampler_options *options, ho_err *err)
{
    if (options->objectives < 1 || options->objectives > HO_OBJECTIVES_MAX) {
        return ho_err_set(err, HO_ECONFIG, "study.objective: 1 to %d objectives, not %d",
                          HO_OBJECTIVES_MAX, options->objectives);
    }
    for (int m = 0; m < options->objectives; m++) {
        if (options->direction[m] != 1 && options->direction[m] != -1) {
            return ho_err_set(err, HO_ECONFIG, "study.objective: objective %d has no direction", m);
        }
    }
    if (options->replicates < 1) {
        return ho_err_set(err, HO_ECONFIG, "sampler.replicates: at least 1, not %d",
                          options->replicates);
    }
    if (options->cost && (!options->kind || strcmp(options->kind, "tpe") != 0)) {
        return ho_err_set(err, HO_ECONFIG, "sampler.cost goes with kind = \"tpe\" only");
    }
    if (options->deterministic && options->parallel < 1) {
        return ho_err_set(err, HO_ECONFIG, "study.parallel: at least 1, not %d", options->parallel);
    }
    return HO_OK;
}

ho_status ho_sampler_create(ho_sampler **out, const ho_space *space,
                            const ho_sampler_options *options, ho_err *err)
{
    ho_status rc = HO_ENOMEM;
    size_t n = space->count > 0 ? (size_t)space->count : 1;
    ho_sampler *s = NULL;

    *out = NULL;
    if ((rc = check_options(options, err)) != HO_OK) {
        goto out;
    }
    if (!(s = calloc(1, sizeof *s)) || !(s->dim = calloc(n, sizeof *s->dim)) ||
        !(s->work = calloc(n, sizeof *s->work))) {
        rc = ho_err_set(err, HO_ENOMEM, "out of memory for the sampler");
        goto out;
    }
    if ((rc = find_kind(options->kind, &s->kind, err)) != HO_OK) {
        goto out;
    }
    if ((rc = ho_history_init(&s->history, space, options, err)) != HO_OK) {
        goto out;
    }
    for (int p = 0; p < space->count; p++) {
        s->dim[p] = ho_dim_of(&space->param[p]);
    }
    if ((rc = ho_walk_init(&s->walk, space, s->dim, options->seed, true, err)) != HO_OK) {
        goto out;
    }
    s->context.space = space;
    s->context.dim = s->dim;
    s->context.history = &s->history;
    s->context.options = *options;
    rc = s->kind->create(&s->self, &s->context, err);
out:
    if (rc == HO_OK) {
        *out = s;
    } else {
        ho_sampler_destroy(&s);
    }
    return rc;
}

void ho_sampler_destroy(ho_sampler **sampler)
{
    ho_sampler *s = *sampler;

    if (!s) {
        return;
    }
    if (s->kind) {
        s->kind->destroy(s->self);
    }
    ho_history_free(&s->history);
    ho_walk_free(&s->walk);
    free(s->dim);
    free(s->work);
    free(s->queue);
    free(s->held);
    free(s);
    *sampler = NULL;
}

static void copy_config(const ho_sampler *s, double *to, const double *from)
{
    if (s->history.params > 0) {
        memcpy(to, from, (size_t)s->history.params * sizeof *to);
    }
}

/* Fills what is open, makes it canonical; whether it is legal. */
static bool finish_config(ho_sampler *s, int64_t number, int attempt, double *config)
{
    ho_draw draw = ho_draw_start(s->context.options.seed, number, HO_DRAW_FILL, attempt);

    ho_space_canonical(s->context.space, config);
    ho_dim_fill(s->context.space, s->dim, &draw, config);
    return ho_space_check(s->context.space, config, NULL) == HO_OK;
}

/* Changes one or two active parameters: a neighbour on the scale, or another choice. */
static void perturb(const ho_sampler *s, ho_draw *draw, int strength, double *config)
{
    const ho_space *space = s->context.space;
    int changes = 1 + strength / 16;

    for (int change = 0; change < changes && space->count > 0; change++) {
        int p = (int)ho_draw_below(draw, space->count);
        const ho_dim *dim = &s->dim[p];

        if (isnan(config[p])) {
            continue;
        }
        if (dim->choices > 0) {
            config[p] = (double)ho_draw_below(draw, dim->choices);
        } else if (dim->stepped) {
            double step = space->param[p].step > 0.0 ? space->param[p].step : 1.0;
            double moves = 1.0 + (double)ho_draw_below(draw, 1 + strength / 4);

            config[p] += ho_draw_unit(draw) < 0.5 ? -step * moves : step * moves;
            config[p] = ho_param_snap(dim->param, config[p]);
        } else {
            double unit = ho_dim_unit(dim, config[p]);

            unit += 0.01 * (1 + strength) * ho_draw_normal(draw);
            config[p] = ho_dim_from_unit(dim, fmin(fmax(unit, 0.0), 1.0));
        }
    }
}

/* A legal configuration that was not seen: propose, perturb, walk. */
static ho_status propose_new(ho_sampler *s, int64_t number, double *config, ho_why *why,
                             ho_err *err)
{
    ho_status rc;
    bool legal = false;
    ho_draw draw;

    for (int attempt = 0; attempt < PROPOSE_TRIES; attempt++) {
        memset(why, 0, sizeof *why);
        rc = s->kind->propose(s->self, number, attempt, config, why, err);
        if (rc != HO_OK) {
            return rc;
        }
        legal = finish_config(s, number, attempt, config);
        if (legal && !ho_history_seen(&s->history, config)) {
            if (attempt > 0) {
                ho_why_add(why, "; draw %d, earlier ones repeated", attempt + 1);
            }
            return HO_OK;
        }
    }
    draw = ho_draw_start(s->context.options.seed, number, HO_DRAW_PROPOSE, PROPOSE_TRIES);
    copy_config(s, s->work, config);
    for (int attempt = 0; attempt < PERTURB_TRIES; attempt++) {
        copy_config(s, config, s->work);
        perturb(s, &draw, attempt, config);
        if (finish_config(s, number, PROPOSE_TRIES + attempt, config) &&
            !ho_history_seen(&s->history, config)) {
            ho_why_add(why, "; moved off a repeat or a requirement (%d draws)", attempt + 1);
            return HO_OK;
        }
    }
    if ((rc = ho_walk_next_unseen(&s->walk, &s->history, config, err)) == HO_OK) {
        memset(why, 0, sizeof *why);
        ho_why_add(why, "walk: the next untried configuration, few are left");
    }
    return rc;
}

/* The head of the queue, completed by a proposal where the user left it open. */
static ho_status take_queued(ho_sampler *s, int64_t number, double *config, ho_why *why,
                             ho_err *err)
{
    const ho_space *space = s->context.space;
    const double *head = &s->queue[s->queue_head * s->history.params];
    ho_status rc = HO_OK;
    int open = 0;

    copy_config(s, config, head);
    ho_space_canonical(space, config);
    for (int p = 0; p < space->count; p++) {
        open += isnan(config[p]) && ho_space_active(space, config, p);
    }
    for (int attempt = 0; open > 0 && attempt < PROPOSE_TRIES; attempt++) {
        memset(why, 0, sizeof *why);
        rc = s->kind->propose(s->self, number, attempt, s->work, why, err);
        if (rc != HO_OK && rc != HO_EDONE) {
            return rc;
        }
        for (int p = 0; p < space->count; p++) {
            config[p] = isnan(head[p]) ? (rc == HO_OK ? s->work[p] : NAN) : head[p];
        }
        if (finish_config(s, number, attempt, config)) {
            break;
        }
    }
    memset(why, 0, sizeof *why);
    ho_why_add(why, "enqueued by the user");
    if (open > 0) {
        ho_why_add(why, "; %d open parameters from %s", open, s->kind->name);
    }
    s->queue_head++;
    return ho_space_check(space, config, err);
}

static ho_status remember(ho_sampler *s, int64_t number, const double *config, ho_err *err)
{
    int64_t row;
    ho_status rc = ho_history_add(&s->history, number, config, &row, err);

    if (rc == HO_OK && s->kind->asked) {
        rc = s->kind->asked(s->self, row, err);
    }
    return rc;
}

static ho_status tell_now(ho_sampler *s, int64_t number, const ho_told *told, ho_err *err)
{
    bool finished;
    int64_t row;
    ho_status rc = ho_history_tell(&s->history, number, told, &row, &finished, err);

    if (rc != HO_OK || !finished) {
        return rc;
    }
    if (s->history.row[row].state == HO_TOLD_CANCELLED) {
        ho_walk_restart(&s->walk);
    }
    return s->kind->told ? s->kind->told(s->self, row, err) : HO_OK;
}

static int64_t find_held(const ho_sampler *s, int64_t number)
{
    for (int64_t i = 0; i < s->held_count; i++) {
        if (s->held[i].number == number) {
            return i;
        }
    }
    return -1;
}

/* Deterministic: before ask(number) exactly the tells of 0 ... number-1-parallel count. */
static ho_status release_held(ho_sampler *s, int64_t number, ho_err *err)
{
    int64_t until = number - s->context.options.parallel;

    for (; s->released < until; s->released++) {
        int64_t i = find_held(s, s->released);
        ho_status rc;

        if (i < 0) {
            return ho_err_set(err, HO_EAGAIN, "trial %lld waits for the result of trial %lld",
                              (long long)number, (long long)s->released);
        }
        rc = tell_now(s, s->released, &s->held[i].told, err);
        if (rc != HO_OK) {
            return rc;
        }
        s->held[i] = s->held[--s->held_count];
    }
    return HO_OK;
}

/* The row whose configuration a further replicate repeats, or -1. */
static int64_t replicate_of(const ho_sampler *s, int64_t number)
{
    int replicates = s->context.options.replicates;
    int64_t row = ho_history_row_of(&s->history, number - number % replicates);

    return number % replicates != 0 && row >= 0 && s->history.row[row].asked < replicates ? row
                                                                                          : -1;
}

static ho_status check_number(const ho_sampler *s, int64_t number, ho_err *err)
{
    if (number < 0) {
        return ho_err_set(err, HO_EINVAL, "trial number %lld is negative", (long long)number);
    }
    if (ho_history_row_of(&s->history, number) >= 0) {
        return ho_err_set(err, HO_EINVAL, "trial %lld was asked before", (long long)number);
    }
    return HO_OK;
}

ho_status ho_sampler_ask(ho_sampler *s, int64_t number, double *config, char *why, ho_err *err)
{
    ho_status rc = HO_OK;
    ho_why text = {.used = 0};
    double *draft = NULL;
    int64_t row;

    if ((rc = check_number(s, number, err)) != HO_OK) {
        return rc;
    }
    if (s->context.options.deterministic && (rc = release_held(s, number, err)) != HO_OK) {
        return rc;
    }
    if ((row = replicate_of(s, number)) >= 0) {
        if ((rc = ho_history_join(&s->history, number, row, err)) != HO_OK) {
            return rc;
        }
        copy_config(s, config, ho_history_config(&s->history, row));
        ho_why_add(&text, "replicate of trial %lld", (long long)s->history.row[row].number);
        goto out;
    }
    draft = malloc((size_t)(s->history.params + 1) * sizeof *draft);
    if (!draft) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for a proposal");
    }
    rc = s->queue_head < s->queue_count ? take_queued(s, number, draft, &text, err)
                                        : propose_new(s, number, draft, &text, err);
    if (rc != HO_OK || (rc = remember(s, number, draft, err)) != HO_OK) {
        goto out;
    }
    copy_config(s, config, draft);
out:
    if (rc == HO_OK && why) {
        memcpy(why, text.text, sizeof text.text);
    }
    free(draft);
    return rc;
}

ho_status ho_sampler_resume(ho_sampler *s, int64_t number, const double *config, ho_err *err)
{
    ho_status rc;
    int64_t row;

    if ((rc = check_number(s, number, err)) != HO_OK) {
        return rc;
    }
    if ((rc = ho_space_check(s->context.space, config, err)) != HO_OK) {
        return rc;
    }
    if (s->context.options.deterministic && (rc = release_held(s, number, err)) != HO_OK) {
        return rc;
    }
    if ((row = replicate_of(s, number)) >= 0) {
        return ho_history_join(&s->history, number, row, err);
    }
    if (s->queue_head < s->queue_count) {
        const double *head = &s->queue[s->queue_head * s->history.params];
        bool same = true;

        for (int p = 0; p < s->history.params; p++) {
            same = same && (isnan(head[p]) || isnan(config[p]) || head[p] == config[p]);
        }
        s->queue_head += same;
    }
    return remember(s, number, config, err);
}

ho_status ho_sampler_tell(ho_sampler *s, int64_t number, const ho_told *told, ho_err *err)
{
    if (!s->context.options.deterministic) {
        return tell_now(s, number, told, err);
    }
    if (ho_history_row_of(&s->history, number) < 0) {
        return ho_err_set(err, HO_EINVAL, "trial %lld was never asked", (long long)number);
    }
    if (number < s->released || find_held(s, number) >= 0) {
        return ho_err_set(err, HO_EINVAL, "trial %lld was told before", (long long)number);
    }
    if (s->held_count == s->held_room) {
        int64_t room = s->held_room ? 2 * s->held_room : 16;
        held_tell *held = realloc(s->held, (size_t)room * sizeof *held);

        if (!held) {
            return ho_err_set(err, HO_ENOMEM, "out of memory for a result");
        }
        s->held = held;
        s->held_room = room;
    }
    s->held[s->held_count].number = number;
    s->held[s->held_count++].told = *told;
    return HO_OK;
}

ho_status ho_sampler_enqueue(ho_sampler *s, const double *config, ho_err *err)
{
    const ho_space *space = s->context.space;
    int params = s->history.params;
    double *slot;

    for (int p = 0; p < params; p++) {
        char text[64];

        if (isnan(config[p]) || ho_param_snap(&space->param[p], config[p]) == config[p]) {
            continue;
        }
        snprintf(text, sizeof text, "%.17g", config[p]);
        return ho_err_set(err, HO_EINVAL, "enqueue: %s = %s is not in the search space",
                          space->param[p].name, text);
    }
    if (s->queue_count == s->queue_room) {
        int64_t room = s->queue_room ? 2 * s->queue_room : 16;
        double *queue = realloc(s->queue, (size_t)(room * (params + 1)) * sizeof *queue);

        if (!queue) {
            return ho_err_set(err, HO_ENOMEM, "out of memory for the queue");
        }
        s->queue = queue;
        s->queue_room = room;
    }
    slot = &s->queue[s->queue_count * params];
    copy_config(s, slot, config);
    s->queue_count++;
    return HO_OK;
}

ho_status ho_sampler_warm(ho_sampler *s, const double *config, const ho_told *told, ho_err *err)
{
    int64_t row;
    ho_status rc = ho_space_check(s->context.space, config, err);

    if (rc != HO_OK) {
        return rc;
    }
    if (told->state == HO_TOLD_PENDING || told->state == HO_TOLD_CANCELLED) {
        return ho_err_set(err, HO_EINVAL, "warm start: an unfinished trial teaches nothing");
    }
    if ((rc = ho_history_add(&s->history, -1, config, &row, err)) != HO_OK) {
        return rc;
    }
    ho_history_settle(&s->history, row, told);
    return s->kind->told ? s->kind->told(s->self, row, err) : HO_OK;
}

int64_t ho_sampler_pending(const ho_sampler *s)
{
    return s->history.pending;
}
