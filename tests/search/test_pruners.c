/* SPDX-License-Identifier: Apache-2.0
 * Pruners: each kind's rule on hand-made reports, and the public reports issue 7 lists. */
#include "check.h"

#include "coordinator/search/draw.h"
#include "coordinator/search/pruner.h"
#include "coordinator/search/rungs.h"
#include "coordinator/search/signed_rank.h"

static ho_pruner *make(const ho_pruner_options *options)
{
    ho_pruner *pruner;
    ho_err err;

    CHECK_OK(ho_pruner_create(&pruner, options, &err), &err);
    return pruner;
}

static ho_decision report(ho_pruner *pruner, int64_t number, int64_t step, double value)
{
    ho_decision decision;
    ho_err err;

    CHECK_OK(ho_pruner_report(pruner, number, step, &value, &decision, &err), &err);
    return decision;
}

static void finish(ho_pruner *pruner, int64_t number, ho_told_state state)
{
    ho_err err;

    CHECK_OK(ho_pruner_finish(pruner, number, state, &err), &err);
}

static ho_pruner_options kind(const char *name)
{
    ho_pruner_options options = ho_pruner_defaults();

    options.kind = name;
    return options;
}

static void none_never_prunes(void **state)
{
    ho_pruner_options options = kind("none");
    ho_pruner *pruner = make(&options);

    (void)state;
    assert_int_equal(report(pruner, 0, 1, -1e300).verdict, HO_VERDICT_CONTINUE);
    assert_int_equal(report(pruner, 0, 2, NAN).verdict, HO_VERDICT_CONTINUE);
    ho_pruner_destroy(&pruner);
    assert_null(pruner);
}

static void unknown_kind_lists_the_kinds(void **state)
{
    ho_pruner_options options = kind("medain");
    ho_pruner *pruner;
    ho_err err;

    (void)state;
    CHECK_STATUS(ho_pruner_create(&pruner, &options, &err), HO_ECONFIG);
    CHECK_CONTAINS(err.text, "medain");
    CHECK_CONTAINS(err.text, "hyperband");
    assert_null(pruner);
}

/* Five complete trials whose best so far at epoch 2 is 1 ... 5. */
static ho_pruner *five_complete(const ho_pruner_options *options)
{
    ho_pruner *pruner = make(options);

    for (int64_t n = 0; n < 5; n++) {
        report(pruner, n, 1, (double)n);
        report(pruner, n, 2, (double)n + 1.0);
        report(pruner, n, 3, -100.0); /* best so far stays */
        finish(pruner, n, HO_TOLD_COMPLETE);
    }
    return pruner;
}

static void median_compares_best_so_far_on_both_sides(void **state)
{
    ho_pruner_options options = kind("median");
    ho_pruner *pruner = five_complete(&options);
    ho_decision d;

    (void)state;
    d = report(pruner, 10, 3, 2.9);
    assert_int_equal(d.verdict, HO_VERDICT_PRUNE);
    CHECK_NEAR(d.threshold, 3.0, 0.0);
    CHECK_NEAR(d.score, 2.9, 0.0);
    assert_int_equal(d.competitors, 5);
    CHECK_CONTAINS(d.why, "pruned");
    assert_int_equal(report(pruner, 11, 3, 3.0).verdict, HO_VERDICT_CONTINUE); /* a tie goes on */
    report(pruner, 12, 2, 4.0);
    assert_int_equal(report(pruner, 12, 3, -50.0).verdict, HO_VERDICT_CONTINUE);
    ho_pruner_destroy(&pruner);
}

static void median_minimises_when_less_is_better(void **state)
{
    ho_pruner_options options = kind("median");
    ho_pruner *pruner;

    (void)state;
    options.direction[0] = -1;
    pruner = make(&options);
    for (int64_t n = 0; n < 5; n++) {
        report(pruner, n, 1, (double)n);
        finish(pruner, n, HO_TOLD_COMPLETE);
    }
    assert_int_equal(report(pruner, 5, 1, 2.1).verdict, HO_VERDICT_PRUNE);
    assert_int_equal(report(pruner, 6, 1, 1.9).verdict, HO_VERDICT_CONTINUE);
    ho_pruner_destroy(&pruner);
}

static void percentile_keeps_the_stated_share(void **state)
{
    ho_pruner_options options = kind("percentile");
    ho_pruner *pruner;

    (void)state;
    options.percentile = 25.0;
    pruner = five_complete(&options);
    assert_int_equal(report(pruner, 10, 2, 3.9).verdict, HO_VERDICT_PRUNE); /* needs 4 */
    assert_int_equal(report(pruner, 11, 2, 4.0).verdict, HO_VERDICT_CONTINUE);
    ho_pruner_destroy(&pruner);
}

static void median_waits_for_startup_and_ignores_unfinished_trials(void **state)
{
    ho_pruner_options options = kind("median");
    ho_pruner *pruner = make(&options);

    (void)state;
    for (int64_t n = 0; n < 8; n++) {
        report(pruner, n, 1, 10.0);
        if (n < 4) {
            finish(pruner, n, HO_TOLD_COMPLETE);
        }
        if (n == 4) {
            finish(pruner, n, HO_TOLD_PRUNED);
        }
        if (n == 5) {
            finish(pruner, n, HO_TOLD_FAILED);
        }
    }
    assert_int_equal(report(pruner, 20, 1, 0.0).verdict, HO_VERDICT_CONTINUE);
    finish(pruner, 7, HO_TOLD_COMPLETE);
    assert_int_equal(report(pruner, 21, 1, 0.0).verdict, HO_VERDICT_PRUNE);
    ho_pruner_destroy(&pruner);
}

static void nan_counts_as_worst(void **state)
{
    ho_pruner_options options = kind("median");
    ho_pruner *pruner = five_complete(&options);

    (void)state;
    assert_int_equal(report(pruner, 10, 1, NAN).verdict, HO_VERDICT_PRUNE);
    report(pruner, 11, 1, 5.0);
    assert_int_equal(report(pruner, 11, 2, NAN).verdict, HO_VERDICT_CONTINUE); /* best is 5 */
    ho_pruner_destroy(&pruner);
}

static void repeated_report_is_ignored(void **state)
{
    ho_pruner_options options = kind("median");
    ho_pruner *pruner = five_complete(&options);

    (void)state;
    assert_int_equal(report(pruner, 10, 2, 5.0).verdict, HO_VERDICT_CONTINUE);
    assert_int_equal(report(pruner, 10, 2, -9.0).verdict, HO_VERDICT_CONTINUE);
    CHECK_CONTAINS(report(pruner, 10, 1, -9.0).why, "reported before");
    ho_pruner_destroy(&pruner);
}

static ho_pruner_options asha(int64_t first, int64_t epochs, bool promote)
{
    ho_pruner_options options = kind("asha");

    options.min_epochs = first;
    options.max_epochs = epochs;
    options.promote = promote;
    return options;
}

static void asha_keeps_the_best_third_of_a_rung(void **state)
{
    ho_pruner_options options = asha(1, 27, false);
    ho_pruner *pruner = make(&options);
    ho_decision d;

    (void)state;
    assert_int_equal(report(pruner, 0, 1, 5.0).verdict, HO_VERDICT_CONTINUE); /* alone */
    assert_int_equal(report(pruner, 1, 1, 4.0).verdict, HO_VERDICT_PRUNE);    /* 1 of 2 */
    assert_int_equal(report(pruner, 2, 1, 6.0).verdict, HO_VERDICT_CONTINUE); /* best of 3 */
    d = report(pruner, 3, 1, 5.5);
    assert_int_equal(d.verdict, HO_VERDICT_PRUNE);
    assert_int_equal(d.rung, 0);
    assert_int_equal(d.competitors, 3);
    CHECK_NEAR(d.threshold, 6.0, 0.0);
    CHECK_CONTAINS(d.why, "rung 0 (epoch 1)");
    assert_int_equal(report(pruner, 4, 1, 6.0).verdict, HO_VERDICT_CONTINUE);  /* a tie is kept */
    assert_int_equal(report(pruner, 0, 2, -1.0).verdict, HO_VERDICT_CONTINUE); /* between rungs */
    d = report(pruner, 0, 9, 1.0); /* past rung 1 and on rung 2 */
    assert_int_equal(d.rung, 2);
    assert_int_equal(d.verdict, HO_VERDICT_CONTINUE);
    ho_pruner_destroy(&pruner);
}

static void asha_decides_nothing_at_the_last_epoch(void **state)
{
    ho_pruner_options options = asha(1, 9, false);
    ho_pruner *pruner = make(&options);

    (void)state;
    report(pruner, 0, 9, 5.0);
    assert_int_equal(report(pruner, 1, 3, 1.0).verdict, HO_VERDICT_PRUNE);
    report(pruner, 2, 3, 9.0);
    assert_false(report(pruner, 2, 9, -1.0).compared);
    ho_pruner_destroy(&pruner);
}

static void asha_promotes_what_rises_into_the_best_third(void **state)
{
    ho_pruner_options options = asha(1, 27, true);
    ho_pruner *pruner = make(&options);
    ho_decision d;
    ho_err err;
    int64_t number = -1;

    (void)state;
    assert_int_equal(report(pruner, 0, 1, 9.0).verdict, HO_VERDICT_CONTINUE);
    assert_int_equal(report(pruner, 1, 1, 8.0).verdict, HO_VERDICT_PAUSE);
    CHECK_STATUS(ho_pruner_promote(pruner, &number, &d, &err), HO_EDONE);
    for (int64_t n = 2; n < 6; n++) {
        report(pruner, n, 1, 1.0);
    }
    CHECK_OK(ho_pruner_promote(pruner, &number, &d, &err), &err); /* 2 of 6 may go on */
    assert_int_equal(number, 1);
    CHECK_CONTAINS(d.why, "promoted from rung 0");
    CHECK_STATUS(ho_pruner_promote(pruner, &number, &d, &err), HO_EDONE);
    assert_int_equal(report(pruner, 1, 3, 8.0).verdict, HO_VERDICT_CONTINUE); /* first at rung 1 */
    ho_pruner_destroy(&pruner);
}

static void resumed_promotion_is_not_promoted_twice(void **state)
{
    ho_pruner_options options = asha(1, 27, true);
    ho_pruner *pruner = make(&options);
    ho_decision d;
    ho_err err;
    int64_t number = -1;

    (void)state;
    report(pruner, 0, 1, 9.0);
    report(pruner, 1, 1, 8.0);
    for (int64_t n = 2; n < 6; n++) {
        report(pruner, n, 1, 1.0);
    }
    CHECK_OK(ho_pruner_unpause(pruner, 1, &err), &err);
    CHECK_STATUS(ho_pruner_promote(pruner, &number, &d, &err), HO_EDONE);
    CHECK_STATUS(ho_pruner_unpause(pruner, 99, &err), HO_EINVAL);
    ho_pruner_destroy(&pruner);
}

/* katib 557: Hyperband never ends; log_3 243 = 4.9999... gives 5 brackets. */
static void hyperband_of_243_and_3_has_6_brackets_and_ends(void **state)
{
    int seen[6] = {0};
    ho_pruner_options options = kind("hyperband");
    ho_pruner *pruner;
    int64_t epochs = 0;

    (void)state;
    assert_int_equal(ho_rungs_brackets(1, 243, 3), 6);
    assert_int_equal(ho_rungs_brackets(1, 1, 3), 1);
    assert_int_equal(ho_rungs_brackets(1, INT64_MAX, 2), 63);
    for (int64_t n = 0; n < 2000; n++) {
        seen[ho_rungs_bracket(7, n, 6, 3)]++;
    }
    for (int b = 0; b < 6; b++) {
        assert_true(seen[b] > 0);
    }
    assert_true(seen[0] > seen[1] && seen[1] > seen[2]);
    options.max_epochs = 243;
    pruner = make(&options);
    for (int64_t n = 0; n < 200; n++) { /* every trial ends, most of them early */
        int64_t step = 1;

        while (step < 243 &&
               report(pruner, n, step, (double)(n * 37 % 101)).verdict == HO_VERDICT_CONTINUE) {
            step++;
        }
        epochs += step;
        finish(pruner, n, step < 243 ? HO_TOLD_PRUNED : HO_TOLD_COMPLETE);
    }
    assert_true(epochs < 200 * 243 / 2);
    ho_pruner_destroy(&pruner);
}

static void hyperband_compares_within_its_bracket(void **state)
{
    ho_pruner_options options = kind("hyperband");
    ho_pruner *pruner;
    ho_decision d;
    int64_t competitors = 0;

    (void)state;
    options.max_epochs = 27;
    pruner = make(&options);
    for (int64_t n = 0; n < 60; n++) {
        d = report(pruner, n, 1, (double)n);
        assert_int_equal(d.bracket, ho_rungs_bracket(0, n, 4, 3));
        if (d.bracket == 0) {
            assert_int_equal(d.competitors, competitors);
            competitors++;
        } else {
            assert_false(d.compared);
        }
    }
    ho_pruner_destroy(&pruner);
}

static void signed_rank_matches_exact_tables(void **state)
{
    double up[5] = {1, 2, 3, 4, 5}, mixed[6] = {1.5, -0.5, 2.5, 3.5, -1.0, 4.5};
    double zeros[4] = {0, 0, 0, 0}, broken[2] = {1, NAN}, large[100];

    (void)state;
    CHECK_NEAR(ho_signed_rank_p(up, 5), 1.0 / 32.0, 1e-15);
    /* ranks 3 1 4 5 2 6, W+ = 18: 5 of 64 sign patterns leave at most 3 on the minus side */
    CHECK_NEAR(ho_signed_rank_p(mixed, 6), 5.0 / 64.0, 1e-15);
    CHECK_NEAR(ho_signed_rank_p(zeros, 4), 1.0, 0.0);
    CHECK_NEAR(ho_signed_rank_p(NULL, 0), 1.0, 0.0);
    CHECK_NAN(ho_signed_rank_p(broken, 2));
    for (int i = 0; i < 100; i++) {
        large[i] = i % 2 ? i : -i - 0.5;
    }
    CHECK_NEAR(ho_signed_rank_p(large, 100), 0.5, 0.1);
}

static void wilcoxon_stops_a_trial_that_is_worse_on_most_folds(void **state)
{
    ho_pruner_options options = kind("wilcoxon");
    ho_pruner *pruner = make(&options);
    static const double NOISE[8] = {3, -2, 5, 0, -4, 1, 2, -1}; /* of the folds: it cancels */
    ho_decision d = {.verdict = HO_VERDICT_CONTINUE};
    int64_t fold = 0;

    (void)state;
    for (int f = 0; f < 8; f++) {
        report(pruner, 0, f, 1.0 + NOISE[f]);
    }
    finish(pruner, 0, HO_TOLD_COMPLETE);
    while (fold < 8 && d.verdict == HO_VERDICT_CONTINUE) {
        d = report(pruner, 1, fold, 0.5 - 0.01 * (double)fold + NOISE[fold]);
        fold++;
    }
    assert_int_equal(d.verdict, HO_VERDICT_PRUNE);
    assert_int_equal(fold, 4); /* 1/16 is the first p below 0.1 */
    CHECK_CONTAINS(d.why, "against trial 0");
    for (int f = 0; f < 8; f++) { /* better on average: never pruned */
        assert_int_equal(report(pruner, 2, f, 1.2 + NOISE[f]).verdict, HO_VERDICT_CONTINUE);
    }
    for (int f = 0; f < 8; f++) { /* undefined folds never end a race */
        assert_int_equal(report(pruner, 3, f, f == 0 ? NAN : -9.0).verdict, HO_VERDICT_CONTINUE);
    }
    ho_pruner_destroy(&pruner);
}

static void wilcoxon_compares_folds_at_the_same_epoch(void **state)
{
    ho_pruner_options options = kind("wilcoxon");
    ho_pruner *pruner;
    double best[6] = {3, -2, 5, 0, -4, 1}, worse[6], value = 0.5;
    ho_decision d;
    ho_err err;

    (void)state;
    options.min_epochs = 5;
    pruner = make(&options);
    for (int f = 0; f < 6; f++) {
        worse[f] = best[f] - 0.1 * (f + 1);
    }
    for (int64_t step = 5; step <= 10; step += 5) {
        CHECK_OK(ho_pruner_report_folds(pruner, 0, step, &value, best, 6, &d, &err), &err);
    }
    finish(pruner, 0, HO_TOLD_COMPLETE);
    CHECK_OK(ho_pruner_report_folds(pruner, 1, 4, &value, worse, 6, &d, &err), &err);
    assert_int_equal(d.verdict, HO_VERDICT_CONTINUE); /* before min_epochs */
    CHECK_OK(ho_pruner_report_folds(pruner, 1, 5, &value, worse, 6, &d, &err), &err);
    assert_int_equal(d.verdict, HO_VERDICT_PRUNE);
    assert_int_equal(d.competitors, 6);
    CHECK_NEAR(d.score, 1.0 / 64.0, 1e-12);
    CHECK_OK(ho_pruner_report_folds(pruner, 2, 7, &value, worse, 6, &d, &err), &err);
    assert_false(d.compared); /* trial 0 has no report at epoch 7 */
    worse[0] = NAN;           /* a fold that was not run */
    CHECK_OK(ho_pruner_report_folds(pruner, 3, 10, &value, worse, 6, &d, &err), &err);
    assert_int_equal(d.competitors, 5);
    CHECK_OK(ho_pruner_report_folds(pruner, 4, 10, &value, best, 6, &d, &err), &err);
    assert_int_equal(d.verdict, HO_VERDICT_CONTINUE);
    ho_pruner_destroy(&pruner);
}

/* Where a report is of a fold, the last one alone says little of the trial. */
static void an_ended_trial_stands_with_its_last_value_or_the_mean_of_its_folds(void **state)
{
    const double fold[2] = {5.0, 7.0}, both = 6.0;
    double value = 0.25;
    ho_decision decision;
    ho_err err;

    (void)state;
    for (int k = 0; k < 2; k++) {
        ho_pruner_options options = kind(k == 0 ? "median" : "wilcoxon");
        ho_pruner *pruner = make(&options);

        ho_pruner_value(pruner, 0, &value);
        CHECK_NEAR(value, 0.25, 0.0); /* it has not reported */
        for (int64_t n = 1; n <= 3; n++) {
            report(pruner, 0, n, (double)(n * n));
        }
        ho_pruner_value(pruner, 0, &value);
        CHECK_NEAR(value, k == 0 ? 9.0 : 14.0 / 3.0, 1e-12);
        value = 0.25;
        CHECK_OK(ho_pruner_report_folds(pruner, 1, 4, &both, fold, 2, &decision, &err), &err);
        CHECK_OK(ho_pruner_report_folds(pruner, 1, 8, &value, fold, 2, &decision, &err), &err);
        ho_pruner_value(pruner, 1, &value);
        CHECK_NEAR(value, 0.25, 0.0); /* reports by fold: steps are epochs */
        ho_pruner_destroy(&pruner);
    }
}

static void threshold_stops_outside_its_range(void **state)
{
    ho_pruner_options options = kind("threshold");
    ho_pruner *pruner;
    ho_err err;

    (void)state;
    CHECK_STATUS(ho_pruner_create(&pruner, &options, &err), HO_ECONFIG);
    options.lower = -1.0;
    pruner = make(&options);
    assert_int_equal(report(pruner, 0, 1, -1.0).verdict, HO_VERDICT_CONTINUE);
    assert_int_equal(report(pruner, 0, 2, -1.0000001).verdict, HO_VERDICT_PRUNE);
    assert_int_equal(report(pruner, 1, 1, NAN).verdict, HO_VERDICT_PRUNE);
    ho_pruner_destroy(&pruner);
}

static void patient_lets_the_inner_pruner_wait(void **state)
{
    ho_pruner_options options = kind("patient");
    ho_pruner *pruner;

    (void)state;
    options.inner = "threshold";
    options.lower = 0.0;
    options.patience = 2;
    pruner = make(&options);
    assert_int_equal(report(pruner, 0, 1, -5.0).verdict, HO_VERDICT_CONTINUE);
    assert_int_equal(report(pruner, 0, 2, -6.0).verdict, HO_VERDICT_CONTINUE);
    assert_int_equal(report(pruner, 0, 3, -6.0).verdict, HO_VERDICT_CONTINUE);
    assert_int_equal(report(pruner, 0, 4, -6.0).verdict, HO_VERDICT_PRUNE);
    assert_int_equal(report(pruner, 1, 1, -9.0).verdict, HO_VERDICT_CONTINUE);
    for (int64_t step = 2; step < 9; step++) { /* rises: the threshold never speaks */
        assert_int_equal(report(pruner, 1, step, -9.0 + 0.1 * (double)step).verdict,
                         HO_VERDICT_CONTINUE);
    }
    ho_pruner_destroy(&pruner);
}

/* optuna 3450: pruning with several objectives is refused there. */
static void several_objectives_are_pruned_by_rank(void **state)
{
    static const char *const KIND[] = {"asha", "median"};
    double front[4][2] = {{1, 4}, {2, 3}, {3, 2}, {4, 1}}, inside[2] = {0.5, 0.5},
           outside[2] = {5, 5};

    (void)state;
    for (int k = 0; k < 2; k++) {
        ho_pruner_options options = asha(1, 9, false);
        ho_pruner *pruner;
        ho_decision d;
        ho_err err;

        options.kind = KIND[k];
        options.objectives = 2;
        options.startup = 4;
        pruner = make(&options);
        for (int64_t n = 0; n < 4; n++) {
            CHECK_OK(ho_pruner_report(pruner, n, 1, front[n], &d, &err), &err);
            assert_int_equal(d.verdict, HO_VERDICT_CONTINUE); /* nothing dominates it */
            finish(pruner, n, HO_TOLD_COMPLETE);
        }
        CHECK_OK(ho_pruner_report(pruner, 5, 1, inside, &d, &err), &err);
        assert_int_equal(d.verdict, HO_VERDICT_PRUNE);
        CHECK_NEAR(d.score, 1.0, 0.0); /* its rank */
        CHECK_OK(ho_pruner_report(pruner, 6, 1, outside, &d, &err), &err);
        assert_int_equal(d.verdict, HO_VERDICT_CONTINUE);
        ho_pruner_destroy(&pruner);
    }
}

static void deterministic_order_hides_younger_trials(void **state)
{
    ho_pruner_options options = asha(1, 9, false);
    ho_pruner *pruner;

    (void)state;
    options.deterministic = true;
    options.parallel = 2;
    pruner = make(&options);
    report(pruner, 0, 1, 9.0);
    assert_int_equal(report(pruner, 1, 1, 1.0).verdict, HO_VERDICT_CONTINUE);
    assert_int_equal(report(pruner, 2, 1, 1.0).verdict, HO_VERDICT_CONTINUE);
    assert_int_equal(report(pruner, 3, 1, 1.0).verdict, HO_VERDICT_PRUNE); /* sees trial 0 */
    ho_pruner_destroy(&pruner);
}

static void same_reports_give_the_same_decisions(void **state)
{
    ho_pruner_options options = asha(1, 81, false);
    ho_pruner *a = make(&options), *b = make(&options);

    (void)state;
    for (int64_t i = 0; i < 3000; i++) {
        ho_draw draw = ho_draw_start(5, i, HO_DRAW_PROPOSE, 0);
        int64_t number = ho_draw_below(&draw, 100), step = 1 + i / 40;
        double value = ho_draw_normal(&draw);
        ho_decision x = report(a, number, step, value), y = report(b, number, step, value);

        assert_int_equal(x.verdict, y.verdict);
        assert_string_equal(x.why, y.why);
    }
    ho_pruner_destroy(&a);
    ho_pruner_destroy(&b);
}

static void hostile_reports_are_refused(void **state)
{
    ho_pruner_options options = kind("median");
    ho_pruner *pruner = make(&options);
    ho_decision d;
    ho_err err;
    double value = 1.0;

    (void)state;
    CHECK_STATUS(ho_pruner_report(pruner, -1, 1, &value, &d, &err), HO_EINVAL);
    CHECK_STATUS(ho_pruner_report(pruner, INT64_MAX, 1, &value, &d, &err), HO_EINVAL);
    CHECK_STATUS(ho_pruner_report(pruner, 0, -1, &value, &d, &err), HO_EINVAL);
    CHECK_STATUS(ho_pruner_finish(pruner, 7, HO_TOLD_COMPLETE, &err), HO_EINVAL);
    ho_pruner_destroy(&pruner);
}

/* A learning curve: the final value is approached with a rate of its own, plus noise. */
static double curve(int64_t trial, int64_t epoch, double *final)
{
    ho_draw draw = ho_draw_start(11, trial, HO_DRAW_PROPOSE, 0);
    ho_draw noise = ho_draw_start(11, trial * 1000 + epoch, HO_DRAW_FILL, 0);
    double quality = ho_draw_unit(&draw), rate = 0.05 + 0.1 * ho_draw_unit(&draw);

    *final = quality;
    return quality * (1.0 - exp(-rate * (double)epoch)) + 0.01 * ho_draw_normal(&noise);
}

/* Runs 200 trials of 81 epochs; returns the epochs spent and the best final value met. */
static int64_t run_curves(const char *name, double *best)
{
    ho_pruner_options options = asha(1, 81, false);
    ho_pruner *pruner;
    int64_t epochs = 0;

    options.kind = name;
    pruner = make(&options);
    *best = -INFINITY;
    for (int64_t n = 0; n < 200; n++) {
        ho_decision d = {.verdict = HO_VERDICT_CONTINUE};
        double final = 0.0;
        int64_t epoch = 0;

        while (epoch < 81 && d.verdict == HO_VERDICT_CONTINUE) {
            double value = curve(n, ++epoch, &final);

            d = report(pruner, n, epoch, value);
        }
        epochs += epoch;
        finish(pruner, n, epoch < 81 ? HO_TOLD_PRUNED : HO_TOLD_COMPLETE);
        if (epoch == 81 && final > *best) {
            *best = final;
        }
    }
    ho_pruner_destroy(&pruner);
    return epochs;
}

static void halving_finds_the_same_best_with_a_quarter_of_the_epochs(void **state)
{
    double best, found;
    int64_t all = run_curves("none", &best);

    (void)state;
    assert_int_equal(all, 200 * 81);
    assert_true(run_curves("asha", &found) * 4 <= all);
    CHECK_NEAR(found, best, 0.01);
    assert_true(run_curves("hyperband", &found) * 4 <= all);
    CHECK_NEAR(found, best, 0.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_never_prunes),
        cmocka_unit_test(unknown_kind_lists_the_kinds),
        cmocka_unit_test(median_compares_best_so_far_on_both_sides),
        cmocka_unit_test(median_minimises_when_less_is_better),
        cmocka_unit_test(percentile_keeps_the_stated_share),
        cmocka_unit_test(median_waits_for_startup_and_ignores_unfinished_trials),
        cmocka_unit_test(nan_counts_as_worst),
        cmocka_unit_test(repeated_report_is_ignored),
        cmocka_unit_test(asha_keeps_the_best_third_of_a_rung),
        cmocka_unit_test(asha_decides_nothing_at_the_last_epoch),
        cmocka_unit_test(asha_promotes_what_rises_into_the_best_third),
        cmocka_unit_test(resumed_promotion_is_not_promoted_twice),
        cmocka_unit_test(hyperband_of_243_and_3_has_6_brackets_and_ends),
        cmocka_unit_test(hyperband_compares_within_its_bracket),
        cmocka_unit_test(signed_rank_matches_exact_tables),
        cmocka_unit_test(wilcoxon_stops_a_trial_that_is_worse_on_most_folds),
        cmocka_unit_test(wilcoxon_compares_folds_at_the_same_epoch),
        cmocka_unit_test(an_ended_trial_stands_with_its_last_value_or_the_mean_of_its_folds),
        cmocka_unit_test(threshold_stops_outside_its_range),
        cmocka_unit_test(patient_lets_the_inner_pruner_wait),
        cmocka_unit_test(several_objectives_are_pruned_by_rank),
        cmocka_unit_test(deterministic_order_hides_younger_trials),
        cmocka_unit_test(same_reports_give_the_same_decisions),
        cmocka_unit_test(hostile_reports_are_refused),
        cmocka_unit_test(halving_finds_the_same_best_with_a_quarter_of_the_epochs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
