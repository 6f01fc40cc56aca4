/* SPDX-License-Identifier: Apache-2.0
 * What the store_*.c files share; for nobody else but their tests. */
#ifndef HO_COORDINATOR_STORE_INTERNAL_H
#define HO_COORDINATOR_STORE_INTERNAL_H

#include <limits.h>

#include "coordinator/store.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HO_STORE_APPLICATION_ID = 0x484F5054, HO_STORE_STATEMENTS = 40 };

typedef struct ho_store_row ho_store_row; /* a queued statement with its values */

struct ho_store {
    sqlite3 *db;
    char path[PATH_MAX];
    char lock_path[PATH_MAX];
    int lock_fd; /* -1: none */
    bool writable, rollback;
    ho_store_options options;
    sqlite3_stmt *statement[HO_STORE_STATEMENTS];
    ho_store_row *first, *last; /* the queue */
    bool failed_alloc;          /* a put ran out of memory: flushing is refused */
    int64_t queued, committed;
    int transitions;   /* queued rows that count for group_max */
    int64_t oldest_ns; /* when the queue got its first row; 0: unknown yet */
    int64_t retry_at_ns;
    char paused[HO_ERR_TEXT]; /* empty: not paused */
    ho_store_health health;
    int64_t next_worker;
};

/* Brings db from its version to `target`, that of sql/schema.sql, after copying the file to
 * "<path>.v<version>.bak". The views are gone then. HO_ESTORE: newer than target, or a step fails
 * (nothing is changed then). *migrated: whether anything was done. */
ho_status ho_store_migrate(sqlite3 *db, const char *path, int target, bool *migrated, ho_err *err);

/* The first number of a query; fallback when there is none. */
int64_t ho_store_number(sqlite3 *db, const char *sql, int64_t fallback);

/* Whether statfs's f_type is a network filesystem, on which WAL's shared memory does not work. */
bool ho_store_is_network(long f_type);

/* Runs one or more statements; HO_ESTORE with "path: what: sqlite's text". */
ho_status ho_store_exec(ho_store *store, const char *sql, const char *what, ho_err *err);
ho_status ho_store_fail(ho_store *store, const char *what, ho_err *err);

/* Frees queued rows and cached statements. */
void ho_store_queue_free(ho_store *store);

/* Makes the views anew, in the transaction of the caller. */
ho_status ho_store_put_views(ho_store *store, ho_err *err);

/* The definition of the view trial_wide (and fold_wide) of this study, malloc'ed, or NULL. */
char *ho_store_wide_views(ho_store *store);

#ifdef __cplusplus
}
#endif
#endif
