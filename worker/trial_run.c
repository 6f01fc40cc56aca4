/* SPDX-License-Identifier: Apache-2.0
 * Book-keeping of a running trial; see trial_run.h. */
#include "worker/trial_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void row_free(ho_epoch_row **row)
{
    if (*row) {
        free((*row)->stat);
        free((*row)->value);
        free((*row)->fold_value);
        free(*row);
        *row = NULL;
    }
}

static ho_epoch_row *row_new(const ho_trial_plan *plan)
{
    ho_epoch_row *row = calloc(1, sizeof *row);
    if (!row) {
        return NULL;
    }
    size_t lanes = (size_t)plan->lanes, values = lanes * (size_t)plan->objectives;
    row->stat = calloc(lanes, sizeof *row->stat);
    row->value = calloc(values, sizeof *row->value);
    row->fold_value = calloc((size_t)plan->agent_folds, sizeof *row->fold_value);
    if (!row->stat || !row->value || !row->fold_value) {
        row_free(&row);
        return NULL;
    }
    for (size_t i = 0; i < values; i++) {
        row->value[i] = NAN;
    }
    return row;
}

ho_status ho_trial_run_create(ho_trial_run **out, ho_trial_plan **plan, ho_err *err)
{
    *out = NULL;
    ho_trial_run *run = calloc(1, sizeof *run);
    if (!run) {
        ho_trial_plan_destroy(plan);
        return ho_err_set(err, HO_ENOMEM, "out of memory for a trial");
    }
    run->plan = *plan;
    *plan = NULL;
    size_t lanes = (size_t)run->plan->lanes;
    size_t tests = (size_t)run->plan->folds * (size_t)run->plan->seeds;
    run->lane = calloc(lanes, sizeof *run->lane);
    run->row = calloc((size_t)run->plan->epochs, sizeof *run->row);
    run->test = calloc(tests, sizeof *run->test);
    if (!run->lane || !run->row || !run->test) {
        ho_trial_run_destroy(&run);
        return ho_err_set(err, HO_ENOMEM, "out of memory for a trial of %zu lanes", lanes);
    }
    for (size_t i = 0; i < lanes; i++) {
        run->lane[i].slot = -1;
        run->lane[i].best = NAN;
    }
    *out = run;
    return HO_OK;
}

void ho_trial_run_destroy(ho_trial_run **run)
{
    if (!run || !*run) {
        return;
    }
    ho_trial_run *r = *run;
    for (int i = 0; r->lane && i < r->plan->lanes; i++) {
        ho_tensors_free(&r->lane[i].best_weights);
        ho_tensors_free(&r->lane[i].weights);
        ho_prepared_drop(&r->lane[i].prepared);
        free(r->lane[i].blob);
    }
    ho_trial_run_clear_rows(r);
    for (int i = 0; r->test && i < r->plan->folds * r->plan->seeds; i++) {
        ho_backtest_free(&r->test[i]);
    }
    ho_backtest_drop(&r->after);
    free(r->lane);
    free(r->row);
    free(r->test);
    ho_trial_plan_destroy(&r->plan);
    free(r);
    *run = NULL;
}

ho_epoch_row *ho_trial_run_row(ho_trial_run *run, int epoch)
{
    if (!run->row[epoch]) {
        run->row[epoch] = row_new(run->plan);
    }
    return run->row[epoch];
}

void ho_trial_run_clear_rows(ho_trial_run *run)
{
    for (int e = 0; run->row && e < run->plan->epochs; e++) {
        row_free(&run->row[e]);
    }
    run->rows_out = 0;
}

ho_status ho_trial_run_note(ho_trial_run *run, int lane, const ho_epoch_stat *stat,
                            const double *values, ho_err *err)
{
    int epoch = run->lane[lane].epoch;
    if (epoch >= run->plan->epochs) {
        return ho_err_set(err, HO_EINVAL, "lane %d has done its %d epochs", lane,
                          run->plan->epochs);
    }
    ho_epoch_row *row = ho_trial_run_row(run, epoch);
    if (!row) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for a trial's statistics");
    }
    row->stat[lane] = *stat;
    if (run->plan->lane[lane].env.sizing == HO_SIZING_KELLY) {
        run->plan->lane[lane].env.kelly_share = stat->kelly_share; /* goes into the agent's file */
    }
    if (values) {
        size_t n = (size_t)run->plan->objectives;
        memcpy(row->value + (size_t)lane * n, values, n * sizeof *values);
        row->scored = true;
    }
    row->noted++;
    run->lane[lane].epoch++;
    run->experiences += stat->experiences;
    run->updates += stat->updates;
    return HO_OK;
}

ho_status ho_trial_run_await(ho_trial_run *run, int lane, const ho_epoch_stat *stat, ho_err *err)
{
    ho_status rc = ho_trial_run_note(run, lane, stat, NULL, err);
    if (rc == HO_OK) {
        ho_epoch_row *row = run->row[run->lane[lane].epoch - 1];
        row->scored = true;
        row->awaited++;
        run->awaited++;
    }
    return rc;
}

void ho_trial_run_value(ho_trial_run *run, int lane, int epoch, const double *values)
{
    ho_lane_run *state = &run->lane[lane];
    ho_epoch_row *row = run->row[epoch - 1];
    size_t n = (size_t)run->plan->objectives;
    memcpy(row->value + (size_t)lane * n, values, n * sizeof *values);
    row->awaited--;
    run->awaited--;
    if (ho_objective_better(run->plan->objective[0], values[0], state->best)) {
        state->best = values[0];
        state->best_epoch = epoch;
    }
}

/* Mean over the defined of value[first, first + stride, ...]; NaN when none is. */
static double mean_defined(const double *value, int n, int stride)
{
    double sum = 0.0;
    int count = 0;
    for (int i = 0; i < n; i++) {
        double v = value[i * stride];
        if (isfinite(v)) {
            sum += v;
            count++;
        }
    }
    return count > 0 ? sum / count : NAN;
}

bool ho_trial_run_next_row(ho_trial_run *run, ho_trial_epoch *out)
{
    const ho_trial_plan *plan = run->plan;
    memset(out, 0, sizeof *out);
    int kept = plan->may_pause ? HO_ROWS_KEPT : 0;
    if (run->rows_out > kept) {
        row_free(&run->row[run->rows_out - 1 - kept]);
    }
    if (run->rows_out >= plan->epochs) {
        return false;
    }
    ho_epoch_row *row = run->row[run->rows_out];
    if (!row || row->noted < plan->lanes || row->awaited > 0) {
        return false;
    }
    int n = plan->objectives;
    out->epoch = ++run->rows_out;
    ho_epoch_stat_merge(&out->stat, row->stat, plan->lanes);
    out->scored = row->scored;
    for (int k = 0; k < n; k++) {
        out->value[k] = mean_defined(row->value + k, plan->lanes, n);
    }
    for (int f = 0; f < plan->agent_folds; f++) {
        row->fold_value[f] = mean_defined(row->value + (size_t)f * plan->seeds * n, plan->seeds, n);
    }
    out->fold_value = row->fold_value;
    return true;
}

void ho_trial_run_tell_again(ho_trial_run *run, int epoch)
{
    while (run->rows_out > epoch && run->row[run->rows_out - 1]) {
        run->rows_out--;
    }
}

void ho_epoch_stat_merge(ho_epoch_stat *out, const ho_epoch_stat *lane, int n)
{
    memset(out, 0, sizeof *out);
    out->state = HO_LANE_ACTIVE;
    out->epoch = n > 0 ? lane[0].epoch : 0;
    for (int i = 0; i < n; i++) {
        const ho_epoch_stat *s = &lane[i];
        if (out->state == HO_LANE_ACTIVE && s->state != HO_LANE_ACTIVE) {
            out->state = s->state;
            out->guard = s->guard;
            out->guard_update = s->guard_update;
        }
#define SUM(field)  out->field += s->field
#define LOW(field)  out->field = i == 0 || s->field < out->field ? s->field : out->field
#define HIGH(field) out->field = i == 0 || s->field > out->field ? s->field : out->field
        SUM(experiences), SUM(updates), SUM(replay_fill);
        for (int k = 0; k < HO_EXPOSURES; k++) {
            SUM(exposure_count[k]);
        }
        for (int k = 0; k < HO_ORDERS; k++) {
            SUM(order_count[k]);
        }
        for (int k = 0; k < HO_URGENCIES; k++) {
            SUM(urgency_count[k]);
        }
        SUM(ended_ruin), SUM(ended_window), SUM(ended_length), SUM(ended_barrier);
        SUM(exit_profit), SUM(exit_stop), SUM(exit_time), SUM(exit_session), SUM(exit_signal);
        LOW(reward_min), HIGH(reward_max), LOW(q_min), HIGH(q_max);
        SUM(reward_mean), SUM(reward_std), SUM(sharpe), SUM(loss_mean), SUM(loss_last);
        SUM(grad_norm), SUM(q_mean), SUM(q_std), SUM(epsilon), SUM(td_error_mean);
        SUM(learning_rate), SUM(kl), SUM(clip_fraction), SUM(entropy), SUM(explained_variance);
        SUM(curiosity_loss);
#undef SUM
#undef LOW
#undef HIGH
    }
    if (n > 0) {
        double *mean[] = {&out->reward_mean,   &out->reward_std,    &out->sharpe,
                          &out->loss_mean,     &out->loss_last,     &out->grad_norm,
                          &out->q_mean,        &out->q_std,         &out->epsilon,
                          &out->td_error_mean, &out->learning_rate, &out->kl,
                          &out->clip_fraction, &out->entropy,       &out->explained_variance,
                          &out->curiosity_loss};
        for (size_t k = 0; k < sizeof mean / sizeof *mean; k++) {
            *mean[k] /= n;
        }
    }
}

bool ho_objective_better(int metric, double value, double best)
{
    static const int direction[] = {
#define DIRECTION(id, name, sign, unit, convention) sign,
        HO_METRIC_MAP(DIRECTION)
#undef DIRECTION
    };
    if (!isfinite(value)) {
        return false;
    }
    return !isfinite(best) || (direction[metric] < 0 ? value < best : value > best);
}
