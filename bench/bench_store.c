/* SPDX-License-Identifier: Apache-2.0
 * The store at size: trials written, a study opened, listed, read back. One line a figure.
 *     bench_store [TRIALS...]      default 10000 100000 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "coordinator/output.h"
#include "coordinator/store.h"
#include "study/study.h"

enum { PARAMS = 10, FOLDS = 4, SESSIONS = 60 };

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(ho_status rc, const ho_err *err, const char *what)
{
    if (rc != HO_OK) {
        (void)fprintf(stderr, "bench_store: %s: %s\n", what, err->text);
        exit(1);
    }
}

static void figure(const char *what, long trials, double value, const char *unit)
{
    (void)printf("store  %-28s trials=%-7ld %12.3f %s\n", what, trials, value, unit);
}

static ho_study *make_study(void)
{
    static const char toml[] = "[study]\nname = \"bench\"\n[data]\npath = \"none.csv\"\n[search]\n"
                               "\"dqn.learning_rate\" = { float = [1e-5, 3e-3], log = true }\n"
                               "\"dqn.gamma\" = { float = [0.9, 0.999] }\n"
                               "\"dqn.tau\" = { float = [0.001, 0.1] }\n"
                               "\"dqn.n_step\" = { int = [1, 8] }\n"
                               "\"dqn.huber_delta\" = { float = [0.1, 10] }\n"
                               "\"dqn.eps_end\" = { float = [0, 0.1] }\n"
                               "\"dqn.eps_share\" = { float = [0.1, 0.9] }\n"
                               "\"barriers.stop_loss\" = { float = [10, 80] }\n"
                               "\"barriers.profit_target\" = { float = [10, 80] }\n"
                               "\"dqn.double\" = { choice = [true, false] }\n";
    ho_study *study = NULL;
    ho_err err = {0};
    must(ho_study_parse(toml, sizeof toml - 1, "bench.toml", ".", &study, &err), &err, "study");
    return study;
}

static ho_store *create(const char *path, const ho_study *study, long trials)
{
    static ho_fold_plan folds;
    static const int64_t open_ns[4 * FOLDS];
    ho_store_options options = ho_store_defaults();
    ho_store *store = NULL;
    ho_err err = {0};
    folds.count = FOLDS;
    for (int f = 0; f < FOLDS; f++) {
        folds.fold[f] = (ho_fold){{0, 1}, {1, 2}, {2 + f, 3 + f}};
    }
    ho_store_study s = {.name = "bench",
                        .uuid = "0",
                        .trials = trials,
                        .toml = study->text,
                        .toml_path = "bench.toml",
                        .settings_json = "{}",
                        .data_path = "",
                        .data_sha256 = "",
                        .bars = 4 * FOLDS,
                        .sessions_per_year = 252,
                        .initial_capital = 1e6,
                        .objectives = 1,
                        .metric = {"sharpe"},
                        .direction = {1},
                        .aggregate = "stitched",
                        .folds = &folds,
                        .open_ns = open_ns,
                        .space = &study->space,
                        .now_ns = 1};
    options.create = true;
    must(ho_store_open(&store, path, &options, &err), &err, "create");
    must(ho_store_create_study(store, &s, &err), &err, "study");
    must(ho_store_make_views(store, &err), &err, "views");
    return store;
}

static void put(ho_store *store, const ho_study *study, long number)
{
    static double returns[SESSIONS];
    ho_window_result window[FOLDS + 1];
    double config[PARAMS];
    for (int i = 0; i < PARAMS; i++) {
        const ho_param *p = &study->space.param[i];
        double u = fmod((double)number * 0.6180339887 + 0.37 * i, 1.0);
        config[i] = p->kind == HO_PARAM_CHOICE ? (double)(number & 1)
                                               : ho_param_snap(p, p->low + u * (p->high - p->low));
    }
    memset(window, 0, sizeof window);
    for (int f = 0; f <= FOLDS; f++) {
        window[f].fold = f == FOLDS ? -1 : f;
        window[f].random_percentile = NAN;
        window[f].sessions = f == FOLDS ? 0 : SESSIONS;
        window[f].session_return = f == FOLDS ? NULL : returns;
        for (int m = 0; m < HO_METRIC_COUNT; m++) {
            window[f].metrics.value[m] = sin((double)(number * 31 + m * 7 + f));
        }
    }
    ho_trial_new row = {.number = number,
                        .parent = -1,
                        .now_ns = number,
                        .seeds = 1,
                        .bracket = -1,
                        .config = config,
                        .asked_after = number};
    ho_trial_result result = {.number = number,
                              .attempt = 1,
                              .state = HO_TRIAL_COMPLETE,
                              .objectives = 1,
                              .value = {window[FOLDS].metrics.value[0]},
                              .violation = NAN,
                              .told_order = number + 1,
                              .worker = -1,
                              .finished_ns = number,
                              .epochs = 40,
                              .train_s = 1.0,
                              .windows = FOLDS + 1,
                              .window = window};
    (void)ho_store_put_trial(store, &study->space, &row);
    (void)ho_store_put_lease(store, number, 1, -1, number);
    (void)ho_store_put_result(store, &result);
}

static ho_status count_trial(const ho_stored_trial *trial, void *user)
{
    *(long *)user += trial->fits;
    return HO_OK;
}

static double bytes_a_trial(ho_store *store, const char *tables, long trials)
{
    char sql[256];
    sqlite3_stmt *statement = NULL;
    double bytes = NAN;
    (void)snprintf(sql, sizeof sql, "SELECT sum(pgsize) FROM dbstat WHERE name IN (%s)", tables);
    if (sqlite3_prepare_v2(ho_store_db(store), sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        bytes = sqlite3_column_double(statement, 0) / (double)trials;
    }
    (void)sqlite3_finalize(statement);
    return bytes;
}

static void bench(long trials)
{
    char folder[] = "bench-store-XXXXXX", path[64], command[96];
    ho_store_options options = ho_store_defaults();
    ho_study *study = make_study();
    ho_err err = {0};
    long fitting = 0;

    if (!mkdtemp(folder)) {
        perror("bench_store");
        exit(1);
    }
    (void)snprintf(path, sizeof path, "%s/study.db", folder);
    ho_store *store = create(path, study, trials);
    double start = now_s();
    for (long i = 0; i < trials; i++) {
        put(store, study, i);
        must(ho_store_flush(store, (int64_t)(now_s() * 1e9), false, &err), &err, "flush");
    }
    must(ho_store_flush(store, 0, true, &err), &err, "flush");
    figure("write, commits included", trials, (double)trials / (now_s() - start), "trials/s");
    figure("trial and parameters", trials,
           bytes_a_trial(store,
                         "'trial','param','trial_value','trial_by_state','trial_by_hash',"
                         "'sqlite_autoindex_trial_1','trial_value_by_value'",
                         trials),
           "bytes/trial");
    ho_store_close(&store);

    start = now_s();
    must(ho_store_open_read(&store, path, &err), &err, "open");
    FILE *nowhere = fopen("/dev/null", "w");
    must(ho_output_query(nowhere, ho_store_db(store), "SELECT * FROM leaderboard LIMIT 10",
                         HO_OUTPUT_TABLE, NULL, &err),
         &err, "list");
    figure("open and list the best ten", trials, now_s() - start, "s");
    start = now_s();
    must(ho_output_query(nowhere, ho_store_db(store), "SELECT * FROM study_progress",
                         HO_OUTPUT_TABLE, NULL, &err),
         &err, "progress");
    figure("progress", trials, now_s() - start, "s");
    start = now_s();
    must(ho_output_query(nowhere, ho_store_db(store), "SELECT * FROM trial_wide", HO_OUTPUT_CSV,
                         NULL, &err),
         &err, "trial_wide");
    figure("all of trial_wide as CSV", trials, now_s() - start, "s");
    (void)fclose(nowhere);
    ho_store_close(&store);

    start = now_s();
    must(ho_store_open(&store, path, &options, &err), &err, "open");
    figure("open to resume", trials, now_s() - start, "s");
    start = now_s();
    must(ho_store_each_trial(store, &study->space, count_trial, &fitting, &err), &err, "read");
    figure("read all trials", trials, now_s() - start, "s");
    if (fitting != trials) {
        (void)fprintf(stderr, "bench_store: %ld of %ld trials read back\n", fitting, trials);
        exit(1);
    }
    ho_store_close(&store);
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    figure("largest memory so far", trials, (double)usage.ru_maxrss / 1024.0, "MB");
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    if (system(command) != 0) {
        (void)fprintf(stderr, "bench_store: %s is left behind\n", folder);
    }
    ho_study_free(&study);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        bench(10000);
        bench(100000);
    }
    for (int i = 1; i < argc; i++) {
        bench(strtol(argv[i], NULL, 10));
    }
    return 0;
}
