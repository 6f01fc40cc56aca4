/* SPDX-License-Identifier: Apache-2.0
 * The curiosity reward on the CUDA backend against the CPU backend: in collection, and the training
 * of its forward model. */
#include <stdlib.h>

#include "check.h"
#include "gpu/pair.h"
#include "gpu/run.h"
#include "kernels/agents/curiosity_net.h"
#include "kernels/cuda/cuda_backend.h"

enum { BARS = 1500 };

static ho_cohort_key key_of(const world *w, ho_algorithm algorithm, int episodes, int steps)
{
    ho_cohort_key key = world_key(w, algorithm);
    key.curiosity = 1;
    key.episodes = episodes;
    key.episode_length = key.rollout = steps;
    key.replay_capacity = 20000;
    return key;
}

/* Random actions, no updates of the agent: the forward model alone decides what differs. */
static ho_lane_config lane_of(const world *w, const ho_cohort_key *key)
{
    ho_lane_config lane = world_lane(w, key, 3);
    lane.agent.eps_start = lane.agent.eps_end = 1.0;
    lane.agent.learn_start = 1000000;
    lane.agent.learning_rate = 0.0;
    lane.agent.curiosity_every = 2;
    lane.agent.weight_decay = 0.01;
    lane.env.curiosity_weight = 0.05;
    lane.env.curiosity_max = 10.0;
    return lane;
}

/* Equal parameters: every product is a fused multiply-add in the same order, so rewards are equal
 * where the CPU has them; 1e-6 where it has not. */
static void its_reward_in_collection_is_the_cpus(void **state)
{
    (void)state;
    static const int episodes[] = {1, 31, 64};
    for (int i = 0; i < 3; i++) {
        for (int bf16 = 0; bf16 < 2; bf16++) { /* the forward model is float32 in both */
            pair p = open_pair(BARS, 1, HO_CURIOSITY_FEATURES);
            ho_cohort_key key = key_of(p.cpu, HO_DQN, episodes[i], 61);
            key.precision = bf16 ? HO_PRECISION_BF16 : HO_PRECISION_F32;
            const ho_lane_config lane = lane_of(p.cpu, &key);
            ho_lane_config incurious = lane;
            incurious.env.curiosity_weight = 0.0;
            lanes l = open_lanes(&p, &key, &lane), without = open_lanes(&p, &key, &incurious);
            ho_epoch_stat cpu, gpu, cpu_without, gpu_without;
            run_both(&l, &cpu, &gpu);
            run_both(&without, &cpu_without, &gpu_without);
            assert_int_equal(gpu.experiences, cpu.experiences);
            assert_memory_equal(gpu.exposure_count, cpu.exposure_count, sizeof gpu.exposure_count);
            CHECK_CLOSE(gpu.reward_mean, cpu.reward_mean, 1e-6);
            CHECK_CLOSE(gpu.reward_std, cpu.reward_std, 1e-6);
            CHECK_CLOSE(gpu.reward_max, cpu.reward_max, 1e-6);
            check_experience_equal(&cpu_without, &gpu_without);
            assert_true(gpu.reward_mean > gpu_without.reward_mean + 0.01); /* it is at work */
            close_lanes(&without);
            close_lanes(&l);
            close_pair(&p);
        }
    }
}

/* ||gpu - cpu|| / ||cpu - start|| over the parameters of the forward model. */
static double model_error(const float *start, const float *cpu, const float *gpu)
{
    double error = 0.0, change = 0.0;
    for (int i = 0; i < HO_CURIOSITY_SIZE; i++) {
        const double e = (double)gpu[i] - (double)cpu[i], c = (double)cpu[i] - (double)start[i];
        error += e * e;
        change += c * c;
    }
    assert_true(change > 0.0);
    return sqrt(error / change);
}

typedef struct training {
    int algorithm, episodes, steps, recycle;
    double eps; /* Adam's: 1 makes a step nearly lr * gradient */
    double bound;
} training;

static const training trainings[] = {
    {HO_DQN, 8, 64, 1, 1.0, 1e-4},   /* one update */
    {HO_DQN, 3, 9, 1, 1.0, 1e-4},    /* a short batch */
    {HO_DQN, 33, 61, 1, 1e-5, 2e-2}, /* four updates, usual Adam: small gradients count whole */
    {HO_DQN, 33, 61, 0, 1e-5, 2e-2}, /* slots go idle */
    {HO_PPO, 33, 61, 1, 1e-5, 2e-2},
};

static void its_training_agrees_with_the_cpu(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof trainings / sizeof trainings[0]; i++) {
        const training *t = &trainings[i];
        ho_err err;
        pair p = open_pair(BARS, 1, HO_CURIOSITY_FEATURES);
        const ho_cohort_key key = key_of(p.cpu, (ho_algorithm)t->algorithm, t->episodes, t->steps);
        ho_lane_config lane = lane_of(p.cpu, &key);
        lane.agent.adam_eps = t->eps;
        lane.agent.curiosity_lr = t->eps == 1.0 ? 0.1 : 1e-3;
        lane.env.recycle = t->recycle;
        lane.env.end_on_barrier = !t->recycle;
        lane.env.max_holding = 9;
        lanes l = open_lanes(&p, &key, &lane);
        const float *own = cpu_steps_of(l.cpu).forward_model;
        float start[HO_CURIOSITY_SIZE], gpu_model[HO_CURIOSITY_SIZE];
        ho_epoch_stat cpu, gpu;
        memcpy(start, own, sizeof start);
        for (int epoch = 0; epoch < 2; epoch++) {
            run_both(&l, &cpu, &gpu);
            assert_true((gpu.curiosity_loss > 0.0) == (epoch == 1)); /* curiosity_every */
        }
        assert_int_equal(
            cudaMemcpy(gpu_model, ((const cuda_cohort *)(const void *)l.gpu)->experience.curiosity,
                       sizeof gpu_model, cudaMemcpyDeviceToHost),
            cudaSuccess);
        const double error = model_error(start, own, gpu_model);
        print_message("algorithm %d, %d x %d, recycle %d: change %.2e, loss %.7f %.7f\n",
                      t->algorithm, t->episodes, t->steps, t->recycle, error, cpu.curiosity_loss,
                      gpu.curiosity_loss);
        CHECK_CLOSE(gpu.curiosity_loss, cpu.curiosity_loss, 1e-4);
        if (!(error <= t->bound)) {
            fail_msg("the forward model's change differs by %.3e, bound %.1e", error, t->bound);
        }
        CHECK_OK(ho_cuda_cohort_check_guards(l.gpu, &err), &err);
        close_lanes(&l);
        close_pair(&p);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_reward_in_collection_is_the_cpus),
        cmocka_unit_test(its_training_agrees_with_the_cpu),
    };
    return GPU_TESTS_RUN(tests, argc, argv);
}
