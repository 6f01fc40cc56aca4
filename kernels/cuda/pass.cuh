/* SPDX-License-Identifier: Apache-2.0
 * One backtest pass on the device: what it is given, what it keeps, one step. The step of a bar
 * leaves a note, from which its books are kept: by the same thread, or by another while the next
 * bar is decided. The arithmetic and its order are those of kernels/cpu/pass.c, so that the same
 * orders give the same bits. */
#ifndef HO_CUDA_PASS_CUH
#define HO_CUDA_PASS_CUH

#include "kernels/env/rules.h"
#include "kernels/env/step.h"
#include "kernels/metrics/bar_stats.h"
#include "kernels/metrics/trade_stats.h"

/* A pointer to what lies at a multiple of 16 bytes: a few wide loads or stores instead of many. */
template <typename T> static __device__ __forceinline__ T *aligned16(T *x)
{
    return (T *)__builtin_assume_aligned(x, 16);
}

/* What a pass is given. Array pointers are device memory, NULL unless wanted. */
typedef struct pass_plan {
    ho_env_lane lane;
    ho_rule rule;
    double *equity;         /* [steps + 1] */
    double *bar_return;     /* [steps] */
    double *session_return; /* [session_room] */
    int32_t *session_bar;   /* [session_room] last bar of each session */
    ho_trade *trades;       /* [trade_room] */
    uint8_t *actions;       /* [steps] */
    uint32_t *ring;         /* [HO_RING_WORDS_MAX] */
    int64_t trade_room;
} pass_plan;

/* What a pass keeps and, at its end, reports. The steps' part and the books' may belong to
 * different threads. */
typedef struct alignas(16) pass_state {
    /* of the steps */
    ho_env env;
    double before; /* equity before the last step */
    double open_pnl;
    int64_t steps;
    int32_t done, ruined, open_position;
    /* of the books */
    ho_ledger ledger;
    ho_bar_stats bars;
    ho_trade_stats trades;
    double booked;        /* equity at the last booked bar's close */
    double session_start; /* equity at the end of the session before */
    int64_t sessions, ambiguous_bars, position_changes;
    int32_t exit_count[HO_EXIT_REASONS];
    int32_t action_count[HO_ACTIONS];
} pass_state;

/* What a step tells the books about its bar. */
typedef struct alignas(16) pass_note {
    double equity;  /* at its close, the forced exit at the end included */
    int32_t bar;    /* index in the market; -1: no bar yet */
    int32_t action; /* composed, -1: none */
    int32_t held, changed, ambiguous;
    int32_t session_ends; /* the session's, or the pass's, last bar */
    ho_bookings bookings;
} pass_note;

/* ring: [HO_RING_WORDS_MAX] */
static __device__ void pass_begin(pass_state *s, const pass_plan *p, const ho_market_view *m,
                                  uint32_t *ring)
{
#pragma unroll 1
    for (int i = 0; i < (int)(sizeof *s / 4); i++) {
        ((int32_t *)s)[i] = 0;
    }
#pragma unroll 1
    for (int i = 0; i < HO_RING_WORDS_MAX; i++) { /* its words are changed in parts */
        ring[i] = 0;
    }
    const double capital = p->lane.config.initial_capital;
    s->before = s->booked = s->session_start = capital;
    ho_env_clear(&s->env);
    ho_env_begin_at(&p->lane, m, &s->env, p->lane.begin, 0.0, NULL);
    ho_bar_stats_begin(&s->bars, capital);
    ho_trade_stats_begin(&s->trades);
    if (p->equity) {
        p->equity[0] = capital;
    }
}

/* After a step that set done, by one thread: the position at the last mark, and its forced exit
 * inside the last return. */
static __device__ void pass_close(pass_state *s, const pass_plan *p, const ho_quote *q,
                                  pass_note *note)
{
    const ho_env_config *c = &p->lane.config;
    const ho_account *a = &s->env.account;
    ho_step_out out;
    ho_step_out_clear(&out);
    out.equity = note->equity;
    s->open_pnl = (q->close - a->entry) * (double)a->lots * c->lot * c->multiplier;
    s->open_position = a->lots != 0;
    ho_env_finish(&p->lane, q, &s->env, s->before, NULL, &note->bookings, &out);
    note->equity = out.equity;
}

/* x, which all threads of a warp found alike. Said so that the compiler knows it and does not lead
 * each way to x on to what hangs on it: it would no longer see that the warp stays together. */
template <bool WARP> static __device__ __forceinline__ bool agreed(bool x)
{
    if (!WARP) {
        return x;
    }
    int found = x;
    asm volatile("" : "+r"(found));
    return __any_sync(0xffffffffu, found);
}

/* What a step came to. */
typedef enum pass_step { PASS_NOT_PLAIN, PASS_GOES_ON, PASS_ENDS } pass_step;

/* Decided: one bar. Sets done at the window's end and on ruin; pass_close follows. from: the state
 * as it is, or a copy; after: gets the state after it. q: of the bar; offer: or NULL; place: with
 * an offer and diversity, of its state; action: composed, or -1. WARP: by all threads of a warp
 * alike, else by one. PLAIN: a plain bar (kernels/env/fill.h); where it turns out not to be,
 * nothing is stored but what the step that is made then stores again. */
template <bool WARP, bool PLAIN>
static __device__ __forceinline__ pass_step pass_advance(
    pass_state *s, const pass_plan *p, const double *n_log2_n, const ho_quote *q,
    const ho_offer *offer, const ho_env *from, const ho_category_place *place, uint32_t *ring_words,
    const ho_order *order, int32_t wanted, int32_t action, pass_note *note, ho_env *after)
{
    ho_step_out out;
    ho_reward_in reward; /* nobody asks for it */
    ho_ratio ratio[HO_STEP_RATIOS];
    ho_env env = *from;
    const double before = env.equity;
    const int32_t lots = env.account.lots, bar = q->bar;
    const int32_t session_ends = (q->flags & HO_BAR_SESSION_END) != 0;
    const int64_t steps = s->steps + 1;
    const ho_ring ring = {ring_words, 1};
    ho_ahead ahead;
    if (offer) {
        ahead = *aligned16(&offer->ahead); /* but for its place */
        if (ahead.diverse) {
            ahead.place = *place;
        }
    } else {
        ahead = ho_env_look_ahead(&p->lane, &env, ring, q);
    }
    ahead.plain = PLAIN;
    ahead.wanted = wanted;
    ahead.dsr = !PLAIN && ahead.dsr;
    if (WARP) {
        __syncwarp(); /* all have read what some store now */
    }
    const int32_t holds = ho_env_step_open(&p->lane, n_log2_n, q, &ahead, offer, &env, ring, order,
                                           NULL, &note->bookings, &out, &reward, ratio);
    const bool seldom = agreed<WARP>(!holds | (out.end != HO_END_NONE));
    if (PLAIN && seldom && agreed<WARP>(!holds)) {
        return PASS_NOT_PLAIN;
    }
    const bool ends = seldom;
    ho_env_keep(&ahead, aligned16(&s->env), &env);
    s->before = before;
    s->steps = steps;
    s->done = ends;
    s->ruined = out.end == HO_END_RUIN;
    note->held = out.lots != 0;
    note->changed = out.lots != lots;
    note->ambiguous = out.ambiguous;
    note->action = action;
    note->bar = bar;
    note->session_ends = session_ends || ends;
    note->equity = out.equity;
    *after = env;
    return ends ? PASS_ENDS : PASS_GOES_ON;
}

/* A bar that moves nothing but the price: the order is none, and no barrier, roll, funding, session
 * or end does anything to the account. Its equity at the close of q, or 0 as `calm`: some of it may
 * happen (a little more often than it does, so that telling costs little). */
typedef struct pass_calm {
    double equity;
    int32_t calm;
} pass_calm;

static __device__ __forceinline__ pass_calm pass_is_calm(const pass_plan *p, const ho_env *e,
                                                         const ho_quote *q)
{
    const ho_env_lane *lane = &p->lane;
    const ho_env_config *c = &lane->config;
    const ho_account a = e->account;
    const int32_t flattens = c->flat_at_session_end && (q->flags & HO_BAR_SESSION_END);
    const int32_t expires = (a.has & HO_HAS_EXPIRY) && q->bar >= a.expiry;
    const int32_t moved = ho_stop_touched(&a, q->open, q->open) |
                          ho_stop_touched(&a, q->low, q->high) |
                          ho_target_passed(&a, q->low, q->high) | expires | flattens |
                          (q->jump != 0.0) | (q->funding != 0.0);
    pass_calm calm;
    calm.equity = a.cash + (double)a.lots * c->lot * q->close * c->multiplier;
    calm.calm = !(a.lots != 0 && moved) && !ho_is_last(lane, q->bar, q->flags) &&
                (e->steps + 1) % lane->length != 0 && c->reward_base != HO_REWARD_DSR &&
                calm.equity > c->ruin_fraction * c->initial_capital;
    return calm;
}

/* pass_advance of such a bar. offer, place: of the account as it is. */
static __device__ __forceinline__ void
pass_stay(pass_state *s, const ho_quote *q, const ho_offer *offer, const ho_category_place *place,
          uint32_t *ring_words, double equity, int32_t category, int32_t action, pass_note *note)
{
    const ho_ring ring = {ring_words, 1};
    const double before = s->env.equity, size = offer->ahead.size;
    const int32_t held = s->env.account.lots != 0, steps = offer->ahead.steps;
    const int64_t all_steps = s->steps + 1;
    if (offer->ahead.diverse) {
        ho_diversity_take(&s->env, ring, place, category);
    }
    s->before = before;
    s->env.t = q->bar;
    s->env.steps = steps;
    s->env.equity = equity;
    s->env.size = size;
    s->steps = all_steps;
    note->held = held;
    note->changed = note->ambiguous = 0;
    note->action = action;
    note->bar = q->bar;
    note->session_ends = (q->flags & HO_BAR_SESSION_END) != 0;
    note->bookings.roll_fee = note->bookings.funding = 0.0;
    note->bookings.crossings = note->bookings.fills = 0;
    note->equity = equity;
}

/* Enters a bar into the books, in three parts that share nothing. The first: statistics of the
 * bars. */
static __device__ __forceinline__ void pass_book_bar(pass_state *s, const pass_plan *p,
                                                     const pass_note *note)
{
    const double equity = note->equity, ret = ho_quotient(equity - s->booked, s->booked);
    const int64_t step = s->bars.bars;
    s->booked = equity;
    ho_bar_stats_add(&s->bars, equity, ret, note->held);
    if (p->equity) {
        p->equity[step + 1] = equity;
        p->bar_return[step] = ret;
    }
}

/* The second: actions, the session, what crossing the spread and funding cost. */
static __device__ __forceinline__ void pass_book_actions(pass_state *s, const pass_plan *p,
                                                         const pass_note *note)
{
    s->position_changes += note->changed;
    s->ambiguous_bars += note->ambiguous;
    if (note->action >= 0) {
        s->action_count[note->action]++;
        if (p->actions) {
            p->actions[note->bar - p->lane.begin - 1] = (uint8_t)note->action;
        }
    }
    ho_ledger_enter_costs(&s->ledger, &p->lane.config, &note->bookings);
    if (note->session_ends) {
        p->session_return[s->sessions] = note->equity / s->session_start - 1.0;
        p->session_bar[s->sessions] = note->bar;
        s->sessions++;
        s->session_start = note->equity;
    }
}

/* The third has something to do. */
static __device__ __forceinline__ bool pass_traded(const pass_note *note)
{
    return (note->bookings.fills > 0) | (note->bookings.roll_fee != 0.0);
}

/* The third: fees and trades. */
static __device__ __forceinline__ void pass_book_trades(pass_state *s, const pass_plan *p,
                                                        const pass_note *note)
{
    s->ledger.closed_count = 0;
    ho_ledger_enter_fills(&s->ledger, &p->lane.config, note->bar, &note->bookings);
    for (int i = 0; i < s->ledger.closed_count; i++) {
        const ho_trade *t = &s->ledger.closed[i];
        if (p->trades && s->trades.net.n < p->trade_room) {
            p->trades[s->trades.net.n] = *t;
        }
        ho_trade_stats_add(&s->trades, t, p->lane.config.multiplier);
        s->exit_count[t->reason]++;
    }
}

#endif
