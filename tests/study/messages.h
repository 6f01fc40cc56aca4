/* SPDX-License-Identifier: Apache-2.0
 * One whole message of each type, for the tests of the wire and the fuzzer's seeds. */
#ifndef HO_TESTS_STUDY_MESSAGES_H
#define HO_TESTS_STUDY_MESSAGES_H

#include "study/wire.h"

/* Fills every member with something; clear it. variant: 0 full, 1 with empty lists and NaN. */
ho_message ho_test_message(ho_message_type type, int variant);

#endif
