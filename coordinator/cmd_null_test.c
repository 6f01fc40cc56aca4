/* SPDX-License-Identifier: Apache-2.0
 * hyperopt null-test STUDY.toml */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coordinator/artifacts.h"
#include "coordinator/commands.h"
#include "coordinator/null_bars.h"
#include "coordinator/overfit_study.h"
#include "coordinator/run.h"
#include "coordinator/server.h"

typedef struct null_test {
    const char *study;
    const ho_option_list *set;
    const char *compare; /* database of the real study, or NULL */
    int64_t studies, trials, block;
    uint64_t seed;
    bool cpu;
    ho_setup setup;
    char folder[PATH_MAX];
    char csv[PATH_MAX + 16], database[PATH_MAX + 16];
    double *best, *dsr; /* [studies] NaN: undefined */
    int direction;
} null_test;

/* The permuted file is plain: what the study says of the real file's form would be wrong for it. */
static ho_status use_permuted(ho_settings *settings, void *user, ho_err *err)
{
    const char *path = ((null_test *)user)->csv;
    for (int key = 0; key < HO_KEY_COUNT; key++) {
        const char *name = ho_setting((ho_key)key)->name;
        if (strncmp(name, "data.", 5) == 0 && strncmp(name, "data.session", 12) != 0 &&
            key != HO_KEY_DATA_VOLUME) {
            ho_settings_reset(settings, (ho_key)key);
        }
    }
    return ho_settings_set_list(settings, HO_KEY_DATA_PATH, &path, 1, err);
}

static void remove_files(const null_test *n)
{
    static const char *const ending[] = {"", "-wal", "-shm", ".lock"};
    char path[PATH_MAX + 32];
    for (size_t i = 0; i < sizeof ending / sizeof ending[0]; i++) {
        (void)snprintf(path, sizeof path, "%s%s", n->database, ending[i]);
        (void)unlink(path);
    }
    (void)unlink(n->csv);
    ho_artifacts_folder(n->database, path, sizeof path);
    ho_artifacts_remove(path);
}

static double best_value(ho_store *store)
{
    sqlite3_stmt *statement = NULL;
    double value = NAN;
    if (sqlite3_prepare_v2(ho_store_db(store), "SELECT value FROM best_trial", -1, &statement,
                           NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        value = sqlite3_column_double(statement, 0);
    }
    (void)sqlite3_finalize(statement);
    return value;
}

static ho_status read_end(const char *database, double *best, double *dsr, ho_err *err)
{
    ho_store *store = NULL;
    ho_overfit_row row;
    ho_status rc = ho_store_open_read(&store, database, err);
    if (rc == HO_OK) {
        *best = best_value(store);
        *dsr = ho_overfit_read(store, &row, err) == HO_OK ? row.dsr : NAN;
    }
    ho_store_close(&store);
    return rc;
}

static ho_status one_study(null_test *n, int64_t i, ho_err *err)
{
    const ho_bars *bars = &n->setup.bars;
    ho_run_options options = {.study = n->study,
                              .database = n->database,
                              .more_trials = n->trials,
                              .set = n->set,
                              .no_local = false,
                              .cpu = n->cpu,
                              .quiet = true,
                              .adjust = use_permuted,
                              .user = n};
    ho_run_end end;
    double *ohlcv = (double *)malloc((size_t)bars->count * 5 * sizeof *ohlcv);
    ho_status rc = HO_OK;

    if (!ohlcv) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    if ((rc = ho_null_bars(bars, n->block, n->seed, i, ohlcv, err)) == HO_OK &&
        (rc = ho_null_write(bars, ohlcv, n->csv, err)) == HO_OK &&
        (rc = ho_run(&options, &end, err)) == HO_OK) {
        rc = read_end(n->database, &n->best[i], &n->dsr[i], err);
    }
    remove_files(n);
    free(ohlcv);
    return rc;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The share goes into the real study with its overfitting statistics as they are now. */
static ho_status store_p(const char *database, double p, ho_err *err)
{
    ho_store_options options = ho_store_defaults();
    ho_store *store = NULL;
    ho_overfit_row row;
    ho_status rc = ho_store_open(&store, database, &options, err);
    if (rc == HO_OK && (rc = ho_overfit_measure(store, ho_clock_unix_ns(), &row, err)) == HO_OK) {
        row.null_p = p;
        if ((rc = ho_store_put_overfit(store, &row)) == HO_OK) {
            rc = ho_store_flush(store, ho_clock_ns(), true, err);
        }
    }
    ho_store_close(&store);
    return rc;
}

/* Says what the permuted studies showed, beside the real one where it is known. */
static ho_status summarise(null_test *n, ho_err *err)
{
    double *sorted = (double *)malloc((size_t)n->studies * sizeof *sorted);
    int64_t count = 0, beyond = 0, significant = 0, known = 0;
    double real = NAN, dsr = NAN;
    ho_status rc = HO_OK;

    if (!sorted) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    if (n->compare && (rc = read_end(n->compare, &real, &dsr, err)) != HO_OK) {
        goto out;
    }
    for (int64_t i = 0; i < n->studies; i++) {
        if (!isnan(n->best[i])) {
            sorted[count++] = n->best[i];
            beyond += n->direction * n->best[i] >= n->direction * real;
        }
        known += !isnan(n->dsr[i]);
        significant += n->dsr[i] > 0.95;
    }
    qsort(sorted, (size_t)count, sizeof *sorted, by_value);
    const char *metric = n->setup.study->objective[0].name;
    (void)printf("\nBest %s of %" PRId64 " trials where there is nothing to find, over %" PRId64
                 " permuted studies:\n",
                 metric, n->trials, count);
    if (count > 0) {
        (void)printf("  lowest %.4g, median %.4g, highest %.4g\n", sorted[0], sorted[count / 2],
                     sorted[count - 1]);
    }
    (void)printf("  deflated Sharpe ratio above 0.95 in %" PRId64 " of %" PRId64 "\n", significant,
                 known);
    if (n->compare && !isnan(real)) {
        double p = (double)(beyond + 1) / (double)(count + 1);
        (void)printf("The study in %s found %.4g: %" PRId64 " of %" PRId64
                     " permuted ones did as well (p = %.3f).\n",
                     n->compare, real, beyond, count, p);
        rc = store_p(n->compare, p, err);
    }
out:
    free(sorted);
    return rc;
}

static ho_status run_all(null_test *n, ho_err *err)
{
    ho_status rc = HO_OK;
    const char *base = getenv("TMPDIR");

    if ((rc = ho_setup_load(&n->setup, n->study, n->set, err)) != HO_OK) {
        return rc;
    }
    n->direction = n->setup.study->objective[0].direction;
    if (n->trials == 0) {
        n->trials = ho_settings_i64(n->setup.study->settings, HO_KEY_STUDY_TRIALS);
        n->trials = n->trials > 20 ? 20 : n->trials;
    }
    (void)snprintf(n->folder, sizeof n->folder, "%s/hyperopt-null-XXXXXX",
                   base && base[0] ? base : "/tmp");
    if (!mkdtemp(n->folder)) {
        return ho_err_set(err, HO_EIO, "%s: %s", n->folder, strerror(errno));
    }
    (void)snprintf(n->csv, sizeof n->csv, "%s/null.csv", n->folder);
    (void)snprintf(n->database, sizeof n->database, "%s/null.db", n->folder);
    n->best = (double *)calloc((size_t)n->studies, 2 * sizeof *n->best);
    if (!n->best) {
        rc = ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    n->dsr = n->best ? n->best + n->studies : NULL;
    for (int64_t i = 0; rc == HO_OK && i < n->studies; i++) {
        if ((rc = one_study(n, i, err)) == HO_OK) {
            (void)printf("permuted study %" PRId64 "/%" PRId64 ": best %.4g, DSR %.3f\n", i + 1,
                         n->studies, n->best[i], n->dsr[i]);
            (void)fflush(stdout);
        }
    }
    if (rc == HO_OK) {
        rc = summarise(n, err);
    }
    remove_files(n);
    (void)rmdir(n->folder);
    return rc;
}

int ho_cmd_null_test(int argc, char **argv)
{
    null_test n = {.studies = 10, .block = 24};
    int64_t seed = 1;
    ho_option_list set = {0};
    ho_arguments args;
    ho_err err = {0};
    const ho_option option[] = {
        {"studies", 's', HO_OPTION_INTEGER, &n.studies, "N", "permuted studies; default: 10", 1,
         1e5},
        {"trials", 'n', HO_OPTION_INTEGER, &n.trials, "N",
         "trials of each; default: as many as the study has, at most 20", 1, 1e6},
        {"block", 'b', HO_OPTION_INTEGER, &n.block, "BARS", "bars that stay together; default: 24",
         1, 1e9},
        {"seed", 0, HO_OPTION_INTEGER, &seed, "N", "of the permutations; default: 1", 0, 1e15},
        {"compare", 'c', HO_OPTION_STRING, &n.compare, "DB", "the real study's database", 0, 0},
        {"set", 0, HO_OPTION_LIST, &set, "KEY=VALUE", "override a setting; may be repeated", 0, 0},
        {"cpu", 0, HO_OPTION_FLAG, &n.cpu, NULL, "use the CPU backend even where there is a GPU", 0,
         0},
    };
    const ho_usage usage = {
        .name = "null-test",
        .arguments = "STUDY.toml",
        .about =
            "Runs the study on its own bars with the moves in shuffled blocks, where nothing\n"
            "can be predicted, several times: what the best of so many trials looks like when\n"
            "there is no edge. Leaves nothing behind; with --compare the share of permuted\n"
            "studies that did as well is written into that database (overfit.null_p).\n",
        .examples = "  hyperopt null-test configs/quickstart.toml --studies 5\n"
                    "  hyperopt null-test es-dqn.toml --compare es-dqn.db\n",
        .option = option,
        .option_count = sizeof option / sizeof option[0],
        .min_arguments = 1,
        .max_arguments = 1,
    };
    ho_status rc = ho_usage_parse(&usage, argc, argv, &args);
    if (rc != HO_OK) {
        return ho_exit_code(rc);
    }
    n.study = args.item[0];
    n.set = &set;
    n.seed = (uint64_t)seed;
    rc = run_all(&n, &err);
    free(n.best);
    ho_setup_free(&n.setup);
    if (rc == HO_ECANCELLED) {
        return HO_EXIT_INTERRUPTED;
    }
    return rc == HO_OK ? HO_EXIT_OK : ho_exit_report(&err);
}
