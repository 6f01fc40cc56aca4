/* SPDX-License-Identifier: Apache-2.0
 * What of toml.h needs no toml++. */
#include "study/toml.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "study/text.h"

const ho_toml *ho_toml_get(const ho_toml *table, const char *key)
{
    for (int i = 0; table && table->type == HO_TOML_TABLE && i < table->count; i++) {
        if (strcmp(table->child[i].key, key) == 0) {
            return &table->child[i];
        }
    }
    return NULL;
}

const char *ho_toml_type_name(ho_toml_type type)
{
    static const char *const names[] = {"an integer", "a float",  "a string", "a boolean",
                                        "a date",     "an array", "a table"};
    return names[type];
}

int ho_toml_print(const ho_toml *node, char *out, size_t room)
{
    switch (node->type) {
    case HO_TOML_INT:
        return snprintf(out, room, "%" PRId64, node->integer);
    case HO_TOML_FLOAT:
        return ho_text_f64(node->real, out, room);
    case HO_TOML_BOOL:
        return snprintf(out, room, node->boolean ? "true" : "false");
    case HO_TOML_STRING:
    case HO_TOML_DATE:
        return snprintf(out, room, "%s", node->text);
    default:
        return snprintf(out, room, "%s", ho_toml_type_name(node->type));
    }
}
