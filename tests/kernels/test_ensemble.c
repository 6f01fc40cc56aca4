/* SPDX-License-Identifier: Apache-2.0
 * Network policies of the backtest with scripted members: who decides in an ensemble, what a member
 * is shown, and that batching passes together changes nothing. */
#include <stdlib.h>

#include "check.h"
#include "kernels/cases.h"
#include "kernels/cpu/policy.h"

enum { MEMBERS = 4, BARS = 300, FEATURES = 3 };

/* A cohort whose slot k scores by a script instead of a network. */
typedef struct scripted {
    ho_cpu_acting acting;
    ho_lane_config lane[MEMBERS];
    float score[MEMBERS][HO_ACTIONS]; /* of every state */
    int by_state;                     /* scores depend on the state's first feature and p1, too */
    int64_t calls, rows, largest;
    uint32_t last_step;
    int fail_at; /* -1: never */
} scripted;

static ho_status act(const ho_cohort *cohort, int slot, const float *state, int n, uint32_t step,
                     float *score, uint8_t *action, void *scratch)
{
    scripted *s = (scripted *)(uintptr_t)cohort;
    memset(scratch, 1, (size_t)n);
    s->calls++;
    s->rows += n;
    s->largest = n > s->largest ? n : s->largest;
    s->last_step = step;
    if (s->fail_at == (int)step) {
        return HO_ENOMEM;
    }
    for (int i = 0; i < n; i++) {
        const float *row = state + i * (FEATURES + HO_PORTFOLIO_FEATURES);
        float own[HO_ACTIONS];
        int best = 0;
        for (int a = 0; a < HO_ACTIONS; a++) {
            float shift = s->by_state
                              ? sinf((float)(a * (slot + 1)) * 50.0f * row[0] + row[FEATURES + 1])
                              : 0.0f;
            own[a] = s->score[slot][a] + shift;
            best = own[a] > own[best] ? a : best;
        }
        action[i] = (uint8_t)best;
        if (score) {
            memcpy(score + (int64_t)i * HO_ACTIONS, own, sizeof own);
        }
    }
    return HO_OK;
}

static size_t scratch_size(const ho_cohort *cohort, int n)
{
    (void)cohort;
    return (size_t)n;
}

static const ho_lane_config *lane_config(const ho_cohort *cohort, int slot)
{
    const scripted *s = (const scripted *)(const void *)cohort;
    return slot < 3 ? &s->lane[slot] : NULL; /* the last slot is free */
}

typedef struct scene {
    test_market *m;
    scripted cohort;
    float features[BARS * FEATURES];
} scene;

static scene *scene_new(int threads)
{
    scene *s = calloc(1, sizeof *s);
    ho_err err = {0};
    s->m = test_market_new(BARS);
    test_market_walk(s->m, 8, 100.0, 0.3, 0.0);
    for (int t = 0; t < BARS; t++) {
        s->features[t * FEATURES] = (float)(s->m->bars[t * HO_BAR_COLUMNS + HO_CLOSE] / 100.0);
        s->features[t * FEATURES + 1] = (float)t;
    }
    ho_market_unload(&s->m->market);
    ho_backend_close(&s->m->backend);
    ho_backend_options options = ho_backend_defaults();
    options.threads = threads;
    CHECK_OK(ho_backend_open(&s->m->backend, &options, &err), &err);
    ho_market_data data = {.T = BARS,
                           .F = FEATURES,
                           .features = s->features,
                           .bars = s->m->bars,
                           .open_ns = s->m->open_ns,
                           .interval_ns = 60000000000,
                           .session = s->m->session,
                           .has_volume = 1};
    CHECK_OK(ho_market_load(s->m->backend, &data, &s->m->market, &err), &err);
    s->cohort.acting.base.capacity = MEMBERS;
    s->cohort.acting.base.key.episode_length = 50;
    s->cohort.acting.base.key.market_features = FEATURES;
    s->cohort.acting.act = act;
    s->cohort.acting.scratch_size = scratch_size;
    s->cohort.acting.lane_config = lane_config;
    s->cohort.fail_at = -1;
    for (int k = 0; k < MEMBERS; k++) {
        s->cohort.lane[k].env = s->m->config;
    }
    return s;
}

static void scene_free(scene *s)
{
    test_market_free(s->m);
    free(s);
}

static ho_backtest_request request_of(ho_policy policy, int members, int64_t begin, int64_t end)
{
    ho_backtest_request r = {.policy = policy,
                             .slots = {0, 1, 2},
                             .slot_count = members,
                             .window = {begin, end},
                             .want = HO_WANT_ACTIONS | HO_WANT_BARS};
    return r;
}

static int first_action(scene *s, ho_policy policy, int members)
{
    ho_backtest_request r = request_of(policy, members, 0, 50);
    ho_backtest_result result;
    ho_err err = {0};
    CHECK_OK(ho_backtest(s->m->market, &s->cohort.acting.base, &r, 1, &result, &err), &err);
    int action = result.actions[0];
    assert_int_equal(result.action_count[action], 49);
    ho_backtest_free(&result);
    return action;
}

static void members_decide_by_mean_vote_or_confidence(void **state)
{
    (void)state;
    scene *s = scene_new(1);
    /* two members like 5 a little, one dislikes it and is very sure of 7 */
    s->cohort.score[0][5] = 1.0f;
    s->cohort.score[1][5] = 1.0f;
    s->cohort.score[0][7] = s->cohort.score[1][7] = 0.5f;
    s->cohort.score[2][7] = 100.0f;
    s->cohort.score[2][5] = -1.0f;
    assert_int_equal(first_action(s, HO_POLICY_GREEDY, 1), 5);
    assert_int_equal(first_action(s, HO_POLICY_MEAN_Q, 3), 7);
    assert_int_equal(first_action(s, HO_POLICY_VOTE, 3), 5);
    assert_int_equal(first_action(s, HO_POLICY_CONFIDENCE, 3), 7);
    assert_int_equal(first_action(s, HO_POLICY_CONFIDENCE, 2), 5);
    scene_free(s);
}

static void a_tie_of_votes_goes_to_the_higher_score(void **state)
{
    (void)state;
    scene *s = scene_new(1);
    s->cohort.score[0][3] = 1.0f;
    s->cohort.score[1][30] = 2.0f; /* all three differ */
    s->cohort.score[2][20] = 1.5f;
    assert_int_equal(first_action(s, HO_POLICY_VOTE, 3), 30);
    memset(s->cohort.score, 0, sizeof s->cohort.score); /* nobody knows: the lowest index */
    assert_int_equal(first_action(s, HO_POLICY_VOTE, 3), 0);
    assert_int_equal(first_action(s, HO_POLICY_MEAN_Q, 3), 0);
    assert_int_equal(first_action(s, HO_POLICY_CONFIDENCE, 3), 0);
    scene_free(s);
}

/* with env.actions = "exposure5" the other 40 actions score -inf */
static void actions_that_the_set_lacks_do_not_count(void **state)
{
    (void)state;
    scene *s = scene_new(1);
    for (int k = 0; k < 3; k++) {
        for (int a = 0; a < HO_ACTIONS; a++) {
            s->cohort.score[k][a] = a % 9 == 2 ? 0.0f : -INFINITY;
        }
    }
    s->cohort.score[0][2] = 1.0f;
    s->cohort.score[1][2] = 1.0f;
    s->cohort.score[2][38] = 10.0f;
    s->cohort.score[2][2] = 1.0f;
    s->cohort.score[0][38] = s->cohort.score[1][38] = 0.9f;
    assert_int_equal(first_action(s, HO_POLICY_VOTE, 3), 2);
    assert_int_equal(first_action(s, HO_POLICY_MEAN_Q, 3), 38);
    assert_int_equal(first_action(s, HO_POLICY_CONFIDENCE, 3), 38);
    scene_free(s);
}

static void batching_and_threads_change_nothing(void **state)
{
    (void)state;
    enum { N = 9 };
    ho_err err = {0};
    const ho_policy policies[] = {HO_POLICY_GREEDY, HO_POLICY_MEAN_Q, HO_POLICY_VOTE,
                                  HO_POLICY_CONFIDENCE};
    for (size_t p = 0; p < 4; p++) {
        scene *s = scene_new(1);
        ho_backtest_request r[N];
        ho_backtest_result alone[N], together[N];
        s->cohort.by_state = 1;
        for (int i = 0; i < N; i++) { /* windows of different lengths */
            r[i] = request_of(policies[p], p == 0 ? 1 : 3, i * 10, 150 + i * 15);
            CHECK_OK(ho_backtest(s->m->market, &s->cohort.acting.base, &r[i], 1, &alone[i], &err),
                     &err);
        }
        s->cohort.calls = s->cohort.largest = 0;
        CHECK_OK(ho_backtest(s->m->market, &s->cohort.acting.base, r, N, together, &err), &err);
        assert_int_equal(s->cohort.largest, N); /* one call for all that still run */
        for (int i = 0; i < N; i++) {
            assert_int_equal(alone[i].bars, together[i].bars);
            assert_memory_equal(alone[i].equity, together[i].equity,
                                (size_t)(alone[i].bars + 1) * sizeof(double));
            assert_memory_equal(alone[i].actions, together[i].actions, (size_t)alone[i].bars);
            assert_true(alone[i].position_changes > 10);
            ho_backtest_free(&alone[i]);
            ho_backtest_free(&together[i]);
        }
        scene_free(s);
    }
}

static void different_members_are_not_batched_together(void **state)
{
    (void)state;
    scene *s = scene_new(1);
    ho_err err = {0};
    ho_backtest_request r[3] = {request_of(HO_POLICY_GREEDY, 1, 0, 50),
                                request_of(HO_POLICY_GREEDY, 1, 0, 50),
                                request_of(HO_POLICY_FLAT, 0, 0, 50)};
    ho_backtest_result result[3];
    r[1].slots[0] = 1;
    r[2].env = &s->m->config;
    s->cohort.score[0][2] = 1.0f;
    s->cohort.score[1][38] = 1.0f;
    CHECK_OK(ho_backtest(s->m->market, &s->cohort.acting.base, r, 3, result, &err), &err);
    assert_int_equal(result[0].action_count[2], 49);
    assert_int_equal(result[1].action_count[38], 49);
    assert_int_equal(result[2].action_count[20], 49);
    assert_int_equal(s->cohort.largest, 1);
    assert_int_equal(s->cohort.last_step, 48);
    for (int i = 0; i < 3; i++) {
        ho_backtest_free(&result[i]);
    }
    scene_free(s);
}

static void free_slots_and_failures_are_said(void **state)
{
    (void)state;
    scene *s = scene_new(1);
    ho_err err = {0};
    ho_backtest_result result;
    ho_backtest_request r = request_of(HO_POLICY_GREEDY, 1, 0, 50);
    r.slots[0] = 3;
    CHECK_STATUS(ho_backtest(s->m->market, &s->cohort.acting.base, &r, 1, &result, &err),
                 HO_EINVAL);
    CHECK_CONTAINS(err.text, "slot 3 holds no lane");
    r.slots[0] = 4;
    CHECK_STATUS(ho_backtest(s->m->market, &s->cohort.acting.base, &r, 1, &result, &err),
                 HO_EINVAL);
    r.slots[0] = 0;
    r.slot_count = 0;
    CHECK_STATUS(ho_backtest(s->m->market, &s->cohort.acting.base, &r, 1, &result, &err),
                 HO_EINVAL);
    r.slot_count = 1;
    s->cohort.fail_at = 7;
    CHECK_STATUS(ho_backtest(s->m->market, &s->cohort.acting.base, &r, 1, &result, &err),
                 HO_ENOMEM);
    assert_null(result.equity);
    scene_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_decide_by_mean_vote_or_confidence),
        cmocka_unit_test(a_tie_of_votes_goes_to_the_higher_score),
        cmocka_unit_test(actions_that_the_set_lacks_do_not_count),
        cmocka_unit_test(batching_and_threads_change_nothing),
        cmocka_unit_test(different_members_are_not_batched_together),
        cmocka_unit_test(free_slots_and_failures_are_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
