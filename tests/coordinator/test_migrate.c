/* SPDX-License-Identifier: Apache-2.0
 * A file of an older version becomes one of the present version, with every row it had, and a copy
 * of the old one beside it; one of a newer version is refused. */
#include <stdlib.h>
#include <sys/stat.h>

#include "check.h"
#include "coordinator/store_internal.h"
#include "fixture.h"

/* Makes the database of v1.sql at a fresh path. */
static void make_v1(char *path, size_t room)
{
    static char sql[65536];
    sqlite3 *db = NULL;
    FILE *file = fopen(HO_SOURCE_DIR "/tests/coordinator/v1.sql", "r");
    assert_non_null(file);
    size_t n = fread(sql, 1, sizeof sql - 1, file);
    assert_true(n > 0 && n < sizeof sql - 1);
    sql[n] = '\0';
    assert_int_equal(fclose(file), 0);
    fixture_path(path, room);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        fail_msg("v1.sql: %s", sqlite3_errmsg(db));
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static ho_store *open_path(const char *path)
{
    ho_err err = {0};
    ho_store *store = NULL;
    ho_store_options options = ho_store_defaults();
    CHECK_OK(ho_store_open(&store, path, &options, &err), &err);
    return store;
}

static void exec(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void an_old_file_gets_the_tables_of_a_new_one(void **state)
{
    (void)state;
    char path[64], fresh[64], attach[128];
    ho_study *study = fixture_study(fixture_toml);
    make_v1(path, sizeof path);
    fixture_path(fresh, sizeof fresh);
    ho_store *store = fixture_store(fresh, study, 20);
    ho_store_close(&store);
    store = open_path(path);
    (void)snprintf(attach, sizeof attach, "ATTACH '%s' AS fresh", fresh);
    (void)sqlite3_exec(ho_store_db(store), attach, NULL, NULL, NULL);
    /* text and all: columns, their order, checks, indices */
    assert_true(fixture_count(store, "SELECT count(*) FROM fresh.sqlite_master WHERE type IN "
                                     "('table', 'index')") > 20);
    assert_int_equal(
        fixture_count(store, "SELECT count(*) FROM (SELECT type, name, sql FROM fresh.sqlite_master"
                             " WHERE type IN ('table', 'index') EXCEPT "
                             "SELECT type, name, sql FROM main.sqlite_master)"),
        0);
    assert_int_equal(
        fixture_count(store, "SELECT count(*) FROM main.sqlite_master WHERE name LIKE 'old_%'"), 0);
    assert_int_equal(fixture_count(store, "PRAGMA user_version"), HO_STORE_VERSION);
    assert_int_equal(fixture_count(store, "PRAGMA foreign_keys"), 1);
    ho_store_close(&store);
    ho_study_free(&study);
}

static void an_old_file_keeps_every_row(void **state)
{
    (void)state;
    static const struct {
        const char *sql;
        int64_t want;
    } rows[] = {
        {"SELECT count(*) FROM study WHERE name = 'old' AND state = 'interrupted' AND trials = 20 "
         "AND auto_batch = 0 AND prior_trials = 0",
         1},
        {"SELECT count(*) FROM objective", 1},
        {"SELECT count(*) FROM study_constraint", 1},
        {"SELECT count(*) FROM fold", 2},
        {"SELECT count(*) FROM param_space", 2},
        {"SELECT count(*) FROM worker", 1},
        {"SELECT count(*) FROM trial WHERE seeds = 2", 2}, /* from the settings */
        {"SELECT count(*) FROM trial WHERE state = 'COMPLETE' AND told_order = 1 AND "
         "config_hash = -5 AND train_s = 1.5",
         1},
        {"SELECT parent FROM trial WHERE number = 1", 0},
        {"SELECT count(*) FROM param", 4},
        {"SELECT value = 1.25 FROM trial_value", 1},
        {"SELECT count(*) FROM fold_result WHERE sharpe = 1.25 AND random_percentile IS NULL", 2},
        {"SELECT hex(returns) = '000000000000F03F' FROM fold_result WHERE fold = 0", 1},
        {"SELECT count(*) FROM baseline WHERE policy = 'buy_and_hold' AND sharpe = 0.5", 1},
        {"SELECT count(*) FROM baseline WHERE policy = 'random'", 1},
        {"SELECT count(*) FROM epoch_stat WHERE loss = 0.1 AND experiences = 25", 1},
        {"SELECT count(*) FROM report WHERE verdict = 'keep' AND value = 0.75", 1},
        {"SELECT count(*) FROM fold_report", 1},
        {"SELECT count(*) FROM event WHERE text = 'begun'", 1},
        {"SELECT count(*) FROM artifact WHERE kind = 'weights' AND size = 3", 1},
        {"SELECT count(*) FROM holdout_look WHERE refit = 0 AND user = 'somebody'", 1},
        {"SELECT count(*) FROM overfit WHERE null_p = 0.03 AND psr = 0.9", 1},
        {"SELECT count(*) FROM importance WHERE value = 0.75", 1},
        {"SELECT trial FROM leaderboard WHERE rank = 1", 0}, /* and the views are there */
        {"SELECT count(*) FROM trial_wide WHERE \"agent.algorithm\" = 'ppo'", 1},
    };
    char path[64];
    make_v1(path, sizeof path);
    ho_store *store = open_path(path);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t got = fixture_count(store, rows[i].sql);
        if (got != rows[i].want) {
            fail_msg("%s: %lld", rows[i].sql, (long long)got);
        }
    }
    ho_store_close(&store);
}

static void the_old_file_lies_beside_the_new_one(void **state)
{
    (void)state;
    char path[64], copy[80];
    sqlite3_stmt *statement = NULL;
    sqlite3 *db = NULL;
    make_v1(path, sizeof path);
    ho_store *store = open_path(path);
    ho_store_close(&store);
    (void)snprintf(copy, sizeof copy, "%s.v1.bak", path);
    assert_int_equal(sqlite3_open_v2(copy, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(ho_store_number(db, "PRAGMA user_version", -1), 1);
    assert_int_equal(ho_store_number(db, "SELECT seed_offset FROM trial WHERE number = 1", -1), 2);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT seeds FROM trial", -1, &statement, NULL),
                     SQLITE_ERROR);
    (void)sqlite3_close(db);
    store = open_path(path); /* again: nothing more to do */
    ho_store_close(&store);
}

/* Version 1 was also the number of files that had some of the later columns already. */
static void a_file_that_has_the_columns_keeps_what_they_hold(void **state)
{
    (void)state;
    char path[64];
    ho_err err = {0};
    ho_study *study = fixture_study(fixture_toml);
    const double config[3] = {1.0, 20.0, 0.2};
    fixture_path(path, sizeof path);
    ho_store *store = fixture_store(path, study, 20);
    ho_trial_new row = {.parent = -1, .now_ns = 5, .seeds = 3, .bracket = -1, .config = config};
    assert_int_equal(ho_store_put_trial(store, &study->space, &row), HO_OK);
    assert_int_equal(ho_store_put_prior_trials(store, 7), HO_OK);
    fixture_flush(store);
    CHECK_OK(ho_store_exec(store, "PRAGMA user_version = 1", "test", &err), &err);
    ho_store_close(&store);
    store = open_path(path);
    assert_int_equal(fixture_count(store, "SELECT seeds FROM trial"), 3);
    assert_int_equal(fixture_count(store, "SELECT prior_trials FROM study"), 7);
    assert_int_equal(fixture_count(store, "SELECT count(*) FROM studies"), 1); /* Optuna's */
    ho_store_close(&store);
    ho_study_free(&study);
}

/* Version 2 lacked the tables of raced folds and of a report's further objectives. */
static void a_file_of_version_2_gets_the_tables_it_lacks(void **state)
{
    (void)state;
    char path[64];
    ho_study *study = fixture_study(fixture_toml);
    const double config[3] = {1.0, 20.0, 0.2};
    fixture_path(path, sizeof path);
    ho_store *store = fixture_store(path, study, 20);
    ho_trial_new row = {.parent = -1, .now_ns = 5, .seeds = 1, .bracket = -1, .config = config};
    ho_report_row report = {.step = 3, .now_ns = 6, .objectives = 1, .value = {0.5}};
    assert_int_equal(ho_store_put_trial(store, &study->space, &row), HO_OK);
    assert_int_equal(ho_store_put_report(store, &report), HO_OK);
    fixture_flush(store);
    ho_store_close(&store);
    exec(path, "DROP TABLE race; DROP TABLE report_value; PRAGMA user_version = 2");
    store = open_path(path);
    assert_int_equal(fixture_count(store, "SELECT count(*) FROM race"), 0);
    assert_int_equal(fixture_count(store, "SELECT count(*) FROM report_value"), 0);
    assert_int_equal(fixture_count(store, "SELECT count(*) FROM report WHERE value = 0.5"), 1);
    ho_store_close(&store);
    ho_study_free(&study);
}

static void a_migration_that_fails_changes_nothing(void **state)
{
    (void)state;
    char path[64], versions[48];
    ho_err err = {0};
    ho_store *store = NULL;
    ho_store_options options = ho_store_defaults();
    make_v1(path, sizeof path);
    /* a trial of no worker there is: the references do not hold */
    exec(path, "PRAGMA foreign_keys = OFF; UPDATE trial SET worker = 99 WHERE number = 1");
    CHECK_STATUS(ho_store_open(&store, path, &options, &err), HO_ESTORE);
    (void)snprintf(versions, sizeof versions, "from version 1 to %d", HO_STORE_VERSION);
    CHECK_CONTAINS(err.text, versions);
    CHECK_CONTAINS(err.text, "nothing was changed");
    exec(path, "SELECT seed_offset FROM trial");
    exec(path, "PRAGMA foreign_keys = OFF; UPDATE trial SET worker = 1 WHERE number = 1");
    store = open_path(path);
    assert_int_equal(fixture_count(store, "SELECT count(*) FROM trial"), 2);
    ho_store_close(&store);
}

static void a_newer_file_is_refused_with_both_versions(void **state)
{
    (void)state;
    char path[64], known[32];
    ho_err err = {0};
    ho_store *store = NULL;
    ho_store_options options = ho_store_defaults();
    make_v1(path, sizeof path);
    exec(path, "PRAGMA user_version = 99");
    (void)snprintf(known, sizeof known, "knows %d", HO_STORE_VERSION);
    CHECK_STATUS(ho_store_open(&store, path, &options, &err), HO_ESTORE);
    CHECK_CONTAINS(err.text, "version 99");
    CHECK_CONTAINS(err.text, known);
    CHECK_STATUS(ho_store_open_read(&store, path, &err), HO_ESTORE);
    CHECK_CONTAINS(err.text, "version 99");
    CHECK_CONTAINS(err.text, known);
    exec(path, "PRAGMA user_version = 1"); /* a reader does not migrate */
    CHECK_STATUS(ho_store_open_read(&store, path, &err), HO_ESTORE);
    CHECK_CONTAINS(err.text, "older");
    CHECK_CONTAINS(err.text, "version 1,");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_old_file_gets_the_tables_of_a_new_one),
        cmocka_unit_test(an_old_file_keeps_every_row),
        cmocka_unit_test(the_old_file_lies_beside_the_new_one),
        cmocka_unit_test(a_file_that_has_the_columns_keeps_what_they_hold),
        cmocka_unit_test(a_file_of_version_2_gets_the_tables_it_lacks),
        cmocka_unit_test(a_migration_that_fails_changes_nothing),
        cmocka_unit_test(a_newer_file_is_refused_with_both_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
