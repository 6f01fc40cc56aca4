/* SPDX-License-Identifier: Apache-2.0
 * See json_list.h. */
#include "market/json_list.h"

#include <ctype.h>
#include <string.h>

static size_t skip_space(const char *text, size_t size, size_t at)
{
    while (at < size && isspace((unsigned char)text[at])) {
        ++at;
    }
    return at;
}

bool ho_json_is(const char *text, size_t size)
{
    size_t at = skip_space(text, size, 0);
    return at < size && (text[at] == '[' || text[at] == '{');
}

/* What a row may hold: numbers, null, numbers in quotes, commas, spaces. */
static bool is_row_text(char c)
{
    return isalnum((unsigned char)c) || (c != '\0' && strchr("+-.,\" \t\r\n", c) != NULL);
}

ho_status ho_json_to_csv(const char *path, char *text, size_t size, ho_err *err)
{
    size_t at = skip_space(text, size, 0);
    long long row = 1;
    bool first = true;
    if (at == size || text[at] != '[') {
        return ho_err_set(err, HO_EDATA,
                          "%s: JSON is read as a list of rows only, [[ms, open, high, low, close, "
                          "volume], ...]; write the file as CSV",
                          path);
    }
    text[at++] = ' ';
    while (true) {
        at = skip_space(text, size, at);
        if (at < size && text[at] == ']') {
            text[at++] = ' ';
            break;
        }
        if (!first) {
            if (at == size || text[at] != ',') {
                break;
            }
            text[at] = ' ';
            at = skip_space(text, size, at + 1);
        }
        if (at == size || text[at] != '[') {
            return ho_err_set(err, HO_EDATA,
                              "%s: row %lld of the JSON list is not a list of numbers", path, row);
        }
        text[at++] = ' ';
        while (at < size && text[at] != ']') {
            if (!is_row_text(text[at])) {
                return ho_err_set(err, HO_EDATA,
                                  "%s: row %lld of the JSON list is not a list of numbers", path,
                                  row);
            }
            text[at] = isspace((unsigned char)text[at]) ? ' ' : text[at];
            ++at;
        }
        if (at == size) {
            return ho_err_set(err, HO_EDATA, "%s: the JSON list is cut short in row %lld", path,
                              row);
        }
        text[at++] = '\n';
        first = false;
        ++row;
    }
    if (skip_space(text, size, at) != size || (at > 0 && text[at - 1] != ' ')) {
        return ho_err_set(err, HO_EDATA, "%s: the JSON list is cut short or goes on after row %lld",
                          path, row - 1);
    }
    return HO_OK;
}
