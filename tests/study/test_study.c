/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <sys/stat.h>

#include "check.h"
#include "study/require.h"
#include "study/study.h"

static ho_study *parse(const char *text)
{
    ho_err err;
    ho_study *study = NULL;
    CHECK_OK(ho_study_parse(text, strlen(text), "s.toml", ".", &study, &err), &err);
    assert_non_null(study);
    return study;
}

#define DATA "[data]\npath = \"a.csv\"\n"

static const char example[] = "[study]\n"
                              "name          = \"es-dqn\"\n"
                              "seed          = 42\n"
                              "trials        = 200\n"
                              "timeout       = \"8h\"\n"
                              "patience      = 60\n"
                              "objective     = [\"sharpe\"]\n"
                              "aggregate     = \"stitched\"\n"
                              "constraints   = [\"max_drawdown >= -0.25\", \"trades >= 30\"]\n"
                              "seeds         = 2\n"
                              "deterministic = false\n"
                              "parallel      = 16\n"
                              "database      = \"es-dqn.db\"\n"
                              "[data]\n"
                              "path    = \"data/es-1m.csv.zst\"\n"
                              "symbol  = \"ES\"\n"
                              "start   = 2018-01-01\n"
                              "end     = 2023-12-31\n"
                              "bar     = \"1m\"\n"
                              "timezone = \"America/Chicago\"\n"
                              "gaps    = \"keep\"\n"
                              "volume  = \"base\"\n"
                              "[instrument]\n"
                              "tick_size = 0.25\n"
                              "multiplier = 50\n"
                              "[folds]\n"
                              "scheme  = \"rolling\"\n"
                              "count   = 4\n"
                              "test    = \"auto\"\n"
                              "train   = \"auto\"\n"
                              "step    = \"auto\"\n"
                              "purge   = \"auto\"\n"
                              "validation = \"15%\"\n"
                              "holdout = \"15%\"\n"
                              "refit   = \"per_fold\"\n"
                              "[env]\n"
                              "initial_capital = 1_000_000\n"
                              "spread_bps = 1.0\n"
                              "fee_bps = { taker = 2, maker = -0.1 }\n"
                              "urgency_fraction.patient = 0.5\n"
                              "reset_flags = [\"dsr\", \"kelly\"]\n"
                              "[barriers]\n"
                              "profit_target = 40\n"
                              "unit = \"bps\"\n"
                              "[reward]\n"
                              "preset = \"default\"\n"
                              "[agent]\n"
                              "hidden1 = 256\n"
                              "epochs  = 40\n"
                              "eval_every = 5\n"
                              "[search]\n"
                              "\"ppo.clip\" = { float = [0.1, 0.3], "
                              "when = { \"agent.algorithm\" = \"ppo\" } }\n"
                              "\"dqn.learning_rate\"  = { float = [1e-5, 3e-3], log = true }\n"
                              "\"dqn.gamma\"          = { float = [0.9, 0.999] }\n"
                              "dqn.n_step           = { int = [1, 8] }\n"
                              "\"barriers.stop_loss\" = { float = [10, 80] }\n"
                              "\"barriers.max_holding\" = { int = [10, 240], step = 10 }\n"
                              "\"agent.algorithm\"    = { choice = [\"dqn\", \"ppo\"] }\n"
                              "[[enqueue]]\n"
                              "\"dqn.learning_rate\" = 3e-4\n"
                              "[[enqueue]]\n"
                              "agent.algorithm = \"ppo\"\n"
                              "\"ppo.clip\" = 0.2\n"
                              "[sampler]\n"
                              "kind = \"tpe\"\n"
                              "startup = 20\n"
                              "[pruner]\n"
                              "kind = \"asha\"\n"
                              "min_epochs = 5\n"
                              "reduction = 3\n"
                              "[population]\n"
                              "[workers]\n"
                              "gpus = [0, 2]\n"
                              "lanes = \"auto\"\n"
                              "in_flight = \"auto\"\n"
                              "[coordinator]\n"
                              "listen = \"tcp://*:5555\"\n"
                              "curve  = \"keys/\"\n"
                              "heartbeat_timeout = \"30s\"\n"
                              "max_attempts = 3\n"
                              "metrics = \"127.0.0.1:9464\"\n"
                              "[[warm_start]]\n"
                              "database = \"old.db\"\n"
                              "best = 5\n";

static void the_whole_example_is_read(void **state)
{
    (void)state;
    ho_study *s = parse(example);
    assert_string_equal(s->name, "es-dqn");
    assert_int_equal(ho_settings_i64(s->settings, HO_KEY_STUDY_SEED), 42);
    CHECK_NEAR(ho_settings_f64(s->settings, HO_KEY_STUDY_TIMEOUT), 8 * 3600, 0);
    CHECK_NEAR(ho_settings_f64(s->settings, HO_KEY_ENV_FEE_BPS_MAKER), -0.1, 0);
    CHECK_NEAR(ho_settings_f64(s->settings, HO_KEY_ENV_FEE_BPS_IOC), 1, 0);
    CHECK_NEAR(ho_settings_f64(s->settings, HO_KEY_ENV_URGENCY_PATIENT), 0.5, 0);
    assert_int_equal(ho_settings_flags(s->settings, HO_KEY_ENV_RESET_FLAGS), 2 | 8);
    assert_string_equal(ho_settings_str(s->settings, HO_KEY_DATA_START), "2018-01-01");
    CHECK_NEAR(ho_settings_f64(s->settings, HO_KEY_DATA_BAR), 60, 0);
    assert_int_equal(ho_settings_list_count(s->settings, HO_KEY_WORKERS_GPUS), 2);
    assert_string_equal(ho_settings_list_str(s->settings, HO_KEY_WORKERS_GPUS, 1), "2");
    assert_int_equal(s->objective_count, 1);
    assert_int_equal(s->objective[0].metric, HO_METRIC_SHARPE);
    assert_int_equal(s->objective[0].direction, 1);
    assert_int_equal(s->constraint_count, 2);
    assert_int_equal(s->constraint[1].metric, HO_METRIC_TRADES);
    CHECK_NEAR(s->constraint[0].bound, -0.25, 0);
    assert_int_equal(s->warm_start_count, 1);
    assert_string_equal(s->warm_start[0].database, "old.db");
    assert_int_equal(s->warm_start[0].best, 5);
    assert_int_equal(s->warning_count, 0);
    assert_string_equal(s->text, example);

    assert_int_equal(s->space.count, 7);
    int algorithm = ho_space_find(&s->space, "agent.algorithm");
    int clip = ho_space_find(&s->space, "ppo.clip");
    int lr = ho_space_find(&s->space, "dqn.learning_rate");
    assert_true(algorithm >= 0 && clip > algorithm && lr > algorithm);
    assert_int_equal(s->space.param[clip].when[0].mask, 2);
    assert_int_equal(s->space.param[lr].when[0].mask, 1); /* implied by the section */
    assert_true(s->space.param[lr].log);
    const ho_param *holding = &s->space.param[ho_space_find(&s->space, "barriers.max_holding")];
    assert_int_equal(holding->key, HO_KEY_BARRIERS_MAX_HOLDING);
    assert_int_equal(ho_param_cardinality(holding), 24);

    assert_int_equal(s->enqueue_count, 2);
    CHECK_NEAR(s->enqueue[lr], 3e-4, 0);
    CHECK_NAN(s->enqueue[algorithm]);
    CHECK_NEAR(s->enqueue[s->space.count + algorithm], 1, 0);

    ho_fold_spec folds = ho_study_fold_spec(s);
    assert_int_equal(folds.count, 4);
    assert_int_equal(folds.purge_auto, 240 + 8);
    assert_true(folds.stitched && !folds.refit_once);
    ho_study_free(&s);
    assert_null(s);
}

static void a_trial_has_the_settings_of_its_configuration(void **state)
{
    (void)state;
    ho_err err;
    ho_study *s = parse(example);
    ho_settings *trial = NULL;
    double config[7];
    for (int i = 0; i < 7; i++) {
        config[i] = s->space.param[i].low;
    }
    config[ho_space_find(&s->space, "agent.algorithm")] = 1;
    ho_space_canonical(&s->space, config);
    CHECK_OK(ho_space_check(&s->space, config, &err), &err);
    CHECK_OK(ho_study_trial_settings(s, config, &trial, &err), &err);
    assert_int_equal(ho_settings_choice(trial, HO_KEY_AGENT_ALGORITHM), 1);
    CHECK_NEAR(ho_settings_f64(trial, HO_KEY_PPO_CLIP), 0.1, 0);
    assert_int_equal(ho_settings_i64(trial, HO_KEY_BARRIERS_MAX_HOLDING), 10);
    CHECK_NEAR(ho_settings_f64(trial, HO_KEY_DQN_GAMMA), 0.99, 0); /* inactive: the default */
    assert_int_equal(ho_settings_choice(s->settings, HO_KEY_AGENT_ALGORITHM), 0);
    ho_settings_destroy(&trial);
    ho_study_free(&s);
}

/* Each names the place and what is wrong. `\n` counts lines: DATA is two of them. */
static void a_malformed_study_names_the_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"[study", "s.toml:1:"},
        {"[study]\nname = \n", "s.toml:2:"},
        {"[study]\nname = \"a\"\nname = \"b\"\n", "s.toml:3:"},
        {"[study]\n[study]\n", "s.toml:2:"},
        {"[study]\nname = \"\xff\"\n", "s.toml:2:"},
        {"[study]\ntrails = 3\n",
         "s.toml:2:1: unknown key \"study.trails\"; did you mean \"study.trials\"?"},
        {"[stduy]\ntrials = 3\n",
         "s.toml:1:2: unknown section \"stduy\"; did you mean \"[study]\"?"},
        {"trials = 3\n", "s.toml:1:1: unknown key \"trials\"; did you mean \"study.trials\"?"},
        {"[dqn]\nlearning_rat = 1\n", "s.toml:2:1: unknown key"},
        {"[agent]\nn_step = 3\n", "did you mean \"dqn.n_step\"?"},
        {"study = 3\n", "s.toml:1:1: \"study\" is a section"},
        {"[study]\ntrials = \"many\"\n",
         "s.toml:2:10: study.trials wants a whole number, not a string"},
        {"[study]\ntrials = 3.0\n", "s.toml:2:10: study.trials wants a whole number, not a float"},
        {"[study]\ntrials = 0\n", "s.toml:2:10: study.trials is a whole number from 1 to"},
        {"[study]\ntrials = 99999999999\n", "s.toml:2:10:"},
        {"[study]\nname = 3\n", "s.toml:2:8: study.name wants a string, not an integer"},
        {"[study]\ndeterministic = 1\n", "s.toml:2:17: study.deterministic wants true or false"},
        {"[study]\ntimeout = \"8 hours\"\n", "s.toml:2:11: study.timeout is a time such as"},
        {"[study]\naggregate = \"avg\"\n", "s.toml:2:13: study.aggregate is one of stitched|mean|"},
        {"[study]\nobjective = []\n", "study.objective takes 1 to 8 items"},
        {"[dqn]\ngamma = 1.5\n", "s.toml:2:9: dqn.gamma is a number from 0 to 0.999999, not 1.5"},
        {"[dqn]\ngamma = nan\n", "s.toml:2:9: dqn.gamma"},
        {"[dqn]\ngamma = inf\n", "s.toml:2:9: dqn.gamma"},
        {"[env]\nreset_flags = [\"all\"]\n",
         "s.toml:2:15: env.reset_flags is a list of portfolio|"},
        {"[env]\nfee_bps = 3\n", "s.toml:2:1: \"env.fee_bps\" is a section"},
        {"[env]\nfee_bps = { take = 3 }\n", "did you mean \"env.fee_bps.taker\"?"},
        {"[folds]\ntest = \"20x\"\n", "s.toml:2:8: folds.test: a length is bars"},
        {"[folds]\nholdout = \"auto\"\n", "s.toml:2:11: folds.holdout"},
        {"[data]\npath = [1]\n", "s.toml:2:8: data.path wants a string or a list of strings"},
        {"[data]\npath = []\n", "data.path takes 1 to"},
        {"[data]\npath = \"a\"\nstart = 2020-13-01\n", "s.toml:3:"},
        {"[data]\npath = \"a\"\nstart = 2020-01-02\nend = 2020-01-01\n", "s.toml:4:7: data.end"},
        {"[study]\nseed = 1\n", "s.toml: data.path is missing"},
        {"[workers]\ngpus = 2\n", "s.toml:2:8: workers.gpus is \"all\", a list such as [0, 2]"},
        {DATA "[study]\nobjective = [\"sharp\"]\n",
         "s.toml:4:13: there is no metric \"sharp\"; the nearest is \"sharpe\""},
        {DATA "[study]\nobjective = [\"trades\"]\n", "s.toml:4:13: trades has no better direction"},
        {DATA "[study]\nobjective = [\"sharpe\", \"sharpe\"]\n", "stands in the list twice"},
        {DATA "[study]\nconstraints = [\"drawdown > 3\"]\n",
         "s.toml:4:15: there is no metric \"drawdown\""},
        {DATA "[study]\nconstraints = [\"trades\"]\n",
         "s.toml:4:15: a constraint is METRIC >= NUMBER"},
        {DATA "[study]\nconstraints = [\"trades >= 3 0\"]\n", "a constraint is METRIC >= NUMBER"},
        {DATA "[study]\nconstraints = [\"max_drawdown <= 0.25\"]\n", "can never be violated"},
        {DATA "[study]\nconstraints = [\"trades >= 0\"]\n",
         "can never be violated: trades is at least 0"},
        {DATA "[study]\nconstraints = [\"win_rate > 1\"]\n",
         "can never be satisfied: win_rate is 0 to 1"},
        {DATA "[study]\ndeterministic = true\n[dqn]\nbatch = \"auto\"\n",
         "s.toml:4:17: dqn.batch = \"auto\" is measured"},
        {DATA "[study]\nrace_folds = 4\n",
         "s.toml:4:14: study.race_folds must be below folds.count"},
        {DATA "[study]\nrace_folds = 1\n[folds]\nrefit = \"once\"\n",
         "s.toml:4:14: study.race_folds: with folds.refit"},
        {DATA "[study]\nrace_folds = 1\n[population]\nsize = 8\n", "race_folds: the members of a"},
        {DATA "[study]\nrace_folds = 1\nobjective = [\"sharpe\", \"max_drawdown\"]\n",
         "race_folds: folds are raced for one objective"},
        {DATA "[study]\nrace_folds = 1\nobjective = [\"sqn\"]\n",
         "race_folds: sqn of the joined series is not known"},
        {DATA "[study]\nrace_folds = 1\nconstraints = [\"payoff >= 1\"]\n", "take another metric"},
        {DATA "[study]\nrace_folds = 1\n[pruner]\np_threshold = 0.0\n",
         "race_folds: it drops below pruner.p_threshold"},
        {DATA "[folds]\nvalidation = \"0\"\n[agent]\nselect = \"best_validation\"\n",
         "s.toml:4:14: agent.select"},
        {DATA "[folds]\nvalidation = 0\n[population]\nsize = 8\n", "s.toml:4:14: [population]"},
        {DATA "[features]\nextra = [\"a\",\"b\",\"c\",\"d\",\"e\"]\n",
         "s.toml:4:9: the state would have 65 columns"},
        {DATA "[env]\nspread_ticks = 1\n[instrument]\ntick_size = 0\n",
         "s.toml:4:16: env.spread_ticks needs"},
        {DATA "[coordinator]\nheartbeat_timeout = \"6s\"\n",
         "s.toml:4:21: coordinator.heartbeat_timeout must be"},
        {DATA "[agent]\nepochs = 3\n", "agent.eval_every is above agent.epochs"},
        {DATA "[study]\ndeterministic = true\n[pruner]\nkind = \"asha\"\npromote = true\n",
         "leave out one of the two"},
        {DATA "[dqn]\nlearn_start = 300_000\n", "more than dqn.replay_capacity = 262144 holds"},
        {DATA "[env]\nepisodes = 1\nepisode_length = 16\n[agent]\nepochs = 10\n",
         "collect 160; no agent would ever learn"},
        {DATA "[pruner]\nlower = 2\nupper = 1\n", "s.toml:4:9: pruner.lower lies above"},
        {DATA "[[warm_start]]\nstudy = \"x\"\n", "s.toml:3:1: [[warm_start]] needs database"},
        {DATA "[[warm_start]]\ndatabase = \"x\"\nbset = 3\n", "s.toml:5:1: unknown key \"bset\""},
        {DATA "[warm_start]\ndatabase = \"x\"\n", "write [[warm_start]]"},
        {"[a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s]\n", "s.toml:1:35: a key of more than 16 parts"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ho_err err;
        ho_study *study = NULL;
        ho_status rc =
            ho_study_parse(cases[i].text, strlen(cases[i].text), "s.toml", ".", &study, &err);
        if (rc != HO_ECONFIG || study || !strstr(err.text, cases[i].part)) {
            fail_msg("%s\n gave %s \"%s\", want \"%s\"", cases[i].text, ho_status_name(rc),
                     rc ? err.text : "", cases[i].part);
        }
    }
}

static void a_malformed_search_names_the_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"\"dqn.gama\" = { float = [0.9, 0.99] }",
         "s.toml:4:1: unknown key \"dqn.gama\"; did you mean \"dqn.gamma\"?"},
        {"\"study.seed\" = { int = [1, 9] }", "s.toml:4:1: study.seed cannot be searched"},
        {"\"env.spread_bps\" = { float = [0, 2] }",
         "s.toml:4:1: env.spread_bps is a fact of the market"},
        {"\"dqn.gamma\" = 0.9", "s.toml:4:15: dqn.gamma wants { float"},
        {"\"dqn.gamma\" = { log = true }", "dqn.gamma has none of float, int and choice"},
        {"\"dqn.gamma\" = { floats = [0.9, 0.99] }",
         "s.toml:4:17: a parameter takes float, int, choice, log, step and when, not \"floats\"; "
         "did you mean \"float\"?"},
        {"\"dqn.gamma\" = { float = [0.9, 0.99], lgo = true }", "did you mean \"log\"?"},
        {"\"dqn.gamma\" = { float = [0.9, 0.99], choice = [0.9] }",
         "more than one of float, int and choice"},
        {"\"dqn.gamma\" = { float = [0.99, 0.9] }",
         "s.toml:4:25: the low bound is above the high one"},
        {"\"dqn.gamma\" = { float = [0.9, 0.9] }", "low and high are equal"},
        {"\"dqn.gamma\" = { float = [0.9] }", "float wants [low, high]"},
        {"\"dqn.gamma\" = { float = [0.9, \"1\"] }",
         "s.toml:4:31: a bound of float is a number, not a string"},
        {"\"dqn.gamma\" = { float = [0.9, inf] }", "s.toml:4:31: a bound must be finite"},
        {"\"dqn.gamma\" = { float = [0.9, nan] }", "a bound must be finite"},
        {"\"dqn.gamma\" = { float = [0.9, 2.0] }",
         "s.toml:4:31: dqn.gamma is a number from 0 to 0.999999, not 2"},
        {"\"dqn.n_step\" = { float = [1, 8] }", "dqn.n_step is a whole number: write int"},
        {"\"dqn.n_step\" = { int = [1, 8.0] }", "a bound of int is a whole number, not a float"},
        {"\"dqn.n_step\" = { int = [0, 8] }", "s.toml:4:25: dqn.n_step is a whole number from 1"},
        {"\"dqn.n_step\" = { int = [1, 9223372036854775807] }", "a bound must lie within 2^53"},
        {"\"dqn.double\" = { float = [0, 1] }", "dqn.double is true or false"},
        {"\"dqn.weight_decay\" = { float = [0, 1e-3], log = true }",
         "log = true needs a low bound above 0"},
        {"\"dqn.weight_decay\" = { float = [-1, 1] }", "dqn.weight_decay is a number from 0"},
        {"\"dqn.tau\" = { float = [0.1, 0.2], log = true, step = 0.1 }",
         "log and step exclude one another"},
        {"\"dqn.tau\" = { float = [0.1, 0.2], step = 0 }", "a step is above 0"},
        {"\"dqn.tau\" = { float = [0.1, 0.2], step = -0.1 }", "a step is above 0"},
        {"\"dqn.tau\" = { float = [0.1, 0.2], step = 0.3 }", "the step is larger than the range"},
        {"\"dqn.n_step\" = { int = [1, 8], step = 0.5 }",
         "the step of int is a whole number, not a float"},
        {"\"dqn.tau\" = { float = [0.1, 0.2], log = 1 }", "log is true or false, not an integer"},
        {"\"dqn.tau\" = { choice = [] }", "choice wants a list of at least one value"},
        {"\"dqn.tau\" = { choice = [0.1, 0.2, 0.1] }",
         "s.toml:4:35: this choice stands in the list twice"},
        {"\"dqn.tau\" = { choice = [0.1,\n nan] }", "s.toml:5:2: nan cannot be a choice"},
        {"\"dqn.tau\" = { choice = [0.1,\n inf] }", "s.toml:5:2: inf cannot be a choice"},
        {"\"dqn.tau\" = { choice = [0.1, \"x\"] }",
         "s.toml:4:30: dqn.tau wants a number, not a string"},
        {"\"dqn.tau\" = { choice = [0.1, [1]] }",
         "a choice is a number, a string or a boolean, not an array"},
        {"\"dqn.replay\" = { choice = [\"uniform\", \"pre\"] }",
         "dqn.replay is one of uniform|per|per_rank"},
        {"\"dqn.tau\" = { choice = [0.1, 0.2], log = true }",
         "log and step have no meaning for a choice"},
        {"\"dqn.tau\" = { float = [0.1, 0.2], when = 3 }", "when wants { \"key\" = value }"},
        {"\"dqn.tau\" = { float = [0.1, 0.2], when = { \"dqn.replai\" = \"per\" } }",
         "\"dqn.replai\" is neither searched nor a setting"},
        {"\"dqn.tau\" = { float = [0.1, 0.2], when = { \"dqn.replay\" = \"per\" } }",
         "this `when` can never hold: dqn.replay is \"uniform\" and not searched"},
        {"\"dqn.tau\" = { float = [0.1, 0.2], when = { \"dqn.tau\" = 0.1 } }",
         "`when` needs a choice, and dqn.tau is a range"},
        {"\"dqn.replay\" = { choice = [\"uniform\", \"per\"], when = { \"dqn.replay\" = \"per\" } "
         "}",
         "dqn.replay cannot depend on itself"},
        {"\"dqn.replay\" = { choice = [\"uniform\", \"per\"] }\n\"dqn.tau\" = { float = [0.1, "
         "0.2], when = { \"dqn.replay\" = \"per_rank\" } }",
         "s.toml:5:59: this `when` can never hold: per_rank (a string) is no choice"},
        {"\"dqn.replay\" = { choice = [\"uniform\", \"per\"] }\n\"dqn.tau\" = { float = [0.1, "
         "0.2], when = { \"dqn.replay\" = [] } }",
         "can never hold: the list is empty"},
        {"\"dqn.double\" = { choice = [true, false], when = { \"dqn.noisy\" = true } "
         "}\n\"dqn.noisy\" = { choice = [true, false], when = { \"dqn.double\" = true } }",
         "s.toml:4:1: the conditions of dqn.double go round in a circle"},
        {"\"dqn.noisy\" = { choice = [true, false] }\n\"dqn.double\" = { choice = [true, false], "
         "when = { \"dqn.noisy\" = true } }\n\"dqn.tau\" = { float = [0.1, 0.2], when = { "
         "\"dqn.double\" = true, \"dqn.noisy\" = false } }",
         "s.toml:6:1: the `when` of dqn.tau can never hold: its conditions on dqn.noisy exclude"},
        {"\"ppo.clip\" = { float = [0.1, 0.2] }",
         "s.toml:4:1: ppo.clip is searched, but agent.algorithm is \"dqn\""},
        {"require = \"dqn.n_step > 3\"", "s.toml:4:11: \"dqn.n_step > 3\" names no parameter"},
        {"require = 3", "s.toml:4:11: require wants a string"},
        {"\"dqn.n_step\" = { int = [1, 8] }\nrequire = [\"dqn.n_step >\"]",
         "s.toml:5:12: \"dqn.n_step >\", character 13: something is missing"},
        {"\"dqn.n_step\" = { int = [1, 8] }\n[dqn]\nn_step = 4",
         "s.toml:4:1: dqn.n_step is set in line 6 and searched here"},
        {"\"dqn.n_step\" = { int = [1, 8] }\n[search.dqn]\nn_step = { int = [1, 8] }",
         "dqn.n_step is searched twice"},
        {"\"dqn.n_step\" = { int = [1, 8] }\n[[enqueue]]\n\"dqn.n_step\" = 9",
         "s.toml:6:16: dqn.n_step is 1 to 8, not 9"},
        {"\"dqn.n_step\" = { int = [1, 8], step = 2 }\n[[enqueue]]\n\"dqn.n_step\" = 2",
         "dqn.n_step goes from 1 to 7 in steps of 2, which leave out 2"},
        {"\"dqn.n_step\" = { int = [1, 8] }\n[[enqueue]]\n\"dqn.n_step\" = 2.0",
         "dqn.n_step wants a whole number, not a float"},
        {"\"dqn.n_step\" = { int = [1, 8] }\n[[enqueue]]\n\"dqn.gamma\" = 0.9",
         "s.toml:6:1: \"dqn.gamma\" is not searched"},
        {"\"dqn.n_step\" = { int = [1, 8] }\n[enqueue]\n\"dqn.n_step\" = 2", "write [[enqueue]]"},
        {"\"dqn.replay\" = { choice = [\"uniform\", \"per\"] }\n[[enqueue]]\n\"dqn.replay\" = "
         "\"per_rank\"",
         "per_rank (a string) is no choice of dqn.replay"},
        {"\"dqn.n_step\" = { int = [1, 8] }\nrequire = \"dqn.n_step > "
         "3\"\n[[enqueue]]\n\"dqn.n_step\" = 2",
         "s.toml:6:1: the requirement \"dqn.n_step > 3\" does not hold"},
        {"\"dqn.tau\" = { float = [0.1, 0.2] }\n[sampler]\nkind = \"grid\"",
         "s.toml:4:1: sampler.kind = \"grid\" needs a finite space"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        ho_err err;
        ho_study *study = NULL;
        (void)snprintf(text, sizeof text, DATA "[search]\n%s\n", cases[i].text);
        ho_status rc = ho_study_parse(text, strlen(text), "s.toml", ".", &study, &err);
        if (rc != HO_ECONFIG || study || !strstr(err.text, cases[i].part)) {
            fail_msg("%s\n gave %s \"%s\", want \"%s\"", text, ho_status_name(rc),
                     rc ? err.text : "", cases[i].part);
        }
    }
}

static void facts_are_searched_only_when_allowed(void **state)
{
    (void)state;
    ho_study *s = parse(DATA "[search]\nallow_searching_facts = true\n"
                             "\"env.spread_bps\" = { float = [0, 2] }\n");
    assert_int_equal(s->space.count, 1);
    ho_study_free(&s);
    s = parse(DATA "[study]\nallow_searching_facts = true\n[search.env.fee_bps]\n"
                   "taker = { float = [0, 2] }\n");
    assert_string_equal(s->space.param[0].name, "env.fee_bps.taker");
    ho_study_free(&s);
}

static void choices_of_mixed_types_are_kept_apart(void **state)
{
    (void)state;
    ho_err err;
    char text[64];
    double value = -1;
    ho_study *s = parse("[command]\nrun = [\"./t\", \"{x}\"]\ndirection = [\"minimize\"]\n"
                        "[study]\nobjective = [\"loss\"]\n"
                        "[search]\nx = { choice = [1, \"1\", 1.0, true, \"true\", \"\"] }\n");
    const ho_param *x = &s->space.param[0];
    static const char *const printed[] = {"1", "\"1\"", "1.0", "true", "\"true\"", "\"\""};
    assert_int_equal(x->choice_count, 6);
    assert_int_equal(x->key, -1);
    for (int i = 0; i < 6; i++) {
        ho_param_print(x, i, text, sizeof text);
        assert_string_equal(text, printed[i]);
        CHECK_OK(ho_param_parse(x, printed[i], &value, &err), &err);
        CHECK_NEAR(value, i, 0);
    }
    assert_int_equal(s->objective[0].metric, -1);
    assert_int_equal(s->objective[0].direction, -1);
    ho_study_free(&s);
}

static void a_command_study_checks_its_placeholders(void **state)
{
    (void)state;
    ho_err err;
    ho_study *s = NULL;
    const char *bad = "[command]\nrun = [\"./t\", \"--lr\", \"{lr}\"]\ndirection = [\"maximize\"]\n"
                      "[search]\nlrr = { float = [0, 1] }\n";
    CHECK_STATUS(ho_study_parse(bad, strlen(bad), "s.toml", ".", &s, &err), HO_ECONFIG);
    CHECK_CONTAINS(err.text, "s.toml:2:7: command.run names {lr}");
    s = parse("[command]\nrun = [\"./t\", '{\"json\": 1}', \"{lr}\"]\ndirection = [\"maximize\"]\n"
              "[search]\nlr = { float = [0, 1] }\nunused = { int = [1, 2] }\n");
    assert_int_equal(s->warning_count, 1);
    CHECK_CONTAINS(s->warning[0], "s.toml:6:1: unused is searched");
    ho_study_free(&s);
    bad = "[command]\nrun = [\"./t\"]\n";
    CHECK_STATUS(ho_study_parse(bad, strlen(bad), "s.toml", ".", &s, &err), HO_ECONFIG);
    CHECK_CONTAINS(err.text, "command.direction");
}

static void a_condition_on_a_fixed_key_that_holds_is_no_condition(void **state)
{
    (void)state;
    ho_study *s = parse(DATA "[dqn]\nreplay = \"per\"\n[search]\n"
                             "\"dqn.per_alpha\" = { float = [0, 1], "
                             "when = { dqn.replay = [\"per\", \"per_rank\"] } }\n");
    assert_int_equal(s->space.param[0].when_count, 0);
    ho_study_free(&s);
}

static void requirements_are_evaluated_before_a_trial(void **state)
{
    (void)state;
    ho_err err;
    ho_study *s = parse(
        DATA
        "[study]\nrequire = \"dqn.batch * 2 <= dqn.replay_capacity\"\n[search]\n"
        "require = [\"agent.hidden1 >= agent.hidden2 and not agent.head > 2 * agent.hidden2\", "
        "\"agent.algorithm == 'dqn' or ppo.minibatch <= 512\"]\n"
        "\"agent.algorithm\" = { choice = [\"dqn\", \"ppo\"] }\n"
        "\"agent.hidden1\" = { int = [16, 512], log = true }\n"
        "\"agent.hidden2\" = { int = [16, 512], log = true }\n"
        "\"dqn.replay_capacity\" = { int = [64, 4096] }\n"
        "\"ppo.minibatch\" = { int = [64, 4096] }\n");
    assert_int_equal(ho_require_count(s->space.require), 3);
    int alg = ho_space_find(&s->space, "agent.algorithm"),
        h1 = ho_space_find(&s->space, "agent.hidden1"),
        h2 = ho_space_find(&s->space, "agent.hidden2"),
        cap = ho_space_find(&s->space, "dqn.replay_capacity"),
        mini = ho_space_find(&s->space, "ppo.minibatch");
    double config[5];
    config[alg] = 0;
    config[h1] = 256;
    config[h2] = 128;
    config[cap] = 1024;
    config[mini] = NAN;
    CHECK_OK(ho_space_check(&s->space, config, &err), &err);
    config[cap] = 1023;
    CHECK_STATUS(ho_space_check(&s->space, config, &err), HO_EINVAL);
    CHECK_CONTAINS(err.text, "dqn.batch * 2 <= dqn.replay_capacity");
    config[cap] = 1024;
    config[h2] = 300;
    CHECK_STATUS(ho_space_check(&s->space, config, &err), HO_EINVAL);
    config[h2] = 60; /* head is 128 > 120 */
    CHECK_STATUS(ho_space_check(&s->space, config, &err), HO_EINVAL);
    config[h2] = 128;
    config[alg] = 1;
    config[cap] = NAN; /* inactive: its requirement binds nothing */
    config[mini] = 513;
    CHECK_STATUS(ho_space_check(&s->space, config, &err), HO_EINVAL);
    config[mini] = 512;
    CHECK_OK(ho_space_check(&s->space, config, &err), &err);
    ho_study_free(&s);
}

static void a_bad_requirement_names_the_character(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "something is missing"},
        {"x", "compares nothing"},
        {"x + 1", "compares nothing"},
        {"x > ", "something is missing"},
        {"x > 1 2", "character 7: the requirement should end here"},
        {"x > 1 > 0", "should end here"},
        {"(x > 1", "\")\" is missing"},
        {"x > 1x", "this is no number"},
        {"x > 1e999", "this is no number"},
        {"y > 1", "\"y\" is neither a parameter nor a setting"},
        {"x > dqn.gama", "did you mean \"dqn.gamma\"?"},
        {"x > data.path", "no fixed value"},
        {"x > workers.gpus", "neither a number nor a text"},
        {"x == 'a", "this quote is not closed"},
        {"x > $", "a number, a name or"},
        {"x > dqn.v_max", "no fixed value"},
        {"((((((((((((((((((((((((((((((((((x > 1))))))))))))))))))))))))))))))))))",
         "nested too deeply"},
        {"not not not not not not not not not not not not not not not not not not not not not not "
         "not "
         "not not not not not not not not not not not x",
         "nested too deeply"},
        {"x > ----------------------------------------1", "nested too deeply"},
    };
    ho_study *s = parse("[command]\nrun = [\"t\", \"{x}\"]\ndirection = [\"maximize\"]\n"
                        "[search]\nx = { int = [1, 8] }\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ho_err err;
        ho_status rc = ho_require_add(&s->space, s->settings, cases[i].text, &err);
        if (rc != HO_EINVAL || !strstr(err.text, cases[i].part)) {
            fail_msg("\"%s\" gave %s \"%s\", want \"%s\"", cases[i].text, ho_status_name(rc),
                     rc ? err.text : "", cases[i].part);
        }
    }
    char long_text[4000] = "x";
    while (strlen(long_text) < 3900) {
        (void)snprintf(long_text + strlen(long_text), 20, " + x");
    }
    ho_err err;
    CHECK_STATUS(ho_require_add(&s->space, s->settings, long_text, &err), HO_EINVAL);
    assert_int_equal(ho_require_count(s->space.require), 0);
    ho_study_free(&s);
}

static void a_file_gives_the_name_and_the_folder(void **state)
{
    (void)state;
    ho_err err;
    char path[128];
    ho_study *s = NULL;
    (void)mkdir("sub", 0700);
    FILE *file = fopen("sub/my.study.toml", "w");
    assert_non_null(file);
    (void)fputs(DATA, file);
    (void)fclose(file);
    CHECK_OK(ho_study_load("sub/my.study.toml", &s, &err), &err);
    assert_string_equal(s->name, "my.study");
    assert_string_equal(s->folder, "sub");
    CHECK_OK(ho_study_path(s, "a.csv", path, sizeof path, &err), &err);
    assert_string_equal(path, "sub/a.csv");
    CHECK_OK(ho_study_path(s, "/d/a.csv", path, sizeof path, &err), &err);
    assert_string_equal(path, "/d/a.csv");
    CHECK_STATUS(ho_study_path(s, "a.csv", path, 5, &err), HO_EINVAL);
    ho_study_free(&s);
    CHECK_STATUS(ho_study_load("no/such.toml", &s, &err), HO_EIO);
    CHECK_CONTAINS(err.text, "no/such.toml: No such file");
    CHECK_STATUS(ho_study_load("sub", &s, &err), HO_EIO);
    assert_null(s);
}

/* marzer/tomlplusplus 190, 295: its tables ran into unreachable code. */
static void letters_beyond_ascii_are_text_or_an_error(void **state)
{
    (void)state;
    ho_err err;
    ho_study *s = parse("# \xc3\xa4\xc2\xa7\n" DATA "[study]\nname = \"\"\"\\\n\xc2\xa7\"\"\"\n");
    assert_string_equal(s->name, "\xc2\xa7");
    ho_study_free(&s);
    static const char *const bad[] = {"\xcc\xaa", "n.\xcc\xaa = 1", "[\xc3\xa4]\n", "a = \xc2\xa7"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_STATUS(ho_study_parse(bad[i], strlen(bad[i]), "s.toml", ".", &s, &err), HO_ECONFIG);
        CHECK_CONTAINS(err.text, "s.toml:1:");
    }
}

static void a_huge_file_is_refused(void **state)
{
    (void)state;
    ho_err err;
    ho_study *s = NULL;
    size_t size = (512 << 10) + 1;
    char *text = (char *)malloc(size);
    memset(text, ' ', size);
    CHECK_STATUS(ho_study_parse(text, size, "s.toml", ".", &s, &err), HO_ECONFIG);
    CHECK_CONTAINS(err.text, "at most");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_whole_example_is_read),
        cmocka_unit_test(a_trial_has_the_settings_of_its_configuration),
        cmocka_unit_test(a_malformed_study_names_the_place),
        cmocka_unit_test(a_malformed_search_names_the_place),
        cmocka_unit_test(facts_are_searched_only_when_allowed),
        cmocka_unit_test(choices_of_mixed_types_are_kept_apart),
        cmocka_unit_test(a_command_study_checks_its_placeholders),
        cmocka_unit_test(a_condition_on_a_fixed_key_that_holds_is_no_condition),
        cmocka_unit_test(requirements_are_evaluated_before_a_trial),
        cmocka_unit_test(a_bad_requirement_names_the_character),
        cmocka_unit_test(a_file_gives_the_name_and_the_folder),
        cmocka_unit_test(letters_beyond_ascii_are_text_or_an_error),
        cmocka_unit_test(a_huge_file_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
