/* SPDX-License-Identifier: Apache-2.0
 * hyperopt replay DB: asks the sampler again for every trial, told what it had been told in the
 * same order, and compares each answer with the stored parameters bit for bit. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/commands.h"
#include "coordinator/search_options.h"
#include "coordinator/setup.h"
#include "coordinator/store.h"
#include "coordinator/warm_start.h"

typedef struct past_trial {
    int64_t number, ask; /* ask: as which proposal the sampler knows it; -1: it does not */
    int64_t asked_after, told_order;
    ho_told told;
    bool fits;
    double *config; /* [P] */
} past_trial;

typedef struct past {
    past_trial *trial; /* [count] by number */
    int64_t count, room, asks;
    int params;
    ho_err *err;
} past;

static void past_free(past *p)
{
    for (int64_t i = 0; i < p->count; i++) {
        free(p->trial[i].config);
    }
    free(p->trial);
}

static ho_status remember(const ho_stored_trial *t, void *user)
{
    past *p = (past *)user;
    size_t bytes = (size_t)(p->params + 1) * sizeof(double);

    if (p->count == p->room) {
        int64_t room = p->room ? 2 * p->room : 256;
        past_trial *bigger = (past_trial *)realloc(p->trial, (size_t)room * sizeof *bigger);
        if (!bigger) {
            return ho_err_set(p->err, HO_ENOMEM, "out of memory");
        }
        p->trial = bigger;
        p->room = room;
    }
    past_trial *o = &p->trial[p->count];
    memset(o, 0, sizeof *o);
    if (!(o->config = (double *)malloc(bytes))) {
        return ho_err_set(p->err, HO_ENOMEM, "out of memory");
    }
    memcpy(o->config, t->config, bytes - sizeof(double));
    p->count++;
    o->number = t->number;
    o->ask = t->source == HO_SOURCE_RETEST ? -1 : p->asks++;
    o->asked_after = t->asked_after;
    o->told_order = t->told_order;
    o->fits = t->fits;
    o->told.state = t->state == HO_TRIAL_COMPLETE ? HO_TOLD_COMPLETE
                    : t->state == HO_TRIAL_PRUNED ? HO_TOLD_PRUNED
                                                  : HO_TOLD_FAILED;
    memcpy(o->told.value, t->value, sizeof o->told.value);
    o->told.violation = isnan(t->violation) ? 0.0 : t->violation;
    o->told.step = t->epochs;
    o->told.seconds = t->train_s;
    return HO_OK;
}

static int by_told_order(const void *a, const void *b)
{
    const past_trial *x = *(const past_trial *const *)a, *y = *(const past_trial *const *)b;
    return (x->told_order > y->told_order) - (x->told_order < y->told_order);
}

static bool same_bits(const double *a, const double *b, int n)
{
    for (int i = 0; i < n; i++) {
        if (isnan(a[i]) ? !isnan(b[i]) : memcmp(&a[i], &b[i], sizeof a[i]) != 0) {
            return false;
        }
    }
    return true;
}

static void print_difference(const ho_space *space, int64_t number, const double *stored,
                             const double *proposed)
{
    (void)printf("Trial %" PRId64 " differs:\n", number);
    for (int p = 0; p < space->count; p++) {
        char was[128] = "inactive", now[128] = "inactive";
        if (same_bits(&stored[p], &proposed[p], 1)) {
            continue;
        }
        if (!isnan(stored[p])) {
            (void)ho_param_print(&space->param[p], stored[p], was, sizeof was);
        }
        if (!isnan(proposed[p])) {
            (void)ho_param_print(&space->param[p], proposed[p], now, sizeof now);
        }
        (void)printf("  %s: stored %s, proposed now %s\n", space->param[p].name, was, now);
    }
}

/* Asks and tells in the stored order. *differ: the trial whose proposal is another, or -1. */
static ho_status replay(ho_sampler *sampler, const ho_space *space, const past *p,
                        past_trial **told, int64_t told_count, int64_t *compared, int64_t *differ,
                        ho_err *err)
{
    double *config = (double *)calloc((size_t)p->params + 1, sizeof *config);
    ho_status rc =
        config ? HO_OK : ho_err_set(err, HO_ENOMEM, "out of memory for replaying the study");
    int64_t next = 0;

    *differ = -1;
    for (int64_t n = 0; n < p->count && rc == HO_OK && *differ < 0; n++) {
        const past_trial *t = &p->trial[n];
        while (next < told_count && told[next]->told_order <= t->asked_after &&
               told[next]->number < n && rc == HO_OK) {
            const past_trial *o = told[next++];
            if (o->ask >= 0 && o->fits) {
                rc = ho_sampler_tell(sampler, o->ask, &o->told, err);
            }
        }
        if (rc != HO_OK || t->ask < 0 || !t->fits) {
            continue;
        }
        rc = ho_sampler_ask(sampler, t->ask, config, NULL, err);
        if (rc == HO_OK && !same_bits(config, t->config, p->params)) {
            print_difference(space, t->number, t->config, config);
            *differ = t->number;
        }
        *compared += rc == HO_OK && *differ < 0;
    }
    free(config);
    return rc;
}

static ho_status run_replay(const char *path, int64_t *compared, int64_t *differ, ho_err *err)
{
    ho_store *store = NULL;
    ho_store_info info = {0};
    ho_study *study = NULL;
    ho_sampler *sampler = NULL;
    past p = {.err = err};
    past_trial **told = NULL;
    int64_t told_count = 0, tried = 0;
    ho_status rc;

    if ((rc = ho_store_open_read(&store, path, err)) != HO_OK ||
        (rc = ho_store_read_info(store, &info, err)) != HO_OK ||
        (rc = ho_setup_stored_study(&study, &info, err)) != HO_OK) {
        goto out;
    }
    if (ho_settings_i64(study->settings, HO_KEY_POPULATION_SIZE) > 0) {
        rc =
            ho_err_set(err, HO_EUNSUPPORTED,
                       "%s: a population changes its parameters while it trains; there is no order "
                       "of proposals to replay",
                       path);
        goto out;
    }
    ho_sampler_options options = ho_search_sampler_options(study, info.trials);
    p.params = study->space.count;
    if ((rc = ho_store_each_trial(store, &study->space, remember, &p, err)) != HO_OK ||
        (rc = ho_sampler_create(&sampler, &study->space, &options, err)) != HO_OK) {
        goto out;
    }
    for (int i = 0; i < study->enqueue_count && rc == HO_OK; i++) {
        rc = ho_sampler_enqueue(sampler, study->enqueue + (size_t)i * (size_t)p.params, err);
    }
    if (rc != HO_OK || (rc = ho_warm_start_tell(sampler, study, &tried, err)) != HO_OK) {
        goto out;
    }
    if (!(told = (past_trial **)calloc((size_t)p.count + 1, sizeof *told))) {
        rc = ho_err_set(err, HO_ENOMEM, "out of memory for replaying the study");
        goto out;
    }
    for (int64_t i = 0; i < p.count; i++) {
        if (p.trial[i].told_order > 0) {
            told[told_count++] = &p.trial[i];
        }
    }
    qsort(told, (size_t)told_count, sizeof *told, by_told_order);
    rc = replay(sampler, &study->space, &p, told, told_count, compared, differ, err);
out:
    free(told);
    past_free(&p);
    ho_sampler_destroy(&sampler);
    ho_study_free(&study);
    ho_store_info_free(&info);
    ho_store_close(&store);
    return rc;
}

int ho_cmd_replay(int argc, char **argv)
{
    ho_err err = {0};
    ho_arguments args;
    int64_t compared = 0, differ = -1;
    const ho_usage usage = {
        .name = "replay",
        .arguments = "DB",
        .about =
            "Asks the study's sampler again for every trial, told the same results in the same\n"
            "order, and compares each proposal with the stored parameters, bit for bit. It\n"
            "trains nothing and needs no market data. Exit code 0: the same; 5: different\n"
            "(another build, or settings changed between runs).\n",
        .examples = "  hyperopt replay quickstart.db\n",
        .min_arguments = 1,
        .max_arguments = 1,
    };
    ho_status rc = ho_usage_parse(&usage, argc, argv, &args);
    if (rc != HO_OK) {
        return ho_exit_code(rc);
    }
    if ((rc = run_replay(args.item[0], &compared, &differ, &err)) != HO_OK) {
        return ho_exit_report(&err);
    }
    if (differ >= 0) {
        (void)printf("%" PRId64 " proposals are the same, then trial %" PRId64 " is another.\n",
                     compared, differ);
        return HO_EXIT_WARNINGS;
    }
    (void)printf("All %" PRId64 " proposals are the same.\n", compared);
    return HO_EXIT_OK;
}
