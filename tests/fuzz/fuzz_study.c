/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a study file: loaded and freed, or refused with a message that names the file. */
#include <stdlib.h>
#include <string.h>

#include "study/study.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ho_err err;
    ho_study *study = NULL;
    ho_status rc = ho_study_parse((const char *)data, size, "f.toml", ".", &study, &err);
    if (rc == HO_OK) {
        double *config = (double *)calloc((size_t)study->space.count + 1, sizeof *config);
        ho_settings *settings = NULL;
        for (int i = 0; i < study->space.count; i++) {
            config[i] = ho_param_snap(&study->space.param[i], study->space.param[i].high);
        }
        ho_space_canonical(&study->space, config);
        (void)ho_space_check(&study->space, config, &err);
        if (ho_study_trial_settings(study, config, &settings, &err) != HO_OK) {
            abort(); /* what the space allows, its keys must take */
        }
        ho_settings_destroy(&settings);
        free(config);
    } else if (study || (rc == HO_ECONFIG && strncmp(err.text, "f.toml:", 7) != 0)) {
        abort();
    }
    ho_study_free(&study);
    return 0;
}
