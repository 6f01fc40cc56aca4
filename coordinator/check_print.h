/* SPDX-License-Identifier: Apache-2.0
 * What `hyperopt check` says about a study. */
#ifndef HO_COORDINATOR_CHECK_PRINT_H
#define HO_COORDINATOR_CHECK_PRINT_H

#include <stdio.h>

#include "coordinator/setup.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Prints all of it; settings: every effective setting, too. Returns the number of warnings. */
int ho_check_print(FILE *out, const ho_setup *setup, bool settings);

#ifdef __cplusplus
}
#endif
#endif
