/* SPDX-License-Identifier: Apache-2.0
 * What every test includes: cmocka, and checks that print both values and fail on NaN. */
#ifndef HO_TESTS_CHECK_H
#define HO_TESTS_CHECK_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { HO_TEST_SKIPPED = 77 };

/* Written so that NaN fails: `<=` with a NaN is false. */
#define CHECK_NEAR(got, want, tol)                                                                 \
    do {                                                                                           \
        double got_ = (got), want_ = (want), tol_ = (tol);                                         \
        if (!(fabs(got_ - want_) <= tol_)) {                                                       \
            fail_msg("%s = %.17g, want %.17g within %.3g", #got, got_, want_, tol_);               \
        }                                                                                          \
    } while (0)

/* Relative to |want|, or absolute below 1. */
#define CHECK_CLOSE(got, want, rel)                                                                \
    CHECK_NEAR(got, want, (rel) * (fabs((double)(want)) > 1.0 ? fabs((double)(want)) : 1.0))

#define CHECK_NAN(got)                                                                             \
    do {                                                                                           \
        double got_ = (got);                                                                       \
        if (!isnan(got_)) {                                                                        \
            fail_msg("%s = %.17g, want NaN", #got, got_);                                          \
        }                                                                                          \
    } while (0)

#define CHECK_OK(call, err)                                                                        \
    do {                                                                                           \
        ho_status status_ = (call);                                                                \
        if (status_ != HO_OK) {                                                                    \
            fail_msg("%s: %s: %s", #call, ho_status_name(status_), (err)->text);                   \
        }                                                                                          \
    } while (0)

#define CHECK_STATUS(call, want)                                                                   \
    do {                                                                                           \
        ho_status status_ = (call);                                                                \
        if (status_ != (want)) {                                                                   \
            fail_msg("%s: %s, want %s", #call, ho_status_name(status_), ho_status_name(want));     \
        }                                                                                          \
    } while (0)

#define CHECK_CONTAINS(text, part)                                                                 \
    do {                                                                                           \
        if (!strstr((text), (part))) {                                                             \
            fail_msg("\"%s\" does not contain \"%s\"", (text), (part));                            \
        }                                                                                          \
    } while (0)

#endif
