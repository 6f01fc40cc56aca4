/* SPDX-License-Identifier: Apache-2.0
 * What the passes of net.c are made of, once for each precision. Internal to the network's
 * sources. */
#ifndef HO_KERNELS_CPU_NET_OPS_H
#define HO_KERNELS_CPU_NET_OPS_H

#include "kernels/cpu/net.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HO_NET_INPUT = HO_LAYERS }; /* as the layer below a trunk: the input */

typedef struct ho_net_ops {
    /* the panels and bias of one layer, from its parameters and noise (NULL: the mean weights) */
    void (*pack_layer)(const ho_net_layout *net, ho_layer_id id, const ho_real *parameters,
                       const ho_real *noise, ho_net_pack *pack);
    /* before the first layer of a forward pass over n rows of x */
    void (*take_input)(const ho_net_layout *net, const ho_net_pack *pack, const ho_real *x,
                       int32_t n, ho_net_rows *rows);
    /* outputs of a layer from those of the layer below; leaky: a hidden layer */
    void (*forward)(const ho_net_layout *net, const ho_net_pack *pack, ho_layer_id id, int below,
                    const ho_real *x, int32_t n, int leaky, ho_net_rows *rows);
    /* dW = delta' below, db = column sums of delta. Called before `back` of the same layer. */
    void (*gradient)(const ho_net_layout *net, ho_layer_id id, int below, const ho_real *x,
                     int32_t n, ho_net_rows *rows, ho_real *gradient);
    /* delta of the layer below (before its activation's slope), added to or overwritten */
    void (*back)(const ho_net_layout *net, const ho_net_pack *pack, ho_layer_id id,
                 ho_layer_id below, int32_t n, int accumulate, ho_net_rows *rows);
    /* delta *= scale * slope of the activation */
    void (*activation_back)(const ho_net_layout *net, ho_layer_id id, int32_t n, ho_real scale,
                            ho_net_rows *rows);
} ho_net_ops;

/* net_bf16.c; not in the double build */
extern const ho_net_ops ho_net_ops_bf16;

/* The weight of output o from input i, with the layer's noise. */
static inline ho_real ho_net_weight(const ho_layer_layout *l, const ho_real *parameters,
                                    const ho_real *noise, int32_t o, int32_t i)
{
    const int64_t at = (int64_t)o * l->in + i;
    const ho_real w = parameters[l->weight + at];
    if (!noise || !l->noisy) {
        return w;
    }
    return w + parameters[l->weight_sigma + at] * noise[l->noise + l->in + o] * noise[l->noise + i];
}

/* bias [out padded to 32], with the layer's noise. */
void ho_net_pack_bias(const ho_layer_layout *l, const ho_real *parameters, const ho_real *noise,
                      ho_real *bias);

/* db of a layer. */
void ho_net_bias_gradient(const ho_layer_layout *l, const ho_real *delta, int32_t row, int32_t n,
                          ho_real *gradient);

#ifdef __cplusplus
}
#endif
#endif
