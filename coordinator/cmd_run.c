/* SPDX-License-Identifier: Apache-2.0
 * hyperopt run STUDY.toml */
#include <stdio.h>

#include "coordinator/commands.h"
#include "coordinator/leaderboard.h"
#include "coordinator/run.h"

enum { SHOWN = 10 };

static int print_end(const ho_run_options *options, const ho_run_end *end)
{
    ho_store *store = NULL;
    ho_err err = {0};
    if (ho_store_open_read(&store, end->database, &err) != HO_OK) {
        return ho_exit_report(&err);
    }
    if (end->nothing_to_do) {
        (void)printf("%s has ended already (%s); `--trials N` adds trials.\n", end->database,
                     end->reason);
    }
    (void)printf("\n");
    if (ho_summary_print(stdout, store, &err) == HO_OK) {
        (void)printf("\n");
        if (ho_leaderboard_print(stdout, store, SHOWN, &err) == HO_OK) {
            (void)printf("\n");
            (void)ho_verdict_print(stdout, store, &err);
        }
    }
    if (err.code == HO_OK) {
        ho_next_commands_print(stdout, store, options->study);
    }
    ho_store_close(&store);
    return err.code == HO_OK ? HO_EXIT_OK : ho_exit_report(&err);
}

int ho_cmd_run(int argc, char **argv)
{
    ho_run_options o = {0};
    ho_option_list set = {0};
    ho_arguments args;
    ho_run_end end;
    ho_err err = {0};
    const ho_option option[] = {
        {"trials", 'n', HO_OPTION_INTEGER, &o.more_trials, "N",
         "run N trials more than the study has", 1, 1e7},
        {"database", 'd', HO_OPTION_STRING, &o.database, "FILE", "instead of study.database", 0, 0},
        {"set", 0, HO_OPTION_LIST, &set, "KEY=VALUE", "override a setting; may be repeated", 0, 0},
        {"allow-change", 0, HO_OPTION_FLAG, &o.allow_change, NULL,
         "go on although the study file was changed: ended trials stay and are used where they "
         "fit, unfinished ones begin anew; another objective needs another database",
         0, 0},
        {"cpu", 0, HO_OPTION_FLAG, &o.cpu, NULL, "use the CPU backend even where there is a GPU", 0,
         0},
        {"workers", 'w', HO_OPTION_INTEGER, &o.workers, "N", "local CPU workers", 1, 1024},
        {"listen", 0, HO_OPTION_STRING, &o.listen, "ENDPOINT",
         "take remote workers too, e.g. tcp://*:5555", 0, 0},
        {"curve", 0, HO_OPTION_STRING, &o.curve, "DIR", "keys made by `hyperopt keygen`", 0, 0},
        {"insecure", 0, HO_OPTION_FLAG, &o.insecure, NULL,
         "listen beyond this machine without CURVE", 0, 0},
        {"no-local", 0, HO_OPTION_FLAG, &o.no_local, NULL, "start no local worker", 0, 0},
        {"linger", 0, HO_OPTION_FLAG, &o.linger, NULL,
         "stay after the end until a signal and send late workers home; a signal leaves remote "
         "workers training for the next start",
         0, 0},
        {"quiet", 'q', HO_OPTION_FLAG, &o.quiet, NULL, "no progress", 0, 0},
    };
    const ho_usage usage = {
        .name = "run",
        .arguments = "STUDY.toml",
        .about =
            "Runs a study, or resumes it: finished trials are kept, interrupted ones run again, a\n"
            "study that has ended runs nothing more unless --trials adds some. Results go into\n"
            "one SQLite file while it runs. Progress is a bar on a terminal, plain lines in a "
            "log.\n\n"
            "Ctrl-C once lets running trials end, twice stops now, thrice kills. SIGUSR1 stops "
            "now.",
        .examples = "  hyperopt run configs/quickstart.toml\n"
                    "  hyperopt run es-dqn.toml --trials 50\n"
                    "  hyperopt run es-dqn.toml --set study.seed=7 --database seed7.db\n"
                    "  hyperopt run es-dqn.toml --listen tcp://*:5555 --curve keys/\n",
        .option = option,
        .option_count = sizeof option / sizeof option[0],
        .min_arguments = 1,
        .max_arguments = 1,
    };
    ho_status rc = ho_usage_parse(&usage, argc, argv, &args);
    if (rc != HO_OK) {
        return ho_exit_code(rc);
    }
    o.study = args.item[0];
    o.set = &set;
    rc = ho_run(&o, &end, &err);
    if (rc != HO_OK && rc != HO_ECANCELLED) {
        err.code = rc;
        return ho_exit_report(&err);
    }
    int code = print_end(&o, &end);
    if (rc == HO_ECANCELLED) {
        (void)fprintf(stderr, "hyperopt: interrupted; run it again to resume\n");
        return HO_EXIT_INTERRUPTED;
    }
    return code;
}
