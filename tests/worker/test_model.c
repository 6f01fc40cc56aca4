/* SPDX-License-Identifier: Apache-2.0
 * Agents as files: what is written comes back to the bit, anything else is refused by name. */
#include <stdlib.h>

#include "check.h"
#include "worker/model.h"

static float weight[4] = {1.0f, -2.0f, 0.25f, 1e-30f};
static char names[3][HO_FEATURE_NAME] = {"ret_1", "ret_2", "vol_20"};

static ho_features features_of(int count)
{
    return (ho_features){.T = 10, .F = count, .name = names};
}

static ho_safetensors encoded(void)
{
    ho_tensor tensor = {
        .name = "online.trunk.0.weight", .ndim = 2, .shape = {2, 2}, .data = weight};
    ho_tensors weights = {.count = 1, .tensor = &tensor};
    ho_env_config env = {.lot = 0.001,
                         .max_lots = 238,
                         .sigma_ref = 1.0 / 3.0,
                         .target_vol = 7e-4,
                         .kelly_share = 0.1};
    ho_settings *settings = ho_settings_create();
    ho_features features = features_of(3);
    ho_model_info info = ho_model_info_of(12, 3, 1, "abc", &env);
    ho_safetensors st;
    ho_err err = {0};
    void *bytes;
    size_t size;
    CHECK_OK(ho_settings_set_f64(settings, HO_KEY_BARRIERS_STOP_LOSS, 0.1 + 0.2, &err), &err);
    CHECK_OK(ho_model_encode(&info, settings, &features, &weights, &bytes, &size, &err), &err);
    CHECK_OK(ho_safetensors_decode("m", bytes, size, &st, &err), &err);
    ho_settings_destroy(&settings);
    free(bytes);
    return st;
}

static const char *write_file(const ho_safetensors *st)
{
    static const char path[] = "m.safetensors";
    ho_err err = {0};
    void *bytes;
    size_t size;
    CHECK_OK(ho_safetensors_encode(st, &bytes, &size, &err), &err);
    FILE *file = fopen(path, "wb");
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    free(bytes);
    return path;
}

static void a_model_comes_back_to_the_bit(void **state)
{
    (void)state;
    ho_safetensors st = encoded();
    ho_model m;
    ho_err err = {0};
    CHECK_OK(ho_model_load(write_file(&st), &m, &err), &err);
    assert_int_equal(m.info.trial, 12);
    assert_int_equal(m.info.fold, 3);
    assert_int_equal(m.info.seed, 1);
    assert_int_equal(m.info.max_lots, 238);
    assert_string_equal(m.info.data_sha256, "abc");
    assert_true(m.info.sigma_ref == 1.0 / 3.0 && m.info.lot == 0.001);
    assert_true(ho_settings_f64(m.settings, HO_KEY_BARRIERS_STOP_LOSS) == 0.1 + 0.2);
    assert_memory_equal(m.file.tensors.tensor[0].data, weight, sizeof weight);
    ho_env_config env = {.sigma_ref = 9.0, .target_vol = 9.0, .kelly_share = 1.0, .max_lots = 5};
    ho_model_apply(&m, &env);
    assert_true(env.sigma_ref == 1.0 / 3.0 && env.target_vol == 7e-4 && env.kelly_share == 0.1);
    assert_int_equal(env.max_lots, 5); /* the size is that of the bars */
    ho_model_free(&m);
    ho_safetensors_free(&st);
}

static void other_features_are_refused(void **state)
{
    (void)state;
    ho_safetensors st = encoded();
    ho_model m;
    ho_err err = {0};
    ho_features same = features_of(3), fewer = features_of(2);
    CHECK_OK(ho_model_load(write_file(&st), &m, &err), &err);
    CHECK_OK(ho_model_check_features(&m, &same, &err), &err);
    CHECK_STATUS(ho_model_check_features(&m, &fewer, &err), HO_ECONFIG);
    CHECK_CONTAINS(err.text, "ret_1,ret_2,vol_20");
    for (int i = 0; i < m.file.meta_count; i++) {
        if (strcmp(m.file.key[i], "features_version") == 0) {
            m.file.value[i][0] = '9';
        }
    }
    CHECK_STATUS(ho_model_check_features(&m, &same, &err), HO_ECONFIG);
    CHECK_CONTAINS(err.text, "version 9");
    ho_model_free(&m);
    ho_safetensors_free(&st);
}

static void missing_or_mangled_metadata_is_named(void **state)
{
    (void)state;
    static const char *const keys[] = {"format",    "settings",   "features",    "trial",
                                       "fold",      "seed",       "max_lots",    "lot",
                                       "sigma_ref", "target_vol", "kelly_share", "data_sha256"};
    static const char *const mangled[] = {"", "x", "-5", "nan"};
    ho_model m;
    ho_err err = {0};
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
        for (size_t v = 0; v < sizeof mangled / sizeof mangled[0]; v++) {
            ho_safetensors st = encoded();
            for (int i = 0; i < st.meta_count; i++) {
                if (strcmp(st.key[i], keys[k]) == 0) {
                    free(st.value[i]);
                    st.value[i] = strdup(mangled[v]);
                }
            }
            ho_status rc = ho_model_load(write_file(&st), &m, &err);
            int text = strcmp(keys[k], "features") == 0 || strcmp(keys[k], "data_sha256") == 0;
            if (text) { /* any text is one */
                CHECK_OK(rc, &err);
                ho_model_free(&m);
            } else {
                assert_int_equal(rc, HO_EDATA);
                CHECK_CONTAINS(err.text, "m.safetensors");
            }
            ho_safetensors_free(&st);
        }
    }
    CHECK_STATUS(ho_model_load("nowhere.safetensors", &m, &err), HO_EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_comes_back_to_the_bit),
        cmocka_unit_test(other_features_are_refused),
        cmocka_unit_test(missing_or_mangled_metadata_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
