/* SPDX-License-Identifier: Apache-2.0
 * The backtest of the CPU backend: one pass per request, from the window's first bar to its last.
 * Requests of one network policy advance in lock-step, so that each step is one batch for the
 * network; a row of a batch depends on its own state alone, so grouping and threads leave the
 * results as they are. */
#include "kernels/cpu/backtest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/pass.h"
#include "kernels/cpu/policy.h"
#include "kernels/cpu/threads.h"

/* Passes that share an act call. */
typedef struct chunk {
    ho_cpu_pass *pass; /* [count] */
    int count;
    const ho_cohort *cohort; /* NULL for rule policies */
} chunk;

/* Working memory of a chunk with a network. */
typedef struct desk {
    float *state;  /* [count, S] */
    float *score;  /* [members, count, 45] */
    uint8_t *vote; /* [members, count] */
    int *row;      /* [count] pass of each row */
    void *scratch;
} desk;

static void desk_free(desk *d)
{
    free(d->state);
    free(d->score);
    free(d->vote);
    free(d->row);
    free(d->scratch);
}

static ho_status desk_create(const chunk *c, const ho_cpu_acting *acting, int members, desk *d)
{
    size_t count = (size_t)c->count, all = count * (size_t)members;
    memset(d, 0, sizeof *d);
    d->state = malloc(count * (size_t)c->pass[0].state_width * sizeof(float));
    d->score = malloc(all * HO_ACTIONS * sizeof(float));
    d->vote = malloc(all);
    d->row = malloc(count * sizeof(int));
    d->scratch = malloc(acting->scratch_size(c->cohort, c->count) + 1);
    return d->state && d->score && d->vote && d->row && d->scratch ? HO_OK : HO_ENOMEM;
}

static int32_t best_of(const float *score)
{
    int32_t best = 0;
    for (int32_t a = 1; a < HO_ACTIONS; a++) {
        best = score[a] > score[best] ? a : best;
    }
    return best;
}

/* How far the best score stands out: (best - mean) / deviation over the actions that the set has
 * (the others' scores are -inf), so that members with different scales can be compared. */
static double confidence_of(const float *score)
{
    double sum = 0.0, square = 0.0, best = score[best_of(score)];
    int n = 0;
    for (int a = 0; a < HO_ACTIONS; a++) {
        if (isfinite(score[a])) {
            sum += score[a];
            n++;
        }
    }
    double mean = sum / n;
    for (int a = 0; a < HO_ACTIONS; a++) {
        square += isfinite(score[a]) ? (score[a] - mean) * (score[a] - mean) : 0.0;
    }
    return square > 0.0 ? (best - mean) / sqrt(square / n) : 0.0;
}

/* score, vote: of the first member at this row; members lie `stride` rows apart. A tie of votes
 * goes to the action with the higher summed score, then to the lower index. */
static int32_t decide(ho_policy policy, const float *score, const uint8_t *vote, int members,
                      int stride)
{
    if (policy == HO_POLICY_GREEDY) {
        return vote[0];
    }
    double total[HO_ACTIONS] = {0.0};
    int votes[HO_ACTIONS] = {0};
    int surest = 0;
    double confidence = -1.0;
    for (int k = 0; k < members; k++) {
        const float *s = score + (int64_t)k * stride * HO_ACTIONS;
        for (int a = 0; a < HO_ACTIONS; a++) {
            total[a] += s[a];
        }
        votes[vote[(int64_t)k * stride]]++;
        if (confidence_of(s) > confidence) {
            confidence = confidence_of(s);
            surest = k;
        }
    }
    if (policy == HO_POLICY_CONFIDENCE) {
        return best_of(score + (int64_t)surest * stride * HO_ACTIONS);
    }
    int32_t best = 0;
    for (int32_t a = 1; a < HO_ACTIONS; a++) {
        int more = policy == HO_POLICY_VOTE ? votes[a] - votes[best] : 0;
        best = more > 0 || (more == 0 && total[a] > total[best]) ? a : best;
    }
    return best;
}

static ho_status run_network_chunk(chunk *c)
{
    const ho_cpu_acting *acting = (const ho_cpu_acting *)(const void *)c->cohort;
    const ho_backtest_request *request = c->pass[0].request;
    int members = request->policy == HO_POLICY_GREEDY ? 1 : request->slot_count;
    desk d;
    ho_status rc = desk_create(c, acting, members, &d);
    for (uint32_t step = 0; rc == HO_OK; step++) {
        int n = 0;
        for (int i = 0; i < c->count; i++) {
            if (!c->pass[i].done) {
                ho_cpu_pass_state(&c->pass[i], d.state + (int64_t)n * c->pass[i].state_width);
                d.row[n++] = i;
            }
        }
        if (n == 0) {
            break;
        }
        for (int k = 0; k < members && rc == HO_OK; k++) {
            float *score = request->policy == HO_POLICY_GREEDY
                               ? NULL
                               : d.score + (int64_t)k * c->count * HO_ACTIONS;
            rc = acting->act(c->cohort, request->slots[k], d.state, n, step, score,
                             d.vote + (int64_t)k * c->count, d.scratch);
        }
        for (int j = 0; j < n && rc == HO_OK; j++) {
            int32_t action = decide(request->policy, d.score + (int64_t)j * HO_ACTIONS, d.vote + j,
                                    members, c->count);
            ho_order order = ho_order_from_action(action);
            rc = ho_cpu_pass_step(&c->pass[d.row[j]], &order, action);
        }
    }
    desk_free(&d);
    return rc;
}

static ho_status run_rule_chunk(chunk *c)
{
    ho_status rc = HO_OK;
    for (int i = 0; i < c->count; i++) {
        while (rc == HO_OK && !c->pass[i].done) {
            int32_t action = -1;
            ho_order order = ho_cpu_pass_rule(&c->pass[i], &action);
            rc = ho_cpu_pass_step(&c->pass[i], &order, action);
        }
    }
    return rc;
}

static ho_status run_chunk(chunk *c)
{
    ho_status rc = c->cohort ? run_network_chunk(c) : run_rule_chunk(c);
    for (int i = 0; i < c->count && rc == HO_OK; i++) {
        rc = ho_cpu_pass_finish(&c->pass[i]);
    }
    return rc;
}

static int same_network(const ho_backtest_request *a, const ho_backtest_request *b)
{
    return a->policy == b->policy && a->slot_count == b->slot_count &&
           memcmp(a->slots, b->slots, (size_t)a->slot_count * sizeof a->slots[0]) == 0;
}

/* Splits requests into chunks: runs of the same network, at most `most` long; rules one by one. */
static int split_chunks(const ho_backtest_request *requests, int n, int most, ho_cohort *cohort,
                        ho_cpu_pass *pass, chunk *out)
{
    int count = 0;
    for (int i = 0; i < n; i++) {
        int network = requests[i].policy <= HO_POLICY_CONFIDENCE;
        chunk *last = count > 0 ? &out[count - 1] : NULL;
        if (network && last && last->cohort && last->count < most &&
            same_network(last->pass[0].request, &requests[i])) {
            last->count++;
        } else {
            out[count++] = (chunk){.pass = &pass[i], .count = 1, .cohort = network ? cohort : NULL};
        }
    }
    return count;
}

static ho_status begin_passes(ho_market *market, ho_cohort *cohort,
                              const ho_backtest_request *requests, int n, ho_cpu_pass *pass,
                              ho_backtest_result *results, ho_err *err)
{
    const ho_cpu_acting *acting = (const ho_cpu_acting *)(const void *)cohort;
    for (int i = 0; i < n; i++) {
        const ho_backtest_request *r = &requests[i];
        const ho_env_config *env = r->env;
        for (int k = 0; r->policy <= HO_POLICY_CONFIDENCE && k < r->slot_count; k++) {
            const ho_lane_config *lane = acting->lane_config(cohort, r->slots[k]);
            if (!lane) {
                return ho_err_set(err, HO_EINVAL, "backtest %d: slot %d holds no lane", i,
                                  r->slots[k]);
            }
            env = env ? env : &lane->env;
        }
        int32_t length = cohort ? cohort->key.episode_length : 0;
        ho_status rc = ho_cpu_pass_begin(&pass[i], market->host, r, env, length, &results[i], err);
        if (rc != HO_OK) {
            return ho_err_prefix(err, "backtest %d: ", i);
        }
    }
    return HO_OK;
}

ho_status ho_cpu_backtest(ho_market *market, ho_cohort *cohort_or_null,
                          const ho_backtest_request *requests, int n, ho_backtest_result *results,
                          ho_err *err)
{
    int threads = ho_cpu_threads(market->backend);
    int most = (n + threads - 1) / threads;
    ho_cpu_pass *pass = calloc((size_t)n + 1, sizeof *pass);
    chunk *chunks = calloc((size_t)n + 1, sizeof *chunks);
    ho_status *status = calloc((size_t)n + 1, sizeof *status);
    ho_status rc = HO_OK;
    int count = 0;
    if (!pass || !chunks || !status) {
        rc = ho_err_set(err, HO_ENOMEM, "backtest: out of memory");
        goto out;
    }
    rc = begin_passes(market, cohort_or_null, requests, n, pass, results, err);
    if (rc != HO_OK) {
        goto out;
    }
    count = split_chunks(requests, n, most > 64 ? 64 : most, cohort_or_null, pass, chunks);
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int i = 0; i < count; i++) {
        status[i] = run_chunk(&chunks[i]);
    }
    for (int i = 0; i < count && rc == HO_OK; i++) {
        if (status[i] != HO_OK) {
            rc = ho_err_set(err, status[i], "backtest: %s", ho_status_text(status[i]));
        }
    }
out:
    for (int i = 0; pass && i < n; i++) {
        ho_cpu_pass_free(&pass[i]);
    }
    free(pass);
    free(chunks);
    free(status);
    return rc;
}
