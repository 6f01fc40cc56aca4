/* SPDX-License-Identifier: Apache-2.0
 * hyperopt completion bash|zsh */
#include <stdio.h>
#include <string.h>

#include "coordinator/reference.h"

int ho_cmd_completion(int argc, char **argv)
{
    ho_arguments args;
    const ho_usage usage = {
        .name = "completion",
        .arguments = "bash|zsh",
        .about = "Prints a completion script: commands, options, settings, example queries. It is\n"
                 "read when a shell starts.",
        .examples = "  eval \"$(hyperopt completion bash)\"        # in ~/.bashrc\n"
                    "  source <(hyperopt completion zsh)          # in ~/.zshrc, after compinit\n",
        .min_arguments = 1,
        .max_arguments = 1,
    };
    ho_status rc = ho_usage_parse(&usage, argc, argv, &args);
    if (rc != HO_OK) {
        return ho_exit_code(rc);
    }
    if (strcmp(args.item[0], "bash") == 0) {
        ho_completion_bash(stdout);
    } else if (strcmp(args.item[0], "zsh") == 0) {
        ho_completion_zsh(stdout);
    } else {
        (void)fprintf(stderr, "hyperopt completion: %s: expected bash or zsh\n", args.item[0]);
        return HO_EXIT_USAGE;
    }
    return HO_EXIT_OK;
}
