/* SPDX-License-Identifier: Apache-2.0
 * The market on the device: float64 tables as the host made them, features padded to HO_STATE_PAD
 * columns in float32 and short floats. One allocation; sigma tables and features rounded to E4M3
 * are added at their first use. */
#include <cuda_bf16.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/agents/e4m3.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/short_float.cuh"

enum { PAD_THREADS = 256, UPLOAD_ROWS = 65536 };

/* One thread a column of a row. */
static __global__ void __launch_bounds__(PAD_THREADS)
    pad_features(const float *__restrict__ from, int64_t rows, int F, float *__restrict__ f32,
                 __nv_bfloat16 *__restrict__ bf16)
{
    const int64_t i = (int64_t)blockIdx.x * PAD_THREADS + threadIdx.x;
    if (i >= rows * HO_STATE_PAD) {
        return;
    }
    const int column = (int)(i % HO_STATE_PAD);
    const float x = column < F ? from[i / HO_STATE_PAD * F + column] : 0.0f;
    f32[i] = x;
    bf16[i] = short_of(x);
}

static ho_device_pool *pool_of(const cuda_market *m)
{
    return &((cuda_backend *)m->base.backend)->pool;
}

static __global__ void __launch_bounds__(PAD_THREADS)
    round_features(const __nv_bfloat16 *__restrict__ from, int64_t n,
                   __nv_bfloat16 *__restrict__ to)
{
    const int64_t i = (int64_t)blockIdx.x * PAD_THREADS + threadIdx.x;
    if (i < n) {
        to[i] = short_of(ho_e4m3_of(float_of(from[i]), HO_E4M3_ACTIVATION));
    }
}

static size_t round_up(size_t n)
{
    return (n + 255) / 256 * 256;
}

/* Hands out the next slice; a NULL base only measures. */
static void *take(uint8_t *base, size_t *at, size_t bytes)
{
    void *p = base ? base + *at : NULL;
    *at += round_up(bytes);
    return p;
}

typedef struct market_slices {
    double *bars, *mean_volume, *roll_jump, *funding, *n_log2_n;
    uint8_t *bar_flags;
} market_slices;

static size_t carve(cuda_market *m, const ho_market_host *host, uint8_t *base, market_slices *s)
{
    const size_t T = (size_t)host->T;
    size_t at = 0;
    s->bars = (double *)take(base, &at, T * HO_BAR_COLUMNS * sizeof(double));
    s->mean_volume = (double *)take(base, &at, T * sizeof(double));
    s->roll_jump = host->view.roll_jump ? (double *)take(base, &at, T * sizeof(double)) : NULL;
    s->funding = host->view.funding ? (double *)take(base, &at, T * sizeof(double)) : NULL;
    s->n_log2_n = (double *)take(base, &at, (HO_DIVERSITY_MAX + 1) * sizeof(double));
    s->bar_flags = (uint8_t *)take(base, &at, T + 4);
    m->features_f32 = (float *)take(base, &at, T * HO_STATE_PAD * sizeof(float));
    m->features_bf16 = take(base, &at, T * HO_STATE_PAD * sizeof(__nv_bfloat16));
    return at;
}

static ho_status copy_up(void *to, const void *from, size_t bytes)
{
    return from ? ho_cuda_status(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice),
                                 "copy of market data")
                : HO_OK;
}

static ho_status upload_features(cuda_market *m, const ho_market_host *host)
{
    float *staged = NULL;
    ho_status rc = ho_device_pool_take(pool_of(m), (void **)&staged,
                                       (size_t)UPLOAD_ROWS * host->F * sizeof(float), NULL,
                                       "staging of features");
    for (int64_t row = 0; row < host->T && rc == HO_OK; row += UPLOAD_ROWS) {
        const int64_t rows = host->T - row < UPLOAD_ROWS ? host->T - row : UPLOAD_ROWS;
        rc = copy_up(staged, host->features + row * host->F, (size_t)(rows * host->F) * 4);
        if (rc == HO_OK) {
            const unsigned blocks =
                (unsigned)((rows * HO_STATE_PAD + PAD_THREADS - 1) / PAD_THREADS);
            pad_features<<<blocks, PAD_THREADS>>>(
                staged, rows, host->F, m->features_f32 + row * HO_STATE_PAD,
                (__nv_bfloat16 *)m->features_bf16 + row * HO_STATE_PAD);
            rc = ho_cuda_status(cudaGetLastError(), "pad_features");
        }
    }
    if (rc == HO_OK) {
        rc = ho_cuda_status(cudaDeviceSynchronize(), "pad_features");
    }
    ho_device_pool_release(pool_of(m), (void **)&staged, NULL);
    return rc;
}

static ho_status upload(cuda_market *m, const ho_market_host *host)
{
    const ho_market_view *v = &host->view;
    const size_t T = (size_t)host->T;
    market_slices s;
    const size_t bytes = carve(m, host, NULL, &s);
    ho_status rc =
        ho_device_pool_take(pool_of(m), (void **)&m->block, bytes, NULL, "memory of the market");
    if (rc != HO_OK) {
        return rc;
    }
    carve(m, host, m->block, &s);
    rc = copy_up(s.bars, v->bars, T * HO_BAR_COLUMNS * sizeof(double));
    rc = rc == HO_OK ? copy_up(s.mean_volume, v->mean_volume, T * sizeof(double)) : rc;
    rc = rc == HO_OK ? copy_up(s.roll_jump, v->roll_jump, T * sizeof(double)) : rc;
    rc = rc == HO_OK ? copy_up(s.funding, v->funding, T * sizeof(double)) : rc;
    rc = rc == HO_OK ? copy_up(s.n_log2_n, v->n_log2_n, (HO_DIVERSITY_MAX + 1) * sizeof(double))
                     : rc;
    rc = rc == HO_OK ? copy_up(s.bar_flags, v->bar_flags, T) : rc;
    rc = rc == HO_OK ? upload_features(m, host) : rc;
    m->view = *v;
    m->view.bars = s.bars;
    m->view.features = NULL; /* kernels read the padded copies */
    m->view.mean_volume = s.mean_volume;
    m->view.bar_flags = s.bar_flags;
    m->view.roll_jump = s.roll_jump;
    m->view.funding = s.funding;
    m->view.n_log2_n = s.n_log2_n;
    return rc;
}

ho_status ho_cuda_market_load(ho_backend *backend, ho_market_host *host, ho_market **out,
                              ho_err *err)
{
    cuda_backend *b = (cuda_backend *)backend;
    ho_status rc = ho_cuda_enter(b, err);
    if (rc != HO_OK) {
        return rc;
    }
    if (host->F > HO_STATE_PAD - HO_SEED54_FEATURES) {
        return ho_err_set(err, HO_EUNSUPPORTED, "%d market features; the GPU takes at most %d",
                          host->F, HO_STATE_PAD - HO_SEED54_FEATURES);
    }
    cuda_market *m = (cuda_market *)calloc(1, sizeof *m);
    if (!m) {
        return ho_err_set(err, HO_ENOMEM, "market: out of memory");
    }
    m->base.backend = backend; /* unload needs it */
    rc = upload(m, host);
    if (rc != HO_OK) {
        ho_cuda_market_unload(&m->base);
        return ho_cuda_leave(b, rc, err);
    }
    *out = &m->base;
    return HO_OK;
}

void ho_cuda_market_unload(ho_market *market)
{
    cuda_market *m = (cuda_market *)market;
    cudaSetDevice(((cuda_backend *)market->backend)->device);
    for (int i = 0; i < m->sigma_count; i++) {
        ho_device_pool_release(pool_of(m), (void **)&m->sigma[i].value, NULL);
    }
    ho_device_pool_release(pool_of(m), &m->features_e4m3, NULL);
    ho_device_pool_release(pool_of(m), (void **)&m->block, NULL);
    ho_device_pool_trim(pool_of(m)); /* a study ends with its market */
    free(m);
}

ho_status ho_cuda_market_e4m3(cuda_market *m)
{
    const int64_t n = m->view.T * HO_STATE_PAD;
    void *made = NULL;
    if (m->features_e4m3) {
        return HO_OK;
    }
    ho_status rc = ho_device_pool_take(pool_of(m), &made, (size_t)n * sizeof(__nv_bfloat16), NULL,
                                       "memory of features in E4M3");
    if (rc == HO_OK) {
        round_features<<<(unsigned)((n + PAD_THREADS - 1) / PAD_THREADS), PAD_THREADS>>>(
            (const __nv_bfloat16 *)m->features_bf16, n, (__nv_bfloat16 *)made);
        rc = ho_cuda_status(cudaGetLastError(), "round_features");
        rc = rc == HO_OK ? ho_cuda_status(cudaDeviceSynchronize(), "round_features") : rc;
    }
    if (rc != HO_OK) {
        ho_device_pool_release(pool_of(m), &made, NULL);
        return rc;
    }
    m->features_e4m3 = made;
    return HO_OK;
}

ho_status ho_cuda_market_sigma(cuda_market *m, ho_market_host *host, int32_t window,
                               const double **out, ho_err *err)
{
    for (int i = 0; i < m->sigma_count; i++) {
        if (m->sigma[i].window == window) {
            *out = m->sigma[i].value;
            return HO_OK;
        }
    }
    if (m->sigma_count == HO_SIGMA_TABLES) {
        return ho_err_set(err, HO_EUNSUPPORTED,
                          "more than %d values of env.sigma_window on one market", HO_SIGMA_TABLES);
    }
    const double *value = NULL;
    ho_status rc = ho_market_host_sigma(host, window, &value, err);
    if (rc != HO_OK) {
        return rc;
    }
    double *device = NULL;
    const size_t bytes = (size_t)host->T * sizeof(double);
    rc = ho_device_pool_take(pool_of(m), (void **)&device, bytes, NULL, "memory of a sigma table");
    rc = rc == HO_OK ? copy_up(device, value, bytes) : rc;
    rc = rc == HO_OK ? ho_cuda_wait(NULL, "copy of a sigma table") : rc; /* streams read it next */
    if (rc != HO_OK) {
        ho_device_pool_release(pool_of(m), (void **)&device, NULL);
        return ho_cuda_err(rc, err);
    }
    m->sigma[m->sigma_count].window = window;
    m->sigma[m->sigma_count++].value = device;
    *out = device;
    return HO_OK;
}
