/* SPDX-License-Identifier: Apache-2.0
 * hyperopt serve DIR: the studies of a folder, one after the other on the same workers, in slices
 * of time. Who has had the least time for its priority is next; a slice ends when another waits and
 * is due, after the running trials. Files may be dropped in, changed or removed at any time. */
#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "coordinator/commands.h"
#include "coordinator/read_ahead.h"
#include "coordinator/run.h"
#include "coordinator/server.h"
#include "study/log.h"

enum { STUDIES_MAX = 4096, IDLE_S = 1 };

typedef struct entry {
    char path[PATH_MAX];
    struct timespec changed; /* of the file, when it was looked at last */
    double used_s;           /* time it had */
    int64_t priority;
    bool over;  /* ended, or failed: looked at again when its file changes */
    bool there; /* seen in the last scan */
    bool ahead; /* its data was read, or tried, while another one ran */
} entry;

typedef struct queue {
    const char *folder;
    double slice_s;
    bool once;    /* ends when every study has ended */
    entry *entry; /* [count] */
    int count, room;
    int running;          /* index of the running one; -1: none */
    int64_t start_ns;     /* of its slice */
    ho_read_ahead *ahead; /* of the study that is due next */
} queue;

static entry *find(queue *q, const char *path)
{
    for (int i = 0; i < q->count; i++) {
        if (strcmp(q->entry[i].path, path) == 0) {
            return &q->entry[i];
        }
    }
    return NULL;
}

/* Least time for its priority among those that waited least long: a newcomer starts level with the
 * one that had least, so that it does not make up for the time before it came. */
static double least_share(const queue *q)
{
    double least = -1.0;
    for (int i = 0; i < q->count; i++) {
        double share = q->entry[i].used_s / (double)q->entry[i].priority;
        if (!q->entry[i].over && (least < 0.0 || share < least)) {
            least = share;
        }
    }
    return least < 0.0 ? 0.0 : least;
}

static void read_priority(entry *e)
{
    ho_study *study = NULL;
    ho_err err = {0};
    e->priority = 1;
    if (ho_study_load(e->path, &study, &err) == HO_OK) {
        e->priority = ho_settings_i64(study->settings, HO_KEY_STUDY_PRIORITY);
        ho_study_free(&study);
    } else {
        ho_log(HO_LOG_ERROR, "serve", "%s", err.text);
        e->over = true;
    }
}

static void look_at(queue *q, const char *name)
{
    char path[PATH_MAX];
    struct stat info;
    size_t length = strlen(name);
    if (name[0] == '.' || length < 6 || strcmp(name + length - 5, ".toml") != 0 ||
        snprintf(path, sizeof path, "%s/%s", q->folder, name) >= (int)sizeof path ||
        stat(path, &info) != 0 || !S_ISREG(info.st_mode)) {
        return;
    }
    entry *e = find(q, path);
    if (!e) {
        if (q->count == STUDIES_MAX) {
            return;
        }
        if (q->count == q->room) {
            int room = q->room ? 2 * q->room : 16;
            entry *bigger = (entry *)realloc(q->entry, (size_t)room * sizeof *bigger);
            if (!bigger) {
                return; /* seen again in the next scan */
            }
            q->entry = bigger;
            q->room = room;
        }
        double level = least_share(q);
        e = &q->entry[q->count++];
        *e = (entry){.changed = info.st_mtim};
        (void)snprintf(e->path, sizeof e->path, "%s", path);
        read_priority(e);
        e->used_s = level * (double)e->priority;
        ho_log(HO_LOG_INFO, "serve", "found study=%s priority=%lld", path, (long long)e->priority);
    } else if (e->changed.tv_sec != info.st_mtim.tv_sec ||
               e->changed.tv_nsec != info.st_mtim.tv_nsec) {
        e->changed = info.st_mtim;
        e->over = false;
        e->ahead = false;
        read_priority(e);
    }
    e->there = true;
}

static void scan(queue *q)
{
    DIR *dir = opendir(q->folder);
    struct dirent *item = NULL;
    for (int i = 0; i < q->count; i++) {
        q->entry[i].there = false;
    }
    while (dir && (item = readdir(dir))) {
        look_at(q, item->d_name);
    }
    if (dir) {
        (void)closedir(dir);
    }
}

/* The study that is due: least time for its priority; equal ones by name. -1: none. */
static int next_due(const queue *q)
{
    int best = -1;
    for (int i = 0; i < q->count; i++) {
        const entry *e = &q->entry[i];
        if (e->over || !e->there) {
            continue;
        }
        if (best < 0) {
            best = i;
            continue;
        }
        double mine = e->used_s / (double)e->priority;
        double other = q->entry[best].used_s / (double)q->entry[best].priority;
        if (mine < other || (mine == other && strcmp(e->path, q->entry[best].path) < 0)) {
            best = i;
        }
    }
    return best;
}

/* Reads the data of the study that would be due next, once, beside the running one. */
static void look_ahead(queue *q)
{
    entry *running = &q->entry[q->running];
    bool over = running->over;
    running->over = true; /* who is due when it has ended */
    int next = next_due(q);
    running->over = over;
    bool busy = q->ahead && !ho_read_ahead_done(q->ahead);
    if (next >= 0 && !q->entry[next].ahead && !busy) {
        q->entry[next].ahead = true;
        ho_read_ahead_end(&q->ahead);
        q->ahead = ho_read_ahead_begin(q->entry[next].path);
    }
}

/* The running study has had its slice and another one is due; or its file is gone. */
static bool should_yield(void *user)
{
    queue *q = (queue *)user;
    double used = (double)(ho_clock_ns() - q->start_ns) * 1e-9;
    scan(q);
    entry *e = &q->entry[q->running];
    if (!e->there) {
        return true;
    }
    look_ahead(q);
    if (used < q->slice_s) {
        return false;
    }
    double before = e->used_s;
    e->used_s += used;
    int due = next_due(q);
    e->used_s = before;
    return due >= 0 && due != q->running;
}

/* Whether a study follows the running one, which has yielded or ended. */
static bool follows(bool yielded, void *user)
{
    queue *q = (queue *)user;
    scan(q);
    entry *running = &q->entry[q->running];
    bool over = running->over;
    running->over = !yielded;
    int next = next_due(q);
    running->over = over;
    return !q->once || next >= 0;
}

/* Sleeps a little; false when a signal says to leave. */
static bool wait_a_little(void)
{
    sigset_t set;
    struct timespec pause = {IDLE_S, 0};
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGUSR1);
    return sigtimedwait(&set, NULL, &pause) < 0;
}

static void default_database(const char *study, char *out, size_t room)
{
    (void)snprintf(out, room, "%.*s.db", (int)(strlen(study) - 5), study);
}

/* Runs one slice. HO_ECANCELLED: a signal. */
static ho_status run_slice(queue *q, ho_run_options options, int index, ho_err *err)
{
    char path[PATH_MAX], database[PATH_MAX];
    ho_run_end end;
    (void)snprintf(path, sizeof path, "%s", q->entry[index].path);
    default_database(path, database, sizeof database);
    options.study = path;
    options.database = database;
    options.yield = should_yield;
    options.follows = follows;
    options.user = q;
    q->entry[index].ahead = true; /* it reads its data itself */
    ho_read_ahead_end(&q->ahead);
    q->running = index;
    q->start_ns = ho_clock_ns();
    ho_log(HO_LOG_INFO, "serve", "slice begins study=%s", path);
    ho_status rc = ho_run(&options, &end, err);
    entry *e = find(q, path);
    e->used_s += (double)(ho_clock_ns() - q->start_ns) * 1e-9;
    q->running = -1;
    if (rc == HO_OK) {
        e->over = !end.yielded;
        (void)printf("%s: %s after %lld trials in this slice\n", path,
                     end.yielded ? "another study's turn" : end.reason,
                     (long long)end.finished_here);
        (void)fflush(stdout);
    } else if (rc != HO_ECANCELLED) {
        e->over = true;
        (void)fprintf(stderr, "hyperopt serve: %s\n", err->text);
        ho_err_clear(err);
        rc = HO_OK; /* the others go on */
    }
    return rc;
}

int ho_cmd_serve(int argc, char **argv)
{
    ho_run_options o = {.quiet = true};
    queue q = {.slice_s = 600.0, .running = -1};
    ho_arguments args;
    ho_err err = {0};
    struct stat info;
    const ho_option option[] = {
        {"slice", 0, HO_OPTION_DURATION, &q.slice_s, "TIME",
         "a study's turn while others wait (10m)", 0, 0},
        {"once", 0, HO_OPTION_FLAG, &q.once, NULL, "end when every study has ended", 0, 0},
        {"cpu", 0, HO_OPTION_FLAG, &o.cpu, NULL, "use the CPU backend even where there is a GPU", 0,
         0},
        {"workers", 'w', HO_OPTION_INTEGER, &o.workers, "N", "local CPU workers", 1, 1024},
        {"listen", 0, HO_OPTION_STRING, &o.listen, "ENDPOINT",
         "take remote workers too, e.g. tcp://*:5555", 0, 0},
        {"curve", 0, HO_OPTION_STRING, &o.curve, "DIR", "keys made by `hyperopt keygen`", 0, 0},
        {"insecure", 0, HO_OPTION_FLAG, &o.insecure, NULL,
         "listen beyond this machine without CURVE", 0, 0},
        {"no-local", 0, HO_OPTION_FLAG, &o.no_local, NULL, "start no local worker", 0, 0},
    };
    const ho_usage usage = {
        .name = "serve",
        .arguments = "DIR",
        .about =
            "Runs every study file dropped into a folder, in turns on the same workers: the study "
            "that\n"
            "has had the least time for its study.priority is next. A turn ends with its running\n"
            "trials; the next study's data is read meanwhile. Each database lies beside its study\n"
            "file. A changed file is looked at again, a removed one stops. Remote workers stay "
            "from\n"
            "one study to the next. Ctrl-C drains, as in `run`.",
        .examples =
            "  hyperopt serve queue/\n"
            "  hyperopt serve queue/ --slice 30m --listen tcp://*:5555 --curve keys/ --no-local\n",
        .option = option,
        .option_count = sizeof option / sizeof option[0],
        .min_arguments = 1,
        .max_arguments = 1,
    };
    ho_status rc = ho_usage_parse(&usage, argc, argv, &args);
    if (rc != HO_OK) {
        return ho_exit_code(rc);
    }
    q.folder = args.item[0];
    if (stat(q.folder, &info) != 0 || !S_ISDIR(info.st_mode)) {
        (void)fprintf(stderr, "hyperopt serve: %s: not a folder\n", q.folder);
        return HO_EXIT_USAGE;
    }
    ho_server_block_signals();
    while (rc == HO_OK) {
        scan(&q);
        int due = next_due(&q);
        if (due >= 0) {
            rc = run_slice(&q, o, due, &err);
        } else if (q.once) {
            break;
        } else if (!wait_a_little()) {
            rc = HO_ECANCELLED;
        }
    }
    ho_read_ahead_end(&q.ahead);
    free(q.entry);
    return rc == HO_ECANCELLED ? HO_EXIT_INTERRUPTED : HO_EXIT_OK;
}
