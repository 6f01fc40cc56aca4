/* SPDX-License-Identifier: Apache-2.0
 * See simulated.h. */
#include "simulated.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int64_t sim_clock_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void die(const char *what)
{
    (void)fprintf(stderr, "simulated worker: %s\n", what);
    _exit(1); /* czmq would list each socket */
}

int64_t sim_say(sim_worker *w, const ho_message *m)
{
    ho_frames frames;
    ho_err err = {0};
    int64_t bytes = 0;
    if (ho_wire_encode(m, &frames, &err) != HO_OK) {
        die(err.text);
    }
    for (int i = 0; i < frames.count; i++) {
        bytes += (int64_t)frames.frame[i].size;
        (void)zmq_send(zsock_resolve(w->socket), frames.frame[i].data, frames.frame[i].size,
                       ZMQ_DONTWAIT | (i + 1 < frames.count ? ZMQ_SNDMORE : 0));
    }
    ho_frames_clear(&frames);
    return bytes;
}

int64_t sim_hello(sim_worker *w, int number)
{
    ho_message m = ho_message_make(HO_MSG_HELLO);
    (void)snprintf(m.hello.name, sizeof m.hello.name, "sim-%d", number);
    (void)snprintf(m.hello.uuid, sizeof m.hello.uuid, "%032d", number);
    (void)snprintf(m.hello.host, sizeof m.hello.host, "bench");
    m.hello.pid = number + 1;
    m.hello.lanes = 8;
    return sim_say(w, &m);
}

int64_t sim_ready(sim_worker *w)
{
    ho_message m = ho_message_make(HO_MSG_READY);
    m.ready.slots = 1;
    m.ready.lanes = 8;
    return sim_say(w, &m);
}

int64_t sim_pong(sim_worker *w, int64_t sequence)
{
    ho_message m = ho_message_make(HO_MSG_PONG);
    m.pong.sequence = sequence;
    return sim_say(w, &m);
}

int64_t sim_report(sim_worker *w)
{
    ho_message m = ho_message_make(HO_MSG_REPORT);
    m.trial = w->trial;
    m.attempt = w->attempt;
    m.report.epoch = ++w->epoch;
    m.report.stat.epoch = w->epoch;
    m.report.scored = true;
    m.report.value_count = 1;
    m.report.value[0] = sin((double)w->epoch);
    m.report.parent = -1;
    return sim_say(w, &m);
}

int64_t sim_result(sim_worker *w, int folds, int sessions)
{
    static double returns[SIM_SESSIONS_MAX];
    static int32_t id[SIM_SESSIONS_MAX];
    static ho_scored_window window[SIM_FOLDS_MAX];
    ho_message m = ho_message_make(HO_MSG_RESULT);
    memset(window, 0, sizeof window);
    for (int f = 0; f < folds; f++) {
        window[f].fold = f;
        window[f].random_percentile = NAN;
        window[f].result.initial_capital = 1e6;
        window[f].result.sessions = sessions;
        window[f].result.session_return = returns;
        window[f].result.session_id = id;
    }
    for (int i = 0; i < sessions; i++) {
        returns[i] = 0.01 * sin(i + (double)w->trial);
        id[i] = i;
    }
    m.trial = w->trial;
    m.attempt = w->attempt;
    m.result.epochs = w->epoch;
    m.result.train_s = SIM_TRIAL_REPORTS;
    m.result.window_count = folds;
    m.result.window = window;
    int64_t bytes = sim_say(w, &m);
    w->sent_ns = sim_clock_ns();
    return bytes;
}

bool sim_receive(sim_worker *w, ho_message *out, int64_t *bytes)
{
    ho_frame frame[HO_WIRE_FRAMES_MAX];
    zmsg_t *message = zmsg_recv(w->socket);
    int count = 0;
    *bytes = 0;
    if (!message) {
        return false;
    }
    for (zframe_t *f = zmsg_first(message); f && count < HO_WIRE_FRAMES_MAX;
         f = zmsg_next(message)) {
        frame[count++] = (ho_frame){zframe_data(f), zframe_size(f)};
        *bytes += (int64_t)zframe_size(f);
    }
    bool read = ho_wire_decode(frame, count, out, NULL) == HO_OK;
    zmsg_destroy(&message);
    return read;
}

void sim_write_study(const char *folder, int bars, int folds)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/bars.csv", folder);
    FILE *file = fopen(path, "w");
    (void)fprintf(file, "time,open,high,low,close,volume\n");
    for (int i = 0; i < bars; i++) {
        double price = 100.0 + 5.0 * sin(i * 0.01);
        (void)fprintf(file, "%lld,%.4f,%.4f,%.4f,%.4f,1000\n", 1600000000ll + 3600ll * i, price,
                      price + 0.1, price - 0.1, price + 0.05);
    }
    (void)fclose(file);
    (void)snprintf(path, sizeof path, "%s/bench.toml", folder);
    file = fopen(path, "w");
    (void)fprintf(
        file,
        "[study]\nname = \"bench\"\ntrials = 10000000\n[data]\npath = \"bars.csv\"\n"
        "[folds]\ncount = %d\n[sampler]\nkind = \"random\"\n[pruner]\nkind = \"none\"\n"
        "[search]\n\"dqn.learning_rate\" = { float = [1e-5, 3e-3], log = true }\n"
        "\"dqn.gamma\" = { float = [0.9, 0.999] }\n\"dqn.tau\" = { float = [0.001, 0.1] }\n"
        "\"barriers.stop_loss\" = { float = [10, 80] }\n",
        folds);
    (void)fclose(file);
}

/* ---- the coordinator ------------------------------------------------------------------------ */

static pid_t start(const char *program)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        int log = open("log", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        (void)dup2(log, STDOUT_FILENO);
        (void)dup2(log, STDERR_FILENO);
        (void)execl(program, program, "run", "bench.toml", "--no-local", "--listen",
                    "tcp://127.0.0.1:*", "--quiet", "--log-level", "info", (char *)NULL);
        _exit(127);
    }
    return pid;
}

static void find_endpoint(pid_t pid, char *out, size_t room)
{
    for (int i = 0; i < 6000; i++) {
        char line[512];
        FILE *log = fopen("log", "r");
        while (log && fgets(line, sizeof line, log)) {
            char *at = strstr(line, "listening endpoint=");
            if (at) {
                at += strlen("listening endpoint=");
                at[strcspn(at, " \n")] = '\0';
                (void)snprintf(out, room, "%.*s", (int)room - 1, at);
                (void)fclose(log);
                return;
            }
        }
        if (log) {
            (void)fclose(log);
        }
        if (waitpid(pid, NULL, WNOHANG) != 0) {
            die("the coordinator ended at once");
        }
        (void)usleep(10000);
    }
    die("the coordinator does not listen");
}

pid_t sim_start_coordinator(const char *program, char *endpoint, size_t room)
{
    pid_t pid = start(program);
    find_endpoint(pid, endpoint, room);
    return pid;
}

void sim_usage(pid_t pid, double *cpu_s, double *memory_mb)
{
    char path[64], text[1024] = "";
    unsigned long user = 0, system_ticks = 0;
    long pages = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *file = fopen(path, "r");
    if (!file || !fgets(text, sizeof text, file)) {
        die("the coordinator is gone");
    }
    (void)fclose(file);
    char *after = strrchr(text, ')');
    if (!after || sscanf(after + 2,
                         "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d "
                         "%*d %*d %*u %*u %ld",
                         &user, &system_ticks, &pages) != 3) {
        die("/proc/PID/stat is not understood");
    }
    *cpu_s = (double)(user + system_ticks) / (double)sysconf(_SC_CLK_TCK);
    *memory_mb = (double)pages * (double)sysconf(_SC_PAGESIZE) / 1048576.0;
}
