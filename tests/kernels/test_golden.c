/* SPDX-License-Identifier: Apache-2.0
 * The backtest against reference/market_ref.py: lots' changes, labels, reasons, trade count and
 * ambiguous bars exactly, money to 1e-9 relative (it is bit-equal unless a sum differs).
 * The committed cases of tests/data/golden always run; those beside the checkout when they exist.
 */
#include <dirent.h>
#include <stdlib.h>

#include "check.h"
#include "kernels/cases.h"

static double number_of(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItem(object, name);
    assert_non_null(item);
    return item->valuedouble;
}

static int reason_of(const cJSON *trade)
{
    static const char *const name[HO_EXIT_REASONS] = {"",     "signal",  "stop", "profit",
                                                      "time", "session", "end"};
    const char *text = cJSON_GetObjectItem(trade, "reason")->valuestring;
    for (int i = 1; i < HO_EXIT_REASONS; i++) {
        if (strcmp(name[i], text) == 0) {
            return i;
        }
    }
    fail_msg("no exit reason %s", text);
    return 0;
}

static void check_trade(const ho_trade *got, const cJSON *want)
{
    assert_int_equal(got->entry_bar, (int64_t)number_of(want, "entry_bar"));
    assert_int_equal(got->exit_bar, (int64_t)number_of(want, "exit_bar"));
    assert_int_equal(got->side, (int32_t)number_of(want, "side"));
    assert_int_equal(got->reason, reason_of(want));
    CHECK_CLOSE(got->entry_price, number_of(want, "entry_price"), 1e-9);
    CHECK_CLOSE(got->exit_price, number_of(want, "exit_price"), 1e-9);
    CHECK_CLOSE(got->quantity, number_of(want, "quantity"), 1e-9);
    CHECK_CLOSE(got->max_quantity, number_of(want, "max_quantity"), 1e-9);
    CHECK_CLOSE(got->pnl, number_of(want, "pnl"), 1e-9);
    CHECK_CLOSE(got->fees, number_of(want, "fees"), 1e-9);
    CHECK_CLOSE(got->net, number_of(want, "net"), 1e-9);
}

static void check_steps(const ho_backtest_result *r, const cJSON *steps)
{
    const cJSON *step;
    int64_t i = 0;
    assert_int_equal(r->bars, cJSON_GetArraySize(steps));
    cJSON_ArrayForEach(step, steps)
    {
        if (r->equity[i + 1] != number_of(step, "equity")) { /* the same operations: same bits */
            fail_msg("step %lld: equity %.17g, want %.17g", (long long)i, r->equity[i + 1],
                     number_of(step, "equity"));
        }
        CHECK_NEAR(r->bar_return[i], number_of(step, "ret"), 1e-9);
        i++;
    }
}

static void check_case(const char *folder, const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.case.json", folder, name);
    test_market *m = test_market_from_json(path);
    snprintf(path, sizeof path, "%s/%s.want.json", folder, name);
    cJSON *want = test_read_json(path);
    ho_backtest_result r = test_market_run(m);
    const cJSON *trades = cJSON_GetObjectItem(want, "trades"), *trade;
    int64_t i = 0;
    check_steps(&r, cJSON_GetObjectItem(want, "steps"));
    assert_int_equal(r.trade_count, cJSON_GetArraySize(trades));
    cJSON_ArrayForEach(trade, trades)
    {
        check_trade(&r.trades[i++], trade);
    }
    assert_int_equal(r.ambiguous_bars, (int64_t)number_of(want, "ambiguous_bars"));
    assert_int_equal(r.ruined, cJSON_IsTrue(cJSON_GetObjectItem(want, "ruined")));
    CHECK_CLOSE(r.realised, number_of(want, "realised"), 1e-9);
    CHECK_CLOSE(r.fees, number_of(want, "fees"), 1e-9);
    CHECK_CLOSE(r.spread, number_of(want, "spread"), 1e-9);
    CHECK_CLOSE(r.impact, number_of(want, "impact"), 1e-9);
    CHECK_CLOSE(r.rounding, number_of(want, "rounding"), 1e-9);
    CHECK_CLOSE(r.funding, number_of(want, "funding"), 1e-9);
    print_message("%s: %lld steps, %lld trades, equal\n", name, (long long)r.bars,
                  (long long)r.trade_count);
    ho_backtest_free(&r);
    cJSON_Delete(want);
    test_market_free(m);
}

/* Every case of a folder; how many. */
static int check_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    int count = 0;
    while (dir && (entry = readdir(dir))) {
        const char *end = strstr(entry->d_name, ".case.json");
        if (end) {
            char name[256];
            snprintf(name, sizeof name, "%.*s", (int)(end - entry->d_name), entry->d_name);
            check_case(folder, name);
            count++;
        }
    }
    if (dir) {
        closedir(dir);
    }
    return count;
}

static void committed_cases_agree_with_the_reference(void **state)
{
    (void)state;
    assert_true(check_folder(HO_SOURCE_DIR "/tests/data/golden") >= 6);
}

static void shared_cases_agree_with_the_reference(void **state)
{
    (void)state;
    if (check_folder(HO_SHARED_DIR "/reference/golden") == 0) {
        print_message("no golden cases beside the checkout: skipped\n");
        skip();
    }
}

/* test_golden FOLDER: checks the cases of another folder, as make_golden.py wrote them. */
static const char *given_folder;

static void given_cases_agree_with_the_reference(void **state)
{
    (void)state;
    assert_true(check_folder(given_folder) > 0);
}

int main(int argc, char **argv)
{
    if (argc == 2) {
        const struct CMUnitTest given[] = {cmocka_unit_test(given_cases_agree_with_the_reference)};
        given_folder = argv[1];
        return cmocka_run_group_tests(given, NULL, NULL);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(committed_cases_agree_with_the_reference),
        cmocka_unit_test(shared_cases_agree_with_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
