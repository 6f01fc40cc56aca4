/* SPDX-License-Identifier: Apache-2.0
 * hyperopt check STUDY.toml */
#include <stdio.h>

#include "coordinator/check_print.h"
#include "coordinator/commands.h"
#include "coordinator/setup.h"

int ho_cmd_check(int argc, char **argv)
{
    bool strict = false, all = false;
    ho_option_list set = {0};
    ho_arguments args;
    ho_setup setup;
    ho_err err = {0};
    const ho_option option[] = {
        {"set", 0, HO_OPTION_LIST, &set, "KEY=VALUE", "override a setting; may be repeated", 0, 0},
        {"strict", 0, HO_OPTION_FLAG, &strict, NULL, "exit code 5 when there are warnings", 0, 0},
        {"settings", 0, HO_OPTION_FLAG, &all, NULL, "every effective setting, too", 0, 0},
    };
    const ho_usage usage = {
        .name = "check",
        .arguments = "STUDY.toml",
        .about = "Validates a study file and shows what it means: data, folds with every boundary, "
                 "size and\n"
                 "notional, search space, trials in flight, shapes, memory, and what is optimistic "
                 "in the\n"
                 "settings. Runs nothing.",
        .examples = "  hyperopt check configs/quickstart.toml\n",
        .option = option,
        .option_count = 3,
        .min_arguments = 1,
        .max_arguments = 1,
    };
    ho_status rc = ho_usage_parse(&usage, argc, argv, &args);
    if (rc != HO_OK) {
        return ho_exit_code(rc);
    }
    if ((rc = ho_setup_load(&setup, args.item[0], &set, &err)) != HO_OK) {
        err.code = rc;
        return ho_exit_report(&err);
    }
    int warnings = ho_check_print(stdout, &setup, all);
    ho_setup_free(&setup);
    return strict && warnings > 0 ? HO_EXIT_WARNINGS : HO_EXIT_OK;
}
