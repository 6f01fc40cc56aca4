/* SPDX-License-Identifier: Apache-2.0
 * hyperopt best DB, hyperopt show DB N */
#include <stdio.h>

#include "coordinator/commands.h"
#include "coordinator/leaderboard.h"
#include "coordinator/store.h"
#include "coordinator/trial_print.h"

int ho_cmd_best(int argc, char **argv)
{
    bool toml_only = false;
    int64_t number = 0;
    ho_arguments args;
    ho_err err = {0};
    ho_store *store = NULL;
    const ho_option option[] = {
        {"toml", 0, HO_OPTION_FLAG, &toml_only, NULL, "the parameters alone", 0, 0},
    };
    const ho_usage usage = {
        .name = "best",
        .arguments = "DB",
        .about = "The best trial: its parameters as TOML, ready to paste into a study file, and "
                 "its folds\n"
                 "beside the baselines, and how much of it may be luck.",
        .examples =
            "  hyperopt best quickstart.db\n  hyperopt best quickstart.db --toml >> fixed.toml\n",
        .option = option,
        .option_count = 1,
        .min_arguments = 1,
        .max_arguments = 1,
    };
    ho_status rc = ho_usage_parse(&usage, argc, argv, &args);
    if (rc != HO_OK) {
        return ho_exit_code(rc);
    }
    if ((rc = ho_store_open_read(&store, args.item[0], &err)) != HO_OK) {
        (void)ho_exit_report(&err);
        return HO_EXIT_STORE;
    }
    rc = ho_trial_best(store, &number, &err);
    if (rc == HO_OK && !toml_only &&
        (rc = ho_trial_print_head(stdout, store, number, &err)) == HO_OK) {
        (void)printf("\n");
    }
    if (rc == HO_OK) {
        rc = ho_trial_print_toml(stdout, store, number, &err);
    }
    if (rc == HO_OK && !toml_only &&
        (rc = ho_trial_print_folds(stdout, store, number, &err)) == HO_OK) {
        ho_overfit_print(stdout, store);
    }
    ho_store_close(&store);
    return rc == HO_OK ? HO_EXIT_OK : ho_exit_report(&err);
}

int ho_cmd_show(int argc, char **argv)
{
    bool why = false;
    ho_err err = {0};
    ho_store *store = NULL;
    int64_t number = -1;
    const ho_option option[] = {
        {"why", 0, HO_OPTION_FLAG, &why, NULL,
         "how the sampler came to it, and each decision about it in full", 0, 0},
    };
    const ho_usage usage = {
        .name = "show",
        .arguments = "DB N",
        .about = "One trial whole: state, parameters, folds, reports with the pruner's decisions,\n"
                 "artifacts, events.",
        .examples = "  hyperopt show quickstart.db 3\n  hyperopt show quickstart.db 3 --why\n",
        .option = option,
        .option_count = 1,
        .min_arguments = 2,
        .max_arguments = 2,
    };
    ho_status rc = HO_OK;
    int code = HO_EXIT_OK;
    if (!ho_usage_open_trial(&usage, argc, argv, &number, &store, &code)) {
        return code;
    }
    if ((rc = ho_trial_print_head(stdout, store, number, &err)) == HO_OK &&
        (!why || (rc = ho_trial_print_why(stdout, store, number, &err)) == HO_OK)) {
        (void)printf("\n");
        if ((rc = ho_trial_print_toml(stdout, store, number, &err)) == HO_OK &&
            (rc = ho_trial_print_folds(stdout, store, number, &err)) == HO_OK) {
            rc = ho_trial_print_history(stdout, store, number, &err);
        }
    }
    ho_store_close(&store);
    return rc == HO_OK ? HO_EXIT_OK : ho_exit_report(&err);
}
