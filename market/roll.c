/* SPDX-License-Identifier: Apache-2.0
 * See roll.h. */
#include "market/roll.h"

#include <stdlib.h>

#include "kernels/shapes.h"
#include "market/clean.h"
#include "market/rows.h"

/* Marks with 1.0 the first bar at or behind each stamp of data.rolls. */
static ho_status mark_given(const ho_data_options *options, const ho_zone *zone, ho_bars *bars,
                            ho_err *err)
{
    for (int i = 0; i < options->roll_count; ++i) {
        int64_t ns = 0, t = 0;
        ho_status rc = ho_moment_parse("data.rolls", options->rolls[i], zone, false, &ns, err);
        if (rc != HO_OK) {
            return rc;
        }
        while (t < bars->count && bars->open_ns[t] < ns) {
            ++t;
        }
        if (t > 0 && t < bars->count) {
            bars->roll_jump[t] = 1.0;
        }
    }
    return HO_OK;
}

static ho_status adjust(const ho_data_options *options, ho_bars *bars, ho_err *err)
{
    double shift = 0.0, factor = 1.0;
    for (int64_t t = bars->count - 1; t >= 0; --t) {
        double *x = bars->ohlcv + HO_BAR_COLUMNS * t;
        double jump = bars->roll_jump[t], open = x[HO_OPEN];
        if (options->adjust == HO_ADJUST_RATIO) {
            for (int k = HO_OPEN; k <= HO_CLOSE; ++k) {
                x[k] *= factor;
            }
        } else {
            for (int k = HO_OPEN; k <= HO_CLOSE; ++k) {
                x[k] += shift;
            }
        }
        if (jump == 0.0) {
            continue;
        }
        double before = x[HO_CLOSE - HO_BAR_COLUMNS]; /* t > 0 at a roll; not yet moved */
        if (options->adjust == HO_ADJUST_RATIO && !(open > 0.0 && before > 0.0)) {
            return ho_err_set(err, HO_EDATA,
                              "data.adjust = \"ratio\" needs prices above 0 at the rolls; write "
                              "\"back\" or \"none\"");
        }
        factor *= options->adjust == HO_ADJUST_RATIO ? open / before : 1.0;
        shift += jump;
        bars->roll_jump[t] = HO_ROLL_ADJUSTED;
    }
    return HO_OK;
}

ho_status ho_roll_apply(const ho_data_options *options, const int16_t *contract,
                        const ho_zone *session_zone, ho_bars *bars, ho_data_report *report,
                        ho_err *err)
{
    ho_status rc = HO_OK;
    int64_t rolls = 0;
    if (!contract && options->roll_count == 0) {
        return HO_OK;
    }
    if (!(bars->roll_jump = calloc((size_t)bars->count, sizeof *bars->roll_jump))) {
        return ho_err_set(err, HO_ENOMEM, "no memory for the rolls");
    }
    if ((rc = mark_given(options, session_zone, bars, err)) != HO_OK) {
        return rc;
    }
    for (int64_t t = 1; t < bars->count; ++t) {
        const double *x = bars->ohlcv + HO_BAR_COLUMNS * t;
        if (bars->roll_jump[t] != 0.0 || (contract && contract[t] != contract[t - 1])) {
            double jump = x[HO_OPEN] - x[HO_CLOSE - HO_BAR_COLUMNS];
            /* a roll without a jump still pays its fees */
            bars->roll_jump[t] = jump != 0.0 ? jump : HO_ROLL_ADJUSTED;
            ho_report_find(report, HO_DIRT_ROLL, 0, 0, bars->open_ns[t]);
            ++rolls;
        }
    }
    if (rolls == 0) {
        free(bars->roll_jump);
        bars->roll_jump = NULL;
        return HO_OK;
    }
    if (options->adjust == HO_ADJUST_NONE) {
        return HO_OK;
    }
    ho_report_note(report, false, "prices before a roll are %s: their level depends on later rolls",
                   options->adjust == HO_ADJUST_BACK ? "moved by its jump"
                                                     : "multiplied by its ratio");
    return adjust(options, bars, err);
}
