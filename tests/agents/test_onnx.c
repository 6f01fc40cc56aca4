/* SPDX-License-Identifier: Apache-2.0
 * An exported model must act as the agent does. This program trains agents of every form a little,
 * writes each as FORM.onnx with its states, scores and actions as FORM.json, and hands the folder
 * to run_onnx.py, which reads the model by itself and evaluates it (and has onnx and onnxruntime do
 * the same where they are installed). */
#include <cjson/cJSON.h>
#include <stdlib.h>

#include "agents/world.h"
#include "check.h"
#include "kernels/cpu/cohort.h"
#include "study/onnx.h"

enum { STATES = 40 };

typedef struct form {
    const char *name;
    ho_algorithm algorithm;
    int32_t dueling, branching, noisy, atoms, action_set, factored, separate;
} form;

static const form forms[] = {
    {.name = "dqn_plain", .algorithm = HO_DQN},
    {.name = "dqn_dueling", .algorithm = HO_DQN, .dueling = 1},
    {.name = "dqn_exposure5", .algorithm = HO_DQN, .dueling = 1, .action_set = 1},
    {.name = "dqn_branching", .algorithm = HO_DQN, .dueling = 1, .branching = 1},
    {.name = "dqn_c51", .algorithm = HO_DQN, .atoms = 11},
    {.name = "dqn_all", .algorithm = HO_DQN, .dueling = 1, .branching = 1, .noisy = 1, .atoms = 11},
    {.name = "ppo", .algorithm = HO_PPO},
    {.name = "ppo_factored", .algorithm = HO_PPO, .factored = 1, .separate = 1},
};

static void write_file(const char *name, const char *ending, const void *bytes, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, "%s.%s", name, ending);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void write_expectation(const char *name, const ho_cohort *c, int S)
{
    float *state = calloc(STATES * 64, sizeof *state), *score = calloc(STATES * 45, sizeof *score);
    uint8_t action[STATES];
    void *scratch = calloc(1, ho_cpu_act_scratch(c, STATES));
    uint64_t random = 77;
    for (int i = 0; i < STATES * S; i++) {
        state[i] = (float)world_normal(&random);
    }
    CHECK_STATUS(ho_cpu_act(c, 0, state, STATES, 0, score, action, scratch), HO_OK);
    cJSON *root = cJSON_CreateObject(), *rows = cJSON_AddArrayToObject(root, "state");
    cJSON *actions = cJSON_AddArrayToObject(root, "action");
    cJSON *scores = cJSON_AddArrayToObject(root, "score");
    for (int i = 0; i < STATES; i++) {
        cJSON_AddItemToArray(rows, cJSON_CreateFloatArray(state + (int64_t)i * S, S));
        cJSON_AddItemToArray(actions, cJSON_CreateNumber(action[i]));
        /* of the taken action: comparable whatever the heads are */
        cJSON_AddItemToArray(scores, cJSON_CreateNumber((double)score[i * 45 + action[i]]));
    }
    char *text = cJSON_PrintUnformatted(root);
    write_file(name, "json", text, strlen(text));
    free(text);
    cJSON_Delete(root);
    free(state);
    free(score);
    free(scratch);
}

static void an_exported_model_acts_as_the_agent(void **state)
{
    (void)state;
    ho_err err;
    ho_epoch_stat stat;
    for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) {
        world *w = world_new(WORLD_SIGNAL, 400, 3, WORLD_FEATURES, 1);
        ho_cohort_key key = world_key(w, forms[f].algorithm);
        key.dueling = forms[f].dueling;
        key.branching = forms[f].branching;
        key.noisy = forms[f].noisy;
        key.atoms = forms[f].atoms;
        key.action_set = forms[f].action_set;
        key.ppo_factored = forms[f].factored;
        key.ppo_separate = forms[f].separate;
        ho_lane_config lane = world_lane(w, &key, 4);
        lane.agent.learning_rate = 1e-2;
        ho_cohort *c;
        ho_tensors weights;
        void *bytes, *again;
        size_t size, same;
        CHECK_OK(ho_cohort_create(w->backend, w->market, &key, 1, &c, &err), &err);
        CHECK_OK(ho_lane_start(c, 0, &lane, &err), &err);
        CHECK_OK(ho_cohort_run_epoch(c, &stat, &err), &err);
        CHECK_OK(ho_cohort_run_epoch(c, &stat, &err), &err);
        CHECK_OK(ho_lane_export(c, 0, &weights, &err), &err);
        const char *const meta[][2] = {{"form", forms[f].name}};
        CHECK_OK(ho_onnx_encode(&key, lane.agent.v_max, &weights, meta, 1, &bytes, &size, &err),
                 &err);
        CHECK_OK(ho_onnx_encode(&key, lane.agent.v_max, &weights, meta, 1, &again, &same, &err),
                 &err);
        assert_true(size == same && memcmp(bytes, again, size) == 0);
        write_file(forms[f].name, "onnx", bytes, size);
        write_expectation(forms[f].name, c, w->F + HO_PORTFOLIO_FEATURES);
        free(bytes);
        free(again);

        weights.tensor[2].shape[0]++;
        CHECK_STATUS(ho_onnx_encode(&key, lane.agent.v_max, &weights, NULL, 0, &bytes, &size, &err),
                     HO_EINVAL);
        CHECK_CONTAINS(err.text, weights.tensor[2].name);
        assert_null(bytes);
        weights.tensor[2].shape[0]--;
        weights.tensor[3].name[0] = 'x';
        CHECK_STATUS(ho_onnx_encode(&key, lane.agent.v_max, &weights, NULL, 0, &bytes, &size, &err),
                     HO_EINVAL);
        ho_tensors_free(&weights);
        ho_cohort_destroy(&c);
        world_free(&w);
    }
    assert_int_equal(system("python3 " HO_SOURCE_DIR "/tests/agents/run_onnx.py ."), 0);
}

int main(void)
{
    if (system("python3 -c 'import sys; sys.exit(sys.version_info < (3, 8))'") != 0) {
        printf("skipped: python3 is not here\n");
        return HO_TEST_SKIPPED;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_exported_model_acts_as_the_agent)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
