/* SPDX-License-Identifier: Apache-2.0
 * See run.h. */
#include "coordinator/run.h"

#include <cjson/cJSON.h>
#include <limits.h>
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "coordinator/artifacts.h"
#include "coordinator/auto_batch.h"
#include "coordinator/change.h"
#include "coordinator/gpus.h"
#include "coordinator/importance_study.h"
#include "coordinator/keeper.h"
#include "coordinator/observe.h"
#include "coordinator/overfit_study.h"
#include "coordinator/progress.h"
#include "coordinator/search_options.h"
#include "coordinator/server.h"
#include "coordinator/warm_start.h"
#include "study/log.h"

enum { RESTART_PAUSE_MS = 500, YIELD_NS = 200000000 /* between looks at the queue */ };

typedef struct run {
    const ho_run_options *options;
    ho_setup setup;
    ho_store *store;
    ho_store_info info;
    ho_sampler *sampler;
    ho_pruner *pruner;
    ho_hub *hub;
    ho_devices_question *devices; /* asked while the data is read */
    ho_local *local;
    ho_server *server;
    ho_dispatch *dispatch;
    ho_progress *progress;
    ho_keeper *keeper;
    ho_observer *observer;
    bool restarted;   /* a change that matters: nothing of before goes on */
    int64_t trials;   /* target */
    int64_t asked_ns; /* when yield was asked last */
    char artifacts[PATH_MAX + 16];
} run;

static const ho_settings *settings_of(const run *r)
{
    return r->setup.study->settings;
}

/* ---- the database --------------------------------------------------------------------------- */

static void describe_study(const run *r, ho_store_study *out, const char *uuid,
                           const char *settings_json, const char **constraint)
{
    const ho_study *study = r->setup.study;
    const ho_bars *bars = &r->setup.bars;
    const char *aggregate = ho_settings_str(study->settings, HO_KEY_STUDY_AGGREGATE);
    *out = (ho_store_study){
        .name = study->name,
        .uuid = uuid,
        .seed = (uint64_t)ho_settings_i64(study->settings, HO_KEY_STUDY_SEED),
        .trials = r->trials,
        .deterministic = ho_settings_bool(study->settings, HO_KEY_STUDY_DETERMINISTIC),
        .toml = study->text,
        .toml_path = study->source,
        .settings_json = settings_json,
        .data_path = r->setup.file_count > 0 ? r->setup.file[0].path : "",
        .data_sha256 = bars->sha256,
        .bars = bars->count,
        .first_bar_ns = bars->count > 0 ? bars->open_ns[r->setup.warmup] : 0,
        .last_bar_ns = bars->count > 0 ? bars->open_ns[bars->count - 1] : 0,
        .sessions_per_year = bars->sessions_per_year,
        .initial_capital = ho_settings_f64(study->settings, HO_KEY_ENV_INITIAL_CAPITAL),
        .objectives = study->objective_count,
        .aggregate = aggregate,
        .constraints = study->constraint_count,
        .constraint = constraint,
        .folds = &r->setup.folds,
        .open_ns = bars->open_ns,
        .space = &study->space,
        .now_ns = ho_clock_unix_ns(),
    };
    for (int i = 0; i < study->objective_count; i++) {
        out->metric[i] = study->objective[i].name;
        out->direction[i] = study->objective[i].direction;
    }
    for (int i = 0; i < study->constraint_count; i++) {
        constraint[i] = study->constraint[i].text;
    }
}

static void make_uuid(char out[33])
{
    unsigned char random[16];
    randombytes_buf(random, sizeof random);
    (void)sodium_bin2hex(out, 33, random, sizeof random);
}

static ho_status create_study(run *r, ho_err *err)
{
    char uuid[33];
    const char *constraint[HO_CONSTRAINTS_MAX];
    ho_store_study study;
    char *json = ho_setup_settings_text(settings_of(r));
    if (!json) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    make_uuid(uuid);
    describe_study(r, &study, uuid, json, constraint);
    ho_status rc = ho_store_create_study(r->store, &study, err);
    cJSON_free(json);
    return rc;
}

static ho_status forget_checkpoint(const ho_stored_trial *trial, void *user)
{
    bool ended = trial->state == HO_TRIAL_COMPLETE || trial->state == HO_TRIAL_PRUNED ||
                 trial->state == HO_TRIAL_FAILED;
    if (!ended) {
        ho_artifacts_delete((ho_artifacts *)user, trial->number, false, ho_clock_unix_ns());
    }
    return HO_OK;
}

/* What the study's trials began under other settings must not go on under these. */
static ho_status forget_checkpoints(run *r, ho_err *err)
{
    ho_artifacts *artifacts = NULL;
    ho_status rc = ho_artifacts_create(&artifacts, r->artifacts, r->store, err);
    if (rc == HO_OK) {
        rc = ho_store_each_trial(r->store, &r->setup.study->space, forget_checkpoint, artifacts,
                                 err);
    }
    ho_artifacts_destroy(&artifacts);
    return rc;
}

/* A change that matters for results makes another study of it for the workers: by its new uuid they
 * read it anew, and those that still train trials of the old one forget them. */
static ho_status accept_change(run *r, const ho_change *change, ho_err *err)
{
    const char *constraint[HO_CONSTRAINTS_MAX];
    char uuid[33];
    ho_store_study study;
    ho_status rc = HO_OK;
    bool restart = change->weighty > 0;
    if (restart && (rc = forget_checkpoints(r, err)) != HO_OK) {
        return rc;
    }
    make_uuid(uuid);
    char *json = ho_setup_settings_text(settings_of(r));
    if (!json) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    describe_study(r, &study, restart ? uuid : r->info.uuid, json, constraint);
    rc = ho_store_change_study(r->store, &study, change->text, restart, err);
    cJSON_free(json);
    if (rc == HO_OK && restart) {
        char *now = strdup(uuid);
        if (!now) {
            return ho_err_set(err, HO_ENOMEM, "out of memory");
        }
        free(r->info.uuid);
        r->info.uuid = now;
        r->restarted = true;
    }
    return rc;
}

/* Compares the file with what the database's trials were made with, and decides on the target. */
static ho_status resume_study(run *r, ho_err *err)
{
    ho_change change;
    int64_t file_trials = ho_settings_i64(settings_of(r), HO_KEY_STUDY_TRIALS);
    ho_status rc = ho_change_find(&r->setup, &r->info, &change, err);
    if (rc != HO_OK) {
        return rc;
    }
    r->trials = file_trials != change.trials ? file_trials : r->info.trials;
    r->trials += r->options->more_trials;
    if (change.barred) {
        (void)fprintf(stderr, "The study file differs from the one that made %s:\n%s",
                      ho_store_path(r->store), change.text);
        rc = ho_err_set(err, HO_ECONFIG,
                        "%s holds values of another %s, which cannot be compared with new ones: "
                        "name another database with --database",
                        ho_store_path(r->store), change.barred);
    } else if (change.weighty > 0 && !r->options->allow_change) {
        (void)fprintf(stderr, "The study file differs from the one that made %s:\n%s",
                      ho_store_path(r->store), change.text);
        rc = ho_err_set(
            err, HO_ECONFIG,
            "%s holds trials of another version of this study; --allow-change goes on "
            "with the new one (old trials are used where they fit), or name another database with "
            "--database",
            ho_store_path(r->store));
    } else if (change.any > 0) {
        ho_log(HO_LOG_INFO, "run", "the study file was changed: %s", change.text);
        rc = accept_change(r, &change, err);
    }
    ho_change_free(&change);
    return rc;
}

static ho_status open_store(run *r, ho_run_end *end, ho_err *err)
{
    ho_store_options options = ho_store_defaults();
    ho_status rc = HO_OK;

    options.create = true;
    if (r->options->database) {
        if (snprintf(end->database, sizeof end->database, "%s", r->options->database) >=
            (int)sizeof end->database) {
            return ho_err_set(err, HO_EUSAGE, "--database: the path is too long");
        }
    } else if ((rc = ho_setup_database(&r->setup, end->database, sizeof end->database, err)) !=
               HO_OK) {
        return rc;
    }
    ho_artifacts_folder(end->database, r->artifacts, sizeof r->artifacts);
    if ((rc = ho_store_open(&r->store, end->database, &options, err)) != HO_OK) {
        return rc;
    }
    if (ho_store_has_study(r->store)) {
        if ((rc = ho_store_read_info(r->store, &r->info, err)) == HO_OK) {
            rc = resume_study(r, err);
        }
    } else {
        r->trials = r->options->more_trials > 0
                        ? r->options->more_trials
                        : ho_settings_i64(settings_of(r), HO_KEY_STUDY_TRIALS);
        if ((rc = create_study(r, err)) == HO_OK) {
            rc = ho_store_read_info(r->store, &r->info, err);
        }
    }
    return rc == HO_OK ? ho_store_make_views(r->store, err) : rc;
}

static bool has_baselines(ho_store *store)
{
    sqlite3_stmt *statement = NULL;
    bool has = sqlite3_prepare_v2(ho_store_db(store), "SELECT 1 FROM baseline LIMIT 1", -1,
                                  &statement, NULL) == SQLITE_OK &&
               sqlite3_step(statement) == SQLITE_ROW;
    (void)sqlite3_finalize(statement);
    return has;
}

/* ---- the parts ------------------------------------------------------------------------------ */

static ho_status start_local(run *r, ho_err *err)
{
    ho_local_options options = ho_local_defaults();
    ho_local_devices devices;
    const ho_settings *s = settings_of(r);
    ho_status rc = ho_local_devices_answered(s, r->options->cpu, &r->devices, &devices, err);

    if (rc != HO_OK) {
        return rc;
    }
    options.endpoint = ho_hub_endpoint(r->hub);
    options.workers =
        r->options->workers > 0 && devices.cpu ? (int)r->options->workers : devices.workers;
    options.gpu = devices.cpu ? NULL : devices.gpu_list;
    options.threads = ho_settings_is_auto(s, HO_KEY_WORKERS_THREADS)
                          ? 0
                          : (int)ho_settings_i64(s, HO_KEY_WORKERS_THREADS);
    options.pause_ns = (int64_t)RESTART_PAUSE_MS * 1000000;
    options.log_level = ho_log_level_name(ho_log_get_level());
    options.log_json = ho_log_get_json();
    return ho_local_create(&r->local, &options, ho_clock_ns(), err);
}

static ho_status start_search(run *r, ho_err *err)
{
    const ho_study *study = r->setup.study;
    ho_sampler_options sampler = ho_search_sampler_options(study, r->trials);
    ho_pruner_options pruner = ho_search_pruner_options(study, r->trials);
    int64_t tried = 0;
    ho_status rc = HO_OK;
    if ((rc = ho_sampler_create(&r->sampler, &study->space, &sampler, err)) != HO_OK ||
        (rc = ho_pruner_create(&r->pruner, &pruner, err)) != HO_OK) {
        return rc;
    }
    for (int i = 0; i < study->enqueue_count && rc == HO_OK; i++) {
        rc = ho_sampler_enqueue(r->sampler, study->enqueue + (size_t)i * (size_t)study->space.count,
                                err);
    }
    if (rc == HO_OK) {
        rc = ho_warm_start_tell(r->sampler, study, &tried, err);
    }
    if (rc == HO_OK && study->warm_start_count > 0) {
        rc = ho_store_put_prior_trials(r->store, tried);
    }
    return rc;
}

static ho_dispatch_config dispatch_config(const run *r, bool listening)
{
    const ho_settings *s = settings_of(r);
    const ho_study *study = r->setup.study;
    ho_dispatch_config c = {
        .trials = r->trials,
        .patience = ho_settings_i64(s, HO_KEY_STUDY_PATIENCE),
        .timeout_ns = ho_settings_has(s, HO_KEY_STUDY_TIMEOUT)
                          ? (int64_t)(ho_settings_f64(s, HO_KEY_STUDY_TIMEOUT) * 1e9)
                          : 0,
        .max_attempts = (int)ho_settings_i64(s, HO_KEY_COORDINATOR_MAX_ATTEMPTS),
        .heartbeat_timeout_ns =
            (int64_t)(ho_settings_f64(s, HO_KEY_COORDINATOR_HEARTBEAT_TIMEOUT) * 1e9),
        .backoff_ns = 1000000000,
        .in_flight = ho_settings_is_auto(s, HO_KEY_WORKERS_IN_FLIGHT)
                         ? 0
                         : ho_settings_i64(s, HO_KEY_WORKERS_IN_FLIGHT),
        .deterministic = ho_settings_bool(s, HO_KEY_STUDY_DETERMINISTIC),
        .parallel = ho_search_parallel(study, r->trials),
        .replicates = (int)ho_settings_i64(s, HO_KEY_STUDY_REPLICATES),
        .seeds = (int)ho_settings_i64(s, HO_KEY_STUDY_SEEDS),
        .enqueued = study->enqueue_count,
        .no_epochs = strcmp(ho_settings_str(s, HO_KEY_STORE_EPOCHS), "none") == 0,
        .retest = ho_settings_i64(s, HO_KEY_STUDY_FINAL_RETEST),
        .objectives = study->objective_count,
        .race_folds = (int)ho_settings_i64(s, HO_KEY_STUDY_RACE_FOLDS),
        .folds = r->setup.folds.count,
        .race_p = ho_settings_f64(s, HO_KEY_PRUNER_P_THRESHOLD),
        .seed = (uint64_t)ho_settings_i64(s, HO_KEY_STUDY_SEED),
        .metric = study->objective[0].name,
    };
    int64_t seeds = ho_settings_i64(s, HO_KEY_STUDY_RETEST_SEEDS);
    c.retest_times = (seeds + c.seeds - 1) / c.seeds; /* a trial trains `seeds` agents a fold */
    int64_t members = ho_settings_i64(s, HO_KEY_POPULATION_SIZE);
    if (members > 0 && c.in_flight == 0) {
        c.in_flight = members; /* they train side by side */
    }
    c.adopt_ns = listening && !r->restarted ? c.heartbeat_timeout_ns : 0;
    for (int i = 0; i < study->objective_count; i++) {
        c.direction[i] = study->objective[i].direction;
    }
    return c;
}

/* A lingering coordinator of remote workers is restarted by whoever stops it (a StatefulSet): its
 * workers keep their trials and bring them to the next one. */
static bool leaves_workers(const run *r)
{
    return r->options->linger && r->options->no_local;
}

static void show_progress(const ho_dispatch_view *view, int64_t now_ns, void *user)
{
    run *r = (run *)user;
    ho_worker_load load = ho_server_load(r->server);
    ho_store_health health = ho_store_get_health(r->store);
    ho_progress_update(r->progress, view, now_ns);
    ho_observer_look(r->observer, view, &load, &health, now_ns);
    if (r->options->yield && !view->draining && now_ns - r->asked_ns >= YIELD_NS) {
        r->asked_ns = now_ns;
        if (r->options->yield(r->options->user)) {
            ho_dispatch_drain(r->dispatch, "yielded");
        }
    }
}

static bool keep_remote(void *user)
{
    const run *r = (const run *)user;
    const char *reason = ho_dispatch_reason(r->dispatch);
    bool yielded = reason && strcmp(reason, "yielded") == 0;
    return r->options->follows && r->options->follows(yielded, r->options->user);
}

static void note_trial(const ho_trial_result *result, void *user)
{
    ho_keeper_note(((run *)user)->keeper, result, ho_clock_unix_ns());
    ho_observer_trial(((run *)user)->observer, result);
}

static ho_status start_server(run *r, ho_err *err)
{
    const ho_settings *s = settings_of(r);
    const char *listen = r->options->listen ? r->options->listen
                         : ho_settings_has(s, HO_KEY_COORDINATOR_LISTEN)
                             ? ho_settings_str(s, HO_KEY_COORDINATOR_LISTEN)
                             : NULL;
    char keys[PATH_MAX] = "";
    ho_status rc = HO_OK;

    if (r->options->curve) {
        (void)snprintf(keys, sizeof keys, "%s", r->options->curve);
    } else if (ho_settings_has(s, HO_KEY_COORDINATOR_CURVE) &&
               (rc = ho_study_path(r->setup.study, ho_settings_str(s, HO_KEY_COORDINATOR_CURVE),
                                   keys, sizeof keys, err)) != HO_OK) {
        return rc;
    }
    if ((rc = ho_hub_create(&r->hub, err)) != HO_OK ||
        (listen && (rc = ho_hub_listen(r->hub, listen, keys[0] ? keys : NULL, r->options->insecure,
                                       err)) != HO_OK)) {
        return rc;
    }
    if (r->options->no_local && !listen) {
        return ho_err_set(err, HO_EUSAGE, "--no-local needs --listen: nobody could work");
    }
    ho_server_options options = {
        .setup = &r->setup,
        .uuid = r->info.uuid,
        .store = r->store,
        .hub = r->hub,
        .artifacts = r->artifacts,
        .ping_ns = (int64_t)(ho_settings_f64(s, HO_KEY_COORDINATOR_HEARTBEAT_INTERVAL) * 1e9),
        .greet_ns = (int64_t)(ho_settings_f64(s, HO_KEY_COORDINATOR_HEARTBEAT_TIMEOUT) * 1e9),
        .want_baselines = !has_baselines(r->store),
        .leave_workers = leaves_workers(r),
        .keep_remote = keep_remote,
        .progress = show_progress,
        .trial_ended = note_trial,
        .user = r,
    };
    if ((rc = ho_server_create(&r->server, &options, err)) !=
        HO_OK) { /* blocks signals: before fork */
        return rc;
    }
    if ((rc = ho_keeper_create(
             &r->keeper, r->store, ho_server_artifacts(r->server),
             ho_settings_i64(s, HO_KEY_STORE_KEEP_BEST), r->setup.study->objective[0].direction,
             strcmp(ho_settings_str(s, HO_KEY_STORE_EPOCHS), "kept") == 0, err)) != HO_OK) {
        return rc;
    }
    ho_dispatch_config config = dispatch_config(r, listen != NULL);
    ho_dispatch_io io = ho_server_io(r->server);
    if ((rc = ho_dispatch_create(&r->dispatch, &config, &io, r->store, r->sampler, r->pruner,
                                 &r->setup.study->space, ho_clock_ns(), err)) != HO_OK ||
        (rc = ho_dispatch_resume(r->dispatch, ho_clock_ns(), err)) != HO_OK) {
        return rc;
    }
    ho_server_set_dispatch(r->server, r->dispatch);
    if (!r->options->no_local && (rc = start_local(r, err)) != HO_OK) {
        return rc;
    }
    ho_server_set_local(r->server, r->local);
    return HO_OK;
}

/* Whether the study had ended before and nothing is asked on top. */
static bool is_over(const run *r)
{
    return strcmp(r->info.state, "finished") == 0 && r->options->more_trials == 0 &&
           r->trials <= r->info.trials;
}

/* Overfitting statistics and importances, from the trials as they stand in the file. */
static ho_status put_statistics(run *r, ho_err *err)
{
    ho_overfit_row row;
    ho_status rc = HO_OK;

    if ((rc = ho_store_flush(r->store, ho_clock_ns(), true, err)) == HO_OK &&
        (rc = ho_overfit_measure(r->store, ho_clock_unix_ns(), &row, err)) == HO_OK) {
        ho_overfit_keep_null(r->store, &row);
        rc = ho_store_put_overfit(r->store, &row);
    }
    if (rc == HO_OK) {
        rc = ho_importance_study(r->store, &r->setup.study->space,
                                 r->setup.study->objective[0].direction, err);
    }
    return rc;
}

static ho_status serve(run *r, ho_run_end *end, ho_err *err)
{
    ho_err second = {0};
    ho_dispatch_view view;
    ho_status rc = HO_OK, last = HO_OK;

    (void)ho_store_put_study_state(r->store, "running", NULL, r->trials, ho_clock_unix_ns());
    (void)ho_store_put_event(r->store, ho_clock_unix_ns(),
                             r->info.state[0] == 'n' ? "start" : "resume", -1, 0, -1,
                             HYPEROPT_VERSION);
    rc = ho_server_run(r->server, err);
    ho_dispatch_look(r->dispatch, &view);
    ho_progress_update(r->progress, &view, ho_clock_ns());
    end->complete = view.complete;
    end->finished_here = view.finished_here;
    const char *reason = rc == HO_OK           ? ho_dispatch_reason(r->dispatch)
                         : rc == HO_ECANCELLED ? "interrupted"
                                               : ho_status_name(rc);
    (void)snprintf(end->reason, sizeof end->reason, "%s", reason ? reason : "");
    end->yielded = rc == HO_OK && strcmp(end->reason, "yielded") == 0;
    ho_observer_end(r->observer, &view, end->reason);
    last = ho_store_put_study_state(r->store,
                                    end->yielded          ? "interrupted"
                                    : rc == HO_OK         ? "finished"
                                    : rc == HO_ECANCELLED ? "interrupted"
                                                          : "failed",
                                    end->reason, r->trials, ho_clock_unix_ns());
    if (last == HO_OK && rc == HO_OK) {
        last = put_statistics(r, &second);
    }
    if (last == HO_OK && rc == HO_ECANCELLED && leaves_workers(r)) {
        last = ho_dispatch_flush(r->dispatch, ho_clock_ns(), &second); /* trials stay RUNNING */
    } else if (last == HO_OK) {
        last = ho_dispatch_interrupt(r->dispatch, end->reason, ho_clock_ns(), &second);
    }
    if (rc == HO_OK && last != HO_OK) {
        *err = second;
        rc = last;
    }
    if (rc == HO_OK && r->options->linger) {
        ho_log(HO_LOG_INFO, "run", "the study has ended (%s); staying until a signal", end->reason);
        ho_server_linger(r->server);
    }
    return rc;
}

static void allow_many_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) { /* one a worker, and more */
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* The settings are known: the machine's devices are asked for while the data is read. */
static ho_status adjust(ho_settings *settings, void *user, ho_err *err)
{
    run *r = (run *)user;
    const ho_run_options *o = r->options;
    ho_status rc = o->adjust ? o->adjust(settings, o->user, err) : HO_OK;
    if (rc == HO_OK && !o->no_local) {
        r->devices = ho_devices_ask(settings, o->cpu);
    }
    return rc;
}

ho_status ho_run(const ho_run_options *options, ho_run_end *end, ho_err *err)
{
    run r = {.options = options};
    ho_status rc = HO_OK;

    memset(end, 0, sizeof *end);
    allow_many_files();
    ho_server_block_signals(); /* the metrics endpoint has a thread */
    if (sodium_init() < 0) {
        return ho_err_set(err, HO_EIO, "libsodium cannot start");
    }
    if ((rc = ho_setup_load_adjusted(&r.setup, options->study, options->set, adjust, &r, err)) !=
            HO_OK ||
        (rc = open_store(&r, end, err)) != HO_OK) {
        goto out;
    }
    if (is_over(&r) && !options->linger) {
        end->nothing_to_do = true;
        (void)snprintf(end->reason, sizeof end->reason, "%s", r.info.reason);
        goto out;
    }
    if ((rc = ho_auto_batch_find(&r.setup, r.store, &r.info, !options->no_local, options->cpu,
                                 err)) != HO_OK) {
        goto out;
    }
    r.progress =
        ho_progress_create(stderr, r.setup.study->objective[0].name, options->quiet, ho_clock_ns());
    if (!r.progress) {
        rc = ho_err_set(err, HO_ENOMEM, "out of memory");
        goto out;
    }
    if ((rc = ho_observer_create(&r.observer, settings_of(&r), r.setup.study->name,
                                 r.setup.study->objective[0].name, err)) == HO_OK &&
        (rc = start_search(&r, err)) == HO_OK && (rc = start_server(&r, err)) == HO_OK) {
        rc = serve(&r, end, err);
    }
out:
    ho_devices_forget(&r.devices);
    ho_local_destroy(&r.local, 3000);
    ho_progress_destroy(&r.progress);
    ho_observer_destroy(&r.observer);
    ho_dispatch_destroy(&r.dispatch);
    ho_keeper_destroy(&r.keeper);
    ho_server_destroy(&r.server);
    ho_hub_destroy(&r.hub);
    ho_pruner_destroy(&r.pruner);
    ho_sampler_destroy(&r.sampler);
    ho_store_info_free(&r.info);
    ho_store_close(&r.store);
    ho_setup_free(&r.setup);
    return rc;
}
