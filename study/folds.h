/* SPDX-License-Identifier: Apache-2.0
 * Walk-forward folds: who trains on which bars, who is scored on which.
 * All windows are [begin, end) in bars of the loaded market; warm-up bars before `first` are never
 * inside one. A fold, with its `train` span as written from a to test.begin:
 *
 *   a = train.begin .. train.end | purge | validation | purge | test .. test.end
 *
 * The last test window ends where the holdout begins; fold k ends `step` before fold k+1. */
#ifndef HO_STUDY_FOLDS_H
#define HO_STUDY_FOLDS_H

#include <stdint.h>

#include "kernels/shapes.h"
#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HO_FOLDS_MAX = 256 };

typedef enum ho_fold_scheme { HO_FOLDS_ROLLING, HO_FOLDS_ANCHORED } ho_fold_scheme;

/* A length as written: "auto", bars, days ("20d": sessions) or a share ("15%" of the usable bars).
 */
typedef enum ho_span_unit { HO_SPAN_AUTO, HO_SPAN_BARS, HO_SPAN_DAYS, HO_SPAN_SHARE } ho_span_unit;
typedef struct ho_span {
    ho_span_unit unit;
    double amount;
} ho_span;

/* "auto" | "20000" | "20d" | "15%". HO_EINVAL with the reason and the legal forms. */
ho_status ho_span_parse(const char *text, ho_span *out, ho_err *err);

typedef struct ho_fold_spec {
    ho_fold_scheme scheme;
    int count;
    ho_span test, train, step, purge, validation, holdout;
    int refit_once;     /* one agent before the first test scores every test window */
    int stitched;       /* test windows are joined, so step < test is an error */
    int64_t purge_auto; /* largest searchable max_holding + n_step, for purge = "auto" */
} ho_fold_spec;

typedef struct ho_fold {
    ho_window train;      /* without validation and purge */
    ho_window validation; /* empty (begin == end) with validation = "0" */
    ho_window test;
} ho_fold;

typedef struct ho_fold_plan {
    int count;
    ho_fold fold[HO_FOLDS_MAX];
    ho_window holdout; /* empty with holdout = "0" */
    int64_t purge, step;
    int64_t first, T; /* usable bars are [first, T) */
} ho_fold_plan;

/* Lays the folds out, end-aligned before the holdout. Automatic lengths: test = bars before the
 * holdout / (count + 4), train = 4 test, step = test. A share is of the usable bars, validation's
 * of its train window. session: [T] trading-day index, needed for spans in days, else NULL. split:
 * [T] or NULL: a validation, test or holdout window that a split crosses is an error naming the bar
 * (train windows may hold splits: no episode crosses one).
 * HO_ECONFIG: does not fit; err says how many bars are missing and which key to change. */
ho_status ho_folds_plan(const ho_fold_spec *spec, int64_t first, int64_t T, const int32_t *session,
                        const uint8_t *split, ho_fold_plan *out, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
