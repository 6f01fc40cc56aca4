/* SPDX-License-Identifier: Apache-2.0
 * The plan of memory that `check` prints (study/lane_memory.h) beside the one that cohorts are made
 * by: the same within a fifth, for shapes of every kind. */
#include "check.h"

#include "agents/world.h"
#include "kernels/agents/net_layout.h"
#include "study/lane_memory.h"

typedef struct shape {
    const char *name;
    ho_algorithm algorithm;
    int hidden1, hidden2, head, replay, episodes, length, batch;
    ho_precision precision;
    ho_replay_kind kind;
    int kind_bytes;
} shape;

static const shape shapes[] = {
    {"h200.toml", HO_DQN, 256, 256, 128, 262144, 512, 256, 1024, HO_PRECISION_BF16,
     HO_REPLAY_UNIFORM, 0},
    {"float32", HO_DQN, 256, 256, 128, 100000, 128, 500, 512, HO_PRECISION_F32, HO_REPLAY_UNIFORM,
     0},
    {"mostly network", HO_DQN, 1024, 1024, 512, 4096, 16, 64, 256, HO_PRECISION_F32,
     HO_REPLAY_UNIFORM, 0},
    {"prioritised", HO_DQN, 128, 128, 64, 131072, 64, 128, 512, HO_PRECISION_F32, HO_REPLAY_PER, 4},
    {"by rank", HO_DQN, 128, 128, 64, 131072, 64, 128, 512, HO_PRECISION_F32, HO_REPLAY_PER_RANK,
     25},
    {"PPO", HO_PPO, 256, 256, 128, 0, 128, 128, 4096, HO_PRECISION_BF16, HO_REPLAY_UNIFORM, 0},
};

static void the_printed_plan_is_that_of_the_cohort(void **state)
{
    (void)state;
    ho_err err;
    ho_backend_options options = ho_backend_defaults();
    options.kind = HO_BACKEND_CUDA;
    world *w = world_new_on(WORLD_NOISE, 400, 1, 32, &options);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const shape *s = &shapes[i];
        ho_cohort_key key = world_key(w, s->algorithm);
        size_t lane = 0, fixed = 0;
        key.hidden1 = s->hidden1;
        key.hidden2 = s->hidden2;
        key.head = s->head;
        key.replay_capacity = s->replay;
        key.episodes = s->episodes;
        key.episode_length = key.rollout = s->length;
        key.batch = s->batch;
        key.precision = s->precision;
        key.replay = s->kind;
        CHECK_OK(ho_cohort_memory(w->backend, &key, &lane, &fixed, &err), &err);
        const ho_lane_size size = {.weights = (double)ho_net_layout_of(&key).size,
                                   .hidden = s->hidden1 + s->hidden2 + 2.0 * s->head,
                                   .episodes = s->episodes,
                                   .steps = s->length,
                                   .batch = s->batch,
                                   .replay = s->replay,
                                   .replay_bytes = s->kind_bytes,
                                   .bf16 = s->precision == HO_PRECISION_BF16};
        const ho_lane_bytes b = ho_lane_memory(&size);
        const double sum = b.networks + b.replay + b.rollout + b.batch;
        print_message("%s: %.1f MB, planned %.1f (networks %.1f, replay %.1f, rollout %.1f, batch "
                      "%.1f)\n",
                      s->name, (double)lane * 1e-6, sum * 1e-6, b.networks * 1e-6, b.replay * 1e-6,
                      b.rollout * 1e-6, b.batch * 1e-6);
        CHECK_NEAR(sum / (double)lane, 1.0, 0.2);
    }
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_printed_plan_is_that_of_the_cohort),
    };
    if (ho_backend_gpu_count() == 0) {
        print_message("no GPU: skipped\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
