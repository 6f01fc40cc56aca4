/* SPDX-License-Identifier: Apache-2.0
 * What every kind of sampler must hold: legal values, no repeats, replay, order, the edge cases and
 * the public reports issue 7 lists. */
#include "check.h"

#include <stdlib.h>

#include "coordinator/search/draw.h"
#include "coordinator/search/sampler.h"
#include "search/spaces.h"
#include "study/require.h"

enum { PARAMS = 8 };

static const char *const LEARNING[] = {"tpe", "cmaes", "gp", "nsga2"};
enum { LEARNING_COUNT = sizeof LEARNING / sizeof LEARNING[0] };

static ho_sampler_options kind(const char *name, uint64_t seed)
{
    ho_sampler_options options = ho_sampler_defaults();

    options.kind = name;
    options.seed = seed;
    options.direction[0] = -1;
    return options;
}

static ho_sampler *make(const ho_space *space, const ho_sampler_options *options)
{
    ho_sampler *sampler;
    ho_err err;

    CHECK_OK(ho_sampler_create(&sampler, space, options, &err), &err);
    return sampler;
}

static void ask(ho_sampler *sampler, int64_t number, double *config)
{
    ho_err err;

    CHECK_OK(ho_sampler_ask(sampler, number, config, NULL, &err), &err);
}

static void tell_state(ho_sampler *sampler, int64_t number, ho_told_state state, double value)
{
    ho_told told = {.state = state, .value = {value, -value}, .step = 3, .seconds = NAN};
    ho_err err;

    CHECK_OK(ho_sampler_tell(sampler, number, &told, &err), &err);
}

static void tell(ho_sampler *sampler, int64_t number, double value)
{
    tell_state(sampler, number, HO_TOLD_COMPLETE, value);
}

/* Every kind of parameter: log float, stepped float, log int, off-grid int, choice, a branch. */
static ho_space rich_space(void)
{
    static ho_choice yes_no[2] = {{.type = HO_CHOICE_BOOL}, {.type = HO_CHOICE_BOOL}};
    static ho_choice three[3];
    static ho_param p[PARAMS];
    ho_space space = {.count = PARAMS, .param = p};

    memset(p, 0, sizeof p);
    p[0] = spaces_float("lr", 1e-5, 0.1);
    p[0].log = true;
    p[1] = spaces_float("drop", 0.8, 1.0);
    p[1].step = 0.1;
    p[1].step_decimals = 1;
    p[2] = spaces_int("units", 16, 512);
    p[2].log = true;
    p[3] = spaces_int("batch", 10, 238); /* 10 to 240 by 12 ends at 238 */
    p[3].step = 12;
    p[4] = spaces_choice("kind", three, 3);
    p[5] = spaces_choice("extra", yes_no, 2);
    p[6] = spaces_float("clip", 0.1, 0.3);
    spaces_when(&p[6], 4, 2);
    p[7] = spaces_int("depth", 1, 4);
    spaces_when(&p[7], 5, 2);
    return space;
}

static double rich_loss(const double *c)
{
    double loss = fabs(log10(c[0]) + 3.0) + fabs(c[1] - 0.9) + fabs(log2(c[2]) - 6.0) +
                  fabs(c[3] - 58.0) / 100.0 + 0.2 * c[4];

    return loss + (isnan(c[6]) ? 0.3 : fabs(c[6] - 0.2)) + (isnan(c[7]) ? 0.1 : 0.1 * c[7]);
}

static void every_kind_proposes_legal_new_values_that_learn(void **state)
{
    ho_space space = rich_space();

    (void)state;
    for (int k = 0; k < ho_sampler_kind_count(); k++) {
        ho_sampler_options options = kind(ho_sampler_kind_name(k), 3);
        double config[64][PARAMS];
        ho_sampler *sampler;
        ho_err err;

        if (strcmp(options.kind, "grid") == 0) {
            continue;
        }
        sampler = make(&space, &options);
        for (int64_t n = 0; n < 64; n++) {
            char why[HO_WHY_MAX] = "";

            CHECK_OK(ho_sampler_ask(sampler, n, config[n], why, &err), &err);
            CHECK_OK(ho_space_check(&space, config[n], &err), &err);
            CHECK_CONTAINS(why, options.kind);
            for (int64_t m = 0; m < n; m++) {
                assert_true(ho_space_hash(&space, config[m]) != ho_space_hash(&space, config[n]));
            }
            tell(sampler, n, rich_loss(config[n]));
        }
        assert_int_equal(ho_sampler_pending(sampler), 0);
        ho_sampler_destroy(&sampler);
        assert_null(sampler);
    }
}

static void unknown_kind_lists_the_kinds(void **state)
{
    ho_space space = rich_space();
    ho_sampler_options options = kind("tbe", 0);
    ho_sampler *sampler;
    ho_err err;

    (void)state;
    CHECK_STATUS(ho_sampler_create(&sampler, &space, &options, &err), HO_ECONFIG);
    CHECK_CONTAINS(err.text, "tbe");
    CHECK_CONTAINS(err.text, "tpe");
    options = kind("grid", 0);
    CHECK_STATUS(ho_sampler_create(&sampler, &space, &options, &err), HO_ECONFIG);
    CHECK_CONTAINS(err.text, "lr");
    options = kind("tpe", 0);
    options.objectives = HO_OBJECTIVES_MAX + 1;
    CHECK_STATUS(ho_sampler_create(&sampler, &space, &options, &err), HO_ECONFIG);
    options = kind("gp", 0);
    options.cost = true;
    CHECK_STATUS(ho_sampler_create(&sampler, &space, &options, &err), HO_ECONFIG);
    options = kind("cmaes", 0);
    options.objectives = 2;
    CHECK_STATUS(ho_sampler_create(&sampler, &space, &options, &err), HO_ECONFIG);
    assert_null(sampler);
}

/* optuna 391: a step range loses its end. 2467: an int step leaves the grid. */
static void step_range_keeps_its_end_and_its_grid(void **state)
{
    static ho_param p[2];
    ho_space space = {.count = 2, .param = p};
    ho_sampler_options options = kind("random", 1);
    ho_sampler *sampler;
    bool drop[3] = {false}, batch[4] = {false};

    (void)state;
    p[0] = spaces_float("drop", 0.8, 1.0);
    p[0].step = 0.1;
    p[0].step_decimals = 1;
    p[1] = spaces_int("batch", 5, 14); /* 5, 8, 11, 14 of a range to 16 */
    p[1].step = 3;
    sampler = make(&space, &options);
    for (int64_t n = 0; n < 12; n++) { /* all of them, since none repeats */
        double c[2];

        ask(sampler, n, c);
        drop[0] |= c[0] == 0.8;
        drop[1] |= c[0] == 0.9;
        drop[2] |= c[0] == 1.0;
        batch[(int)(c[1] - 5.0) / 3] = true;
        assert_true(c[1] == 5.0 || c[1] == 8.0 || c[1] == 11.0 || c[1] == 14.0);
    }
    assert_true(drop[0] && drop[1] && drop[2]);
    assert_true(batch[0] && batch[1] && batch[2] && batch[3]);
    ho_sampler_destroy(&sampler);
}

/* optuna 5457: exp(log(1e-5)) is two ulp below 1e-5. */
static void log_bounds_hold_to_the_last_bit(void **state)
{
    static ho_param p[2];
    ho_space space = {.count = 2, .param = p};

    (void)state;
    p[0] = spaces_float("lr", 1e-5, 1e-4);
    p[1] = spaces_float("size", 999.9999999, 1e3);
    p[0].log = p[1].log = true;
    for (int k = 0; k < ho_sampler_kind_count(); k++) {
        ho_sampler_options options = kind(ho_sampler_kind_name(k), 9);
        ho_sampler *sampler;

        if (strcmp(options.kind, "grid") == 0) {
            continue;
        }
        sampler = make(&space, &options);
        for (int64_t n = 0; n < 60; n++) {
            double c[2];

            ask(sampler, n, c);
            assert_true(c[0] >= 1e-5 && c[0] <= 1e-4 && c[1] >= 999.9999999 && c[1] <= 1e3);
            tell(sampler, n, c[0] - c[1]); /* pushes into the corner */
        }
        ho_sampler_destroy(&sampler);
    }
}

/* optuna 3129: choices 1, "1", 1.0 and true are four choices. Indexes keep them apart. */
static void mixed_type_choices_stay_apart(void **state)
{
    static char one[] = "1", yes[] = "true", empty[] = "";
    static ho_choice c[6] = {
        {.type = HO_CHOICE_INT, .integer = 1},   {.type = HO_CHOICE_STRING, .text = one},
        {.type = HO_CHOICE_FLOAT, .real = 1.0},  {.type = HO_CHOICE_BOOL, .boolean = true},
        {.type = HO_CHOICE_STRING, .text = yes}, {.type = HO_CHOICE_STRING, .text = empty}};
    static ho_param p[1];
    ho_space space = {.count = 1, .param = p};
    int seen = 0;

    (void)state;
    p[0] = spaces_choice("x", c, 6);
    for (int k = 0; k < ho_sampler_kind_count(); k++) {
        ho_sampler_options options = kind(ho_sampler_kind_name(k), 2);
        ho_sampler *sampler = make(&space, &options);
        ho_err err;
        double x;

        seen = 0;
        for (int64_t n = 0; n < 6; n++) {
            ask(sampler, n, &x);
            seen |= 1 << (int)x;
            tell(sampler, n, x);
        }
        assert_int_equal(seen, 63);
        CHECK_STATUS(ho_sampler_ask(sampler, 6, &x, NULL, &err), HO_EDONE);
        ho_sampler_destroy(&sampler);
    }
}

/* optuna 6798: a NaN never equals itself, and looking for it never ends. */
static void nan_in_a_request_is_filled_and_ends(void **state)
{
    ho_space space = rich_space();
    ho_sampler_options options = kind("tpe", 2);
    ho_sampler *sampler = make(&space, &options);
    double config[PARAMS], open[PARAMS];
    ho_err err;

    (void)state;
    for (int p = 0; p < PARAMS; p++) {
        open[p] = NAN;
    }
    CHECK_OK(ho_sampler_enqueue(sampler, open, &err), &err);
    ask(sampler, 0, config);
    CHECK_OK(ho_space_check(&space, config, &err), &err);
    tell(sampler, 0, NAN); /* counts as failed */
    ask(sampler, 1, config);
    ho_sampler_destroy(&sampler);
}

/* optuna 1547, hyperopt 608: parallel workers get the same configuration. */
static void eight_workers_never_get_the_same_configuration(void **state)
{
    static ho_choice c[3];
    static ho_param p[3];
    ho_space space = {.count = 3, .param = p};

    (void)state;
    p[0] = spaces_int("a", 1, 6);
    p[1] = spaces_choice("b", c, 3);
    p[2] = spaces_int("c", 0, 4);
    for (int k = 0; k < ho_sampler_kind_count(); k++) {
        ho_sampler_options options = kind(ho_sampler_kind_name(k), 4);
        ho_sampler *sampler = make(&space, &options);
        bool seen[90] = {false};
        double x[90][3];
        ho_err err;

        for (int64_t n = 0; n < 90; n++) { /* the whole space */
            int index;

            ask(sampler, n, x[n]);
            index = (int)(x[n][0] - 1.0) * 15 + (int)x[n][1] * 5 + (int)x[n][2];
            assert_false(seen[index]);
            seen[index] = true;
            if (n >= 8) {
                tell(sampler, n - 8, x[n - 8][0] + x[n - 8][1]);
            }
        }
        CHECK_STATUS(ho_sampler_ask(sampler, 90, x[0], NULL, &err), HO_EDONE);
        CHECK_CONTAINS(err.text, "tried");
        ho_sampler_destroy(&sampler);
    }
}

static void a_cancelled_configuration_may_come_again(void **state)
{
    static ho_param p[1];
    ho_space space = {.count = 1, .param = p};
    ho_sampler_options options = kind("grid", 4);
    ho_sampler *sampler;
    double x;
    ho_err err;

    (void)state;
    p[0] = spaces_int("a", 1, 2);
    sampler = make(&space, &options);
    ask(sampler, 0, &x);
    ask(sampler, 1, &x);
    tell_state(sampler, 0, HO_TOLD_CANCELLED, NAN);
    ask(sampler, 2, &x);
    CHECK_NEAR(x, 1.0, 0.0);
    CHECK_STATUS(ho_sampler_ask(sampler, 3, &x, NULL, &err), HO_EDONE);
    ho_sampler_destroy(&sampler);
}

static void replicates_share_a_configuration_on_purpose(void **state)
{
    ho_space space = rich_space();
    ho_sampler_options options = kind("tpe", 2);
    ho_sampler *sampler;
    double first[PARAMS], again[PARAMS];

    (void)state;
    options.replicates = 3;
    sampler = make(&space, &options);
    for (int64_t n = 0; n < 60; n++) {
        ask(sampler, n, n % 3 == 0 ? first : again);
        if (n % 3 != 0) {
            assert_int_equal(ho_space_hash(&space, first), ho_space_hash(&space, again));
        }
        tell(sampler, n, rich_loss(first) + (double)(n % 3));
    }
    ho_sampler_destroy(&sampler);
}

/* Asks and tells 60 trials, four in flight; fills configs [60, P]. resume_at: from there on a fresh
 * sampler that was resumed goes on. */
static void run_study(const ho_space *space, const ho_sampler_options *options, int64_t resume_at,
                      double *configs)
{
    ho_sampler *sampler = make(space, options);
    ho_err err;
    int p = space->count;

    for (int64_t n = 0; n < 60; n++) {
        if (n == resume_at) {
            ho_sampler_destroy(&sampler);
            sampler = make(space, options);
            for (int64_t m = 0; m < n; m++) { /* the same order of asks and tells */
                CHECK_OK(ho_sampler_resume(sampler, m, &configs[m * p], &err), &err);
                if (m >= 4) {
                    tell(sampler, m - 4, rich_loss(&configs[(m - 4) * p]));
                }
            }
        }
        ask(sampler, n, &configs[n * p]);
        if (n >= 4) {
            tell(sampler, n - 4, rich_loss(&configs[(n - 4) * p]));
        }
    }
    ho_sampler_destroy(&sampler);
}

static void replay_and_resume_give_identical_proposals(void **state)
{
    ho_space space = rich_space();
    double a[60 * PARAMS], b[60 * PARAMS], c[60 * PARAMS], other[60 * PARAMS];

    (void)state;
    for (int k = 0; k < ho_sampler_kind_count(); k++) {
        ho_sampler_options options = kind(ho_sampler_kind_name(k), 12);

        if (strcmp(options.kind, "grid") == 0) {
            continue;
        }
        run_study(&space, &options, -1, a);
        run_study(&space, &options, -1, b);
        run_study(&space, &options, 37, c);
        options.seed++;
        run_study(&space, &options, -1, other);
        assert_memory_equal(a, b, sizeof a);
        assert_memory_equal(a, c, sizeof a);
        assert_memory_not_equal(a, other, sizeof a);
    }
}

/* deterministic: the order in which workers answer changes nothing. */
static void deterministic_order_ignores_who_answers_first(void **state)
{
    ho_space space = rich_space();
    ho_sampler_options options = kind("tpe", 21);
    double a[40][PARAMS], b[40][PARAMS];
    ho_err err;

    (void)state;
    options.deterministic = true;
    options.parallel = 4;
    for (int pass = 0; pass < 2; pass++) {
        double(*config)[PARAMS] = pass ? b : a;
        ho_sampler *sampler = make(&space, &options);

        for (int64_t n = 0; n < 40; n += 4) { /* four at a time, answered forwards or backwards */
            for (int64_t i = 0; i < 4; i++) {
                ask(sampler, n + i, config[n + i]);
            }
            if (n == 0) {
                CHECK_STATUS(ho_sampler_ask(sampler, 5, config[5], NULL, &err), HO_EAGAIN);
            }
            for (int64_t i = 0; i < 4; i++) {
                int64_t m = n + (pass ? 3 - i : i);

                tell(sampler, m, rich_loss(config[m]));
            }
        }
        ho_sampler_destroy(&sampler);
    }
    assert_memory_equal(a, b, sizeof a);
}

static void misuse_is_refused_and_changes_nothing(void **state)
{
    ho_space space = rich_space();
    ho_sampler_options options = kind("tpe", 2);
    ho_sampler *sampler = make(&space, &options);
    ho_told told = {.state = HO_TOLD_COMPLETE};
    double config[PARAMS];
    ho_err err;

    (void)state;
    CHECK_STATUS(ho_sampler_tell(sampler, 0, &told, &err), HO_EINVAL);
    ask(sampler, 0, config);
    CHECK_STATUS(ho_sampler_ask(sampler, 0, config, NULL, &err), HO_EINVAL);
    CHECK_STATUS(ho_sampler_ask(sampler, -5, config, NULL, &err), HO_EINVAL);
    tell(sampler, 0, 1.0);
    CHECK_STATUS(ho_sampler_tell(sampler, 0, &told, &err), HO_EINVAL);
    config[0] = 7.0;
    CHECK_STATUS(ho_sampler_resume(sampler, 1, config, &err), HO_EINVAL);
    CHECK_STATUS(ho_sampler_enqueue(sampler, config, &err), HO_EINVAL);
    CHECK_CONTAINS(err.text, "lr");
    assert_int_equal(ho_sampler_pending(sampler), 0);
    ho_sampler_destroy(&sampler);
}

static void enqueued_configurations_come_first_and_in_order(void **state)
{
    ho_space space = rich_space();
    ho_sampler_options options = kind("tpe", 2);
    ho_sampler *sampler = make(&space, &options);
    double want[PARAMS], got[PARAMS];
    char why[HO_WHY_MAX];
    ho_err err;

    (void)state;
    for (int p = 0; p < PARAMS; p++) {
        want[p] = NAN;
    }
    for (int i = 0; i < 3; i++) {
        want[3] = 10.0 + 12.0 * i;
        want[4] = 1.0;
        CHECK_OK(ho_sampler_enqueue(sampler, want, &err), &err);
    }
    for (int64_t n = 0; n < 3; n++) {
        CHECK_OK(ho_sampler_ask(sampler, n, got, why, &err), &err);
        CHECK_NEAR(got[3], 10.0 + 12.0 * (double)n, 0.0);
        CHECK_NEAR(got[4], 1.0, 0.0);
        assert_false(isnan(got[6])); /* active through kind = 1 */
        CHECK_CONTAINS(why, "enqueued");
    }
    ask(sampler, 3, got);
    ho_sampler_destroy(&sampler);
}

static void warm_start_moves_the_first_proposals(void **state)
{
    static ho_param p[1];
    ho_space space = {.count = 1, .param = p};
    ho_sampler_options options = kind("tpe", 6);
    ho_sampler *sampler;
    double near = 0.0;
    ho_err err;

    (void)state;
    p[0] = spaces_float("x", 0.0, 1.0);
    sampler = make(&space, &options);
    for (int i = 0; i < 40; i++) {
        double x = (double)i / 40.0;
        ho_told told = {.state = HO_TOLD_COMPLETE, .value = {fabs(x - 0.75)}};

        CHECK_OK(ho_sampler_warm(sampler, &x, &told, &err), &err);
    }
    for (int64_t n = 0; n < 10; n++) {
        double x;

        ask(sampler, n, &x);
        near += fabs(x - 0.75) < 0.15;
        tell(sampler, n, fabs(x - 0.75));
    }
    assert_true(near >= 7.0);
    ho_sampler_destroy(&sampler);
}

static void requirements_hold_in_every_proposal(void **state)
{
    static ho_param p[2];
    ho_err err;

    (void)state;
    p[0] = spaces_int("fast", 2, 50);
    p[1] = spaces_int("slow", 2, 50);
    for (int k = 0; k < ho_sampler_kind_count(); k++) {
        ho_sampler_options options = kind(ho_sampler_kind_name(k), 8);
        ho_space space = {.count = 2, .param = p};
        ho_sampler *sampler;

        CHECK_OK(ho_require_add(&space, NULL, "slow > fast * 3", &err), &err);
        sampler = make(&space, &options);
        for (int64_t n = 0; n < 80; n++) {
            double c[2];

            ask(sampler, n, c);
            assert_true(c[1] > 3.0 * c[0]);
            tell(sampler, n, fabs(c[1] - 20.0) - c[0]);
        }
        ho_sampler_destroy(&sampler);
        ho_require_free(&space.require);
    }
}

static void impossible_requirement_exhausts_the_space(void **state)
{
    static ho_param p[2];
    ho_space space = {.count = 2, .param = p};
    ho_sampler_options options = kind("tpe", 8);
    ho_sampler *sampler;
    double c[2];
    ho_err err;

    (void)state;
    p[0] = spaces_int("fast", 2, 50);
    p[1] = spaces_float("slow", 2, 50);
    CHECK_OK(ho_require_add(&space, NULL, "slow > fast + 100", &err), &err);
    sampler = make(&space, &options);
    CHECK_STATUS(ho_sampler_ask(sampler, 0, c, NULL, &err), HO_EDONE);
    ho_sampler_destroy(&sampler);
    ho_require_free(&space.require);
}

static void failures_steer_away(void **state)
{
    static ho_param p[2];
    ho_space space = {.count = 2, .param = p};

    (void)state;
    p[0] = spaces_float("x", 0.0, 1.0);
    p[1] = spaces_float("y", 0.0, 1.0);
    for (int k = 0; k < LEARNING_COUNT;
         k++) { /* half of the space fails; the value does not say so */
        ho_sampler_options options = kind(LEARNING[k], 5);
        ho_sampler *sampler = make(&space, &options);
        int failed = 0;

        for (int64_t n = 0; n < 120; n++) {
            double c[2];

            ask(sampler, n, c);
            if (c[0] > 0.5) {
                tell_state(sampler, n, HO_TOLD_FAILED, NAN);
                failed += n >= 60;
            } else {
                tell(sampler, n, fabs(c[1] - 0.5));
            }
        }
        assert_true(failed <= 12); /* of 60; random would fail 30 */
        ho_sampler_destroy(&sampler);
    }
}

static void edge_histories_end_and_stay_legal(void **state)
{
    static const double VALUE[] = {1.0, INFINITY, -INFINITY, NAN};
    ho_space space = rich_space();
    ho_err err;

    (void)state;
    for (int k = 0; k < LEARNING_COUNT; k++) {
        for (int mode = 0; mode < 6; mode++) { /* 0-3: all alike; 4: all failed; 5: a mix */
            ho_sampler_options options = kind(LEARNING[k], 5);
            ho_sampler *sampler = make(&space, &options);

            for (int64_t n = 0; n < 60; n++) {
                double c[PARAMS], value = VALUE[mode < 4 ? mode : n % 4];

                ask(sampler, n, c);
                CHECK_OK(ho_space_check(&space, c, &err), &err);
                if (mode == 4 || (mode == 5 && n % 5 == 0)) {
                    tell_state(sampler, n, HO_TOLD_FAILED, NAN);
                } else {
                    tell_state(sampler, n, n % 3 == 2 ? HO_TOLD_PRUNED : HO_TOLD_COMPLETE, value);
                }
            }
            ho_sampler_destroy(&sampler);
        }
    }
}

static void one_parameter_and_no_parameter_work(void **state)
{
    static ho_param p[1];
    ho_space one = {.count = 1, .param = p}, none = {.count = 0};

    (void)state;
    p[0] = spaces_float("x", -1.0, 1.0);
    for (int k = 0; k < ho_sampler_kind_count(); k++) {
        ho_sampler_options options = kind(ho_sampler_kind_name(k), 1);
        ho_sampler *sampler;
        double x = NAN;
        ho_err err;

        if (strcmp(options.kind, "grid") != 0) {
            sampler = make(&one, &options);
            for (int64_t n = 0; n < 50; n++) {
                ask(sampler, n, &x);
                assert_true(x >= -1.0 && x <= 1.0);
                tell(sampler, n, x * x);
            }
            ho_sampler_destroy(&sampler);
        }
        sampler = make(&none, &options); /* one configuration: nothing to choose */
        CHECK_OK(ho_sampler_ask(sampler, 0, &x, NULL, &err), &err);
        tell(sampler, 0, 1.0);
        CHECK_STATUS(ho_sampler_ask(sampler, 1, &x, NULL, &err), HO_EDONE);
        ho_sampler_destroy(&sampler);
    }
}

static void grid_walks_every_branch_once(void **state)
{
    static ho_choice c[2];
    static ho_param p[3];
    ho_space space = {.count = 3, .param = p};
    ho_sampler_options options = kind("grid", 1);
    ho_sampler *sampler;
    double x[3], first[3];
    ho_err err;
    int64_t n = 0;

    (void)state;
    p[0] = spaces_choice("algo", c, 2);
    p[1] = spaces_int("a", 1, 3);
    spaces_when(&p[1], 0, 1);
    p[2] = spaces_int("b", 1, 4);
    spaces_when(&p[2], 0, 2);
    sampler = make(&space, &options);
    ask(sampler, n++, first);
    CHECK_NEAR(first[1], 1.0, 0.0);
    CHECK_NAN(first[2]);
    while (ho_sampler_ask(sampler, n, x, NULL, &err) == HO_OK) {
        n++;
    }
    assert_int_equal(n, 7); /* 3 + 4 */
    ho_sampler_destroy(&sampler);
}

static void sobol_fills_every_stratum(void **state)
{
    static ho_param p[40];
    ho_space space = {.count = 40, .param = p};
    ho_sampler_options options = kind("sobol", 77);
    ho_sampler *sampler;
    bool seen[40][64] = {{false}};

    (void)state;
    for (int d = 0; d < 40; d++) {
        p[d] = spaces_float("x", 0.0, 1.0);
    }
    sampler = make(&space, &options);
    for (int64_t n = 0; n < 64; n++) { /* 64 points: one in each 64th of each dimension */
        double x[40];

        ask(sampler, n, x);
        for (int d = 0; d < 40; d++) {
            assert_false(seen[d][(int)(x[d] * 64.0)]);
            seen[d][(int)(x[d] * 64.0)] = true;
        }
    }
    ho_sampler_destroy(&sampler);
}

static void infeasible_trials_come_after_feasible_ones(void **state)
{
    static ho_param p[1];
    ho_space space = {.count = 1, .param = p};

    (void)state;
    p[0] = spaces_float("x", 0.0, 1.0);
    for (int k = 0; k < LEARNING_COUNT; k++) { /* minimise x subject to x >= 0.6 */
        ho_sampler_options options = kind(LEARNING[k], 3);
        ho_sampler *sampler = make(&space, &options);
        int feasible = 0;
        ho_err err;

        for (int64_t n = 0; n < 120; n++) {
            double x;
            ho_told told = {.state = HO_TOLD_COMPLETE, .seconds = NAN};

            ask(sampler, n, &x);
            told.value[0] = x;
            told.violation = fmax(0.6 - x, 0.0);
            feasible += n >= 60 && x >= 0.6 && x < 0.75;
            CHECK_OK(ho_sampler_tell(sampler, n, &told, &err), &err);
        }
        assert_true(feasible >= 20); /* random: 9 of 60 */
        ho_sampler_destroy(&sampler);
    }
}

static void cost_prefers_the_cheap_half(void **state)
{
    static ho_param p[2];
    ho_space space = {.count = 2, .param = p};
    double spent[2] = {0.0};
    ho_err err;

    (void)state;
    p[0] = spaces_float("x", 0.0, 1.0);
    p[1] = spaces_float("size", 0.0, 1.0); /* costs much, brings nothing */
    for (int cost = 0; cost < 2; cost++) {
        for (uint64_t seed = 0; seed < 8; seed++) {
            ho_sampler_options options = kind("tpe", seed);
            ho_sampler *sampler;

            options.cost = cost == 1;
            sampler = make(&space, &options);
            for (int64_t n = 0; n < 100; n++) {
                double c[2];
                ho_told told = {.state = HO_TOLD_COMPLETE};

                ask(sampler, n, c);
                told.value[0] = fabs(c[0] - 0.3);
                told.seconds = exp(4.0 * c[1]);
                spent[cost] += told.seconds;
                CHECK_OK(ho_sampler_tell(sampler, n, &told, &err), &err);
            }
            ho_sampler_destroy(&sampler);
        }
    }
    assert_true(spent[1] < 0.5 * spent[0]);
}

static void several_objectives_spread_along_the_front(void **state)
{
    static const char *const KIND[] = {"tpe", "nsga2"};
    static ho_param p[2];
    ho_space space = {.count = 2, .param = p};
    ho_err err;

    (void)state;
    p[0] = spaces_float("x", 0.0, 1.0);
    p[1] = spaces_float("y", 0.0, 1.0);
    for (int k = 0; k < 2; k++) { /* the front is y = 0 */
        ho_sampler_options options = kind(KIND[k], 3);
        ho_sampler *sampler;
        int near = 0, left = 0, right = 0;

        options.objectives = 2;
        options.direction[0] = options.direction[1] = -1;
        options.population = 20;
        sampler = make(&space, &options);
        for (int64_t n = 0; n < 150; n++) {
            double c[2];
            ho_told told = {.state = HO_TOLD_COMPLETE};

            ask(sampler, n, c);
            told.value[0] = c[0] + c[1];
            told.value[1] = 1.0 - c[0] + c[1];
            CHECK_OK(ho_sampler_tell(sampler, n, &told, &err), &err);
            if (n >= 75 && c[1] < 0.1) {
                near++;
                left += c[0] < 0.5;
                right += c[0] >= 0.5;
            }
        }
        assert_true(near >= 25 && left >= 5 && right >= 5); /* random: 7 near */
        ho_sampler_destroy(&sampler);
    }
}

static void draws_are_named_by_seed_number_and_purpose(void **state)
{
    ho_draw a = ho_draw_start(1, 2, HO_DRAW_PROPOSE, 0);
    ho_draw b = ho_draw_start(1, 2, HO_DRAW_PROPOSE, 0);
    ho_draw c = ho_draw_start(1, 3, HO_DRAW_PROPOSE, 0);
    ho_draw d = ho_draw_start(1, 2, HO_DRAW_PROPOSE, 1);
    philox4x32_ctr_t zero = {{0, 0, 0, 0}};
    philox4x32_key_t key = {{0, 0}};

    (void)state;
    /* Random123's known answer for philox4x32-10 of zero */
    assert_int_equal(philox4x32(zero, key).v[0], 0x6627e8d5);
    for (int i = 0; i < 100; i++) {
        uint32_t x = ho_draw_u32(&a);

        assert_int_equal(x, ho_draw_u32(&b));
        assert_int_not_equal(x, ho_draw_u32(&c));
        assert_int_not_equal(x, ho_draw_u32(&d));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_proposes_legal_new_values_that_learn),
        cmocka_unit_test(unknown_kind_lists_the_kinds),
        cmocka_unit_test(step_range_keeps_its_end_and_its_grid),
        cmocka_unit_test(log_bounds_hold_to_the_last_bit),
        cmocka_unit_test(mixed_type_choices_stay_apart),
        cmocka_unit_test(nan_in_a_request_is_filled_and_ends),
        cmocka_unit_test(eight_workers_never_get_the_same_configuration),
        cmocka_unit_test(a_cancelled_configuration_may_come_again),
        cmocka_unit_test(replicates_share_a_configuration_on_purpose),
        cmocka_unit_test(replay_and_resume_give_identical_proposals),
        cmocka_unit_test(deterministic_order_ignores_who_answers_first),
        cmocka_unit_test(misuse_is_refused_and_changes_nothing),
        cmocka_unit_test(enqueued_configurations_come_first_and_in_order),
        cmocka_unit_test(warm_start_moves_the_first_proposals),
        cmocka_unit_test(requirements_hold_in_every_proposal),
        cmocka_unit_test(impossible_requirement_exhausts_the_space),
        cmocka_unit_test(failures_steer_away),
        cmocka_unit_test(edge_histories_end_and_stay_legal),
        cmocka_unit_test(one_parameter_and_no_parameter_work),
        cmocka_unit_test(grid_walks_every_branch_once),
        cmocka_unit_test(sobol_fills_every_stratum),
        cmocka_unit_test(infeasible_trials_come_after_feasible_ones),
        cmocka_unit_test(cost_prefers_the_cheap_half),
        cmocka_unit_test(several_objectives_spread_along_the_front),
        cmocka_unit_test(draws_are_named_by_seed_number_and_purpose),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
