/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/agents/net_layout.h"

#include <math.h>
#include <stdio.h>

int32_t ho_state_width(const ho_cohort_key *key)
{
    return key->market_features +
           (key->state_form == HO_STATE_SEED54 ? HO_SEED54_FEATURES : HO_PORTFOLIO_FEATURES);
}

static int64_t place(int64_t *at, int64_t count)
{
    const int64_t here = *at;
    *at = (here + count + HO_TENSOR_ALIGN - 1) / HO_TENSOR_ALIGN * HO_TENSOR_ALIGN;
    return here;
}

static void add_layer(ho_net_layout *net, ho_layer_id id, const char *name, int32_t in, int32_t out,
                      int noisy, double gain)
{
    ho_layer_layout *l = &net->layer[id];
    const int64_t weights = (int64_t)in * out;
    l->name = name;
    l->in = in;
    l->out = out;
    l->noisy = noisy;
    l->gain = gain;
    l->weight = place(&net->size, weights);
    l->bias = place(&net->size, out);
    net->count += weights + out;
    if (noisy) {
        l->weight_sigma = place(&net->size, weights);
        l->bias_sigma = place(&net->size, out);
        l->noise = place(&net->noise_size, (int64_t)in + out);
        net->count += weights + out;
    }
}

ho_net_layout ho_net_layout_of(const ho_cohort_key *key)
{
    ho_net_layout net = {.branches = ho_branches_of(key), .state = ho_state_width(key)};
    const int ppo = key->algorithm == HO_PPO;
    const int noisy = !ppo && key->noisy;
    net.atoms = !ppo && key->atoms > 1 ? key->atoms : 1;
    net.has_value = ppo || key->dueling;
    net.separate = ppo && key->ppo_separate;
    net.bf16 = key->precision != HO_PRECISION_F32;
    for (int i = 0; i < HO_LAYERS; i++) {
        net.layer[i].weight_sigma = net.layer[i].bias_sigma = net.layer[i].noise = -1;
    }

    /* PPO's gains are those of "The 37 implementation details of PPO", detail 2. */
    const double gain = sqrt(2.0);
    const char *const main0 = ppo ? "policy.0" : (net.has_value ? "advantage.0" : "q.0");
    const char *const main1 = ppo ? "policy.1" : (net.has_value ? "advantage.1" : "q.1");
    add_layer(&net, HO_LAYER_TRUNK0, "trunk.0", net.state, key->hidden1, 0, gain);
    add_layer(&net, HO_LAYER_TRUNK1, "trunk.1", key->hidden1, key->hidden2, 0, gain);
    add_layer(&net, HO_LAYER_MAIN0, main0, key->hidden2, key->head, noisy, gain);
    add_layer(&net, HO_LAYER_MAIN1, main1, key->head, net.branches.outputs * net.atoms, noisy,
              ppo ? 0.01 : 1.0);
    if (net.has_value) {
        add_layer(&net, HO_LAYER_VALUE0, "value.0", key->hidden2, key->head, noisy, gain);
        add_layer(&net, HO_LAYER_VALUE1, "value.1", key->head, net.atoms, noisy, 1.0);
    }
    if (net.separate) {
        add_layer(&net, HO_LAYER_VALUE_TRUNK0, "value_trunk.0", net.state, key->hidden1, 0, gain);
        add_layer(&net, HO_LAYER_VALUE_TRUNK1, "value_trunk.1", key->hidden1, key->hidden2, 0,
                  gain);
    }
    return net;
}

static void add_tensor(ho_net_tensor *out, int *n, const ho_layer_layout *l, const char *what,
                       int matrix, int64_t offset)
{
    ho_net_tensor *t = &out[(*n)++];
    snprintf(t->name, sizeof t->name, "online.%s.%s", l->name, what);
    t->ndim = matrix ? 2 : 1;
    t->shape[0] = l->out;
    t->shape[1] = matrix ? l->in : 1;
    t->offset = offset;
    t->count = t->shape[0] * t->shape[1];
}

int ho_net_layout_tensors(const ho_net_layout *layout, ho_net_tensor *out)
{
    int n = 0;
    for (int i = 0; i < HO_LAYERS; i++) {
        const ho_layer_layout *l = &layout->layer[i];
        if (!l->out) {
            continue;
        }
        add_tensor(out, &n, l, "weight", 1, l->weight);
        add_tensor(out, &n, l, "bias", 0, l->bias);
        if (l->noisy) {
            add_tensor(out, &n, l, "weight_sigma", 1, l->weight_sigma);
            add_tensor(out, &n, l, "bias_sigma", 0, l->bias_sigma);
        }
    }
    return n;
}
