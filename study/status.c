/* SPDX-License-Identifier: Apache-2.0
 * See status.h. */
#include "study/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *ho_status_name(ho_status status)
{
    switch ((int)status) {
    case HO_OK:
        return "OK";
#define HO_STATUS_NAME(name, value, text)                                                          \
    case value:                                                                                    \
        return #name;
        HO_STATUS_MAP(HO_STATUS_NAME)
#undef HO_STATUS_NAME
    default:
        return "EUNKNOWN";
    }
}

const char *ho_status_text(ho_status status)
{
    switch ((int)status) {
    case HO_OK:
        return "ok";
#define HO_STATUS_TEXT(name, value, text)                                                          \
    case value:                                                                                    \
        return text;
        HO_STATUS_MAP(HO_STATUS_TEXT)
#undef HO_STATUS_TEXT
    default:
        return "unknown status";
    }
}

void ho_err_clear(ho_err *err)
{
    if (err) {
        err->code = HO_OK;
        err->text[0] = '\0';
    }
}

ho_status ho_err_set(ho_err *err, ho_status code, const char *format, ...)
{
    if (err) {
        va_list args;
        err->code = code;
        va_start(args, format);
        (void)vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
    }
    return code;
}

ho_status ho_err_prefix(ho_err *err, const char *format, ...)
{
    if (!err) {
        return HO_EINVAL;
    }
    char before[HO_ERR_TEXT];
    char joined[2 * HO_ERR_TEXT + 2];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(before, sizeof before, format, args);
    va_end(args);
    (void)snprintf(joined, sizeof joined, "%s: %s", before, err->text);
    (void)memcpy(err->text, joined, sizeof err->text - 1);
    err->text[sizeof err->text - 1] = '\0';
    return err->code;
}
