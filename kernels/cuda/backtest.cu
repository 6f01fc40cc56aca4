/* SPDX-License-Identifier: Apache-2.0
 * The backtest of the CUDA backend, host part: requests are grouped by the network that acts, their
 * plans and inputs go up in one block of memory, all passes run side by side, and what was wanted
 * comes back. Metrics are computed on the host from sums the passes kept and the session returns:
 * a few hundred numbers a pass, whatever its length.
 *
 * A job has a stream of its own. Networks act from copies in the job's memory, which the cohort's
 * stream makes, so its next epoch may run beside the passes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/backtest_kernels.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/pass.cuh"
#include "kernels/cuda/range.h"
#include "kernels/metrics/metrics.h"

#define NANOSECONDS_A_YEAR (365.25 * 86400.0 * 1e9)
enum { DEFAULT_LENGTH = 500, TRADES_A_STEP = 2 };

static int is_network(const ho_backtest_request *r)
{
    return r->policy <= HO_POLICY_CONFIDENCE;
}

/* Where a job's parts lie on the device. */
typedef struct run_slices {
    pass_plan *plan;
    pass_state *state;
    pass_block *block;
    uint8_t *packed;      /* [members, policy.bytes] networks that act, as they were at the begin */
    ho_lane_device *lane; /* [members] */
    size_t session_bytes; /* of all plans' session_return, from the first one's on */
} run_slices;

/* One job. Host arrays have n entries in execution order: networks, then rules. */
typedef struct backtest_run {
    ho_backtest_job base;
    cuda_market *market;
    cuda_cohort *cohort;           /* or NULL; until the job has begun */
    ho_backtest_request *requests; /* [n] copies, whose arrays are gone once it has begun */
    ho_backtest_result *results;   /* while collecting */
    int n;
    int *order;               /* request of each pass */
    int64_t *sessions;        /* of each pass's window */
    uint8_t *session_returns; /* while collecting: session_bytes */
    pass_plan *plan;
    pass_state *state;
    pass_block *block;
    ho_lane_device *lane; /* [capacity] of the cohort, read once */
    int *member;          /* [capacity] which copy a slot's network is, -1: none */
    int members;          /* networks that act */
    int blocks, networks, ensemble;
    uint8_t *device; /* one block of memory */
    run_slices at;
    cudaStream_t stream;
    cudaEvent_t copied; /* the networks are in the job's memory */
} backtest_run;

static ho_device_pool *pool_of(const backtest_run *run)
{
    return &((cuda_backend *)run->market->base.backend)->pool;
}

/* Waits for the passes. */
static void run_free(backtest_run *run)
{
    if (run->stream) {
        ho_device_pool_release(pool_of(run), (void **)&run->device, run->stream);
        cudaStreamDestroy(run->stream);
    }
    if (run->copied) {
        cudaEventDestroy(run->copied);
    }
    free(run->requests);
    free(run->order);
    free(run->sessions);
    free(run->session_returns);
    free(run->plan);
    free(run->state);
    free(run->block);
    free(run->lane);
    free(run->member);
    free(run);
}

/* Members of a request: greedy looks at its first slot only. */
static int members_of(const ho_backtest_request *r)
{
    return r->policy == HO_POLICY_GREEDY ? 1 : r->slot_count;
}

static int same_network(const ho_backtest_request *a, const ho_backtest_request *b)
{
    return a->policy == b->policy && members_of(a) == members_of(b) &&
           memcmp(a->slots, b->slots, (size_t)members_of(a) * sizeof a->slots[0]) == 0;
}

/* Gives each request of a network a block of at most `room` of the same network: block_of [n],
 * blocks[].first: one of its requests. */
static void share_blocks(backtest_run *run, int *block_of, int room)
{
    memset(run->block, 0, ((size_t)run->n + 1) * sizeof *run->block);
    run->blocks = run->networks = 0;
    for (int i = 0; i < run->n; i++) {
        const ho_backtest_request *r = &run->requests[i];
        block_of[i] = -1;
        if (!is_network(r)) {
            continue;
        }
        run->networks++;
        run->ensemble |= members_of(r) > 1;
        for (int b = run->blocks - 1; b >= 0 && block_of[i] < 0; b--) {
            if (run->block[b].count < room &&
                same_network(&run->requests[run->block[b].first], r)) {
                block_of[i] = b;
            }
        }
        if (block_of[i] < 0) {
            pass_block *b = &run->block[run->blocks];
            b->first = i; /* a request of the block, until order is known */
            b->policy = r->policy;
            b->members = members_of(r);
            memcpy(b->slots, r->slots, sizeof b->slots);
            block_of[i] = run->blocks++;
        }
        run->block[block_of[i]].count++;
    }
}

/* Fills order and block. Few windows a block are fast, as long as all blocks run at once; results
 * do not depend on it. */
static void group_requests(backtest_run *run)
{
    int *block_of = run->order + run->n; /* second half of the array: scratch */
    const int processors = run->cohort ? run->cohort->experience.processors : 1;
    int networks = 0;
    for (int i = 0; i < run->n; i++) {
        networks += is_network(&run->requests[i]);
    }
    int room = networks / processors; /* fewer do not do */
    room = room < 1 ? 1 : room > PASSES_BLOCK ? PASSES_BLOCK : room;
    for (; room <= PASSES_BLOCK; room++) {
        share_blocks(run, block_of, room);
        if (run->blocks <= processors) {
            break;
        }
    }
    int at = 0;
    for (int b = 0; b < run->blocks; b++) {
        run->block[b].first = at;
        at += run->block[b].count;
        run->block[b].count = 0;
    }
    for (int i = 0; i < run->n; i++) {
        if (block_of[i] >= 0) {
            pass_block *b = &run->block[block_of[i]];
            run->order[b->first + b->count++] = i;
        } else {
            run->order[at++] = i;
        }
    }
}

/* ---- device memory of a call ---- */

/* Takes a slice of the block; without a base it only measures. */
static void *take(backtest_run *run, size_t *at, size_t bytes)
{
    void *p = run->device ? run->device + *at : NULL;
    *at += (bytes + 15) / 16 * 16;
    return p;
}

static int64_t window_sessions(const ho_market_host *host, ho_window w)
{
    int64_t n = 1;
    for (int64_t t = w.begin + 1; t < w.end; t++) {
        n += host->session[t] != host->session[t - 1];
    }
    return n;
}

/* Once a window: the lanes of a cohort share theirs. */
static void count_sessions(backtest_run *run)
{
    for (int i = 0; i < run->n; i++) {
        const ho_window w = run->requests[run->order[i]].window;
        for (int k = i - 1; k >= 0 && run->sessions[i] == 0; k--) {
            const ho_window other = run->requests[run->order[k]].window;
            run->sessions[i] = other.begin == w.begin && other.end == w.end ? run->sessions[k] : 0;
        }
        if (run->sessions[i] == 0) {
            run->sessions[i] = window_sessions(run->market->base.host, w);
        }
    }
}

/* Lays everything out; fills the plans' pointers once there is memory. */
static size_t lay_out(backtest_run *run)
{
    run_slices *s = &run->at;
    size_t at = 0;
    s->packed = (uint8_t *)take(
        run, &at, run->members ? (size_t)run->members * run->cohort->experience.policy.bytes : 0);
    s->lane = (ho_lane_device *)take(run, &at, (size_t)run->members * sizeof(ho_lane_device));
    s->plan = (pass_plan *)take(run, &at, (size_t)run->n * sizeof(pass_plan));
    s->state = (pass_state *)take(run, &at, (size_t)run->n * sizeof(pass_state));
    s->block = (pass_block *)take(run, &at, (size_t)(run->blocks + 1) * sizeof(pass_block));
    const size_t first_session = at;
    for (int i = 0; i < run->n; i++) { /* side by side: one copy brings them all */
        run->plan[i].session_return =
            (double *)take(run, &at, ((size_t)run->sessions[i] + 1) * sizeof(double));
    }
    s->session_bytes = at - first_session;
    for (int i = 0; i < run->n; i++) {
        const ho_backtest_request *r = &run->requests[run->order[i]];
        pass_plan *p = &run->plan[i];
        const size_t steps = (size_t)(r->window.end - r->window.begin - 1);
        const size_t sessions = (size_t)run->sessions[i] + 1;
        p->session_bar = (int32_t *)take(run, &at, sessions * sizeof(int32_t));
        p->ring = (uint32_t *)take(run, &at, HO_RING_WORDS_MAX * sizeof(uint32_t));
        if (r->want & HO_WANT_BARS) {
            p->equity = (double *)take(run, &at, (steps + 1) * sizeof(double));
            p->bar_return = (double *)take(run, &at, steps * sizeof(double));
        }
        if (r->want & HO_WANT_ACTIONS) {
            p->actions = (uint8_t *)take(run, &at, steps);
        }
        if (r->want & HO_WANT_TRADES) {
            p->trade_room = (int64_t)steps * TRADES_A_STEP + 1;
            p->trades = (ho_trade *)take(run, &at, (size_t)p->trade_room * sizeof(ho_trade));
        }
        if (r->policy == HO_POLICY_ACTIONS) {
            p->rule.actions = (const uint8_t *)take(run, &at, steps);
        }
        if (r->policy == HO_POLICY_TARGETS) {
            p->rule.targets = (const float *)take(run, &at, steps * sizeof(float));
        }
    }
    return at;
}

/* ---- plans ---- */

static ho_status make_plan(backtest_run *run, int i, ho_err *err)
{
    const ho_backtest_request *r = &run->requests[run->order[i]];
    pass_plan *p = &run->plan[i];
    ho_env_config config;
    const double *sigma = NULL;
    for (int k = 0; is_network(r) && k < r->slot_count; k++) {
        if (!run->cohort->used[r->slots[k]]) {
            return ho_err_set(err, HO_EINVAL, "slot %d holds no lane", r->slots[k]);
        }
    }
    if (r->env) {
        config = *r->env;
    } else {
        config = run->cohort->config[r->slots[0]].env;
        config.kelly_share = run->lane[r->slots[0]].env.config.kelly_share;
    }
    ho_rule_settings(r->policy, &config);
    ho_status rc =
        ho_cuda_market_sigma(run->market, run->market->base.host, config.sigma_window, &sigma, err);
    if (rc != HO_OK) {
        return rc;
    }
    const int length = run->cohort ? run->cohort->key.episode_length : DEFAULT_LENGTH;
    p->lane = ho_env_lane_make(&config, r->window, length, 1, r->rng_key, sigma);
    p->rule.policy = r->policy;
    p->rule.momentum_bars = r->momentum_bars;
    p->rule.random_turnover = r->random_turnover;
    p->rule.random_exposure = r->random_exposure;
    return HO_OK;
}

/* Host memory is pageable: the copy is done with it when it returns. */
static ho_status put(const backtest_run *run, void *to, const void *from, size_t bytes)
{
    return bytes ? ho_cuda_status(
                       cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, run->stream),
                       "input of a backtest")
                 : HO_OK;
}

static ho_status get(const backtest_run *run, void *to, const void *from, size_t bytes)
{
    return bytes ? ho_cuda_status(
                       cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, run->stream),
                       "result of a backtest")
                 : HO_OK;
}

static ho_status upload(backtest_run *run)
{
    const run_slices *s = &run->at;
    ho_status rc = put(run, s->plan, run->plan, (size_t)run->n * sizeof *run->plan);
    rc =
        rc == HO_OK ? put(run, s->block, run->block, (size_t)run->blocks * sizeof *run->block) : rc;
    /* all of them are copied back, also those that no session filled */
    rc = rc == HO_OK ? ho_cuda_status(cudaMemsetAsync(run->plan[0].session_return, 0,
                                                      s->session_bytes, run->stream),
                                      "clear session returns")
                     : rc;
    for (int i = 0; i < run->n && rc == HO_OK; i++) {
        const ho_backtest_request *r = &run->requests[run->order[i]];
        const size_t steps = (size_t)(r->window.end - r->window.begin - 1);
        if (r->policy == HO_POLICY_ACTIONS) {
            rc = put(run, (void *)run->plan[i].rule.actions, r->actions, steps);
        } else if (r->policy == HO_POLICY_TARGETS) {
            rc = put(run, (void *)run->plan[i].rule.targets, r->targets, steps * sizeof(float));
        }
    }
    return rc;
}

/* An agent that acts in fp8 while it learns is scored in bf16. */
static ho_policy_net scoring_policy(const cuda_cohort *c)
{
    ho_policy_net policy = c->experience.policy;
    policy.fp8 = 0;
    return policy;
}

/* The networks that act and their lanes' numbers, into the job's memory: on the cohort's stream,
 * behind what trained them and before what trains them on. */
static ho_status copy_networks(backtest_run *run)
{
    const cuda_cohort *c = run->cohort;
    const ho_policy_net policy = scoring_policy(c);
    ho_status rc = HO_OK;
    for (int slot = 0; slot < c->capacity && rc == HO_OK; slot++) {
        const int k = run->member[slot];
        if (k < 0) {
            continue;
        }
        /* the kernel writes at [slot] of what it is given */
        rc = ho_policy_pack(&policy, c->learn.online, c->net.params,
                            run->at.packed + ((ptrdiff_t)k - slot) * (ptrdiff_t)policy.bytes, slot,
                            1, c->stream);
        rc = rc == HO_OK ? ho_cuda_status(cudaMemcpyAsync(&run->at.lane[k], &c->learn.lane[slot],
                                                          sizeof *run->at.lane,
                                                          cudaMemcpyDeviceToDevice, c->stream),
                                          "copy of a lane")
                         : rc;
    }
    rc = rc == HO_OK ? ho_cuda_status(cudaEventRecord(run->copied, c->stream), "event") : rc;
    return rc == HO_OK ? ho_cuda_status(cudaStreamWaitEvent(run->stream, run->copied, 0),
                                        "wait of a stream")
                       : rc;
}

static int some_agent_samples(const backtest_run *run)
{
    int some = 0;
    for (int slot = 0; slot < run->cohort->capacity; slot++) {
        some |= run->member[slot] >= 0 && run->cohort->config[slot].agent.ppo_sample_eval;
    }
    return some;
}

static ho_status launch(backtest_run *run)
{
    backtest_view v = {};
    v.market = run->market->view;
    v.plan = run->at.plan;
    v.state = run->at.state;
    v.block = run->at.block;
    v.blocks = run->blocks;
    for (int b = 0; b < run->blocks; b++) {
        v.most = run->block[b].count > v.most ? run->block[b].count : v.most;
    }
    v.rule_first = run->networks;
    v.rules = run->n - run->networks;
    v.ensemble = run->ensemble;
    v.racecheck = ho_cuda_racecheck();
    if (run->cohort) {
        const ho_experience_view *e = &run->cohort->experience;
        v.policy = scoring_policy(run->cohort);
        v.features = run->cohort->learn.features;
        v.packed = run->at.packed;
        v.lane = run->at.lane;
        v.samples = e->samples && some_agent_samples(run);
        v.state_columns = e->state_columns;
        v.market_columns = e->market_columns;
        v.shared_limit = e->shared_limit;
    }
    ho_range_begin("copy of networks");
    ho_status rc = ho_range_end(run->blocks > 0 ? copy_networks(run) : HO_OK);
    ho_range_begin("passes of networks");
    rc = ho_range_end(rc == HO_OK ? ho_cuda_backtest_networks(&v, run->stream) : rc);
    ho_range_begin("passes of rules");
    return ho_range_end(rc == HO_OK ? ho_cuda_backtest_rules(&v, run->stream) : rc);
}

/* ---- results ---- */

/* Calendar years from the open of the first bar with a return to the close of the last. */
static double pass_years(const ho_market_host *h, const pass_plan *p, const pass_state *s)
{
    const int64_t first = h->open_ns[p->lane.begin + 1];
    const int64_t last = h->open_ns[s->env.t] + h->interval_ns;
    return (double)(last - first) / NANOSECONDS_A_YEAR;
}

static void fill_totals(const pass_plan *p, const pass_state *s, ho_backtest_result *out)
{
    const ho_ledger *ledger = &s->ledger;
    out->initial_capital = p->lane.config.initial_capital;
    out->final_equity = s->env.equity;
    out->realised = ledger->realised;
    out->fees = ledger->fees;
    out->spread = ledger->spread;
    out->impact = ledger->impact;
    out->rounding = ledger->slippage - ledger->spread - ledger->impact;
    out->funding = ledger->funding;
    out->traded = ledger->traded;
    out->open_pnl = s->open_pnl;
    out->steps = out->bars = s->steps;
    out->trades_closed = out->trade_count = s->trades.net.n;
    out->ambiguous_bars = s->ambiguous_bars;
    out->position_changes = s->position_changes;
    out->ruined = s->ruined;
    out->sessions = s->sessions;
    for (int i = 0; i < HO_ACTIONS; i++) {
        out->action_count[i] = s->action_count[i];
    }
    for (int i = 0; i < HO_EXIT_REASONS; i++) {
        out->exit_count[i] = s->exit_count[i];
    }
}

static ho_status fill_metrics(const ho_market_host *host, const pass_plan *p, const pass_state *s,
                              const double *sessions, ho_backtest_result *out)
{
    ho_metrics_input in = ho_metrics_input_defaults();
    in.initial_capital = out->initial_capital;
    in.bars = &s->bars;
    in.sessions = sessions;
    in.session_count = s->sessions;
    in.sessions_per_year = p->lane.config.sessions_per_year;
    in.years = pass_years(host, p, s);
    in.trade_count = s->trades.net.n;
    in.trade_stats = &s->trades;
    in.multiplier = p->lane.config.multiplier;
    in.traded = s->ledger.traded;
    in.ambiguous_bars = s->ambiguous_bars;
    in.has_trades = 1;
    in.open_position = s->open_position;
    in.ruined = s->ruined;
    const ho_status rc = ho_metrics_compute(&in, &out->metrics);
    /* prices are finite: a dropped return is an overflow */
    return out->metrics.flags & HO_FLAG_NAN_DROPPED ? HO_EDATA : rc;
}

static const double *session_returns_of(const backtest_run *run, const pass_plan *p)
{
    const ptrdiff_t at = (uint8_t *)p->session_return - (uint8_t *)run->plan[0].session_return;
    return (const double *)(run->session_returns + at);
}

/* Copies a device array into a new host one. */
static ho_status fetch(const backtest_run *run, void **to, const void *from, size_t bytes)
{
    *to = malloc(bytes ? bytes : 1);
    return *to ? get(run, *to, from, bytes) : HO_ENOMEM;
}

static ho_status fill_result(backtest_run *run, int i)
{
    const pass_plan *p = &run->plan[i];
    const pass_state *s = &run->state[i];
    const ho_market_host *host = run->market->base.host;
    const ho_backtest_request *r = &run->requests[run->order[i]];
    ho_backtest_result *out = &run->results[run->order[i]];
    const double *sessions = session_returns_of(run, p);
    void *bars = NULL, *p1 = NULL;
    fill_totals(p, s, out);
    ho_status rc = fill_metrics(host, p, s, sessions, out);
    if (rc == HO_OK && (r->want & HO_WANT_SESSIONS)) {
        const size_t bytes = (size_t)s->sessions * sizeof *sessions;
        rc = fetch(run, &bars, p->session_bar, (size_t)s->sessions * sizeof(int32_t));
        for (int64_t k = 0; rc == HO_OK && k < s->sessions; k++) {
            ((int32_t *)bars)[k] = host->session[((int32_t *)bars)[k]];
        }
        out->session_id = (int32_t *)bars;
        out->session_return = (double *)malloc(bytes ? bytes : 1);
        rc = out->session_return ? rc : HO_ENOMEM;
        if (out->session_return) {
            memcpy(out->session_return, sessions, bytes);
        }
    }
    if (rc == HO_OK && (r->want & HO_WANT_BARS)) {
        rc = fetch(run, &p1, p->equity, (size_t)(s->steps + 1) * sizeof(double));
        out->equity = (double *)p1;
        rc = rc == HO_OK ? fetch(run, &p1, p->bar_return, (size_t)s->steps * sizeof(double)) : rc;
        out->bar_return = (double *)(p1 == out->equity ? NULL : p1);
    }
    if (rc == HO_OK && (r->want & HO_WANT_ACTIONS)) {
        rc = fetch(run, &p1, p->actions, (size_t)s->steps);
        out->actions = (uint8_t *)p1;
    }
    if (rc == HO_OK && (r->want & HO_WANT_TRADES)) {
        rc = fetch(run, &p1, p->trades, (size_t)out->trade_count * sizeof(ho_trade));
        out->trades = (ho_trade *)p1;
    }
    return rc;
}

/* ---- a job ---- */

/* Numbers the networks that act; their blocks name them by those numbers from here on. */
static void number_members(backtest_run *run)
{
    for (int i = 0; i < run->cohort->capacity; i++) {
        run->member[i] = -1;
    }
    for (int b = 0; b < run->blocks; b++) {
        for (int k = 0; k < run->block[b].members; k++) {
            int *member = &run->member[run->block[b].slots[k]];
            *member = *member < 0 ? run->members++ : *member;
            run->block[b].slots[k] = *member;
        }
    }
}

/* Of the cohort: which networks act, and every lane's numbers. */
static ho_status read_cohort(backtest_run *run, ho_err *err)
{
    const size_t lanes = (size_t)run->cohort->capacity;
    run->lane = (ho_lane_device *)malloc(lanes * sizeof *run->lane);
    run->member = (int *)malloc(lanes * sizeof *run->member);
    if (!run->lane || !run->member) {
        return ho_err_set(err, HO_ENOMEM, "backtest: out of memory");
    }
    number_members(run);
    return ho_cuda_err(
        ho_cuda_status(cudaMemcpyAsync(run->lane, run->cohort->learn.lane,
                                       lanes * sizeof *run->lane, cudaMemcpyDeviceToHost,
                                       run->cohort->stream), /* behind what changed them */
                       "copy of the lanes"),
        err);
}

static ho_status begin(backtest_run *run, const ho_backtest_request *requests, ho_err *err)
{
    const size_t n = (size_t)run->n;
    run->requests = (ho_backtest_request *)malloc(n * sizeof *run->requests);
    run->order = (int *)calloc(2 * n, sizeof *run->order);
    run->sessions = (int64_t *)calloc(n, sizeof *run->sessions);
    run->plan = (pass_plan *)calloc(n, sizeof *run->plan);
    run->state = (pass_state *)calloc(n, sizeof *run->state);
    run->block = (pass_block *)calloc(n + 1, sizeof *run->block);
    if (!run->requests || !run->order || !run->sessions || !run->plan || !run->state ||
        !run->block) {
        return ho_err_set(err, HO_ENOMEM, "backtest: out of memory");
    }
    memcpy(run->requests, requests, n * sizeof *requests);
    group_requests(run);
    count_sessions(run);
    ho_status rc = run->blocks > 0 ? read_cohort(run, err) : HO_OK;
    for (int i = 0; i < run->n && rc == HO_OK; i++) {
        rc = make_plan(run, i, err);
        if (rc != HO_OK) {
            ho_err_prefix(err, "backtest %d: ", run->order[i]);
        }
    }
    if (rc != HO_OK) {
        return rc;
    }
    rc = ho_cuda_status(cudaStreamCreateWithFlags(&run->stream, cudaStreamNonBlocking), "stream");
    rc = rc == HO_OK ? ho_cuda_status(
                           cudaEventCreateWithFlags(&run->copied, cudaEventDisableTiming), "event")
                     : rc;
    rc = rc == HO_OK ? ho_device_pool_take(pool_of(run), (void **)&run->device, lay_out(run),
                                           run->stream, "memory of a backtest")
                     : rc;
    if (rc == HO_OK) {
        lay_out(run);
        ho_range_begin("upload");
        rc = ho_range_end(upload(run));
    }
    rc = rc == HO_OK ? launch(run) : rc;
    run->cohort = NULL;
    return rc == HO_OK ? rc : ho_err_set(err, rc, "backtest: %s", ho_status_text(rc));
}

ho_status ho_cuda_backtest_begin(ho_market *market, ho_cohort *cohort_or_null,
                                 const ho_backtest_request *requests, int n, ho_backtest_job **out,
                                 ho_err *err)
{
    cuda_backend *b = (cuda_backend *)market->backend;
    ho_status rc = ho_cuda_enter(b, err);
    if (rc != HO_OK) {
        return rc;
    }
    backtest_run *run = (backtest_run *)calloc(1, sizeof *run);
    if (!run) {
        return ho_err_set(err, HO_ENOMEM, "backtest: out of memory");
    }
    run->market = (cuda_market *)market;
    run->cohort = (cuda_cohort *)cohort_or_null;
    run->n = n;
    rc = n > 0 ? begin(run, requests, err) : HO_OK;
    if (rc != HO_OK) {
        run_free(run);
        return ho_cuda_leave(b, rc, err);
    }
    *out = &run->base;
    return HO_OK;
}

int ho_cuda_backtest_ready(const ho_backtest_job *job)
{
    const backtest_run *run = (const backtest_run *)job;
    /* an error is found by collect */
    return !run->stream || cudaStreamQuery(run->stream) != cudaErrorNotReady;
}

ho_status ho_cuda_backtest_collect(ho_backtest_job *job, ho_backtest_result *results, ho_err *err)
{
    backtest_run *run = (backtest_run *)job;
    cuda_backend *b = (cuda_backend *)run->market->base.backend;
    ho_status rc = ho_cuda_enter(b, err);
    run->results = results;
    if (rc == HO_OK && run->stream) {
        ho_range_begin("wait");
        rc = ho_range_end(ho_cuda_wait(run->stream, "backtest"));
        rc = rc == HO_OK ? get(run, run->state, run->at.state, (size_t)run->n * sizeof *run->state)
                         : rc;
        void *returns = NULL;
        rc = rc == HO_OK ? fetch(run, &returns, run->plan[0].session_return, run->at.session_bytes)
                         : rc;
        run->session_returns = (uint8_t *)returns;
        for (int i = 0; i < run->n && rc == HO_OK; i++) {
            rc = fill_result(run, i);
        }
        rc = rc == HO_OK ? rc : ho_err_set(err, rc, "backtest: %s", ho_status_text(rc));
    }
    run_free(run);
    return ho_cuda_leave(b, rc, err);
}

void ho_cuda_backtest_drop(ho_backtest_job *job)
{
    backtest_run *run = (backtest_run *)job;
    cudaSetDevice(((cuda_backend *)run->market->base.backend)->device);
    run_free(run);
}

ho_status ho_cuda_backtest(ho_market *market, ho_cohort *cohort_or_null,
                           const ho_backtest_request *requests, int n, ho_backtest_result *results,
                           ho_err *err)
{
    ho_backtest_job *job = NULL;
    ho_status rc = ho_cuda_backtest_begin(market, cohort_or_null, requests, n, &job, err);
    return rc == HO_OK ? ho_cuda_backtest_collect(job, results, err) : rc;
}
