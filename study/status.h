/* SPDX-License-Identifier: Apache-2.0
 * Status codes and the error text that every function which can fail uses.
 * A leaf: depends on nothing, so market/ and kernels/ include it too.
 * HO_OK is zero, every failure is negative; results go to out-parameters. */
#ifndef HO_STUDY_STATUS_H
#define HO_STUDY_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/* code, value, text. The value is stable: it is written into logs and messages. */
#define HO_STATUS_MAP(X)                                                                           \
    X(EUSAGE, -1, "usage error")                                                                   \
    X(ECONFIG, -2, "bad study file")                                                               \
    X(EDATA, -3, "bad market data")                                                                \
    X(ESTORE, -4, "database error")                                                                \
    X(EGPU, -5, "device error")                                                                    \
    X(ENOMEM, -6, "out of memory")                                                                 \
    X(EIO, -7, "input or output failed")                                                           \
    X(EPROTO, -8, "bad message")                                                                   \
    X(EINVAL, -9, "invalid argument")                                                              \
    X(ENOTFOUND, -10, "not found")                                                                 \
    X(EDONE, -11, "nothing left")                                                                  \
    X(EAGAIN, -12, "try again")                                                                    \
    X(ELOCKED, -13, "locked by another process")                                                   \
    X(EDIVERGED, -14, "training diverged")                                                         \
    X(ECANCELLED, -15, "cancelled")                                                                \
    X(ENOWORKER, -16, "no worker could run")                                                       \
    X(EUNSUPPORTED, -17, "not supported here")

typedef enum ho_status {
    HO_OK = 0,
#define HO_STATUS_ENUM(name, value, text) HO_##name = value,
    HO_STATUS_MAP(HO_STATUS_ENUM)
#undef HO_STATUS_ENUM
} ho_status;

enum { HO_ERR_TEXT = 1024 };

/* The caller's buffer for a message to a person: what is wrong, where, and the mend. */
typedef struct ho_err {
    ho_status code;
    char text[HO_ERR_TEXT];
} ho_err;

/* "ECONFIG", "bad study file"; "EUNKNOWN", "unknown status" for a number outside the table. */
const char *ho_status_name(ho_status status);
const char *ho_status_text(ho_status status);

/* Clears code and text. Accepts NULL. */
void ho_err_clear(ho_err *err);

/* Formats the text (cut at the buffer's end) and returns code, so that a failure is one line:
 *     return ho_err_set(err, HO_EDATA, "%s:%lld: ...", path, line);
 * Accepts err == NULL. */
ho_status ho_err_set(ho_err *err, ho_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the text, as a caller adds its place. Returns err->code. */
ho_status ho_err_prefix(ho_err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif
#endif
