/* SPDX-License-Identifier: Apache-2.0
 * See null_bars.h. */
#include "coordinator/null_bars.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coordinator/search/draw.h"

enum { OPEN, HIGH, LOW, CLOSE, VOLUME, COLUMNS };

static bool all_positive(const ho_bars *bars)
{
    for (int64_t t = 0; t < bars->count; t++) {
        if (bars->ohlcv[COLUMNS * t + LOW] <= 0) {
            return false;
        }
    }
    return true;
}

/* Fisher-Yates over the blocks. */
static void shuffle(int64_t *order, int64_t n, uint64_t seed, int64_t study)
{
    ho_draw draw = ho_draw_start(seed, study, HO_DRAW_PERMUTE, 0);
    for (int64_t i = 0; i < n; i++) {
        order[i] = i;
    }
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t k = ho_draw_below(&draw, i + 1);
        int64_t keep = order[i];
        order[i] = order[k];
        order[k] = keep;
    }
}

ho_status ho_null_bars(const ho_bars *bars, int64_t block, uint64_t seed, int64_t study,
                       double *ohlcv, ho_err *err)
{
    if (block < 1 || bars->count < 2) {
        return ho_err_set(err, HO_EINVAL, "null-test: a block of %" PRId64 " of %" PRId64 " bars",
                          block, bars->count);
    }
    int64_t moves = bars->count - 1, blocks = (moves + block - 1) / block, at = 1;
    int64_t *order = (int64_t *)malloc((size_t)blocks * sizeof *order);
    bool ratio = all_positive(bars);

    if (!order) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    shuffle(order, blocks, seed, study);
    memcpy(ohlcv, bars->ohlcv, COLUMNS * sizeof *ohlcv);
    for (int64_t b = 0; b < blocks; b++) {
        int64_t begin = 1 + order[b] * block;
        int64_t end = begin + block < bars->count ? begin + block : bars->count;
        for (int64_t t = begin; t < end; t++, at++) {
            const double *real = bars->ohlcv + COLUMNS * t;
            double before = real[CLOSE - COLUMNS] + (bars->roll_jump ? bars->roll_jump[t] : 0.0);
            double base = ohlcv[COLUMNS * (at - 1) + CLOSE];
            for (int c = OPEN; c <= CLOSE; c++) {
                ohlcv[COLUMNS * at + c] =
                    ratio ? base * (real[c] / before) : base + (real[c] - before);
            }
            ohlcv[COLUMNS * at + VOLUME] = real[VOLUME];
        }
    }
    free(order);
    return HO_OK;
}

ho_status ho_null_write(const ho_bars *bars, const double *ohlcv, const char *path, ho_err *err)
{
    FILE *out = fopen(path, "w");
    if (!out) {
        return ho_err_set(err, HO_EIO, "%s: %s", path, strerror(errno));
    }
    (void)fprintf(out, "timestamp,open,high,low,close%s", bars->has_volume ? ",volume" : "");
    for (int i = 0; i < bars->extra_count; i++) {
        (void)fprintf(out, ",%s", bars->extra_name[i]);
    }
    (void)fprintf(out, "\n");
    for (int64_t t = 0; t < bars->count; t++) {
        const double *row = ohlcv + COLUMNS * t;
        (void)fprintf(out, "%" PRId64 ",%.17g,%.17g,%.17g,%.17g", bars->open_ns[t], row[OPEN],
                      row[HIGH], row[LOW], row[CLOSE]);
        if (bars->has_volume) {
            (void)fprintf(out, ",%.17g", row[VOLUME]);
        }
        for (int i = 0; i < bars->extra_count; i++) {
            (void)fprintf(out, ",%.17g", bars->extra[t * bars->extra_count + i]);
        }
        (void)fputc('\n', out);
    }
    bool bad = ferror(out);
    bad |= fclose(out) != 0;
    if (bad) {
        ho_err_set(err, HO_EIO, "%s: %s", path, strerror(errno));
        (void)unlink(path);
        return HO_EIO;
    }
    return HO_OK;
}
