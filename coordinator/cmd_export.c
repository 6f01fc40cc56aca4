/* SPDX-License-Identifier: Apache-2.0
 * hyperopt export DB FORM */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coordinator/commands.h"
#include "coordinator/export.h"
#include "coordinator/trial_print.h"

static const char *const form_name[] = {"csv", "config", "optuna", "model", "onnx"};
enum { BUFFER = 1 << 18 }; /* bytes written at once */
enum { FORM_CSV, FORM_CONFIG, FORM_OPTUNA, FORM_MODEL, FORM_ONNX, FORM_COUNT };

/* Writes csv or config to a file that appears whole, or to standard output. */
static ho_status write_text(ho_store *store, int form, int64_t trial, const char *path, ho_err *err)
{
    char *part = NULL;
    FILE *out = stdout;
    ho_status rc = HO_OK;

    if (path) {
        if (asprintf(&part, "%s.part", path) < 0) {
            return ho_err_set(err, HO_ENOMEM, "out of memory");
        }
        out = fopen(part, "w");
        if (!out) {
            rc = ho_err_set(err, HO_EIO, "%s: %s", part, strerror(errno));
            free(part);
            return rc;
        }
        (void)setvbuf(out, NULL, _IOFBF, BUFFER);
    }
    rc = form == FORM_CSV ? ho_export_csv(store, out, err)
                          : ho_export_config(store, trial, out, err);
    if (path) {
        bool bad = ferror(out);
        bad |= fclose(out) != 0;
        if (rc == HO_OK && (bad || rename(part, path) != 0)) {
            rc = ho_err_set(err, HO_EIO, "%s: %s", path, strerror(errno));
        }
        if (rc != HO_OK) {
            (void)unlink(part);
        }
        free(part);
    } else if (rc == HO_OK && fflush(out) != 0) {
        rc = ho_err_set(err, HO_EIO, "standard output: %s", strerror(errno));
    }
    return rc;
}

int ho_cmd_export(int argc, char **argv)
{
    const char *path = NULL;
    int64_t trial = -1;
    ho_arguments args;
    ho_err err = {0};
    ho_store *store = NULL;
    const ho_option option[] = {
        {"output", 'o', HO_OPTION_STRING, &path, "PATH",
         "file to write, for model and onnx a folder; csv and config: standard output", 0, 0},
        {"trial", 't', HO_OPTION_INTEGER, &trial, "N",
         "config, model, onnx: of this trial, not the best", 0, 1e12},
    };
    const ho_usage usage = {
        .name = "export",
        .arguments = "DB csv|config|optuna|model|onnx",
        .about = "csv     one row a trial: parameters, objectives, metrics (ready for Parquet)\n"
                 "config  a study file with a trial's parameters as settings, without a search\n"
                 "optuna  a file for Optuna's browser dashboard; Optuna itself and its server\n"
                 "        dashboard open the database as it is (docs/sql.md)\n"
                 "model   the weights of a trial's agents (safetensors), one file a fold and seed\n"
                 "onnx    the same as ONNX models: input state, outputs score and action\n",
        .examples = "  hyperopt export es-dqn.db csv -o es-dqn.csv\n"
                    "  hyperopt export es-dqn.db config > best.toml\n"
                    "  hyperopt export es-dqn.db optuna -o optuna.db\n"
                    "  hyperopt export es-dqn.db model -o agents/\n"
                    "  hyperopt export es-dqn.db onnx -o agents/\n",
        .option = option,
        .option_count = sizeof option / sizeof option[0],
        .min_arguments = 2,
        .max_arguments = 2,
    };
    ho_status rc = ho_usage_parse(&usage, argc, argv, &args);
    if (rc != HO_OK) {
        return ho_exit_code(rc);
    }
    int form = 0;
    while (form < FORM_COUNT && strcmp(form_name[form], args.item[1]) != 0) {
        form++;
    }
    const bool agents = form == FORM_MODEL || form == FORM_ONNX;
    if (form == FORM_COUNT || (!path && (form == FORM_OPTUNA || agents))) {
        (void)fprintf(stderr,
                      form == FORM_COUNT
                          ? "hyperopt export: %s: expected csv, config, optuna, model or onnx\n"
                          : "hyperopt export: %s needs -o PATH\n",
                      args.item[1]);
        return HO_EXIT_USAGE;
    }
    if ((rc = ho_store_open_read(&store, args.item[0], &err)) != HO_OK) {
        (void)ho_exit_report(&err);
        return HO_EXIT_STORE;
    }
    int copied = 0;
    if (trial < 0 && (form == FORM_CONFIG || agents)) {
        rc = ho_trial_best(store, &trial, &err);
    }
    if (rc == HO_OK) {
        rc = form == FORM_OPTUNA ? ho_export_optuna(args.item[0], path, &err)
             : agents ? ho_export_model(store, trial, path, form == FORM_ONNX, &copied, &err)
                      : write_text(store, form, trial, path, &err);
    }
    ho_store_close(&store);
    if (rc != HO_OK) {
        return ho_exit_report(&err);
    }
    if (agents) {
        (void)printf("%d files of trial %lld in %s\n", copied, (long long)trial, path);
    } else if (path) {
        (void)printf("%s\n", path);
    }
    return HO_EXIT_OK;
}
