/* SPDX-License-Identifier: Apache-2.0
 * Sizes that depend on a lane's train window: the lot, the position at exposure 1, and sigma_ref,
 * the deviation of one bar's return on equity at that position. Host only, float64; inline, so
 * that `check` can print them without linking a backend. spec/environment.md "Inputs", "State". */
#ifndef HO_KERNELS_ENV_SIZING_H
#define HO_KERNELS_ENV_SIZING_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/env/config.h"
#include "kernels/metrics/moments.h"
#include "kernels/shapes.h"
#include "study/status.h"

typedef struct ho_size_request {
    double capital;      /* env.initial_capital, money */
    double multiplier;   /* instrument.multiplier */
    double lot;          /* instrument.lot, units; 0 = "auto" */
    double max_position; /* env.max_position, units; 0 = "auto" */
    double max_exposure; /* env.max_exposure, notional at exposure 1 / capital; for "auto" */
} ho_size_request;

typedef struct ho_size {
    double lot;       /* units */
    int32_t max_lots; /* at exposure 1 */
    double quantity;  /* units at exposure 1: max_lots * lot */
    double notional;  /* money at the reference close */
    double leverage;  /* notional / capital */
} ho_size;

/* Largest power of ten <= x, x > 0, exact where a double can be. */
static inline double ho_power_of_ten_below(double x)
{
    double power = 1.0;
    int digits = 0;
    while (power * 10.0 <= x) {
        power *= 10.0;
    }
    while (power > x) {
        digits++;
        power = 1.0 / pow(10.0, digits);
    }
    return power;
}

/* Sizes at a reference close: of the train window's first bar. HO_ECONFIG: less than one lot, or a
 * close of zero; err says what the capital buys and what to change. */
static inline ho_status ho_size_resolve(const ho_size_request *r, double close, ho_size *out,
                                        ho_err *err)
{
    double unit = fabs(close) * r->multiplier; /* notional of one unit */
    if (!(unit > 0.0)) {
        return ho_err_set(err, HO_ECONFIG,
                          "env.max_position: the train window's first close is %g, so a size "
                          "cannot be derived from it; give instrument.lot and env.max_position",
                          close);
    }
    double quantity = r->max_position > 0.0 ? r->max_position : r->max_exposure * r->capital / unit;
    double lot = r->lot > 0.0          ? r->lot
                 : r->multiplier > 1.0 ? 1.0
                                       : ho_power_of_ten_below(quantity / 100.0);
    double lots = floor(quantity / lot + 1e-9);
    if (!(lots >= 1.0)) {
        return ho_err_set(err, HO_ECONFIG,
                          "capital %.10g buys no lot of %.10g: one lot is %.10g at a close of "
                          "%.10g; raise env.initial_capital or env.max_exposure, or lower "
                          "instrument.lot or instrument.multiplier",
                          r->capital, lot, unit * lot, close);
    }
    if (lots > 1e9) {
        return ho_err_set(err, HO_ECONFIG,
                          "%.10g lots of %.10g: more than 10^9; raise "
                          "instrument.lot",
                          lots, lot);
    }
    out->lot = lot;
    out->max_lots = (int32_t)lots;
    out->quantity = lots * lot;
    out->notional = out->quantity * unit;
    out->leverage = out->notional / r->capital;
    return HO_OK;
}

/* Deviation (ddof 1) over the window's bars of the change of equity that the full position makes in
 * one bar, as a share of the capital; rolls taken out, splits left out.
 *   bars [T, 5]; roll_jump, split [T] or NULL
 * HO_EDATA: the price does not move, or there are fewer than two changes. */
static inline ho_status ho_sigma_ref(const double *bars, const double *roll_jump,
                                     const uint8_t *split, ho_window window, double quantity,
                                     double multiplier, double capital, double *out, ho_err *err)
{
    ho_moments m = {0, 0.0, 0.0};
    for (int64_t t = window.begin + 1; t < window.end; t++) {
        if (!(split && split[t])) {
            double change = bars[t * HO_BAR_COLUMNS + HO_CLOSE] -
                            bars[(t - 1) * HO_BAR_COLUMNS + HO_CLOSE] -
                            (roll_jump ? roll_jump[t] : 0.0);
            ho_moments_add(&m, change * quantity * multiplier / capital);
        }
    }
    *out = m.n >= 2 ? ho_moments_deviation(&m) : 0.0;
    if (!(*out > 0.0)) {
        return ho_err_set(err, HO_EDATA,
                          "bars %lld to %lld: the close does not move, so there is nothing to "
                          "scale returns by; choose other data or another train window",
                          (long long)window.begin, (long long)window.end - 1);
    }
    return HO_OK;
}

/* Writes a resolved size and sigma_ref into a lane's settings. */
static inline void ho_size_apply(const ho_size *size, double sigma_ref, ho_env_config *config)
{
    config->lot = size->lot;
    config->max_lots = size->max_lots;
    config->sigma_ref = sigma_ref;
}

#endif
