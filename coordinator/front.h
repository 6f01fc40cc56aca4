/* SPDX-License-Identifier: Apache-2.0
 * With several objectives there is no single best trial, but a front: the trials that no other one
 * dominates (is as good in every objective, and better in one). */
#ifndef HO_COORDINATOR_FRONT_H
#define HO_COORDINATOR_FRONT_H

#include <stdio.h>

#include "coordinator/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The front of the feasible complete trials as a table; nothing with one objective. */
ho_status ho_front_print(FILE *out, ho_store *store, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
