/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/net.h"

#include <string.h>

#include "kernels/cpu/net_ops.h"

static int32_t padded(int32_t n)
{
    return (n + HO_GEMM_COLUMNS - 1) / HO_GEMM_COLUMNS * HO_GEMM_COLUMNS;
}

int32_t ho_net_row(int32_t width)
{
    return padded(width) + 64 / (int32_t)sizeof(ho_real);
}

void ho_net_pack_carve(ho_net_pack *pack, const ho_net_layout *net, int with_backward,
                       ho_carve *carve)
{
    memset(pack, 0, sizeof *pack);
    for (int i = 0; i < HO_LAYERS; i++) {
        const ho_layer_layout *l = &net->layer[i];
        if (!l->out) {
            continue;
        }
        const int backward = with_backward && i != HO_LAYER_TRUNK0 && i != HO_LAYER_VALUE_TRUNK0;
        const size_t in = (size_t)l->in, out = (size_t)l->out;
        const size_t forward_columns = (size_t)padded(l->out), back_columns = (size_t)padded(l->in);
        pack->bias[i] = ho_carve_take(carve, forward_columns, sizeof(ho_real));
        if (net->bf16) {
            pack->forward_pair[i] =
                ho_carve_take(carve, (in + 1) / 2 * forward_columns, sizeof(ho_bf16_pair));
            pack->rounded_row =
                pack->rounded_row > padded(l->in + 1) ? pack->rounded_row : padded(l->in + 1);
        } else {
            pack->forward[i] = ho_carve_take(carve, in * forward_columns, sizeof(ho_real));
        }
        if (backward && net->bf16) {
            pack->backward_pair[i] =
                ho_carve_take(carve, (out + 1) / 2 * back_columns, sizeof(ho_bf16_pair));
        } else if (backward) {
            pack->backward[i] = ho_carve_take(carve, out * back_columns, sizeof(ho_real));
        }
    }
    if (net->bf16) {
        pack->rounded = ho_carve_take(carve, 2 * (size_t)pack->rounded_row, sizeof(ho_bf16));
        pack->wide = ho_carve_take(carve, (size_t)pack->rounded_row, sizeof(ho_real));
    }
}

static int is_output(int layer)
{
    return layer == HO_LAYER_MAIN1 || layer == HO_LAYER_VALUE1;
}

/* What bf16 needs besides the outputs in float32. */
static void carve_halves(ho_net_rows *rows, const ho_net_layout *net, int with_delta,
                         ho_carve *carve)
{
    const size_t n = (size_t)rows->capacity;
    int32_t widest = rows->x_row;
    rows->x_half = ho_carve_take(carve, n * (size_t)rows->x_row, sizeof(ho_bf16));
    for (int i = 0; i < HO_LAYERS; i++) {
        if (net->layer[i].out && !is_output(i)) {
            rows->half[i] = ho_carve_take(carve, n * (size_t)rows->row[i], sizeof(ho_bf16));
        }
        widest = rows->row[i] > widest ? rows->row[i] : widest;
    }
    if (with_delta) {
        const size_t pairs = (n + 1) / 2 * (size_t)widest;
        rows->delta_half = ho_carve_take(carve, n * (size_t)widest, sizeof(ho_bf16));
        rows->delta_pair = ho_carve_take(carve, pairs, sizeof(ho_bf16_pair));
        rows->act_pair = ho_carve_take(carve, pairs, sizeof(ho_bf16_pair));
    }
}

void ho_net_rows_carve(ho_net_rows *rows, const ho_net_layout *net, int32_t capacity,
                       int with_delta, ho_carve *carve)
{
    memset(rows, 0, sizeof *rows);
    rows->capacity = capacity;
    rows->x_row = ho_net_row(net->state);
    for (int i = 0; i < HO_LAYERS; i++) {
        if (net->layer[i].out) {
            rows->row[i] = ho_net_row(net->layer[i].out);
            const size_t count = (size_t)capacity * (size_t)rows->row[i];
            if (!net->bf16 || is_output(i)) {
                rows->act[i] = ho_carve_take(carve, count, sizeof(ho_real));
            }
            if (with_delta) {
                rows->delta[i] = ho_carve_take(carve, count, sizeof(ho_real));
            }
        }
    }
    if (net->bf16) {
        carve_halves(rows, net, with_delta, carve);
    }
    rows->q = rows->act[HO_LAYER_MAIN1];
    rows->q_row = rows->row[HO_LAYER_MAIN1];
    if (net->atoms > 1) {
        rows->q_row = ho_net_row(net->branches.outputs);
        rows->q = ho_carve_take(carve, (size_t)capacity * (size_t)rows->q_row, sizeof(ho_real));
    }
}

/* ---- one layer in the precision of ho_real ---- */

void ho_net_pack_bias(const ho_layer_layout *l, const ho_real *parameters, const ho_real *noise,
                      ho_real *bias)
{
    memset(bias, 0, (size_t)padded(l->out) * sizeof *bias);
    for (int32_t o = 0; o < l->out; o++) {
        bias[o] = parameters[l->bias + o];
        if (noise && l->noisy) {
            bias[o] += parameters[l->bias_sigma + o] * noise[l->noise + l->in + o];
        }
    }
}

static void pack_layer(const ho_net_layout *net, ho_layer_id id, const ho_real *parameters,
                       const ho_real *noise, ho_net_pack *pack)
{
    enum { C = HO_GEMM_COLUMNS };
    const ho_layer_layout *l = &net->layer[id];
    ho_net_pack_bias(l, parameters, noise, pack->bias[id]);
    for (int32_t n = 0; n < l->out; n += C) {
        ho_real *panel = pack->forward[id] + (int64_t)n * l->in;
        const int32_t width = l->out - n < C ? l->out - n : C;
        if (width < C) {
            memset(panel, 0, (size_t)l->in * C * sizeof *panel);
        }
        for (int32_t j = 0; j < width; j++) {
            for (int32_t k = 0; k < l->in; k++) {
                panel[(int64_t)k * C + j] = ho_net_weight(l, parameters, noise, n + j, k);
            }
        }
    }
    for (int32_t n = 0; pack->backward[id] && n < l->in; n += C) {
        ho_real *panel = pack->backward[id] + (int64_t)n * l->out;
        const int32_t width = l->in - n < C ? l->in - n : C;
        if (width < C) {
            memset(panel, 0, (size_t)l->out * C * sizeof *panel);
        }
        for (int32_t k = 0; k < l->out; k++) {
            for (int32_t j = 0; j < width; j++) {
                panel[(int64_t)k * C + j] = ho_net_weight(l, parameters, noise, k, n + j);
            }
        }
    }
}

static void take_input(const ho_net_layout *net, const ho_net_pack *pack, const ho_real *x,
                       int32_t n, ho_net_rows *rows)
{
    (void)net; /* products read x itself */
    (void)pack;
    (void)x;
    (void)n;
    (void)rows;
}

/* The outputs of a layer, or the input. */
static const ho_real *outputs(const ho_net_rows *rows, int below, const ho_real *x, int32_t *row)
{
    *row = below == HO_NET_INPUT ? rows->x_row : rows->row[below];
    return below == HO_NET_INPUT ? x : rows->act[below];
}

static void forward(const ho_net_layout *net, const ho_net_pack *pack, ho_layer_id id, int below,
                    const ho_real *x, int32_t n, int leaky, ho_net_rows *rows)
{
    const ho_layer_layout *l = &net->layer[id];
    int32_t row;
    const ho_real *in = outputs(rows, below, x, &row);
    const ho_gemm g = {
        .M = n,
        .N = l->out,
        .K = l->in,
        .a = in,
        .a_row = row,
        .a_col = 1,
        .b = pack->forward[id],
        .b_row = HO_GEMM_COLUMNS,
        .b_panel = (int64_t)l->in * HO_GEMM_COLUMNS,
        .c = rows->act[id],
        .c_row = rows->row[id],
        .leaky = leaky,
        .bias = pack->bias[id],
    };
    ho_simd_get()->gemm(&g);
}

void ho_net_bias_gradient(const ho_layer_layout *l, const ho_real *delta, int32_t row, int32_t n,
                          ho_real *gradient)
{
    ho_real *bias = gradient + l->bias;
    memset(bias, 0, (size_t)l->out * sizeof *bias);
    for (int32_t r = 0; r < n; r++) {
        ho_simd_get()->add(bias, delta + (int64_t)r * row, l->out);
    }
}

static void gradient(const ho_net_layout *net, ho_layer_id id, int below, const ho_real *x,
                     int32_t n, ho_net_rows *rows, ho_real *out)
{
    const ho_layer_layout *l = &net->layer[id];
    int32_t in_row;
    const ho_real *in = outputs(rows, below, x, &in_row);
    const ho_gemm g = {
        .M = l->out,
        .N = l->in,
        .K = n,
        .a = rows->delta[id],
        .a_row = 1,
        .a_col = rows->row[id],
        .b = in,
        .b_row = in_row,
        .b_panel = HO_GEMM_COLUMNS,
        .c = out + l->weight,
        .c_row = l->in,
    };
    ho_simd_get()->gemm(&g);
    ho_net_bias_gradient(l, rows->delta[id], rows->row[id], n, out);
}

static void back(const ho_net_layout *net, const ho_net_pack *pack, ho_layer_id id,
                 ho_layer_id below, int32_t n, int accumulate, ho_net_rows *rows)
{
    const ho_layer_layout *l = &net->layer[id];
    const ho_gemm g = {
        .M = n,
        .N = l->in,
        .K = l->out,
        .a = rows->delta[id],
        .a_row = rows->row[id],
        .a_col = 1,
        .b = pack->backward[id],
        .b_row = HO_GEMM_COLUMNS,
        .b_panel = (int64_t)l->out * HO_GEMM_COLUMNS,
        .c = rows->delta[below],
        .c_row = rows->row[below],
        .accumulate = accumulate,
    };
    ho_simd_get()->gemm(&g);
}

static void activation_back(const ho_net_layout *net, ho_layer_id id, int32_t n, ho_real scale,
                            ho_net_rows *rows)
{
    for (int32_t r = 0; r < n; r++) {
        const int64_t at = (int64_t)r * rows->row[id];
        ho_simd_get()->leaky_backward(rows->delta[id] + at, rows->act[id] + at, scale,
                                      net->layer[id].out);
    }
}

static const ho_net_ops *ops_of(const ho_net_layout *net)
{
    static const ho_net_ops plain = {
        .pack_layer = pack_layer,
        .take_input = take_input,
        .forward = forward,
        .gradient = gradient,
        .back = back,
        .activation_back = activation_back,
    };
#ifndef HO_REAL_F64
    if (net->bf16) {
        return &ho_net_ops_bf16;
    }
#endif
    (void)net;
    return &plain;
}

/* ---- the passes ---- */

void ho_net_pack_fill(ho_net_pack *pack, const ho_net_layout *net, const ho_real *parameters,
                      const ho_real *noise)
{
    for (int i = 0; i < HO_LAYERS; i++) {
        if (net->layer[i].out) {
            ops_of(net)->pack_layer(net, (ho_layer_id)i, parameters, noise, pack);
        }
    }
}

void ho_net_pack_renoise(ho_net_pack *pack, const ho_net_layout *net, const ho_real *parameters,
                         const ho_real *noise)
{
    for (int i = 0; i < HO_LAYERS; i++) {
        if (net->layer[i].noisy) {
            ops_of(net)->pack_layer(net, (ho_layer_id)i, parameters, noise, pack);
        }
    }
}

void ho_net_forward(const ho_net_layout *net, const ho_net_pack *pack, const ho_real *x, int32_t n,
                    int streams, ho_net_rows *rows)
{
    const ho_net_ops *ops = ops_of(net);
    ops->take_input(net, pack, x, n, rows);
    if ((streams & HO_NET_MAIN) || !net->separate) {
        ops->forward(net, pack, HO_LAYER_TRUNK0, HO_NET_INPUT, x, n, 1, rows);
        ops->forward(net, pack, HO_LAYER_TRUNK1, HO_LAYER_TRUNK0, x, n, 1, rows);
    }
    if (streams & HO_NET_MAIN) {
        ops->forward(net, pack, HO_LAYER_MAIN0, HO_LAYER_TRUNK1, x, n, 1, rows);
        ops->forward(net, pack, HO_LAYER_MAIN1, HO_LAYER_MAIN0, x, n, 0, rows);
    }
    if (net->has_value && (streams & HO_NET_VALUE)) {
        ho_layer_id below = HO_LAYER_TRUNK1;
        if (net->separate) {
            below = HO_LAYER_VALUE_TRUNK1;
            ops->forward(net, pack, HO_LAYER_VALUE_TRUNK0, HO_NET_INPUT, x, n, 1, rows);
            ops->forward(net, pack, HO_LAYER_VALUE_TRUNK1, HO_LAYER_VALUE_TRUNK0, x, n, 1, rows);
        }
        ops->forward(net, pack, HO_LAYER_VALUE0, (int)below, x, n, 1, rows);
        ops->forward(net, pack, HO_LAYER_VALUE1, HO_LAYER_VALUE0, x, n, 0, rows);
    }
}

/* What a backward pass hands from layer to layer. */
typedef struct backward {
    const ho_net_ops *ops;
    const ho_net_layout *net;
    const ho_net_pack *pack;
    const ho_real *x;
    int32_t n;
    ho_net_rows *rows;
    ho_real *gradient;
} backward;

static void layer_gradient(const backward *b, ho_layer_id id, int below)
{
    b->ops->gradient(b->net, id, below, b->x, b->n, b->rows, b->gradient);
}

static void layer_back(const backward *b, ho_layer_id id, ho_layer_id below, int accumulate)
{
    b->ops->back(b->net, b->pack, id, below, b->n, accumulate, b->rows);
}

/* Both layers of a head, down to the delta of the trunk under it. */
static void head_backward(const backward *b, ho_layer_id first, ho_layer_id second,
                          ho_layer_id trunk, int accumulate)
{
    layer_gradient(b, second, (int)first);
    layer_back(b, second, first, 0);
    b->ops->activation_back(b->net, first, b->n, 1, b->rows);
    layer_gradient(b, first, (int)trunk);
    layer_back(b, first, trunk, accumulate);
}

static void trunk_backward(const backward *b, ho_layer_id first, ho_layer_id second, ho_real scale)
{
    b->ops->activation_back(b->net, second, b->n, scale, b->rows);
    layer_gradient(b, second, (int)first);
    layer_back(b, second, first, 0);
    b->ops->activation_back(b->net, first, b->n, 1, b->rows);
    layer_gradient(b, first, HO_NET_INPUT);
}

void ho_net_backward(const ho_net_layout *net, const ho_net_pack *pack, const ho_real *x, int32_t n,
                     ho_real trunk_scale, ho_net_rows *rows, ho_real *gradient)
{
    const backward b = {ops_of(net), net, pack, x, n, rows, gradient};
    head_backward(&b, HO_LAYER_MAIN0, HO_LAYER_MAIN1, HO_LAYER_TRUNK1, 0);
    if (net->has_value) {
        const ho_layer_id trunk = net->separate ? HO_LAYER_VALUE_TRUNK1 : HO_LAYER_TRUNK1;
        head_backward(&b, HO_LAYER_VALUE0, HO_LAYER_VALUE1, trunk, !net->separate);
    }
    trunk_backward(&b, HO_LAYER_TRUNK0, HO_LAYER_TRUNK1, trunk_scale);
    if (net->separate) {
        trunk_backward(&b, HO_LAYER_VALUE_TRUNK0, HO_LAYER_VALUE_TRUNK1, 1);
    }
}

void ho_net_noise_gradient(const ho_net_layout *net, const ho_real *noise, ho_real *gradient)
{
    for (int i = 0; i < HO_LAYERS; i++) {
        const ho_layer_layout *l = &net->layer[i];
        if (!l->out || !l->noisy) {
            continue;
        }
        const ho_real *in = noise + l->noise, *out = in + l->in;
        for (int32_t o = 0; o < l->out; o++) {
            const int64_t at = (int64_t)o * l->in;
            for (int32_t k = 0; k < l->in; k++) {
                gradient[l->weight_sigma + at + k] = gradient[l->weight + at + k] * out[o] * in[k];
            }
            gradient[l->bias_sigma + o] = gradient[l->bias + o] * out[o];
        }
    }
}
