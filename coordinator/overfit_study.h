/* SPDX-License-Identifier: Apache-2.0
 * Overfitting statistics of a whole study, from what its file holds (kernels/metrics/overfit.h has
 * the formulas): PSR, DSR and the minimum track record of the best trial, PBO over the session
 * returns of all finished trials. */
#ifndef HO_COORDINATOR_OVERFIT_STUDY_H
#define HO_COORDINATOR_OVERFIT_STUDY_H

#include "coordinator/store.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HO_PBO_TRIALS_MAX = 1000, HO_PBO_BLOCKS = 16 };

/* Reads the trials. HO_OK also when nothing can be said: the values are then NaN and notes says
 * why. configurations counts every agent that was evaluated or failed under way, all seeds, also
 * those of parent studies: what the best one was chosen from. */
ho_status ho_overfit_measure(ho_store *store, int64_t now_ns, ho_overfit_row *out, ho_err *err);

/* Agents tried in all: `configurations` alone. */
ho_status ho_overfit_tried(ho_store *store, int64_t *out, ho_err *err);

/* What the row means, in one or two sentences for people, without line breaks. */
void ho_overfit_sentence(const ho_overfit_row *row, char *out, size_t room);

/* The newest row of the file; HO_ENOTFOUND without one (err untouched). */
ho_status ho_overfit_read(ho_store *store, ho_overfit_row *out, ho_err *err);

/* Takes over what the null test said, into a row that is newer; it stands until the test is run
 * again. Of another best trial the notes say so. */
void ho_overfit_keep_null(ho_store *store, ho_overfit_row *row);

#ifdef __cplusplus
}
#endif
#endif
