/* SPDX-License-Identifier: Apache-2.0
 * A study: what one study file says, checked. Read-only once loaded, so any thread may read it.
 * Every complaint is "file:line:column: what is wrong, and the mend". */
#ifndef HO_STUDY_STUDY_H
#define HO_STUDY_STUDY_H

#include <stdbool.h>
#include <stddef.h>

#include "study/folds.h"
#include "study/objective.h"
#include "study/settings.h"
#include "study/space.h"
#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HO_STUDY_OBJECTIVES_MAX = 8, HO_CONSTRAINTS_MAX = 16, HO_WARM_STARTS_MAX = 16 };

/* [[warm_start]]: finished trials of another study are told to the sampler first. */
typedef struct ho_warm_start {
    char database[512]; /* as written; see ho_study_path */
    char study[128];    /* name in it; "": the only one */
    int best;           /* only this many of the best; 0: all */
} ho_warm_start;

typedef struct ho_study {
    char *name;   /* study.name, or the file's name without its ending */
    char *source; /* path as given, for messages */
    char *folder; /* folder of the study file, "." for the current one */
    char *text;   /* the file's bytes, zero-terminated */
    size_t size;
    ho_settings *settings;
    ho_space space;
    int enqueue_count;
    double *enqueue; /* [enqueue_count, P]; NaN: not given, the sampler draws it */
    int objective_count;
    ho_objective objective[HO_STUDY_OBJECTIVES_MAX];
    int constraint_count;
    ho_constraint constraint[HO_CONSTRAINTS_MAX];
    int warm_start_count;
    ho_warm_start warm_start[HO_WARM_STARTS_MAX];
    bool command; /* trials are runs of command.run */
    int warning_count;
    char **warning; /* what is legal but surely not meant */
} ho_study;

/* HO_EIO: the file cannot be read. HO_ECONFIG: something in it is wrong. *out is NULL on failure.
 */
ho_status ho_study_load(const char *path, ho_study **out, ho_err *err);
/* The same from memory; source stands in messages, folder is where relative paths begin. */
ho_status ho_study_parse(const char *text, size_t size, const char *source, const char *folder,
                         ho_study **out, ho_err *err);
void ho_study_free(ho_study **study);

/* Once more, after settings were changed: what keys must satisfy together. Adds warnings that are
 * not there yet. HO_ECONFIG: err names the keys. */
ho_status ho_study_check(ho_study *study, ho_err *err);

/* A path of the study file as the process can open it: absolute ones as they are, others under
 * the study's folder. HO_EINVAL: too long. */
ho_status ho_study_path(const ho_study *study, const char *written, char *out, size_t room,
                        ho_err *err);

/* The settings of a trial: the study's with the configuration [P] applied. The caller destroys
 * them. HO_EINVAL: a value that its key refuses. */
ho_status ho_study_trial_settings(const ho_study *study, const double *config, ho_settings **out,
                                  ho_err *err);

/* [folds] as ho_folds_plan wants it. purge_auto is the largest max_holding + n_step that any
 * configuration of the space can have. */
ho_fold_spec ho_study_fold_spec(const ho_study *study);

#ifdef __cplusplus
}
#endif
#endif
