/* SPDX-License-Identifier: Apache-2.0
 * See progress.h. */
#include "coordinator/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "coordinator/output.h"
#include "study/log.h"

enum { NARROW = 40, BAR_MIN = 10, BAR_MAX = 30, LINE_ROOM = 512 };
static const int64_t paint_ns = 100000000, plain_ns = 1000000000, quiet_ns = 30000000000;

struct ho_progress {
    FILE *out;
    char metric[64];
    bool terminal, quiet, painted;
    int64_t start_ns, last_ns;
    int64_t last_ended;
    int64_t last_best;
    char line[LINE_ROOM];
};

/* The log writes between two paintings. */
static void step_aside(bool before, void *user)
{
    ho_progress *p = (ho_progress *)user;
    if (p->painted) {
        (void)fputs(before ? "\r\033[K" : p->line, p->out);
        (void)fflush(p->out);
    }
}

ho_progress *ho_progress_create(FILE *out, const char *metric, bool quiet, int64_t now_ns)
{
    ho_progress *p = (ho_progress *)calloc(1, sizeof *p);
    const char *term = getenv("TERM");
    if (!p) {
        return NULL;
    }
    p->out = out;
    p->quiet = quiet;
    p->start_ns = now_ns;
    p->last_best = -1;
    (void)snprintf(p->metric, sizeof p->metric, "%s", metric);
    p->terminal = isatty(fileno(out)) && term && strcmp(term, "dumb") != 0;
    if (p->terminal && !quiet) {
        ho_log_set_hook(step_aside, p);
    }
    return p;
}

void ho_progress_destroy(ho_progress **progress)
{
    ho_progress *p = *progress;
    if (!p) {
        return;
    }
    ho_log_set_hook(NULL, NULL);
    if (p->painted) {
        (void)fputs("\n", p->out);
        (void)fflush(p->out);
    }
    free(p);
    *progress = NULL;
}

static int columns(FILE *out)
{
    struct winsize size;
    if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col;
    }
    return 80;
}

static void bar(int64_t done, int64_t running, int64_t target, int width, char *out)
{
    int full = target > 0 ? (int)(done * width / target) : 0;
    int begun = target > 0 ? (int)((done + running) * width / target) : 0;
    for (int i = 0; i < width; i++) {
        out[i] = i < full ? '#' : i < begun ? '-' : '.';
    }
    out[width] = '\0';
}

/* What is written after the bar, the most important first, as much as fits. */
static void add_part(char *out, size_t room, int width, const char *part)
{
    size_t used = strlen(out), more = strlen(part);
    if (used + more + 2 <= (size_t)width && used + more + 3 < room) {
        (void)snprintf(out + used, room - used, "%s%s", used ? "  " : "", part);
    }
}

void ho_progress_line(const ho_dispatch_view *view, const char *metric, double elapsed_s, int width,
                      char *out, size_t room)
{
    int64_t done = view->complete + view->pruned + view->failed;
    double rate = elapsed_s > 0.0 ? (double)view->finished_here / elapsed_s : 0.0;
    char part[160], left[40];

    out[0] = '\0';
    if (width >= NARROW + BAR_MIN) {
        char drawn[BAR_MAX + 1];
        int wide = (width - NARROW) / 2 < BAR_MAX ? (width - NARROW) / 2 : BAR_MAX;
        bar(done, view->running, view->target, wide > BAR_MIN ? wide : BAR_MIN, drawn);
        (void)snprintf(part, sizeof part, "[%s]", drawn);
        add_part(out, room, width, part);
    }
    (void)snprintf(part, sizeof part, "%lld/%lld", (long long)done, (long long)view->target);
    add_part(out, room, width, part);
    if (view->best_number >= 0) {
        (void)snprintf(part, sizeof part, "best %s %.4g (trial %lld)", metric, view->best_value,
                       (long long)view->best_number);
        add_part(out, room, width, part);
    }
    if (view->paused) {
        (void)snprintf(part, sizeof part, "PAUSED: %s", view->paused);
        add_part(out, room, width, part);
    } else if (view->draining && view->running > 0) {
        (void)snprintf(part, sizeof part, "draining, %lld running", (long long)view->running);
        add_part(out, room, width, part);
    } else if (rate > 0.0 && done < view->target) {
        ho_output_duration((double)(view->target - done) / rate, left, sizeof left);
        (void)snprintf(part, sizeof part, "%s left", left);
        add_part(out, room, width, part);
    }
    if (rate > 0.0) {
        (void)snprintf(part, sizeof part, rate >= 1.0 ? "%.1f trials/s" : "%.1f trials/min",
                       rate >= 1.0 ? rate : rate * 60.0);
        add_part(out, room, width, part);
    }
    if (view->failed > 0) {
        (void)snprintf(part, sizeof part, "%lld failed", (long long)view->failed);
        add_part(out, room, width, part);
    }
    if (view->pruned > 0) {
        (void)snprintf(part, sizeof part, "%lld pruned", (long long)view->pruned);
        add_part(out, room, width, part);
    }
    if (view->workers == 0) {
        add_part(out, room, width, "waiting for a worker");
    }
}

static void paint(ho_progress *p, const ho_dispatch_view *view, int64_t now_ns)
{
    char text[LINE_ROOM - 8];
    const char *color = getenv("NO_COLOR");
    int width = columns(p->out) - 1; /* a full line would wrap */
    ho_progress_line(view, p->metric, (double)(now_ns - p->start_ns) * 1e-9, width, text,
                     sizeof text);
    (void)fputs("\r\033[K", p->out);
    if (!(color && color[0]) && text[0] == '[') { /* the bar in green */
        char *end = strchr(text, ']');
        (void)fprintf(p->out, "\033[32m%.*s\033[0m%s", (int)(end - text + 1), text, end + 1);
    } else {
        (void)fputs(text, p->out);
    }
    (void)fflush(p->out);
    (void)snprintf(p->line, sizeof p->line, "%s", text);
    p->painted = true;
}

void ho_progress_update(ho_progress *p, const ho_dispatch_view *view, int64_t now_ns)
{
    int64_t ended = view->complete + view->pruned + view->failed;
    bool changed = ended != p->last_ended || view->best_number != p->last_best;
    bool all = ended >= view->target && changed;

    if (p->quiet) {
        return;
    }
    if (p->terminal) {
        if (now_ns - p->last_ns >= paint_ns || all) {
            paint(p, view, now_ns);
            p->last_ns = now_ns;
            p->last_ended = ended;
            p->last_best = view->best_number;
        }
        return;
    }
    if (all || (changed && now_ns - p->last_ns >= plain_ns) || now_ns - p->last_ns >= quiet_ns) {
        char text[LINE_ROOM];
        bool first = p->last_ns == 0 && !changed;
        p->last_ns = now_ns;
        p->last_ended = ended;
        p->last_best = view->best_number;
        if (first) {
            return; /* nothing to say yet: the half minute begins */
        }
        ho_progress_line(view, p->metric, (double)(now_ns - p->start_ns) * 1e-9, NARROW + 160, text,
                         sizeof text);
        (void)fprintf(p->out, "%s\n", text + (text[0] == '[' ? strcspn(text, "]") + 3 : 0));
        (void)fflush(p->out);
    }
}
