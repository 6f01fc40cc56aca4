/* SPDX-License-Identifier: Apache-2.0
 * One backtest pass: rule policies, the step, sessions, trades and totals. */
#include "kernels/cpu/pass.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_LENGTH = 500 };
#define NANOSECONDS_A_YEAR (365.25 * 86400.0 * 1e9)

ho_status ho_cpu_pass_begin(ho_cpu_pass *p, ho_market_host *host,
                            const ho_backtest_request *request, const ho_env_config *env,
                            int32_t length, ho_backtest_result *result, ho_err *err)
{
    ho_env_config config = *env;
    const double *sigma = NULL;
    ho_rule_settings(request->policy, &config);
    ho_status rc = ho_market_host_sigma(host, config.sigma_window, &sigma, err);
    if (rc != HO_OK) {
        return rc;
    }
    p->request = request;
    p->rule.policy = request->policy;
    p->rule.momentum_bars = request->momentum_bars;
    p->rule.random_turnover = request->random_turnover;
    p->rule.random_exposure = request->random_exposure;
    p->rule.actions = request->actions;
    p->rule.targets = request->targets;
    p->host = host;
    p->result = result;
    p->lane = ho_env_lane_make(&config, request->window, length > 0 ? length : DEFAULT_LENGTH, 1,
                               request->rng_key, sigma);
    p->state_width = host->F + ho_portfolio_width(config.state_form);
    p->steps_max = request->window.end - request->window.begin - 1;
    p->before = p->session_start = config.initial_capital;
    ho_env_clear(&p->env);
    ho_env_begin_at(&p->lane, &host->view, &p->env, p->lane.begin, 0.0, &p->ledger);
    ho_bar_stats_begin(&p->bars, config.initial_capital);
    result->initial_capital = config.initial_capital;
    if (request->want & HO_WANT_BARS) {
        result->equity = malloc((size_t)(p->steps_max + 1) * sizeof(double));
        result->bar_return = malloc((size_t)p->steps_max * sizeof(double));
    }
    if (request->want & HO_WANT_ACTIONS) {
        result->actions = malloc((size_t)p->steps_max);
    }
    if (((request->want & HO_WANT_BARS) && (!result->equity || !result->bar_return)) ||
        ((request->want & HO_WANT_ACTIONS) && !result->actions)) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for %lld bars", (long long)p->steps_max);
    }
    if (result->equity) {
        result->equity[0] = config.initial_capital;
    }
    return HO_OK;
}

void ho_cpu_pass_state(const ho_cpu_pass *p, float *state)
{
    const ho_market_host *host = p->host;
    memcpy(state, host->features + (int64_t)p->env.t * host->F, (size_t)host->F * sizeof(float));
    ho_env_portfolio(&p->lane, &host->view, &p->env, state + host->F);
}

ho_order ho_cpu_pass_rule(ho_cpu_pass *p, int32_t *action)
{
    return ho_rule_order(&p->rule, &p->lane, &p->host->view, &p->env, p->steps, action);
}

/* ---- the step -------------------------------------------------------------------------------- */

/* Makes room for one more element; the array may move. */
static ho_status grow(void **array, int64_t count, int64_t *room, size_t size)
{
    if (count < *room) {
        return HO_OK;
    }
    int64_t more = *room > 0 ? 2 * *room : 64;
    void *moved = realloc(*array, (size_t)more * size);
    if (!moved) {
        return HO_ENOMEM;
    }
    *array = moved;
    *room = more;
    return HO_OK;
}

static ho_status take_trades(ho_cpu_pass *p)
{
    ho_backtest_result *result = p->result;
    for (int32_t i = 0; i < p->ledger.closed_count; i++) {
        void *array = p->trades;
        ho_status rc = grow(&array, result->trade_count, &p->trade_room, sizeof(ho_trade));
        p->trades = array;
        if (rc != HO_OK) {
            return rc;
        }
        p->trades[result->trade_count++] = p->ledger.closed[i];
        result->exit_count[p->ledger.closed[i].reason]++;
    }
    p->ledger.closed_count = 0;
    return HO_OK;
}

/* Closes the session of bar t when t is its last bar in the window or the pass ended. */
static ho_status take_session(ho_cpu_pass *p)
{
    ho_backtest_result *result = p->result;
    int64_t t = p->env.t;
    if (!p->done && p->host->session[t + 1] == p->host->session[t]) {
        return HO_OK;
    }
    int64_t room = p->session_room;
    void *returns = p->session_return, *ids = p->session_id;
    ho_status rc = grow(&returns, result->sessions, &room, sizeof(double));
    p->session_return = returns;
    if (rc == HO_OK) {
        rc = grow(&ids, result->sessions, &p->session_room, sizeof(int32_t));
        p->session_id = ids;
    }
    if (rc != HO_OK) {
        return rc;
    }
    p->session_return[result->sessions] = p->env.equity / p->session_start - 1.0;
    p->session_id[result->sessions++] = p->host->session[t];
    p->session_start = p->env.equity;
    return HO_OK;
}

/* The position at the last mark, and its forced exit inside the last return. */
static void close_at_end(ho_cpu_pass *p, ho_step_out *out)
{
    const ho_env_config *c = &p->lane.config;
    const ho_account *a = &p->env.account;
    double close = p->host->bars[(int64_t)p->env.t * HO_BAR_COLUMNS + HO_CLOSE];
    p->result->open_pnl = (close - a->entry) * (double)a->lots * c->lot * c->multiplier;
    if (a->lots != 0) {
        p->result->metrics.flags |= HO_FLAG_OPEN_POSITION;
    }
    p->result->ruined = out->end == HO_END_RUIN;
    const ho_quote last = ho_market_quote(&p->host->view, p->lane.sigma, p->env.t - 1);
    ho_env_finish(&p->lane, &last, &p->env, p->before, &p->ledger, NULL, out);
}

ho_status ho_cpu_pass_step(ho_cpu_pass *p, const ho_order *order, int32_t action)
{
    ho_backtest_result *result = p->result;
    ho_step_out out;
    int32_t lots = p->env.account.lots;
    ho_ring ring = {p->ring, 1};
    p->before = p->env.equity;
    ho_env_step(&p->lane, &p->host->view, &p->env, ring, order, 0.0f, &p->ledger, &out);
    int held = p->env.account.lots != 0;
    result->position_changes += p->env.account.lots != lots;
    result->ambiguous_bars += out.ambiguous;
    if (action >= 0) {
        result->action_count[action]++;
        if (result->actions) {
            result->actions[p->steps] = (uint8_t)action;
        }
    }
    p->done = out.end != HO_END_NONE;
    if (p->done) {
        close_at_end(p, &out);
    }
    p->steps++;
    ho_bar_stats_add(&p->bars, out.equity, out.ret, held);
    if (result->equity) {
        result->equity[p->steps] = out.equity;
        result->bar_return[p->steps - 1] = out.ret;
    }
    ho_status rc = take_trades(p);
    return rc == HO_OK ? take_session(p) : rc;
}

/* ---- totals ---------------------------------------------------------------------------------- */

/* Calendar years from the open of the first bar with a return to the close of the last. */
static double pass_years(const ho_cpu_pass *p)
{
    const ho_market_host *h = p->host;
    int64_t first = h->open_ns[p->lane.begin + 1];
    int64_t last = h->open_ns[p->env.t] + h->interval_ns;
    return (double)(last - first) / NANOSECONDS_A_YEAR;
}

ho_status ho_cpu_pass_finish(ho_cpu_pass *p)
{
    ho_backtest_result *result = p->result;
    const ho_ledger *ledger = &p->ledger;
    result->final_equity = p->env.equity;
    result->realised = ledger->realised;
    result->fees = ledger->fees;
    result->spread = ledger->spread;
    result->impact = ledger->impact;
    result->rounding = ledger->slippage - ledger->spread - ledger->impact;
    result->funding = ledger->funding;
    result->traded = ledger->traded;
    result->steps = result->bars = p->steps;
    result->trades_closed = result->trade_count;

    ho_metrics_input in = ho_metrics_input_defaults();
    in.initial_capital = result->initial_capital;
    in.bars = &p->bars;
    in.sessions = p->session_return;
    in.session_count = result->sessions;
    in.sessions_per_year = p->lane.config.sessions_per_year;
    in.years = pass_years(p);
    in.trades = p->trades;
    in.trade_count = result->trade_count;
    in.multiplier = p->lane.config.multiplier;
    in.traded = ledger->traded;
    in.ambiguous_bars = result->ambiguous_bars;
    in.has_trades = 1;
    in.open_position = (result->metrics.flags & HO_FLAG_OPEN_POSITION) != 0;
    in.ruined = result->ruined;
    ho_status rc = ho_metrics_compute(&in, &result->metrics);
    if (result->metrics.flags & HO_FLAG_NAN_DROPPED) { /* prices are finite: an overflow */
        rc = HO_EDATA;
    }
    if (p->request->want & HO_WANT_SESSIONS) {
        result->session_return = p->session_return;
        result->session_id = p->session_id;
        p->session_return = NULL;
        p->session_id = NULL;
    }
    if (p->request->want & HO_WANT_TRADES) {
        result->trades = p->trades;
        p->trades = NULL;
    }
    return rc;
}

void ho_cpu_pass_free(ho_cpu_pass *p)
{
    free(p->session_return);
    free(p->session_id);
    free(p->trades);
    p->session_return = NULL;
    p->session_id = NULL;
    p->trades = NULL;
}
