/* SPDX-License-Identifier: Apache-2.0
 * Settings: the table of every key of a study file (settings_table.h), and the values of one study
 * or one trial. The only place that knows types, ranges and defaults.
 *
 * A value is an int64, a double, a bool, a text, one of some choices, a set of them, or a list of
 * texts; most have a default, all remember whether and where they were set. */
#ifndef HO_STUDY_SETTINGS_H
#define HO_STUDY_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "study/folds.h"
#include "study/settings_table.h"
#include "study/space.h"
#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

/* ---- the table ------------------------------------------------------------------------------ */

typedef enum ho_key {
#define HO_SETTINGS_ENUM(id, name, type, role, flags, low, high, def, choices, unit, help)         \
    HO_KEY_##id,
    HO_SETTINGS(HO_SETTINGS_ENUM)
#undef HO_SETTINGS_ENUM
        HO_KEY_COUNT
} ho_key;

typedef enum ho_setting_type {
    HO_TYPE_BOOL,
    HO_TYPE_INT,
    HO_TYPE_FLOAT,
    HO_TYPE_STRING,
    HO_TYPE_CHOICE,   /* one of row->choices; the value is its index */
    HO_TYPE_FLAGS,    /* a list of row->choices; the value is a mask, bit i for choice i */
    HO_TYPE_DURATION, /* "90s", "20m", "8h", "2d"; the value is seconds */
    HO_TYPE_DATE,     /* "2018-01-01" or with a time; the value is its text */
    HO_TYPE_SPAN,     /* a length in bars, days or a share: ho_span */
    HO_TYPE_STRINGS,  /* a list of low to high texts; one text alone is a list of one */
} ho_setting_type;

typedef enum ho_setting_role {
    HO_ROLE_SEARCHABLE, /* numbers and choices that may stand in [search] */
    HO_ROLE_FACT,       /* of the market: searched only with study.allow_searching_facts */
    HO_ROLE_FIXED,      /* of the study and its processes: never searched */
} ho_setting_role;

enum {
    HO_SETTING_AUTO = 1,   /* "auto" is a legal value */
    HO_SETTING_RESUME = 2, /* may differ when a study is resumed: earlier results stay valid */
    HO_SETTING_PATH = 4,   /* relative to the study file */
};

typedef struct ho_setting_row {
    ho_key key;
    const char *name; /* dotted */
    ho_setting_type type;
    ho_setting_role role;
    unsigned flags;           /* HO_SETTING_* */
    double low, high;         /* inclusive; STRINGS: count of items */
    const char *default_text; /* NULL: no value until set; lists split by commas */
    const char *choices;      /* "a|b|c" */
    const char *unit;
    const char *help;
} ho_setting_row;

/* The row of a key; key < HO_KEY_COUNT. */
const ho_setting_row *ho_setting(ho_key key);
const char *ho_setting_type_name(ho_setting_type type); /* "bool", "int", ... */
const char *ho_setting_role_name(ho_setting_role role);

/* HO_KEY_COUNT when there is no such key. */
ho_key ho_setting_find(const char *name);
/* The known key nearest to a mistyped one; HO_KEY_COUNT when none is near. */
ho_key ho_setting_nearest(const char *name);

/* Number of choices; text of choice i into out (NULL when i is out of range). */
int ho_setting_choice_count(const ho_setting_row *row);
const char *ho_setting_choice(const ho_setting_row *row, int i, char *out, size_t room);
/* Index of a choice, or -1. */
int ho_setting_choice_find(const ho_setting_row *row, const char *text);

/* The table as Markdown, one section a table; docs/settings.md is its output. */
void ho_settings_print_markdown(FILE *out);
/* Help of one key on some lines. */
void ho_setting_print_help(const ho_setting_row *row, FILE *out);
/* `hyperopt help TOPIC`: "settings" is the whole table as Markdown, a section its keys, a key its
 * help. false: no such topic, nothing was printed. */
bool ho_settings_print_topic(const char *topic, FILE *out);

/* ---- values --------------------------------------------------------------------------------- */

typedef struct ho_settings ho_settings;

/* All keys at their defaults. NULL when memory is out. */
ho_settings *ho_settings_create(void);
ho_settings *ho_settings_copy(const ho_settings *settings);
void ho_settings_destroy(ho_settings **settings);

bool ho_settings_has(const ho_settings *s, ho_key key);     /* has a value, set or default */
bool ho_settings_is_set(const ho_settings *s, ho_key key);  /* was set, even to the default */
bool ho_settings_is_auto(const ho_settings *s, ho_key key); /* the value is "auto" */
/* Where it was set; 0 when not from a file. */
void ho_settings_place(const ho_settings *s, ho_key key, int *line, int *column);

/* Read a value. The type must fit (asserted); without a value, or "auto", numbers are 0, texts "".
 * f64 takes INT, FLOAT and DURATION; i64 INT; flags FLAGS; str any scalar, printed. */
double ho_settings_f64(const ho_settings *s, ho_key key);
int64_t ho_settings_i64(const ho_settings *s, ho_key key);
bool ho_settings_bool(const ho_settings *s, ho_key key);
int ho_settings_choice(const ho_settings *s, ho_key key);
unsigned ho_settings_flags(const ho_settings *s, ho_key key);
const char *ho_settings_str(const ho_settings *s, ho_key key);
ho_span ho_settings_span(const ho_settings *s, ho_key key);
int ho_settings_list_count(const ho_settings *s, ho_key key);
const char *ho_settings_list_str(const ho_settings *s, ho_key key, int i);

/* Write a value. HO_EINVAL: wrong type or out of range; err names the key, the value and what is
 * legal, and the old value stays. All mark the key as set. */
ho_status ho_settings_set_text(ho_settings *s, ho_key key, const char *text, ho_err *err);
ho_status ho_settings_set_f64(ho_settings *s, ho_key key, double value, ho_err *err);
ho_status ho_settings_set_i64(ho_settings *s, ho_key key, int64_t value, ho_err *err);
ho_status ho_settings_set_bool(ho_settings *s, ho_key key, bool value, ho_err *err);
ho_status ho_settings_set_list(ho_settings *s, ho_key key, const char *const *items, int count,
                               ho_err *err);
void ho_settings_set_place(ho_settings *s, ho_key key, int line, int column);
/* Lets the value count as a default: is_set is false from here on. */
void ho_settings_unmark(ho_settings *s, ho_key key);
/* Back to the default. */
void ho_settings_reset(ho_settings *s, ho_key key);

/* Writes the active parameters of a trial's configuration [P] into the keys they belong to; those
 * without a key ([command] placeholders) are left out. HO_EINVAL: a value its key refuses. */
ho_status ho_settings_apply(ho_settings *s, const ho_space *space, const double *config,
                            ho_err *err);

/* The value as it would stand in TOML. Returns the length, as snprintf. */
int ho_settings_print(const ho_settings *s, ho_key key, char *out, size_t room);

/* Keys whose values differ, in the table's order; at most room are written, all are counted. */
int ho_settings_diff(const ho_settings *a, const ho_settings *b, ho_key *out, int room);

/* All values as one JSON object {"values": {key: text or [text]}, "set": [key]}: every number is a
 * text, so that 64 bits and doubles survive. The caller deletes it. NULL: out of memory. */
struct cJSON *ho_settings_to_json(const ho_settings *s);
/* Keys that are absent keep their default. HO_EPROTO: not such an object, or an unknown key; a
 * value out of range likewise. *out is NULL on failure. */
ho_status ho_settings_from_json(const struct cJSON *json, ho_settings **out, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
