/* SPDX-License-Identifier: Apache-2.0
 * Reads the market data of a study that is due next, while another one trains: on a thread of its
 * own, which parses the files and puts the features into the user's cache, and keeps nothing. The
 * study then begins with pages and features that are there. A failure is a line in the log: the
 * study says the same in its turn. */
#ifndef HO_COORDINATOR_READ_AHEAD_H
#define HO_COORDINATOR_READ_AHEAD_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_read_ahead ho_read_ahead;

/* Begins with the study file at path, unless its data might not fit beside what runs. NULL: it was
 * not begun. */
ho_read_ahead *ho_read_ahead_begin(const char *path);

bool ho_read_ahead_done(const ho_read_ahead *ahead);

/* Waits for it. NULL is fine. */
void ho_read_ahead_end(ho_read_ahead **ahead);

#ifdef __cplusplus
}
#endif
#endif
