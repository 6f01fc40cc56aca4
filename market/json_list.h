/* SPDX-License-Identifier: Apache-2.0
 * Bars as a JSON list of lists, [[ms, o, h, l, c, v], ...], as freqtrade stores and exchanges'
 * REST interfaces answer. Private to market/. */
#ifndef HO_MARKET_JSON_LIST_H
#define HO_MARKET_JSON_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* True if the text begins as JSON (a list or an object). */
bool ho_json_is(const char *text, size_t size);

/* Turns the list into CSV lines in place: brackets become spaces and line ends, so a row's line
 * number is its place in the list. HO_EDATA: not a list of lists of numbers; err has the place. */
ho_status ho_json_to_csv(const char *path, char *text, size_t size, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
