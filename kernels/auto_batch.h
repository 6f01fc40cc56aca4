/* SPDX-License-Identifier: Apache-2.0
 * dqn.batch = "auto": the batch that uses a device well, measured through backend.h on whatever
 * backend it is. Measured once per study and stored in it: two measurements may differ. */
#ifndef HO_KERNELS_AUTO_BATCH_H
#define HO_KERNELS_AUTO_BATCH_H

#include "kernels/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HO_AUTO_BATCH_LEAST = 64, HO_AUTO_BATCH_MOST = 65536, HO_BATCH_DEFAULT = 512 };

/* rows_per_s [n]: transitions a second of the batches least, 2 least, 4 least, ... (0: did not
 * fit). The largest batch up to which every doubling gained at least 5 %. */
int32_t ho_auto_batch_choose(const double *rows_per_s, int n, int32_t least);

/* Times a few updates of one lane of the key's shape at batch HO_AUTO_BATCH_LEAST, twice that, and
 * so on up to `most`, until one gains no more, does not fit, or exceeds the replay. key->batch and
 * updates are ignored. Takes seconds. HO_EINVAL: not a DQN key. */
ho_status ho_auto_batch_measure(ho_backend *backend, ho_market *market, const ho_cohort_key *key,
                                const ho_lane_config *lane, int32_t most, int32_t *out,
                                ho_err *err);

/* The learning rate at a measured batch: the linear rule (Goyal et al. 2017) where the batch is
 * more than four times the default, else as it is. */
double ho_auto_batch_learning_rate(double learning_rate, int32_t batch);

#ifdef __cplusplus
}
#endif
#endif
