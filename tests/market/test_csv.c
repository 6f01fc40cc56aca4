/* SPDX-License-Identifier: Apache-2.0
 * The same bars in every dialect (tests/data/twins), and what is refused with which words. */
#include "market/load_file.h"

#include <locale.h>
#include <stdlib.h>

#include <zip.h>
#include <zlib.h>
#include <zstd.h>

typedef struct twin {
    const char *file, *keys;
    const char *note; /* a note that must be there, or NULL */
} twin;

static void check_twins(const char *reference, const twin *twins, size_t n)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/tests/data/twins/%s", HO_SOURCE_DIR, reference);
    loaded want = load_file(path, "");
    CHECK_OK(want.rc, &want.err);
    assert_false(ho_data_report_has_warnings(&want.report));
    for (size_t i = 0; i < n; ++i) {
        (void)snprintf(path, sizeof path, "%s/tests/data/twins/%s", HO_SOURCE_DIR, twins[i].file);
        loaded got = load_file(path, twins[i].keys);
        if (got.rc != HO_OK) {
            fail_msg("%s: %s", twins[i].file, got.err.text);
        }
        check_same_bars(&got.bars, &want.bars, twins[i].file);
        if (twins[i].note && !has_note(&got, twins[i].note)) {
            fail_msg("%s: no note \"%s\"", twins[i].file, twins[i].note);
        }
        loaded_free(&got);
    }
    loaded_free(&want);
}

static void minute_bars_are_the_same_in_every_dialect(void **state)
{
    static const twin twins[] = {
        {"epoch-s.csv", "", NULL},
        {"epoch-ms.csv", "", NULL},
        {"epoch-us.csv", "", NULL},
        {"epoch-ns.csv", "", NULL},
        {"bom-crlf.csv", "", NULL},
        {"semicolon.csv", "", "read as UTC"},
        {"no-final-newline.csv", "", NULL},
        {"ninjatrader.txt", "timezone=UTC", NULL},
        {"two-spaces.csv", "", "read as UTC"},
        {"firstrate.txt", "timezone=America/New_York", NULL},
        {"firstrate.txt", "timezone=-05:00", NULL},
        {"compact.csv", "", NULL},
        {"offset.csv", "", NULL},
        {"utc-word.csv", "", NULL},
        {"plus-zero.csv", "", NULL},
        {"fraction.csv", "", NULL},
        {"dukascopy.csv", "date_order=dmy", NULL},
        {"unnamed-index.csv", "", NULL},
        {"am-pm.csv", "", NULL},
        {"tab.tsv", "", NULL},
        {"shouting.csv", "", NULL},
        {"descending.csv", "", "newest row stands first"},
        {"trailing-comma.csv", "", NULL},
        {"histdata-mt.csv", "", NULL},
        {"tslab.txt", "date_order=mdy", NULL},
        {"metatrader5.tsv", "", "tick volume used"},
        {"finam.txt", "", NULL},
        {"header-one-short.csv", "", "date and time are two columns"},
        {"row-number.csv", "", "counts the rows"},
        {"binance-ms.csv", "", NULL},
        {"binance-us.csv", "", NULL},
        {"binance-unit-change.csv", "", NULL},
        {"pipe.csv", "", NULL},
        {"kraken.csv", "", NULL},
        {"kaggle-btc.csv", "", NULL},
        {"tradingview.csv", "", NULL},
        {"databento-fixed.csv", "", "1e-9"},
        {"databento-pretty.csv", "", NULL},
        {"quoted-thousands.csv", "", NULL},
        {"decimal-comma.csv", "", NULL},
        {"comments.csv", "", NULL},
        {"banner.csv", "", "not used"},
        {"excel-sep.csv", "", NULL},
        {"close-first.csv", "", NULL},
        {"oclh-no-header.csv", "", "open, close, low, high"},
        {"oclh-no-header.csv", "columns=time,open,close,low,high,volume,-", NULL},
        {"wide.csv", "symbol=ES", NULL},
        {"long-symbols.csv", "symbol=es", NULL},
        {"bid-ask.csv", "", NULL},
        {"lean-scaled.csv", "", "1/10000"},
        {"list.json", "", NULL},
        {"strings.json", "", NULL},
        {"polygon.csv", "", NULL},
    };
    (void)state;
    check_twins("plain.csv", twins, sizeof twins / sizeof twins[0]);
}

static void daily_bars_are_the_same_in_every_dialect(void **state)
{
    static const twin twins[] = {
        {"us-dates.csv", "", NULL},
        {"eu-dates.csv", "", NULL},
        {"yahoo.csv", "", NULL},
        {"yfinance.csv", "", NULL},
        {"investing.csv", "", NULL},
        {"yfinance-several.csv", "symbol=ES", NULL},
        {"us-dates.csv", "date_order=mdy", NULL},
        {"nasdaq.csv", "", NULL},
        {"barchart.csv", "", "behind the data is not used"},
    };
    (void)state;
    check_twins("days.csv", twins, sizeof twins / sizeof twins[0]);
}

static char *read_twin(const char *name, size_t *size)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/tests/data/twins/%s", HO_SOURCE_DIR, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *bytes = malloc(1 << 16);
    *size = fread(bytes, 1, (1 << 16) - 1, file);
    bytes[*size] = '\0';
    (void)fclose(file);
    return bytes;
}

static void packed_files_are_the_same(void **state)
{
    (void)state;
    size_t size = 0;
    char *text = read_twin("plain.csv", &size);
    loaded want = load_bytes("plain.csv", text, size, "");
    CHECK_OK(want.rc, &want.err);
    unsigned char *packed = malloc(1 << 17);

    /* two gzip members, named as if they were something else */
    size_t half = size / 2, n = 0;
    for (int part = 0; part < 2; ++part) {
        z_stream z = {0};
        assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
        z.next_in = (Bytef *)text + (part ? half : 0);
        z.avail_in = (uInt)(part ? size - half : half);
        z.next_out = packed + n;
        z.avail_out = (uInt)((1 << 17) - n);
        assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
        n += z.total_out;
        (void)deflateEnd(&z);
    }
    loaded gz = load_bytes("named.zst", packed, n, "");
    CHECK_OK(gz.rc, &gz.err);
    assert_string_equal(gz.report.container, "gz");
    check_same_bars(&gz.bars, &want.bars, "gz");
    loaded_free(&gz);
    loaded cut = load_bytes("cut.gz", packed, n - 9, "");
    assert_int_equal(cut.rc, HO_EDATA);
    CHECK_CONTAINS(cut.err.text, "cut short");
    packed[n / 3] ^= 0xff;
    loaded bad = load_bytes("bad.gz", packed, n, "");
    assert_int_equal(bad.rc, HO_EDATA);

    /* a skippable frame, then two frames */
    static const unsigned char skip[] = {0x53, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 'a', 'b', 'c', 'd'};
    memcpy(packed, skip, sizeof skip);
    n = sizeof skip;
    n += ZSTD_compress(packed + n, (1 << 17) - n, text, half, 3);
    size_t first = n;
    n += ZSTD_compress(packed + n, (1 << 17) - n, text + half, size - half, 3);
    loaded zst = load_bytes("named.csv", packed, n, "");
    CHECK_OK(zst.rc, &zst.err);
    assert_string_equal(zst.report.container, "zst");
    check_same_bars(&zst.bars, &want.bars, "zst");
    loaded_free(&zst);
    loaded half_file = load_bytes("cut.zst", packed, n - 5, "");
    assert_int_equal(half_file.rc, HO_EDATA);
    CHECK_CONTAINS(half_file.err.text, "cut short");
    packed[first / 2] ^= 0x55;
    loaded torn = load_bytes("bad.zst", packed, n, "");
    assert_int_equal(torn.rc, HO_EDATA);
    free(packed);

    (void)unlink("two.zip");
    int code = 0;
    zip_t *zip = zip_open("two.zip", ZIP_CREATE, &code);
    assert_non_null(zip);
    (void)zip_file_add(zip, "ES.csv", zip_source_buffer(zip, text, size, 0), 0);
    (void)zip_file_add(zip, "readme.txt", zip_source_buffer(zip, "text", 4, 0), 0);
    assert_int_equal(zip_close(zip), 0);
    loaded unnamed = load_file("two.zip", "");
    assert_int_equal(unnamed.rc, HO_EDATA);
    CHECK_CONTAINS(unnamed.err.text, "ES.csv, readme.txt");
    loaded zipped = load_file("two.zip", "symbol=ES");
    CHECK_OK(zipped.rc, &zipped.err);
    assert_string_equal(zipped.report.container, "zip");
    check_same_bars(&zipped.bars, &want.bars, "zip");
    loaded_free(&zipped);
    loaded_free(&want);
    free(text);
}

static void files_are_concatenated_in_order(void **state)
{
    (void)state;
    size_t size = 0;
    char *text = read_twin("plain.csv", &size);
    loaded want = load_bytes("plain.csv", text, size, "");
    char *header_end = strchr(text, '\n') + 1, *middle = text + size / 2;
    middle = strchr(middle, '\n') + 1;
    FILE *a = fopen("part-a.csv", "wb"), *b = fopen("part-b.csv", "wb");
    (void)fwrite(text, 1, (size_t)(middle - text), a);
    (void)fwrite(text, 1, (size_t)(header_end - text), b);
    (void)fwrite(middle, 1, size - (size_t)(middle - text), b);
    (void)fclose(a);
    (void)fclose(b);
    const char *paths[] = {"part-a.csv", "part-b.csv"}, *wrong[] = {"part-b.csv", "part-a.csv"};
    ho_data_options options;
    ho_bars bars, again;
    ho_err err = {0};
    ho_data_options_defaults(&options);
    options.path = paths;
    options.path_count = 2;
    CHECK_OK(ho_bars_load(&options, &bars, NULL, &err), &err);
    check_same_bars(&bars, &want.bars, "two files");
    assert_string_not_equal(bars.sha256, want.bars.sha256);
    options.path = wrong;
    assert_int_equal(ho_bars_load(&options, &again, NULL, &err), HO_EDATA);
    CHECK_CONTAINS(err.text, "list the files in order of time");
    options.sort = true;
    CHECK_OK(ho_bars_load(&options, &again, NULL, &err), &err);
    check_same_bars(&again, &want.bars, "two files, sorted");
    ho_bars_free(&bars);
    ho_bars_free(&again);
    loaded_free(&want);
    free(text);
}

#define HEAD "time,open,high,low,close,volume\n"

static void bad_cells_are_refused_with_their_place(void **state)
{
    static const char a[] = HEAD "2024-01-02T14:30:00Z,1,2,1,2,3\n";
    static const struct {
        const char *row, *part;
    } cases[] = {
        {"2024-01-02T14:31:00Z,1,2,1,nan,3\n", "test-input:3:28: close is missing: \"nan\""},
        {"2024-01-02T14:31:00Z,1,2,,2,3\n", "test-input:3:26: low is missing"},
        {"2024-01-02T14:31:00Z,inf,2,1,2,3\n", "test-input:3:22: open is not finite: \"inf\""},
        {"2024-01-02T14:31:00Z,1,-Infinity,1,2,3\n", "high is not finite"},
        {"2024-01-02T14:31:00Z,1,1e400,1,2,3\n", "high is not finite"},
        {"2024-01-02T14:31:00Z,1,2x,1,2,3\n", "test-input:3:24: high is not a number: \"2x\""},
        {"2024-01-02T14:31:00Z,1,0x10,1,2,3\n", "not a number"},
        {"2024-01-02T14:31:00Z,1,2,1,2,inf\n", "volume is not finite"},
        {"2024-01-02T14:31:00Z,1,2,1,2,much\n", "volume is not a number"},
        {"2024-01-02T14:31:00Z,1,2,1,2,-3\n", "test-input:3: the volume is negative"},
        {"2024-02-30T14:31:00Z,1,2,1,2,3\n", "test-input:3:1: not a date and time"},
        {"2024-01-02T25:31:00Z,1,2,1,2,3\n", "not a date and time"},
        {"2024-01-02T14:31:00,1,2,1,2,3\n", "some stamps have a zone"},
        {",1,2,1,2,3\n", "the time is missing"},
        {"2024-01-02T14:31:00Z,1,2,1,2\n",
         "test-input:3: the row has 5 columns, the others have 6"},
        {"2024-01-02T14:31:00Z,1,2,1,2,3,4\n", "the row has 7 columns"},
        {"2024-01-02T14:31:00Z,1,\"2,1,2,3\n", "a quote is left open"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        char text[512];
        (void)snprintf(text, sizeof text, "%s%s", a, cases[i].row);
        check_refused(text, "", cases[i].part);
    }
}

static void what_is_no_table_is_refused_by_name(void **state)
{
    static const struct {
        const char *text, *keys, *part;
    } cases[] = {
        {"PAR1....", "", "Parquet file; convert it: python3"},
        {"ARROW1..", "", "Feather"},
        {"\xfd"
         "7zXZ....",
         "", "xz -dk"},
        {"BZh91AY", "", "bunzip2"},
        {"<!DOCTYPE html><html></html>", "", "web page"},
        {"version https://git-lfs.github.com/spec/v1\n", "", "git lfs pull"},
        {"\xff\xfet\x01", "", "UTF-16"},
        {"SQLite format 3", "", "SQLite database"},
        {"{\"bars\": []}", "", "list of rows only"},
        {"[[1,2,3],[4", "", "cut short in row 2"},
        {"[[1637110800000,1,2,1,2,3],", "", "row 2"},
        {"[1,2,3]", "", "not a list of numbers"},
        {"\n\n\n", "", "there are no rows"},
        {"one line of prose\n", "", "no separator"},
        {"time,open,high,low,close\n", "", "no row with a time and numbers"},
        {"a,b,c,d,e\n1,2,3,4,5\n2,3,4,5,6\n", "", "no column is called time"},
        {"time,open,high,close\n2024-01-02,1,2,1\n2024-01-03,1,2,1\n", "",
         "no column is called low"},
        {"2024-01-02,5,1,2,3\n2024-01-03,9,8,7,6,5\n", "", "no known order of the columns"},
        {"time,price\n2024-01-02,1\n2024-01-03,2\n", "", "data.close_only = true"},
        {HEAD "2024-01-02,1,2,1,2,3\n2024-01-03,1,2,1,2,3\n", "volume=quote",
         "data.volume = \"quote\", but the file has no such column"},
        {HEAD "2024-01-02,1,2,1,2,3\n", "separator=xx", "data.separator"},
        {HEAD "2024-01-02,1,2,1,2,3\n", "decimal=x", "data.decimal"},
        {HEAD "2024-01-02,1,2,1,2,3\n", "adjusted=true", "no column is called Adj Close"},
        {HEAD "2024-01-02,1,2,1,2,3\n", "contract_column=x", "no column is called \"x\""},
        {HEAD "2024-01-02,1,2,1,2,3\n", "funding_column=x", "no column is called \"x\""},
        {HEAD "2024-01-02,1,2,1,2,3\n", "timezone=Mars/Olympus", "unknown time zone"},
        {HEAD "2024-01-02,1,2,1,2,3\n", "timezone=../../etc/passwd", "not a time zone"},
        {HEAD "2024-01-02,1,2,1,2,3\n2024-01-03,1,2,1,2,3\n", "start=2025-01-01",
         "no bar lies between"},
        {HEAD "2024-01-02,1,2,1,2,3\n2024-01-03,1,2,1,2,3\n", "start=soon",
         "data.start = \"soon\""},
        {HEAD "2024-01-02,1,2,1,2,3\n2024-01-03,1,2,1,2,3\n", "bar=7x", "data.bar = \"7x\""},
        {HEAD "2024-01-02,1,2,1,2,3\n2024-01-03,1,2,1,2,3\n", "bar=1h",
         "shorter than the file's bars"},
        {HEAD "2024-01-02,1,2,1,2,3\n", "empty_rows=keep", "data.empty_rows"},
        {HEAD "2024-01-02,,,,,\n2024-01-03,1,2,1,2,3\n", "empty_rows=refuse", "test-input:2"},
        {"ticker,time,open,high,low,close\nA,2024-01-02,1,2,1,2\nB,2024-01-02,1,2,1,2\n", "",
         "data.symbol = one of: A, B"},
        {"ticker,time,open,high,low,close\nA,2024-01-02,1,2,1,2\nA,2024-01-03,1,2,1,2\n",
         "symbol=C", "no row has the symbol"},
        {"time;open;high;low;close\n2024-01-02;1,234;1,235;1,233;1,234\n", "",
         "decimal comma or with thousands"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        check_refused(cases[i].text, cases[i].keys, cases[i].part);
    }
    loaded missing = load_file("no-such-file.csv", "");
    assert_int_equal(missing.rc, HO_EIO);
    CHECK_CONTAINS(missing.err.text, "no-such-file.csv");
    loaded folder = load_file(".", "");
    assert_int_equal(folder.rc, HO_EIO);
    loaded empty = load_bytes("empty.csv", "", 0, "");
    assert_int_equal(empty.rc, HO_EDATA);
}

static void day_and_month_are_told_apart_or_asked_for(void **state)
{
    (void)state;
    static const char unclear[] = HEAD "01/02/2024,1,2,1,2,3\n02/02/2024,1,2,1,2,3\n";
    check_refused(unclear, "", "data.date_order = \"dmy\" or \"mdy\"");
    loaded dmy = load_good(unclear, "date_order=dmy"), mdy = load_good(unclear, "date_order=mdy");
    CHECK_NEAR(open_s(&dmy, 0), 1706745600.0, 0.0); /* 1 February */
    CHECK_NEAR(open_s(&mdy, 0), 1704153600.0, 0.0); /* 2 January */
    loaded_free(&dmy);
    loaded_free(&mdy);
    /* one date late in the column settles it */
    loaded late = load_good(HEAD "01/02/2024,1,2,1,2,3\n02/02/2024,1,2,1,2,3\n"
                                 "13/02/2024,1,2,1,2,3\n",
                            "");
    CHECK_NEAR(open_s(&late, 0), 1706745600.0, 0.0);
    loaded_free(&late);
    check_refused(HEAD "13/02/2024,1,2,1,2,3\n02/14/2024,1,2,1,2,3\n", "", "mixes day.month");
}

static void the_locale_changes_nothing(void **state)
{
    (void)state;
    static const char text[] = HEAD "2024-01-02,1.5,2.25,1.125,31.950000762939453,3\n"
                                    "2024-01-03,1.5,2.25,1.125,1.75,3\n";
    loaded before = load_good(text, "contradictions=keep");
    /* a locale with a decimal comma, where the machine has one */
    bool set = setlocale(LC_ALL, "de_DE.UTF-8") || setlocale(LC_ALL, "fr_FR.UTF-8");
    loaded after = load_good(text, "contradictions=keep");
    (void)setlocale(LC_ALL, "C");
    check_same_bars(&after.bars, &before.bars, set ? "with a decimal comma" : "same locale");
    CHECK_NEAR(before.bars.ohlcv[3], 31.950000762939453, 0.0);
    loaded_free(&before);
    loaded_free(&after);
}

static void adjusted_prices_are_taken_when_asked_for(void **state)
{
    (void)state;
    static const char text[] = "Date,Open,High,Low,Close,Adj Close,Volume\n"
                               "2024-01-02,10,12,8,10,5,100\n2024-01-03,10,12,8,11,11,100\n";
    loaded raw = load_good(text, ""), adjusted = load_good(text, "adjusted=true");
    CHECK_NEAR(raw.bars.ohlcv[1], 12.0, 0.0);
    CHECK_NEAR(adjusted.bars.ohlcv[1], 6.0, 0.0);
    CHECK_NEAR(adjusted.bars.ohlcv[3], 5.0, 0.0);
    CHECK_NEAR(adjusted.bars.ohlcv[5 + 1], 12.0, 0.0);
    loaded_free(&raw);
    loaded_free(&adjusted);
}

static void quotes_give_mid_bid_or_ask(void **state)
{
    (void)state;
    static const char text[] = "20240102 00:00,1.0,1.2,0.9,1.1,0,1.02,1.22,0.92,1.12,0\n"
                               "20240102 01:00,1.1,1.3,1.0,1.2,0,1.12,1.32,1.02,1.22,0\n";
    loaded mid = load_good(text, ""), bid = load_good(text, "quote=bid"),
           ask = load_good(text, "quote=ask");
    CHECK_NEAR(mid.bars.ohlcv[0], 1.01, 1e-15);
    CHECK_NEAR(bid.bars.ohlcv[0], 1.0, 0.0);
    CHECK_NEAR(ask.bars.ohlcv[0], 1.02, 0.0);
    loaded_free(&mid);
    loaded_free(&bid);
    loaded_free(&ask);
}

static void of_two_volumes_the_base_is_taken(void **state)
{
    (void)state;
    static const char text[] = "time,open,high,low,close,volume_usd,volume\n"
                               "2024-01-02,100,100,100,100,5000,50\n"
                               "2024-01-03,100,110,100,110,1100,10\n";
    loaded base = load_good(text, ""), quote = load_good(text, "volume=quote"),
           none = load_good(text, "volume=none");
    CHECK_NEAR(base.bars.ohlcv[4], 50.0, 0.0);
    CHECK_NEAR(quote.bars.ohlcv[4], 5000.0, 0.0);
    assert_false(none.bars.has_volume);
    loaded_free(&base);
    loaded_free(&quote);
    loaded_free(&none);
}

static void extra_columns_come_along(void **state)
{
    (void)state;
    static const char *const path = "extra.csv";
    static const char *const names[] = {"Signal", "mood"}, *const wrong[] = {"nothing"};
    static const char text[] = "time,open,high,low,close,signal,mood\n2024-01-02,1,2,1,2,0.5,\n"
                               "2024-01-03,1,2,1,2,,7\n2024-01-04,1,2,1,2,0.25,8\n";
    loaded written = load_bytes(path, text, strlen(text), "");
    loaded_free(&written);
    ho_data_options options;
    ho_bars bars;
    ho_data_report report;
    ho_err err = {0};
    ho_data_options_defaults(&options);
    options.path = &path;
    options.path_count = 1;
    options.extra = names;
    options.extra_count = 2;
    CHECK_OK(ho_bars_load(&options, &bars, &report, &err), &err);
    static const double want[] = {0.5, 0.0, 0.5, 7.0, 0.25, 8.0}; /* empty: the last one */
    for (int i = 0; i < 6; ++i) {
        CHECK_NEAR(bars.extra[i], want[i], 0.0);
    }
    assert_int_equal(report.finding[HO_DIRT_EXTRA_MISSING].count, 2);
    assert_string_equal(bars.extra_name[0], "Signal");
    ho_bars_free(&bars);
    options.extra = wrong;
    options.extra_count = 1;
    CHECK_STATUS(ho_bars_load(&options, &bars, &report, &err), HO_EDATA);
    CHECK_CONTAINS(err.text, "no column is called \"nothing\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(minute_bars_are_the_same_in_every_dialect),
        cmocka_unit_test(daily_bars_are_the_same_in_every_dialect),
        cmocka_unit_test(packed_files_are_the_same),
        cmocka_unit_test(files_are_concatenated_in_order),
        cmocka_unit_test(bad_cells_are_refused_with_their_place),
        cmocka_unit_test(what_is_no_table_is_refused_by_name),
        cmocka_unit_test(day_and_month_are_told_apart_or_asked_for),
        cmocka_unit_test(the_locale_changes_nothing),
        cmocka_unit_test(adjusted_prices_are_taken_when_asked_for),
        cmocka_unit_test(quotes_give_mid_bid_or_ask),
        cmocka_unit_test(of_two_volumes_the_base_is_taken),
        cmocka_unit_test(extra_columns_come_along),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
