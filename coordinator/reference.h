/* SPDX-License-Identifier: Apache-2.0
 * Pages about the command line, made from the commands' own descriptions (ho_usage) and the
 * settings table: docs/commands.md, man/hyperopt.1, and completion for bash and zsh. What they say
 * can therefore not differ from what the program does. */
#ifndef HO_COORDINATOR_REFERENCE_H
#define HO_COORDINATOR_REFERENCE_H

#include <stdio.h>

#include "coordinator/commands.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Options that every command takes, beside its own. */
enum { HO_COMMON_OPTIONS = 3 };
extern const ho_option ho_common_option[HO_COMMON_OPTIONS];

/* Each command's description, in the order of the commands. */
void ho_commands_visit(void (*visit)(const ho_usage *usage, const char *summary, void *user),
                       void *user);

void ho_reference_markdown(FILE *out); /* `hyperopt help commands` */
void ho_reference_man(FILE *out);      /* `hyperopt help man`, roff */
void ho_completion_bash(FILE *out);
void ho_completion_zsh(FILE *out);

#ifdef __cplusplus
}
#endif
#endif
