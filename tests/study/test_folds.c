/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdlib.h>

#include "check.h"
#include "study/folds.h"

static ho_fold_spec spec_of(ho_fold_scheme scheme, int count, const char *test, const char *train,
                            const char *step, const char *purge)
{
    ho_fold_spec s = {.scheme = scheme, .count = count};
    ho_err err;
    CHECK_OK(ho_span_parse(test, &s.test, &err), &err);
    CHECK_OK(ho_span_parse(train, &s.train, &err), &err);
    CHECK_OK(ho_span_parse(step, &s.step, &err), &err);
    CHECK_OK(ho_span_parse(purge, &s.purge, &err), &err);
    CHECK_OK(ho_span_parse("0", &s.validation, &err), &err);
    CHECK_OK(ho_span_parse("0", &s.holdout, &err), &err);
    return s;
}

static void check_window(ho_window w, int64_t begin, int64_t end)
{
    if (w.begin != begin || w.end != end) {
        fail_msg("window [%lld, %lld), want [%lld, %lld)", (long long)w.begin, (long long)w.end,
                 (long long)begin, (long long)end);
    }
}

/* spec/metrics.md section 2: T=100, L=40, H=20, S=20, g=3. */
static void the_worked_numbers_come_out(void **state)
{
    (void)state;
    ho_err err;
    ho_fold_plan *plan = malloc(sizeof *plan);
    ho_fold_spec s = spec_of(HO_FOLDS_ANCHORED, 3, "20", "40", "20", "3");
    CHECK_OK(ho_folds_plan(&s, 0, 100, NULL, NULL, plan, &err), &err);
    check_window(plan->fold[0].train, 0, 37);
    check_window(plan->fold[1].train, 0, 57);
    check_window(plan->fold[2].train, 0, 77);
    check_window(plan->fold[0].test, 40, 60);
    check_window(plan->fold[1].test, 60, 80);
    check_window(plan->fold[2].test, 80, 100);
    assert_int_equal(plan->purge, 3);
    assert_int_equal(plan->step, 20);
    s.scheme = HO_FOLDS_ROLLING;
    CHECK_OK(ho_folds_plan(&s, 0, 100, NULL, NULL, plan, &err), &err);
    check_window(plan->fold[0].train, 0, 37);
    check_window(plan->fold[1].train, 20, 57);
    check_window(plan->fold[2].train, 40, 77);
    s = spec_of(HO_FOLDS_ROLLING, 5, "20", "40", "10", "3"); /* S=10: 5 folds fit exactly */
    CHECK_OK(ho_folds_plan(&s, 0, 100, NULL, NULL, plan, &err), &err);
    check_window(plan->fold[0].train, 0, 37);
    check_window(plan->fold[4].test, 80, 100);
    s.count = 6;
    CHECK_STATUS(ho_folds_plan(&s, 0, 100, NULL, NULL, plan, &err), HO_ECONFIG);
    CHECK_CONTAINS(err.text, "6 folds need 10 bars more than the 100 usable ones");
    s.count = 5;
    s.stitched = 1;
    CHECK_STATUS(ho_folds_plan(&s, 0, 100, NULL, NULL, plan, &err), HO_ECONFIG);
    CHECK_CONTAINS(err.text, "test windows overlap by 10 bars");
    free(plan);
}

static void automatic_lengths_use_all_bars(void **state)
{
    (void)state;
    ho_err err;
    ho_fold_plan *plan = malloc(sizeof *plan);
    ho_fold_spec s = spec_of(HO_FOLDS_ROLLING, 4, "auto", "auto", "auto", "auto");
    s.purge_auto = 63;
    CHECK_OK(ho_span_parse("15%", &s.validation, &err), &err);
    CHECK_OK(ho_span_parse("20%", &s.holdout, &err), &err);
    CHECK_OK(ho_folds_plan(&s, 1440, 11440, NULL, NULL, plan, &err), &err);
    check_window(plan->holdout, 9440, 11440);
    check_window(plan->fold[3].test, 8440, 9440);
    check_window(plan->fold[0].test, 5440, 6440);
    /* train span [1440, 5440): purge 63, 15 % of 3937 bars are 590, purge 63 */
    check_window(plan->fold[0].validation, 4787, 5377);
    check_window(plan->fold[0].train, 1440, 4724);
    s.refit_once = 1;
    CHECK_OK(ho_folds_plan(&s, 1440, 11440, NULL, NULL, plan, &err), &err);
    check_window(plan->fold[3].train, 1440, 4724);
    check_window(plan->fold[3].validation, 4787, 5377);
    check_window(plan->fold[3].test, 8440, 9440);
    free(plan);
}

static void days_are_sessions(void **state)
{
    (void)state;
    enum { T = 1000 };
    int32_t session[T];
    ho_err err;
    ho_fold_plan *plan = malloc(sizeof *plan);
    for (int t = 0; t < T; t++) {
        session[t] = t < 500 ? t / 10 : 50 + (t - 500) / 20; /* days of 10, then of 20 bars */
    }
    ho_fold_spec s = spec_of(HO_FOLDS_ROLLING, 2, "10d", "20d", "auto", "1d");
    CHECK_OK(ho_span_parse("5d", &s.holdout, &err), &err);
    CHECK_OK(ho_folds_plan(&s, 0, T, session, NULL, plan, &err), &err);
    check_window(plan->holdout, 900, 1000);
    check_window(plan->fold[1].test, 700, 900);
    check_window(plan->fold[0].test, 500, 700);
    check_window(plan->fold[0].train, 300, 490);
    check_window(plan->fold[1].train, 400, 680); /* 10 days of 10 bars, 10 of 20 */
    CHECK_STATUS(ho_folds_plan(&s, 0, T, NULL, NULL, plan, &err), HO_ECONFIG);
    CHECK_CONTAINS(err.text, "in days, but the data has no sessions");
    s = spec_of(HO_FOLDS_ROLLING, 2, "10d", "100d", "auto", "0");
    CHECK_STATUS(ho_folds_plan(&s, 0, T, session, NULL, plan, &err), HO_ECONFIG);
    CHECK_CONTAINS(err.text, "bars more than the 1000 usable ones");
    free(plan);
}

static void a_split_inside_a_scored_window_is_an_error(void **state)
{
    (void)state;
    uint8_t split[100] = {0};
    ho_err err;
    ho_fold_plan *plan = malloc(sizeof *plan);
    ho_fold_spec s = spec_of(HO_FOLDS_ROLLING, 3, "20", "40", "20", "3");
    split[60] = 1; /* the border of two test windows, inside a train window */
    split[20] = 1;
    CHECK_OK(ho_folds_plan(&s, 0, 100, NULL, split, plan, &err), &err);
    split[61] = 1;
    CHECK_STATUS(ho_folds_plan(&s, 0, 100, NULL, split, plan, &err), HO_ECONFIG);
    CHECK_CONTAINS(err.text, "split at bar 61, inside the test window of fold 1");
    free(plan);
}

static void what_does_not_fit_is_said(void **state)
{
    (void)state;
    ho_err err;
    ho_fold_plan *plan = malloc(sizeof *plan);
    ho_fold_spec s = spec_of(HO_FOLDS_ROLLING, 3, "20", "40", "20", "3");
    CHECK_STATUS(ho_folds_plan(&s, 99, 100, NULL, NULL, plan, &err), HO_ECONFIG);
    CHECK_CONTAINS(err.text, "1 bars remain after the warm-up");
    CHECK_STATUS(ho_folds_plan(&s, 0, 90, NULL, NULL, plan, &err), HO_ECONFIG);
    CHECK_CONTAINS(err.text, "10 bars more than the 90");
    s.count = 0;
    CHECK_STATUS(ho_folds_plan(&s, 0, 100, NULL, NULL, plan, &err), HO_ECONFIG);
    s = spec_of(HO_FOLDS_ROLLING, 3, "20", "40", "20", "39");
    CHECK_STATUS(ho_folds_plan(&s, 0, 100, NULL, NULL, plan, &err), HO_ECONFIG);
    CHECK_CONTAINS(err.text, "the train window of fold 0 has 1 bars");
    s = spec_of(HO_FOLDS_ROLLING, 3, "20", "40", "0", "3");
    CHECK_STATUS(ho_folds_plan(&s, 0, 100, NULL, NULL, plan, &err), HO_ECONFIG);
    CHECK_CONTAINS(err.text, "folds.step is no bar long");
    s = spec_of(HO_FOLDS_ROLLING, 3, "20", "40", "20", "3");
    CHECK_OK(ho_span_parse("1%", &s.validation, &err), &err);
    CHECK_STATUS(ho_folds_plan(&s, 0, 100, NULL, NULL, plan, &err), HO_ECONFIG);
    CHECK_CONTAINS(err.text, "the validation window of fold 0 has no bars");
    CHECK_OK(ho_span_parse("1000", &s.holdout, &err), &err);
    CHECK_STATUS(ho_folds_plan(&s, 0, 100, NULL, NULL, plan, &err), HO_ECONFIG);
    CHECK_CONTAINS(err.text, "folds.holdout takes 1000 of 100");
    free(plan);
}

static void spans_are_read_strictly(void **state)
{
    (void)state;
    static const char *const bad[] = {"",  "d",    "%",   "-1",  "1.5",  "1.5d", "101%",
                                      "x", "20 d", "nan", "inf", "1e13", "20dd", "auto "};
    ho_span span;
    ho_err err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_STATUS(ho_span_parse(bad[i], &span, &err), HO_EINVAL);
    }
    CHECK_OK(ho_span_parse("1e3", &span, &err), &err);
    CHECK_NEAR(span.amount, 1000, 0);
    CHECK_OK(ho_span_parse("12.5%", &span, &err), &err);
    CHECK_NEAR(span.amount, 0.125, 0);
}

/* ---- property: nothing that is scored was seen ---------------------------------------------- */

static uint64_t draw_state = 20260131;

static int64_t draw(int64_t n)
{
    draw_state = draw_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((draw_state >> 33) % (uint64_t)n);
}

static ho_span draw_span(int64_t bars)
{
    switch (draw(4)) {
    case 0:
        return (ho_span){HO_SPAN_AUTO, 0};
    case 1:
        return (ho_span){HO_SPAN_BARS, (double)draw(bars + 1)};
    case 2:
        return (ho_span){HO_SPAN_DAYS, (double)draw(30)};
    default:
        return (ho_span){HO_SPAN_SHARE, (double)draw(100) / 200.0};
    }
}

static void check_order(const ho_fold_plan *p, const ho_fold_spec *s)
{
    for (int k = 0; k < p->count; k++) {
        const ho_fold *f = &p->fold[k];
        int64_t before_test =
            f->validation.begin < f->validation.end ? f->validation.end : f->train.end;
        bool ok = f->train.begin >= p->first && f->train.end - f->train.begin >= 2 &&
                  f->train.end <= f->validation.begin && before_test <= f->test.begin &&
                  f->test.end - f->test.begin >= 2 && f->test.end <= p->holdout.begin &&
                  p->holdout.end == p->T;
        if (s->purge.unit == HO_SPAN_BARS) {
            int64_t gap = (int64_t)s->purge.amount;
            ok = ok && f->test.begin - before_test >= gap &&
                 (f->validation.begin == f->validation.end ||
                  f->validation.begin - f->train.end == gap);
        }
        if (s->stitched && k > 0) {
            ok = ok && p->fold[k - 1].test.end <= f->test.begin;
        }
        if (!ok) {
            fail_msg("fold %d of %d: train [%lld, %lld) validation [%lld, %lld) test [%lld, %lld) "
                     "holdout [%lld, %lld)",
                     k, p->count, (long long)f->train.begin, (long long)f->train.end,
                     (long long)f->validation.begin, (long long)f->validation.end,
                     (long long)f->test.begin, (long long)f->test.end, (long long)p->holdout.begin,
                     (long long)p->holdout.end);
        }
    }
    assert_int_equal(p->fold[p->count - 1].test.end, p->holdout.begin);
}

static void windows_never_overlap_whatever_the_spec(void **state)
{
    (void)state;
    enum { T_MAX = 3000 };
    int32_t session[T_MAX];
    ho_fold_plan *plan = malloc(sizeof *plan);
    int fits = 0;
    for (int trial = 0; trial < 20000; trial++) {
        int64_t T = 2 + draw(T_MAX - 2), first = draw(T / 4 + 1);
        int32_t day = 0;
        for (int64_t t = 0; t < T; t++) {
            session[t] = day;
            day += draw(12) == 0;
        }
        ho_fold_spec s = {.scheme = draw(2) ? HO_FOLDS_ANCHORED : HO_FOLDS_ROLLING,
                          .count = 1 + (int)draw(8),
                          .test = draw_span(T / 8),
                          .train = draw_span(T / 3),
                          .step = draw_span(T / 8),
                          .purge = draw_span(40),
                          .validation = draw_span(T / 8),
                          .holdout = draw_span(T / 4),
                          .refit_once = draw(3) == 0,
                          .stitched = (int)draw(2),
                          .purge_auto = draw(100)};
        ho_err err;
        ho_status rc = ho_folds_plan(&s, first, T, session, NULL, plan, &err);
        if (rc == HO_OK) {
            fits++;
            check_order(plan, &s);
        } else {
            assert_int_equal(rc, HO_ECONFIG);
            assert_true(err.text[0] != '\0');
        }
    }
    assert_true(fits > 1000);
    free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_worked_numbers_come_out),
        cmocka_unit_test(automatic_lengths_use_all_bars),
        cmocka_unit_test(days_are_sessions),
        cmocka_unit_test(a_split_inside_a_scored_window_is_an_error),
        cmocka_unit_test(what_does_not_fit_is_said),
        cmocka_unit_test(spans_are_read_strictly),
        cmocka_unit_test(windows_never_overlap_whatever_the_spec),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
