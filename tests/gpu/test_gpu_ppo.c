/* SPDX-License-Identifier: Apache-2.0
 * PPO on the CUDA backend against the CPU backend. Exact: random numbers, hence actions wherever no
 * probability straddles a draw, hence the market; advantages and returns, from equal values.
 * Bounded: values, log-probabilities, losses, one update; each bound carries its reason. What
 * decides a lane's bits, checkpoints, copies and the guard are in tests/agents/test_lanes.c, which
 * runs on this backend, too. */
#include <stdlib.h>

#include "check.h"
#include "gpu/pair.h"
#include "gpu/run.h"
#include "gpu/sizes.h"
#include "kernels/agents/ppo.h"
#include "kernels/cuda/cuda_backend.h"

enum { BARS = 1500 };

typedef struct form {
    const char *name;
    int factored, separate, exposure5;
    int dense_ends; /* barriers end episodes, half of the ends without a bootstrap; no new ones */
    int episodes, rollout;
} form;

static const form forms[] = {
    {"45", 0, 0, 0, 0, 16, 40},
    {"5 + 3 + 3", 1, 0, 0, 0, 31, 20},
    {"45, value network of its own", 0, 1, 0, 0, 32, 20},
    {"5 + 3 + 3, value network of its own, early ends", 1, 1, 0, 1, 16, 40},
    {"5 exposures, early ends", 0, 0, 1, 1, 33, 40},
    {"45, one episode", 0, 0, 0, 0, 1, 300},
    {"45, many episodes", 0, 0, 0, 0, 257, 9},
};
enum { FORMS = sizeof forms / sizeof forms[0] };

static ho_cohort_key key_of(const world *w, const form *f)
{
    ho_cohort_key key = world_key(w, HO_PPO);
    key.ppo_factored = f->factored;
    key.ppo_separate = f->separate;
    key.action_set = f->exposure5 ? HO_ACTIONS_EXPOSURE5 : HO_ACTIONS_FULL45;
    key.episodes = f->episodes;
    key.rollout = f->rollout;
    key.batch = 128;
    return key;
}

static ho_lane_config lane_of(const world *w, const ho_cohort_key *key, const form *f)
{
    ho_lane_config lane = world_lane(w, key, 3);
    lane.env.random_start = 0.5;
    lane.env.profit_target = 30.0;
    lane.env.stop_loss = 20.0;
    lane.env.max_holding = 9;
    lane.env.diversity_penalty = 0.1;
    lane.agent.target_kl = 0.0;
    if (f->dense_ends) {
        lane.env.end_on_barrier = 1;
        lane.env.barrier_terminal = f->factored;
        lane.env.recycle = 0;
    }
    return lane;
}

/* ---- the rollout ---- */

static void *fetch(const void *device, size_t bytes)
{
    void *p = malloc(bytes);
    assert_int_equal(cudaMemcpy(p, device, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
    return p;
}

/* What the device holds of a rollout. */
typedef struct device_rollout {
    ho_trace_step *trace;
    float *value, *log_p, *next, *advantage;
} device_rollout;

static device_rollout fetch_rollout(const cuda_cohort *c, size_t rows)
{
    const ho_ppo_view *v = &c->ppo;
    const device_rollout r = {
        fetch(v->experience.trace, rows * sizeof(ho_trace_step)),
        fetch(v->value, rows * sizeof(float)), fetch(v->log_p, rows * sizeof(float)),
        fetch(v->next, rows * sizeof(float)), fetch(v->advantage, rows * sizeof(float))};
    return r;
}

static void free_rollout(device_rollout *r)
{
    free(r->trace);
    free(r->value);
    free(r->log_p);
    free(r->next);
    free(r->advantage);
}

static int is_last(const ho_trace_step *t, int step, int steps)
{
    return t->end != HO_END_NONE || step + 1 == steps;
}

/* Advantages by the plain sum of the definition, in double, from the device's values:
 * A_t = sum over k of (gamma lambda)^k delta_{t+k} up to the episode's end. */
static double advantage_of(const device_rollout *r, const ho_agent_config *agent, int N, int steps,
                           int step, int n)
{
    double sum = 0.0, weight = 1.0;
    for (int s = step; s < steps; s++) {
        const size_t at = (size_t)s * (size_t)N + (size_t)n;
        const ho_trace_step *t = &r->trace[at];
        const double next = (double)(is_last(t, s, steps) ? r->next[at] : r->value[at + (size_t)N]);
        sum += weight * ((double)t->reward + (t->terminal ? 0.0 : agent->gamma * next) -
                         (double)r->value[at]);
        weight *= agent->gamma * agent->gae_lambda;
        if (t->end != HO_END_NONE) {
            break;
        }
    }
    return sum;
}

/* The recursion of the CPU backend over one slot, from the device's values: bit for bit. */
static void check_advantages(const device_rollout *r, const ho_agent_config *agent, int N,
                             int steps, int n)
{
    float next = 0.0f;
    for (int step = steps - 1; step >= 0; step--) {
        const size_t at = (size_t)step * (size_t)N + (size_t)n;
        const ho_trace_step *t = &r->trace[at];
        if (!t->valid) {
            continue;
        }
        next = ho_gae_step(t->reward, r->value[at],
                           is_last(t, step, steps) ? r->next[at] : r->value[at + (size_t)N],
                           t->terminal, t->end != HO_END_NONE, next, (float)agent->gamma,
                           (float)agent->gae_lambda);
        assert_true(r->advantage[at] == next);
    }
}

/* float32 networks of equal weights: products differ in the order of sums only, about 1e-6 of
 * values that are of order 1. */
#define VALUE_BOUND 2e-5

/* Compares the slots whose actions are all alike; returns how many are. */
static int compare_slots(const form *f, const device_rollout *r, const cpu_steps *cpu,
                         const ho_agent_config *agent, int64_t *ends)
{
    const int N = f->episodes;
    int alike = 0;
    for (int n = 0; n < N; n++) {
        int same = 1;
        for (int step = 0; step < f->rollout; step++) {
            const size_t at = (size_t)step * (size_t)N + (size_t)n;
            const int valid = cpu_step_valid(cpu, at);
            same = same && valid == r->trace[at].valid &&
                   (!valid || cpu->action[at] == r->trace[at].action);
        }
        alike += same;
        for (int step = 0; same && step < f->rollout; step++) {
            const size_t at = (size_t)step * (size_t)N + (size_t)n;
            const ho_trace_step *t = &r->trace[at];
            if (!t->valid) {
                continue;
            }
            assert_int_equal(t->bar, cpu->bar[at]);
            assert_true(t->reward == cpu->reward[at]);
            assert_int_equal(t->terminal != 0, cpu_step_terminal(cpu, at));
            assert_int_equal(t->end != HO_END_NONE, cpu_step_ended(cpu, at));
            CHECK_NEAR(r->value[at], cpu->value[at], VALUE_BOUND);
            CHECK_NEAR(r->log_p[at], cpu->log_p[at], VALUE_BOUND);
            if (is_last(t, step, f->rollout)) {
                CHECK_NEAR(r->next[at], cpu->value_next[at], VALUE_BOUND);
                *ends += t->end != HO_END_NONE;
            }
            /* a sum of some twenty terms, each within the bound of values */
            CHECK_NEAR(r->advantage[at], cpu->advantage[at], 50 * VALUE_BOUND);
            /* equal values: float32 against double over some twenty terms of order 1 */
            const double want = advantage_of(r, agent, N, f->rollout, step, n);
            CHECK_NEAR(r->advantage[at], want, 4e-6 * fmax(1.0, fabs(want)));
        }
        check_advantages(r, agent, N, f->rollout, n);
    }
    return alike;
}

static void sampled_actions_values_and_advantages_agree_with_the_cpu(void **state)
{
    (void)state;
    for (int i = 0; i < FORMS; i++) {
        const form *f = &forms[i];
        pair p = open_pair(BARS, 1, WORLD_FEATURES);
        const ho_cohort_key key = key_of(p.cpu, f);
        ho_lane_config lane = lane_of(p.cpu, &key, f);
        lane.agent.learning_rate = 0.0; /* both act with the initial weights in every epoch */
        lanes l = open_lanes(&p, &key, &lane);
        ho_epoch_stat cpu, gpu;
        const size_t rows = (size_t)f->episodes * (size_t)f->rollout;
        int alike = 0, all = 0;
        int64_t ends = 0;
        for (int epoch = 0; epoch < 3; epoch++) {
            run_both(&l, &cpu, &gpu);
            const cpu_steps steps = cpu_steps_of(l.cpu);
            device_rollout r = fetch_rollout((const cuda_cohort *)(const void *)l.gpu, rows);
            alike += compare_slots(f, &r, &steps, &lane.agent, &ends);
            all += f->episodes;
            free_rollout(&r);
            CHECK_NEAR(gpu.q_mean, cpu.q_mean, 1e-3);
            CHECK_NEAR(gpu.explained_variance, cpu.explained_variance, 1e-2);
        }
        print_message("%s: %d of %d slots alike, %lld ends\n", f->name, alike, all,
                      (long long)ends);
        /* a draw that lies within 1e-6 of a step of the distribution function may go either way:
         * some thousands of draws, none or one of them */
        assert_true(alike >= all - 1);
        assert_true(ends > 0 || f->episodes * f->rollout < 2000);
        close_lanes(&l);
        close_pair(&p);
    }
}

/* ---- updates ---- */

typedef struct shape {
    form f;
    int hidden1, hidden2, head, batch, passes, bf16;
    double value_clip, target_kl;
    double bound;      /* of the change of the weights */
    double loss_bound; /* absolute; losses are of order 1 */
} shape;

/* One update: Adam with eps 1 is nearly lr * gradient, so the change of the weights is the
 * gradient. Several: usual Adam, whose first steps have the size of the learning rate whatever the
 * gradient, so small gradients of either sign count whole. bf16: 8 bits in weights, activations and
 * deltas; the policy's gradient is a difference of nearly equal terms (advantages sum to 0 over a
 * minibatch), so that more of the rounding is left than in DQN. */
static const shape shapes[] = {
    {{"45", 0, 0, 0, 0, 16, 40}, 32, 32, 16, 640, 1, 0, 0.0, 0.0, 1e-4, 1e-5},
    {{"5+3+3", 1, 0, 0, 0, 16, 40}, 33, 17, 9, 640, 1, 0, 0.0, 0.0, 1e-4, 1e-5},
    {{"separate", 0, 1, 0, 0, 16, 40}, 33, 17, 9, 640, 1, 0, 0.0, 0.0, 1e-4, 1e-5},
    {{"5+3+3 separate", 1, 1, 0, 0, 31, 20}, 48, 40, 24, 700, 1, 0, 0.1, 0.0, 1e-4, 1e-5},
    {{"5 exposures", 0, 0, 1, 0, 31, 20}, 16, 16, 16, 620, 1, 0, 0.0, 0.0, 1e-4, 1e-5},
    {{"one row", 0, 0, 0, 0, 1, 1}, 32, 32, 16, 1, 1, 0, 0.0, 0.0, 1e-4, 1e-5},
    {{"early ends", 0, 0, 0, 1, 16, 40}, 32, 32, 16, 640, 1, 0, 0.0, 0.0, 1e-4, 1e-5},
    {{"a short last minibatch", 0, 0, 0, 0, 16, 40}, 32, 32, 16, 257, 2, 0, 0.1, 0.0, 2e-2, 1e-3},
    {{"separate, passes", 1, 1, 0, 0, 16, 40}, 32, 32, 16, 128, 3, 0, 0.0, 0.0, 2e-2, 1e-3},
    {{"early ends, passes", 0, 0, 0, 1, 16, 40}, 32, 32, 16, 100, 3, 0, 0.0, 0.0, 2e-2, 1e-3},
    {{"a large minibatch", 0, 0, 0, 0, 9, 11}, 32, 32, 16, 1000, 1, 0, 0.0, 0.0, 1e-4, 1e-5},
    {{"separate, whole tiles", 0, 1, 0, 0, 16, 40}, 64, 128, 64, 640, 1, 0, 0.0, 0.0, 1e-4, 1e-5},
    {{"separate, odd tiles", 0, 1, 0, 0, 16, 40}, 96, 80, 48, 640, 1, 0, 0.0, 0.0, 1e-4, 1e-5},
    {{"45, bf16", 0, 0, 0, 0, 16, 40}, 32, 32, 16, 640, 1, 1, 0.0, 0.0, 2e-1, 3e-2},
    {{"separate, bf16", 1, 1, 0, 0, 16, 40}, 64, 128, 64, 640, 1, 1, 0.0, 0.0, 2e-1, 3e-2},
    {{"reference", 0, 0, 0, 0, 128, 32}, 256, 256, 128, 4096, 1, 0, 0.0, 0.0, 1e-4, 1e-5},
};

static void check_losses(const shape *s, const ho_epoch_stat *cpu, const ho_epoch_stat *gpu)
{
    CHECK_NEAR(gpu->loss_mean, cpu->loss_mean, s->loss_bound * fmax(1.0, fabs(cpu->loss_mean)));
    CHECK_NEAR(gpu->loss_last, cpu->loss_last, s->loss_bound * fmax(1.0, fabs(cpu->loss_last)));
    CHECK_NEAR(gpu->entropy, cpu->entropy, s->loss_bound * 4);
    CHECK_NEAR(gpu->kl, cpu->kl, s->loss_bound);
    CHECK_NEAR(gpu->clip_fraction, cpu->clip_fraction, s->passes > 1 ? 0.02 : 0.0);
    CHECK_NEAR(gpu->explained_variance, cpu->explained_variance, s->loss_bound * 10);
    CHECK_NEAR(gpu->q_mean, cpu->q_mean, s->loss_bound * (cpu->q_std + 1.0));
    CHECK_NEAR(gpu->q_std, cpu->q_std, s->loss_bound * (cpu->q_std + 1.0));
    CHECK_NEAR(gpu->grad_norm, cpu->grad_norm, s->bound * 3.0 * cpu->grad_norm);
    assert_int_equal(gpu->updates, cpu->updates);
    assert_true(gpu->learning_rate == cpu->learning_rate);
}

static void updates_agree_with_the_cpu(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const shape *s = &shapes[i];
        if (s->batch > gpu_size(4096, 1024)) {
            continue; /* under the emulator: minutes */
        }
        ho_err err;
        pair p = open_pair(BARS, 1, HO_MARKET_FEATURES);
        ho_cohort_key key = key_of(p.cpu, &s->f);
        ho_epoch_stat cpu, gpu;
        ho_tensors before, a, b;
        key.hidden1 = s->hidden1;
        key.hidden2 = s->hidden2;
        key.head = s->head;
        key.batch = s->batch;
        key.ppo_epochs = s->passes;
        key.precision = s->bf16 ? HO_PRECISION_BF16 : HO_PRECISION_F32;
        ho_lane_config lane = lane_of(p.cpu, &key, &s->f);
        lane.agent.adam_eps = s->passes == 1 ? 1.0 : 1e-5;
        lane.agent.learning_rate = s->passes == 1 ? 0.1 : 1e-3;
        lane.agent.value_clip = s->value_clip;
        lane.agent.ent_coef = 0.05;
        lanes l = open_lanes(&p, &key, &lane);
        CHECK_OK(ho_lane_export(l.gpu, 0, &before, &err), &err);
        run_both(&l, &cpu, &gpu);
        CHECK_OK(ho_lane_export(l.cpu, 0, &a, &err), &err);
        CHECK_OK(ho_lane_export(l.gpu, 0, &b, &err), &err);
        const double error = relative_error(&before, &a, &b);
        print_message("%s, %dx%dx%d batch %d: change %.2e loss %.7f %.7f norm %.6f %.6f entropy "
                      "%.6f %.6f kl %.2e %.2e explained %.6f %.6f\n",
                      s->f.name, s->hidden1, s->hidden2, s->head, s->batch, error, cpu.loss_mean,
                      gpu.loss_mean, cpu.grad_norm, gpu.grad_norm, cpu.entropy, gpu.entropy, cpu.kl,
                      gpu.kl, cpu.explained_variance, gpu.explained_variance);
        if (!s->bf16) { /* the same actions */
            check_experience_equal(&cpu, &gpu);
        }
        if (!(error <= s->bound)) {
            fail_msg("%s: the weights' change differs by %.3e, bound %.1e", s->f.name, error,
                     s->bound);
        }
        if (!s->bf16) {
            check_losses(s, &cpu, &gpu);
        }
        CHECK_OK(ho_cuda_cohort_check_guards(l.gpu, &err), &err);
        ho_tensors_free(&before);
        ho_tensors_free(&a);
        ho_tensors_free(&b);
        close_lanes(&l);
        close_pair(&p);
    }
}

/* Weights that have moved too far stop a lane's minibatches of this epoch, not the next one's. */
static void target_kl_stops_both_at_the_same_minibatch(void **state)
{
    (void)state;
    static const double targets[] = {1e-9, 2e-3, 1e-2};
    pair p = open_pair(BARS, 1, WORLD_FEATURES);
    ho_cohort_key key = key_of(p.cpu, &forms[0]);
    key.ppo_epochs = 4;
    for (int i = 0; i < 3; i++) {
        ho_epoch_stat cpu, gpu;
        ho_lane_config lane = lane_of(p.cpu, &key, &forms[0]);
        lane.agent.learning_rate = 1e-2;
        lane.agent.target_kl = targets[i];
        lanes l = open_lanes(&p, &key, &lane);
        run_both(&l, &cpu, &gpu);
        print_message("target %g: stopped after %lld and %lld of %d updates, kl %.3e %.3e\n",
                      targets[i], (long long)cpu.updates, (long long)gpu.updates,
                      ho_epoch_updates(&key), cpu.kl, gpu.kl);
        assert_int_equal(gpu.updates, cpu.updates);
        assert_true(gpu.updates >= 1 && gpu.updates < ho_epoch_updates(&key));
        CHECK_NEAR(gpu.kl, cpu.kl, 1e-2 * cpu.kl);
        assert_true(i > 0 || gpu.updates == 1); /* the first minibatch has moved nothing yet */
        run_both(&l, &cpu, &gpu);
        assert_true(gpu.updates >= 1);
        close_lanes(&l);
    }
    close_pair(&p);
}

/* A lane that stops early leaves its neighbours' bits alone. */
static void a_stopped_lane_leaves_its_neighbours_alone(void **state)
{
    (void)state;
    ho_err err;
    ho_epoch_stat stat[2];
    pair p = open_pair(BARS, 1, WORLD_FEATURES);
    const ho_cohort_key key = key_of(p.gpu, &forms[0]);
    const ho_lane_config lane = lane_of(p.gpu, &key, &forms[0]);
    ho_lane_config hasty = lane;
    hasty.agent.learning_rate = 1e-2;
    hasty.agent.target_kl = 1e-6;
    ho_tensors weights[2];
    for (int i = 0; i < 2; i++) {
        ho_cohort *c;
        CHECK_OK(ho_cohort_create(p.gpu->backend, p.gpu->market, &key, 2, &c, &err), &err);
        CHECK_OK(ho_lane_start(c, 0, &lane, &err), &err);
        if (i == 1) {
            CHECK_OK(ho_lane_start(c, 1, &hasty, &err), &err);
        }
        for (int epoch = 0; epoch < 2; epoch++) {
            CHECK_OK(ho_cohort_run_epoch(c, stat, &err), &err);
        }
        assert_int_equal(stat[0].updates, ho_epoch_updates(&key));
        assert_true(i == 0 || (stat[1].updates >= 1 && stat[1].updates < stat[0].updates));
        CHECK_OK(ho_lane_export(c, 0, &weights[i], &err), &err);
        ho_cohort_destroy(&c);
    }
    assert_true(tensors_equal(&weights[0], &weights[1]));
    ho_tensors_free(&weights[0]);
    ho_tensors_free(&weights[1]);
    close_pair(&p);
}

/* ---- evaluation ---- */

static void evaluation_by_mode_and_by_samples_agrees_with_the_cpu(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        for (int sampled = 0; sampled < 2; sampled++) {
            ho_err err;
            pair p = open_pair(BARS, 1, WORLD_FEATURES);
            const form *f = &forms[i];
            const ho_cohort_key key = key_of(p.cpu, f);
            ho_lane_config lane = lane_of(p.cpu, &key, f);
            lane.agent.ppo_sample_eval = sampled;
            lane.agent.learning_rate =
                1e-2; /* fresh policies are so flat that outputs nearly tie */
            lanes l = open_lanes(&p, &key, &lane);
            ho_epoch_stat stat;
            ho_tensors weights;
            CHECK_OK(ho_cohort_run_epoch(l.cpu, &stat, &err), &err);
            CHECK_OK(ho_lane_export(l.cpu, 0, &weights, &err), &err);
            CHECK_OK(ho_lane_import(l.gpu, 0, &weights, &err), &err);
            ho_tensors_free(&weights);
            for (int policy = HO_POLICY_GREEDY; policy <= HO_POLICY_CONFIDENCE; policy++) {
                ho_backtest_result a, b;
                const ho_backtest_request request = {.policy = (ho_policy)policy,
                                                     .slots = {0, 0},
                                                     .slot_count =
                                                         policy == HO_POLICY_GREEDY ? 1 : 2,
                                                     .window = {0, gpu_size(1000, 300)},
                                                     .want = 15};
                CHECK_OK(ho_backtest(p.cpu->market, l.cpu, &request, 1, &a, &err), &err);
                CHECK_OK(ho_backtest(p.gpu->market, l.gpu, &request, 1, &b, &err), &err);
                int64_t same = 0, kinds = 0;
                for (int64_t n = 0; n < a.bars && n < b.bars; n++) {
                    same += a.actions[n] == b.actions[n];
                }
                for (int k = 0; k < HO_ACTIONS; k++) {
                    kinds += b.action_count[k] > 0;
                }
                print_message("%s, sampled %d, policy %d: %lld of %lld actions alike, %lld kinds\n",
                              f->name, sampled, policy, (long long)same, (long long)a.bars,
                              (long long)kinds);
                assert_true((double)same >= 0.995 * (double)a.bars);
                assert_true(!sampled || policy != HO_POLICY_GREEDY || kinds > 5);
                ho_backtest_free(&a);
                ho_backtest_free(&b);
            }
            close_lanes(&l);
            close_pair(&p);
        }
    }
}

/* Every kernel of PPO and curiosity once or a few times and no more: what compute-sanitizer can
 * finish. */
static void a_short_run_of_everything(void **state)
{
    (void)state;
    for (int bf16 = 0; bf16 < 2; bf16++) {
        ho_err err;
        ho_epoch_stat stat[2];
        ho_backtest_result r[2];
        pair p = open_pair(BARS, 1, HO_CURIOSITY_FEATURES);
        ho_cohort_key key = key_of(p.gpu, &forms[3]);
        ho_cohort *c;
        key.episodes = 9;
        key.rollout = 7;
        key.batch = 40; /* the second minibatch is short */
        key.ppo_epochs = 1;
        key.curiosity = 1;
        key.precision = bf16 ? HO_PRECISION_BF16 : HO_PRECISION_F32;
        ho_lane_config lane = lane_of(p.gpu, &key, &forms[3]);
        lane.agent.curiosity_every = 1;
        lane.agent.ppo_sample_eval = 1;
        lane.env.curiosity_weight = 0.05;
        lane.env.recycle = 1;
        CHECK_OK(ho_cohort_create(p.gpu->backend, p.gpu->market, &key, 2, &c, &err), &err);
        CHECK_OK(ho_lane_start(c, 1, &lane, &err), &err);
        CHECK_OK(ho_cohort_run_epoch(c, stat, &err), &err);
        assert_int_equal(stat[1].updates, 2);
        assert_true(stat[1].curiosity_loss > 0.0);
        const ho_backtest_request request[2] = {
            {.policy = HO_POLICY_GREEDY, .slots = {1}, .slot_count = 1, .window = {0, 12}},
            {.policy = HO_POLICY_VOTE, .slots = {1, 1}, .slot_count = 2, .window = {9, 20}}};
        CHECK_OK(ho_backtest(p.gpu->market, c, request, 2, r, &err), &err);
        assert_int_equal(r[0].bars, 11);
        ho_backtest_free(&r[0]);
        ho_backtest_free(&r[1]);
        CHECK_OK(ho_cuda_cohort_check_guards(c, &err), &err);
        ho_cohort_destroy(&c);
        close_pair(&p);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sampled_actions_values_and_advantages_agree_with_the_cpu),
        cmocka_unit_test(updates_agree_with_the_cpu),
        cmocka_unit_test(target_kl_stops_both_at_the_same_minibatch),
        cmocka_unit_test(a_stopped_lane_leaves_its_neighbours_alone),
        cmocka_unit_test(evaluation_by_mode_and_by_samples_agrees_with_the_cpu),
        cmocka_unit_test(a_short_run_of_everything),
    };
    return GPU_TESTS_RUN(tests, argc, argv);
}
