/* SPDX-License-Identifier: Apache-2.0
 * What differs between the study file and the one that the database's trials were made with. */
#ifndef HO_COORDINATOR_CHANGE_H
#define HO_COORDINATOR_CHANGE_H

#include "coordinator/setup.h"
#include "coordinator/store.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_change {
    char *text;     /* one line a difference, "  key: old -> new"; malloc'ed; "" without one */
    int any;        /* differences of any kind */
    int weighty;    /* those that make old and new trials differ in more than their parameters */
    int64_t trials; /* study.trials as the old file had it */
    const char *barred; /* a key that says what stored values are and differs; NULL: none */
} ho_change;

/* HO_ESTORE: the stored study cannot be read by this program. Free with ho_change_free. */
ho_status ho_change_find(const ho_setup *setup, const ho_store_info *info, ho_change *out,
                         ho_err *err);
void ho_change_free(ho_change *change);

#ifdef __cplusplus
}
#endif
#endif
