/* SPDX-License-Identifier: Apache-2.0
 * A round trip as the backtest reports it and the metrics read it. A leaf header. */
#ifndef HO_KERNELS_TRADE_H
#define HO_KERNELS_TRADE_H

#include <stdint.h>

typedef enum ho_exit_reason {
    HO_EXIT_NONE,
    HO_EXIT_SIGNAL,
    HO_EXIT_STOP,
    HO_EXIT_PROFIT,
    HO_EXIT_TIME,
    HO_EXIT_SESSION,
    HO_EXIT_END,
    HO_EXIT_REASONS /* how many there are */
} ho_exit_reason;

/* A round trip, flat to flat or to a reversal. P&L in money; net = pnl - fees. */
typedef struct ho_trade {
    int64_t entry_bar, exit_bar;
    double entry_price, exit_price; /* entry: average */
    int32_t side;                   /* +1 long, -1 short */
    int32_t reason;                 /* ho_exit_reason */
    double quantity, max_quantity;  /* units: opened in all, largest held */
    double pnl, fees, net;
} ho_trade;

#endif
