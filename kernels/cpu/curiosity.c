/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/curiosity.h"

#include <string.h>

#include "kernels/cpu/init.h"
#include "kernels/cpu/simd.h"

enum {
    IN = HO_CURIOSITY_IN,
    HIDDEN = HO_CURIOSITY_HIDDEN,
    OUT = HO_CURIOSITY_OUT,
    X_ROW = 64,
    COLUMNS = HO_GEMM_COLUMNS,
    INIT_STREAM = 0x10000, /* apart from the agent's networks */
};

void ho_curiosity_carve(ho_curiosity *c, ho_carve *carve)
{
    c->parameter = ho_carve_take(carve, HO_CURIOSITY_SIZE, sizeof(float));
    c->m = ho_carve_take(carve, HO_CURIOSITY_SIZE, sizeof(float));
    c->v = ho_carve_take(carve, HO_CURIOSITY_SIZE, sizeof(float));
    c->first = ho_carve_take(carve, IN * HIDDEN, sizeof(float));
    c->second = ho_carve_take(carve, HIDDEN * OUT, sizeof(float));
    c->second_back = ho_carve_take(carve, HIDDEN * OUT, sizeof(float));
}

void ho_curiosity_rows_carve(ho_curiosity_rows *r, int32_t rows, int training, ho_carve *carve)
{
    const size_t n = (size_t)rows;
    memset(r, 0, sizeof *r);
    r->x = ho_carve_take(carve, n * X_ROW, sizeof(float));
    r->hidden = ho_carve_take(carve, n * HIDDEN, sizeof(float));
    r->out = ho_carve_take(carve, n * OUT, sizeof(float));
    if (training) {
        r->dhidden = ho_carve_take(carve, n * HIDDEN, sizeof(float));
        r->dout = ho_carve_take(carve, n * OUT, sizeof(float));
        r->gradient = ho_carve_take(carve, HO_CURIOSITY_SIZE, sizeof(float));
    }
}

ho_status ho_curiosity_parameters(const uint32_t key[2], float *parameter)
{
    memset(parameter, 0, HO_CURIOSITY_SIZE * sizeof *parameter);
    const ho_status rc =
        ho_init_matrix(HO_INIT_HE, 1.0, HIDDEN, IN, key, INIT_STREAM, parameter + HO_CURIOSITY_W1);
    return rc == HO_OK ? ho_init_matrix(HO_INIT_HE, 1.0, OUT, HIDDEN, key, INIT_STREAM + 1,
                                        parameter + HO_CURIOSITY_W2)
                       : rc;
}

ho_status ho_curiosity_init(ho_curiosity *c, const uint32_t key[2])
{
    const ho_status rc = ho_curiosity_parameters(key, c->parameter);
    ho_curiosity_pack(c);
    return rc;
}

void ho_curiosity_pack(ho_curiosity *c)
{
    const float *w1 = c->parameter + HO_CURIOSITY_W1, *w2 = c->parameter + HO_CURIOSITY_W2;
    for (int o = 0; o < HIDDEN; o++) {
        for (int k = 0; k < IN; k++) {
            c->first[(o / COLUMNS * IN + k) * COLUMNS + o % COLUMNS] = w1[o * IN + k];
        }
    }
    for (int o = 0; o < OUT; o++) {
        for (int k = 0; k < HIDDEN; k++) {
            c->second[k * COLUMNS + o] = w2[o * HIDDEN + k];
            c->second_back[(k / COLUMNS * OUT + o) * COLUMNS + k % COLUMNS] = w2[o * HIDDEN + k];
        }
    }
}

void ho_curiosity_input(ho_curiosity_rows *r, int32_t i, const float *features, int32_t category)
{
    float *x = r->x + (int64_t)i * X_ROW;
    memcpy(x, features, HO_CURIOSITY_FEATURES * sizeof *x);
    for (int k = 0; k < 3; k++) {
        x[HO_CURIOSITY_FEATURES + k] = k == category ? 1.0f : 0.0f;
    }
}

void ho_curiosity_forward(const ho_curiosity *c, int32_t n, ho_curiosity_rows *r)
{
    const ho_gemm first = {.M = n,
                           .N = HIDDEN,
                           .K = IN,
                           .a = r->x,
                           .a_row = X_ROW,
                           .a_col = 1,
                           .b = c->first,
                           .b_row = COLUMNS,
                           .b_panel = IN * COLUMNS,
                           .c = r->hidden,
                           .c_row = HIDDEN,
                           .leaky = 1,
                           .bias = c->parameter + HO_CURIOSITY_B1};
    const ho_gemm second = {.M = n,
                            .N = OUT,
                            .K = HIDDEN,
                            .a = r->hidden,
                            .a_row = HIDDEN,
                            .a_col = 1,
                            .b = c->second,
                            .b_row = COLUMNS,
                            .b_panel = HIDDEN * COLUMNS,
                            .c = r->out,
                            .c_row = OUT,
                            .bias = c->parameter + HO_CURIOSITY_B2};
    ho_simd_get()->gemm(&first);
    ho_simd_get()->gemm(&second);
}

float ho_curiosity_error(const ho_curiosity_rows *r, int32_t i, const float *next_features)
{
    float sum = 0.0f;
    for (int k = 0; k < OUT; k++) {
        const float e = r->out[i * OUT + k] - next_features[k];
        sum += e * e;
    }
    return sum / OUT;
}

void ho_curiosity_backward(const ho_curiosity *c, int32_t n, int32_t batch,
                           const float *const *next, ho_curiosity_rows *r)
{
    float *g = r->gradient;
    memset(g, 0, HO_CURIOSITY_SIZE * sizeof *g);
    const float scale = 2.0f / ((float)OUT * (float)batch);
    for (int32_t i = 0; i < n; i++) {
        for (int k = 0; k < OUT; k++) {
            r->dout[i * OUT + k] = scale * (r->out[i * OUT + k] - next[i][k]);
        }
        ho_simd_get()->add(g + HO_CURIOSITY_B2, r->dout + (int64_t)i * OUT, OUT);
    }
    const ho_gemm w2 = {.M = OUT,
                        .N = HIDDEN,
                        .K = n,
                        .a = r->dout,
                        .a_row = 1,
                        .a_col = OUT,
                        .b = r->hidden,
                        .b_row = HIDDEN,
                        .b_panel = COLUMNS,
                        .c = g + HO_CURIOSITY_W2,
                        .c_row = HIDDEN};
    const ho_gemm down = {.M = n,
                          .N = HIDDEN,
                          .K = OUT,
                          .a = r->dout,
                          .a_row = OUT,
                          .a_col = 1,
                          .b = c->second_back,
                          .b_row = COLUMNS,
                          .b_panel = OUT * COLUMNS,
                          .c = r->dhidden,
                          .c_row = HIDDEN};
    const ho_gemm w1 = {.M = HIDDEN,
                        .N = IN,
                        .K = n,
                        .a = r->dhidden,
                        .a_row = 1,
                        .a_col = HIDDEN,
                        .b = r->x,
                        .b_row = X_ROW,
                        .b_panel = COLUMNS,
                        .c = g + HO_CURIOSITY_W1,
                        .c_row = IN};
    ho_simd_get()->gemm(&w2);
    ho_simd_get()->gemm(&down);
    for (int32_t i = 0; i < n; i++) {
        ho_simd_get()->leaky_backward(r->dhidden + (int64_t)i * HIDDEN,
                                      r->hidden + (int64_t)i * HIDDEN, 1.0f, HIDDEN);
        ho_simd_get()->add(g + HO_CURIOSITY_B1, r->dhidden + (int64_t)i * HIDDEN, HIDDEN);
    }
    ho_simd_get()->gemm(&w1);
}
