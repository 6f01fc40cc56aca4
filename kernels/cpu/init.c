/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/init.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/agents/explore.h"
#include "kernels/env/rng.h"

/* out[n] standard normal numbers. */
static void normals(const uint32_t key[2], uint32_t stream, int64_t n, double *out)
{
    for (int64_t i = 0; i < n; i += 2) {
        const ho_rng4 r = ho_rng(key, (uint32_t)(i / 2), stream, 0, HO_RNG_INIT, 0);
        out[i] = (double)ho_rng_normal(r.v[0], r.v[1]);
        if (i + 1 < n) {
            out[i + 1] = (double)ho_rng_normal(r.v[2], r.v[3]);
        }
    }
}

/* Makes the rows of a [rows, columns] orthonormal, rows <= columns: Gram-Schmidt, done twice a row
 * ("twice is enough", Parlett 1980). */
static void orthonormal_rows(double *a, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++) {
        double *x = a + i * columns;
        for (int64_t j = 0; j < 2 * i; j++) {
            const double *y = a + j % i * columns;
            double dot = 0.0;
            for (int64_t k = 0; k < columns; k++) {
                dot += x[k] * y[k];
            }
            for (int64_t k = 0; k < columns; k++) {
                x[k] -= dot * y[k];
            }
        }
        double norm = 0.0;
        for (int64_t k = 0; k < columns; k++) {
            norm += x[k] * x[k];
        }
        norm = 1.0 / sqrt(norm);
        for (int64_t k = 0; k < columns; k++) {
            x[k] *= norm;
        }
    }
}

ho_status ho_init_matrix(int32_t init, double gain, int32_t out, int32_t in, const uint32_t key[2],
                         uint32_t stream, ho_real *weight)
{
    const int64_t count = (int64_t)out * in;
    double *a = malloc((size_t)count * sizeof *a);
    if (!a) {
        return HO_ENOMEM;
    }
    normals(key, stream, count, a);
    if (init == HO_INIT_HE) {
        const double deviation = sqrt(2.0 / ((1.0 + 0.01 * 0.01) * in));
        for (int64_t i = 0; i < count; i++) {
            weight[i] = (ho_real)(deviation * a[i]);
        }
    } else if (out <= in) {
        orthonormal_rows(a, out, in);
        for (int64_t i = 0; i < count; i++) {
            weight[i] = (ho_real)(gain * a[i]);
        }
    } else { /* columns orthonormal: a is read as [in, out] */
        orthonormal_rows(a, in, out);
        for (int64_t o = 0; o < out; o++) {
            for (int64_t k = 0; k < in; k++) {
                weight[o * in + k] = (ho_real)(gain * a[k * out + o]);
            }
        }
    }
    free(a);
    return HO_OK;
}

static void uniform(const uint32_t key[2], uint32_t stream, int64_t n, double bound, ho_real *out)
{
    for (int64_t i = 0; i < n; i++) {
        const ho_rng4 r = ho_rng(key, (uint32_t)(i / 4), stream, 1, HO_RNG_INIT, 0);
        out[i] = (ho_real)(bound * (2.0 * (double)ho_rng_float(r.v[i % 4]) - 1.0));
    }
}

ho_status ho_net_init(const ho_net_layout *net, int32_t init, double noisy_sigma0,
                      const uint32_t key[2], uint32_t stream, ho_real *parameters)
{
    memset(parameters, 0, (size_t)net->size * sizeof *parameters);
    for (int i = 0; i < HO_LAYERS; i++) {
        const ho_layer_layout *l = &net->layer[i];
        const uint32_t at = stream * HO_LAYERS + (uint32_t)i;
        if (!l->out) {
            continue;
        }
        if (l->noisy) {
            const double bound = 1.0 / sqrt((double)l->in);
            const ho_real sigma = (ho_real)(noisy_sigma0 * bound);

            uniform(key, at, (int64_t)l->in * l->out, bound, parameters + l->weight);
            uniform(key, at + 0x1000, l->out, bound, parameters + l->bias);
            for (int64_t k = 0; k < (int64_t)l->in * l->out; k++) {
                parameters[l->weight_sigma + k] = sigma;
            }
            for (int64_t k = 0; k < l->out; k++) {
                parameters[l->bias_sigma + k] = sigma;
            }
        } else if (ho_init_matrix(init, l->gain, l->out, l->in, key, at, parameters + l->weight) !=
                   HO_OK) {
            return HO_ENOMEM;
        }
    }
    return HO_OK;
}

void ho_net_noise(const ho_net_layout *net, const uint32_t key[2], uint32_t step, uint32_t epoch,
                  ho_noise_user user, ho_real *noise)
{
    for (int64_t i = 0; i < net->noise_size; i += 2) {
        const ho_rng4 r = ho_rng(key, step, (uint32_t)user, epoch, HO_RNG_NOISE, (uint32_t)(i / 2));
        noise[i] = ho_noise_shape((ho_real)ho_rng_normal(r.v[0], r.v[1]));
        noise[i + 1] = ho_noise_shape((ho_real)ho_rng_normal(r.v[2], r.v[3]));
    }
}
