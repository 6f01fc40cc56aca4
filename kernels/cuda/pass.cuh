/* SPDX-License-Identifier: Apache-2.0
 * One backtest pass on the device: what it is given, what it keeps, one step. A pass belongs to one
 * thread. The arithmetic and its order are those of kernels/cpu/pass.c, so that the same orders
 * give the same bits. */
#ifndef HO_CUDA_PASS_CUH
#define HO_CUDA_PASS_CUH

#include "kernels/env/rules.h"
#include "kernels/env/step.h"
#include "kernels/metrics/bar_stats.h"
#include "kernels/metrics/trade_stats.h"

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

/* What a pass keeps and, at its end, reports. */
typedef struct pass_state {
    ho_env env;
    ho_ledger ledger;
    ho_bar_stats bars;
    ho_trade_stats trades;
    double before;        /* equity before the last step */
    double session_start; /* equity at the end of the session before */
    double held_exposure; /* HO_POLICY_RANDOM */
    double open_pnl;
    int64_t steps, sessions, ambiguous_bars, position_changes;
    int32_t done, ruined, open_position;
    int32_t exit_count[HO_EXIT_REASONS];
    int32_t action_count[HO_ACTIONS];
} pass_state;

static __device__ void pass_begin(pass_state *s, const pass_plan *p, const ho_market_view *m)
{
    for (int i = 0; i < (int)(sizeof *s / 4); i++) {
        ((int32_t *)s)[i] = 0;
    }
    const double capital = p->lane.config.initial_capital;
    s->before = s->session_start = capital;
    ho_env_clear(&s->env);
    ho_env_begin_at(&p->lane, m, &s->env, p->lane.begin, 0.0, &s->ledger);
    ho_bar_stats_begin(&s->bars, capital);
    ho_trade_stats_begin(&s->trades);
    if (p->equity) {
        p->equity[0] = capital;
    }
}

/* The position at the last mark, and its forced exit inside the last return. */
static __device__ void pass_close(pass_state *s, const pass_plan *p, const ho_market_view *m,
                                  ho_step_out *out)
{
    const ho_env_config *c = &p->lane.config;
    const ho_account *a = &s->env.account;
    const double close = m->bars[(int64_t)s->env.t * HO_BAR_COLUMNS + HO_CLOSE];
    s->open_pnl = (close - a->entry) * (double)a->lots * c->lot * c->multiplier;
    s->open_position = a->lots != 0;
    s->ruined = out->end == HO_END_RUIN;
    ho_env_finish(&p->lane, m, &s->env, s->before, &s->ledger, out);
}

static __device__ void pass_take_trades(pass_state *s, const pass_plan *p)
{
    for (int i = 0; i < s->ledger.closed_count; i++) {
        const ho_trade *t = &s->ledger.closed[i];
        if (p->trades && s->trades.net.n < p->trade_room) {
            p->trades[s->trades.net.n] = *t;
        }
        ho_trade_stats_add(&s->trades, t, p->lane.config.multiplier);
        s->exit_count[t->reason]++;
    }
    s->ledger.closed_count = 0;
}

/* action: recorded and counted when >= 0. Sets done at the window's end and on ruin. */
static __device__ void pass_step(pass_state *s, const pass_plan *p, const ho_market_view *m,
                                 const ho_order *order, int32_t action)
{
    ho_step_out out;
    const int32_t lots = s->env.account.lots;
    const ho_ring ring = {p->ring, 1};
    s->before = s->env.equity;
    ho_env_step(&p->lane, m, &s->env, ring, order, 0.0f, &s->ledger, &out);
    const int held = s->env.account.lots != 0;
    s->position_changes += s->env.account.lots != lots;
    s->ambiguous_bars += out.ambiguous;
    if (action >= 0) {
        s->action_count[action]++;
        if (p->actions) {
            p->actions[s->steps] = (uint8_t)action;
        }
    }
    s->done = out.end != HO_END_NONE;
    if (s->done) {
        pass_close(s, p, m, &out);
    }
    s->steps++;
    ho_bar_stats_add(&s->bars, out.equity, out.ret, held);
    if (p->equity) {
        p->equity[s->steps] = out.equity;
        p->bar_return[s->steps - 1] = out.ret;
    }
    pass_take_trades(s, p);
    if (s->done || (m->bar_flags[s->env.t] & HO_BAR_SESSION_END)) {
        p->session_return[s->sessions] = s->env.equity / s->session_start - 1.0;
        p->session_bar[s->sessions] = s->env.t;
        s->sessions++;
        s->session_start = s->env.equity;
    }
}

#endif
