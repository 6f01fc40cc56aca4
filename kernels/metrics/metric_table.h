/* SPDX-License-Identifier: Apache-2.0
 * The one table of metrics: name, better direction, unit, convention. The study's objective and
 * constraints, the store's columns, `hyperopt metrics` and the report walk it. A leaf header.
 * Definitions: spec/metrics.md section 1; formulas in metrics.h. */
#ifndef HO_KERNELS_METRICS_METRIC_TABLE_H
#define HO_KERNELS_METRICS_METRIC_TABLE_H

#ifdef __cplusplus
extern "C" {
#endif

/* id, name, direction (+1 more is better, -1 less is better, 0 neither), unit, convention */
#define HO_METRIC_MAP(X)                                                                           \
    X(SHARPE, "sharpe", +1, "ratio", "session returns, ddof 1, x sqrt(sessions per year), rf 0")   \
    X(BAR_SHARPE, "bar_sharpe", +1, "ratio", "bar returns, ddof 1, not annualised")                \
    X(SORTINO, "sortino", +1, "ratio", "session returns, downside over all n, x sqrt(sessions)")   \
    X(CALMAR, "calmar", +1, "ratio", "CAGR / |max drawdown|")                                      \
    X(RETURN_OVER_MAXDD, "return_over_maxdd", +1, "ratio", "total return / |max drawdown|")        \
    X(CAGR, "cagr", +1, "fraction", "calendar years of 365.25 days")                               \
    X(TOTAL_RETURN, "total_return", +1, "fraction", "final equity / initial capital - 1")          \
    X(TOTAL_PNL, "total_pnl", +1, "money", "final equity - initial capital")                       \
    X(VOLATILITY, "volatility", -1, "fraction", "session returns, ddof 1, x sqrt(sessions)")       \
    X(MAX_DRAWDOWN, "max_drawdown", +1, "fraction <= 0", "per bar, initial capital in the peak")   \
    X(MAX_DRAWDOWN_CASH, "max_drawdown_cash", -1, "money >= 0", "largest fall from a peak")        \
    X(DRAWDOWN_DURATION, "drawdown_duration", -1, "bars", "peak to recovery of the deepest")       \
    X(RECOVERY_TIME, "recovery_time", -1, "bars", "trough to recovery of the deepest")             \
    X(LONGEST_DRAWDOWN, "longest_drawdown", -1, "bars", "longest peak to recovery")                \
    X(VAR95, "var95", +1, "fraction", "session returns, historical type 7, 5 %")                   \
    X(CVAR95, "cvar95", +1, "fraction", "session returns, Rockafellar-Uryasev, 5 %")               \
    X(WIN_RATE, "win_rate", +1, "fraction", "winning / closed trades, net of costs")               \
    X(AVG_TRADE, "avg_trade", +1, "money", "mean net P&L of closed trades")                        \
    X(AVG_TRADE_RETURN, "avg_trade_return", +1, "fraction", "mean of net P&L / entry notional")    \
    X(PROFIT_FACTOR, "profit_factor", +1, "ratio", "sum of wins / |sum of losses|, cash")          \
    X(PAYOFF, "payoff", +1, "ratio", "mean win / mean loss")                                       \
    X(EXPECTANCY, "expectancy", +1, "ratio", "mean net P&L / mean loss (R multiple)")              \
    X(SQN, "sqn", +1, "ratio", "sqrt(n) x mean / deviation of trade P&L, ddof 1")                  \
    X(TURNOVER, "turnover", 0, "x capital", "traded notional / initial capital, a session")        \
    X(EXPOSURE, "exposure", 0, "fraction", "share of bars with a position")                        \
    X(TRADES, "trades", 0, "count", "closed round trips")                                          \
    X(AMBIGUOUS_BARS, "ambiguous_bars", -1, "count", "bars whose order of events is unknown")      \
    X(LONGEST_FLAT, "longest_flat", 0, "bars", "longest run without a position")

typedef enum ho_metric {
#define HO_METRIC_ENUM(id, name, direction, unit, convention) HO_METRIC_##id,
    HO_METRIC_MAP(HO_METRIC_ENUM)
#undef HO_METRIC_ENUM
        HO_METRIC_COUNT
} ho_metric;

/* Why a value is undefined; the value is then NaN in memory, null in JSON and SQL. */
#define HO_METRIC_REASON_MAP(X)                                                                    \
    X(DEFINED, "")                                                                                 \
    X(NO_DATA, "no_data")         /* no return at all */                                           \
    X(TOO_SHORT, "too_short")     /* fewer than two returns */                                     \
    X(FLAT, "flat")               /* no variation: deviation is zero up to rounding */             \
    X(NO_DOWNSIDE, "no_downside") /* Sortino without a return below the target */                  \
    X(NO_DRAWDOWN, "no_drawdown")                                                                  \
    X(NO_TRADES, "no_trades")                                                                      \
    X(NO_LOSSES, "no_losses") /* profit factor, payoff, expectancy */                              \
    X(NO_WINS, "no_wins")                                                                          \
    X(NO_TIME, "no_time") /* CAGR without a span of time */                                        \
    X(RUINED, "ruined")   /* equity reached zero and the measure has no meaning */

typedef enum ho_metric_reason {
#define HO_METRIC_REASON_ENUM(id, name) HO_REASON_##id,
    HO_METRIC_REASON_MAP(HO_METRIC_REASON_ENUM)
#undef HO_METRIC_REASON_ENUM
} ho_metric_reason;

/* Facts about a series that a reader must see beside the numbers. */
enum {
    HO_FLAG_RUINED = 1,         /* equity reached zero; frozen from there */
    HO_FLAG_CENSORED = 2,       /* the deepest drawdown had not recovered at the end */
    HO_FLAG_TAIL_TOO_SMALL = 4, /* fewer than 5 returns in the VaR tail */
    HO_FLAG_SHORT_SAMPLE = 8,   /* under 30 days: CAGR and Calmar explode */
    HO_FLAG_NAN_DROPPED = 16,   /* NaN returns were dropped and counted */
    HO_FLAG_OPEN_POSITION = 32, /* a position was open at the last bar, before the forced exit */
};

typedef struct ho_metric_set {
    double value[HO_METRIC_COUNT];
    unsigned char reason[HO_METRIC_COUNT]; /* ho_metric_reason */
    unsigned flags;                        /* HO_FLAG_* */
} ho_metric_set;

/* Rows of the table. metric in [0, HO_METRIC_COUNT). */
const char *ho_metric_name(ho_metric metric);
int ho_metric_direction(ho_metric metric);
const char *ho_metric_unit(ho_metric metric);
const char *ho_metric_convention(ho_metric metric);

/* The metric of that name, or -1. */
int ho_metric_find(const char *name);

/* "flat", "no_trades", ...; "" for a defined value. */
const char *ho_metric_reason_name(unsigned char reason);

#ifdef __cplusplus
}
#endif
#endif
