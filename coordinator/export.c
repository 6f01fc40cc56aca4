/* SPDX-License-Identifier: Apache-2.0
 * See export.h. */
#include "coordinator/export.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coordinator/artifacts.h"
#include "coordinator/output.h"
#include "coordinator/trial_print.h"
#include "study/onnx.h"
#include "study/study.h"

extern const char ho_sql_optuna_tables[];

static ho_status store_failed(ho_store *store, ho_err *err)
{
    return ho_err_set(err, HO_ESTORE, "%s: %s", ho_store_path(store),
                      sqlite3_errmsg(ho_store_db(store)));
}

ho_status ho_export_csv(ho_store *store, FILE *out, ho_err *err)
{
#define METRIC_MEAN(id, name, direction, unit, convention) ", avg(f." name ") AS " name
    static const char sql[] =
        "SELECT w.*, strftime('%Y-%m-%dT%H:%M:%SZ', t.started_ns / 1000000000, 'unixepoch') AS "
        "started, strftime('%Y-%m-%dT%H:%M:%SZ', t.finished_ns / 1000000000, 'unixepoch') AS "
        "finished" HO_METRIC_MAP(METRIC_MEAN)
    " FROM trial_wide w JOIN trial t ON t.number = w.trial LEFT JOIN "
    "fold_result f ON f.trial = w.trial AND f.fold = -1 GROUP BY w.trial "
    "ORDER BY w.trial";
#undef METRIC_MEAN
    return ho_output_query(out, ho_store_db(store), sql, HO_OUTPUT_CSV, NULL, err);
}

/* ---- a study file --------------------------------------------------------------------------- */

typedef struct wanted_config {
    int64_t number;
    int count;
    double *config; /* [count] */
    bool found;
} wanted_config;

static ho_status keep_config(const ho_stored_trial *trial, void *user)
{
    wanted_config *w = (wanted_config *)user;
    if (trial->number == w->number) {
        memcpy(w->config, trial->config, (size_t)w->count * sizeof *w->config);
        w->found = true;
    }
    return HO_OK;
}

/* Sections in the table's order, each with the keys that were set. */
static void print_settings(FILE *out, const ho_settings *settings)
{
    char section[64] = "", value[4096];

    for (int key = 0; key < HO_KEY_COUNT; key++) {
        if (!ho_settings_is_set(settings, (ho_key)key)) {
            continue;
        }
        const char *name = ho_setting((ho_key)key)->name;
        const char *dot = strchr(name, '.');
        size_t length = (size_t)(dot - name);
        if (strlen(section) != length || strncmp(section, name, length) != 0) {
            (void)fprintf(out, "%s[%.*s]\n", section[0] ? "\n" : "", (int)length, name);
            (void)snprintf(section, sizeof section, "%.*s", (int)length, name);
        }
        (void)ho_settings_print(settings, (ho_key)key, value, sizeof value);
        (void)fprintf(out, "%s = %s\n", dot + 1, value);
    }
}

ho_status ho_export_config(ho_store *store, int64_t trial, FILE *out, ho_err *err)
{
    ho_store_info info = {0};
    ho_study *study = NULL;
    wanted_config wanted = {.number = trial};
    char folder[PATH_MAX];
    ho_status rc = HO_OK;

    if ((rc = ho_store_read_info(store, &info, err)) != HO_OK) {
        return rc;
    }
    (void)snprintf(folder, sizeof folder, "%s", info.toml_path);
    char *slash = strrchr(folder, '/');
    (void)snprintf(slash ? slash : folder, 2, "%s", slash ? "" : ".");
    if ((rc = ho_study_parse(info.toml, strlen(info.toml), info.toml_path, folder, &study, err)) !=
        HO_OK) {
        goto out;
    }
    wanted.count = study->space.count;
    wanted.config = (double *)calloc((size_t)wanted.count + 1, sizeof *wanted.config);
    if (!wanted.config) {
        rc = ho_err_set(err, HO_ENOMEM, "out of memory");
        goto out;
    }
    if ((rc = ho_store_each_trial(store, &study->space, keep_config, &wanted, err)) != HO_OK) {
        goto out;
    }
    if (!wanted.found) {
        rc = ho_err_set(err, HO_ENOTFOUND, "%s: there is no trial %lld", ho_store_path(store),
                        (long long)trial);
        goto out;
    }
    if ((rc = ho_settings_apply(study->settings, &study->space, wanted.config, err)) == HO_OK) {
        (void)fprintf(out, "# Trial %lld of study %s (%s).\n\n", (long long)trial, info.name,
                      info.uuid);
        print_settings(out, study->settings);
    }
out:
    free(wanted.config);
    ho_study_free(&study);
    ho_store_info_free(&info);
    return rc;
}

/* ---- Optuna --------------------------------------------------------------------------------- */

ho_status ho_export_optuna(const char *db_path, const char *path, ho_err *err)
{
    char part[PATH_MAX], uri[3 * PATH_MAX];
    sqlite3 *db = NULL;
    sqlite3_stmt *attach = NULL;
    ho_status rc = HO_OK;

    if (snprintf(part, sizeof part, "%s.part", path) >= (int)sizeof part ||
        ho_store_uri(db_path, "mode=ro", uri, sizeof uri) != HO_OK) {
        return ho_err_set(err, HO_EUSAGE, "%s: the path is too long", path);
    }
    (void)unlink(part);
    if (sqlite3_open_v2(part, &db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI |
                            SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK) {
        rc = ho_err_set(err, HO_EIO, "%s: %s", part, db ? sqlite3_errmsg(db) : "out of memory");
        goto out;
    }
    if (sqlite3_exec(db, "PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF", NULL, NULL,
                     NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(db, "ATTACH ?1 AS source", -1, &attach, NULL) != SQLITE_OK ||
        sqlite3_bind_text(attach, 1, uri, -1, SQLITE_STATIC) != SQLITE_OK ||
        sqlite3_step(attach) != SQLITE_DONE || sqlite3_finalize(attach) != SQLITE_OK ||
        sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(db, ho_sql_optuna_tables, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK) {
        rc = ho_err_set(err, HO_ESTORE, "%s: %s", path, sqlite3_errmsg(db));
        goto out;
    }
    if (sqlite3_close(db) != SQLITE_OK || rename(part, path) != 0) {
        rc = ho_err_set(err, HO_EIO, "%s: %s", path, strerror(errno));
    } else {
        db = NULL;
    }
out:
    (void)sqlite3_close_v2(db);
    if (rc != HO_OK) {
        (void)unlink(part);
    }
    return rc;
}

/* ---- weights -------------------------------------------------------------------------------- */

static ho_status copy_file(const char *from, const char *to, ho_err *err)
{
    char buffer[1 << 16], part[PATH_MAX];
    FILE *in = NULL, *out = NULL;
    ho_status rc = HO_OK;

    if (snprintf(part, sizeof part, "%s.part", to) >= (int)sizeof part) {
        return ho_err_set(err, HO_EUSAGE, "%s: the path is too long", to);
    }
    if (!(in = fopen(from, "rb"))) {
        return ho_err_set(err, HO_EIO, "%s: %s", from, strerror(errno));
    }
    if (!(out = fopen(part, "wb"))) {
        rc = ho_err_set(err, HO_EIO, "%s: %s", part, strerror(errno));
        goto out;
    }
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, in)) > 0;) {
        if (fwrite(buffer, 1, n, out) != n) {
            break;
        }
    }
    bool bad = ferror(in) || ferror(out);
    bad |= fclose(out) != 0;
    out = NULL;
    if (bad || rename(part, to) != 0) {
        rc = ho_err_set(err, HO_EIO, "%s: %s", to, strerror(errno));
        (void)unlink(part);
    }
out:
    (void)fclose(in);
    return rc;
}

/* Reads a model and writes it as ONNX. */
static ho_status convert_file(const char *from, const char *to, ho_err *err)
{
    char part[2 * PATH_MAX];
    ho_safetensors model = {0};
    void *bytes = NULL;
    size_t size = 0;
    ho_status rc = ho_safetensors_read(from, &model, err);
    if (rc != HO_OK) {
        return rc;
    }
    if ((rc = ho_onnx_from_model(&model, &bytes, &size, err)) != HO_OK) {
        ho_err_prefix(err, "%s", from);
        goto out;
    }
    (void)snprintf(part, sizeof part, "%.*s.part", PATH_MAX, to);
    FILE *out = fopen(part, "wb");
    bool bad = !out || fwrite(bytes, 1, size, out) != size;
    bad |= out && fclose(out) != 0;
    if (bad || rename(part, to) != 0) {
        rc = ho_err_set(err, HO_EIO, "%s: %s", to, strerror(errno));
        (void)unlink(part);
    }
out:
    free(bytes);
    ho_safetensors_free(&model);
    return rc;
}

ho_status ho_export_model(ho_store *store, int64_t trial, const char *folder, bool onnx,
                          int *copied, ho_err *err)
{
    char artifacts[PATH_MAX], from[2 * PATH_MAX], to[2 * PATH_MAX];
    sqlite3_stmt *statement = NULL;
    ho_status rc = HO_OK;

    *copied = 0;
    ho_artifacts_folder(ho_store_path(store), artifacts, sizeof artifacts);
    if (sqlite3_prepare_v2(ho_store_db(store),
                           "SELECT path FROM artifact WHERE trial = ?1 AND kind = 'weights' AND "
                           "deleted_ns IS NULL ORDER BY fold, seed",
                           -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_bind_int64(statement, 1, trial) != SQLITE_OK) {
        rc = store_failed(store, err);
    }
    if (rc == HO_OK && mkdir(folder, 0777) != 0 && errno != EEXIST) {
        rc = ho_err_set(err, HO_EIO, "%s: %s", folder, strerror(errno));
    }
    while (rc == HO_OK && sqlite3_step(statement) == SQLITE_ROW) {
        const char *path = (const char *)sqlite3_column_text(statement, 0);
        const char *name = strrchr(path, '/');
        (void)snprintf(from, sizeof from, "%s/%s", artifacts, path);
        name = name ? name + 1 : path;
        const int stem = onnx ? (int)strcspn(name, ".") : (int)strlen(name);
        (void)snprintf(to, sizeof to, "%s/%.*s%s", folder, stem, name, onnx ? ".onnx" : "");
        rc = onnx ? convert_file(from, to, err) : copy_file(from, to, err);
        if (rc == HO_OK) {
            ++*copied;
        }
    }
    (void)sqlite3_finalize(statement);
    if (rc == HO_OK && *copied == 0) {
        rc = ho_err_set(err, HO_ENOTFOUND,
                        "%s: no weights are kept of trial %lld; store.keep_best says of how many "
                        "trials they are, `hyperopt reproduce` trains it again",
                        ho_store_path(store), (long long)trial);
    }
    return rc;
}
