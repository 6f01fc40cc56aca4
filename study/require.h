/* SPDX-License-Identifier: Apache-2.0
 * Requirements between parameters, evaluated before a trial is spent: "slow > 2 * fast and
 * agent.hidden1 >= agent.hidden2". Numbers, texts in quotes, true, false, names of parameters and
 * of settings; + - * / with the usual ranks, < <= > >= == !=, not, and, or, parentheses.
 * A requirement that names an inactive parameter holds. */
#ifndef HO_STUDY_REQUIRE_H
#define HO_STUDY_REQUIRE_H

#include "study/settings.h"
#include "study/space.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Parses text and appends it to space->require; names that are no parameter are taken from the
 * settings as constants. HO_EINVAL: err says what and at which character of the text. */
ho_status ho_require_add(ho_space *space, const ho_settings *settings, const char *text,
                         ho_err *err);

/* HO_EINVAL: err is the text of the first requirement that does not hold. */
ho_status ho_require_check(const ho_require *require, const ho_space *space, const double *config,
                           ho_err *err);

int ho_require_count(const ho_require *require);
const char *ho_require_text(const ho_require *require, int i);

void ho_require_free(ho_require **require);

#ifdef __cplusplus
}
#endif
#endif
