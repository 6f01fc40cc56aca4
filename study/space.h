/* SPDX-License-Identifier: Apache-2.0
 * The search space: parameters in topological order (a parent before those its choice activates).
 *
 * A configuration is an array of doubles [P], one per parameter of the space:
 *   float   the value itself          int     the value, exactly representable
 *   choice  the index of the choice   NaN     the parameter is inactive (a `when` does not hold)
 * This form is what samplers propose, what the store keeps and what travels to a worker. */
#ifndef HO_STUDY_SPACE_H
#define HO_STUDY_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HO_PARAM_NAME_MAX = 96, HO_WHEN_MAX = 4 };

typedef enum ho_param_kind { HO_PARAM_FLOAT, HO_PARAM_INT, HO_PARAM_CHOICE } ho_param_kind;

/* A choice keeps its TOML type, so that 1, 1.0, "1", true and "true" stay five things. */
typedef enum ho_choice_type {
    HO_CHOICE_BOOL,
    HO_CHOICE_INT,
    HO_CHOICE_FLOAT,
    HO_CHOICE_STRING,
} ho_choice_type;

typedef struct ho_choice {
    ho_choice_type type;
    bool boolean;
    int64_t integer;
    double real;
    char *text; /* strings: the value; others: as printed in TOML. Owned by the space. */
} ho_choice;

/* Holds when parameter `param` (always a choice, always earlier) is active and its index is in
 * mask. */
typedef struct ho_when {
    int param;
    uint64_t mask; /* bit i: choice i activates; so at most 64 choices for a parent */
} ho_when;

typedef struct ho_param {
    char name[HO_PARAM_NAME_MAX]; /* dotted key, e.g. "dqn.learning_rate" */
    int key; /* row of the settings table (ho_key); -1 for [command] placeholders */
    ho_param_kind kind;
    bool log;
    double low, high;  /* inclusive; ints: high is on the grid */
    double step;       /* 0: continuous; ints: >= 1 */
    int step_decimals; /* decimals of low and step as written, for decimal-exact grids */
    int choice_count;
    ho_choice *choice; /* [choice_count], owned by the space */
    int when_count;    /* all must hold */
    ho_when when[HO_WHEN_MAX];
    int line, column; /* in the study file, for messages */
} ho_param;

typedef struct ho_require ho_require; /* parsed `require` expressions, opaque */

typedef struct ho_space {
    int count;           /* P */
    ho_param *param;     /* [P] */
    ho_require *require; /* NULL: no constraint between parameters */
} ho_space;

void ho_space_free(ho_space *space);

/* Index of the parameter, or -1. */
int ho_space_find(const ho_space *space, const char *name);

/* Whether parameter i is active given the values of its predecessors in config [P], inactive ones
 * of which are NaN. */
bool ho_space_active(const ho_space *space, const double *config, int i);

/* Grid points of a stepped or int parameter, choices of a choice; 0 for a continuous one. */
int64_t ho_param_cardinality(const ho_param *param);
/* Value of grid point i in [0, cardinality), decimal-exact. */
double ho_param_grid_value(const ho_param *param, int64_t i);
/* Nearest legal value: clamped, on the grid (half away from zero), in [low, high] to the last bit.
 */
double ho_param_snap(const ho_param *param, double value);

/* Sets inactive parameters to NaN and snaps the rest. A NaN in an active one stays NaN. */
void ho_space_canonical(const ho_space *space, double *config);

/* HO_OK: every active parameter legal, every inactive one NaN, every `require` holds.
 * HO_EINVAL: err names the parameter or the requirement. */
ho_status ho_space_check(const ho_space *space, const double *config, ho_err *err);

/* 64-bit hash of a canonical configuration (splitmix64 over the bit patterns; -0 as 0). */
uint64_t ho_space_hash(const ho_space *space, const double *config);

/* Prints a value as it would stand in TOML: shortest text that reads back to the same bits,
 * a stepped float with its decimals ("0.9"), a string quoted. Returns length, as snprintf. */
int ho_param_print(const ho_param *param, double value, char *out, size_t room);
/* Reverse of print, without quotes being needed; HO_EINVAL with the reason. */
ho_status ho_param_parse(const ho_param *param, const char *text, double *out, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
