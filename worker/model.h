/* SPDX-License-Identifier: Apache-2.0
 * A trained agent as a file: the acting network's weights and everything that is needed to run it
 * on any bars: settings of its trial, the features in order, sizes of its train window. A
 * safetensors file with the metadata that docs/weights.md lists. */
#ifndef HO_WORKER_MODEL_H
#define HO_WORKER_MODEL_H

#include "kernels/backend.h"
#include "market/features.h"
#include "study/safetensors.h"
#include "study/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_model_info {
    int64_t trial;
    int32_t fold, seed;
    char data_sha256[65];
    /* of the lane's train window, or moved while training (ho_env_config) */
    double lot, sigma_ref, target_vol, kelly_share;
    int32_t max_lots;
} ho_model_info;

/* Sizes as they stand in a lane's environment. */
ho_model_info ho_model_info_of(int64_t trial, int32_t fold, int32_t seed, const char *data_sha256,
                               const ho_env_config *env);

/* The file's bytes, malloc'ed, the caller's. trial: the settings of the trial (the study's with its
 * parameters applied). HO_ENOMEM. */
ho_status ho_model_encode(const ho_model_info *info, const ho_settings *trial,
                          const ho_features *features, const ho_tensors *weights, void **bytes,
                          size_t *size, ho_err *err);

typedef struct ho_model {
    ho_model_info info;
    ho_settings *settings; /* owned */
    ho_safetensors file;   /* weights and all metadata, owned */
} ho_model;

/* HO_EIO, HO_EDATA: not a model of this program; err names the file and what is missing. */
ho_status ho_model_load(const char *path, ho_model *out, ho_err *err);
void ho_model_free(ho_model *model);

/* HO_ECONFIG: these features are not the ones it was trained on, in name, order or version. */
ho_status ho_model_check_features(const ho_model *model, const ho_features *features, ho_err *err);

/* Puts the model's sigma_ref, target_vol and kelly_share into an environment made for other bars:
 * what the network was trained to read; the size stays that of the bars. */
void ho_model_apply(const ho_model *model, ho_env_config *env);

#ifdef __cplusplus
}
#endif
#endif
