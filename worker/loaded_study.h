/* SPDX-License-Identifier: Apache-2.0
 * The study this worker serves, with its bars, features and market on the device. It is made from a
 * `study` message; data files that are not here are asked for and come in chunks:
 *
 *     WANTING --- last file complete ---> COMPLETE --- ho_loaded_study_open ---> open
 */
#ifndef HO_WORKER_LOADED_STUDY_H
#define HO_WORKER_LOADED_STUDY_H

#include "market/study_data.h"
#include "study/study.h"
#include "study/wire.h"
#include "worker/data_cache.h"
#include "worker/lane_config.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_loaded_study {
    char uuid[40];
    ho_study *study;     /* with the effective settings */
    ho_fold_plan *folds; /* the coordinator's */
    uint64_t seed;
    int32_t auto_batch;
    int32_t file_count;
    ho_data_file *file;
    char (*path)[HO_CACHE_PATH]; /* [file_count] where each is here; "" not yet */
    int32_t tries;               /* transfers thrown away because of a wrong hash */
    ho_bars bars;
    ho_features features;
    ho_market *market; /* NULL until open */
} ho_loaded_study;

/* Takes settings, folds and files out of the message. HO_ECONFIG: the study file does not parse
 * here (another version of the program). */
ho_status ho_loaded_study_create(ho_loaded_study **out, ho_msg_study *message, ho_err *err);
void ho_loaded_study_destroy(ho_loaded_study **loaded);

/* Looks for the files that are not here yet. HO_OK: all are. HO_EAGAIN: *want is to be sent (and
 * the chunks to be written by ho_loaded_study_chunk). HO_ELOCKED: another worker of this machine
 * fetches the file, look again in a second. HO_EIO, HO_EDATA: it cannot be had. */
ho_status ho_loaded_study_find(ho_loaded_study *loaded, ho_data_cache *cache, ho_msg_want *want,
                               ho_err *err);

/* A chunk of a data file. HO_OK: *next says that a file is complete and find is to be called.
 * HO_EIO, HO_EDATA as above; a wrong hash is tried again three times. */
ho_status ho_loaded_study_chunk(ho_loaded_study *loaded, ho_data_cache *cache,
                                const ho_msg_chunk *chunk, bool *next, ho_err *err);

/* Loads bars and features and puts the market on the device. HO_EDATA and others: err says why. */
ho_status ho_loaded_study_open(ho_loaded_study *loaded, ho_backend *backend, ho_err *err);

/* For ho_lane_config_plan; borrows from loaded. */
ho_lane_context ho_loaded_study_context(const ho_loaded_study *loaded);

#ifdef __cplusplus
}
#endif
#endif
