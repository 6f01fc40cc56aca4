/* SPDX-License-Identifier: Apache-2.0
 * From rows to bars: order, duplicates, dirt, gaps, labels, sessions, resampling, rolls. */
#include "market/load_file.h"

#include <stdlib.h>

#define HEAD "time,open,high,low,close,volume\n"

enum { TEXT_MAX = 1 << 20 };

/* Rows one after the other; a stamp is given in UTC seconds. */
typedef struct rows {
    char *text;
    size_t used;
} rows;

static rows rows_begin(const char *head)
{
    rows r = {malloc(TEXT_MAX), 0};
    assert_non_null(r.text);
    r.used = (size_t)snprintf(r.text, TEXT_MAX, "%s", head);
    return r;
}

static void add(rows *r, int64_t s, double price, double volume)
{
    r->used +=
        (size_t)snprintf(r->text + r->used, TEXT_MAX - r->used, "%lld,%.2f,%.2f,%.2f,%.2f,%.0f\n",
                         (long long)s, price, price + 0.5, price - 0.5, price + 0.25, volume);
}

static loaded rows_load(rows *r, const char *keys)
{
    loaded l = load_text(r->text, keys);
    free(r->text);
    r->text = NULL;
    return l;
}

static const int64_t MONDAY = 1704672000; /* 2024-01-08T00:00Z */

static void identical_rows_are_dropped_and_counted(void **state)
{
    (void)state;
    loaded l = load_good(HEAD "2024-01-02,1,2,1,2,3\n2024-01-03,1,2,1,2,3\n2024-01-03,1,2,1,2,3\n"
                              "2024-01-04,1,2,1,2,3\n",
                         "");
    assert_int_equal(l.bars.count, 3);
    assert_int_equal(found(&l, HO_DIRT_DUPLICATE), 1);
    assert_int_equal(l.report.finding[HO_DIRT_DUPLICATE].place[0].line, 4);
    assert_true(ho_data_report_has_warnings(&l.report));
    loaded_free(&l);
}

static void conflicting_rows_need_a_policy(void **state)
{
    (void)state;
    static const char text[] = HEAD "2024-01-02,1,2,1,2,3\n2024-01-03,1,2,1,2,3\n"
                                    "2024-01-03,2,4,0.5,3,10\n2024-01-04,1,2,1,2,3\n";
    static const struct {
        const char *keys;
        double want[5];
    } cases[] = {{"duplicates=first", {1, 2, 1, 2, 3}},
                 {"duplicates=last", {2, 4, 0.5, 3, 10}},
                 {"duplicates=merge", {1, 4, 0.5, 3, 13}}};
    check_refused(text, "", "test-input:4: the same time as line 3 with other values");
    for (size_t i = 0; i < 3; ++i) {
        loaded l = load_good(text, cases[i].keys);
        assert_int_equal(l.bars.count, 3);
        assert_int_equal(found(&l, HO_DIRT_CONFLICT), 1);
        for (int k = 0; k < 5; ++k) {
            CHECK_NEAR(l.bars.ohlcv[5 + k], cases[i].want[k], 0.0);
        }
        loaded_free(&l);
    }
}

static void rows_out_of_order_need_leave_to_be_sorted(void **state)
{
    (void)state;
    static const char text[] = HEAD "2024-01-02,1,2,1,2,3\n2024-01-04,1,2,1,2,5\n"
                                    "2024-01-03,1,2,1,2,4\n2024-01-05,1,2,1,2,6\n";
    check_refused(text, "",
                  "test-input:4: the row is out of order (1 such steps); write data.sort");
    loaded l = load_good(text, "sort=true");
    assert_int_equal(found(&l, HO_DIRT_OUT_OF_ORDER), 1);
    for (int t = 0; t < 4; ++t) {
        CHECK_NEAR(l.bars.ohlcv[5 * t + 4], 3.0 + t, 0.0);
    }
    loaded_free(&l);
}

static void each_kind_of_dirt_is_kept_dropped_or_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *row;
        ho_dirt kind;
        const char *extra;
    } cases[] = {
        {"contradictions", "2024-02-10,5,4,3,5,1\n", HO_DIRT_CONTRADICTION, ""},
        {"non_positive", "2024-02-10,-5,4,-6,3,1\n", HO_DIRT_NON_POSITIVE, ""},
        {"zero_volume", "2024-02-10,5,5.5,4.5,5,0\n", HO_DIRT_ZERO_VOLUME, ""},
        {"spikes", "2024-02-10,5,500,4.5,500,1\n", HO_DIRT_SPIKE, ""},
        {"off_tick", "2024-02-10,5,5.5,4.5,5.1,1\n", HO_DIRT_OFF_TICK, " tick_size=0.25"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        char text[4096], keys[128];
        size_t used = (size_t)snprintf(text, sizeof text, HEAD);
        for (int day = 1; day <= 29; ++day) {
            if (day == 10) {
                used += (size_t)snprintf(text + used, sizeof text - used, "%s", cases[i].row);
            } else {
                used +=
                    (size_t)snprintf(text + used, sizeof text - used,
                                     "2024-02-%02d,5,5.5,4.5,%s,1\n", day, day % 2 ? "5.25" : "5");
            }
        }
        (void)snprintf(keys, sizeof keys, "%s", cases[i].extra);
        loaded kept = load_good(text, keys);
        assert_int_equal(kept.bars.count, 29);
        assert_int_equal(found(&kept, cases[i].kind), 1);
        assert_int_equal(kept.report.finding[cases[i].kind].place[0].line, 11);
        assert_true(ho_data_report_has_warnings(&kept.report));
        loaded_free(&kept);
        (void)snprintf(keys, sizeof keys, "%s=drop%s", cases[i].name, cases[i].extra);
        loaded dropped = load_good(text, keys);
        assert_int_equal(dropped.bars.count, 28);
        assert_int_equal(dropped.report.finding[cases[i].kind].dropped, 1);
        loaded_free(&dropped);
        (void)snprintf(keys, sizeof keys, "%s=refuse%s", cases[i].name, cases[i].extra);
        check_refused(text, keys, "test-input:11: ");
    }
}

static void mistaken_columns_are_told_by_the_many_contradictions(void **state)
{
    (void)state;
    check_refused("time,open,high,low,close\n2024-01-02,5,1,9,5\n2024-01-03,5,1,9,5\n"
                  "2024-01-04,5,1,9,5\n",
                  "", "are the columns in another order? Write data.columns");
}

static void ticks_are_refused_or_made_into_bars(void **state)
{
    (void)state;
    rows r = rows_begin(HEAD);
    static const int offset[] = {0, 7, 11, 30, 61, 64, 90, 121, 139, 170, 185};
    for (size_t i = 0; i < sizeof offset / sizeof offset[0]; ++i) {
        r.used += (size_t)snprintf(r.text + r.used, TEXT_MAX - r.used,
                                   "%lld.%03zu,%zu,%zu,%zu,%zu,2\n", (long long)MONDAY + offset[i],
                                   137 * i % 1000, i + 1, i + 1, i + 1, i + 1);
    }
    check_refused(r.text, "", "these are ticks");
    loaded l = rows_load(&r, "bar=1m");
    CHECK_OK(l.rc, &l.err);
    assert_int_equal(l.bars.count, 3); /* the fourth minute is not over */
    static const double want[10] = {1, 4, 1, 4, 8, 5, 7, 5, 7, 6};
    for (int k = 0; k < 10; ++k) {
        CHECK_NEAR(l.bars.ohlcv[k], want[k], 0.0);
    }
    loaded_free(&l);
}

static void one_bar_alone_has_no_length(void **state)
{
    (void)state;
    check_refused(HEAD "2024-01-02T14:30:00Z,1,2,1,2,3\n", "", "needs two bars or more");
    check_refused(HEAD "2024-01-02T14:30:00Z,1,2,1,2,3\n2024-01-02T14:30:00Z,1,2,1,2,3\n", "",
                  "needs two bars or more");
}

/* ---- gaps ------------------------------------------------------------------------------------ */

/* Ten days round the clock by the hour, without hours 30-32 and without days 2 and 3. */
static rows round_the_clock(void)
{
    rows r = rows_begin(HEAD);
    for (int hour = 0; hour < 240; ++hour) {
        if ((hour >= 30 && hour < 33) || (hour >= 48 && hour < 96)) {
            continue;
        }
        add(&r, MONDAY + 3600LL * hour, 100.0 + hour, 10.0 + hour);
    }
    return r;
}

static void gaps_are_kept_filled_or_split(void **state)
{
    (void)state;
    rows r = round_the_clock();
    char *text = strdup(r.text);
    loaded keep = rows_load(&r, "");
    CHECK_OK(keep.rc, &keep.err);
    assert_int_equal(keep.bars.count, 240 - 3 - 48);
    assert_int_equal(found(&keep, HO_DIRT_GAP), 1);
    assert_int_equal(found(&keep, HO_DIRT_HOLE), 1);
    assert_int_equal(keep.report.missing_bars, 3);
    assert_null(keep.bars.split);
    CHECK_NEAR(keep.bars.sessions_per_year, 365.0, 0.0);
    assert_int_equal(keep.bars.gap[29], HO_GAP_NONE);
    assert_int_equal(keep.bars.gap[30], HO_GAP_MISSING);
    assert_int_equal(keep.bars.gap[45], HO_GAP_HOLE);
    loaded fill = load_good(text, "gaps=fill");
    assert_int_equal(fill.bars.count, 240 - 48); /* the hole of two days stays */
    assert_int_equal(fill.report.filled, 3);
    assert_int_equal(fill.bars.gap[33], HO_GAP_NONE);
    assert_int_equal(fill.bars.gap[48], HO_GAP_HOLE);
    for (int hour = 30; hour < 33; ++hour) {
        CHECK_NEAR(open_s(&fill, hour), (double)MONDAY + 3600.0 * hour, 0.0);
        for (int k = 0; k < 4; ++k) {
            CHECK_NEAR(fill.bars.ohlcv[5 * hour + k], 129.25, 0.0); /* the last close */
        }
        CHECK_NEAR(fill.bars.ohlcv[5 * hour + 4], 0.0, 0.0);
        assert_int_equal(fill.bars.session[hour], 1);
    }
    loaded split = load_good(text, "gaps=split"), small = load_good(text, "gaps=split max_gap=2h");
    assert_int_equal(split.report.segments, 2);
    assert_int_equal(small.report.segments, 3);
    int splits = 0;
    for (int64_t t = 0; t < split.bars.count; ++t) {
        splits += split.bars.split[t];
        if (split.bars.split[t]) {
            CHECK_NEAR(open_s(&split, t), (double)MONDAY + 3600.0 * 96, 0.0);
        }
    }
    assert_int_equal(splits, 1);
    loaded wide = load_good(text, "gaps=fill max_gap=4d");
    assert_int_equal(wide.bars.count, 240);
    loaded_free(&keep);
    loaded_free(&fill);
    loaded_free(&split);
    loaded_free(&small);
    loaded_free(&wide);
    free(text);
}

static void filling_across_a_clock_change_keeps_the_order(void **state)
{
    (void)state;
    /* 2008-03-09, the clock jumps from 2:00 to 3:00 in New York (Lean 4925) */
    rows r = rows_begin(HEAD);
    int64_t start = 1204934400; /* 2008-03-08T00:00Z */
    for (int minute = 0; minute < 3 * 1440; ++minute) {
        if (minute % 60 < 20 || minute % 60 > 45) {
            add(&r, start + 60LL * minute, 100.0, 1.0);
        }
    }
    loaded l = rows_load(&r, "gaps=fill session_timezone=America/New_York max_gap=1h");
    CHECK_OK(l.rc, &l.err);
    assert_int_equal(l.bars.count, 3 * 1440);
    for (int64_t t = 1; t < l.bars.count; ++t) {
        assert_int_equal(l.bars.open_ns[t] - l.bars.open_ns[t - 1], 60000000000LL);
        assert_true(l.bars.session[t] >= l.bars.session[t - 1]);
    }
    loaded_free(&l);
}

/* ---- labels and sessions --------------------------------------------------------------------- */

/* Ten weekdays of New York hours 9:30-16:00 by the minute; late: stamps mark the close. */
static rows equity_days(bool late)
{
    rows r = rows_begin(HEAD);
    for (int day = 0; day < 12; ++day) {
        if (day % 7 >= 5) {
            continue;
        }
        for (int minute = 0; minute < 390; ++minute) {
            add(&r, MONDAY + 86400LL * day + 14 * 3600 + 1800 + 60LL * (minute + late), 100.0 + day,
                5.0);
        }
    }
    return r;
}

static void the_label_is_found_from_the_sessions(void **state)
{
    (void)state;
    rows a = equity_days(false), b = equity_days(true);
    char *late = strdup(b.text);
    loaded open = rows_load(&a, ""), close = rows_load(&b, "");
    CHECK_OK(open.rc, &open.err);
    assert_string_equal(open.report.label, "open");
    assert_false(open.report.label_assumed);
    assert_string_equal(close.report.label, "close");
    check_same_bars(&close.bars, &open.bars, "close-stamped");
    loaded told = load_good(late, "label=open");
    CHECK_NEAR(open_s(&told, 0), open_s(&open, 0) + 60.0, 0.0);
    free(late);
    loaded_free(&open);
    loaded_free(&close);
    loaded_free(&told);
}

static void sessions_of_an_equity_are_its_days(void **state)
{
    (void)state;
    rows r = equity_days(false);
    char *text = strdup(r.text);
    loaded l = rows_load(&r, "session_timezone=America/New_York");
    CHECK_OK(l.rc, &l.err);
    assert_int_equal(l.bars.session[l.bars.count - 1], 9);
    CHECK_NEAR(l.bars.sessions_per_year, 252.0, 0.0);
    CHECK_NEAR(l.report.bars_per_session, 390.0, 0.0);
    CHECK_NEAR(l.report.bars_per_year, 98280.0, 0.0);
    CHECK_CONTAINS(l.report.session, "09:30 America/New_York");
    assert_int_equal(found(&l, HO_DIRT_GAP), 0);
    assert_int_equal(found(&l, HO_DIRT_CLOSURE), 9);
    loaded hours = load_good(text, "session_timezone=America/New_York session_start=10:00 "
                                   "session_end=15:30");
    assert_int_equal(hours.bars.count, 10 * 330);
    assert_int_equal(found(&hours, HO_DIRT_OUTSIDE), 10 * 60);
    loaded own = load_good(text, "sessions_per_year=250");
    CHECK_NEAR(own.bars.sessions_per_year, 250.0, 0.0);
    loaded_free(&own);
    loaded_free(&hours);
    loaded_free(&l);
    check_refused(text, "session_end=15:30", "needs data.session_start");
    check_refused(text, "session_start=25:00", "data.session_start = \"25:00\"");
    free(text);
}

static void a_futures_day_begins_in_the_evening_before(void **state)
{
    (void)state;
    /* 17:00-16:00 Chicago, Sunday evening to Friday, across the change of 2024-03-10 */
    rows r = rows_begin(HEAD);
    int64_t sunday = 1709506800; /* 2024-03-03T23:00Z, 17:00 in Chicago */
    for (int week = 0; week < 2; ++week) {
        for (int day = 0; day < 5; ++day) {
            for (int half = 0; half < 46; ++half) {
                int64_t summer = week == 1 ? 3600 : 0;
                add(&r, sunday + 604800LL * week + 86400LL * day + 1800LL * half - summer, 100.0,
                    5.0);
            }
        }
    }
    char *text = strdup(r.text);
    loaded l = rows_load(&r, "session_timezone=America/Chicago");
    CHECK_OK(l.rc, &l.err);
    assert_int_equal(l.bars.session[l.bars.count - 1], 9);
    CHECK_NEAR(l.report.bars_per_session, 46.0, 0.0);
    CHECK_CONTAINS(l.report.session, "17:00 America/Chicago");
    loaded_free(&l);
    loaded utc = load_good(text, ""); /* seen from a zone that does not change its clock */
    assert_int_equal(utc.bars.session[utc.bars.count - 1], 9);
    loaded_free(&utc);
    free(text);
}

/* ---- resampling ------------------------------------------------------------------------------ */

static void a_longer_bar_holds_the_bars_that_open_in_it(void **state)
{
    (void)state;
    rows r = rows_begin(HEAD);
    for (int minute = 0; minute < 23; ++minute) {
        add(&r, MONDAY + 60LL * (minute + 3), 100.0 + minute, minute);
    }
    char *text = strdup(r.text);
    loaded l = rows_load(&r, "bar=5m");
    CHECK_OK(l.rc, &l.err);
    assert_int_equal(l.bars.interval_ns, 300000000000LL);
    assert_int_equal(l.bars.count, 5); /* 0:00 .. 0:20; 0:25 has one minute of five */
    CHECK_NEAR(open_s(&l, 0), (double)MONDAY, 0.0);
    static const double want[10] = {100, 101.5, 99.5, 101.25, 1, 102, 106.5, 101.5, 106.25, 20};
    for (int k = 0; k < 10; ++k) {
        CHECK_NEAR(l.bars.ohlcv[k], want[k], 0.0);
    }
    assert_true(has_note(&l, "the last bar of 5m is left out"));
    loaded_free(&l);
    check_refused(text, "bar=7m", "must divide a day");
    check_refused(text, "bar=90s", "not a multiple");
    check_refused(text, "bar=30s", "shorter than the file's bars");
    loaded same = load_good(text, "bar=1m");
    assert_int_equal(same.bars.count, 23);
    loaded_free(&same);
    free(text);
}

static void a_day_is_a_session_and_days_make_weeks(void **state)
{
    (void)state;
    rows r = equity_days(false);
    char *text = strdup(r.text);
    loaded day = rows_load(&r, "bar=1d session_timezone=America/New_York");
    CHECK_OK(day.rc, &day.err);
    assert_int_equal(day.bars.count, 10);
    CHECK_NEAR(day.bars.ohlcv[4], 390.0 * 5.0, 0.0);
    CHECK_NEAR(day.bars.sessions_per_year, 252.0, 0.0);
    assert_int_equal(day.bars.session[9], 9);
    loaded week = load_good(text, "bar=1w session_timezone=America/New_York");
    assert_int_equal(week.bars.count, 1); /* the second week may go on */
    CHECK_NEAR(week.bars.ohlcv[4], 5 * 390.0 * 5.0, 0.0);
    loaded hour = load_good(text, "bar=1h session_timezone=America/New_York");
    assert_int_equal(hour.bars.count, 10 * 7); /* 9:00 (half) .. 15:00 */
    CHECK_NEAR(hour.bars.ohlcv[4], 30.0 * 5.0, 0.0);
    loaded_free(&day);
    loaded_free(&week);
    loaded_free(&hour);
    free(text);
}

/* ---- rolls ----------------------------------------------------------------------------------- */

static void a_change_of_contract_is_a_roll(void **state)
{
    (void)state;
    static const char text[] = "time,open,high,low,close,volume,contract\n"
                               "2024-01-02,100,101,99,100,5,H4\n2024-01-03,100,102,99,101,5,H4\n"
                               "2024-01-04,111,113,110,112,5,M4\n2024-01-05,112,114,111,113,5,M4\n";
    loaded none = load_good(text, ""), back = load_good(text, "adjust=back"),
           ratio = load_good(text, "adjust=ratio");
    assert_int_equal(found(&none, HO_DIRT_ROLL), 1);
    CHECK_NEAR(none.bars.roll_jump[2], 10.0, 0.0);
    CHECK_NEAR(none.bars.ohlcv[3], 100.0, 0.0);
    CHECK_NEAR(back.bars.ohlcv[3], 110.0, 0.0);
    CHECK_NEAR(back.bars.ohlcv[5 + 3], 111.0, 0.0);
    CHECK_NEAR(back.bars.ohlcv[10 + 3], 112.0, 0.0);
    assert_true(back.bars.roll_jump[2] != 0.0); /* two fees are still paid */
    assert_true(1.0 + back.bars.roll_jump[2] == 1.0);
    CHECK_CLOSE(ratio.bars.ohlcv[5 + 3], 111.0, 1e-12);
    loaded_free(&none);
    loaded_free(&back);
    loaded_free(&ratio);
    check_refused(
        "time,open,high,low,close,contract\n2024-01-02,1,2,-3,-1,A\n2024-01-03,1,2,1,2,B\n",
        "adjust=ratio", "needs prices above 0");
}

static void given_rolls_are_taken(void **state)
{
    (void)state;
    static const char *const path = "rolls.csv", *const rolls[] = {"2024-01-04"};
    static const char text[] = HEAD "2024-01-02,100,101,99,100,5\n2024-01-03,100,102,99,101,5\n"
                                    "2024-01-04,111,113,110,112,5\n";
    loaded l = load_bytes(path, text, strlen(text), "");
    assert_null(l.bars.roll_jump);
    loaded_free(&l);
    ho_data_options options;
    ho_bars bars;
    ho_err err = {0};
    ho_data_options_defaults(&options);
    options.path = &path;
    options.path_count = 1;
    options.rolls = rolls;
    options.roll_count = 1;
    CHECK_OK(ho_bars_load(&options, &bars, NULL, &err), &err);
    CHECK_NEAR(bars.roll_jump[2], 10.0, 0.0);
    ho_bars_free(&bars);
}

/* ---- period and funding ---------------------------------------------------------------------- */

static void the_period_includes_both_ends(void **state)
{
    (void)state;
    rows r = round_the_clock();
    char *text = strdup(r.text);
    loaded l = rows_load(&r, "start=2024-01-08 end=2024-01-09");
    CHECK_OK(l.rc, &l.err);
    CHECK_NEAR(open_s(&l, 0), (double)MONDAY, 0.0);
    CHECK_NEAR(open_s(&l, l.bars.count - 1), (double)MONDAY + 2 * 86400.0 - 3600.0, 0.0);
    loaded to = load_good(text, "end=2024-01-08T05:00:00");
    assert_int_equal(to.bars.count, 6);
    /* dirt outside the period is no finding */
    loaded clean = load_good(HEAD "2024-01-02,1,2,1,2,3\n2024-01-03,1,2,1,2,0\n"
                                  "2024-01-04,1,2,1,2,3\n2024-01-05,1,2,1,2,3\n",
                             "start=2024-01-04");
    assert_int_equal(found(&clean, HO_DIRT_ZERO_VOLUME), 0);
    loaded_free(&clean);
    loaded zone = load_good(text, "start=2024-01-09 session_timezone=America/New_York");
    CHECK_NEAR(open_s(&zone, 0), (double)MONDAY + 86400.0 + 5 * 3600.0, 0.0);
    loaded_free(&l);
    loaded_free(&to);
    loaded_free(&zone);
    free(text);
}

static void a_funding_column_comes_along(void **state)
{
    (void)state;
    loaded l = load_good("time,open,high,low,close,rate\n2024-01-02,1,2,1,2,0.0001\n"
                         "2024-01-03,1,2,1,2,\n2024-01-04,1,2,1,2,-0.0002\n",
                         "funding_column=rate");
    CHECK_NEAR(l.bars.funding[0], 0.0001, 0.0);
    CHECK_NEAR(l.bars.funding[1], 0.0, 0.0);
    CHECK_NEAR(l.bars.funding[2], -0.0002, 0.0);
    loaded_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identical_rows_are_dropped_and_counted),
        cmocka_unit_test(conflicting_rows_need_a_policy),
        cmocka_unit_test(rows_out_of_order_need_leave_to_be_sorted),
        cmocka_unit_test(each_kind_of_dirt_is_kept_dropped_or_refused),
        cmocka_unit_test(mistaken_columns_are_told_by_the_many_contradictions),
        cmocka_unit_test(ticks_are_refused_or_made_into_bars),
        cmocka_unit_test(one_bar_alone_has_no_length),
        cmocka_unit_test(gaps_are_kept_filled_or_split),
        cmocka_unit_test(filling_across_a_clock_change_keeps_the_order),
        cmocka_unit_test(the_label_is_found_from_the_sessions),
        cmocka_unit_test(sessions_of_an_equity_are_its_days),
        cmocka_unit_test(a_futures_day_begins_in_the_evening_before),
        cmocka_unit_test(a_longer_bar_holds_the_bars_that_open_in_it),
        cmocka_unit_test(a_day_is_a_session_and_days_make_weeks),
        cmocka_unit_test(a_change_of_contract_is_a_roll),
        cmocka_unit_test(given_rolls_are_taken),
        cmocka_unit_test(the_period_includes_both_ends),
        cmocka_unit_test(a_funding_column_comes_along),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
