/* SPDX-License-Identifier: Apache-2.0
 * State of one episode and what a step reports. ho_account is the money, ho_env the episode round
 * it; both are what a backend keeps per episode slot. ho_ledger is accounting beyond what the next
 * step needs: kept in backtests and with Kelly sizing, left out (NULL) elsewhere. */
#ifndef HO_KERNELS_ENV_STATE_H
#define HO_KERNELS_ENV_STATE_H

#include <stdint.h>

#include "kernels/env/config.h"
#include "kernels/trade.h"

enum {
    HO_HAS_TARGET = 1,
    HO_HAS_STOP = 2,
    HO_HAS_EXPIRY = 4,
    HO_WAS_STOPPED = 8, /* last_stop holds a bar */
};

/* 1. lots == 0: entry is 0 and there are no barriers.  2. equity = cash + lots * lot * close *
 * multiplier at any close. */
typedef struct ho_account {
    double cash;
    double entry;      /* average entry price */
    double target;     /* with HO_HAS_TARGET */
    double stop;       /* with HO_HAS_STOP */
    int32_t lots;      /* signed position */
    int32_t opened;    /* bar in which the position was opened */
    int32_t expiry;    /* bar at whose close it leaves, with HO_HAS_EXPIRY */
    int32_t last_stop; /* bar of the last stop, with HO_WAS_STOPPED */
    int32_t has;       /* HO_HAS_*, HO_WAS_STOPPED */
} ho_account;

typedef struct ho_env {
    ho_account account;
    double equity;       /* at the close of t */
    double anchor;       /* equity that p0 is measured from */
    double size;         /* lots at exposure 1 in force; < 0: not set yet */
    double dsr_a, dsr_b; /* exponential moments of the step's return */
    int32_t dsr_steps;
    int32_t t;                 /* bar at whose close the next decision is made */
    int32_t steps;             /* since the episode's start */
    int32_t active;            /* 0: finished, waits for the next epoch */
    int32_t ring_head;         /* next slot of the category ring */
    int32_t category_count[3]; /* short, flat, long in the ring */
} ho_env;

typedef struct ho_open_trade {
    int64_t entry_bar;
    double entry_price;
    double pnl, fees;
    double quantity, max_quantity;
    int32_t side;
} ho_open_trade;

enum { HO_CLOSED_MAX = 3 }; /* an order and a barrier in one bar, and the window's end */

typedef struct ho_ledger {
    double realised, fees, spread, impact, slippage, funding;
    double traded; /* notional of all fills */
    ho_open_trade open;
    int32_t closed_count; /* the caller empties it after reading */
    ho_trade closed[HO_CLOSED_MAX];
} ho_ledger;

/* Crossing the spread: the price paid, the market's, and what the difference is made of. */
typedef struct ho_crossing {
    double price, reference;
    double half, impact; /* half-spread in price units, impact as a share of the reference */
    int32_t lots;        /* signed */
} ho_crossing;

/* One booking: what happened to the account. */
typedef struct ho_fill_note {
    double price, fee;
    double entry_before, entry; /* average entry price before and after */
    int32_t lots, held;         /* signed: traded, held before */
    int32_t reason;             /* ho_exit_reason of a round trip that it closes */
} ho_fill_note;

/* A bar's bookings, for a ledger that is kept later; in order of their kind. */
typedef struct ho_bookings {
    double roll_fee, funding; /* 0: none */
    int32_t crossings, fills;
    ho_crossing crossing[HO_CLOSED_MAX];
    ho_fill_note fill[HO_CLOSED_MAX];
} ho_bookings;

typedef enum ho_episode_end {
    HO_END_NONE,
    HO_END_RUIN,    /* terminal */
    HO_END_BARRIER, /* truncated; terminal with barrier_terminal */
    HO_END_WINDOW,  /* truncated */
    HO_END_LENGTH,  /* truncated */
} ho_episode_end;

typedef struct ho_step_out {
    double equity; /* at the close of the filling bar */
    int32_t lots;  /* held there */
    double ret;
    double entropy; /* bits, of the categories so far; 0 when diversity is off */
    float reward;
    int32_t label;                      /* +1 target, -1 stop, 0 otherwise */
    int32_t ambiguous;                  /* 1: the order of events inside the bar is unknown */
    int32_t exit_count;                 /* trades closed in this step */
    int32_t exit_reason[HO_CLOSED_MAX]; /* ho_exit_reason of each */
    int32_t end;                        /* ho_episode_end */
    int32_t terminal;                   /* do not bootstrap */
    int32_t truncated;                  /* bootstrap from the state before the reset */
} ho_step_out;

#endif
