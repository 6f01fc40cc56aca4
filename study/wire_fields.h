/* SPDX-License-Identifier: Apache-2.0
 * The JSON part of messages as tables: a row says how one member of a struct travels. Writing,
 * reading, checking and freeing all walk the rows (wire_fields.c); the tables are in wire.c. */
#ifndef HO_STUDY_WIRE_FIELDS_H
#define HO_STUDY_WIRE_FIELDS_H

#include <stddef.h>

#include "study/wire.h"

struct cJSON;

typedef enum ho_field_type {
    HO_FIELD_BOOL,   /* bool */
    HO_FIELD_INT,    /* int32_t in [low, high]; a JSON number */
    HO_FIELD_I64,    /* int64_t in [low, high]; a JSON string */
    HO_FIELD_U64,    /* uint64_t; a JSON string */
    HO_FIELD_F64,    /* double, any; a JSON number, or "nan", "inf", "-inf" */
    HO_FIELD_TEXT,   /* char[room]; valid UTF-8, control characters become '?' */
    HO_FIELD_HASH,   /* char[65]: 64 hex digits or "" */
    HO_FIELD_BODY,   /* char *: text, at most half a frame, or NULL */
    HO_FIELD_F64S,   /* double *, count at count_at, at most room */
    HO_FIELD_VALS,   /* double[room], count at count_at */
    HO_FIELD_INTS,   /* int32_t[room] in [low, high], count at count_at; left out when empty */
    HO_FIELD_I64S,   /* int64_t[room], all of them */
    HO_FIELD_HASHES, /* char (*)[65], count at count_at, at most room */
    HO_FIELD_LIST,   /* struct *, count at count_at, at most room, each of table `items` */
    HO_FIELD_PART,   /* a struct inside, of table `items` */
} ho_field_type;

typedef struct ho_fields ho_fields;

typedef struct ho_field {
    const char *name;
    ho_field_type type;
    size_t at;
    double low, high;
    size_t room;
    size_t count_at;  /* offset of an int32_t */
    size_t item_size; /* LIST */
    const ho_fields *items;
} ho_field;

struct ho_fields {
    const ho_field *field;
    int count;
};

/* Adds the members to a JSON object. HO_EINVAL names the member that passes a limit. */
ho_status ho_fields_write(const ho_fields *fields, const void *from, struct cJSON *json,
                          ho_err *err);
/* `to` is zeroed before. After a failure ho_fields_free frees what was read. HO_EPROTO. */
ho_status ho_fields_read(const ho_fields *fields, const struct cJSON *json, void *to, ho_err *err);
/* Frees what the members own; they are not cleared. */
void ho_fields_free(const ho_fields *fields, void *of);

#endif
