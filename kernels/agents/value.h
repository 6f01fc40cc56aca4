/* SPDX-License-Identifier: Apache-2.0
 * Value learning: dueling mean, targets, losses, C51 (Mnih 2015; van Hasselt 2016; Wang 2016;
 * Bellemare 2017; Tavakoli 2018). Pure arithmetic on scalars and short rows.
 * `discount` of a transition is gamma^m * (1 - terminal): a truncated one keeps its bootstrap. */
#ifndef HO_KERNELS_AGENTS_VALUE_H
#define HO_KERNELS_AGENTS_VALUE_H

#include "kernels/agents/branches.h"
#include "kernels/agents/real.h"
#include "kernels/hd.h"

/* Sums m = min(n, steps to the episode's end) rewards. Start with {0, 1}; push each step's reward;
 * stop at the first step that ends the episode, for whatever reason. */
typedef struct ho_nstep {
    double reward;   /* sum of gamma^k r_k */
    double discount; /* gamma^m */
} ho_nstep;

static inline HO_HD void ho_nstep_push(ho_nstep *n, double reward, double gamma)
{
    n->reward += n->discount * reward;
    n->discount *= gamma;
}

static inline HO_HD ho_real ho_td_target(ho_real reward, ho_real discount, ho_real next_value)
{
    return reward + discount * next_value;
}

/* Huber loss of the error q - y; delta = 0: half the squared error. */
static inline HO_HD ho_real ho_huber(ho_real error, ho_real delta)
{
    const ho_real a = ho_real_abs(error);
    if (delta <= 0 || a <= delta) {
        return (ho_real)0.5 * error * error;
    }
    return delta * (a - (ho_real)0.5 * delta);
}

static inline HO_HD ho_real ho_huber_slope(ho_real error, ho_real delta)
{
    if (delta <= 0 || ho_real_abs(error) <= delta) {
        return error;
    }
    return error > 0 ? delta : -delta;
}

/* Dueling: x[i] += value - mean(x) over the n actions of one sample (and one branch and atom);
 * stride between actions. Wang 2016, equation 9. */
static inline HO_HD void ho_dueling_combine(ho_real *x, int32_t n, int32_t stride, ho_real value)
{
    ho_real sum = 0;
    for (int32_t i = 0; i < n; i++) {
        sum += x[i * stride];
    }
    const ho_real shift = value - sum / (ho_real)n;
    for (int32_t i = 0; i < n; i++) {
        x[i * stride] += shift;
    }
}

/* Its transpose: gradient on the outputs -> gradient on the advantages (in place); returns the
 * gradient on the value. */
static inline HO_HD ho_real ho_dueling_backward(ho_real *dx, int32_t n, int32_t stride)
{
    ho_real sum = 0;
    for (int32_t i = 0; i < n; i++) {
        sum += dx[i * stride];
    }
    for (int32_t i = 0; i < n; i++) {
        dx[i * stride] -= sum / (ho_real)n;
    }
    return sum;
}

/* x[n] -> softmax in place. */
static inline HO_HD void ho_softmax(ho_real *x, int32_t n)
{
    ho_real top = x[0];
    for (int32_t i = 1; i < n; i++) {
        top = x[i] > top ? x[i] : top;
    }
    ho_real sum = 0;
    for (int32_t i = 0; i < n; i++) {
        x[i] = ho_real_exp(x[i] - top);
        sum += x[i];
    }
    const ho_real inv = 1 / sum;
    for (int32_t i = 0; i < n; i++) {
        x[i] *= inv;
    }
}

/* ---- C51: atoms z_i = -v_max + i * delta ---- */

static inline HO_HD ho_real ho_c51_delta(ho_real v_max, int32_t atoms)
{
    return 2 * v_max / (ho_real)(atoms - 1);
}

static inline HO_HD ho_real ho_c51_mean(const ho_real *probability, int32_t atoms, ho_real v_max)
{
    const ho_real delta = ho_c51_delta(v_max, atoms);
    ho_real sum = 0;
    for (int32_t i = 0; i < atoms; i++) {
        sum += probability[i] * (-v_max + delta * (ho_real)i);
    }
    return sum;
}

/* out[i] = sum_j p_j * clip(1 - |clip(r + discount * z_j) - z_i| / delta, 0, 1): the projection of
 * Bellemare 2017, equation 7, as a gather, so it needs neither atomics nor the integer case. */
static inline HO_HD void ho_c51_project(ho_real *out, const ho_real *probability, int32_t atoms,
                                        ho_real v_max, ho_real reward, ho_real discount)
{
    const ho_real delta = ho_c51_delta(v_max, atoms);
    const ho_real inv = 1 / delta;
    for (int32_t i = 0; i < atoms; i++) {
        out[i] = 0;
    }
    for (int32_t j = 0; j < atoms; j++) {
        ho_real z = reward + discount * (-v_max + delta * (ho_real)j);
        z = z < -v_max ? -v_max : (z > v_max ? v_max : z);
        const ho_real at = (z + v_max) * inv; /* in atoms */
        for (int32_t i = 0; i < atoms; i++) {
            const ho_real w = 1 - ho_real_abs(at - (ho_real)i);
            out[i] += w > 0 ? probability[j] * w : 0;
        }
    }
}

/* -sum m_i log p_i. */
static inline HO_HD ho_real ho_cross_entropy(const ho_real *target, const ho_real *probability,
                                             int32_t n)
{
    ho_real sum = 0;
    for (int32_t i = 0; i < n; i++) {
        const ho_real p = probability[i] > (ho_real)1e-30 ? probability[i] : (ho_real)1e-30;
        sum -= target[i] * ho_real_log(p);
    }
    return sum;
}

#endif
