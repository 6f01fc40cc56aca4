/* SPDX-License-Identifier: Apache-2.0
 * Makes a study's database without training: make_study STUDY.toml DB TRIALS. Tests of commands,
 * views and queries read it; tests/system/made_study.py says in Python what must be found there.
 *
 * Trial n, seed 0: pruned when n % 10 == 7, failed when n % 10 == 9, else complete; infeasible by 1
 * when n % 10 == 3. Objective and Sharpe ratio: value(n) = (n * 37 % 1000) / 500 - 1, in fold f
 * plus 0.1 (2 f - 1). Session returns: 40 a fold, return(n, i) = (value(n) + 2 sin((n + 1) (i +
 * 1))) / 1000 for session i of the joined series. Parameter j: the fraction of n *
 * 0.618033988749895 + 0.37 j. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "coordinator/setup.h"
#include "coordinator/store.h"

enum { SESSIONS = 40, EPOCH_TRIALS = 20, EPOCHS = 3, WORKERS = 2 };
static const int64_t second_ns = 1000000000, start_ns = INT64_C(1700000000) * 1000000000;

static void must(ho_status rc, const ho_err *err, const char *what)
{
    if (rc != HO_OK) {
        (void)fprintf(stderr, "make_study: %s: %s\n", what, err->text);
        exit(1);
    }
}

static double value_of(int64_t n)
{
    return (double)(n * 37 % 1000) / 500.0 - 1.0;
}

static ho_trial_state state_of(int64_t n)
{
    return n % 10 == 7 ? HO_TRIAL_PRUNED : n % 10 == 9 ? HO_TRIAL_FAILED : HO_TRIAL_COMPLETE;
}

static void fill_config(const ho_space *space, int64_t n, double *config)
{
    for (int j = 0; j < space->count; j++) {
        const ho_param *p = &space->param[j];
        double u = fmod((double)n * 0.618033988749895 + 0.37 * j, 1.0);
        config[j] = p->kind == HO_PARAM_CHOICE ? floor(u * p->choice_count)
                                               : p->low + u * (p->high - p->low);
    }
    ho_space_canonical(space, config);
}

static void fill_metrics(ho_metric_set *m, int64_t n, double sharpe)
{
    memset(m, 0, sizeof *m);
    m->value[HO_METRIC_SHARPE] = sharpe;
    m->value[HO_METRIC_TOTAL_RETURN] = sharpe / 10.0;
    m->value[HO_METRIC_TOTAL_PNL] = sharpe * 1e4;
    m->value[HO_METRIC_MAX_DRAWDOWN] = -0.05 - 0.001 * (double)(n % 7);
    m->value[HO_METRIC_TRADES] = (double)(20 + n % 5);
}

static void put_epochs(ho_store *store, int64_t n)
{
    for (int e = 1; e <= EPOCHS; e++) {
        ho_epoch_stat stat = {.epoch = e, .experiences = 100, .updates = 10, .loss_mean = 1.0 / e};
        stat.reward_mean = (double)n + e;
        (void)ho_store_put_epoch(store, n, -1, -1, &stat, value_of(n) * e / EPOCHS);
        ho_report_row report = {.number = n,
                                .step = e,
                                .now_ns = start_ns + n,
                                .objectives = 1,
                                .value = {value_of(n) * e / EPOCHS},
                                .decided = e == EPOCHS,
                                .rung = 1,
                                .competitors = n,
                                .threshold = 0.5,
                                .verdict = state_of(n) == HO_TRIAL_PRUNED ? "prune" : "keep",
                                .why = "made"};
        (void)ho_store_put_report(store, &report);
    }
}

static void put_trial(ho_store *store, const ho_setup *setup, int64_t n)
{
    const ho_space *space = &setup->study->space;
    int folds = setup->folds.count;
    double *config = (double *)calloc((size_t)space->count + 1, sizeof *config);
    double *returns = (double *)calloc((size_t)(folds * SESSIONS), sizeof *returns);
    ho_window_result *window = (ho_window_result *)calloc((size_t)folds + 1, sizeof *window);
    double violation = n % 10 == 3 ? 1.0 : 0.0;
    ho_trial_state state = state_of(n);

    if (!config || !returns || !window) {
        exit(1);
    }
    fill_config(space, n, config);
    for (int i = 0; i < folds * SESSIONS; i++) {
        returns[i] = (value_of(n) + 2.0 * sin((double)(n + 1) * (double)(i + 1))) / 1000.0;
    }
    for (int f = 0; f <= folds; f++) {
        bool joined = f == folds;
        window[f] = (ho_window_result){.fold = joined ? -1 : f,
                                       .random_percentile = NAN,
                                       .sessions = joined ? 0 : SESSIONS,
                                       .session_return = joined ? NULL : returns + f * SESSIONS};
        fill_metrics(&window[f].metrics, n, value_of(n) + (joined ? 0.0 : 0.1 * (2 * f - 1)));
    }
    ho_trial_new row = {.number = n,
                        .parent = -1,
                        .now_ns = start_ns + n * second_ns,
                        .seeds = 1,
                        .bracket = -1,
                        .config = config,
                        .asked_after = n};
    ho_trial_result result = {.number = n,
                              .attempt = 1,
                              .state = state,
                              .objectives = 1,
                              .value = {state == HO_TRIAL_FAILED ? NAN : value_of(n)},
                              .constraints = 1,
                              .constraint = &violation,
                              .violation = violation,
                              .told_order = n + 1,
                              .worker = 1 + n % WORKERS,
                              .finished_ns = start_ns + (n + 2) * second_ns,
                              .epochs = EPOCHS,
                              .experiences = 1000,
                              .updates = 100,
                              .train_s = 1.5,
                              .fail_class = state == HO_TRIAL_FAILED ? "oom" : NULL,
                              .fail_reason = state == HO_TRIAL_FAILED ? "made" : NULL,
                              .windows = state == HO_TRIAL_COMPLETE ? folds + 1 : 0,
                              .window = window};
    (void)ho_store_put_trial(store, space, &row);
    (void)ho_store_put_lease(store, n, 1, 1 + n % WORKERS, start_ns + (n + 1) * second_ns);
    (void)ho_store_put_result(store, &result);
    if (n < EPOCH_TRIALS) {
        put_epochs(store, n);
    }
    free(window);
    free(returns);
    free(config);
}

static void put_baselines(ho_store *store, int folds)
{
    static const struct {
        const char *policy;
        int seed;
        double sharpe;
    } row[] = {{"buy_and_hold", 0, 0.5}, {"flat", 0, 0.0}, {"random", 0, -0.4}, {"random", 1, 0.2}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        for (int f = -1; f < folds; f++) {
            ho_window_result window = {.fold = f, .seed = row[i].seed, .random_percentile = NAN};
            fill_metrics(&window.metrics, 0, row[i].sharpe);
            (void)ho_store_put_baseline(store, row[i].policy, &window);
        }
    }
}

static ho_store *make_file(const char *path, const ho_setup *setup, int64_t trials)
{
    const ho_study *study = setup->study;
    ho_store_options options = ho_store_defaults();
    ho_store *store = NULL;
    ho_err err = {0};
    const char *constraint[] = {"trades >= 1"};
    char *json = ho_setup_settings_text(study->settings);
    ho_store_study s = {.name = study->name,
                        .uuid = "0123456789abcdef0123456789abcdef",
                        .seed = 7,
                        .trials = trials,
                        .toml = study->text,
                        .toml_path = study->source,
                        .settings_json = json,
                        .data_path = setup->file[0].path,
                        .data_sha256 = setup->bars.sha256,
                        .bars = setup->bars.count,
                        .first_bar_ns = setup->bars.open_ns[setup->warmup],
                        .last_bar_ns = setup->bars.open_ns[setup->bars.count - 1],
                        .sessions_per_year = 252,
                        .initial_capital = 1e5,
                        .objectives = 1,
                        .metric = {"sharpe"},
                        .direction = {1},
                        .aggregate = "stitched",
                        .constraints = 1,
                        .constraint = constraint,
                        .folds = &setup->folds,
                        .open_ns = setup->bars.open_ns,
                        .space = &study->space,
                        .now_ns = start_ns};
    options.create = true;
    must(ho_store_open(&store, path, &options, &err), &err, path);
    must(ho_store_create_study(store, &s, &err), &err, "study");
    must(ho_store_make_views(store, &err), &err, "views");
    cJSON_free(json);
    return store;
}

int main(int argc, char **argv)
{
    ho_setup setup;
    ho_err err = {0};
    if (argc != 4) {
        (void)fprintf(stderr, "usage: make_study STUDY.toml DB TRIALS\n");
        return 1;
    }
    int64_t trials = strtoll(argv[3], NULL, 10);
    must(ho_setup_load(&setup, argv[1], NULL, &err), &err, argv[1]);
    ho_store *store = make_file(argv[2], &setup, trials);
    for (int w = 1; w <= WORKERS; w++) {
        char name[32];
        (void)snprintf(name, sizeof name, "made-%d", w);
        ho_worker_row row = {.id = w,
                             .name = name,
                             .host = "made",
                             .device = "cpu",
                             .backend = "cpu",
                             .version = "0",
                             .pid = w,
                             .lanes = 8,
                             .now_ns = start_ns,
                             .local = true};
        (void)ho_store_put_worker(store, &row);
    }
    put_baselines(store, setup.folds.count);
    for (int64_t n = 0; n < trials; n++) {
        put_trial(store, &setup, n);
        must(ho_store_flush(store, n + 1, n % 1000 == 999, &err), &err, "flush");
    }
    (void)ho_store_put_worker_left(store, 2, "lost", trials / WORKERS, start_ns + 60 * second_ns);
    (void)ho_store_put_event(store, start_ns, "start", -1, 0, -1, "made");
    (void)ho_store_put_study_state(store, "finished", "trials", trials, start_ns);
    must(ho_store_flush(store, 1, true, &err), &err, "flush");
    ho_store_close(&store);
    ho_setup_free(&setup);
    return 0;
}
