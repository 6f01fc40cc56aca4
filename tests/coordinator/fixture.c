/* SPDX-License-Identifier: Apache-2.0
 * See fixture.h. */
#include "fixture.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "check.h"

const char fixture_toml[] =
    "[study]\nname = \"fixture\"\ntrials = 20\nobjective = [\"sharpe\"]\n"
    "[data]\npath = \"bars.csv\"\n"
    "[sampler]\nkind = \"random\"\n[pruner]\nkind = \"none\"\n"
    "[search]\n"
    "\"agent.algorithm\" = { choice = [\"dqn\", \"ppo\"] }\n"
    "\"barriers.stop_loss\" = { float = [10, 80] }\n"
    "\"ppo.clip\" = { float = [0.1, 0.3], when = { \"agent.algorithm\" = \"ppo\" } }\n";

ho_study *fixture_study(const char *toml)
{
    ho_study *study = NULL;
    ho_err err = {0};
    CHECK_OK(ho_study_parse(toml, strlen(toml), "fixture.toml", ".", &study, &err), &err);
    return study;
}

void fixture_path(char *out, size_t room)
{
    char folder[] = "store-XXXXXX";
    assert_non_null(mkdtemp(folder));
    (void)snprintf(out, room, "%s/study.db", folder);
}

ho_store *fixture_store(const char *path, const ho_study *study, int64_t trials)
{
    static ho_fold_plan folds;
    static const int64_t open_ns[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    ho_store_options options = ho_store_defaults();
    ho_store *store = NULL;
    ho_err err = {0};

    memset(&folds, 0, sizeof folds);
    folds.count = 2;
    folds.fold[0] = (ho_fold){{0, 2}, {2, 3}, {3, 5}};
    folds.fold[1] = (ho_fold){{2, 4}, {4, 5}, {5, 7}};
    folds.holdout = (ho_window){8, 10};
    options.create = true;
    CHECK_OK(ho_store_open(&store, path, &options, &err), &err);
    ho_store_study s = {
        .name = study->name,
        .uuid = "00112233445566778899aabbccddeeff",
        .seed = 42,
        .trials = trials,
        .toml = study->text,
        .toml_path = "fixture.toml",
        .settings_json = "{}",
        .data_path = "bars.csv",
        .data_sha256 = "00",
        .bars = 10,
        .sessions_per_year = 252,
        .initial_capital = 1e6,
        .objectives = study->objective_count,
        .aggregate = "stitched",
        .folds = &folds,
        .open_ns = open_ns,
        .space = &study->space,
        .now_ns = 1,
    };
    for (int i = 0; i < study->objective_count; i++) {
        s.metric[i] = study->objective[i].name;
        s.direction[i] = study->objective[i].direction;
    }
    CHECK_OK(ho_store_create_study(store, &s, &err), &err);
    return store;
}

int64_t fixture_count(ho_store *store, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(ho_store_db(store), sql, -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW) {
        fail_msg("%s: %s", sql, sqlite3_errmsg(ho_store_db(store)));
    }
    int64_t n = sqlite3_column_int64(statement, 0);
    (void)sqlite3_finalize(statement);
    return n;
}

void fixture_flush(ho_store *store)
{
    ho_err err = {0};
    CHECK_OK(ho_store_flush(store, 1, true, &err), &err);
}
