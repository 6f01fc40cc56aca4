/* SPDX-License-Identifier: Apache-2.0
 * Test markets; see cases.h. */
#include "kernels/cases.h"

#include <stdlib.h>

#include "backend_choice.h"
#include "check.h"
#include "kernels/env/orders.h"
#include "kernels/env/rng.h"

test_market *test_market_new(int64_t T)
{
    test_market *m = calloc(1, sizeof *m);
    m->T = T;
    m->bars = calloc((size_t)T * HO_BAR_COLUMNS, sizeof(double));
    m->open_ns = calloc((size_t)T, sizeof(int64_t));
    m->session = calloc((size_t)T, sizeof(int32_t));
    m->actions = calloc((size_t)T, 1);
    m->action_count = T - 1;
    for (int64_t t = 0; t < T; t++) {
        m->open_ns[t] = INT64_C(1700000000) * 1000000000 + t * INT64_C(60000000000);
    }
    m->config = ho_env_config_defaults();
    m->config.max_lots = 5;
    m->config.impact_coef = 0.0;
    ho_err err = {0};
    ho_backend_options options = test_backend_options(1);
    CHECK_OK(ho_backend_open(&m->backend, &options, &err), &err);
    return m;
}

void test_market_free(test_market *m)
{
    ho_market_unload(&m->market);
    ho_backend_close(&m->backend);
    free(m->bars);
    free(m->open_ns);
    free(m->session);
    free(m->roll_jump);
    free(m->funding);
    free(m->sigma);
    free(m->split);
    free(m->actions);
    free(m);
}

void test_market_bar(test_market *m, int64_t t, double open, double high, double low, double close,
                     double volume)
{
    double *bar = m->bars + t * HO_BAR_COLUMNS;
    bar[HO_OPEN] = open;
    bar[HO_HIGH] = high;
    bar[HO_LOW] = low;
    bar[HO_CLOSE] = close;
    bar[HO_VOLUME] = volume;
}

static double on_tick(double price, double tick)
{
    return tick > 0.0 ? ho_round_half_away(price / tick) * tick : price;
}

void test_market_walk(test_market *m, uint64_t seed, double price, double step, double tick)
{
    double close = price;
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (int64_t t = 0; t < m->T; t++) {
        double z[4];
        ho_rng4 a = ho_rng(key, (uint32_t)t, 0, 0, HO_RNG_NOISE, 0);
        ho_rng4 b = ho_rng(key, (uint32_t)t, 0, 0, HO_RNG_NOISE, 1);
        z[0] = ho_rng_normal(a.v[0], a.v[1]);
        z[1] = ho_rng_normal(a.v[2], a.v[3]);
        z[2] = fabs((double)ho_rng_normal(b.v[0], b.v[1]));
        z[3] = fabs((double)ho_rng_normal(b.v[2], b.v[3]));
        double open = on_tick(close + 0.2 * step * z[0], tick);
        close = on_tick(open + step * z[1], tick);
        double high = on_tick((open > close ? open : close) + 0.5 * step * z[2], tick);
        double low = on_tick((open < close ? open : close) - 0.5 * step * z[3], tick);
        test_market_bar(m, t, open, high, low, close, 100.0 + (double)(a.v[0] % 900));
    }
    test_market_load(m);
}

void test_market_load(test_market *m)
{
    ho_err err = {0};
    ho_market_unload(&m->market);
    ho_market_data data = {.T = m->T,
                           .bars = m->bars,
                           .open_ns = m->open_ns,
                           .interval_ns = INT64_C(60000000000),
                           .session = m->session,
                           .roll_jump = m->roll_jump,
                           .split = m->split,
                           .funding = m->funding,
                           .sigma = m->sigma,
                           .has_volume = 1};
    CHECK_OK(ho_market_load(m->backend, &data, &m->market, &err), &err);
}

void test_market_random_actions(test_market *m, uint64_t seed)
{
    const uint32_t key[2] = {(uint32_t)seed, 1};
    int32_t action = 20;
    for (int64_t i = 0; i < m->action_count; i++) {
        ho_rng4 r = ho_rng(key, (uint32_t)i, 0, 0, HO_RNG_ACTION, 0);
        if (ho_rng_float(r.v[0]) < 0.3f) {
            action = (int32_t)ho_rng_below(r.v[1], HO_ACTIONS);
        }
        m->actions[i] = (uint8_t)action;
    }
}

cJSON *test_read_json(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        fail_msg("%s: cannot be opened", path);
    }
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char *text = malloc(size + 1);
    assert_int_equal(fread(text, 1, size, file), size);
    fclose(file);
    text[size] = 0;
    cJSON *json = cJSON_Parse(text);
    free(text);
    if (!json) {
        fail_msg("%s: not JSON", path);
    }
    return json;
}

static void number(const cJSON *config, const char *name, double *out)
{
    const cJSON *item = cJSON_GetObjectItem(config, name);
    *out = item ? cJSON_IsBool(item) ? cJSON_IsTrue(item) : item->valuedouble : *out;
}

static void integer(const cJSON *config, const char *name, int32_t *out)
{
    double value = *out;
    number(config, name, &value);
    *out = (int32_t)value;
}

static void numbers(const cJSON *config, const char *name, double out[3])
{
    const cJSON *list = cJSON_GetObjectItem(config, name);
    for (int i = 0; list && i < 3; i++) {
        out[i] = cJSON_GetArrayItem(list, i)->valuedouble;
    }
}

/* [T] from a list of numbers or booleans; NULL when absent or empty. */
static double *series(const cJSON *config, const char *name, int64_t T)
{
    const cJSON *list = cJSON_GetObjectItem(config, name), *item;
    if (!list || cJSON_GetArraySize(list) == 0) {
        return NULL;
    }
    double *out = calloc((size_t)T, sizeof *out);
    int64_t t = 0;
    cJSON_ArrayForEach(item, list)
    {
        out[t++] = cJSON_IsBool(item) ? cJSON_IsTrue(item) : item->valuedouble;
    }
    assert_int_equal(t, T);
    return out;
}

static void read_rolls(test_market *m, const cJSON *config)
{
    const cJSON *rolls = cJSON_GetObjectItem(config, "rolls"), *roll;
    if (rolls && cJSON_GetArraySize(rolls) > 0) {
        m->roll_jump = calloc((size_t)m->T, sizeof(double));
        cJSON_ArrayForEach(roll, rolls)
        {
            m->roll_jump[cJSON_GetArrayItem(roll, 0)->valueint] =
                cJSON_GetArrayItem(roll, 1)->valuedouble;
        }
    }
}

static void read_config(test_market *m, const cJSON *config)
{
    ho_env_config *c = &m->config;
    const cJSON *fill = cJSON_GetObjectItem(config, "fill");
    number(config, "initial_capital", &c->initial_capital);
    integer(config, "max_lots", &c->max_lots);
    number(config, "lot", &c->lot);
    number(config, "tick", &c->tick_size);
    number(config, "multiplier", &c->multiplier);
    integer(config, "has_volume", &c->has_volume);
    integer(config, "allow_short", &c->allow_short);
    number(config, "spread_bps", &c->spread_bps);
    numbers(config, "fee_bps", c->fee_bps);
    number(config, "fee_per_unit", &c->fee_per_unit);
    number(config, "impact_coef", &c->impact_coef);
    numbers(config, "urgency_fraction", c->urgency_fraction);
    number(config, "max_leverage", &c->max_leverage);
    number(config, "cash_reserve", &c->cash_reserve);
    number(config, "limit_offset", &c->limit_offset);
    number(config, "ioc_band", &c->ioc_band);
    number(config, "ioc_participation", &c->ioc_participation);
    number(config, "profit_target_bps", &c->profit_target);
    number(config, "stop_loss_bps", &c->stop_loss);
    integer(config, "max_holding", &c->max_holding);
    integer(config, "cooldown", &c->cooldown);
    integer(config, "flat_at_session_end", &c->flat_at_session_end);
    c->fill = fill && strcmp(fill->valuestring, "close") == 0 ? HO_FILL_CLOSE : HO_FILL_NEXT_OPEN;
}

test_market *test_market_from_json(const char *path)
{
    cJSON *json = test_read_json(path);
    const cJSON *config = cJSON_GetObjectItem(json, "config");
    const cJSON *bars = cJSON_GetObjectItem(json, "bars"), *bar, *action;
    test_market *m = test_market_new(cJSON_GetArraySize(bars));
    int64_t t = 0;
    read_config(m, config);
    cJSON_ArrayForEach(bar, bars)
    {
        for (int c = 0; c < HO_BAR_COLUMNS; c++) {
            m->bars[t * HO_BAR_COLUMNS + c] = cJSON_GetArrayItem(bar, c)->valuedouble;
        }
        t++;
    }
    m->action_count = 0;
    cJSON_ArrayForEach(action, cJSON_GetObjectItem(json, "actions"))
    {
        m->actions[m->action_count++] = (uint8_t)action->valueint;
    }
    double *session_end = series(config, "session_end", m->T);
    for (t = 1; session_end && t < m->T; t++) {
        m->session[t] = m->session[t - 1] + (session_end[t - 1] != 0.0);
    }
    free(session_end);
    m->funding = series(config, "funding", m->T);
    m->sigma = series(config, "sigma", m->T);
    if (!m->sigma) { /* market_ref.py has no impact without a given sigma */
        m->config.impact_coef = 0.0;
    }
    read_rolls(m, config);
    cJSON_Delete(json);
    test_market_load(m);
    return m;
}

ho_backtest_result test_market_policy(test_market *m, ho_policy policy)
{
    ho_err err = {0};
    ho_backtest_result result;
    ho_backtest_request request = {.policy = policy,
                                   .window = {0, m->action_count + 1},
                                   .env = &m->config,
                                   .actions = m->actions,
                                   .momentum_bars = 20,
                                   .rng_key = {1, 2},
                                   .random_turnover = 0.1,
                                   .random_exposure = 0.5,
                                   .want = HO_WANT_SESSIONS | HO_WANT_BARS | HO_WANT_TRADES |
                                           HO_WANT_ACTIONS};
    CHECK_OK(ho_backtest(m->market, NULL, &request, 1, &result, &err), &err);
    return result;
}

ho_backtest_result test_market_run(test_market *m)
{
    return test_market_policy(m, HO_POLICY_ACTIONS);
}
