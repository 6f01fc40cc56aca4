/* SPDX-License-Identifier: Apache-2.0
 * Progress of a run on standard error. On a terminal: one line that is painted again (bar, rate,
 * time left, best so far), at most ten times a second. Elsewhere: a plain line without control
 * characters when a trial ends, at most one a second, and one each half minute while nothing ends.
 * NO_COLOR, TERM=dumb and narrow terminals are honoured. */
#ifndef HO_COORDINATOR_PROGRESS_H
#define HO_COORDINATOR_PROGRESS_H

#include <stdio.h>

#include "coordinator/dispatch.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_progress ho_progress;

/* metric: name of the first objective. quiet: nothing at all. NULL when memory is out. */
ho_progress *ho_progress_create(FILE *out, const char *metric, bool quiet, int64_t now_ns);
/* Leaves the terminal as it was. */
void ho_progress_destroy(ho_progress **progress);

void ho_progress_update(ho_progress *progress, const ho_dispatch_view *view, int64_t now_ns);

/* The line as it is painted, for tests: width columns, no line break. */
void ho_progress_line(const ho_dispatch_view *view, const char *metric, double elapsed_s, int width,
                      char *out, size_t room);

#ifdef __cplusplus
}
#endif
#endif
