/* SPDX-License-Identifier: Apache-2.0
 * What a trained lane does in a state: the mean weights, no exploration. Contract: policy.h. */
#include <math.h>

#include "kernels/cpu/cohort.h"

static void carve(const ho_lane_shape *s, int n, float **x, ho_net_rows *rows, ho_carve *c)
{
    ho_net_rows_carve(rows, &s->net, n, 0, c);
    *x = ho_carve_take(c, (size_t)n * (size_t)rows->x_row, sizeof **x);
}

size_t ho_cpu_act_scratch(const ho_cohort *cohort, int n)
{
    ho_carve c = {NULL, 0};
    ho_net_rows rows;
    float *x;
    carve(&((const ho_cpu_cohort *)(const void *)cohort)->shape, n, &x, &rows, &c);
    return c.used;
}

/* score[45]: of every composed action; -inf for one that the action set lacks. value: one number an
 * output, summed over branches. */
static void fill_scores(const ho_branches *b, const float *value, float *score)
{
    for (int a = 0; a < HO_ACTIONS; a++) {
        int32_t choice[HO_BRANCHES_MAX];
        ho_branches_choice(b, a, choice);
        score[a] = 0.0f;
        for (int d = 0; d < b->count; d++) {
            score[a] += value[b->first[d] + choice[d]];
        }
        if (ho_branches_action(b, choice) != a) {
            score[a] = -INFINITY;
        }
    }
}

static void sample(const ho_lane *lane, const ho_net_layout *net, uint32_t step, uint32_t row,
                   const float *log_p, int32_t choice[HO_BRANCHES_MAX])
{
    double u[HO_BRANCHES_MAX] = {0};
    for (int d = 0; d < net->branches.count; d++) {
        const ho_rng4 r = ho_rng(lane->env.key, step, row, 0, HO_RNG_POLICY, (uint32_t)d);
        u[d] = ho_rng_double(r.v[0], r.v[1]);
    }
    ho_ppo_sample(net, log_p, u, choice);
}

ho_status ho_cpu_act(const ho_cohort *cohort, int slot, const float *state, int n, uint32_t step,
                     float *score, uint8_t *action, void *scratch)
{
    const ho_cpu_cohort *c = (const ho_cpu_cohort *)(const void *)cohort;
    const ho_lane *lane = c->lane[slot];
    const ho_net_layout *net = &c->shape.net;
    const ho_branches *b = &net->branches;
    const int ppo = c->shape.key.algorithm == HO_PPO;
    ho_carve block = {scratch, 0};
    ho_net_rows rows;
    float *x;
    if (!lane) {
        return HO_EINVAL;
    }
    carve(&c->shape, n, &x, &rows, &block);
    for (int i = 0; i < n; i++) {
        for (int32_t k = 0; k < rows.x_row; k++) {
            x[(int64_t)i * rows.x_row + k] =
                k < net->state ? state[(int64_t)i * net->state + k] : 0.0f;
        }
    }
    const int both = !ppo && (net->atoms > 1 || score != NULL);
    ho_net_forward(net, &lane->acting, x, n, both ? HO_NET_BOTH : HO_NET_MAIN, &rows);
    if (both) {
        ho_dqn_values(net, n, (float)lane->config.agent.v_max, &rows);
    }
    /* the mode is the best output itself: as log-probabilities, near -4, outputs that differ by
     * less than 2e-7 would tie */
    const int sampled = ppo && lane->config.agent.ppo_sample_eval;
    for (int i = 0; !sampled && i < n; i++) {
        const float *value = rows.q + (int64_t)i * rows.q_row;
        int32_t choice[HO_BRANCHES_MAX] = {0};
        for (int d = 0; d < b->count; d++) {
            choice[d] = ho_argmax(value + b->first[d], b->size[d]);
        }
        action[i] = (uint8_t)ho_branches_action(b, choice);
    }
    if (ppo && (sampled || score)) {
        ho_ppo_log_probabilities(net, n, &rows);
    }
    for (int i = 0; i < n; i++) {
        const float *value = rows.q + (int64_t)i * rows.q_row;
        int32_t choice[HO_BRANCHES_MAX] = {0};
        if (sampled) {
            sample(lane, net, step, 0, value, choice);
            action[i] = (uint8_t)ho_branches_action(b, choice);
        }
        if (score) {
            fill_scores(b, value, score + (int64_t)i * HO_ACTIONS);
        }
    }
    return HO_OK;
}
