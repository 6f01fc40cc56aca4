/* SPDX-License-Identifier: Apache-2.0
 * The store: what must hold of the file whatever happens to disk, readers and processes. */
#include <stdlib.h>
#include <sys/stat.h>
#include <signal.h>
#include <sys/wait.h>

#include "check.h"
#include "coordinator/store_internal.h"
#include "fixture.h"

static ho_study *study;
static ho_store *store;
static char path[64];
static ho_err err;

static int setup(void **state)
{
    (void)state;
    study = fixture_study(fixture_toml);
    fixture_path(path, sizeof path);
    store = fixture_store(path, study, 20);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ho_store_close(&store);
    ho_study_free(&study);
    return 0;
}

static void put_trial(int64_t number, double choice)
{
    const ho_space *space = &study->space;
    double config[3] = {NAN, NAN, NAN};
    for (int i = 0; i < space->count; i++) {
        const char *name = space->param[i].name;
        config[i] = strcmp(name, "agent.algorithm") == 0      ? choice
                    : strcmp(name, "barriers.stop_loss") == 0 ? 20.0 + (double)number
                    : choice == 1.0                           ? 0.2
                                                              : NAN;
    }
    ho_trial_new row = {
        .number = number, .parent = -1, .now_ns = 5, .seeds = 1, .bracket = -1, .config = config};
    assert_int_equal(ho_store_put_trial(store, space, &row), HO_OK);
}

static void put_result(int64_t number, double value, const double *returns)
{
    ho_window_result window = {
        .fold = 0, .seed = 0, .sessions = returns ? 3 : 0, .session_return = returns};
    ho_trial_result r = {.number = number,
                         .attempt = 1,
                         .state = HO_TRIAL_COMPLETE,
                         .objectives = 1,
                         .value = {value},
                         .violation = NAN,
                         .told_order = number + 1,
                         .worker = -1,
                         .finished_ns = 9,
                         .epochs = 4,
                         .train_s = 1.5,
                         .windows = 1,
                         .window = &window};
    window.metrics.value[HO_METRIC_CALMAR] = NAN;
    window.metrics.reason[HO_METRIC_CALMAR] = HO_REASON_NO_DRAWDOWN;
    window.metrics.value[HO_METRIC_SHARPE] = value;
    window.random_percentile = NAN;
    assert_int_equal(ho_store_put_result(store, &r), HO_OK);
}

static void the_schema_has_a_column_for_every_metric(void **state)
{
    (void)state;
    static const char *const names[] = {
#define NAME(id, name, direction, unit, convention) name,
        HO_METRIC_MAP(NAME)
#undef NAME
    };
    char sql[160];
    for (int i = 0; i < HO_METRIC_COUNT; i++) {
        (void)snprintf(
            sql, sizeof sql,
            "SELECT count(\"%s\") + (SELECT count(\"%s\") FROM baseline) FROM fold_result",
            names[i], names[i]);
        assert_int_equal(fixture_count(store, sql), 0);
    }
    assert_int_equal(
        fixture_count(store, "SELECT count(*) FROM pragma_table_list WHERE type = 'table' AND "
                             "name NOT LIKE 'sqlite_%' AND strict = 0"),
        0);
}

static void a_result_is_one_transaction_with_its_values(void **state)
{
    (void)state;
    const double returns[3] = {0.01, -0.02, 0.03};
    put_trial(0, 1.0);
    put_result(0, 1.25, returns);
    assert_int_equal(fixture_count(store, "SELECT count(*) FROM trial"), 0);
    assert_true(ho_store_committed(store) < ho_store_queued(store));
    fixture_flush(store);
    assert_int_equal(ho_store_committed(store), ho_store_queued(store));
    assert_int_equal(
        fixture_count(store,
                      "SELECT count(*) FROM trial t JOIN trial_value v ON v.trial = t.number "
                      "WHERE t.state = 'COMPLETE' AND v.value = 1.25"),
        1);
    assert_int_equal(fixture_count(store, "SELECT length(returns) FROM fold_result"), 24);
    assert_int_equal(fixture_count(store,
                                   "SELECT calmar IS NULL AND json_extract(reasons, '$.calmar') = "
                                   "'no_drawdown' FROM fold_result"),
                     1);
    assert_int_equal(
        fixture_count(store,
                      "SELECT \"agent.algorithm\" = 'ppo' AND \"ppo.clip\" = 0.2 FROM trial_wide"),
        1);
    assert_int_equal(fixture_count(store, "SELECT trial FROM leaderboard WHERE rank = 1"), 0);
}

/* An undefined value is NULL with a reason, never NaN text or 0. */
static void an_undefined_value_is_null(void **state)
{
    (void)state;
    put_trial(0, 0.0);
    put_result(0, NAN, NULL);
    fixture_flush(store);
    assert_int_equal(fixture_count(store, "SELECT value IS NULL FROM trial_value"), 1);
    assert_int_equal(fixture_count(store, "SELECT count(*) FROM leaderboard"), 0);
}

/* optuna 5138: a lock must not outlive its holder; and a second coordinator is refused. */
static void a_second_coordinator_is_refused_and_a_crash_leaves_no_lock(void **state)
{
    (void)state;
    ho_store_options options = ho_store_defaults();
    int ready[2];
    char byte = 0;

    ho_store_close(&store);
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        ho_store *mine = NULL;
        if (ho_store_open(&mine, path, &options, NULL) == HO_OK) {
            (void)!write(ready[1], "x", 1);
        }
        (void)pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    CHECK_STATUS(ho_store_open(&store, path, &options, &err), HO_ELOCKED);
    CHECK_CONTAINS(err.text, "another coordinator");
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    CHECK_OK(ho_store_open(&store, path, &options, &err), &err);
}

/* optuna 820: readers and locks of others never lose a result. */
static void a_reader_that_locks_the_file_only_delays_a_commit(void **state)
{
    (void)state;
    sqlite3 *other = NULL;
    assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    put_trial(0, 0.0);
    CHECK_STATUS(ho_store_flush(store, 1, true, &err), HO_EAGAIN);
    assert_non_null(ho_store_paused(store));
    assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    fixture_flush(store);
    assert_null(ho_store_paused(store));
    assert_int_equal(fixture_count(store, "SELECT count(*) FROM trial"), 1);
    (void)sqlite3_close(other);
}

/* ray 23674: with a full disk nothing is marked done that is not stored. */
static void a_full_disk_keeps_results_in_memory_until_there_is_space(void **state)
{
    (void)state;
    char pragma[64];
    int64_t pages = fixture_count(store, "PRAGMA page_count");
    (void)snprintf(pragma, sizeof pragma, "PRAGMA max_page_count = %lld", (long long)pages);
    (void)fixture_count(store, pragma);
    for (int64_t i = 0; i < 200; i++) {
        put_trial(i, (double)(i % 2));
        put_result(i, (double)i, NULL);
    }
    CHECK_STATUS(ho_store_flush(store, 1, true, &err), HO_EAGAIN);
    CHECK_CONTAINS(ho_store_paused(store), path);
    CHECK_CONTAINS(ho_store_paused(store), "full");
    assert_int_equal(ho_store_committed(store), 0);
    /* not before the retry is due, and then again in vain */
    CHECK_STATUS(ho_store_flush(store, 2, false, &err), HO_EAGAIN);
    CHECK_STATUS(ho_store_flush(store, 2000000000, false, &err), HO_EAGAIN);
    assert_int_equal(fixture_count(store, "SELECT count(*) FROM trial"), 0);
    (void)fixture_count(store, "PRAGMA max_page_count = 1000000");
    fixture_flush(store);
    assert_int_equal(fixture_count(store, "SELECT count(*) FROM trial WHERE state = 'COMPLETE'"),
                     200);
    assert_int_equal(
        fixture_count(store,
                      "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"),
        1);
}

static void commits_wait_for_company_but_not_for_long(void **state)
{
    (void)state;
    put_trial(0, 0.0);
    CHECK_OK(ho_store_flush(store, 1000, false, &err), &err);
    assert_int_equal(ho_store_committed(store), 0);
    assert_true(ho_store_due_in(store, 1000) > 0);
    CHECK_OK(ho_store_flush(store, 1000 + 20000000, false, &err), &err);
    assert_int_equal(ho_store_committed(store), ho_store_queued(store));
    for (int64_t i = 1; i <= 256; i++) {
        put_trial(i, 0.0);
    }
    CHECK_OK(ho_store_flush(store, 50000000, false, &err), &err);
    assert_int_equal(ho_store_committed(store), ho_store_queued(store));
}

static void a_row_that_the_schema_refuses_is_an_error_and_changes_nothing(void **state)
{
    (void)state;
    put_trial(0, 0.0);
    put_trial(0, 0.0);
    CHECK_STATUS(ho_store_flush(store, 1, true, &err), HO_ESTORE);
    CHECK_CONTAINS(err.text, path);
    assert_int_equal(fixture_count(store, "SELECT count(*) FROM trial"), 0);
}

static void a_reader_can_read_while_the_writer_writes_and_cannot_write(void **state)
{
    (void)state;
    static const char *const writes[] = {
        "DELETE FROM trial",
        "UPDATE study SET name = 'x'",
        "INSERT INTO event VALUES (1, 1, 'a', 0, 0, 0, 'b')",
        "DROP TABLE trial",
        "CREATE TABLE x (a)",
        "CREATE TEMP TABLE x (a)",
        "ATTACH 'other.db' AS o",
        "PRAGMA user_version = 9",
        "PRAGMA writable_schema = 1",
        "PRAGMA journal_mode = DELETE",
        "VACUUM",
        "VACUUM INTO 'copy.db'",
        "REINDEX",
        "SELECT load_extension('x')",
        "BEGIN IMMEDIATE",
        "UPDATE sqlite_master SET sql = ''",
        "DETACH main",
        "SAVEPOINT a",
    };
    ho_store *reader = NULL;
    CHECK_OK(ho_store_open_read(&reader, path, &err), &err);
    put_trial(0, 0.0);
    fixture_flush(store);
    assert_int_equal(fixture_count(reader, "SELECT count(*) FROM trial"), 1);
    assert_int_equal(fixture_count(reader, "SELECT count(*) FROM json_each('[1,2]')"), 2);
    for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
        if (sqlite3_exec(ho_store_db(reader), writes[i], NULL, NULL, NULL) == SQLITE_OK) {
            fail_msg("a reader could run: %s", writes[i]);
        }
    }
    assert_int_equal(fixture_count(store, "SELECT count(*) FROM trial"), 1);
    ho_store_close(&reader);
}

static void files_that_are_no_study_are_told_apart(void **state)
{
    (void)state;
    sqlite3 *db = NULL;
    ho_store_options options = ho_store_defaults();

    fixture_path(path, sizeof path);
    CHECK_STATUS(ho_store_open_read(&store, path, &err), HO_ENOTFOUND);
    CHECK_STATUS(ho_store_open(&store, path, &options, &err), HO_ENOTFOUND);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fprintf(file, "this is not a database, but it is long enough to be looked at as one\n");
    assert_int_equal(fclose(file), 0);
    CHECK_STATUS(ho_store_open_read(&store, path, &err), HO_ESTORE);
    CHECK_STATUS(ho_store_open(&store, path, &options, &err), HO_ESTORE);
    CHECK_CONTAINS(err.text, "not a study database");
    fixture_path(path, sizeof path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE bank (account)", NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_close(db);
    CHECK_STATUS(ho_store_open(&store, path, &options, &err), HO_ESTORE);
    CHECK_CONTAINS(err.text, "another program");
}

/* A coordinator killed between making the file and its tables must not leave the study stuck. */
static void a_file_without_tables_is_begun_anew(void **state)
{
    (void)state;
    sqlite3 *db = NULL;
    fixture_path(path, sizeof path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA journal_mode = WAL; CREATE TABLE a (b); DROP TABLE a",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    (void)sqlite3_close(db);
    study = fixture_study(fixture_toml);
    store = fixture_store(path, study, 20);
    assert_true(ho_store_has_study(store));
}

static void a_newer_file_is_refused_and_a_damaged_one_is_noticed(void **state)
{
    (void)state;
    ho_store_options options = ho_store_defaults();
    for (int64_t i = 0; i < 500; i++) {
        put_trial(i, (double)(i % 2));
    }
    fixture_flush(store);
    CHECK_OK(ho_store_exec(store, "PRAGMA user_version = 99", "test", &err), &err);
    ho_store_close(&store);
    CHECK_STATUS(ho_store_open(&store, path, &options, &err), HO_ESTORE);
    CHECK_CONTAINS(err.text, "newer");
    CHECK_STATUS(ho_store_open_read(&store, path, &err), HO_ESTORE);
    CHECK_CONTAINS(err.text, "newer");
    FILE *file = fopen(path, "r+b"); /* rubbish over pages in the middle */
    assert_non_null(file);
    assert_int_equal(fseek(file, 4096 * 8, SEEK_SET), 0);
    for (int i = 0; i < 4096 * 6; i++) {
        (void)fputc(i * 7, file);
    }
    assert_int_equal(fclose(file), 0);
    CHECK_STATUS(ho_store_open(&store, path, &options, &err), HO_ESTORE);
    CHECK_CONTAINS(err.text, "damaged");
    ho_study_free(&study);
}

static void network_filesystems_are_known_and_use_a_rollback_journal(void **state)
{
    (void)state;
    ho_store_options options = ho_store_defaults();
    assert_true(ho_store_is_network(0x6969));
    assert_true(ho_store_is_network((long)0xFF534D42));
    assert_true(ho_store_is_network(0x0BD00BD0));
    assert_false(ho_store_is_network(0xEF53));     /* ext4 */
    assert_false(ho_store_is_network(0x01021994)); /* tmpfs */
    options.create = true;
    options.rollback = true;
    fixture_path(path, sizeof path);
    CHECK_OK(ho_store_open(&store, path, &options, &err), &err);
    assert_true(ho_store_is_rollback(store));
    assert_int_equal(
        fixture_count(store, "SELECT count(*) FROM pragma_journal_mode WHERE journal_mode = 'wal'"),
        0);
    ho_store_close(&store);
}

static void a_read_only_medium_is_read_as_it_lies(void **state)
{
    (void)state;
    char folder[64];
    ho_store *reader = NULL;
    study = fixture_study(fixture_toml);
    if (geteuid() == 0) {
        ho_study_free(&study);
        skip(); /* root writes everywhere */
    }
    fixture_path(path, sizeof path);
    store = fixture_store(path, study, 20);
    ho_store_close(&store);
    (void)snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    assert_int_equal(chmod(folder, 0555), 0);
    CHECK_OK(ho_store_open_read(&reader, path, &err), &err);
    assert_int_equal(fixture_count(reader, "SELECT count(*) FROM study"), 1);
    ho_store_close(&reader);
    assert_int_equal(chmod(folder, 0755), 0);
    ho_study_free(&study);
}

/* A torn WAL: what was committed before the tear is there, what is behind it is gone, nothing else.
 */
static void a_torn_wal_loses_only_the_torn_commit(void **state)
{
    (void)state;
    char copy[64], command[400], wal[80];
    struct stat info;
    ho_store_options options = ho_store_defaults();
    put_trial(0, 0.0);
    fixture_flush(store);
    put_trial(1, 0.0);
    fixture_flush(store);
    fixture_path(copy, sizeof copy);
    (void)snprintf(command, sizeof command, "cp %s %s && cp %s-wal %s-wal", path, copy, path, copy);
    assert_int_equal(system(command), 0);
    (void)snprintf(wal, sizeof wal, "%s-wal", copy);
    assert_int_equal(stat(wal, &info), 0);
    assert_int_equal(truncate(wal, info.st_size - 100), 0);
    ho_store_close(&store);
    CHECK_OK(ho_store_open(&store, copy, &options, &err), &err);
    assert_int_equal(fixture_count(store, "SELECT count(*) FROM trial"), 1);
    assert_int_equal(fixture_count(store, "SELECT count(*) FROM study"), 1);
}

typedef struct seen {
    int64_t count, fits;
    double last_config[8];
} seen;

static ho_status see(const ho_stored_trial *t, void *user)
{
    seen *s = (seen *)user;
    s->count++;
    s->fits += t->fits;
    memcpy(s->last_config, t->config, 3 * sizeof(double));
    return HO_OK;
}

/* optuna 2328: changed choices must not block a resume, nor change what old trials mean. */
static void old_trials_are_read_in_a_changed_space(void **state)
{
    (void)state;
    static const char changed[] =
        "[study]\nname = \"fixture\"\n[data]\npath = \"bars.csv\"\n[search]\n"
        "\"barriers.stop_loss\" = { float = [10, 21.5] }\n"
        "\"agent.algorithm\" = { choice = [\"ppo\", \"dqn\"] }\n";
    seen s = {0};
    ho_study *other = fixture_study(changed);
    put_trial(0, 0.0); /* dqn, stop 20: fits, with the choice's new index */
    put_trial(1, 1.0); /* ppo with ppo.clip: that parameter is gone */
    put_trial(2, 0.0); /* stop 22: above the new bound */
    fixture_flush(store);
    CHECK_OK(ho_store_each_trial(store, &study->space, see, &s, &err), &err);
    assert_int_equal(s.count, 3);
    assert_int_equal(s.fits, 3);
    s = (seen){0};
    CHECK_OK(ho_store_each_trial(store, &other->space, see, &s, &err), &err);
    assert_int_equal(s.count, 3);
    assert_int_equal(s.fits, 1);
    CHECK_NEAR(s.last_config[ho_space_find(&other->space, "agent.algorithm")], 1.0, 0.0);
    ho_study_free(&other);
}

static void change_study(const char *uuid, bool restart)
{
    static ho_fold_plan folds = {
        .count = 1, .fold = {{{0, 2}, {2, 3}, {3, 5}}}, .holdout = {8, 10}};
    static const int64_t open_ns[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    ho_store_study s = {.name = "fixture",
                        .uuid = uuid,
                        .trials = 9,
                        .toml = study->text,
                        .toml_path = "fixture.toml",
                        .settings_json = "{}",
                        .data_path = "bars.csv",
                        .data_sha256 = "00",
                        .bars = 10,
                        .folds = &folds,
                        .open_ns = open_ns,
                        .space = &study->space,
                        .now_ns = 1};
    CHECK_OK(ho_store_change_study(store, &s, "dqn.gamma: 0.9 -> 0.99", restart, &err), &err);
}

static int64_t count_of_trial(const char *table, int64_t trial)
{
    char sql[128];
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM %s WHERE trial = %lld", table,
                   (long long)trial);
    return fixture_count(store, sql);
}

static void a_change_that_matters_makes_unfinished_trials_begin_anew(void **state)
{
    (void)state;
    static const char *const table[] = {"report", "epoch_stat", "race", "fold_result"};
    ho_window_result window = {.fold = 0, .random_percentile = NAN};
    for (int64_t n = 0; n < 2; n++) { /* trial 0 will have ended, trial 1 not */
        ho_race_row round = {.number = n,
                             .attempt = 1,
                             .folds = 1,
                             .epochs = 4,
                             .against = -1,
                             .verdict = "next",
                             .why = "first"};
        put_trial(n, 0.0);
        assert_int_equal(ho_store_put_race(store, &round), HO_OK);
        assert_int_equal(ho_store_put_windows(store, n, &window, n == 1), HO_OK);
    }
    put_result(0, 1.0, NULL);
    fixture_flush(store);
    char sql[256];
    for (int n = 0; n < 2; n++) {
        (void)snprintf(sql, sizeof sql,
                       "INSERT INTO report (trial, step, at_ns) VALUES (%d, 3, 7);"
                       "INSERT INTO epoch_stat (trial, fold, seed, epoch) VALUES (%d, -1, -1, 3);"
                       "INSERT INTO event (at_ns, kind, trial, text) VALUES (7, 'promote', %d, '')",
                       n, n, n);
        assert_int_equal(sqlite3_exec(ho_store_db(store), sql, NULL, NULL, NULL), SQLITE_OK);
    }
    change_study("00112233445566778899aabbccddeeff", false); /* the target, say: nothing is lost */
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        assert_int_equal(count_of_trial(table[i], 1), 1);
    }
    change_study("ffeeddccbbaa99887766554433221100", true);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        assert_int_equal(count_of_trial(table[i], 0), 1);
        assert_int_equal(count_of_trial(table[i], 1), 0);
    }
    assert_int_equal(fixture_count(store, "SELECT trial FROM event WHERE kind = 'promote'"), 0);
    assert_int_equal(fixture_count(store, "SELECT count(*) FROM event WHERE kind = 'change'"), 2);
    assert_int_equal(fixture_count(store, "SELECT count(*) FROM trial"), 2);
    assert_int_equal(fixture_count(store, "SELECT count(*) FROM study WHERE revision = 3 AND "
                                          "uuid = 'ffeeddccbbaa99887766554433221100'"),
                     1);
}

/* spec/search.md: at most 400 bytes a trial beyond the results themselves. */
static void a_trial_takes_at_most_400_bytes(void **state)
{
    (void)state;
    int64_t before = fixture_count(store, "PRAGMA page_count");
    for (int64_t i = 0; i < 20000; i++) {
        put_trial(i, (double)(i % 2));
    }
    fixture_flush(store);
    int64_t bytes = (fixture_count(store, "PRAGMA page_count") - before) * 4096;
    if (bytes > 400 * 20000) {
        fail_msg("%lld bytes a trial", (long long)(bytes / 20000));
    }
}

int main(void)
{
#define MADE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define NEW(name)  cmocka_unit_test_teardown(name, teardown)
    const struct CMUnitTest tests[] = {
        MADE(the_schema_has_a_column_for_every_metric),
        MADE(a_result_is_one_transaction_with_its_values),
        MADE(an_undefined_value_is_null),
        MADE(a_second_coordinator_is_refused_and_a_crash_leaves_no_lock),
        MADE(a_reader_that_locks_the_file_only_delays_a_commit),
        MADE(a_full_disk_keeps_results_in_memory_until_there_is_space),
        MADE(commits_wait_for_company_but_not_for_long),
        MADE(a_row_that_the_schema_refuses_is_an_error_and_changes_nothing),
        MADE(a_reader_can_read_while_the_writer_writes_and_cannot_write),
        NEW(files_that_are_no_study_are_told_apart),
        NEW(a_file_without_tables_is_begun_anew),
        MADE(a_newer_file_is_refused_and_a_damaged_one_is_noticed),
        NEW(network_filesystems_are_known_and_use_a_rollback_journal),
        NEW(a_read_only_medium_is_read_as_it_lies),
        MADE(a_torn_wal_loses_only_the_torn_commit),
        MADE(old_trials_are_read_in_a_changed_space),
        MADE(a_change_that_matters_makes_unfinished_trials_begin_anew),
        MADE(a_trial_takes_at_most_400_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
