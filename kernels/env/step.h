/* SPDX-License-Identifier: Apache-2.0
 * The environment: starting episodes, one step, and what follows an end. spec/environment.md.
 * A slot's life in training:
 *
 *   ho_env_epoch_begin                               at every epoch's start, by the reset flags
 *   per step: ho_env_portfolio -> action -> ho_env_step; the state before a reset is the one that
 *             ho_env_portfolio gives now; then, if out.end, ho_env_next
 *
 * A slot whose `active` is 0 takes no part until the next epoch (recycle off). A backtest calls
 * ho_env_begin_at once, ho_env_step to the window's end, and ho_env_finish. */
#ifndef HO_KERNELS_ENV_STEP_H
#define HO_KERNELS_ENV_STEP_H

#include <math.h>
#include <stdint.h>

#include "kernels/env/diversity.h"
#include "kernels/env/fill.h"
#include "kernels/env/kelly.h"
#include "kernels/env/lane.h"
#include "kernels/env/market_view.h"
#include "kernels/env/portfolio.h"
#include "kernels/env/reward.h"
#include "kernels/env/rng.h"
#include "kernels/env/state.h"
#include "kernels/hd.h"

static inline HO_HD int32_t ho_is_last_bar(const ho_env_lane *lane, const ho_market_view *m,
                                           int32_t t)
{
    return ho_is_last(lane, t, m->bar_flags[t]);
}

/* Lots at exposure 1 for the decision at e->t. */
static inline HO_HD void ho_env_update_size(const ho_env_lane *lane, ho_env *e)
{
    e->size = ho_size_at(&lane->config, e->size, lane->sigma[e->t]);
}

/* A new episode at the close of bar t with a position of `exposure` bought at that close without
 * cost. DSR moments and the size in force stay as they are. ledger: NULL, or this slot's, whose
 * totals go on. */
static inline HO_HD void ho_env_begin_at(const ho_env_lane *lane, const ho_market_view *m,
                                         ho_env *e, int32_t t, double exposure, ho_ledger *ledger)
{
    const ho_env_config *c = &lane->config;
    ho_account *a = &e->account;
    double close = m->bars[(int64_t)t * HO_BAR_COLUMNS + HO_CLOSE];
    a->cash = c->initial_capital;
    a->entry = a->target = a->stop = 0.0;
    a->lots = a->opened = a->expiry = a->last_stop = a->has = 0;
    e->equity = e->anchor = c->initial_capital;
    e->t = t;
    e->steps = 0;
    e->active = 1;
    ho_diversity_clear(e);
    ho_env_update_size(lane, e);
    if (exposure != 0.0) {
        ho_order order = ho_order_target(exposure);
        a->lots = ho_wanted_trade(c, a, &order, e->size, close, e->equity, t);
    }
    if (a->lots != 0) {
        a->cash -= (double)a->lots * c->lot * close * c->multiplier;
        a->entry = close;
        ho_set_barriers(c, a, t, lane->sigma[t]);
        if (ledger) {
            ho_open_trade_begin(&ledger->open, t, close, ho_sign((double)a->lots), 0.0,
                                fabs((double)a->lots * c->lot));
        }
    }
}

/* A fresh slot, for the first epoch of a lane or a backtest. */
static inline HO_HD void ho_env_clear(ho_env *e)
{
    e->size = -1.0;
    e->dsr_a = e->dsr_b = 0.0;
    e->dsr_steps = 0;
    e->active = 0;
    e->steps = -1; /* no episode has been started */
}

/* A new episode at a random bar of the window. Counter: (step in epoch, slot, epoch). */
static inline HO_HD void ho_env_begin(const ho_env_lane *lane, const ho_market_view *m, ho_env *e,
                                      uint32_t step, uint32_t slot, uint32_t epoch,
                                      ho_ledger *ledger)
{
    const ho_env_config *c = &lane->config;
    ho_rng4 r = ho_rng(lane->key, step, slot, epoch, HO_RNG_START_BAR, 0);
    int32_t room = lane->end - lane->begin - 1; /* the last bar starts nothing */
    int32_t offset = (int32_t)ho_rng_below(r.v[0], (uint32_t)room);
    for (int32_t i = 0; i < room && ho_is_last_bar(lane, m, lane->begin + offset); i++) {
        offset = offset + 1 == room ? 0 : offset + 1;
    }
    r = ho_rng(lane->key, step, slot, epoch, HO_RNG_START_EXPOSURE, 0);
    double exposure = 0.0;
    if (ho_rng_double(r.v[0], r.v[1]) < c->random_start) {
        exposure = 0.5 * (double)((int32_t)ho_rng_below(r.v[2], HO_EXPOSURES) - 2);
    }
    ho_env_begin_at(lane, m, e, lane->begin + offset, exposure, ledger);
}

/* An episode that goes on as a new one: the account stays, what is counted per episode restarts. */
static inline HO_HD void ho_env_continue(ho_env *e)
{
    e->anchor = e->equity;
    e->steps = 0;
    e->active = 1;
    ho_diversity_clear(e);
}

/* The epoch's start, by config.reset_flags: new episodes, or those that were under way. */
static inline HO_HD void ho_env_epoch_begin(const ho_env_lane *lane, const ho_market_view *m,
                                            ho_env *e, uint32_t slot, uint32_t epoch,
                                            ho_ledger *ledger)
{
    uint32_t flags = lane->config.reset_flags;
    if (flags & HO_RESET_DSR) {
        e->dsr_a = e->dsr_b = 0.0;
        e->dsr_steps = 0;
    }
    if (flags & HO_RESET_VOLATILITY) {
        e->size = -1.0;
    }
    if ((flags & HO_RESET_PORTFOLIO) || !e->active) {
        ho_env_begin(lane, m, e, 0, slot, epoch, ledger);
        return;
    }
    if (flags & HO_RESET_DIVERSITY) {
        ho_diversity_clear(e);
    }
    ho_env_update_size(lane, e); /* Kelly's share may have moved */
}

static inline HO_HD void ho_step_out_clear(ho_step_out *out)
{
    out->entropy = 0.0;
    out->label = 0;
    out->ambiguous = 0;
    out->exit_count = 0;
    for (int32_t i = 0; i < HO_CLOSED_MAX; i++) {
        out->exit_reason[i] = HO_EXIT_NONE;
    }
    out->end = HO_END_NONE;
    out->terminal = 0;
    out->truncated = 0;
}

/* How the episode ends with this step, if it does. */
static inline HO_HD void ho_env_judge_end(const ho_env_config *c, const ho_ahead *ahead,
                                          ho_step_out *out)
{
    int32_t barrier = 0;
    for (int32_t i = 0; i < HO_CLOSED_MAX; i++) {
        const int32_t reason = out->exit_reason[i];
        barrier |= reason == HO_EXIT_STOP || reason == HO_EXIT_PROFIT || reason == HO_EXIT_TIME;
    }
    barrier &= c->end_on_barrier != 0;
    out->end = out->equity <= ahead->ruin ? HO_END_RUIN : barrier ? HO_END_BARRIER : ahead->end;
    out->terminal = out->end == HO_END_RUIN || (out->end == HO_END_BARRIER && c->barrier_terminal);
    out->truncated = out->end != HO_END_NONE && !out->terminal;
}

/* Quotients that a step's reward is made of. */
enum { HO_RATIO_RET, HO_RATIO_LOAD, HO_RATIO_ENTROPY, HO_STEP_RATIOS };

/* A step but for its reward, see ho_env_step: `in` gets what needs no division, `ratio` the rest,
 * so that a GPU can divide together with the portfolio's columns. q: of bar e->t + 1; looked:
 * ho_env_look_ahead's; offer: of the account as it is, or NULL; ledger, bookings: or NULL. Returns
 * ho_market_step's: after 0 the step is to be made again from the same e, as that of a bar that is
 * not plain. */
static inline HO_HD int32_t ho_env_step_open(const ho_env_lane *lane, const double *n_log2_n,
                                             const ho_quote *q, const ho_ahead *looked,
                                             const ho_offer *offer, ho_env *e, ho_ring ring,
                                             const ho_order *order, ho_ledger *ledger,
                                             ho_bookings *bookings, ho_step_out *out,
                                             ho_reward_in *in, ho_ratio ratio[HO_STEP_RATIOS])
{
    const ho_env_config *c = &lane->config;
    const ho_ahead ahead = *looked; /* no store holds up a load */
    const double before = e->equity, size = e->size;
    ho_step_out_clear(out);
    const int32_t holds = ho_market_step(c, q, &ahead, offer, &e->account, before, order, size,
                                         ledger, bookings, out);
    ho_env_judge_end(c, &ahead, out);
    if (ahead.diverse) {
        ho_diversity_take(e, ring, &ahead.place, order->category);
    }
    e->t = ahead.t;
    e->steps = ahead.steps;
    e->equity = out->equity;
    e->size = ahead.size;
    if (ahead.anchored) {
        e->anchor = out->equity;
    }

    const int32_t lots = out->lots;
    ratio[HO_RATIO_RET] = ho_ratio_of(out->equity - before, before);
    ratio[HO_RATIO_LOAD] = ho_ratio_of((double)(lots < 0 ? -lots : lots), (double)c->max_lots);
    ho_ratio entropy = ho_ratio_of(0.0, 1.0);
    in->dsr = 0.0;
    in->label = out->label;
    in->judged = 0;
    if (ahead.dsr) {
        in->dsr = ho_dsr_step(c, e, ho_quotient(out->equity - before, before));
    }
    if (ahead.diverse) {
        const int32_t categories = ho_category_total(e);
        entropy = ho_ratio_of(ho_entropy_times_n(e, n_log2_n), (double)categories);
        in->judged = categories >= c->diversity_warmup;
    }
    ratio[HO_RATIO_ENTROPY] = entropy;
    return holds;
}

/* Stores what a step may have changed: `after` is a copy of e that went through ho_env_step_open,
 * `ahead` what that was given. */
static inline HO_HD void ho_env_keep(const ho_ahead *ahead, ho_env *e, const ho_env *after)
{
    e->account = after->account;
    e->equity = after->equity;
    e->anchor = after->anchor;
    e->size = after->size;
    e->t = after->t;
    e->steps = after->steps;
    if (ahead->diverse) {
        e->ring_head = after->ring_head;
        e->category_count[0] = after->category_count[0];
        e->category_count[1] = after->category_count[1];
        e->category_count[2] = after->category_count[2];
    }
    if (ahead->dsr) {
        e->dsr_a = after->dsr_a;
        e->dsr_b = after->dsr_b;
        e->dsr_steps = after->dsr_steps;
    }
}

/* The reward of a step from the values of its quotients. curiosity: see ho_env_step. */
static inline HO_HD void ho_env_step_reward(const ho_env_config *c, ho_reward_in *in,
                                            const double quotient[HO_STEP_RATIOS], float curiosity,
                                            ho_step_out *out)
{
    in->ret = out->ret = quotient[HO_RATIO_RET];
    in->load = quotient[HO_RATIO_LOAD];
    in->entropy = out->entropy = quotient[HO_RATIO_ENTROPY];
    in->curiosity = curiosity;
    out->reward = (float)ho_reward(c, in);
}

/* One step of an active slot: the order is decided at the close of e->t and fills inside the next
 * bar. Afterwards e is the state at that bar's close, also when the episode ended there.
 * ring: this slot's, unused when diversity is off. curiosity: the forward model's mean squared
 * error for (s_t, order), 0 when off. ledger: NULL, or accounts of this slot. */
static inline HO_HD void ho_env_step(const ho_env_lane *lane, const ho_market_view *m, ho_env *e,
                                     ho_ring ring, const ho_order *order, float curiosity,
                                     ho_ledger *ledger, ho_step_out *out)
{
    ho_reward_in in;
    ho_ratio ratio[HO_STEP_RATIOS];
    double quotient[HO_STEP_RATIOS];
    const ho_quote quote = ho_market_quote(m, lane->sigma, e->t);
    const ho_ahead ahead = ho_env_look_ahead(lane, e, ring, &quote);
    ho_env_step_open(lane, m->n_log2_n, &quote, &ahead, NULL, e, ring, order, ledger, NULL, out,
                     &in, ratio);
    for (int32_t i = 0; i < HO_STEP_RATIOS; i++) {
        quotient[i] = ho_quotient(ratio[i].num, ratio[i].den);
    }
    ho_env_step_reward(&lane->config, &in, quotient, curiosity, out);
}

/* After an end: starts the slot's next episode, or leaves it idle (recycle off). step: in the
 * epoch, of the decision that comes next. An episode that only reached its length goes on with its
 * account when portfolios persist. */
static inline HO_HD void ho_env_next(const ho_env_lane *lane, const ho_market_view *m, ho_env *e,
                                     const ho_step_out *out, uint32_t step, uint32_t slot,
                                     uint32_t epoch, ho_ledger *ledger)
{
    const ho_env_config *c = &lane->config;
    if (out->end == HO_END_LENGTH && !(c->reset_flags & HO_RESET_PORTFOLIO)) {
        ho_env_continue(e);
    } else if (c->recycle) {
        ho_env_begin(lane, m, e, step, slot, epoch, ledger);
    } else {
        e->active = 0;
    }
}

/* The end of a backtest: an open position leaves at the crossing price of the last close. q: of the
 * last step; before: equity one step earlier (the initial capital after a single step). */
static inline HO_HD void ho_env_finish(const ho_env_lane *lane, const ho_quote *q, ho_env *e,
                                       double before, ho_ledger *ledger, ho_bookings *bookings,
                                       ho_step_out *out)
{
    ho_market_finish(&lane->config, q, &e->account, before, ledger, bookings, out);
    e->equity = out->equity;
}

#endif
