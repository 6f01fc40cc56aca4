/* SPDX-License-Identifier: Apache-2.0
 * One real coordinator process and N simulated workers over tcp: the coordinator's processor time
 * and memory, how long replies take, bytes on the wire and on the disk. Lines of figures, then one
 * JSON object.
 *     bench_cluster HYPEROPT [WORKERS] [SECONDS] [REPORT_S]
 * HYPEROPT is the program. Each of the WORKERS (1000) trains one trial at a time, reports every
 * REPORT_S (1) seconds, delivers after ten reports and asks for the next. Measured for SECONDS (30)
 * once all have joined. */
#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "simulated.h"

enum { SESSIONS = 260, FOLDS = 4, REPLIES_MAX = 4000000 };

typedef struct bench {
    int count, joined;
    int64_t report_ns;
    sim_worker *worker;
    zmq_pollitem_t *item;
    double *reply_ms;
    int64_t replies, reports;
    int64_t bytes_out, bytes_in; /* of the messages, framing left out; out: worker to coordinator */
    int64_t result_bytes, report_bytes, lease_bytes, study_bytes; /* of one message */
} bench;

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_cluster: %s\n", what);
    _exit(1); /* czmq would list each socket */
}

/* ---- messages ------------------------------------------------------------------------------- */

static void take(bench *b, sim_worker *w, const ho_message *m, int64_t bytes)
{
    if (m->type == HO_MSG_STUDY) {
        b->study_bytes = bytes;
        b->joined += !w->joined;
        w->joined = true;
        b->bytes_out += sim_ready(w);
    } else if (m->type == HO_MSG_TRIALS && m->trials.count > 0) {
        b->lease_bytes = bytes;
        w->trial = m->trials.order[0].trial;
        w->attempt = m->trials.order[0].attempt;
        w->epoch = w->began ? 0 : rand() % SIM_TRIAL_REPORTS; /* out of step from the start */
        w->began = true;
        w->next_ns = sim_clock_ns() + (int64_t)((double)b->report_ns * rand() / RAND_MAX);
    } else if (m->type == HO_MSG_PING) {
        b->bytes_out += sim_pong(w, m->ping.sequence);
    } else if (m->type == HO_MSG_ACK && w->sent_ns > 0) {
        if (b->replies < REPLIES_MAX) {
            b->reply_ms[b->replies++] = (double)(sim_clock_ns() - w->sent_ns) * 1e-6;
        }
        w->sent_ns = 0;
        w->trial = -1;
        b->bytes_out += sim_ready(w);
    } else if (m->type == HO_MSG_REFUSE) {
        die(m->refuse.reason);
    }
}

static void hear(bench *b, sim_worker *w)
{
    ho_message m;
    int64_t bytes = 0;
    bool read = sim_receive(w, &m, &bytes);
    b->bytes_in += bytes;
    if (read) {
        take(b, w, &m, bytes);
        ho_message_clear(&m);
    }
}

static void turn(bench *b)
{
    (void)zmq_poll(b->item, b->count, 5);
    for (int i = 0; i < b->count; i++) {
        sim_worker *w = &b->worker[i];
        if (b->item[i].revents & ZMQ_POLLIN) {
            hear(b, w);
        }
        if (w->trial >= 0 && w->sent_ns == 0 && sim_clock_ns() >= w->next_ns) {
            w->next_ns += b->report_ns;
            b->bytes_out += b->report_bytes = sim_report(w);
            b->reports++;
            if (w->epoch == SIM_TRIAL_REPORTS) {
                b->bytes_out += b->result_bytes = sim_result(w, FOLDS, SESSIONS);
            }
        }
    }
}

/* ---- the coordinator's file ------------------------------------------------------------------ */

/* Size of the database, what still lies in the WAL counted. */
static double database_mb(void)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    double mb = -1.0;
    if (sqlite3_open_v2("bench.db", &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
        sqlite3_busy_timeout(db, 10000) == SQLITE_OK &&
        sqlite3_prepare_v2(db,
                           "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
                           -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        mb = sqlite3_column_double(statement, 0) / 1048576.0;
    }
    (void)sqlite3_finalize(statement);
    (void)sqlite3_close(db);
    if (mb < 0.0) {
        die("cannot read the database");
    }
    return mb;
}

/* Processor seconds of this process so far. */
static double own_cpu_s(void)
{
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- main ----------------------------------------------------------------------------------- */

static void print(const bench *b, double seconds, double join_s, double cpu_s, double own_s,
                  double memory_mb, double db_mb)
{
    double median = b->reply_ms[b->replies / 2], p99 = b->reply_ms[b->replies * 99 / 100],
           worst = b->reply_ms[b->replies - 1], kb_trial = db_mb * 1024.0 / (double)b->replies;
    (void)printf("cluster  workers=%d  joined in %.1f s  %.0f reports/s  %.1f results/s\n",
                 b->count, join_s, (double)b->reports / seconds, (double)b->replies / seconds);
    (void)printf("cluster  workers=%d  coordinator %.1f %% of a core, %.0f MB resident (simulated "
                 "workers: %.1f %%)\n",
                 b->count, 100.0 * cpu_s / seconds, memory_mb, 100.0 * own_s / seconds);
    (void)printf(
        "cluster  workers=%d  result to ack (after commit) ms: median %.1f  p99 %.1f  worst "
        "%.1f\n",
        b->count, median, p99, worst);
    (void)printf("cluster  workers=%d  database %.1f kB a trial (%d reports, %d folds, %d sessions "
                 "each)\n",
                 b->count, kb_trial, SIM_TRIAL_REPORTS, FOLDS, SESSIONS);
    (void)printf(
        "cluster  workers=%d  messages, bytes: study %lld, lease %lld, report %lld, result "
        "%lld; to the coordinator %.1f kB/s, from it %.1f kB/s\n",
        b->count, (long long)b->study_bytes, (long long)b->lease_bytes, (long long)b->report_bytes,
        (long long)b->result_bytes, (double)b->bytes_out / 1024.0 / seconds,
        (double)b->bytes_in / 1024.0 / seconds);
    (void)printf("{\"bench\":\"cluster\",\"workers\":%d,\"seconds\":%.1f,\"join_s\":%.2f,"
                 "\"reports_per_s\":%.1f,\"results_per_s\":%.2f,\"coordinator_core_share\":%.4f,"
                 "\"coordinator_mb\":%.1f,\"ack_ms_median\":%.2f,\"ack_ms_p99\":%.2f,"
                 "\"ack_ms_worst\":%.2f,\"database_kb_per_trial\":%.2f,\"report_bytes\":%lld,"
                 "\"result_bytes\":%lld}\n",
                 b->count, seconds, join_s, (double)b->reports / seconds,
                 (double)b->replies / seconds, cpu_s / seconds, memory_mb, median, p99, worst,
                 kb_trial, (long long)b->report_bytes, (long long)b->result_bytes);
}

static void simulate(bench *b, pid_t coordinator, const char *endpoint, double wanted_s)
{
    double cpu0 = 0, cpu1 = 0, memory_mb = 0;
    int64_t begin = sim_clock_ns();
    for (int i = 0; i < b->count; i++) {
        b->worker[i].socket = zsock_new_dealer(endpoint);
        if (!b->worker[i].socket) {
            die("no more sockets: raise `ulimit -n`");
        }
        zsock_set_linger(b->worker[i].socket, 0);
        b->worker[i].trial = -1;
        b->item[i] =
            (zmq_pollitem_t){.socket = zsock_resolve(b->worker[i].socket), .events = ZMQ_POLLIN};
        b->bytes_out += sim_hello(&b->worker[i], i);
    }
    while (b->joined < b->count && sim_clock_ns() - begin < 300 * INT64_C(1000000000)) {
        turn(b);
    }
    if (b->joined < b->count) {
        die("not all workers could join");
    }
    double join_s = (double)(sim_clock_ns() - begin) * 1e-9;
    for (int64_t settle = sim_clock_ns(); sim_clock_ns() - settle < 2 * b->report_ns;) {
        turn(b);
    }
    b->replies = b->reports = b->bytes_in = b->bytes_out = 0;
    double db0 = database_mb();
    double own0 = own_cpu_s();
    sim_usage(coordinator, &cpu0, &memory_mb);
    begin = sim_clock_ns();
    while ((double)(sim_clock_ns() - begin) * 1e-9 < wanted_s) {
        turn(b);
    }
    double seconds = (double)(sim_clock_ns() - begin) * 1e-9;
    sim_usage(coordinator, &cpu1, &memory_mb);
    double db1 = database_mb();
    if (b->replies == 0) {
        die("no reply came");
    }
    qsort(b->reply_ms, (size_t)b->replies, sizeof *b->reply_ms, by_value);
    print(b, seconds, join_s, cpu1 - cpu0, own_cpu_s() - own0, memory_mb, db1 - db0);
    for (int i = 0; i < b->count; i++) {
        zsock_destroy(&b->worker[i].socket);
    }
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/bench-cluster-XXXXXX", endpoint[128], command[96];
    struct rlimit limit;
    bench b = {.count = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1000};
    double seconds = argc > 3 ? strtod(argv[3], NULL) : 30.0;
    double report_s = argc > 4 ? strtod(argv[4], NULL) : 1.0;
    char program[4096];

    if (argc < 2 || b.count < 1 || !(seconds > 0.0) || !(report_s > 0.0) ||
        !realpath(argv[1], program)) {
        die("usage: bench_cluster HYPEROPT [WORKERS] [SECONDS] [REPORT_S]");
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (!mkdtemp(folder) || chdir(folder) != 0) {
        die("cannot make a folder in /tmp");
    }
    zsys_handler_set(NULL);
    zsys_set_max_sockets(0);
    b.report_ns = (int64_t)(report_s * 1e9);
    b.worker = (sim_worker *)calloc((size_t)b.count, sizeof *b.worker);
    b.item = (zmq_pollitem_t *)calloc((size_t)b.count, sizeof *b.item);
    b.reply_ms = (double *)calloc(REPLIES_MAX, sizeof *b.reply_ms);
    if (!b.worker || !b.item || !b.reply_ms) {
        die("out of memory");
    }
    sim_write_study(".", 6000, FOLDS);
    pid_t coordinator = sim_start_coordinator(program, endpoint, sizeof endpoint);
    simulate(&b, coordinator, endpoint, seconds);
    (void)kill(coordinator, SIGUSR1);
    (void)waitpid(coordinator, NULL, 0);
    free(b.worker);
    free(b.item);
    free(b.reply_ms);
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) == 0 ? 0 : 1;
}
