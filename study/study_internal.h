/* SPDX-License-Identifier: Apache-2.0
 * What the study_*.c files share while a study file is read. */
#ifndef HO_STUDY_STUDY_INTERNAL_H
#define HO_STUDY_STUDY_INTERNAL_H

#include "study/study.h"
#include "study/toml.h"

typedef struct ho_loader {
    ho_study *study;
    ho_err *err;
    const ho_toml *root;
} ho_loader;

/* "source:line:column: text" of a node's value, or of its key. Returns HO_ECONFIG. */
ho_status ho_loader_at(const ho_loader *l, const ho_toml *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
ho_status ho_loader_at_key(const ho_loader *l, const ho_toml *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same where a setting was set; "source: text" when it was not. */
ho_status ho_loader_at_setting(const ho_loader *l, ho_key key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Puts the place of a node before the message that a called function left in l->err. */
ho_status ho_loader_place(const ho_loader *l, const ho_toml *node, ho_status rc);

ho_status ho_loader_warn(ho_loader *l, int line, int column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Gives a key the value of a node. On failure err holds the reason without the place. */
ho_status ho_loader_set(const ho_loader *l, ho_settings *settings, ho_key key, const ho_toml *node);

/* Joins prefix and key with a dot; false when it does not fit. */
bool ho_loader_join(const char *prefix, const char *key, char *out, size_t room);

/* study_space.c: [search] and `require`. */
ho_status ho_loader_search(ho_loader *l, const ho_toml *search);

/* study_when.c: the `when` of a parameter (or NULL) and what its section implies; when all are
 * read, parents first and every one reachable. */
ho_status ho_loader_when(ho_loader *l, const ho_toml *when, ho_param *param);
ho_status ho_loader_order(ho_loader *l);
/* The choice of the parameter that equals node in type and value, or -1. */
int ho_loader_choice(const ho_param *param, const ho_toml *node);

/* study_enqueue.c: [[enqueue]]. */
ho_status ho_loader_enqueue(ho_loader *l, const ho_toml *list);

/* study_check.c: objectives, constraints, and what keys must satisfy together. */
ho_status ho_loader_check(ho_loader *l);

#endif
