/* SPDX-License-Identifier: Apache-2.0
 * Many small studies where there is nothing to find: each trial is a random policy on noise,
 * without costs, so that the best of a study is luck alone. The deflated Sharpe ratio must seldom
 * call it skill; the probabilistic one, which does not know how many were tried, must be fooled
 * often. */
#include "check.h"
#include "kernels/cases.h"
#include "kernels/metrics/overfit.h"

enum { STUDIES = 400, TRIALS = 20, SESSIONS = 100, BARS_A_SESSION = 4 };

typedef struct rates {
    int psr, dsr, defined; /* studies whose best has it above 0.95 */
} rates;

/* One market, TRIALS random policies. */
static void run_study(uint64_t study, rates *out)
{
    int64_t T = SESSIONS * BARS_A_SESSION;
    test_market *m = test_market_new(T);
    ho_backtest_request request[TRIALS];
    ho_backtest_result result[TRIALS];
    ho_sharpe_moments best = {0};
    double sum = 0.0, squares = 0.0;
    int known = 0;
    ho_err err = {0};

    for (int64_t t = 0; t < T; t++) {
        m->session[t] = (int32_t)(t / BARS_A_SESSION);
    }
    m->config.spread_bps = 0.0;
    for (int k = 0; k < 3; k++) {
        m->config.fee_bps[k] = 0.0;
    }
    m->config.fee_per_unit = 0.0;
    m->config.max_lots = 100;
    test_market_walk(m, 1000 + study, 1000.0, 2.0, 0.0);
    for (int i = 0; i < TRIALS; i++) {
        request[i] = (ho_backtest_request){.policy = HO_POLICY_RANDOM,
                                           .window = {0, T},
                                           .env = &m->config,
                                           .rng_key = {study, (uint64_t)i},
                                           .random_turnover = 0.3,
                                           .random_exposure = 0.8,
                                           .want = HO_WANT_SESSIONS};
    }
    CHECK_OK(ho_backtest(m->market, NULL, request, TRIALS, result, &err), &err);
    for (int i = 0; i < TRIALS; i++) {
        ho_sharpe_moments s =
            ho_sharpe_moments_of(result[i].session_return, result[i].sessions, 0.0);
        if (!isnan(s.sharpe)) {
            best = known == 0 || s.sharpe > best.sharpe ? s : best;
            sum += s.sharpe;
            squares += s.sharpe * s.sharpe;
            known++;
        }
        ho_backtest_free(&result[i]);
    }
    assert_true(known == TRIALS);
    double mean = sum / TRIALS, variance = (squares - TRIALS * mean * mean) / (TRIALS - 1);
    double psr = ho_psr(&best, 0.0), dsr = ho_dsr(&best, TRIALS, variance);
    out->defined += !isnan(psr) && !isnan(dsr);
    out->psr += psr > 0.95;
    out->dsr += dsr > 0.95;
    test_market_free(m);
}

static void the_deflated_sharpe_ratio_is_seldom_fooled_by_the_best_of_many(void **state)
{
    (void)state;
    rates r = {0};
    for (uint64_t study = 0; study < STUDIES; study++) {
        run_study(study, &r);
    }
    print_message("of %d studies of %d random policies: PSR > 0.95 in %d, DSR > 0.95 in %d\n",
                  STUDIES, TRIALS, r.psr, r.dsr);
    assert_int_equal(r.defined, STUDIES);
    assert_in_range(r.dsr, 0, STUDIES / 20); /* 5 % */
    /* 1 - 0.95^20 is 64 % for independent trials; they share the market's noise, so fewer */
    assert_true(r.psr > STUDIES / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_deflated_sharpe_ratio_is_seldom_fooled_by_the_best_of_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
