/* SPDX-License-Identifier: Apache-2.0
 * The passes of net.c in bf16: every number that enters a product is rounded once (weights when
 * packed, the input when taken, a hidden layer's outputs and deltas when written), products are
 * summed in float32 (bf16.h), and biases, activations, losses and gradients stay in float32. With
 * pack->e4m3 what was rounded is rounded once more, to E4M3 with a scale (kernels/agents/e4m3.h).
 *
 * A product over columns reads rows of halves as pairs of neighbours. One over rows (the weight
 * gradient) needs two rows interleaved: that is made on the way, in scratch. */
#include <string.h>

#include "kernels/agents/e4m3.h"
#include "kernels/cpu/net_ops.h"

static int32_t pairs_of(int32_t n)
{
    return (n + 1) / 2;
}

static const ho_bf16_pair *as_pairs(const ho_bf16 *x)
{
    return (const ho_bf16_pair *)(const void *)x;
}

/* A row of weights with the scale of its largest magnitude. */
static void round_weights_e4m3(ho_bf16 *w, int32_t n)
{
    uint32_t largest = 0;
    for (int32_t i = 0; i < n; i++) {
        const uint32_t magnitude = (uint32_t)(w[i] & 0x7fffu) << 16;
        largest = magnitude > largest ? magnitude : largest;
    }
    ho_bf16_get()->e4m3(w, n, ho_e4m3_scale(largest));
}

/* One row of weights, rounded; an odd width gets a zero. o beyond the last: zeros. */
static void round_row(const ho_layer_layout *l, const ho_real *parameters, const ho_real *noise,
                      int32_t o, const ho_net_pack *pack, ho_bf16 *out)
{
    ho_real *wide = pack->wide;
    if (o >= l->out) {
        memset(out, 0, (size_t)(l->in + 1) * sizeof *out);
        return;
    }
    const ho_real *w = parameters + l->weight + (int64_t)o * l->in;
    if (noise && l->noisy) {
        for (int32_t i = 0; i < l->in; i++) {
            wide[i] = ho_net_weight(l, parameters, noise, o, i);
        }
        w = wide;
    }
    ho_bf16_get()->round(out, w, l->in);
    if (pack->e4m3 && !l->noisy) {
        round_weights_e4m3(out, l->in);
    }
    out[l->in] = 0;
}

/* Columns beyond the last one are multiplied too. */
static void clear_last_panel(ho_bf16_pair *panels, int32_t columns, int32_t pairs)
{
    enum { C = HO_GEMM_COLUMNS };
    if (columns % C) {
        memset(panels + (int64_t)(columns / C) * pairs * C, 0, (size_t)pairs * C * sizeof *panels);
    }
}

static void pack_layer(const ho_net_layout *net, ho_layer_id id, const ho_real *parameters,
                       const ho_real *noise, ho_net_pack *pack)
{
    enum { C = HO_GEMM_COLUMNS };
    const ho_layer_layout *l = &net->layer[id];
    const ho_bf16_set *set = ho_bf16_get();
    const int32_t in_pairs = pairs_of(l->in), out_pairs = pairs_of(l->out);
    ho_bf16 *const row[2] = {pack->rounded, pack->rounded + pack->rounded_row};
    ho_net_pack_bias(l, parameters, noise, pack->bias[id]);
    clear_last_panel(pack->forward_pair[id], l->out, in_pairs);
    if (pack->backward_pair[id]) {
        clear_last_panel(pack->backward_pair[id], l->in, out_pairs);
    }
    for (int32_t p = 0; p < out_pairs; p++) {
        for (int k = 0; k < 2; k++) {
            const int32_t o = 2 * p + k;
            round_row(l, parameters, noise, o, pack, row[k]);
            if (o < l->out) {
                ho_bf16_pair *to = pack->forward_pair[id] + (int64_t)(o / C) * in_pairs * C + o % C;
                const ho_bf16_pair *from = as_pairs(row[k]);
                for (int32_t i = 0; i < in_pairs; i++) {
                    to[(int64_t)i * C] = from[i];
                }
            }
        }
        for (int32_t n = 0; pack->backward_pair[id] && n < l->in; n += C) {
            set->pair(pack->backward_pair[id] + ((int64_t)(n / C) * out_pairs + p) * C, row[0] + n,
                      row[1] + n, l->in - n < C ? l->in - n : C);
        }
    }
}

static void take_input(const ho_net_layout *net, const ho_net_pack *pack, const ho_real *x,
                       int32_t n, ho_net_rows *rows)
{
    const ho_bf16_set *set = ho_bf16_get();
    for (int32_t r = 0; r < n; r++) {
        const int64_t at = (int64_t)r * rows->x_row;
        set->round(rows->x_half + at, x + at, net->state);
        if (pack->e4m3) {
            set->e4m3(rows->x_half + at, net->state, HO_E4M3_ACTIVATION);
        }
        rows->x_half[at + net->state] = 0; /* the partner of an odd last column */
    }
}

/* The rounded outputs of a layer, or the rounded input. */
static const ho_bf16 *halves(const ho_net_rows *rows, int below, int32_t *row)
{
    *row = below == HO_NET_INPUT ? rows->x_row : rows->row[below];
    return below == HO_NET_INPUT ? rows->x_half : rows->half[below];
}

static void forward(const ho_net_layout *net, const ho_net_pack *pack, ho_layer_id id, int below,
                    const ho_real *x, int32_t n, int leaky, ho_net_rows *rows)
{
    const ho_layer_layout *l = &net->layer[id];
    int32_t row;
    const ho_bf16 *in = halves(rows, below, &row);
    (void)x;
    const ho_bf16_gemm g = {
        .M = n,
        .N = l->out,
        .K = pairs_of(l->in),
        .a = as_pairs(in),
        .a_row = row / 2,
        .a_col = 1,
        .b = pack->forward_pair[id],
        .b_row = HO_GEMM_COLUMNS,
        .b_panel = (int64_t)pairs_of(l->in) * HO_GEMM_COLUMNS,
        .c = rows->act[id],
        .rounded = rows->half[id],
        .c_row = rows->row[id],
        .leaky = leaky,
        .bias = pack->bias[id],
    };
    ho_bf16_get()->gemm(&g);
    for (int32_t r = 0; rows->half[id] && r < n; r++) {
        ho_bf16 *out = rows->half[id] + (int64_t)r * rows->row[id];
        if (pack->e4m3) {
            ho_bf16_get()->e4m3(out, l->out, HO_E4M3_ACTIVATION);
        }
        if (l->out % 2) {
            out[l->out] = 0;
        }
    }
}

/* Pairs of rows of x [n, row]; an odd last row is paired with zeros. */
static void pair_rows(const ho_bf16 *x, int32_t n, int32_t row, int32_t width, ho_bf16_pair *out)
{
    const ho_bf16_set *set = ho_bf16_get();
    for (int32_t r = 0; r < n; r += 2) {
        const ho_bf16 *first = x + (int64_t)r * row;
        set->pair(out + (int64_t)(r / 2) * row, first, r + 1 < n ? first + row : NULL, width);
    }
}

static void gradient(const ho_net_layout *net, ho_layer_id id, int below, const ho_real *x,
                     int32_t n, ho_net_rows *rows, ho_real *out)
{
    const ho_layer_layout *l = &net->layer[id];
    const int32_t row = rows->row[id];
    int32_t in_row;
    const ho_bf16 *in = halves(rows, below, &in_row);
    (void)x;
    const ho_bf16_set *set = ho_bf16_get();
    for (int32_t r = 0; r < n; r++) {
        const int64_t at = (int64_t)r * row;
        set->round(rows->delta_half + at, rows->delta[id] + at, l->out);
        rows->delta_half[at + l->out] = 0;
    }
    pair_rows(rows->delta_half, n, row, l->out, rows->delta_pair);
    pair_rows(in, n, in_row, l->in, rows->act_pair);
    const ho_bf16_gemm g = {
        .M = l->out,
        .N = l->in,
        .K = pairs_of(n),
        .a = rows->delta_pair,
        .a_row = 1,
        .a_col = row,
        .b = rows->act_pair,
        .b_row = in_row,
        .b_panel = HO_GEMM_COLUMNS,
        .c = out + l->weight,
        .c_row = l->in,
    };
    set->gemm(&g);
    ho_net_bias_gradient(l, rows->delta[id], row, n, out);
}

static void back(const ho_net_layout *net, const ho_net_pack *pack, ho_layer_id id,
                 ho_layer_id below, int32_t n, int accumulate, ho_net_rows *rows)
{
    const ho_layer_layout *l = &net->layer[id];
    const ho_bf16_gemm g = {
        .M = n,
        .N = l->in,
        .K = pairs_of(l->out),
        .a = as_pairs(rows->delta_half), /* made by `gradient` */
        .a_row = rows->row[id] / 2,
        .a_col = 1,
        .b = pack->backward_pair[id],
        .b_row = HO_GEMM_COLUMNS,
        .b_panel = (int64_t)pairs_of(l->out) * HO_GEMM_COLUMNS,
        .c = rows->delta[below],
        .c_row = rows->row[below],
        .accumulate = accumulate,
    };
    ho_bf16_get()->gemm(&g);
}

static void activation_back(const ho_net_layout *net, ho_layer_id id, int32_t n, ho_real scale,
                            ho_net_rows *rows)
{
    const ho_bf16_set *set = ho_bf16_get();
    for (int32_t r = 0; r < n; r++) {
        const int64_t at = (int64_t)r * rows->row[id];
        set->leaky_backward(rows->delta[id] + at, rows->half[id] + at, scale, net->layer[id].out);
    }
}

const ho_net_ops ho_net_ops_bf16 = {
    .pack_layer = pack_layer,
    .take_input = take_input,
    .forward = forward,
    .gradient = gradient,
    .back = back,
    .activation_back = activation_back,
};
