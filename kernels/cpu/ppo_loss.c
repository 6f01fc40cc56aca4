/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/ppo_loss.h"

#include "kernels/agents/ppo.h"

void ho_ppo_log_probabilities(const ho_net_layout *net, int32_t n, ho_net_rows *rows)
{
    const ho_branches *b = &net->branches;
    for (int32_t r = 0; r < n; r++) {
        ho_real *row = rows->act[HO_LAYER_MAIN1] + (int64_t)r * rows->row[HO_LAYER_MAIN1];
        for (int d = 0; d < b->count; d++) {
            ho_real *x = row + b->first[d];
            const ho_real top = x[ho_argmax(x, b->size[d])];
            ho_real sum = 0;
            for (int32_t i = 0; i < b->size[d]; i++) {
                sum += ho_real_exp(x[i] - top);
            }
            const ho_real shift = top + ho_real_log(sum);
            for (int32_t i = 0; i < b->size[d]; i++) {
                x[i] -= shift;
            }
        }
    }
}

ho_real ho_ppo_choice_log_p(const ho_net_layout *net, const ho_real *log_p,
                            const int32_t choice[HO_BRANCHES_MAX])
{
    ho_real sum = 0;
    for (int d = 0; d < net->branches.count; d++) {
        sum += log_p[net->branches.first[d] + choice[d]];
    }
    return sum;
}

void ho_ppo_sample(const ho_net_layout *net, const ho_real *log_p, const double u[HO_BRANCHES_MAX],
                   int32_t choice[HO_BRANCHES_MAX])
{
    const ho_branches *b = &net->branches;
    for (int d = 0; d < HO_BRANCHES_MAX; d++) {
        choice[d] = 0;
    }
    for (int d = 0; d < b->count; d++) {
        double below = 0.0;
        int32_t i = 0;
        for (; i < b->size[d] - 1; i++) {
            below += (double)ho_real_exp(log_p[b->first[d] + i]);
            if (u[d] < below) {
                break;
            }
        }
        choice[d] = i;
    }
}

void ho_ppo_loss(const ho_net_layout *net, const ho_ppo_loss_spec *spec, int32_t n,
                 const ho_ppo_batch *batch, ho_net_rows *rows, ho_ppo_sums *sums)
{
    const ho_branches *b = &net->branches;
    const ho_real inv = (ho_real)1 / (ho_real)spec->batch;
    for (int32_t r = 0; r < n; r++) {
        const int32_t *choice = batch->choice + (int64_t)r * HO_BRANCHES_MAX;
        const ho_real *log_p = rows->act[HO_LAYER_MAIN1] + (int64_t)r * rows->row[HO_LAYER_MAIN1];
        ho_real *delta = rows->delta[HO_LAYER_MAIN1] + (int64_t)r * rows->row[HO_LAYER_MAIN1];
        const ho_real now = ho_ppo_choice_log_p(net, log_p, choice);
        const ho_ppo_term term =
            ho_ppo_surrogate(now, batch->log_p_old[r], batch->advantage[r], spec->clip);
        sums->policy_loss += (double)term.loss;
        sums->kl += (double)ho_ppo_kl(now, batch->log_p_old[r]);
        sums->clipped += term.clipped;
        for (int d = 0; d < b->count; d++) {
            const ho_real *lp = log_p + b->first[d];
            ho_real entropy = 0;
            for (int32_t i = 0; i < b->size[d]; i++) {
                entropy -= ho_real_exp(lp[i]) * lp[i];
            }
            sums->entropy += (double)entropy;
            for (int32_t i = 0; i < b->size[d]; i++) {
                const ho_real p = ho_real_exp(lp[i]);
                const ho_real taken = i == choice[d] ? (ho_real)1 : (ho_real)0;
                delta[b->first[d] + i] =
                    inv * (term.slope * (taken - p) + spec->ent_coef * p * (lp[i] + entropy));
            }
        }
        ho_real slope;
        const ho_real value = rows->act[HO_LAYER_VALUE1][(int64_t)r * rows->row[HO_LAYER_VALUE1]];
        sums->value_loss += (double)ho_ppo_value_loss(
            value, batch->value_old[r], batch->value_target[r], spec->value_clip, &slope);
        rows->delta[HO_LAYER_VALUE1][(int64_t)r * rows->row[HO_LAYER_VALUE1]] =
            inv * spec->vf_coef * slope;
    }
}
