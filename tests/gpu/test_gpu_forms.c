/* SPDX-License-Identifier: Apache-2.0
 * Every form of DQN on the CUDA backend against the CPU backend: experience, one update, the greedy
 * backtest. The CPU is the reference; each bound carries its reason. */
#include <stdlib.h>

#include "check.h"
#include "gpu/forms.h"
#include "gpu/pair.h"
#include "gpu/run.h"

enum { BARS = 1500 };

/* A form's lane on both backends. */
typedef struct form_pair {
    pair worlds;
    lanes l;
} form_pair;

/* Actions are random unless the form is noisy, so that no rounding decides what is experienced. */
static form_pair open_form(const form *f, int batch, int updates)
{
    form_pair p = {.worlds = open_pair(BARS, !f->reference,
                                       f->curiosity ? HO_CURIOSITY_FEATURES : WORLD_FEATURES)};
    const world *w = p.worlds.cpu;
    ho_cohort_key key = world_key(w, HO_DQN);
    key.hidden1 = 33;
    key.hidden2 = 40;
    key.head = 18;
    key.episodes = 5;
    key.episode_length = 20;
    key.replay_capacity = 1000;
    key.batch = batch;
    key.updates = updates;
    form_key(f, &key);
    ho_lane_config lane = world_lane(w, &key, 3);
    form_agent(f, &lane.agent);
    lane.agent.eps_start = lane.agent.eps_end = 1.0;
    lane.agent.explore_hold = 4.0;
    lane.agent.learn_start = 1;
    lane.agent.adam_eps = updates == 1 ? 1.0 : 1e-5;
    lane.agent.learning_rate = updates == 1 ? 0.1 : 1e-3;
    lane.agent.curiosity_every = 1;
    lane.env.curiosity_weight = f->curiosity ? 0.05 : 0.0;
    lane.env.random_start = 0.5;
    lane.env.profit_target = 30.0;
    lane.env.stop_loss = 20.0;
    lane.env.max_holding = 9;
    p.l = open_lanes(&p.worlds, &key, &lane);
    return p;
}

static void close_form(form_pair *p)
{
    close_lanes(&p->l);
    close_pair(&p->worlds);
}

/* float32: 1e-4 of the change. The products and the sums over atoms differ in their order only
 * (seen: 2e-6 to 1e-5); a td error that differs by 1e-6 may move a draw of prioritised replay
 * across a leaf's border, with a chance of some 1e-3 a batch. bf16: weights, inputs, activations
 * and deltas are rounded to 8 bits, and the priorities and ranks with them, so that some rows are
 * drawn instead of their neighbours. */
static void an_update_agrees_with_the_cpu(void **state)
{
    (void)state;
    for (int i = 0; i < FORMS; i++) {
        const form *f = &forms[i];
        if (form_skipped(f) || (f->noisy && f->bf16)) {
            continue; /* the latter acts in bf16, and so does not experience the same */
        }
        ho_err err;
        ho_epoch_stat cpu, gpu;
        ho_tensors before, a, b;
        form_pair p = open_form(f, 64, 1);
        CHECK_OK(ho_lane_export(p.l.gpu, 0, &before, &err), &err);
        run_both(&p.l, &cpu, &gpu);
        CHECK_OK(ho_lane_export(p.l.cpu, 0, &a, &err), &err);
        CHECK_OK(ho_lane_export(p.l.gpu, 0, &b, &err), &err);
        const double error = relative_error(&before, &a, &b); /* sigmas included */
        print_message("%-22s change %.2e loss %.7f %.7f norm %.6f %.6f q %.6f %.6f "
                      "td %.6f %.6f\n",
                      f->name, error, cpu.loss_last, gpu.loss_last, cpu.grad_norm, gpu.grad_norm,
                      cpu.q_mean, gpu.q_mean, cpu.td_error_mean, gpu.td_error_mean);
        check_experience_equal(&cpu, &gpu);
        assert_int_equal(gpu.updates, 1);
        const double bound = f->bf16 ? (f->replay ? 0.5 : 8e-2) : 1e-4;
        const double loss_bound = f->bf16 ? (f->replay ? 0.2 : 2e-2) : 1e-5;
        if (!(error <= bound)) {
            fail_msg("%s: the weights' change differs by %.3e, bound %.1e", f->name, error, bound);
        }
        CHECK_CLOSE(gpu.loss_last, cpu.loss_last, loss_bound);
        CHECK_CLOSE(gpu.td_error_mean, cpu.td_error_mean, loss_bound);
        CHECK_NEAR(gpu.grad_norm, cpu.grad_norm, loss_bound * 3.0 * cpu.grad_norm);
        CHECK_NEAR(gpu.q_mean, cpu.q_mean, loss_bound * cpu.q_std + 1e-6);
        ho_tensors_free(&before);
        ho_tensors_free(&a);
        ho_tensors_free(&b);
        close_form(&p);
    }
}

/* Several epochs with the usual Adam: the drift of float32 alone, and the counts of branches that
 * the bonus is made of. */
static void epochs_stay_close_to_the_cpu(void **state)
{
    (void)state;
    for (int i = 0; i < FORMS; i++) {
        const form *f = &forms[i];
        ho_epoch_stat cpu, gpu;
        if (f->bf16 || form_skipped(f)) {
            continue;
        }
        form_pair p = open_form(f, 32, 4);
        for (int epoch = 0; epoch < 3; epoch++) {
            run_both(&p.l, &cpu, &gpu);
            assert_int_equal(gpu.updates, 4);
            /* random actions; a noisy network's may part at a rounding, and what curiosity adds to
             * a reward does, once its model is trained */
            if (!f->noisy && !f->curiosity) {
                check_experience_equal(&cpu, &gpu);
            }
        }
        print_message("%-22s loss %.7f %.7f q %.6f %.6f td %.6f %.6f\n", f->name, cpu.loss_mean,
                      gpu.loss_mean, cpu.q_mean, gpu.q_mean, cpu.td_error_mean, gpu.td_error_mean);
        const double bound = f->noisy || f->replay ? 0.2 : 2e-3;
        CHECK_CLOSE(gpu.loss_mean, cpu.loss_mean, bound);
        CHECK_CLOSE(gpu.td_error_mean, cpu.td_error_mean, bound);
        close_form(&p);
    }
}

/* The mean weights act, whatever noise there is in training; a few actions of thousands may differ
 * by rounding. Ensembles of the same lane twice decide as it does alone. */
static void a_greedy_backtest_agrees_with_the_cpu(void **state)
{
    (void)state;
    for (int i = 0; i < FORMS; i++) {
        const form *f = &forms[i];
        if (form_skipped(f) || (f->noisy && f->fp8)) {
            continue; /* the latter learned from other steps than a float32 lane takes */
        }
        ho_err err;
        ho_epoch_stat cpu, gpu;
        form_pair p = open_form(f, 64, 1);
        run_both(&p.l, &cpu, &gpu);
        for (int policy = HO_POLICY_GREEDY; policy <= HO_POLICY_CONFIDENCE; policy++) {
            ho_backtest_result a, b;
            const ho_backtest_request request = {.policy = (ho_policy)policy,
                                                 .slots = {0, 0},
                                                 .slot_count = policy == HO_POLICY_GREEDY ? 1 : 2,
                                                 .window = {0, gpu_size(1000, 120)},
                                                 .want = 15};
            CHECK_OK(ho_backtest(p.worlds.cpu->market, p.l.cpu, &request, 1, &a, &err), &err);
            CHECK_OK(ho_backtest(p.worlds.gpu->market, p.l.gpu, &request, 1, &b, &err), &err);
            int64_t same = 0;
            for (int64_t t = 0; t < a.bars && t < b.bars; t++) {
                same += a.actions[t] == b.actions[t];
            }
            print_message("%s, policy %d: %lld of %lld actions alike\n", f->name, policy,
                          (long long)same, (long long)a.bars);
            if ((double)same < (f->bf16 ? 0.9 : 0.99) * (double)a.bars) {
                fail_msg("%s, policy %d: %lld of %lld actions alike", f->name, policy,
                         (long long)same, (long long)a.bars);
            }
            ho_backtest_free(&a);
            ho_backtest_free(&b);
        }
        close_form(&p);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_update_agrees_with_the_cpu),
        cmocka_unit_test(epochs_stay_close_to_the_cpu),
        cmocka_unit_test(a_greedy_backtest_agrees_with_the_cpu),
    };
    return GPU_TESTS_RUN(tests, argc, argv);
}
