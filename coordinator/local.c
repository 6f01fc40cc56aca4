/* SPDX-License-Identifier: Apache-2.0
 * See local.h. */
#include "coordinator/local.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "study/log.h"

enum { ARGUMENTS_MAX = 24, DOUBLINGS_MAX = 6 };

typedef struct child {
    pid_t pid; /* 0: not running */
    bool greeted;
    int deaths;          /* in a row without a hello */
    int64_t start_at_ns; /* when pid is 0 */
    bool given_up;
} child;

struct ho_local {
    ho_local_options options;
    char program[PATH_MAX];
    char *endpoint;
    char **gpu; /* [workers] or NULL */
    child *child;
    int count;
    bool stopped;
};

ho_local_options ho_local_defaults(void)
{
    return (ho_local_options){.workers = 1, .pause_ns = 1000000000, .give_up = 5};
}

void ho_local_program(const char *name, char *out, size_t room)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n > 0) {
        self[n] = '\0';
        char *slash = strrchr(self, '/');
        if (slash) {
            *slash = '\0';
            if (snprintf(out, room, "%s/%s", self, name) < (int)room && access(out, X_OK) == 0) {
                return;
            }
        }
    }
    (void)snprintf(out, room, "%s", name);
}

/* In the child: only calls that are safe between fork and exec. */
static void run_child(char *const *argv)
{
    sigset_t none;
    (void)setpgid(0, 0);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)execvp(argv[0], argv);
    static const char text[] = "hyperopt: cannot start hyperopt-worker\n";
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written;
    _exit(127);
}

static ho_status start(ho_local *local, int i, int64_t now_ns)
{
    char parent[24], threads[24], name[64];
    char *argv[ARGUMENTS_MAX] = {NULL};
    char connect[] = "--connect", parent_flag[] = "--parent", cpu[] = "--cpu", gpu[] = "--gpu";
    char threads_flag[] = "--threads", name_flag[] = "--name", level[] = "--log-level",
         json[] = "--log-json";
    char level_text[16];
    int n = 0;

    (void)snprintf(parent, sizeof parent, "%ld", (long)getpid());
    (void)snprintf(threads, sizeof threads, "%d", local->options.threads);
    (void)snprintf(name, sizeof name, "local-%d", i);
    argv[n++] = local->program;
    argv[n++] = connect;
    argv[n++] = local->endpoint;
    argv[n++] = parent_flag;
    argv[n++] = parent;
    argv[n++] = name_flag;
    argv[n++] = name;
    if (local->gpu) {
        argv[n++] = gpu;
        argv[n++] = local->gpu[i];
    } else {
        argv[n++] = cpu;
        if (local->options.threads > 0) {
            argv[n++] = threads_flag;
            argv[n++] = threads;
        }
    }
    if (local->options.log_level) {
        (void)snprintf(level_text, sizeof level_text, "%s", local->options.log_level);
        argv[n++] = level;
        argv[n++] = level_text;
    }
    if (local->options.log_json) {
        argv[n++] = json;
    }
    pid_t pid = fork();
    if (pid == 0) {
        run_child(argv);
    }
    if (pid < 0) {
        ho_log(HO_LOG_ERROR, "local", "cannot start a worker: %s", strerror(errno));
        local->child[i].start_at_ns = now_ns + local->options.pause_ns;
        return HO_ENOWORKER;
    }
    (void)setpgid(pid, pid); /* here too: whoever is first */
    local->child[i].pid = pid;
    local->child[i].greeted = false;
    ho_log(HO_LOG_INFO, "local", "started worker=%s pid=%ld", name, (long)pid);
    return HO_OK;
}

static int cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) {
        return CPU_COUNT(&set);
    }
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

ho_status ho_local_create(ho_local **out, const ho_local_options *options, int64_t now_ns,
                          ho_err *err)
{
    ho_local *local = (ho_local *)calloc(1, sizeof *local);
    ho_status rc = HO_OK;

    *out = NULL;
    if (!local) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    local->options = *options;
    /* A worker's threads wait for each other by sleeping, not by spinning: on a busy machine (load
     * 14 on 2 cores) the CPU backend makes 14 updates a second instead of 4 (bench_cpu). libgomp
     * reads this before main, so it must be in the worker's environment. */
    (void)setenv("OMP_WAIT_POLICY", "passive", 0);
    if (options->program) {
        (void)snprintf(local->program, sizeof local->program, "%s", options->program);
    } else {
        ho_local_program("hyperopt-worker", local->program, sizeof local->program);
    }
    local->endpoint = strdup(options->endpoint);
    local->child = (child *)calloc((size_t)options->workers + 1, sizeof *local->child);
    local->gpu =
        options->gpu ? (char **)calloc((size_t)options->workers + 1, sizeof *local->gpu) : NULL;
    if (!local->endpoint || !local->child || (options->gpu && !local->gpu)) {
        rc = ho_err_set(err, HO_ENOMEM, "out of memory");
        goto out;
    }
    for (int i = 0; i < options->workers && local->gpu; i++) {
        if (!(local->gpu[i] = strdup(options->gpu[i]))) {
            rc = ho_err_set(err, HO_ENOMEM, "out of memory");
            goto out;
        }
    }
    if (!local->gpu && local->options.threads == 0 && options->workers > 0) {
        int share = cores() / options->workers;
        local->options.threads = share > 0 ? share : 1;
    }
    local->count = options->workers;
    for (int i = 0; i < local->count; i++) {
        if (start(local, i, now_ns) != HO_OK) {
            rc = ho_err_set(err, HO_ENOWORKER, "cannot start %s: %s", local->program,
                            strerror(errno));
            goto out;
        }
    }
    *out = local;
    local = NULL;
out:
    ho_local_destroy(&local, 1000);
    return rc;
}

void ho_local_signal(ho_local *local, int signal)
{
    for (int i = 0; i < local->count; i++) {
        if (local->child[i].pid > 0) {
            (void)kill(local->child[i].pid, signal);
        }
    }
}

void ho_local_destroy(ho_local **local, int grace_ms)
{
    ho_local *l = *local;
    ho_local_death death;
    if (!l) {
        return;
    }
    l->stopped = true;
    ho_local_signal(l, SIGTERM);
    for (int waited = 0; ho_local_alive(l) > 0; waited += 10) {
        while (ho_local_reap(l, 0, &death)) {}
        if (ho_local_alive(l) == 0) {
            break;
        }
        if (waited >= grace_ms) {
            ho_local_signal(l, SIGKILL);
        }
        struct timespec pause = {0, 10000000};
        (void)nanosleep(&pause, NULL);
    }
    for (int i = 0; l->gpu && i < l->options.workers; i++) {
        free(l->gpu[i]);
    }
    free(l->gpu);
    free(l->child);
    free(l->endpoint);
    free(l);
    *local = NULL;
}

bool ho_local_hello(ho_local *local, pid_t pid)
{
    for (int i = 0; i < local->count; i++) {
        if (local->child[i].pid == pid && pid > 0) {
            local->child[i].greeted = true;
            local->child[i].deaths = 0;
            return true;
        }
    }
    return false;
}

static void describe(int status, char *out, size_t room)
{
    if (WIFSIGNALED(status)) {
        (void)snprintf(out, room, "killed by signal %d (%s)", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
    } else if (WEXITSTATUS(status) == 127) {
        (void)snprintf(out, room, "hyperopt-worker could not be started");
    } else {
        (void)snprintf(out, room, "exit code %d", WEXITSTATUS(status));
    }
}

bool ho_local_reap(ho_local *local, int64_t now_ns, ho_local_death *out)
{
    for (int i = 0; i < local->count; i++) {
        child *c = &local->child[i];
        int status = 0;
        if (c->pid <= 0 || waitpid(c->pid, &status, WNOHANG) != c->pid) {
            continue;
        }
        *out = (ho_local_death){.pid = c->pid, .greeted = c->greeted};
        out->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        out->clean = out->code == 0;
        describe(status, out->reason, sizeof out->reason);
        c->pid = 0;
        c->deaths += !c->greeted;
        int doubling = c->deaths < DOUBLINGS_MAX ? c->deaths : DOUBLINGS_MAX;
        c->start_at_ns = now_ns + (local->options.pause_ns << (doubling > 0 ? doubling - 1 : 0));
        c->given_up = c->deaths >= local->options.give_up;
        if (!local->stopped) {
            ho_log(c->given_up ? HO_LOG_ERROR : HO_LOG_WARN, "local", "worker died%s: %s pid=%ld",
                   c->given_up ? ", given up" : "", out->reason, (long)out->pid);
        }
        return true;
    }
    return false;
}

void ho_local_tick(ho_local *local, int64_t now_ns)
{
    for (int i = 0; i < local->count && !local->stopped; i++) {
        child *c = &local->child[i];
        if (c->pid == 0 && !c->given_up && c->start_at_ns <= now_ns) {
            (void)start(local, i, now_ns); /* tried again after the pause */
        }
    }
}

int64_t ho_local_next_ns(const ho_local *local)
{
    int64_t next = INT64_MAX;
    for (int i = 0; i < local->count && !local->stopped; i++) {
        const child *c = &local->child[i];
        if (c->pid == 0 && !c->given_up && c->start_at_ns < next) {
            next = c->start_at_ns;
        }
    }
    return next;
}

void ho_local_stop_restarts(ho_local *local)
{
    local->stopped = true;
}

int ho_local_alive(const ho_local *local)
{
    int alive = 0;
    for (int i = 0; i < local->count; i++) {
        alive += local->child[i].pid > 0;
    }
    return alive;
}

bool ho_local_hopeless(const ho_local *local)
{
    int given_up = 0;
    for (int i = 0; i < local->count; i++) {
        given_up += local->child[i].given_up;
    }
    return local->count > 0 && given_up == local->count;
}
