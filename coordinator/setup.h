/* SPDX-License-Identifier: Apache-2.0
 * What a command that works on a study file needs before anything runs: the study, its market data,
 * its folds, and the files that workers must have. */
#ifndef HO_COORDINATOR_SETUP_H
#define HO_COORDINATOR_SETUP_H

#include "coordinator/commands.h"
#include "coordinator/store.h"
#include "market/bars.h"
#include "market/load.h"
#include "study/folds.h"
#include "study/study.h"
#include "study/wire.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_setup {
    ho_study *study;
    int file_count;
    ho_data_file *file; /* [file_count] in order of data.path */
    ho_bars bars;
    ho_data_report report;
    int64_t warmup; /* first bar that may be traded */
    int columns;    /* market features */
    ho_fold_plan folds;
    int32_t auto_batch; /* measured for dqn.batch = "auto"; 0: not (yet) */
} ho_setup;

/* Changes the settings of a study that has just been read. */
typedef ho_status ho_setup_adjust(ho_settings *settings, void *user, ho_err *err);

/* Loads all of it. set: "key=value" overrides of settings, or NULL. Cleared on entry.
 * HO_ECONFIG or HO_EUSAGE: the study or an override; HO_EDATA, HO_EIO: the data. */
ho_status ho_setup_load(ho_setup *out, const char *path, const ho_option_list *set, ho_err *err);
/* The same; adjust (or NULL) is called after `set`, before the data is loaded. */
ho_status ho_setup_load_adjusted(ho_setup *out, const char *path, const ho_option_list *set,
                                 ho_setup_adjust *adjust, void *user, ho_err *err);

/* The same from a study's text, as the database keeps it. source: where the file lay. */
ho_status ho_setup_parse(ho_setup *out, const char *text, const char *source,
                         const ho_option_list *set, ho_err *err);

/* The study alone as a database keeps it, without its market data: its text, with the settings that
 * its trials were made with (--set included). The caller frees it with ho_study_free. */
ho_status ho_setup_stored_study(ho_study **out, const ho_store_info *info, ho_err *err);

/* The same with the data. HO_EDATA: also when the market data is no longer the same. */
ho_status ho_setup_stored(ho_setup *out, const ho_store_info *info, ho_err *err);

void ho_setup_free(ho_setup *setup);

/* "key=value" texts on top of settings. set: NULL for none. HO_EUSAGE: err names the option. */
ho_status ho_setup_override(ho_settings *settings, const ho_option_list *set, ho_err *err);

/* The `study` message, borrowing nothing: the caller clears it. uuid: of the study. */
ho_status ho_setup_message(const ho_setup *setup, const char *uuid, ho_message *out, ho_err *err);

/* Where the database lies: study.database, or <name>.db in the current folder. */
ho_status ho_setup_database(const ho_setup *setup, char *out, size_t room, ho_err *err);

/* The settings as the store keeps them: JSON text; the caller frees it with cJSON_free. NULL: out
 * of memory. */
char *ho_setup_settings_text(const ho_settings *settings);

#ifdef __cplusplus
}
#endif
#endif
