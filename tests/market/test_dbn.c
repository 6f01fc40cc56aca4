/* SPDX-License-Identifier: Apache-2.0
 * Databento DBN: the synthetic files of spec/data-formats.md with their hashes, instruments,
 * continuous symbols, definitions, and files that are damaged or hold something else. */
#include "market/load_file.h"

#include <stdlib.h>

#include <sodium.h>
#include <zstd.h>

#include "market/dbn_file.h"

static const uint64_t T0 = 1704205800000000000ULL; /* 2024-01-02T14:30Z */
static const uint64_t MINUTE = 60000000000ULL;
static const uint64_t DAY = 86400000000000ULL;
static const int64_t BAR0[4] = {4512250000000, 4512750000000, 4511500000000, 4512000000000};
static const int64_t BAR1[4] = {4512000000000, 4513250000000, 4511750000000, 4513000000000};

/* The two bars of the specification, with the symbol or without. */
static void spec_file(dbn_file *f, int version, bool symbol)
{
    static const dbn_interval esh4[] = {{"ESH4", 20240102, 20240103, 42}};
    dbn_begin(f, version, 6, T0, T0 + 2 * MINUTE, esh4, symbol ? 1 : 0);
    /* the metadata's end is that of the specification's file */
    dbn_bar(f, 0x21, 42, T0, BAR0, 1234);
    dbn_bar(f, 0x21, 42, T0 + MINUTE, BAR1, 987);
}

static void check_spec_bars(const loaded *l)
{
    CHECK_OK(l->rc, &l->err);
    assert_int_equal(l->bars.count, 2);
    CHECK_NEAR(open_s(l, 0), 1704205800.0, 0.0);
    CHECK_NEAR(open_s(l, 1), 1704205860.0, 0.0);
    static const double want[10] = {4512.25, 4512.75, 4511.5,  4512.0, 1234,
                                    4512.0,  4513.25, 4511.75, 4513.0, 987};
    for (int i = 0; i < 10; ++i) {
        CHECK_NEAR(l->bars.ohlcv[i], want[i], 0.0);
    }
    assert_int_equal(l->bars.interval_ns, (int64_t)MINUTE);
    assert_string_equal(l->report.label, "open");
    assert_string_equal(l->bars.timezone, "America/Chicago");
}

static void the_files_of_the_specification_have_its_hashes(void **state)
{
    (void)state;
    static const struct {
        int version;
        bool symbol;
        size_t size;
        const char *sha256;
    } cases[] = {
        {1, false, 240, "9bd013c1af7f67b87c0dc5bca6b6db24bd0bdfc6a146a66b574033765d4cf3f4"},
        {1, true, 318, "311accea9a371a47bb9b4ba2d1e7bbd376c0181e75b28b45f81624a2f2581861"},
        {2, false, 240, "f854d6b6d41e15c2db987ba3eb9b02f5ff6fca68ae7410489d40dec79c0ade1c"},
        {2, true, 465, "109ccecf6765f7c655c3aff12cf0e50c6e79748ba56f20c359fca5dbce2d3d15"},
        {3, false, 240, "96bc9167f6180176ad6f9cd53c2ac9be4a3f9a72d7cc0e276f23942137b89ed7"},
        {3, true, 472, "71675c4109b1457a8c13e73f4099c55f2716df80510ecb6fe5f124c2ad5db0fc"},
    };
    dbn_file *f = malloc(sizeof *f);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        spec_file(f, cases[i].version, cases[i].symbol);
        assert_int_equal(f->size, cases[i].size);
        loaded l = load_bytes("spec.dbn", f->bytes, f->size, "");
        check_spec_bars(&l);
        assert_string_equal(l.bars.sha256, cases[i].sha256);
        assert_string_equal(l.bars.instrument.symbol, cases[i].symbol ? "ESH4" : "");
        loaded_free(&l);
    }
    free(f);
}

static void zstd_frames_and_skippable_ones_are_read(void **state)
{
    (void)state;
    dbn_file *f = malloc(sizeof *f);
    static const uint8_t skip[] = {0x5f, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3};
    uint8_t packed[4096];
    size_t n = 0;
    spec_file(f, 3, true);
    for (size_t at = 0; at < f->size; at += 100) { /* frames that cut records */
        size_t piece = f->size - at < 100 ? f->size - at : 100;
        n += ZSTD_compress(packed + n, sizeof packed - n, f->bytes + at, piece, 1);
        memcpy(packed + n, skip, sizeof skip);
        n += sizeof skip;
    }
    loaded l = load_bytes("frames.bin", packed, n, "");
    check_spec_bars(&l);
    assert_string_equal(l.report.container, "zst");
    loaded_free(&l);
    free(f);
}

static void a_cut_record_is_a_warning_and_a_cut_header_an_error(void **state)
{
    (void)state;
    dbn_file *f = malloc(sizeof *f);
    spec_file(f, 1, true);
    loaded l = load_bytes("cut.dbn", f->bytes, f->size - 10, "");
    CHECK_OK(l.rc, &l.err);
    assert_int_equal(l.bars.count, 1);
    assert_int_equal(found(&l, HO_DIRT_TRUNCATED), 1);
    assert_true(ho_data_report_has_warnings(&l.report));
    loaded_free(&l);
    for (size_t size = 4; size < 206; ++size) {
        loaded cut = load_bytes("cut.dbn", f->bytes, size, "");
        assert_int_equal(cut.rc, HO_EDATA);
        CHECK_CONTAINS(cut.err.text, "cut.dbn");
    }
    f->bytes[206] = 3; /* the first record's length: 12 bytes */
    loaded bad = load_bytes("bad.dbn", f->bytes, f->size, "");
    assert_int_equal(bad.rc, HO_EDATA);
    CHECK_CONTAINS(bad.err.text, "record 1 has a length of 12 bytes");
    free(f);
}

static void versions_and_schemas_that_are_not_read_are_named(void **state)
{
    (void)state;
    dbn_file *f = malloc(sizeof *f);
    static const struct {
        int schema;
        const char *name;
    } schemas[] = {{0, "mbo"}, {1, "mbp-1"}, {4, "trades"}, {9, "definition"}, {77, "unknown"}};
    spec_file(f, 3, true);
    f->bytes[3] = 4;
    loaded v4 = load_bytes("v4.dbn", f->bytes, f->size, "");
    assert_int_equal(v4.rc, HO_EDATA);
    CHECK_CONTAINS(v4.err.text, "DBN version 4 is not read");
    for (size_t i = 0; i < sizeof schemas / sizeof schemas[0]; ++i) {
        dbn_begin(f, 2, schemas[i].schema, T0, T0, NULL, 0);
        loaded l = load_bytes("schema.dbn", f->bytes, f->size, "");
        assert_int_equal(l.rc, HO_EDATA);
        CHECK_CONTAINS(l.err.text, schemas[i].name);
        CHECK_CONTAINS(l.err.text, "not bars");
    }
    dbn_begin(f, 2, 6, T0, T0, NULL, 0);
    loaded none = load_bytes("none.dbn", f->bytes, f->size, "");
    assert_int_equal(none.rc, HO_EDATA);
    CHECK_CONTAINS(none.err.text, "has no bars");
    spec_file(f, 1, false);
    loaded piece = load_bytes("piece.dbn", f->bytes + 128, f->size - 128, "");
    assert_int_equal(piece.rc, HO_EDATA);
    CHECK_CONTAINS(piece.err.text, "fragment of DBN records");
    static const uint8_t dbz[] = "\x50\x2a\x4d\x18\x08\x00\x00\x00"
                                 "DBZ\x01....";
    loaded old = load_bytes("old.dbn.zst", dbz, sizeof dbz, "");
    assert_int_equal(old.rc, HO_EDATA);
    CHECK_CONTAINS(old.err.text, "DBZ");
    free(f);
}

static void one_of_several_instruments_is_chosen_by_symbol_or_id(void **state)
{
    (void)state;
    dbn_file *f = malloc(sizeof *f);
    static const dbn_interval two[] = {{"BRN FMJ0024!", 20240101, 20240201, 7},
                                       {"NQH4", 20240101, 20240201, 8}};
    static const char *const keys[] = {"symbol=NQH4", "symbol=nqh4", "symbol=8"};
    for (int version = 1; version <= 3; ++version) {
        dbn_begin(f, version, 6, T0, T0, two, 2);
        for (int i = 0; i < 10; ++i) {
            dbn_bar(f, 0x21, i % 2 ? 8 : 7, T0 + (uint64_t)(i / 2) * MINUTE, i % 2 ? BAR1 : BAR0,
                    1);
            dbn_other(f, 0x17, 0, T0, version == 1 ? 80 : 320);
        }
        loaded none = load_bytes("two.dbn", f->bytes, f->size, "");
        assert_int_equal(none.rc, HO_EDATA);
        CHECK_CONTAINS(none.err.text, "data.symbol = one of: BRN FMJ0024!, NQH4");
        for (int k = 0; k < 3; ++k) {
            loaded l = load_file("two.dbn", keys[k]);
            CHECK_OK(l.rc, &l.err);
            assert_int_equal(l.bars.count, 5);
            CHECK_NEAR(l.bars.ohlcv[3], 4513.0, 0.0);
            assert_int_equal(found(&l, HO_DIRT_OTHER_RECORD), 10);
            assert_string_equal(l.bars.instrument.symbol, "NQH4");
            loaded_free(&l);
        }
        loaded wrong = load_file("two.dbn", "symbol=CL");
        assert_int_equal(wrong.rc, HO_EDATA);
        CHECK_CONTAINS(wrong.err.text, "no instrument \"CL\"");
    }
    free(f);
}

static void a_continuous_symbol_rolls_where_its_instrument_changes(void **state)
{
    (void)state;
    dbn_file *f = malloc(sizeof *f);
    static const dbn_interval front[] = {{"ES.c.0", 20240101, 20240104, 7},
                                         {"ES.c.0", 20240104, 20240201, 8}};
    dbn_begin(f, 3, 8, T0, T0, front, 2);
    uint64_t day = 1704067200000000000ULL;
    for (int i = 0; i < 6; ++i) { /* both trade all days; the symbol says which is meant */
        int64_t old[4] = {100000000000, 102000000000, 99000000000, 101000000000};
        int64_t new[4] = {111000000000, 113000000000, 110000000000, 112000000000};
        dbn_bar(f, 0x23, 7, day + (uint64_t)i * DAY, old, 10);
        dbn_bar(f, 0x23, 8, day + (uint64_t)i * DAY, new, 20);
    }
    loaded l = load_bytes("front.dbn", f->bytes, f->size, "symbol=ES.c.0");
    CHECK_OK(l.rc, &l.err);
    assert_int_equal(l.bars.count, 6);
    assert_int_equal(found(&l, HO_DIRT_ROLL), 1);
    CHECK_NEAR(l.bars.ohlcv[5 * 2 + 3], 101.0, 0.0);
    CHECK_NEAR(l.bars.ohlcv[5 * 3 + 3], 112.0, 0.0);
    CHECK_NEAR(l.bars.roll_jump[3], 10.0, 0.0); /* 111 - 101 */
    CHECK_NEAR(l.bars.roll_jump[2], 0.0, 0.0);
    loaded_free(&l);
    loaded back = load_file("front.dbn", "symbol=ES.c.0 adjust=back");
    CHECK_OK(back.rc, &back.err);
    CHECK_NEAR(back.bars.ohlcv[5 * 2 + 3], 111.0, 0.0);
    CHECK_NEAR(back.bars.roll_jump[3], HO_ROLL_ADJUSTED, 0.0);
    loaded_free(&back);
    loaded ratio = load_file("front.dbn", "symbol=ES.c.0 adjust=ratio");
    CHECK_OK(ratio.rc, &ratio.err);
    CHECK_CLOSE(ratio.bars.ohlcv[5 * 2 + 3], 111.0, 1e-12);
    CHECK_CLOSE(ratio.bars.ohlcv[0], 100.0 * 111.0 / 101.0, 1e-12);
    loaded_free(&ratio);
    free(f);
}

static void tick_and_multiplier_come_from_definitions(void **state)
{
    (void)state;
    dbn_file *f = malloc(sizeof *f);
    static const dbn_interval esh4[] = {{"ESH4", 20240101, 20240201, 42}};
    for (int version = 1; version <= 3; ++version) { /* in a mixed file */
        dbn_begin(f, version, 0xffff, T0, T0, esh4, 1);
        dbn_definition(f, 42, T0, 250000000, 12500000000, 50000000000);
        dbn_definition(f, 43, T0, 1, 1, 1);
        dbn_bar(f, 0x21, 42, T0, BAR0, 1);
        dbn_bar(f, 0x21, 42, T0 + MINUTE, BAR1, 1);
        loaded l = load_bytes("mixed.dbn", f->bytes, f->size, "");
        CHECK_OK(l.rc, &l.err);
        CHECK_NEAR(l.bars.instrument.tick_size, 0.25, 0.0);
        CHECK_NEAR(l.bars.instrument.multiplier, 50.0, 0.0);
        assert_int_equal(found(&l, HO_DIRT_OFF_TICK), 0); /* the grid is known and kept */
        loaded_free(&l);
    }
    spec_file(f, 1, true); /* in a file beside, listed first; worth unset: the unit stands */
    loaded bars = load_bytes("bars.dbn", f->bytes, f->size, "");
    loaded_free(&bars);
    dbn_begin(f, 3, 9, T0, T0, NULL, 0);
    dbn_definition(f, 42, T0, 250000000, INT64_MAX, 50000000000);
    loaded alone = load_bytes("definitions.dbn", f->bytes, f->size, "");
    assert_int_equal(alone.rc, HO_EDATA);
    const char *paths[] = {"definitions.dbn", "bars.dbn"};
    ho_data_options options;
    ho_bars both;
    ho_err err = {0};
    ho_data_options_defaults(&options);
    options.path = paths;
    options.path_count = 2;
    CHECK_OK(ho_bars_load(&options, &both, NULL, &err), &err);
    assert_int_equal(both.count, 2);
    CHECK_NEAR(both.instrument.tick_size, 0.25, 0.0);
    CHECK_NEAR(both.instrument.multiplier, 50.0, 0.0);
    ho_bars_free(&both);
    free(f);
}

static void undefined_prices_are_no_bar(void **state)
{
    (void)state;
    dbn_file *f = malloc(sizeof *f);
    static const int64_t nothing[4] = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
    static const int64_t half[4] = {1, INT64_MAX, 1, 1};
    dbn_begin(f, 2, 6, T0, T0, NULL, 0);
    dbn_bar(f, 0x21, 42, T0, BAR0, 1);
    dbn_bar(f, 0x21, 42, T0 + MINUTE, nothing, 0);
    dbn_bar(f, 0x21, 42, T0 + 2 * MINUTE, BAR1, 1);
    loaded l = load_bytes("empty.dbn", f->bytes, f->size, "");
    CHECK_OK(l.rc, &l.err);
    assert_int_equal(l.bars.count, 2);
    assert_int_equal(found(&l, HO_DIRT_EMPTY_ROW), 1);
    loaded_free(&l);
    dbn_bar(f, 0x21, 42, T0 + 3 * MINUTE, half, 1);
    loaded bad = load_bytes("half.dbn", f->bytes, f->size, "");
    assert_int_equal(bad.rc, HO_EDATA);
    CHECK_CONTAINS(bad.err.text, "record 4");
    free(f);
}

static void bars_of_several_publishers_are_refused_chosen_or_merged(void **state)
{
    (void)state;
    dbn_file *f = malloc(sizeof *f);
    dbn_begin(f, 3, 6, T0, T0, NULL, 0);
    dbn_bar(f, 0x21, 42, T0, BAR0, 10);
    dbn_bar(f, 0x21, 42, T0, BAR1, 5);
    f->bytes[f->size - 56 + 2] = 9; /* publisher of the second */
    loaded l = load_bytes("publishers.dbn", f->bytes, f->size, "");
    assert_int_equal(l.rc, HO_EDATA);
    CHECK_CONTAINS(l.err.text, "data.publisher");
    loaded one = load_file("publishers.dbn", "publisher=9");
    CHECK_OK(one.rc, &one.err);
    CHECK_NEAR(one.bars.ohlcv[4], 5.0, 0.0);
    loaded_free(&one);
    loaded merged = load_file("publishers.dbn", "duplicates=merge");
    CHECK_OK(merged.rc, &merged.err);
    static const double want[5] = {4512.25, 4513.25, 4511.5, 4513.0, 15.0};
    for (int k = 0; k < 5; ++k) {
        CHECK_NEAR(merged.bars.ohlcv[k], want[k], 0.0);
    }
    loaded_free(&merged);
    free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_files_of_the_specification_have_its_hashes),
        cmocka_unit_test(zstd_frames_and_skippable_ones_are_read),
        cmocka_unit_test(a_cut_record_is_a_warning_and_a_cut_header_an_error),
        cmocka_unit_test(versions_and_schemas_that_are_not_read_are_named),
        cmocka_unit_test(one_of_several_instruments_is_chosen_by_symbol_or_id),
        cmocka_unit_test(a_continuous_symbol_rolls_where_its_instrument_changes),
        cmocka_unit_test(tick_and_multiplier_come_from_definitions),
        cmocka_unit_test(undefined_prices_are_no_bar),
        cmocka_unit_test(bars_of_several_publishers_are_refused_chosen_or_merged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
