/* SPDX-License-Identifier: Apache-2.0
 * The greedy network of an agent as an ONNX model (opset 13), for users who act elsewhere.
 *   input  "state"  [batch, S] float32: market features, then portfolio columns
 *   output "score"  [batch, outputs] float32: Q-values, or log-probabilities of a policy
 *   output "action" [batch] int64: the composed action in [0, 45)
 * Noise is left out, as in every evaluation. */
#ifndef HO_STUDY_ONNX_H
#define HO_STUDY_ONNX_H

#include <stddef.h>

#include "kernels/backend.h"
#include "study/safetensors.h"
#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* key: the shape the weights were trained in. v_max: of C51 (ho_agent_config). weights: as
 * ho_lane_export gives them. meta: n pairs (key, value) for the model's metadata; may be NULL with
 * n = 0. *bytes is malloc'ed, the caller's; the same input gives the same bytes.
 * HO_EINVAL: a tensor is missing or has another shape; err names it. HO_ENOMEM. */
ho_status ho_onnx_encode(const ho_cohort_key *key, double v_max, const ho_tensors *weights,
                         const char *const (*meta)[2], int n, void **bytes, size_t *size,
                         ho_err *err);

/* The same from a model file (worker/model.h): its settings give the shape, its metadata goes
 * along. HO_EDATA: not a model, err says what is missing; else as above. */
ho_status ho_onnx_from_model(const ho_safetensors *model, void **bytes, size_t *size, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
