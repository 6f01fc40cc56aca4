/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a data file: the loader must refuse them or deliver bars that keep the promises of
 * bars.h, never crash, never leak, never take more than a second. The last byte chooses settings.
 * Built with libFuzzer (fuzz target) and with run_seeds.c (replay of the seeds, any compiler). */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/shapes.h"
#include "market/features.h"
#include "market/load.h"
#include "market/source.h"

enum { UNPACKED_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what)
{
    if (!holds) {
        (void)fprintf(stderr, "broken promise: %s\n", what);
        abort();
    }
}

/* Settings by the bits of one byte: each changes the way through the code. */
static void choose_options(uint8_t choice, ho_data_options *o)
{
    static const char *const symbols[] = {"", "ES", "42", "201312"};
    ho_data_options_defaults(o);
    (void)snprintf(o->symbol, sizeof o->symbol, "%s", symbols[choice & 3]);
    o->sort = (choice & 4) != 0;
    o->duplicates = (choice >> 3) & 3;
    if (choice & 32) {
        (void)strcpy(o->timezone, "America/New_York");
        (void)strcpy(o->bar, "1d");
        o->gaps = HO_GAPS_SPLIT;
    }
    if (choice & 64) {
        o->date_order = HO_DATE_DMY;
        o->close_only = true;
        o->adjust = HO_ADJUST_BACK;
        o->contradictions = HO_DIRT_DROP;
        o->tick_size = 0.25;
    }
    if (choice & 128) {
        o->gaps = HO_GAPS_FILL;
        (void)strcpy(o->max_gap, "2h");
        o->label = HO_LABEL_CLOSE;
    }
}

static void check_bars(const ho_bars *bars, const ho_data_report *report)
{
    require(bars->count > 0, "a loaded file has bars");
    require(bars->interval_ns > 0, "bars have a length");
    require(report->bars == bars->count, "the report counts the bars");
    for (int64_t t = 0; t < bars->count; ++t) {
        for (int k = 0; k < HO_BAR_COLUMNS; ++k) {
            require(isfinite(bars->ohlcv[HO_BAR_COLUMNS * t + k]), "every value is finite");
        }
        require(bars->ohlcv[HO_BAR_COLUMNS * t + HO_VOLUME] >= 0.0, "volume is not negative");
        if (t > 0) {
            require(bars->open_ns[t] > bars->open_ns[t - 1], "stamps ascend");
            require(bars->session[t] >= bars->session[t - 1], "sessions do not fall");
        }
    }
}

static void check_features(const ho_bars *bars)
{
    static const char *const names[] = {"ret_5", "body", "rsi_7", "vol_10", "boll_pos_20"};
    ho_feature_options options;
    ho_features features;
    ho_feature_options_defaults(&options);
    options.long_window = 20;
    options.use = names;
    options.use_count = 5;
    if (ho_features_compute(bars, &options, &features, NULL) == HO_OK) {
        for (int64_t i = 0; i < features.T * features.F; ++i) {
            require(fabsf(features.values[i]) <= 5.0f, "features are finite and clipped");
        }
        ho_features_free(&features);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ho_source source;
    ho_data_options options;
    ho_bars bars;
    ho_data_report report;
    ho_err err = {0};
    char path[64];
    const char *paths = path;
    if (size < 2) {
        return 0;
    }
    --size;
    /* what unpacks to more than a megabyte only takes time */
    if (ho_source_decode("input", "", data, size, UNPACKED_MAX, &source, &err) != HO_OK &&
        strstr(err.text, "unpacks to more")) {
        return 0;
    }
    ho_source_free(&source);
    int fd = memfd_create("input", 0);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
        abort();
    }
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    choose_options(data[size], &options);
    options.path = &paths;
    options.path_count = 1;
    if (ho_bars_load(&options, &bars, &report, &err) == HO_OK) {
        check_bars(&bars, &report);
        check_features(&bars);
    } else {
        require(bars.ohlcv == NULL && bars.count == 0, "a refused file leaves no bars");
        require(err.text[0] != '\0', "a refusal says why");
    }
    ho_bars_free(&bars);
    (void)close(fd);
    return 0;
}
