/* SPDX-License-Identifier: Apache-2.0
 * A small study for tests of the store and of dispatch: three parameters (one of them a choice that
 * switches another on), two folds, one objective; and a fresh path for its database. */
#ifndef HO_TESTS_COORDINATOR_FIXTURE_H
#define HO_TESTS_COORDINATOR_FIXTURE_H

#include "coordinator/store.h"
#include "study/study.h"

extern const char fixture_toml[];

/* Parses a study from text; fails the test otherwise. */
ho_study *fixture_study(const char *toml);

/* A path in a new folder under the working directory; the caller's buffer. */
void fixture_path(char *out, size_t room);

/* Opens (creating) a store at path with the study written into it. */
ho_store *fixture_store(const char *path, const ho_study *study, int64_t trials);

/* One number of a query, or fails. */
int64_t fixture_count(ho_store *store, const char *sql);

/* Writes all that is queued. */
void fixture_flush(ho_store *store);

#endif
