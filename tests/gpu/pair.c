/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/pair.h"

#include "check.h"
#include "kernels/cpu/cohort.h"

pair open_pair(int64_t bars, int force_portable, int F)
{
    ho_backend_options cpu = ho_backend_defaults(), gpu = ho_backend_defaults();
    cpu.threads = 4;
    gpu.kind = HO_BACKEND_CUDA;
    gpu.force_portable = force_portable;
    const pair p = {world_new_on(WORLD_NOISE, bars, 9, F, &cpu),
                    world_new_on(WORLD_NOISE, bars, 9, F, &gpu)};
    return p;
}

void close_pair(pair *p)
{
    world_free(&p->cpu);
    world_free(&p->gpu);
}

lanes open_lanes(pair *p, const ho_cohort_key *key, const ho_lane_config *lane)
{
    ho_err err;
    lanes l;
    ho_cohort_key gpu = *key, cpu = *key;
    cpu.precision = HO_PRECISION_F32;
    CHECK_OK(ho_cohort_create(p->cpu->backend, p->cpu->market, &cpu, 1, &l.cpu, &err), &err);
    CHECK_OK(ho_cohort_create(p->gpu->backend, p->gpu->market, &gpu, 1, &l.gpu, &err), &err);
    CHECK_OK(ho_lane_start(l.cpu, 0, lane, &err), &err);
    CHECK_OK(ho_lane_start(l.gpu, 0, lane, &err), &err);
    return l;
}

void close_lanes(lanes *l)
{
    ho_cohort_destroy(&l->cpu);
    ho_cohort_destroy(&l->gpu);
}

void run_both(lanes *l, ho_epoch_stat *cpu, ho_epoch_stat *gpu)
{
    ho_err err;
    CHECK_OK(ho_cohort_run_epoch(l->cpu, cpu, &err), &err);
    CHECK_OK(ho_cohort_run_epoch(l->gpu, gpu, &err), &err);
}

void check_experience_equal(const ho_epoch_stat *a, const ho_epoch_stat *b)
{
    assert_int_equal(a->experiences, b->experiences);
    assert_int_equal(a->replay_fill, b->replay_fill);
    assert_memory_equal(a->exposure_count, b->exposure_count, sizeof a->exposure_count);
    assert_memory_equal(a->order_count, b->order_count, sizeof a->order_count);
    assert_memory_equal(a->urgency_count, b->urgency_count, sizeof a->urgency_count);
    assert_int_equal(a->ended_ruin, b->ended_ruin);
    assert_int_equal(a->ended_window, b->ended_window);
    assert_int_equal(a->ended_length, b->ended_length);
    assert_int_equal(a->ended_barrier, b->ended_barrier);
    assert_int_equal(a->exit_profit, b->exit_profit);
    assert_int_equal(a->exit_stop, b->exit_stop);
    assert_int_equal(a->exit_time, b->exit_time);
    assert_int_equal(a->exit_session, b->exit_session);
    assert_int_equal(a->exit_signal, b->exit_signal);
    if (a->reward_mean != b->reward_mean || a->reward_std != b->reward_std ||
        a->reward_min != b->reward_min || a->reward_max != b->reward_max ||
        a->sharpe != b->sharpe || a->kelly_share != b->kelly_share) {
        fail_msg("reward mean %.17g and %.17g, sharpe %.17g and %.17g", a->reward_mean,
                 b->reward_mean, a->sharpe, b->sharpe);
    }
}

double relative_error(const ho_tensors *start, const ho_tensors *cpu, const ho_tensors *gpu)
{
    double error = 0.0, change = 0.0;
    assert_int_equal(cpu->count, gpu->count);
    for (int i = 0; i < cpu->count; i++) {
        const ho_tensor *t = &cpu->tensor[i];
        const int64_t n = t->shape[0] * (t->ndim == 2 ? t->shape[1] : 1);
        assert_string_equal(t->name, gpu->tensor[i].name);
        for (int64_t k = 0; k < n; k++) {
            const double e = (double)gpu->tensor[i].data[k] - (double)t->data[k];
            const double c = (double)t->data[k] - (double)start->tensor[i].data[k];
            error += e * e;
            change += c * c;
        }
    }
    assert_true(change > 0.0);
    return sqrt(error / change);
}

int tensors_equal(const ho_tensors *a, const ho_tensors *b)
{
    int equal = a->count == b->count;
    for (int i = 0; equal && i < a->count; i++) {
        const ho_tensor *t = &a->tensor[i];
        const int64_t n = t->shape[0] * (t->ndim == 2 ? t->shape[1] : 1);
        equal = strcmp(t->name, b->tensor[i].name) == 0 &&
                memcmp(t->data, b->tensor[i].data, (size_t)n * sizeof *t->data) == 0;
    }
    return equal;
}

cpu_steps cpu_steps_of(ho_cohort *cpu)
{
    const ho_cpu_cohort *c = ho_cpu_cohort_of(cpu);
    const ho_scratch *s = c->scratch[0];
    const cpu_steps steps = {.bar = s->rollout.bar,
                             .action = s->rollout.action,
                             .flags = s->rollout.flags,
                             .reward = s->rollout.reward,
                             .log_p = s->rollout.log_p,
                             .value = s->rollout.value,
                             .value_next = s->value_next,
                             .advantage = s->advantage,
                             .forward_model = c->lane[0]->curiosity.parameter};
    return steps;
}

int cpu_step_valid(const cpu_steps *s, size_t at)
{
    return (s->flags[at] & HO_STEP_VALID) != 0;
}

int cpu_step_terminal(const cpu_steps *s, size_t at)
{
    return (s->flags[at] & HO_STEP_TERMINAL) != 0;
}

int cpu_step_ended(const cpu_steps *s, size_t at)
{
    return (s->flags[at] & (HO_STEP_TERMINAL | HO_STEP_TRUNCATED)) != 0;
}
