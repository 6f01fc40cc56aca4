/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/dqn_loss.h"

#include <string.h>

#include "kernels/agents/value.h"

/* Raw advantages and value of one row -> Q or logits, in place. */
static void combine_row(const ho_net_layout *net, ho_real *main, const ho_real *value)
{
    for (int d = 0; d < net->branches.count; d++) {
        ho_real *branch = main + (int64_t)net->branches.first[d] * net->atoms;
        for (int i = 0; i < net->atoms; i++) {
            ho_dueling_combine(branch + i, net->branches.size[d], net->atoms, value[i]);
        }
    }
}

void ho_dqn_values(const ho_net_layout *net, int32_t n, ho_real v_max, ho_net_rows *rows)
{
    for (int32_t r = 0; r < n; r++) {
        ho_real *main = rows->act[HO_LAYER_MAIN1] + (int64_t)r * rows->row[HO_LAYER_MAIN1];
        if (net->has_value) {
            combine_row(net, main,
                        rows->act[HO_LAYER_VALUE1] + (int64_t)r * rows->row[HO_LAYER_VALUE1]);
        }
        if (net->atoms > 1) {
            for (int a = 0; a < net->branches.outputs; a++) {
                ho_real *p = main + (int64_t)a * net->atoms;
                ho_softmax(p, net->atoms);
                rows->q[(int64_t)r * rows->q_row + a] = ho_c51_mean(p, net->atoms, v_max);
            }
        }
    }
}

void ho_dqn_targets(const ho_net_layout *net, int32_t n, ho_real v_max, const ho_real *reward,
                    const ho_real *discount, const ho_net_rows *selector,
                    const ho_net_rows *evaluator, ho_real *target)
{
    const ho_branches *b = &net->branches;
    const ho_real share = (ho_real)1 / (ho_real)b->count;
    for (int32_t r = 0; r < n; r++) {
        const ho_real *choose = selector->q + (int64_t)r * selector->q_row;
        const ho_real *value = evaluator->q + (int64_t)r * evaluator->q_row;
        const ho_real *atoms =
            evaluator->act[HO_LAYER_MAIN1] + (int64_t)r * evaluator->row[HO_LAYER_MAIN1];
        ho_real mean[256] = {0};
        ho_real next = 0;
        for (int d = 0; d < b->count; d++) {
            const int32_t best = b->first[d] + ho_argmax(choose + b->first[d], b->size[d]);
            next += share * value[best];
            for (int i = 0; net->atoms > 1 && i < net->atoms; i++) {
                mean[i] += share * atoms[(int64_t)best * net->atoms + i];
            }
        }
        if (net->atoms > 1) {
            ho_simd_get()->c51_project(target + (int64_t)r * net->atoms, mean, net->atoms, v_max,
                                       reward[r], discount[r]);
        } else {
            target[r] = ho_td_target(reward[r], discount[r], next);
        }
    }
}

/* Gradient on Q or logits -> gradient on the advantages (in place) and on the value. */
static void dueling_row(const ho_net_layout *net, ho_real *main, ho_real *value)
{
    memset(value, 0, (size_t)net->atoms * sizeof *value);
    for (int d = 0; d < net->branches.count; d++) {
        ho_real *branch = main + (int64_t)net->branches.first[d] * net->atoms;
        for (int i = 0; i < net->atoms; i++) {
            value[i] += ho_dueling_backward(branch + i, net->branches.size[d], net->atoms);
        }
    }
}

void ho_dqn_loss(const ho_net_layout *net, const ho_dqn_loss_spec *spec, int32_t n,
                 const int32_t *choice, const ho_real *target, const ho_real *weight,
                 ho_net_rows *online, ho_dqn_row *out)
{
    const ho_branches *b = &net->branches;
    const ho_real share = (ho_real)1 / (ho_real)b->count;
    ho_real *const delta = online->delta[HO_LAYER_MAIN1];
    for (int32_t r = 0; r < n; r++) {
        const ho_real w = weight ? weight[r] : (ho_real)1;
        const ho_real slope = w * share / (ho_real)spec->batch;
        const ho_real *q = online->q + (int64_t)r * online->q_row;
        const ho_real *atoms =
            online->act[HO_LAYER_MAIN1] + (int64_t)r * online->row[HO_LAYER_MAIN1];
        ho_real *dmain = delta ? delta + (int64_t)r * online->row[HO_LAYER_MAIN1] : NULL;
        if (dmain) {
            memset(dmain, 0, (size_t)b->outputs * (size_t)net->atoms * sizeof *dmain);
        }
        ho_dqn_row row = {0, 0, 0};
        for (int d = 0; d < b->count; d++) {
            const int32_t taken = b->first[d] + choice[r * HO_BRANCHES_MAX + d];
            row.q += share * q[taken];
            if (net->atoms > 1) {
                const ho_real *p = atoms + (int64_t)taken * net->atoms;
                const ho_real *m = target + (int64_t)r * net->atoms;
                const ho_real ce = ho_cross_entropy(m, p, net->atoms);
                row.loss += share * ce;
                row.td += share * ce;
                for (int i = 0; dmain && i < net->atoms; i++) {
                    dmain[(int64_t)taken * net->atoms + i] = slope * (p[i] - m[i]);
                }
            } else {
                const ho_real error = q[taken] - target[r];
                row.loss += share * ho_huber(error, spec->huber_delta);
                row.td += share * ho_real_abs(error);
                if (dmain) {
                    dmain[taken] = slope * ho_huber_slope(error, spec->huber_delta);
                }
            }
        }
        row.loss *= w;
        out[r] = row;
        if (dmain && net->has_value) {
            dueling_row(net, dmain,
                        online->delta[HO_LAYER_VALUE1] + (int64_t)r * online->row[HO_LAYER_VALUE1]);
        }
    }
}

ho_real ho_dqn_trunk_scale(const ho_net_layout *net)
{
    return net->branches.count > 1 ? (ho_real)1 / (ho_real)(net->branches.count + 1) : (ho_real)1;
}
