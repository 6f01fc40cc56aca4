/* SPDX-License-Identifier: Apache-2.0
 * Objectives and constraints of a study file, and what its keys must satisfy together. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "kernels/shapes.h"
#include "study/study_internal.h"
#include "study/text.h"

static ho_status read_direction(const ho_loader *l, int i, int *out)
{
    const ho_settings *s = l->study->settings;
    *out = 1;
    if (i >= ho_settings_list_count(s, HO_KEY_COMMAND_DIRECTION)) {
        return ho_loader_at_setting(l, HO_KEY_STUDY_OBJECTIVE,
                                    "command.direction needs one of maximize and minimize for each "
                                    "objective");
    }
    const char *text = ho_settings_list_str(s, HO_KEY_COMMAND_DIRECTION, i);
    if (strcmp(text, "maximize") != 0 && strcmp(text, "minimize") != 0) {
        return ho_loader_at_setting(l, HO_KEY_COMMAND_DIRECTION,
                                    "command.direction is maximize or minimize, not %s", text);
    }
    *out = text[1] == 'a' ? 1 : -1;
    return HO_OK;
}

static ho_status read_objectives(ho_loader *l)
{
    ho_study *study = l->study;
    const ho_settings *s = study->settings;
    study->objective_count = ho_settings_list_count(s, HO_KEY_STUDY_OBJECTIVE);
    for (int i = 0; i < study->objective_count; i++) {
        const char *name = ho_settings_list_str(s, HO_KEY_STUDY_OBJECTIVE, i);
        ho_objective *out = &study->objective[i];
        ho_status rc = HO_OK;
        if (!study->command) {
            rc = ho_objective_parse(name, out, l->err);
        } else if (strlen(name) >= sizeof out->name || name[0] == '\0') {
            rc = ho_err_set(l->err, HO_EINVAL, "an objective's name has 1 to %zu characters",
                            sizeof out->name - 1);
        } else {
            (void)snprintf(out->name, sizeof out->name, "%s", name);
            out->metric = -1;
            rc = read_direction(l, i, &out->direction);
            if (rc != HO_OK) {
                return rc;
            }
        }
        if (rc != HO_OK) {
            char text[HO_ERR_TEXT];
            (void)snprintf(text, sizeof text, "%s", l->err->text);
            return ho_loader_at_setting(l, HO_KEY_STUDY_OBJECTIVE, "%s", text);
        }
        for (int k = 0; k < i; k++) {
            if (strcmp(study->objective[k].name, name) == 0) {
                return ho_loader_at_setting(l, HO_KEY_STUDY_OBJECTIVE,
                                            "the objective %s stands in the list twice", name);
            }
        }
    }
    return HO_OK;
}

static ho_status read_constraints(ho_loader *l)
{
    ho_study *study = l->study;
    const ho_settings *s = study->settings;
    study->constraint_count = ho_settings_list_count(s, HO_KEY_STUDY_CONSTRAINTS);
    if (study->command && study->constraint_count > 0) {
        return ho_loader_at_setting(l, HO_KEY_STUDY_CONSTRAINTS,
                                    "constraints are on the backtest's metrics, which a [command] "
                                    "study does not have");
    }
    for (int i = 0; i < study->constraint_count; i++) {
        const char *written = ho_settings_list_str(s, HO_KEY_STUDY_CONSTRAINTS, i);
        if (ho_constraint_parse(written, &study->constraint[i], l->err) != HO_OK) {
            char text[HO_ERR_TEXT];
            (void)snprintf(text, sizeof text, "%s", l->err->text);
            return ho_loader_at_setting(l, HO_KEY_STUDY_CONSTRAINTS, "%s", text);
        }
    }
    return HO_OK;
}

/* Whether a choice parameter or the setting itself can have this text as its value. */
static bool can_be(const ho_study *study, ho_key key, const char *text)
{
    for (int i = 0; i < study->space.count; i++) {
        const ho_param *param = &study->space.param[i];
        if (param->key != (int)key) {
            continue;
        }
        for (int c = 0; c < param->choice_count; c++) {
            if (strcmp(param->choice[c].text, text) == 0) {
                return true;
            }
        }
        return false;
    }
    return strcmp(ho_settings_str(study->settings, key), text) == 0;
}

static ho_status check_data(ho_loader *l)
{
    const ho_settings *s = l->study->settings;
    if (!ho_settings_has(s, HO_KEY_DATA_PATH)) {
        return ho_loader_at_setting(l, HO_KEY_DATA_PATH,
                                    "data.path is missing: write [data] and path = \"FILE.csv\"");
    }
    if (ho_settings_has(s, HO_KEY_DATA_START) && ho_settings_has(s, HO_KEY_DATA_END)) {
        const char *start = ho_settings_str(s, HO_KEY_DATA_START);
        const char *end = ho_settings_str(s, HO_KEY_DATA_END);
        if (strncmp(start, end, 10) > 0) {
            return ho_loader_at_setting(l, HO_KEY_DATA_END,
                                        "data.end (%s) lies before data.start (%s)", end, start);
        }
    }
    int use = ho_settings_list_count(s, HO_KEY_FEATURES_USE);
    int columns = (use ? use : HO_MARKET_FEATURES) +
                  ho_settings_list_count(s, HO_KEY_FEATURES_EXTRA) + HO_PORTFOLIO_FEATURES;
    if (columns > 64) {
        return ho_loader_at_setting(l, HO_KEY_FEATURES_EXTRA,
                                    "the state would have %d columns, at most 64 are possible: "
                                    "list fewer in features.extra or features.use",
                                    columns);
    }
    if (ho_settings_f64(s, HO_KEY_ENV_SPREAD_TICKS) > 0 &&
        ho_settings_is_set(s, HO_KEY_INSTRUMENT_TICK_SIZE) &&
        ho_settings_f64(s, HO_KEY_INSTRUMENT_TICK_SIZE) == 0) {
        return ho_loader_at_setting(l, HO_KEY_ENV_SPREAD_TICKS,
                                    "env.spread_ticks needs instrument.tick_size above 0");
    }
    return HO_OK;
}

static ho_status check_validation(ho_loader *l)
{
    const ho_study *study = l->study;
    const ho_settings *s = study->settings;
    if (ho_settings_span(s, HO_KEY_FOLDS_VALIDATION).amount > 0) {
        return HO_OK;
    }
    if (can_be(study, HO_KEY_AGENT_SELECT, "best_validation")) {
        return ho_loader_at_setting(l, HO_KEY_FOLDS_VALIDATION,
                                    "agent.select = \"best_validation\" needs a validation window: "
                                    "set folds.validation");
    }
    if (ho_settings_i64(s, HO_KEY_POPULATION_SIZE) > 0) {
        return ho_loader_at_setting(l, HO_KEY_FOLDS_VALIDATION,
                                    "[population] compares agents on the validation window: set "
                                    "folds.validation");
    }
    if (!ho_settings_bool(s, HO_KEY_FOLDS_PRUNE_ON_TEST) &&
        strcmp(ho_settings_str(s, HO_KEY_PRUNER_KIND), "none") != 0 &&
        ho_settings_is_set(s, HO_KEY_PRUNER_KIND)) {
        int line = 0, column = 0;
        ho_settings_place(s, HO_KEY_PRUNER_KIND, &line, &column);
        return ho_loader_warn(l, line, column,
                              "no trial will be pruned: folds.validation is 0 and "
                              "folds.prune_on_test is false");
    }
    return HO_OK;
}

/* Metrics of a joined series that need its bars and trades: those of raced folds are not at hand
 * together (study/objective.h, ho_stitch). */
static bool needs_whole_series(int metric)
{
    return metric == HO_METRIC_BAR_SHARPE || metric == HO_METRIC_PROFIT_FACTOR ||
           metric == HO_METRIC_PAYOFF || metric == HO_METRIC_EXPECTANCY || metric == HO_METRIC_SQN;
}

/* Folds after which the signed-rank test can say anything below p. */
static int64_t folds_to_speak(double p)
{
    int64_t n = 1;
    while (n < HO_FOLDS_MAX && !(ldexp(1.0, (int)-n) < p)) {
        n++;
    }
    return n;
}

static ho_status check_race(ho_loader *l)
{
    const ho_study *study = l->study;
    const ho_settings *s = study->settings;
    int64_t at_a_time = ho_settings_i64(s, HO_KEY_STUDY_RACE_FOLDS);
    int64_t folds = ho_settings_i64(s, HO_KEY_FOLDS_COUNT);
    double p = ho_settings_f64(s, HO_KEY_PRUNER_P_THRESHOLD);
    const char *why = NULL;

    if (at_a_time == 0) {
        return HO_OK;
    }
    if (study->command) {
        why = "a [command] study has no folds";
    } else if (can_be(study, HO_KEY_FOLDS_REFIT, "once")) {
        why = "with folds.refit = \"once\" one agent serves all folds, nothing is saved";
    } else if (ho_settings_i64(s, HO_KEY_POPULATION_SIZE) > 0) {
        why = "the members of a [population] train on the same folds";
    } else if (study->objective_count > 1) {
        why = "folds are raced for one objective";
    } else if (!(p > 0.0 && p < 1.0)) {
        why = "it drops below pruner.p_threshold, which must lie between 0 and 1";
    }
    if (why) {
        return ho_loader_at_setting(l, HO_KEY_STUDY_RACE_FOLDS, "study.race_folds: %s", why);
    }
    if (at_a_time >= folds) {
        return ho_loader_at_setting(l, HO_KEY_STUDY_RACE_FOLDS,
                                    "study.race_folds must be below folds.count (%lld)",
                                    (long long)folds);
    }
    bool joined = ho_settings_choice(s, HO_KEY_STUDY_AGGREGATE) == HO_AGGREGATE_STITCHED;
    for (int i = 0; i < study->objective_count + study->constraint_count; i++) {
        int c = i - study->objective_count;
        int metric = c < 0 ? study->objective[i].metric : study->constraint[c].metric;
        if ((joined || c >= 0) && needs_whole_series(metric)) {
            return ho_loader_at_setting(
                l, HO_KEY_STUDY_RACE_FOLDS,
                "study.race_folds: %s of the joined series is not known where folds are raced; "
                "take another metric%s",
                c < 0 ? study->objective[i].name : study->constraint[c].text,
                c < 0 ? ", or aggregate = \"mean\"" : "");
        }
    }
    int64_t last_verdict = (folds - 1) / at_a_time * at_a_time;
    if (last_verdict < folds_to_speak(p)) {
        int line = 0, column = 0;
        ho_settings_place(s, HO_KEY_STUDY_RACE_FOLDS, &line, &column);
        return ho_loader_warn(l, line, column,
                              "no trial will be dropped: after %lld of %lld folds the test cannot "
                              "get below pruner.p_threshold = %g, which takes %lld folds",
                              (long long)last_verdict, (long long)folds, p,
                              (long long)folds_to_speak(p));
    }
    return HO_OK;
}

static ho_status check_search(ho_loader *l)
{
    const ho_study *study = l->study;
    const ho_settings *s = study->settings;
    int64_t trials = ho_settings_i64(s, HO_KEY_STUDY_TRIALS);
    if (ho_settings_bool(s, HO_KEY_STUDY_DETERMINISTIC) &&
        can_be(study, HO_KEY_DQN_BATCH, "auto")) {
        return ho_loader_at_setting(l, HO_KEY_STUDY_DETERMINISTIC,
                                    "dqn.batch = \"auto\" is measured, so it cannot be part of a "
                                    "deterministic study: write a number");
    }
    if (ho_settings_bool(s, HO_KEY_STUDY_DETERMINISTIC) &&
        ho_settings_bool(s, HO_KEY_PRUNER_PROMOTE)) {
        return ho_loader_at_setting(l, HO_KEY_PRUNER_PROMOTE,
                                    "pruner.promote: a paused trial waits for later ones, for "
                                    "which a deterministic study waits until it has ended: leave "
                                    "out one of the two");
    }
    if (strcmp(ho_settings_str(s, HO_KEY_SAMPLER_KIND), "grid") == 0) {
        for (int i = 0; i < study->space.count; i++) {
            const ho_param *param = &study->space.param[i];
            if (ho_param_cardinality(param) == 0) {
                return ho_err_set(l->err, HO_ECONFIG,
                                  "%s:%d:%d: sampler.kind = \"grid\" needs a finite space: give %s "
                                  "a step, or list its values as choice",
                                  study->source, param->line, param->column, param->name);
            }
        }
    }
    ho_status rc = check_race(l);
    if (rc != HO_OK) {
        return rc;
    }
    if (ho_settings_has(s, HO_KEY_PRUNER_LOWER) && ho_settings_has(s, HO_KEY_PRUNER_UPPER) &&
        ho_settings_f64(s, HO_KEY_PRUNER_LOWER) > ho_settings_f64(s, HO_KEY_PRUNER_UPPER)) {
        return ho_loader_at_setting(l, HO_KEY_PRUNER_LOWER, "pruner.lower lies above pruner.upper");
    }
    if (study->enqueue_count > trials) {
        int line = 0, column = 0;
        ho_settings_place(s, HO_KEY_STUDY_TRIALS, &line, &column);
        return ho_loader_warn(l, line, column,
                              "%d configurations are enqueued, but study.trials is %lld",
                              study->enqueue_count, (long long)trials);
    }
    return HO_OK;
}

static ho_status check_process(ho_loader *l)
{
    const ho_settings *s = l->study->settings;
    double interval = ho_settings_f64(s, HO_KEY_COORDINATOR_HEARTBEAT_INTERVAL);
    double timeout = ho_settings_f64(s, HO_KEY_COORDINATOR_HEARTBEAT_TIMEOUT);
    if (timeout < 2 * interval) {
        return ho_loader_at_setting(l, HO_KEY_COORDINATOR_HEARTBEAT_TIMEOUT,
                                    "coordinator.heartbeat_timeout must be at least twice "
                                    "coordinator.heartbeat_interval (%s)",
                                    ho_settings_str(s, HO_KEY_COORDINATOR_HEARTBEAT_INTERVAL));
    }
    if (ho_settings_i64(s, HO_KEY_AGENT_EVAL_EVERY) > ho_settings_i64(s, HO_KEY_AGENT_EPOCHS) &&
        ho_space_find(&l->study->space, "agent.epochs") < 0) {
        return ho_loader_at_setting(l, HO_KEY_AGENT_EVAL_EVERY,
                                    "agent.eval_every is above agent.epochs: nothing would ever be "
                                    "reported");
    }
    return HO_OK;
}

/* Every {name} of the command is a parameter; a parameter that no argument names does nothing. */
static ho_status check_command(ho_loader *l)
{
    const ho_study *study = l->study;
    const ho_settings *s = study->settings;
    bool used[1024] = {false};
    for (int i = 0; i < ho_settings_list_count(s, HO_KEY_COMMAND_RUN); i++) {
        const char *p = ho_settings_list_str(s, HO_KEY_COMMAND_RUN, i);
        while ((p = strchr(p, '{')) != NULL) {
            char name[HO_PARAM_NAME_MAX];
            size_t n = 0;
            p++;
            while (isalnum((unsigned char)p[n]) || p[n] == '_' || p[n] == '.' || p[n] == '-') {
                n++;
            }
            if (p[n] != '}' || n == 0 || n >= sizeof name) {
                continue; /* a brace of the user's own */
            }
            (void)snprintf(name, sizeof name, "%.*s", (int)n, p);
            int param = ho_space_find(&study->space, name);
            if (param < 0) {
                return ho_loader_at_setting(l, HO_KEY_COMMAND_RUN,
                                            "command.run names {%s}, which [search] does not have",
                                            name);
            }
            used[param] = true;
        }
    }
    for (int i = 0; i < study->space.count; i++) {
        const ho_param *param = &study->space.param[i];
        ho_status rc = used[i] ? HO_OK
                               : ho_loader_warn(l, param->line, param->column,
                                                "%s is searched, but command.run does not use it",
                                                param->name);
        if (rc != HO_OK) {
            return rc;
        }
    }
    return HO_OK;
}

/* Keys that decide when a DQN agent begins to learn, and how much it collects. */
static const ho_key learning_keys[] = {HO_KEY_AGENT_ALGORITHM,   HO_KEY_DQN_LEARN_START,
                                       HO_KEY_DQN_BATCH,         HO_KEY_DQN_REPLAY_CAPACITY,
                                       HO_KEY_AGENT_EPOCHS,      HO_KEY_ENV_EPISODES,
                                       HO_KEY_ENV_EPISODE_LENGTH};

/* Agents that would never learn, where no trial's configuration could change that; otherwise each
 * trial is looked at (worker/lane_config.c). */
static ho_status check_learning(ho_loader *l)
{
    const ho_settings *s = l->study->settings;
    for (size_t i = 0; i < sizeof learning_keys / sizeof learning_keys[0]; i++) {
        if (ho_space_find(&l->study->space, ho_setting(learning_keys[i])->name) >= 0) {
            return HO_OK;
        }
    }
    if (strcmp(ho_settings_str(s, HO_KEY_AGENT_ALGORITHM), "dqn") != 0 ||
        ho_settings_is_auto(s, HO_KEY_DQN_BATCH)) {
        return HO_OK;
    }
    int64_t capacity = ho_settings_i64(s, HO_KEY_DQN_REPLAY_CAPACITY);
    int64_t start = 20 * ho_settings_i64(s, HO_KEY_DQN_BATCH);
    if (!ho_settings_is_auto(s, HO_KEY_DQN_LEARN_START)) {
        start = ho_settings_i64(s, HO_KEY_DQN_LEARN_START);
    } else if (start > capacity) {
        start = capacity;
    }
    int64_t collected = ho_settings_i64(s, HO_KEY_ENV_EPISODES) *
                        ho_settings_i64(s, HO_KEY_ENV_EPISODE_LENGTH) *
                        ho_settings_i64(s, HO_KEY_AGENT_EPOCHS);
    if (start > capacity) {
        return ho_loader_at_setting(l, HO_KEY_DQN_LEARN_START,
                                    "dqn.learn_start = %lld is more than dqn.replay_capacity = "
                                    "%lld holds; no agent would ever learn",
                                    (long long)start, (long long)capacity);
    }
    if (start > collected) {
        return ho_loader_at_setting(l, HO_KEY_DQN_LEARN_START,
                                    "learning begins after %lld transitions (dqn.learn_start, 20 "
                                    "batches by default), but agent.epochs x env.episodes x "
                                    "env.episode_length collect %lld; no agent would ever learn",
                                    (long long)start, (long long)collected);
    }
    return HO_OK;
}

/* What keys must satisfy together. */
static ho_status check_keys(ho_loader *l)
{
    ho_status rc = l->study->command ? HO_OK : check_data(l);
    rc = rc == HO_OK ? check_validation(l) : rc;
    rc = rc == HO_OK ? check_search(l) : rc;
    rc = rc == HO_OK ? check_process(l) : rc;
    if (rc == HO_OK) {
        rc = l->study->command ? check_command(l) : check_learning(l);
    }
    return rc;
}

ho_status ho_loader_check(ho_loader *l)
{
    ho_status rc = read_objectives(l);
    rc = rc == HO_OK ? read_constraints(l) : rc;
    return rc == HO_OK ? check_keys(l) : rc;
}

ho_status ho_study_check(ho_study *study, ho_err *err)
{
    ho_err scratch;
    ho_loader l = {study, err ? err : &scratch, NULL};
    return check_keys(&l);
}
