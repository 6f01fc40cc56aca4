/* SPDX-License-Identifier: Apache-2.0
 * How one agent's network lies in device memory. Every network here is a chain of four dense
 * layers: state -> hidden1 -> hidden2 -> heads -> outputs. With dueling the third layer holds the
 * hidden units of both heads side by side (advantage first) and the last one is block-diagonal:
 * rows [0, values) read the advantage half, the rows from `values` on read the value half. The
 * blocks off the diagonal are zero and stay zero: their gradient is masked.
 * The last layer's rows: the choices of all branches in order, `atoms` rows each, then with dueling
 * the `atoms` rows of the state's value. PPO's policy and value heads lie like advantages and
 * value; with a value network of its own the first three layers hold the units of both networks
 * side by side, policy first, and all but the first layer are block-diagonal.
 *
 * All parameters of a lane are one float array [params]: the four matrices, row-major [out, in],
 * then the four bias vectors; with noise the sigmas of the last two layers, in the same order.
 * Widths are padded to 16; padded weights are zero and stay zero, since a padded input is 0 and a
 * padded unit sends no gradient. */
#ifndef HO_CUDA_DEVICE_NET_H
#define HO_CUDA_DEVICE_NET_H

#include <stdint.h>

#include "kernels/agent_config.h"
#include "kernels/agents/branches.h"
#include "kernels/agents/net_layout.h"
#include "kernels/env/config.h"
#include "kernels/hd.h"
#include "kernels/shapes.h"

enum {
    HO_DEVICE_LAYERS = 4,
    HO_STATE_PAD = 64, /* columns of a state row on the device; F + portfolio features <= 64 */
    HO_WIDTH_PAD = 16,
    HO_NOISE_HEADS = 4,  /* layers that have noise of their own */
    HO_NOISY_LAYERS = 2, /* the heads: the first layer above the trunk, and of those with sigmas */
};

typedef struct ho_device_dense {
    int32_t in, out; /* padded */
    int32_t weight;  /* first float of [out, in] in the parameter array */
    int32_t bias;    /* first float of [out] likewise */
} ho_device_dense;

typedef struct ho_device_net {
    ho_device_dense layer[HO_DEVICE_LAYERS];
    ho_branches branches;
    int32_t actions;                /* A: choices of the advantages or the policy, all branches */
    int32_t atoms;                  /* rows a choice; 1 without C51 */
    int32_t values;                 /* A * atoms: the value's first row */
    int32_t outputs;                /* used rows of the last layer: (A + dueling) * atoms */
    int32_t dueling;                /* 1: the last layer has rows of the state's value */
    int32_t separate;               /* 1: the value has hidden layers of its own */
    int32_t noisy;                  /* the last two layers have sigmas */
    int32_t half[HO_DEVICE_LAYERS]; /* units of a layer that belong to the policy or the
                                       advantages; those of the value follow */
    int32_t hidden2;                /* units of the second layer, as asked for */
    int32_t head;                   /* hidden units of one head, as asked for */
    int32_t head_pad;               /* columns of one head: the value half starts here */
    float trunk_scale;  /* of the gradient that the heads hand to the trunk (Tavakoli 2018) */
    int32_t weights;    /* floats in the matrices; a multiple of 8 */
    int32_t means;      /* floats in matrices and biases; sigmas follow */
    int32_t params;     /* floats in all; a multiple of 8 */
    int32_t noise_size; /* floats of one draw of noise (kernels/cuda/noise.cuh); 0: not noisy */
    int32_t noise_from[HO_NOISE_HEADS]; /* main.0, main.1, value.0, value.1: of net_layout.h */
    int32_t portfolio;                  /* portfolio features: 9 or 3 */
    int32_t market;                     /* market features */
} ho_device_net;

static inline HO_HD int32_t ho_pad_width(int32_t width)
{
    return (width + HO_WIDTH_PAD - 1) / HO_WIDTH_PAD * HO_WIDTH_PAD;
}

/* 1 where layer l has a weight at (row, column); 0 off the diagonal and on the padding of the last
 * layer. (Padding elsewhere gets no gradient: its inputs are 0, its units send nothing back.) */
static inline HO_HD int ho_device_net_has(const ho_device_net *net, int l, int row, int column)
{
    const int value_column = l > 0 && column >= net->half[l - 1];
    if (l < HO_DEVICE_LAYERS - 1) {
        return l == 0 || !net->separate || (row >= net->half[l]) == value_column;
    }
    if (row >= net->outputs) {
        return 0;
    }
    if (!net->dueling) {
        return column < net->head;
    }
    return value_column == (row >= net->values) &&
           column - value_column * net->head_pad < net->head;
}

/* Layers 1 and 2 of a `separate` network are two blocks on the diagonal. Which of them `count`
 * units from `first` on belong to when the second begins at `boundary`: 0 or 1; -1: both, or the
 * layer is in one piece. */
static inline HO_HD int ho_device_net_half(const ho_device_net *net, int l, int boundary, int first,
                                           int count)
{
    if (!net->separate || (l != 1 && l != 2)) {
        return -1;
    }
    return first + count <= boundary ? 0 : first >= boundary ? 1 : -1;
}

/* Where the sigma of parameter `at` of the last two layers lies: at + ho_device_net_sigma_*. */
static inline HO_HD int32_t ho_device_net_sigma_weight(const ho_device_net *net)
{
    return net->means - net->layer[HO_NOISY_LAYERS].weight;
}

static inline HO_HD int32_t ho_device_net_sigma_bias(const ho_device_net *net)
{
    return net->means + net->weights - net->layer[HO_NOISY_LAYERS].weight -
           net->layer[HO_NOISY_LAYERS].bias;
}

/* The layout of a cohort's networks. */
static inline ho_device_net ho_device_net_of(const ho_cohort_key *key)
{
    ho_device_net net = {0};
    net.portfolio = key->state_form == HO_STATE_SEED54 ? HO_SEED54_FEATURES : HO_PORTFOLIO_FEATURES;
    net.market = key->market_features;
    const int ppo = key->algorithm == HO_PPO;
    net.branches = ho_branches_of(key);
    net.actions = net.branches.outputs;
    net.atoms = !ppo && key->atoms > 1 ? key->atoms : 1;
    net.dueling = ppo || key->dueling;
    net.separate = ppo && key->ppo_separate;
    net.noisy = !ppo && key->noisy;
    net.values = net.actions * net.atoms;
    net.outputs = net.values + net.dueling * net.atoms;
    net.hidden2 = key->hidden2;
    net.trunk_scale =
        !ppo && net.branches.count > 1 ? 1.0f / (float)(net.branches.count + 1) : 1.0f;
    net.head = key->head;
    net.head_pad = ho_pad_width(key->head);
    const int32_t heads = net.dueling ? 2 : 1, trunks = net.separate ? 2 : 1;
    const int32_t half[HO_DEVICE_LAYERS] = {ho_pad_width(key->hidden1), ho_pad_width(key->hidden2),
                                            net.head_pad, ho_pad_width(net.outputs)};
    const int32_t width[HO_DEVICE_LAYERS + 1] = {HO_STATE_PAD, trunks * half[0], trunks * half[1],
                                                 heads * half[2], half[3]};
    int32_t at = 0;
    for (int l = 0; l < HO_DEVICE_LAYERS; l++) {
        net.layer[l].in = width[l];
        net.layer[l].out = width[l + 1];
        net.half[l] = half[l];
        net.layer[l].weight = at;
        at += width[l] * width[l + 1];
    }
    net.weights = at;
    for (int l = 0; l < HO_DEVICE_LAYERS; l++) {
        net.layer[l].bias = at;
        at += width[l + 1];
    }
    net.means = at;
    if (net.noisy) {
        const ho_layer_id head[HO_NOISE_HEADS] = {HO_LAYER_MAIN0, HO_LAYER_MAIN1, HO_LAYER_VALUE0,
                                                  HO_LAYER_VALUE1};
        const ho_net_layout layout = ho_net_layout_of(key);
        for (int i = 0; i < HO_NOISE_HEADS; i++) {
            net.noise_from[i] = (int32_t)layout.layer[head[i]].noise;
        }
        at += net.means - net.layer[HO_NOISY_LAYERS].weight -
              (net.layer[HO_NOISY_LAYERS].bias - net.weights);
        net.noise_size = 2 * (width[2] + width[3]) + width[4];
    }
    net.params = at;
    return net;
}

#endif
