/* SPDX-License-Identifier: Apache-2.0
 * The coordinator under load. One line a figure.
 *     bench_dispatch trials [N]        N random trials through dispatch and store, no sockets
 *     bench_dispatch workers [N] [S]   N simulated workers over ipc for S seconds: each reports
 * every second and delivers a trial now and then; replies are timed */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "coordinator/search_options.h"
#include "coordinator/server.h"
#include "simulated.h"

enum { SESSIONS = 30, BARS = 3000, FOLDS = 3 };

static void must(ho_status rc, const ho_err *err, const char *what)
{
    if (rc != HO_OK) {
        (void)fprintf(stderr, "bench_dispatch: %s: %s\n", what, err->text);
        exit(1);
    }
}

static double seconds_since(int64_t start_ns)
{
    return (double)(ho_clock_ns() - start_ns) * 1e-9;
}

static double thread_cpu_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- a study on made bars ------------------------------------------------------------------- */

static ho_store *make_store(const char *folder, const ho_setup *setup, int64_t trials)
{
    char path[128];
    ho_store_options options = ho_store_defaults();
    ho_store *store = NULL;
    ho_err err = {0};
    (void)snprintf(path, sizeof path, "%s/bench.db", folder);
    options.create = true;
    must(ho_store_open(&store, path, &options, &err), &err, "store");
    ho_store_study s = {.name = "bench",
                        .uuid = "b",
                        .trials = trials,
                        .toml = "",
                        .toml_path = "",
                        .settings_json = "{}",
                        .data_path = "",
                        .data_sha256 = "",
                        .bars = setup->bars.count,
                        .sessions_per_year = 252,
                        .initial_capital = 1e6,
                        .objectives = 1,
                        .metric = {"sharpe"},
                        .direction = {1},
                        .aggregate = "stitched",
                        .folds = &setup->folds,
                        .open_ns = setup->bars.open_ns,
                        .space = &setup->study->space,
                        .now_ns = 1};
    must(ho_store_create_study(store, &s, &err), &err, "study");
    must(ho_store_make_views(store, &err), &err, "views");
    return store;
}

static ho_dispatch_config config_of(int64_t trials)
{
    return (ho_dispatch_config){.trials = trials,
                                .max_attempts = 3,
                                .heartbeat_timeout_ns = 60000000000,
                                .backoff_ns = 1000000000,
                                .in_flight = 100000,
                                .parallel = 1,
                                .replicates = 1,
                                .seeds = 1,
                                .objectives = 1,
                                .direction = {1}};
}

/* ---- trials --------------------------------------------------------------------------------- */

enum { QUEUE = 4096 };

typedef struct loop {
    ho_lease lease[QUEUE];
    int leases;
} loop;

static void take_lease(void *user, int64_t worker, const ho_lease *lease)
{
    loop *l = (loop *)user;
    (void)worker;
    l->lease[l->leases++] = *lease;
}

static void ignore_message(void *user, int64_t worker, int64_t number, int64_t attempt)
{
    (void)user;
    (void)worker;
    (void)number;
    (void)attempt;
}

static void ignore_verdict(void *user, int64_t worker, int64_t number, int64_t attempt, bool keep)
{
    (void)keep;
    ignore_message(user, worker, number, attempt);
}

static int64_t utc(void *user)
{
    (void)user;
    return ho_clock_unix_ns();
}

static void bench_trials(const char *folder, const ho_setup *setup, int64_t trials)
{
    static loop l;
    ho_err err = {0};
    ho_store *store = make_store(folder, setup, trials);
    ho_sampler *sampler = NULL;
    ho_pruner *pruner = NULL;
    ho_dispatch *d = NULL;
    ho_sampler_options so = ho_search_sampler_options(setup->study, trials);
    ho_pruner_options po = ho_search_pruner_options(setup->study, trials);
    ho_dispatch_config config = config_of(trials);
    ho_dispatch_io io = {.user = &l,
                         .lease = take_lease,
                         .prune = ignore_message,
                         .verdict = ignore_verdict,
                         .ack = ignore_message,
                         .unix_ns = utc};
    ho_hello hello = {
        .name = "w", .host = "h", .device = "d", .backend = "cpu", .version = "0", .lanes = 1};
    int64_t worker = -1, delivered = 0;

    must(ho_sampler_create(&sampler, &setup->study->space, &so, &err), &err, "sampler");
    must(ho_pruner_create(&pruner, &po, &err), &err, "pruner");
    must(ho_dispatch_create(&d, &config, &io, store, sampler, pruner, &setup->study->space,
                            ho_clock_ns(), &err),
         &err, "dispatch");
    must(ho_dispatch_join(d, &hello, ho_clock_ns(), &worker, &err), &err, "join");
    int64_t start = ho_clock_ns();
    while (!ho_dispatch_done(d)) {
        ho_dispatch_ready(d, worker, 256, 1, ho_clock_ns());
        must(ho_dispatch_tick(d, ho_clock_ns(), &err), &err, "tick");
        for (int i = 0; i < l.leases; i++, delivered++) {
            ho_trial_result r = {.number = l.lease[i].number,
                                 .attempt = l.lease[i].attempt,
                                 .state = HO_TRIAL_COMPLETE,
                                 .objectives = 1,
                                 .value = {sin((double)l.lease[i].number)},
                                 .violation = NAN,
                                 .epochs = 1,
                                 .train_s = 1.0};
            must(ho_dispatch_result(d, worker, &r, ho_clock_ns(), &err), &err, "result");
        }
        l.leases = 0;
    }
    double s = seconds_since(start);
    (void)printf(
        "dispatch  trials through dispatch and store  trials=%lld %10.0f trials/s  %.3f ms/trial\n",
        (long long)delivered, (double)delivered / s, 1e3 * s / (double)delivered);
    if (delivered != trials) {
        (void)fprintf(stderr, "bench_dispatch: %lld of %lld trials ended\n", (long long)delivered,
                      (long long)trials);
        exit(1);
    }
    ho_dispatch_destroy(&d);
    ho_pruner_destroy(&pruner);
    ho_sampler_destroy(&sampler);
    ho_store_close(&store);
}

/* ---- simulated workers ---------------------------------------------------------------------- */

typedef struct crowd {
    const char *endpoint;
    int count, folds;
    double seconds;
    sim_worker *worker;
    double *reply_ms; /* [replies] result to ack */
    int64_t replies, room, reports;
} crowd;

static void hear(crowd *c, sim_worker *w)
{
    ho_message m;
    int64_t bytes = 0;
    if (!sim_receive(w, &m, &bytes)) {
        return;
    }
    if (m.type == HO_MSG_STUDY) {
        (void)sim_ready(w);
    } else if (m.type == HO_MSG_TRIALS && m.trials.count > 0) {
        w->trial = m.trials.order[0].trial;
        w->attempt = m.trials.order[0].attempt;
        w->epoch = 0;
        w->next_ns = ho_clock_ns() + (int64_t)(rand() % 1000) * 1000000;
    } else if (m.type == HO_MSG_PING) {
        (void)sim_pong(w, m.ping.sequence);
    } else if (m.type == HO_MSG_ACK && w->sent_ns > 0 && c->replies < c->room) {
        c->reply_ms[c->replies++] = seconds_since(w->sent_ns) * 1e3;
        w->sent_ns = 0;
        w->trial = -1;
        (void)sim_ready(w);
    }
    ho_message_clear(&m);
}

static void *run_crowd(void *user)
{
    crowd *c = (crowd *)user;
    zmq_pollitem_t *items = (zmq_pollitem_t *)calloc((size_t)c->count, sizeof *items);
    int64_t start = ho_clock_ns();
    for (int i = 0; i < c->count; i++) {
        c->worker[i].socket = zsock_new_dealer(c->endpoint);
        zsock_set_linger(c->worker[i].socket, 0);
        c->worker[i].trial = -1;
        items[i] =
            (zmq_pollitem_t){.socket = zsock_resolve(c->worker[i].socket), .events = ZMQ_POLLIN};
        (void)sim_hello(&c->worker[i], i);
    }
    while (seconds_since(start) < c->seconds) {
        (void)zmq_poll(items, c->count, 5);
        for (int i = 0; i < c->count; i++) {
            sim_worker *w = &c->worker[i];
            if (items[i].revents & ZMQ_POLLIN) {
                hear(c, w);
            }
            if (w->trial >= 0 && w->sent_ns == 0 && ho_clock_ns() >= w->next_ns) {
                w->next_ns += 1000000000;
                (void)sim_report(w);
                c->reports++;
                if (w->epoch == SIM_TRIAL_REPORTS) {
                    (void)sim_result(w, c->folds, SESSIONS);
                }
            }
        }
    }
    for (int i = 0; i < c->count; i++) {
        zsock_destroy(&c->worker[i].socket);
    }
    free(items);
    (void)kill(getpid(), SIGTERM);
    struct timespec pause = {1, 0};
    (void)nanosleep(&pause, NULL);
    (void)kill(getpid(), SIGTERM);
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void bench_workers(const char *folder, const ho_setup *setup, int count, double seconds)
{
    char artifacts[128];
    ho_err err = {0};
    crowd c = {.count = count, .seconds = seconds, .folds = setup->folds.count, .room = 1000000};
    ho_store *store = make_store(folder, setup, 10000000);
    ho_sampler *sampler = NULL;
    ho_pruner *pruner = NULL;
    ho_dispatch *d = NULL;
    ho_hub *hub = NULL;
    ho_server *server = NULL;
    ho_sampler_options so = ho_search_sampler_options(setup->study, 10000000);
    ho_pruner_options po = ho_search_pruner_options(setup->study, 10000000);
    ho_dispatch_config config = config_of(10000000);
    pthread_t thread;

    (void)snprintf(artifacts, sizeof artifacts, "%s/artifacts", folder);
    must(ho_sampler_create(&sampler, &setup->study->space, &so, &err), &err, "sampler");
    must(ho_pruner_create(&pruner, &po, &err), &err, "pruner");
    must(ho_hub_create(&hub, &err), &err, "hub");
    ho_server_options options = {.setup = setup,
                                 .uuid = "b",
                                 .store = store,
                                 .hub = hub,
                                 .artifacts = artifacts,
                                 .ping_ns = 5000000000,
                                 .greet_ns = 30000000000};
    must(ho_server_create(&server, &options, &err), &err, "server");
    ho_dispatch_io io = ho_server_io(server);
    must(ho_dispatch_create(&d, &config, &io, store, sampler, pruner, &setup->study->space,
                            ho_clock_ns(), &err),
         &err, "dispatch");
    ho_server_set_dispatch(server, d);
    c.endpoint = ho_hub_endpoint(hub);
    c.worker = (sim_worker *)calloc((size_t)count, sizeof *c.worker);
    c.reply_ms = (double *)calloc((size_t)c.room, sizeof *c.reply_ms);
    (void)pthread_create(&thread, NULL, run_crowd, &c);
    double busy_s = thread_cpu_s();
    (void)ho_server_run(server, &err);
    busy_s = thread_cpu_s() - busy_s;
    (void)ho_dispatch_interrupt(d, "bench", ho_clock_ns(), &err);
    (void)pthread_join(thread, NULL);
    qsort(c.reply_ms, (size_t)c.replies, sizeof *c.reply_ms, by_value);
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    if (c.replies == 0) {
        (void)fprintf(stderr, "bench_dispatch: no reply came\n");
        exit(1);
    }
    ho_store_health health = ho_store_get_health(store);
    (void)printf("dispatch  workers=%d  reports=%.0f/s  results=%lld  result to ack: median %.1f "
                 "ms, p99 %.1f ms, worst %.1f ms\n",
                 count, (double)c.reports / seconds, (long long)c.replies,
                 c.reply_ms[c.replies / 2], c.reply_ms[c.replies * 99 / 100],
                 c.reply_ms[c.replies - 1]);
    (void)printf("dispatch  workers=%d  coordinator's CPU %.1f %% of a core  commit: mean %.1f ms, "
                 "longest %.1f ms  memory %.0f MB (simulated workers included)\n",
                 count, 100.0 * busy_s / seconds,
                 1e3 * health.commit_s / (double)(health.commits > 0 ? health.commits : 1),
                 1e3 * health.commit_max_s, (double)usage.ru_maxrss / 1024.0);
    ho_dispatch_destroy(&d);
    ho_server_destroy(&server);
    ho_hub_destroy(&hub);
    ho_pruner_destroy(&pruner);
    ho_sampler_destroy(&sampler);
    ho_store_close(&store);
    free(c.worker);
    free(c.reply_ms);
}

int main(int argc, char **argv)
{
    char folder[] = "bench-dispatch-XXXXXX", study[128], command[96];
    const char *what = argc > 1 ? argv[1] : "";
    struct rlimit limit;
    ho_setup setup;
    ho_err err = {0};

    if (strcmp(what, "trials") != 0 && strcmp(what, "workers") != 0) {
        (void)fprintf(stderr, "usage: bench_dispatch trials [N] | workers [N] [SECONDS]\n");
        return 1;
    }
    if (!mkdtemp(folder)) {
        perror("bench_dispatch");
        return 1;
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    zsys_handler_set(NULL);
    zsys_set_max_sockets(0);
    sim_write_study(folder, BARS, FOLDS);
    (void)snprintf(study, sizeof study, "%s/bench.toml", folder);
    must(ho_setup_load(&setup, study, NULL, &err), &err, "study");
    if (strcmp(what, "trials") == 0) {
        bench_trials(folder, &setup, argc > 2 ? strtol(argv[2], NULL, 10) : 10000);
    } else {
        bench_workers(folder, &setup, argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1000,
                      argc > 3 ? strtod(argv[3], NULL) : 20.0);
    }
    ho_setup_free(&setup);
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) == 0 ? 0 : 1;
}
