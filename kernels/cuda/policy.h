/* SPDX-License-Identifier: Apache-2.0
 * The acting network as the experience and backtest kernels read it. The greedy action needs only
 * the advantages (argmax of V + A - mean(A) is argmax of A), a sampled one only the policy, so the
 * value's units are left out, but with C51, whose values are not linear in the outputs.
 * Four layers: state -> hidden1 -> hidden2 -> head(s) -> outputs.
 *
 * bf16: matrices in the order of mma.sync A fragments, one 16-byte word a thread:
 *   word [(tile * k_steps + step) * 32 + thread]; tile = 16 outputs, step = 16 inputs. Row g of a
 *   tile is output 2 g, row g + 8 is output 2 g + 1, so that a thread's two results of a column
 *   are neighbours.
 * fp8: the same words with weights rounded to E4M3 times their row's scale, exact in bf16.
 * float32: matrices transposed, [in][out]. So, whatever the precision, the last two layers of a
 * noisy network: mean weights, then as many sigmas.
 * Then the biases as floats, and of noisy layers their sigmas. Packed once an epoch from the
 * float32 parameters. */
#ifndef HO_CUDA_POLICY_H
#define HO_CUDA_POLICY_H

#include <cuda_runtime.h>
#include <stdint.h>

#include "kernels/cuda/device_net.h"
#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_policy_layer {
    int32_t in, out; /* padded to 16 */
    int32_t matrix;  /* byte offset of the packed matrix */
    int32_t bias;    /* byte offset of [out] floats */
    int32_t matrix_bytes;
    int32_t weight, stride, bias_from; /* in the parameter array: first weight, row length, bias */
    int32_t floats;                    /* 1: transposed floats, 0: bf16 fragments */
    int32_t sigma, sigma_bias;         /* byte offsets as matrix and bias; 0: not noisy */
} ho_policy_layer;

typedef struct ho_policy_net {
    ho_policy_layer layer[HO_DEVICE_LAYERS];
    ho_device_net net;
    ho_branches branches;
    int32_t actions;        /* A: values a state, of all branches */
    int32_t outputs;        /* rows of the last layer that are kept: A, with C51 all */
    int32_t atoms;          /* 1 without C51 */
    int32_t noise_size;     /* 0: not noisy */
    int32_t bf16;           /* products on the bf16 units: bf16 and fp8 */
    int32_t fp8;            /* weights are packed rounded to E4M3; may be cleared to pack bf16 */
    int32_t fragment_bytes; /* of bf16 fragments, from the start; floats follow */
    int32_t bias_at, bias_bytes; /* all biases, contiguous */
    int32_t scale_at;            /* fp8: an int32 scale a row of all fragments, in order */
    int32_t bytes;               /* of one packed policy; a multiple of 128 */
    int32_t hidden_max;          /* widest hidden layer */
} ho_policy_net;

ho_policy_net ho_policy_net_of(const ho_device_net *net, ho_precision precision);

/* HO_EUNSUPPORTED; err says what to make smaller. */
ho_status ho_policy_too_large(const ho_policy_net *policy, ho_err *err);

/* packed [K, bytes] from parameters [K, params] of slots [first, first + lanes). */
ho_status ho_policy_pack(const ho_policy_net *policy, const float *parameters, int params,
                         uint8_t *packed, int first, int lanes, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
