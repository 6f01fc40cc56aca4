/* SPDX-License-Identifier: Apache-2.0
 * The Parzen estimator of `tpe`. */
#include "coordinator/search/parzen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/search/gauss.h"

enum { BLOCK = 256 };                   /* kernels scored at a time: they stay in the first cache */
static const double NEGLIGIBLE = -30.0; /* log density far below what the prior gives */
static const double WIDTH_CAP = 100.0;  /* the narrowest kernel is 1/100 of the range */

ho_status ho_parzen_init(ho_parzen *parzen, int params, const ho_dim *dim, double sharpness,
                         double choice_prior, ho_err *err)
{
    size_t n = params > 0 ? (size_t)params : 1;

    memset(parzen, 0, sizeof *parzen);
    parzen->params = params;
    parzen->dim = dim;
    parzen->prior = 1.0;
    parzen->sharpness = sharpness;
    parzen->choice_prior = choice_prior;
    parzen->active = calloc(n, sizeof *parzen->active);
    parzen->log_miss = calloc(n, sizeof *parzen->log_miss);
    parzen->stale = calloc(n, sizeof *parzen->stale);
    if (!parzen->active || !parzen->log_miss || !parzen->stale) {
        ho_parzen_free(parzen);
        return ho_err_set(err, HO_ENOMEM, "out of memory for the Parzen estimator");
    }
    return HO_OK;
}

void ho_parzen_free(ho_parzen *parzen)
{
    free(parzen->row);
    free(parzen->at);
    free(parzen->sigma);
    free(parzen->mean);
    free(parzen->inverse);
    free(parzen->log_norm);
    free(parzen->factor);
    free(parzen->order);
    free(parzen->active);
    free(parzen->log_miss);
    free(parzen->stale);
    memset(parzen, 0, sizeof *parzen);
}

/* Moves an array [P, old] to [P, room]. NULL on lack of memory, the old array untouched. */
static void *restride(const void *old, size_t item, int params, int64_t count, int64_t old_room,
                      int64_t room)
{
    char *grown = malloc((size_t)(params > 0 ? params : 1) * (size_t)room * item);

    for (int p = 0; grown && p < params && count > 0; p++) {
        memcpy(grown + (size_t)p * (size_t)room * item,
               (const char *)old + (size_t)p * (size_t)old_room * item, (size_t)count * item);
    }
    return grown;
}

static ho_status grow(ho_parzen *z, ho_err *err)
{
    int64_t room = z->room ? 2 * z->room : 32;
    int64_t *row = restride(z->row, sizeof *row, 1, z->count, z->room, room);
    double *factor = restride(z->factor, sizeof *factor, 1, z->count, z->room, room);
    double *at = restride(z->at, sizeof *at, z->params, z->count, z->room, room);
    double *sigma = restride(z->sigma, sizeof *sigma, z->params, z->count, z->room, room);
    float *mean = restride(z->mean, sizeof *mean, z->params, z->count, z->room, room);
    float *inverse = restride(z->inverse, sizeof *inverse, z->params, z->count, z->room, room);
    float *log_norm = restride(z->log_norm, sizeof *log_norm, z->params, z->count, z->room, room);
    int64_t *order = restride(z->order, sizeof *order, z->params, z->count, z->room, room);

    if (!row || !factor || !at || !sigma || !mean || !inverse || !log_norm || !order) {
        free(row);
        free(factor);
        free(at);
        free(sigma);
        free(mean);
        free(inverse);
        free(log_norm);
        free(order);
        return ho_err_set(err, HO_ENOMEM, "out of memory for the Parzen estimator");
    }
    free(z->row);
    free(z->factor);
    free(z->at);
    free(z->sigma);
    free(z->mean);
    free(z->inverse);
    free(z->log_norm);
    free(z->order);
    z->row = row;
    z->factor = factor;
    z->at = at;
    z->sigma = sigma;
    z->mean = mean;
    z->inverse = inverse;
    z->log_norm = log_norm;
    z->order = order;
    z->room = room;
    return HO_OK;
}

/* First position in the order of parameter p whose value is not below x. */
static int64_t lower_bound(const ho_parzen *z, int p, double x)
{
    const int64_t *order = &z->order[p * z->room];
    const double *at = &z->at[p * z->room];
    int64_t low = 0, high = z->active[p];

    while (low < high) {
        int64_t middle = (low + high) / 2;

        if (at[order[middle]] < x) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static int64_t position(const ho_parzen *z, int p, int64_t slot)
{
    int64_t i = lower_bound(z, p, z->at[p * z->room + slot]);

    while (z->order[p * z->room + i] != slot) {
        i++;
    }
    return i;
}

/* Sets the width of one numeric kernel, and what follows from it, if it changed. */
static void set_width(ho_parzen *z, int p, int64_t slot, double sigma)
{
    int64_t i = p * z->room + slot;
    const ho_dim *dim = &z->dim[p];
    double score = sigma, mean = z->at[i];

    if (z->sigma[i] == sigma) {
        return;
    }
    z->sigma[i] = sigma;
    if (dim->stepped) {
        double low, high, value = ho_dim_from_unit(dim, mean);

        ho_dim_cell(dim, value, &low, &high);
        low = (high - low) / (dim->high - dim->low);
        score = sqrt(sigma * sigma + low * low / 12.0);
    }
    z->inverse[i] = (float)(1.0 / score);
    z->log_norm[i] = (float)-log(score * 2.5066282746310002 *
                                 ho_gauss_mass(-mean / score, (1.0 - mean) / score));
}

/* The narrowest kernel among n. */
static double least_width(const ho_parzen *z, int64_t n)
{
    return 1.0 / fmin(WIDTH_CAP, z->sharpness * (2.0 + (double)n));
}

/* The neighbour rule for the kernel at one place of the order. */
static void refresh_place(ho_parzen *z, int p, int64_t place)
{
    const int64_t *order = &z->order[p * z->room];
    const double *at = &z->at[p * z->room];
    int64_t n = z->active[p];
    double x, left, right, sigma;

    if (place < 0 || place >= n) {
        return;
    }
    x = at[order[place]];
    left = place > 0 ? x - at[order[place - 1]] : x;
    right = place + 1 < n ? at[order[place + 1]] - x : 1.0 - x;
    sigma = fmax(left, right);
    if (n >= 2 && place == 0) {
        sigma = right;
    }
    if (n >= 2 && place == n - 1) {
        sigma = left;
    }
    set_width(z, p, order[place], fmin(fmax(sigma, least_width(z, n)), 1.0));
}

/* After a change at one place: its neighbours, or, while the least width still moves, everything.
 */
static void moved(ho_parzen *z, int p, int64_t place)
{
    if (z->dim[p].choices > 0) {
        return;
    }
    if (least_width(z, z->active[p] - 1) > 1.0 / WIDTH_CAP) {
        z->stale[p] = true;
        return;
    }
    for (int64_t i = place - 2; i <= place + 2; i++) {
        refresh_place(z, p, i);
    }
}

ho_status ho_parzen_add(ho_parzen *z, int64_t row, const double *config, ho_err *err)
{
    int64_t slot = z->count;
    ho_status rc;

    if (z->count == z->room && (rc = grow(z, err)) != HO_OK) {
        return rc;
    }
    z->row[slot] = row;
    for (int p = 0; p < z->params; p++) {
        int64_t i = p * z->room + slot, *order = &z->order[p * z->room], place;

        z->at[i] = z->mean[i] = z->inverse[i] = z->log_norm[i] = 0.0f;
        z->sigma[i] = 0.0;
        if (isnan(config[p])) {
            z->at[i] = NAN;
            continue;
        }
        z->at[i] = z->dim[p].choices > 0 ? config[p] : ho_dim_unit(&z->dim[p], config[p]);
        z->mean[i] = (float)z->at[i];
        place = lower_bound(z, p, z->at[i]);
        memmove(&order[place + 1], &order[place], (size_t)(z->active[p] - place) * sizeof *order);
        order[place] = slot;
        z->active[p]++;
        moved(z, p, place);
    }
    z->count++;
    return HO_OK;
}

void ho_parzen_remove(ho_parzen *z, int64_t row)
{
    int64_t slot = 0, last = z->count - 1;

    while (z->row[slot] != row) {
        slot++;
    }
    for (int p = 0; p < z->params; p++) {
        int64_t base = p * z->room, *order = &z->order[base];

        if (!isnan(z->at[base + slot])) {
            int64_t place = position(z, p, slot);

            z->active[p]--;
            memmove(&order[place], &order[place + 1],
                    (size_t)(z->active[p] - place) * sizeof *order);
            moved(z, p, place);
        }
        if (slot == last) {
            continue;
        }
        if (!isnan(z->at[base + last])) {
            order[position(z, p, last)] = slot;
        }
        z->at[base + slot] = z->at[base + last];
        z->sigma[base + slot] = z->sigma[base + last];
        z->mean[base + slot] = z->mean[base + last];
        z->inverse[base + slot] = z->inverse[base + last];
        z->log_norm[base + slot] = z->log_norm[base + last];
    }
    z->row[slot] = z->row[last];
    z->count--;
}

static void refresh_choice(ho_parzen *z, int p)
{
    double kernels = (double)z->active[p] / z->choice_prior + 1.0;
    double choices = z->dim[p].choices;
    float log_match = (float)log(choices * (kernels + 1.0) / (kernels + choices));

    z->log_miss[p] = -log(kernels + 1.0);
    for (int64_t k = 0; k < z->active[p]; k++) {
        z->log_norm[p * z->room + z->order[p * z->room + k]] = log_match;
    }
}

void ho_parzen_refresh(ho_parzen *z, const double *weight)
{
    double total = 1.0, log_total;

    for (int p = 0; p < z->params; p++) {
        if (z->dim[p].choices > 0) {
            refresh_choice(z, p);
        } else if (z->stale[p]) {
            for (int64_t place = 0; place < z->active[p]; place++) {
                refresh_place(z, p, place);
            }
            z->stale[p] = false;
        }
    }
    for (int64_t k = 0; k < z->count; k++) {
        total += weight ? weight[k] : 1.0;
    }
    log_total = log(total);
    for (int64_t k = 0; k < z->count; k++) {
        z->factor[k] = (weight ? log(weight[k]) : 0.0) - log_total;
    }
    for (int p = 0; p < z->params; p++) {
        for (int64_t k = 0; k < z->count; k++) {
            z->factor[k] += (double)z->log_norm[p * z->room + k];
        }
    }
    z->prior = 1.0 / total;
}

/* The prior: a normal of mean 1/2 and width 1 truncated to [0, 1]; uniform over choices. */
static double prior_density(const ho_parzen *z, const double *unit, int stride, int candidate)
{
    static const double LOG_NORM = 0.04098; /* -log(sqrt(2 pi) (2 Phi(1/2) - 1)) */
    double sum = 0.0;

    for (int p = 0; p < z->params; p++) {
        double gap = unit[p * stride + candidate] - 0.5;

        if (z->dim[p].choices == 0 && !isnan(gap)) {
            sum += LOG_NORM - 0.5 * gap * gap;
        }
    }
    return exp(sum);
}

/* Squared distances of one candidate to kernels [begin, end). */
static void distances(const ho_parzen *z, const double *unit, int stride, int candidate,
                      int64_t begin, int64_t end, float *square)
{
    int64_t count = end - begin;

    for (int64_t k = 0; k < count; k++) {
        square[k] = 0.0f;
    }
    for (int p = 0; p < z->params; p++) {
        const float *mean = &z->mean[p * z->room + begin];
        const float *inverse = &z->inverse[p * z->room + begin];
        float x = (float)unit[p * stride + candidate];

        if (isnan(x)) {
            continue;
        }
        if (z->dim[p].choices > 0) {
            const double *at = &z->at[p * z->room + begin];
            float miss = (float)(-2.0 * z->log_miss[p]);

            for (int64_t k = 0; k < count; k++) {
                square[k] += isnan(at[k]) || mean[k] == x ? 0.0f : miss;
            }
            continue;
        }
        for (int64_t k = 0; k < count; k++) {
            float gap = (x - mean[k]) * inverse[k];

            square[k] += gap * gap;
        }
    }
}

void ho_parzen_log_density(const ho_parzen *z, const double *unit, int stride, int n, double *out)
{
    float square[BLOCK];

    for (int c = 0; c < n; c++) {
        out[c] = z->prior * prior_density(z, unit, stride, c);
    }
    for (int64_t begin = 0; begin < z->count; begin += BLOCK) {
        int64_t end = begin + BLOCK < z->count ? begin + BLOCK : z->count;

        for (int c = 0; c < n; c++) {
            distances(z, unit, stride, c, begin, end, square);
            for (int64_t k = begin; k < end; k++) {
                double log_density = z->factor[k] - 0.5 * (double)square[k - begin];

                if (log_density > NEGLIGIBLE) {
                    out[c] += exp(log_density);
                }
            }
        }
    }
    for (int c = 0; c < n; c++) {
        out[c] = log(out[c]);
    }
}

double ho_parzen_draw(const ho_parzen *z, int p, int64_t slot, ho_draw *draw)
{
    const ho_dim *dim = &z->dim[p];
    double at = slot >= 0 ? z->at[p * z->room + slot] : NAN;
    double u = ho_draw_open(draw), sigma = 1.0;

    if (dim->choices > 0) {
        double kernels = (double)z->active[p] / z->choice_prior + 1.0;
        double match = isnan(at) ? 0.0 : kernels / (kernels + dim->choices);

        /* own choice with the excess over the mismatch share, else any choice alike */
        return u < match ? at : (double)ho_draw_below(draw, dim->choices);
    }
    if (isnan(at)) {
        at = 0.5;
    } else {
        sigma = z->sigma[p * z->room + slot];
    }
    return at + sigma * ho_gauss_truncated_quantile(u, -at / sigma, (1.0 - at) / sigma);
}
