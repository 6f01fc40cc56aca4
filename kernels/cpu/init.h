/* SPDX-License-Identifier: Apache-2.0
 * Initial weights and factorised noise, both functions of the lane's random key alone. */
#ifndef HO_KERNELS_CPU_INIT_H
#define HO_KERNELS_CPU_INIT_H

#include <stdint.h>

#include "kernels/agents/net_layout.h"
#include "kernels/agents/real.h"
#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fills parameters [net->size]: orthogonal weights (Saxe 2014) of each layer's gain, or He (normal,
 * deviation sqrt(2 / ((1 + 0.01^2) fan in))); biases 0. Noisy layers: mean uniform in
 * +-1/sqrt(fan in), sigma = noisy_sigma0 / sqrt(fan in) (Fortunato 2018, section 3.2).
 * stream tells networks of one lane apart. HO_ENOMEM. */
ho_status ho_net_init(const ho_net_layout *net, int32_t init, double noisy_sigma0,
                      const uint32_t key[2], uint32_t stream, ho_real *parameters);

/* One weight matrix [out, in] alone, as ho_net_init does it. */
ho_status ho_init_matrix(int32_t init, double gain, int32_t out, int32_t in, const uint32_t key[2],
                         uint32_t stream, ho_real *weight);

/* Who uses a draw of noise; each has its own numbers. */
typedef enum ho_noise_user { HO_NOISE_ACT, HO_NOISE_ONLINE, HO_NOISE_TARGET } ho_noise_user;

/* noise [net->noise_size] = f(normal), for one acting step or update of one epoch. */
void ho_net_noise(const ho_net_layout *net, const uint32_t key[2], uint32_t step, uint32_t epoch,
                  ho_noise_user user, ho_real *noise);

#ifdef __cplusplus
}
#endif
#endif
