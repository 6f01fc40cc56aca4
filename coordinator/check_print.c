/* SPDX-License-Identifier: Apache-2.0
 * See check_print.h. */
#include "coordinator/check_print.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "coordinator/output.h"
#include "coordinator/search/racing.h"
#include "coordinator/search_options.h"
#include "kernels/agent_config.h"
#include "kernels/auto_batch.h"
#include "kernels/cpu/features.h"
#include "kernels/env/sizing.h"
#include "market/study_data.h"
#include "study/lane_memory.h"
#include "study/text.h"

enum { SHAPES_MANY = 4, CHOICES_SHOWN = 200 };

typedef struct printer {
    FILE *out;
    const ho_setup *setup;
    const ho_settings *s;
    int warnings;
    double sigma_ref; /* deviation of a bar's return on the capital at +1, first fold; 0: unknown */
} printer;

static void warn(printer *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void warn(printer *p, const char *format, ...)
{
    va_list args;
    (void)fprintf(p->out, "  warning: ");
    va_start(args, format);
    (void)vfprintf(p->out, format, args);
    va_end(args);
    (void)fprintf(p->out, "\n");
    p->warnings++;
}

static void stamp(int64_t ns, char *out, size_t room)
{
    time_t seconds = (time_t)(ns / 1000000000);
    struct tm utc;
    (void)gmtime_r(&seconds, &utc);
    (void)strftime(out, room, "%Y-%m-%d %H:%M", &utc);
}

/* ---- data ----------------------------------------------------------------------------------- */

static void print_data(printer *p)
{
    const ho_bars *bars = &p->setup->bars;
    const ho_data_report *r = &p->setup->report;
    char from[32], to[32];
    stamp(bars->open_ns[0], from, sizeof from);
    stamp(bars->open_ns[bars->count - 1], to, sizeof to);
    (void)fprintf(p->out, "Data\n");
    for (int i = 0; i < p->setup->file_count; i++) {
        (void)fprintf(p->out, "  file      %s\n", p->setup->file[i].path);
    }
    (void)fprintf(p->out, "  format    %s (%s); times %s\n", r->dialect, r->container,
                  r->time_form);
    (void)fprintf(p->out, "  bars      %lld of %g s, %s to %s UTC\n", (long long)bars->count,
                  (double)bars->interval_ns * 1e-9, from, to);
    (void)fprintf(p->out, "  sessions  %s; %g a year\n", r->session, bars->sessions_per_year);
    (void)fprintf(p->out, "  features  %d columns; the first %lld bars warm them up\n",
                  p->setup->columns, (long long)p->setup->warmup);
    for (int i = 0; i < HO_DIRT_COUNT; i++) {
        if (r->finding[i].count > 0 && ho_dirt_is_warning((ho_dirt)i)) {
            warn(p, "%lld %s, %lld dropped", (long long)r->finding[i].count,
                 ho_dirt_text((ho_dirt)i), (long long)r->finding[i].dropped);
        }
    }
    for (int i = 0; i < r->note_count; i++) {
        if (r->note[i].warning) {
            warn(p, "%s", r->note[i].text);
        } else {
            (void)fprintf(p->out, "  note      %s\n", r->note[i].text);
        }
    }
}

/* ---- folds ---------------------------------------------------------------------------------- */

static void print_window(printer *p, const char *name, ho_window w)
{
    const ho_bars *bars = &p->setup->bars;
    char from[32], to[32];
    if (w.end <= w.begin) {
        (void)fprintf(p->out, "    %-10s none\n", name);
        return;
    }
    stamp(bars->open_ns[w.begin], from, sizeof from);
    stamp(bars->open_ns[w.end - 1], to, sizeof to);
    (void)fprintf(p->out, "    %-10s [%lld, %lld)  %s to %s  %lld bars\n", name, (long long)w.begin,
                  (long long)w.end, from, to, (long long)(w.end - w.begin));
}

static void print_size(printer *p, const ho_fold *fold)
{
    const ho_bars *bars = &p->setup->bars;
    double close = bars->ohlcv[fold->train.begin * HO_BAR_COLUMNS + HO_CLOSE];
    ho_size size = {0};
    ho_err err = {0};
    ho_size_request request = {
        .capital = ho_settings_f64(p->s, HO_KEY_ENV_INITIAL_CAPITAL),
        .multiplier = ho_study_multiplier(p->s, bars),
        .lot = ho_settings_is_auto(p->s, HO_KEY_INSTRUMENT_LOT)
                   ? 0
                   : ho_settings_f64(p->s, HO_KEY_INSTRUMENT_LOT),
        .max_position = ho_settings_is_auto(p->s, HO_KEY_ENV_MAX_POSITION)
                            ? 0
                            : ho_settings_f64(p->s, HO_KEY_ENV_MAX_POSITION),
        .max_exposure = ho_settings_f64(p->s, HO_KEY_ENV_MAX_EXPOSURE),
    };
    if (ho_size_resolve(&request, close, &size, &err) != HO_OK) {
        warn(p, "%s", err.text);
        return;
    }
    (void)fprintf(
        p->out,
        "    %-10s %g units (%d lots of %g), %.6g money, %.3g x capital, at a close of %g\n",
        "size at +1", size.quantity, size.max_lots, size.lot, size.notional, size.leverage, close);
    if (p->sigma_ref == 0.0 &&
        ho_sigma_ref(bars->ohlcv, bars->roll_jump, bars->split, fold->train, size.quantity,
                     request.multiplier, request.capital, &p->sigma_ref, &err) != HO_OK) {
        warn(p, "%s", err.text);
    }
}

static void print_folds(printer *p)
{
    const ho_fold_plan *plan = &p->setup->folds;
    (void)fprintf(p->out, "\nFolds: %d, purge of %lld bars on each side of validation\n",
                  plan->count, (long long)plan->purge);
    for (int i = 0; i < plan->count; i++) {
        (void)fprintf(p->out, "  fold %d\n", i);
        print_window(p, "train", plan->fold[i].train);
        print_window(p, "validation", plan->fold[i].validation);
        print_window(p, "test", plan->fold[i].test);
        print_size(p, &plan->fold[i]);
    }
    print_window(p, "holdout", plan->holdout);
    if (plan->holdout.end <= plan->holdout.begin) {
        warn(p, "folds.holdout is empty: nothing is left to check the winner on");
    }
    if (plan->count > 0 && plan->fold[0].validation.end <= plan->fold[0].validation.begin) {
        warn(p, "folds.validation is empty: pruners and early stopping see nothing");
    }
}

/* ---- space ---------------------------------------------------------------------------------- */

static void print_param(printer *p, const ho_space *space, const ho_param *param)
{
    char value[CHOICES_SHOWN], low[HO_TEXT_NUMBER], high[HO_TEXT_NUMBER];
    (void)fprintf(p->out, "  %-28s ", param->name);
    if (param->kind == HO_PARAM_CHOICE) {
        for (int i = 0; i < param->choice_count; i++) {
            (void)ho_param_print(param, i, value, sizeof value);
            (void)fprintf(p->out, "%s%s", i ? " | " : "", value);
        }
    } else {
        (void)ho_text_number(param->low, low, sizeof low);
        (void)ho_text_number(param->high, high, sizeof high);
        (void)fprintf(p->out, "%s %s to %s", param->kind == HO_PARAM_INT ? "int" : "float", low,
                      high);
        if (param->step > 0.0 && !(param->kind == HO_PARAM_INT && param->step == 1.0)) {
            (void)fprintf(p->out, " by %g", param->step);
        }
        if (param->log) {
            (void)fprintf(p->out, ", log");
        }
    }
    for (int w = 0; w < param->when_count; w++) {
        const ho_param *parent = &space->param[param->when[w].param];
        (void)fprintf(p->out, "%s%s is", w ? " and " : "; when ", parent->name);
        const char *separator = " ";
        for (int c = 0; c < parent->choice_count && c < 64; c++) {
            if (param->when[w].mask >> c & 1) {
                (void)ho_param_print(parent, c, value, sizeof value);
                (void)fprintf(p->out, "%s%s", separator, value);
                separator = " or ";
            }
        }
    }
    (void)fprintf(p->out, "\n");
}

/* Settings that decide a cohort's shape (DESIGN.md, cohort key); trials of one shape share
 * launches. */
static bool is_shape(int key)
{
    static const ho_key keys[] = {
        HO_KEY_AGENT_ALGORITHM, HO_KEY_AGENT_HIDDEN1,       HO_KEY_AGENT_HIDDEN2,
        HO_KEY_AGENT_HEAD,      HO_KEY_AGENT_PRECISION,     HO_KEY_ENV_STATE,
        HO_KEY_ENV_ACTIONS,     HO_KEY_ENV_EPISODES,        HO_KEY_ENV_EPISODE_LENGTH,
        HO_KEY_DQN_DUELING,     HO_KEY_DQN_REPLAY_CAPACITY, HO_KEY_DQN_BATCH,
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if ((int)keys[i] == key) {
            return true;
        }
    }
    return false;
}

static void print_space(printer *p)
{
    const ho_space *space = &p->setup->study->space;
    double shapes = 1.0;
    (void)fprintf(p->out, "\nSearch space: %d parameters, sampler %s, pruner %s\n", space->count,
                  ho_settings_str(p->s, HO_KEY_SAMPLER_KIND),
                  ho_settings_str(p->s, HO_KEY_PRUNER_KIND));
    for (int i = 0; i < space->count; i++) {
        print_param(p, space, &space->param[i]);
        if (is_shape(space->param[i].key)) {
            int64_t n = ho_param_cardinality(&space->param[i]);
            shapes *= n > 0 ? (double)n : INFINITY;
        }
    }
    if (p->setup->study->enqueue_count > 0) {
        (void)fprintf(p->out, "  %d enqueued configurations are tried first\n",
                      p->setup->study->enqueue_count);
    }
    if (p->setup->study->command) {
        return;
    }
    (void)fprintf(p->out, "  network shapes: %s%.0f\n", space->count ? "at most " : "", shapes);
    if (shapes > SHAPES_MANY) {
        warn(p, "more than %d network shapes: only trials of one shape train side by side",
             SHAPES_MANY);
    }
}

/* ---- work and memory ------------------------------------------------------------------------ */

/* Which folds a trial runs when. */
static void print_race(printer *p)
{
    int order[HO_FOLDS_MAX], folds = p->setup->folds.count;
    int at_a_time = (int)ho_settings_i64(p->s, HO_KEY_STUDY_RACE_FOLDS);
    if (at_a_time == 0 || folds == 0) {
        return;
    }
    ho_race_order((uint64_t)ho_settings_i64(p->s, HO_KEY_STUDY_SEED), folds, order);
    (void)fprintf(p->out, "  racing      folds");
    for (int i = 0; i < folds; i++) {
        (void)fprintf(p->out, "%s%d", i == 0 ? " " : i % at_a_time == 0 ? " | " : ", ", order[i]);
    }
    (void)fprintf(p->out, "; dropped below p = %g against the best\n",
                  ho_settings_f64(p->s, HO_KEY_PRUNER_P_THRESHOLD));
}

/* What bf16 means on this machine when it computes without a GPU; the rates are bench_cpu's. */
static const char *bf16_here(void)
{
    return ho_cpu_has_avx512_bf16() ? "AVX512_BF16, about twice as fast as f32"
           : ho_cpu_has_avx512()    ? "by float32 instructions (no AVX512_BF16), no faster than f32"
           : ho_cpu_has_avx2()      ? "by float32 instructions (AVX2), half as fast as f32"
                                    : "in plain C, many times slower than f32";
}

static void print_precision(printer *p)
{
    const ho_space *space = &p->setup->study->space;
    bool bf16 = ho_settings_choice(p->s, HO_KEY_AGENT_PRECISION) != HO_PRECISION_F32;
    for (int i = 0; i < space->count; i++) {
        bf16 = bf16 || space->param[i].key == HO_KEY_AGENT_PRECISION;
    }
    if (bf16) {
        (void)fprintf(p->out, "  bf16        on this machine's CPU: %s\n", bf16_here());
    }
    if (ho_settings_choice(p->s, HO_KEY_AGENT_PRECISION) == HO_PRECISION_FP8) {
        (void)fprintf(p->out,
                      "  fp8         of acting in training; no faster than bf16 where it was "
                      "measured (an H200, a CPU)\n");
    }
}

/* What a lost worker costs. */
static void print_checkpoints(printer *p)
{
    int64_t every = ho_settings_i64(p->s, HO_KEY_CHECKPOINT_EVERY);
    char interval[40];
    ho_output_duration(ho_settings_f64(p->s, HO_KEY_CHECKPOINT_INTERVAL), interval,
                       sizeof interval);
    if (every == 0) {
        (void)fprintf(p->out, "  checkpoints only when a worker is asked to stop\n");
    } else {
        (void)fprintf(
            p->out, "  checkpoints of a running trial every %s, and at least %lld epoch%s apart\n",
            interval, (long long)every, every == 1 ? "" : "s");
    }
}

/* What agents take, at the study file's own values where a shape is searched. */
static void print_memory(printer *p, int64_t agents_in_flight)
{
    const ho_settings *s = p->s;
    const bool dqn = ho_settings_choice(s, HO_KEY_AGENT_ALGORITHM) == HO_DQN;
    const int replay = ho_settings_choice(s, HO_KEY_DQN_REPLAY);
    double h1 = (double)ho_settings_i64(s, HO_KEY_AGENT_HIDDEN1);
    double h2 = (double)ho_settings_i64(s, HO_KEY_AGENT_HIDDEN2);
    double head = (double)ho_settings_i64(s, HO_KEY_AGENT_HEAD);
    const ho_lane_size size = {
        .weights = 64 * h1 + h1 * h2 + 2 * h2 * head + 46 * head,
        .hidden = h1 + h2 + 2 * head,
        .episodes = ho_settings_i64(s, HO_KEY_ENV_EPISODES),
        .steps = ho_settings_i64(s, dqn ? HO_KEY_ENV_EPISODE_LENGTH : HO_KEY_PPO_ROLLOUT),
        .batch = !dqn ? ho_settings_i64(s, HO_KEY_PPO_MINIBATCH)
                 : ho_settings_is_auto(s, HO_KEY_DQN_BATCH) ? HO_BATCH_DEFAULT
                                                            : ho_settings_i64(s, HO_KEY_DQN_BATCH),
        .replay = dqn ? ho_settings_i64(s, HO_KEY_DQN_REPLAY_CAPACITY) : 0,
        .replay_bytes = replay == HO_REPLAY_PER_RANK ? 25
                        : replay == HO_REPLAY_PER    ? 4
                                                     : 0,
        .bf16 = ho_settings_choice(s, HO_KEY_AGENT_PRECISION) == HO_PRECISION_BF16,
    };
    const ho_lane_bytes b = ho_lane_memory(&size);
    const double lane = b.networks + b.replay + b.rollout + b.batch;
    (void)fprintf(p->out,
                  "  memory      about %.3g weights an agent; on a GPU %.1f MB: networks %.1f, "
                  "replay %.1f, steps %.1f, batch %.1f\n",
                  size.weights, lane * 1e-6, b.networks * 1e-6, b.replay * 1e-6, b.rollout * 1e-6,
                  b.batch * 1e-6);
    (void)fprintf(
        p->out,
        "              %.2f GB for %lld agents in flight, %.2f GB for the bars; where 90 %% "
        "of what is free is less, fewer train at once\n",
        lane * (double)agents_in_flight * 1e-9, (long long)agents_in_flight,
        ho_market_memory(p->setup->bars.count) * 1e-9);
}

static void print_work(printer *p)
{
    const ho_study *study = p->setup->study;
    int64_t trials = ho_settings_i64(p->s, HO_KEY_STUDY_TRIALS);
    int64_t seeds = ho_settings_i64(p->s, HO_KEY_STUDY_SEEDS);
    int64_t agents = ho_settings_choice(p->s, HO_KEY_FOLDS_REFIT) == 1 ? 1 : p->setup->folds.count;
    int64_t lanes = agents * seeds;
    bool ppo = ho_settings_choice(p->s, HO_KEY_AGENT_ALGORITHM) == HO_PPO;
    ho_key length = ppo ? HO_KEY_PPO_ROLLOUT : HO_KEY_ENV_EPISODE_LENGTH; /* steps in an epoch */
    double steps = (double)ho_settings_i64(p->s, HO_KEY_ENV_EPISODES) *
                   (double)ho_settings_i64(p->s, length) *
                   (double)ho_settings_i64(p->s, HO_KEY_AGENT_EPOCHS);
    int64_t in_flight = ho_settings_bool(p->s, HO_KEY_STUDY_DETERMINISTIC)
                            ? ho_search_parallel(study, trials)
                        : !ho_settings_is_auto(p->s, HO_KEY_WORKERS_IN_FLIGHT)
                            ? ho_settings_i64(p->s, HO_KEY_WORKERS_IN_FLIGHT)
                        : trials / 10 > 0 ? trials / 10
                                          : 1;
    (void)fprintf(p->out, "\nPlan\n");
    (void)fprintf(
        p->out,
        "  trials      %lld of %lld agents each (%lld folds x %lld seeds); %lld in flight\n",
        (long long)trials, (long long)lanes, (long long)agents, (long long)seeds,
        (long long)in_flight);
    (void)fprintf(p->out,
                  "  work        about %.3g environment steps an agent, %.3g in the study\n", steps,
                  steps * (double)lanes * (double)trials);
    print_memory(p, in_flight * lanes);
    print_checkpoints(p);
    print_race(p);
    print_precision(p);
    if (in_flight * 4 > trials && trials > 4) {
        warn(p,
             "%lld of %lld trials are in flight at once: most are proposed without results to "
             "learn from",
             (long long)in_flight, (long long)trials);
    }
}

/* ---- what is optimistic --------------------------------------------------------------------- */

/* Whether the original reward is the study's, or one of the choices searched. */
static bool may_be_original(const printer *p, bool *searched)
{
    const ho_space *space = &p->setup->study->space;
    *searched = false;
    for (int i = 0; i < space->count; i++) {
        const ho_param *param = &space->param[i];
        if (param->key != HO_KEY_REWARD_PRESET) {
            continue;
        }
        *searched = true;
        for (int c = 0; c < param->choice_count; c++) {
            if (strcmp(param->choice[c].text, "original") == 0) {
                return true;
            }
        }
        return false;
    }
    return ho_settings_choice(p->s, HO_KEY_REWARD_PRESET) == HO_PRESET_ORIGINAL;
}

/* The original formula (spec/environment.md): what it does to the scale of things. */
static void print_reward(printer *p)
{
    bool searched = false;
    if (!may_be_original(p, &searched)) {
        return;
    }
    const char *who =
        searched ? "reward.preset can be \"original\"" : "reward.preset = \"original\"";
    if (p->sigma_ref > 0.0) {
        warn(p, "%s: its penalty of 0.1 is %.0f times the deviation of a bar's return (%.3g)", who,
             0.1 / p->sigma_ref, p->sigma_ref);
    }
    warn(p, "%s: its barrier factor halves the loss of a stop", who);
}

static void print_optimism(printer *p)
{
    int before = p->warnings;
    (void)fprintf(p->out, "\nRealism\n");
    if (ho_settings_choice(p->s, HO_KEY_ENV_FILL) == 1) {
        warn(p, "env.fill = \"close\": orders fill at the price they were decided on");
    }
    if (ho_settings_f64(p->s, HO_KEY_ENV_SPREAD_BPS) == 0.0 &&
        ho_settings_f64(p->s, HO_KEY_ENV_SPREAD_TICKS) == 0.0) {
        warn(p, "env.spread_bps = 0: trading across the spread is free");
    }
    if (ho_settings_f64(p->s, HO_KEY_ENV_FEE_BPS_TAKER) <= 0.0 &&
        ho_settings_f64(p->s, HO_KEY_ENV_FEE_PER_UNIT) <= 0.0) {
        warn(p, "env.fee_bps.taker <= 0: market orders cost no fee");
    }
    if (ho_settings_bool(p->s, HO_KEY_STUDY_ALLOW_SEARCHING_FACTS)) {
        warn(p, "study.allow_searching_facts: a search over costs learns to trade for free");
    }
    if (ho_settings_bool(p->s, HO_KEY_FOLDS_PRUNE_ON_TEST)) {
        warn(p,
             "folds.prune_on_test: decisions see the test windows, results are not out of sample");
    }
    if (ho_settings_f64(p->s, HO_KEY_ENV_MAX_EXPOSURE) > 2.0) {
        warn(p, "env.max_exposure = %g: positions of %g times the capital",
             ho_settings_f64(p->s, HO_KEY_ENV_MAX_EXPOSURE),
             ho_settings_f64(p->s, HO_KEY_ENV_MAX_EXPOSURE));
    }
    print_reward(p);
    for (int i = 0; i < p->setup->study->warning_count; i++) {
        warn(p, "%s", p->setup->study->warning[i]);
    }
    if (p->warnings == before) {
        (void)fprintf(p->out, "  nothing optimistic was found in the settings\n");
    }
}

static void print_settings(printer *p)
{
    char value[1024];
    (void)fprintf(p->out, "\nSettings (* set by the study)\n");
    for (int i = 0; i < HO_KEY_COUNT; i++) {
        if (ho_settings_has(p->s, (ho_key)i)) {
            (void)ho_settings_print(p->s, (ho_key)i, value, sizeof value);
            (void)fprintf(p->out, "  %c %-34s %s\n",
                          ho_settings_is_set(p->s, (ho_key)i) ? '*' : ' ',
                          ho_setting((ho_key)i)->name, value);
        }
    }
}

/* Whether a worker that runs where we do finds this program, as execvp does. */
static bool can_be_run(const char *program, const char *folder)
{
    char path[PATH_MAX], *list = getenv("PATH"), *copy = NULL, *rest = NULL;
    bool found = false;
    if (strchr(program, '/')) {
        (void)snprintf(path, sizeof path, "%s%s%s", program[0] == '/' ? "" : folder,
                       program[0] == '/' ? "" : "/", program);
        return access(path, X_OK) == 0;
    }
    copy = list ? ho_text_copy(list) : NULL;
    for (char *part = copy ? strtok_r(copy, ":", &rest) : NULL; part && !found;
         part = strtok_r(NULL, ":", &rest)) {
        (void)snprintf(path, sizeof path, "%s/%s", part, program);
        found = access(path, X_OK) == 0;
    }
    free(copy);
    return found;
}

/* What a [command] study runs, how often, and what is wrong with it. */
static void print_command(printer *p)
{
    const ho_study *study = p->setup->study;
    const char *program = ho_settings_list_str(p->s, HO_KEY_COMMAND_RUN, 0);
    (void)fprintf(p->out, "Command\n  run      ");
    for (int i = 0; i < ho_settings_list_count(p->s, HO_KEY_COMMAND_RUN); i++) {
        (void)fprintf(p->out, " %s", ho_settings_list_str(p->s, HO_KEY_COMMAND_RUN, i));
    }
    (void)fprintf(p->out, "\n  in        %s\n", study->folder);
    for (int i = 0; i < study->objective_count; i++) {
        (void)fprintf(p->out, "  objective %s, %s is better\n", study->objective[i].name,
                      study->objective[i].direction > 0 ? "more" : "less");
    }
    (void)fprintf(p->out, "  trials    %lld\n",
                  (long long)ho_settings_i64(p->s, HO_KEY_STUDY_TRIALS));
    if (!can_be_run(program, study->folder)) {
        warn(p, "command.run: no program %s is found on this machine", program);
    }
    for (int i = 0; i < study->warning_count; i++) {
        warn(p, "%s", study->warning[i]);
    }
}

int ho_check_print(FILE *out, const ho_setup *setup, bool settings)
{
    printer p = {.out = out, .setup = setup, .s = setup->study->settings};
    (void)fprintf(out, "Study %s (%s)\n\n", setup->study->name, setup->study->source);
    if (!setup->study->command) {
        print_data(&p);
        print_folds(&p);
    }
    if (setup->study->command) {
        print_command(&p);
    }
    print_space(&p);
    if (!setup->study->command) {
        print_work(&p);
        print_optimism(&p);
    }
    if (settings) {
        print_settings(&p);
    }
    (void)fprintf(out, "\n%s: %d warning%s\n", setup->study->source, p.warnings,
                  p.warnings == 1 ? "" : "s");
    return p.warnings;
}
