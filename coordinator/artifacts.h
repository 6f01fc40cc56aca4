/* SPDX-License-Identifier: Apache-2.0
 * The artifact folder beside the database: weights and checkpoints of trials, put together from the
 * chunks that workers send.
 *
 * A file grows as NAME.part and appears under its name only when it is whole, its SHA-256 matches
 * and it is on disk (fsync); then it gets its row in the store. Names come over the wire and are
 * checked: no folder, no leading dot. */
#ifndef HO_COORDINATOR_ARTIFACTS_H
#define HO_COORDINATOR_ARTIFACTS_H

#include "coordinator/store.h"
#include "study/wire.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_artifacts ho_artifacts;

/* Deletes such a folder with all that is in it; nothing happens where there is none. */
void ho_artifacts_remove(const char *folder);

/* The folder of a database: "es.db" has "es.artifacts" beside it. */
void ho_artifacts_folder(const char *db_path, char *out, size_t room);

/* The folder is made with the first file. */
ho_status ho_artifacts_create(ho_artifacts **out, const char *folder, ho_store *store, ho_err *err);
void ho_artifacts_destroy(ho_artifacts **artifacts);

/* Takes one chunk of (trial, attempt). HO_EAGAIN: not the part that comes next (repeated or late),
 * left out. HO_EPROTO: a bad name, or the hash does not match. HO_EIO: the disk refuses. */
ho_status ho_artifacts_chunk(ho_artifacts *artifacts, int64_t trial, int32_t attempt,
                             const ho_msg_chunk *chunk, int64_t unix_ns, ho_err *err);

/* Whether a file of so many bytes could be written now; HO_EIO with the path and why not. */
ho_status ho_artifacts_room(ho_artifacts *artifacts, uint64_t bytes, ho_err *err);

/* Opens the newest whole checkpoint of a trial for reading: its hash and size, *fd the caller's to
 * close. A newer one that replaces it later does not change what *fd reads. HO_ENOTFOUND: none. */
ho_status ho_artifacts_open_checkpoint(ho_artifacts *artifacts, int64_t trial, int *fd,
                                       uint64_t *size, char sha256[65], ho_err *err);

/* Deletes a trial's checkpoints (it has ended), or its weights (it is not kept). */
void ho_artifacts_delete(ho_artifacts *artifacts, int64_t trial, bool weights, int64_t unix_ns);

#ifdef __cplusplus
}
#endif
#endif
