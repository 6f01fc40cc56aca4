/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/net.h"

#include <string.h>

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
        const size_t in = (size_t)l->in, out = (size_t)l->out;
        pack->forward[i] = ho_carve_take(carve, in * (size_t)padded(l->out), sizeof(ho_real));
        pack->bias[i] = ho_carve_take(carve, (size_t)padded(l->out), sizeof(ho_real));
        if (with_backward && i != HO_LAYER_TRUNK0 && i != HO_LAYER_VALUE_TRUNK0) {
            pack->backward[i] = ho_carve_take(carve, out * (size_t)padded(l->in), sizeof(ho_real));
        }
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
            rows->act[i] = ho_carve_take(carve, count, sizeof(ho_real));
            if (with_delta) {
                rows->delta[i] = ho_carve_take(carve, count, sizeof(ho_real));
            }
        }
    }
    rows->q = rows->act[HO_LAYER_MAIN1];
    rows->q_row = rows->row[HO_LAYER_MAIN1];
    if (net->atoms > 1) {
        rows->q_row = ho_net_row(net->branches.outputs);
        rows->q = ho_carve_take(carve, (size_t)capacity * (size_t)rows->q_row, sizeof(ho_real));
    }
}

/* The weight of output o from input i, with the layer's noise. */
static inline ho_real weight_of(const ho_layer_layout *l, const ho_real *parameters,
                                const ho_real *noise, int32_t o, int32_t i)
{
    const int64_t at = (int64_t)o * l->in + i;
    const ho_real w = parameters[l->weight + at];
    if (!noise || !l->noisy) {
        return w;
    }
    return w + parameters[l->weight_sigma + at] * noise[l->noise + l->in + o] * noise[l->noise + i];
}

static void pack_layer(const ho_layer_layout *l, const ho_real *parameters, const ho_real *noise,
                       ho_real *forward, ho_real *backward, ho_real *bias)
{
    enum { C = HO_GEMM_COLUMNS };
    memset(bias, 0, (size_t)padded(l->out) * sizeof *bias);
    for (int32_t o = 0; o < l->out; o++) {
        bias[o] = parameters[l->bias + o];
        if (noise && l->noisy) {
            bias[o] += parameters[l->bias_sigma + o] * noise[l->noise + l->in + o];
        }
    }
    for (int32_t n = 0; n < l->out; n += C) {
        ho_real *panel = forward + (int64_t)n * l->in;
        const int32_t width = l->out - n < C ? l->out - n : C;
        if (width < C) {
            memset(panel, 0, (size_t)l->in * C * sizeof *panel);
        }
        for (int32_t j = 0; j < width; j++) {
            for (int32_t k = 0; k < l->in; k++) {
                panel[(int64_t)k * C + j] = weight_of(l, parameters, noise, n + j, k);
            }
        }
    }
    if (!backward) {
        return;
    }
    for (int32_t n = 0; n < l->in; n += C) {
        ho_real *panel = backward + (int64_t)n * l->out;
        const int32_t width = l->in - n < C ? l->in - n : C;
        if (width < C) {
            memset(panel, 0, (size_t)l->out * C * sizeof *panel);
        }
        for (int32_t k = 0; k < l->out; k++) {
            for (int32_t j = 0; j < width; j++) {
                panel[(int64_t)k * C + j] = weight_of(l, parameters, noise, k, n + j);
            }
        }
    }
}

void ho_net_pack_fill(ho_net_pack *pack, const ho_net_layout *net, const ho_real *parameters,
                      const ho_real *noise)
{
    for (int i = 0; i < HO_LAYERS; i++) {
        if (net->layer[i].out) {
            pack_layer(&net->layer[i], parameters, noise, pack->forward[i], pack->backward[i],
                       pack->bias[i]);
        }
    }
}

void ho_net_pack_renoise(ho_net_pack *pack, const ho_net_layout *net, const ho_real *parameters,
                         const ho_real *noise)
{
    for (int i = 0; i < HO_LAYERS; i++) {
        if (net->layer[i].noisy) {
            pack_layer(&net->layer[i], parameters, noise, pack->forward[i], pack->backward[i],
                       pack->bias[i]);
        }
    }
}

static void forward_layer(const ho_net_layout *net, const ho_net_pack *pack, ho_layer_id id,
                          const ho_real *x, int32_t x_row, int32_t n, int leaky, ho_net_rows *rows)
{
    const ho_layer_layout *l = &net->layer[id];
    const ho_gemm g = {
        .M = n,
        .N = l->out,
        .K = l->in,
        .a = x,
        .a_row = x_row,
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

void ho_net_forward(const ho_net_layout *net, const ho_net_pack *pack, const ho_real *x, int32_t n,
                    int streams, ho_net_rows *rows)
{
    const int value = net->has_value && (streams & HO_NET_VALUE);
    if ((streams & HO_NET_MAIN) || !net->separate) {
        forward_layer(net, pack, HO_LAYER_TRUNK0, x, rows->x_row, n, 1, rows);
        forward_layer(net, pack, HO_LAYER_TRUNK1, rows->act[HO_LAYER_TRUNK0],
                      rows->row[HO_LAYER_TRUNK0], n, 1, rows);
    }
    if (streams & HO_NET_MAIN) {
        forward_layer(net, pack, HO_LAYER_MAIN0, rows->act[HO_LAYER_TRUNK1],
                      rows->row[HO_LAYER_TRUNK1], n, 1, rows);
        forward_layer(net, pack, HO_LAYER_MAIN1, rows->act[HO_LAYER_MAIN0],
                      rows->row[HO_LAYER_MAIN0], n, 0, rows);
    }
    if (value) {
        ho_layer_id below = HO_LAYER_TRUNK1;
        if (net->separate) {
            below = HO_LAYER_VALUE_TRUNK1;
            forward_layer(net, pack, HO_LAYER_VALUE_TRUNK0, x, rows->x_row, n, 1, rows);
            forward_layer(net, pack, HO_LAYER_VALUE_TRUNK1, rows->act[HO_LAYER_VALUE_TRUNK0],
                          rows->row[HO_LAYER_VALUE_TRUNK0], n, 1, rows);
        }
        forward_layer(net, pack, HO_LAYER_VALUE0, rows->act[below], rows->row[below], n, 1, rows);
        forward_layer(net, pack, HO_LAYER_VALUE1, rows->act[HO_LAYER_VALUE0],
                      rows->row[HO_LAYER_VALUE0], n, 0, rows);
    }
}

/* dW = delta' x, db = column sums of delta. */
static void layer_gradient(const ho_net_layout *net, ho_layer_id id, const ho_real *x,
                           int32_t x_row, int32_t n, const ho_net_rows *rows, ho_real *gradient)
{
    const ho_layer_layout *l = &net->layer[id];
    const ho_real *delta = rows->delta[id];
    const int32_t row = rows->row[id];
    const ho_gemm g = {
        .M = l->out,
        .N = l->in,
        .K = n,
        .a = delta,
        .a_row = 1,
        .a_col = row,
        .b = x,
        .b_row = x_row,
        .b_panel = HO_GEMM_COLUMNS,
        .c = gradient + l->weight,
        .c_row = l->in,
    };
    ho_simd_get()->gemm(&g);
    ho_real *bias = gradient + l->bias;
    memset(bias, 0, (size_t)l->out * sizeof *bias);
    for (int32_t r = 0; r < n; r++) {
        ho_simd_get()->add(bias, delta + (int64_t)r * row, l->out);
    }
}

/* delta of the layer below (before its activation's slope), added to or overwritten. */
static void layer_back(const ho_net_layout *net, const ho_net_pack *pack, ho_layer_id id,
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

/* Both layers of a head, down to the delta of the trunk under it. */
static void head_backward(const ho_net_layout *net, const ho_net_pack *pack, ho_layer_id first,
                          ho_layer_id second, ho_layer_id trunk, int32_t n, int accumulate,
                          ho_net_rows *rows, ho_real *gradient)
{
    layer_gradient(net, second, rows->act[first], rows->row[first], n, rows, gradient);
    layer_back(net, pack, second, first, n, 0, rows);
    activation_back(net, first, n, 1, rows);
    layer_gradient(net, first, rows->act[trunk], rows->row[trunk], n, rows, gradient);
    layer_back(net, pack, first, trunk, n, accumulate, rows);
}

static void trunk_backward(const ho_net_layout *net, const ho_net_pack *pack, ho_layer_id first,
                           ho_layer_id second, const ho_real *x, int32_t n, ho_real scale,
                           ho_net_rows *rows, ho_real *gradient)
{
    activation_back(net, second, n, scale, rows);
    layer_gradient(net, second, rows->act[first], rows->row[first], n, rows, gradient);
    layer_back(net, pack, second, first, n, 0, rows);
    activation_back(net, first, n, 1, rows);
    layer_gradient(net, first, x, rows->x_row, n, rows, gradient);
}

void ho_net_backward(const ho_net_layout *net, const ho_net_pack *pack, const ho_real *x, int32_t n,
                     ho_real trunk_scale, ho_net_rows *rows, ho_real *gradient)
{
    head_backward(net, pack, HO_LAYER_MAIN0, HO_LAYER_MAIN1, HO_LAYER_TRUNK1, n, 0, rows, gradient);
    if (net->has_value) {
        const ho_layer_id trunk = net->separate ? HO_LAYER_VALUE_TRUNK1 : HO_LAYER_TRUNK1;
        head_backward(net, pack, HO_LAYER_VALUE0, HO_LAYER_VALUE1, trunk, n, !net->separate, rows,
                      gradient);
    }
    trunk_backward(net, pack, HO_LAYER_TRUNK0, HO_LAYER_TRUNK1, x, n, trunk_scale, rows, gradient);
    if (net->separate) {
        trunk_backward(net, pack, HO_LAYER_VALUE_TRUNK0, HO_LAYER_VALUE_TRUNK1, x, n, 1, rows,
                       gradient);
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
