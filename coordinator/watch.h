/* SPDX-License-Identifier: Apache-2.0
 * `hyperopt status --watch`: a full-screen view of a study that goes on, by ncurses. It only reads
 * the file, so that it may run anywhere the file is seen, any number of times. */
#ifndef HO_COORDINATOR_WATCH_H
#define HO_COORDINATOR_WATCH_H

#include "coordinator/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Blocks until q, Escape or a signal; looks at the file every every_s seconds (0.1 at least) and
 * draws anew when the window's size changes. HO_EUSAGE: standard output is no terminal, or the
 * terminal cannot do it (err says what to use instead). HO_ESTORE: the file cannot be read. */
ho_status ho_watch(ho_store *store, double every_s, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
