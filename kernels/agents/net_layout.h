/* SPDX-License-Identifier: Apache-2.0
 * Where each tensor of a network lies in its flat parameter vector, and its name: one table for
 * both backends, checkpoints, safetensors and ONNX (docs/weights.md).
 *
 *   trunk.0 -> trunk.1 -> main.0 -> main.1     advantages, Q-values or policy logits
 *                      -> value.0 -> value.1   dueling DQN and PPO
 *   value_trunk.0 -> value_trunk.1 -> value.0  PPO with a value network of its own
 *
 * Invariants: 1. weights are row-major [out, in]. 2. every tensor starts at a multiple of
 * HO_TENSOR_ALIGN; the padding between tensors is and stays 0. 3. `main.1` has outputs of all
 * branches in order, `atoms` consecutive values each. */
#ifndef HO_KERNELS_AGENTS_NET_LAYOUT_H
#define HO_KERNELS_AGENTS_NET_LAYOUT_H

#include <stdint.h>

#include "kernels/agent_config.h"
#include "kernels/agents/branches.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HO_TENSOR_ALIGN = 16, HO_NET_TENSORS_MAX = 32 };

typedef enum ho_layer_id {
    HO_LAYER_TRUNK0,
    HO_LAYER_TRUNK1,
    HO_LAYER_MAIN0,
    HO_LAYER_MAIN1,
    HO_LAYER_VALUE0,
    HO_LAYER_VALUE1,
    HO_LAYER_VALUE_TRUNK0,
    HO_LAYER_VALUE_TRUNK1,
    HO_LAYERS
} ho_layer_id;

typedef struct ho_layer_layout {
    const char *name;                               /* "trunk.0" */
    int32_t in, out;                                /* out = 0: the network has no such layer */
    int32_t noisy;                                  /* the offsets of sigma are meant */
    int64_t weight, bias, weight_sigma, bias_sigma; /* offsets into the vector */
    int64_t noise; /* offset into the noise vector: [in], then [out]; -1 */
    double gain;   /* of the orthogonal initial weights */
} ho_layer_layout;

typedef struct ho_net_layout {
    ho_branches branches;
    int32_t state;     /* S */
    int32_t atoms;     /* values an output; 1 without C51 */
    int32_t has_value; /* value stream */
    int32_t separate;  /* value_trunk */
    int32_t bf16;      /* products take bf16 inputs */
    ho_layer_layout layer[HO_LAYERS];
    int64_t size;       /* length of the vector, padding included */
    int64_t count;      /* parameters */
    int64_t noise_size; /* length of the noise vector; 0 = not noisy */
} ho_net_layout;

/* Market and portfolio columns of a state. */
int32_t ho_state_width(const ho_cohort_key *key);

ho_net_layout ho_net_layout_of(const ho_cohort_key *key);

/* One named tensor inside the vector. */
typedef struct ho_net_tensor {
    char name[64]; /* "online.trunk.0.weight" */
    int32_t ndim;
    int64_t shape[2];
    int64_t offset, count;
} ho_net_tensor;

/* Fills out[HO_NET_TENSORS_MAX] in the fixed order of export; returns how many. */
int ho_net_layout_tensors(const ho_net_layout *layout, ho_net_tensor *out);

#ifdef __cplusplus
}
#endif
#endif
