/* SPDX-License-Identifier: Apache-2.0
 * Probability of backtest overfitting by CSCV (Bailey, Borwein, Lopez de Prado, Zhu 2017).
 * Each block's sums are made once, around the column's mean; a split adds up block sums. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/metrics/moments.h"
#include "kernels/metrics/overfit.h"

enum { BLOCKS_MAX = 20 };

typedef struct cscv {
    int64_t T, N, rows; /* rows of a block */
    int blocks;
    double *center; /* [N] column means */
    double *sum;    /* [blocks, N] of r - center */
    double *square; /* [blocks, N] of (r - center)^2 */
    double *inside; /* [N] performance in sample */
    double *beyond; /* [N] out of sample */
} cscv;

static void cscv_free(cscv *c)
{
    free(c->center);
    free(c->sum);
    free(c->square);
    free(c->inside);
    free(c->beyond);
}

static ho_status cscv_create(const double *returns, int64_t T, int64_t N, int blocks, cscv *c,
                             ho_err *err)
{
    *c = (cscv){.T = T, .N = N, .rows = T / blocks, .blocks = blocks};
    size_t columns = (size_t)N;
    c->center = calloc(columns, sizeof(double));
    c->sum = calloc(columns * (size_t)blocks, sizeof(double));
    c->square = calloc(columns * (size_t)blocks, sizeof(double));
    c->inside = calloc(columns, sizeof(double));
    c->beyond = calloc(columns, sizeof(double));
    if (!c->center || !c->sum || !c->square || !c->inside || !c->beyond) {
        return ho_err_set(err, HO_ENOMEM, "PBO of %lld configurations: out of memory",
                          (long long)N);
    }
    int64_t used = c->rows * blocks;
    for (int64_t n = 0; n < N; n++) {
        ho_sum mean = {0.0, 0.0};
        for (int64_t t = 0; t < used; t++) {
            if (!isfinite(returns[t * N + n])) {
                return ho_err_set(err, HO_EINVAL,
                                  "PBO: return %lld of configuration %lld is not "
                                  "a finite number",
                                  (long long)t, (long long)n);
            }
            ho_sum_add(&mean, returns[t * N + n]);
        }
        c->center[n] = ho_sum_value(&mean) / (double)used;
        for (int64_t t = 0; t < used; t++) {
            double d = returns[t * N + n] - c->center[n];
            c->sum[t / c->rows * N + n] += d;
            c->square[t / c->rows * N + n] += d * d;
        }
    }
    return HO_OK;
}

/* Per-period Sharpe ratio (ddof 1) of every column over the blocks of `mask`. */
static ho_status performance(const cscv *c, uint32_t mask, double *out, ho_err *err)
{
    double count = (double)(c->rows * (c->blocks / 2));
    for (int64_t n = 0; n < c->N; n++) {
        double sum = 0.0, square = 0.0;
        for (int b = 0; b < c->blocks; b++) {
            if (mask >> b & 1u) {
                sum += c->sum[(int64_t)b * c->N + n];
                square += c->square[(int64_t)b * c->N + n];
            }
        }
        double mean = sum / count, m2 = square - sum * mean;
        double scale = fabs(c->center[n] + mean);
        if (!(m2 > 1e-24 * (scale * scale * count + square))) {
            return ho_err_set(err, HO_EINVAL,
                              "PBO: configuration %lld does not vary in some "
                              "split; leave it out",
                              (long long)n);
        }
        out[n] = (c->center[n] + mean) / sqrt(m2 / (count - 1.0));
    }
    return HO_OK;
}

/* Ascending rank from 1 of column `which`, ties at their average. */
static double rank_of(const double *value, int64_t N, int64_t which)
{
    int64_t below = 0, equal = 0;
    for (int64_t n = 0; n < N; n++) {
        below += value[n] < value[which];
        equal += value[n] == value[which];
    }
    return (double)below + ((double)equal + 1.0) / 2.0;
}

static void judge_split(const cscv *c, int64_t split, ho_pbo *out)
{
    double best = c->inside[0], rank = 0.0, beyond = 0.0;
    int64_t winners = 0;
    for (int64_t n = 1; n < c->N; n++) {
        best = c->inside[n] > best ? c->inside[n] : best;
    }
    for (int64_t n = 0; n < c->N; n++) {
        if (c->inside[n] == best) {
            rank += rank_of(c->beyond, c->N, n);
            beyond += c->beyond[n];
            winners++;
        }
    }
    double omega = rank / (double)winners / ((double)c->N + 1.0);
    out->lambda[split] = log(omega / (1.0 - omega));
    out->in_sample[split] = best;
    out->out_sample[split] = beyond / (double)winners;
}

static void summarise(ho_pbo *out)
{
    double n = (double)out->splits, x = 0.0, y = 0.0, xx = 0.0, xy = 0.0;
    int64_t overfit = 0, lost = 0;
    for (int64_t i = 0; i < out->splits; i++) {
        overfit += out->lambda[i] <= 0.0;
        lost += out->out_sample[i] < 0.0;
        x += out->in_sample[i] / n;
        y += out->out_sample[i] / n;
    }
    for (int64_t i = 0; i < out->splits; i++) {
        xx += (out->in_sample[i] - x) * (out->in_sample[i] - x);
        xy += (out->in_sample[i] - x) * (out->out_sample[i] - y);
    }
    out->pbo = (double)overfit / n;
    out->loss = (double)lost / n;
    out->slope = xx > 0.0 ? xy / xx : NAN;
    out->intercept = xx > 0.0 ? y - out->slope * x : NAN;
}

static int64_t choose_half(int blocks)
{
    int64_t c = 1;
    for (int i = 1; i <= blocks / 2; i++) {
        c = c * (blocks - blocks / 2 + i) / i;
    }
    return c;
}

static int bits(uint32_t x)
{
    int n = 0;
    for (; x; x &= x - 1) {
        n++;
    }
    return n;
}

ho_status ho_pbo_cscv(const double *returns, int64_t T, int64_t N, int blocks, ho_pbo *out,
                      ho_err *err)
{
    cscv c = {0};
    ho_status rc = HO_OK;
    memset(out, 0, sizeof *out);
    if (N < 2 || blocks < 2 || blocks > BLOCKS_MAX || blocks % 2 != 0 || T / blocks < 2) {
        return ho_err_set(err, HO_EINVAL,
                          "PBO needs 2 configurations or more (got %lld), an even number of "
                          "blocks from 2 to %d (got %d) and 2 rows a block (%lld rows)",
                          (long long)N, BLOCKS_MAX, blocks, (long long)T);
    }
    out->splits = choose_half(blocks);
    out->lambda = malloc((size_t)out->splits * sizeof(double));
    out->in_sample = malloc((size_t)out->splits * sizeof(double));
    out->out_sample = malloc((size_t)out->splits * sizeof(double));
    if (!out->lambda || !out->in_sample || !out->out_sample) {
        rc = ho_err_set(err, HO_ENOMEM, "PBO: out of memory");
    } else {
        rc = cscv_create(returns, T, N, blocks, &c, err);
    }
    uint32_t all = (1u << blocks) - 1u;
    int64_t split = 0;
    for (uint32_t mask = 0; mask <= all && rc == HO_OK; mask++) {
        if (bits(mask) == blocks / 2) {
            rc = performance(&c, mask, c.inside, err);
            if (rc == HO_OK) {
                rc = performance(&c, all & ~mask, c.beyond, err);
            }
            if (rc == HO_OK) {
                judge_split(&c, split++, out);
            }
        }
    }
    cscv_free(&c);
    if (rc == HO_OK) {
        summarise(out);
    } else {
        ho_pbo_free(out);
    }
    return rc;
}

void ho_pbo_free(ho_pbo *pbo)
{
    free(pbo->lambda);
    free(pbo->in_sample);
    free(pbo->out_sample);
    memset(pbo, 0, sizeof *pbo);
}
