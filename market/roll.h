/* SPDX-License-Identifier: Apache-2.0
 * Rolls of a continuous future: where the contract changes, how far the price jumps, and what is
 * done about it (data.adjust). Private to market/. */
#ifndef HO_MARKET_ROLL_H
#define HO_MARKET_ROLL_H

#include <stdint.h>

#include "market/load.h"
#include "market/zone.h"

#ifdef __cplusplus
extern "C" {
#endif

/* contract: [T] of each bar, or NULL. A roll is a bar whose contract differs from that before it,
 * or the first bar at or behind each stamp of data.rolls. The jump is from the last close of the
 * old contract to the first open of the new one. adjust:
 *   none   prices stay; bars->roll_jump has the jumps
 *   back   earlier prices are moved by the jumps, roll_jump has HO_ROLL_ADJUSTED there
 *   ratio  earlier prices are multiplied; an error where a price at a roll is <= 0 */
ho_status ho_roll_apply(const ho_data_options *options, const int16_t *contract,
                        const ho_zone *session_zone, ho_bars *bars, ho_data_report *report,
                        ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
