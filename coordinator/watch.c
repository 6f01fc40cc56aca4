/* SPDX-License-Identifier: Apache-2.0
 * See watch.h. The screen is laid out from the top: title, bar, counts, then as many rows of the
 * leaderboard, of running trials and of workers as there is room for; a line that is too long is
 * cut at the right edge. Readable from 80 x 24 on; below 40 x 8 only the first lines are drawn. */
#include "coordinator/watch.h"

#include <curses.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <unistd.h>

#include "coordinator/output.h"
#include "coordinator/overfit_study.h"

enum { PAIR_GOOD = 1, PAIR_BAD = 2, PAIR_DIM = 3, ESCAPE = 27, NARROW = 76 };
static const double least_s = 0.1;

typedef struct screen {
    ho_store *store;
    ho_err *err;
    int y; /* next line */
    bool color;
} screen;

static volatile sig_atomic_t ended;

static void on_signal(int number)
{
    (void)number;
    ended = 1;
}

/* ---- drawing -------------------------------------------------------------------------------- */

/* A piece of text at (y, x), cut at the right edge. */
__attribute__((format(printf, 4, 5))) static void text(screen *s, int x, attr_t attribute,
                                                       const char *format, ...)
{
    char line[512];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(line, sizeof line, format, list);
    va_end(list);
    if (s->y < LINES && x < COLS) {
        (void)attron(attribute);
        (void)mvaddnstr(s->y, x, line, COLS - x);
        (void)attroff(attribute);
    }
}

static attr_t pair(const screen *s, int number)
{
    return s->color ? (attr_t)COLOR_PAIR(number) : number == PAIR_DIM ? A_DIM : A_BOLD;
}

static int rows_left(const screen *s)
{
    return LINES - 1 - s->y; /* the last line is the key help */
}

/* ---- reading -------------------------------------------------------------------------------- */

static sqlite3_stmt *query(screen *s, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(ho_store_db(s->store), sql, -1, &statement, NULL) != SQLITE_OK) {
        ho_err_set(s->err, HO_ESTORE, "%s: %s", ho_store_path(s->store),
                   sqlite3_errmsg(ho_store_db(s->store)));
        return NULL;
    }
    return statement;
}

static const char *column_text(sqlite3_stmt *statement, int i)
{
    const char *value = (const char *)sqlite3_column_text(statement, i);
    return value ? value : "";
}

/* A number, or "-" where it is not known. */
static const char *column_number(sqlite3_stmt *statement, int i, char out[24])
{
    if (sqlite3_column_type(statement, i) == SQLITE_NULL) {
        (void)snprintf(out, 24, "-");
    } else {
        (void)snprintf(out, 24, "%.4g", sqlite3_column_double(statement, i));
    }
    return out;
}

/* ---- the parts of the screen ---------------------------------------------------------------- */

static void draw_bar(screen *s, int64_t done, int64_t running, int64_t asked)
{
    int width = COLS - 2 < 60 ? COLS - 2 : 60;
    int full = asked > 0 ? (int)(done * width / asked) : 0;
    int begun = asked > 0 ? (int)((done + running) * width / asked) : 0;
    full = full > width ? width : full;
    begun = begun > width ? width : begun;
    if (width < 4 || s->y >= LINES) {
        return;
    }
    (void)mvaddch(s->y, 0, '[');
    (void)attron(pair(s, PAIR_GOOD));
    for (int i = 0; i < full; i++) {
        (void)addch('#');
    }
    (void)attroff(pair(s, PAIR_GOOD));
    for (int i = full; i < width; i++) {
        (void)addch(i < begun ? '-' : '.');
    }
    (void)addch(']');
    text(s, width + 3, A_NORMAL, "%.0f %%", asked > 0 ? 100.0 * (double)done / (double)asked : 0.0);
    s->y++;
}

static void draw_head(screen *s)
{
    char left[40], span[40];
    sqlite3_stmt *q =
        query(s, "SELECT name, state, coalesce(reason, ''), asked, complete, pruned, failed, "
                 "running, waiting, (coalesce(last_finish_ns, first_start_ns) - first_start_ns) * "
                 "1e-9, (SELECT metric FROM objective WHERE id = 0), best_trial, best_value, "
                 "(julianday('now') - 2440587.5) * 86400 - first_start_ns * 1e-9 FROM "
                 "study_progress");
    if (!q) {
        return;
    }
    if (sqlite3_step(q) == SQLITE_ROW) {
        int64_t asked = sqlite3_column_int64(q, 3);
        int64_t done =
            sqlite3_column_int64(q, 4) + sqlite3_column_int64(q, 5) + sqlite3_column_int64(q, 6);
        bool runs = strcmp(column_text(q, 1), "running") == 0;
        const char *reason = column_text(q, 2);
        text(s, 0, A_BOLD, "%s", column_text(q, 0));
        text(s, (int)strlen(column_text(q, 0)) + 2, A_NORMAL, "%s%s%s%s", column_text(q, 1),
             reason[0] ? " (" : "", reason, reason[0] ? ")" : "");
        s->y++;
        draw_bar(s, done, sqlite3_column_int64(q, 7), asked);
        text(s, 0, A_NORMAL,
             COLS < NARROW ? "%lld/%lld: %lld ok, %lld pruned, %lld failed"
                           : "%lld of %lld trials: %lld complete, %lld pruned, %lld failed, %lld "
                             "running, %lld waiting",
             (long long)done, (long long)asked, (long long)sqlite3_column_int64(q, 4),
             (long long)sqlite3_column_int64(q, 5), (long long)sqlite3_column_int64(q, 6),
             (long long)sqlite3_column_int64(q, 7), (long long)sqlite3_column_int64(q, 8));
        s->y++;
        double busy_s = sqlite3_column_double(q, runs ? 13 : 9);
        if (done > 0 && busy_s > 0) {
            ho_output_duration(busy_s, span, sizeof span);
            ho_output_duration((double)(asked - done) * busy_s / (double)done, left, sizeof left);
            text(s, 0, A_NORMAL, "%.3g trials/min over %s%s%s%s", (double)done / busy_s * 60.0,
                 span, runs && asked > done ? ", " : "", runs && asked > done ? left : "",
                 runs && asked > done ? " left" : "");
        } else {
            text(s, 0, A_NORMAL, "no trial has ended yet");
        }
        s->y++;
    }
    (void)sqlite3_finalize(q);
}

static void draw_overfitting(screen *s)
{
    ho_overfit_row row;
    char sentence[700];
    if (rows_left(s) < 14 || ho_overfit_read(s->store, &row, NULL) != HO_OK) {
        return;
    }
    ho_overfit_sentence(&row, sentence, sizeof sentence);
    const char *rest = sentence;
    for (int i = 0; i < 3 && *rest; i++) { /* broken between words */
        int n = (int)strlen(rest);
        if (n > COLS) {
            n = COLS;
            while (n > 1 && rest[n] != ' ') {
                n--;
            }
        }
        text(s, 0, A_NORMAL, "%.*s", n, rest);
        rest += n + (rest[n] == ' ');
        s->y++;
    }
}

static void draw_leaderboard(screen *s, int most)
{
    char a[24], b[24], c[24], d[24], e[24], sql[700];
    if (rows_left(s) < 3) {
        return;
    }
    (void)snprintf(sql, sizeof sql,
                   "SELECT 'trial ' || trial, value, sharpe, total_return, max_drawdown, trades, "
                   "feasible FROM leaderboard WHERE rank <= %d",
                   most);
    sqlite3_stmt *q = query(s, sql);
    s->y++;
    text(s, 0, A_BOLD, "%-16s %10s %9s %9s %9s %7s", "best", "objective", "sharpe", "return",
         "drawdown", "trades");
    s->y++;
    bool any = false;
    while (q && rows_left(s) > 0 && sqlite3_step(q) == SQLITE_ROW) {
        any = true;
        text(s, 0, sqlite3_column_int(q, 6) ? A_NORMAL : pair(s, PAIR_BAD),
             "%-16s %10s %9s %9s %9s %7s%s", column_text(q, 0), column_number(q, 1, a),
             column_number(q, 2, b), column_number(q, 3, c), column_number(q, 4, d),
             column_number(q, 5, e), sqlite3_column_int(q, 6) ? "" : "  violates a constraint");
        s->y++;
    }
    (void)sqlite3_finalize(q);
    if (!any && rows_left(s) > 0) {
        text(s, 0, pair(s, PAIR_DIM), "no trial is complete yet");
        s->y++;
    }
    q = query(s,
              "SELECT replace(policy, '_', '-'), sharpe, total_return, max_drawdown, trades FROM "
              "baseline_total ORDER BY policy");
    while (q && rows_left(s) > 0 && sqlite3_step(q) == SQLITE_ROW) {
        text(s, 0, pair(s, PAIR_DIM), "%-16s %10s %9s %9s %9s %7s", column_text(q, 0), "",
             column_number(q, 1, a), column_number(q, 2, b), column_number(q, 3, c),
             column_number(q, 4, d));
        s->y++;
    }
    (void)sqlite3_finalize(q);
}

static void draw_running(screen *s, int most)
{
    char value[24], span[40], sql[900];
    (void)snprintf(sql, sizeof sql,
                   "SELECT t.number, coalesce(w.name, ''), (julianday('now') - 2440587.5) * 86400 "
                   "- t.started_ns * 1e-9, (SELECT max(r.step) FROM report r WHERE r.trial = "
                   "t.number), (SELECT r.value FROM report r WHERE r.trial = t.number ORDER BY "
                   "r.step DESC LIMIT 1) FROM trial t LEFT JOIN worker w ON w.id = t.worker WHERE "
                   "t.state = 'RUNNING' ORDER BY t.started_ns LIMIT %d",
                   most);
    sqlite3_stmt *q = query(s, sql);
    bool first = true;
    while (q && rows_left(s) > (first ? 2 : 0) && sqlite3_step(q) == SQLITE_ROW) {
        if (first) {
            s->y++;
            text(s, 0, A_BOLD, "%-16s %10s %9s %12s  %s", "running", "epoch", "value", "for",
                 "worker");
            s->y++;
            first = false;
        }
        ho_output_duration(sqlite3_column_double(q, 2), span, sizeof span);
        text(s, 0, A_NORMAL, "trial %-10lld %10s %9s %12s  %s",
             (long long)sqlite3_column_int64(q, 0),
             sqlite3_column_type(q, 3) == SQLITE_NULL ? "-" : column_text(q, 3),
             column_number(q, 4, value), span, column_text(q, 1));
        s->y++;
    }
    (void)sqlite3_finalize(q);
}

static void draw_workers(screen *s)
{
    sqlite3_stmt *q =
        query(s, "SELECT name, device, lanes, running, finished, here, "
                 "coalesce(leave_reason, 'left') FROM worker_load ORDER BY here DESC, "
                 "id DESC");
    bool first = true;
    while (q && rows_left(s) > (first ? 2 : 0) && sqlite3_step(q) == SQLITE_ROW) {
        bool here = sqlite3_column_int(q, 5) != 0;
        if (first) {
            s->y++;
            text(s, 0, A_BOLD, "%-26s %-18s %5s %7s %8s  %s", "worker", "device", "lanes",
                 "running", "finished", "state");
            s->y++;
            first = false;
        }
        text(s, 0, here ? A_NORMAL : pair(s, PAIR_DIM), "%-26.26s %-18.18s %5d %7d %8d  %s",
             column_text(q, 0), column_text(q, 1), sqlite3_column_int(q, 2),
             sqlite3_column_int(q, 3), sqlite3_column_int(q, 4), here ? "here" : column_text(q, 6));
        s->y++;
    }
    (void)sqlite3_finalize(q);
}

static void draw(screen *s)
{
    (void)erase();
    s->y = 0;
    draw_head(s);
    draw_overfitting(s);
    int rows = rows_left(s); /* of these the leaderboard takes about half */
    draw_leaderboard(s, rows > 16 ? (rows - 8) / 2 : rows > 12 ? 4 : rows > 8 ? 2 : 1);
    draw_running(s, rows_left(s) > 10 ? rows_left(s) / 2 : 4);
    draw_workers(s);
    s->y = LINES - 1;
    text(s, 0, pair(s, PAIR_DIM), "q quits");
    (void)refresh();
}

/* ---- the loop ------------------------------------------------------------------------------- */

static void start_screen(screen *s)
{
    const char *none = getenv("NO_COLOR");
    (void)cbreak();
    (void)noecho();
    (void)curs_set(0);
    (void)keypad(stdscr, TRUE);
    set_escdelay(50);
    if (!(none && none[0]) && has_colors()) {
        (void)start_color();
        (void)use_default_colors();
        (void)init_pair(PAIR_GOOD, COLOR_GREEN, -1);
        (void)init_pair(PAIR_BAD, COLOR_RED, -1);
        (void)init_pair(PAIR_DIM, COLOR_CYAN, -1);
        s->color = true;
    }
}

ho_status ho_watch(ho_store *store, double every_s, ho_err *err)
{
    screen s = {.store = store, .err = err};
    ho_err_clear(err);
    struct sigaction action, before_int, before_term;
    const char *term = getenv("TERM");

    if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO)) {
        return ho_err_set(err, HO_EUSAGE,
                          "--watch needs a terminal; `hyperopt status %s` prints once",
                          ho_store_path(store));
    }
    int found = 0; /* a terminal that cannot move the cursor has no full screen */
    bool able = setupterm(NULL, STDOUT_FILENO, &found) == OK && tigetstr("cup") != NULL;
    if (cur_term) {
        (void)del_curterm(cur_term); /* newterm makes its own */
    }
    SCREEN *terminal = able ? newterm(NULL, stdout, stdin) : NULL;
    if (!terminal) {
        return ho_err_set(
            err, HO_EUSAGE,
            "--watch: TERM is \"%s\", which has no full-screen view; `hyperopt status "
            "%s` prints once",
            term ? term : "", ho_store_path(store));
    }
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    ended = 0;
    (void)sigaction(SIGINT, &action, &before_int);
    (void)sigaction(SIGTERM, &action, &before_term);
    start_screen(&s);
    (void)timeout((int)(1000 * (every_s < least_s ? least_s : every_s)));
    while (!ended && err->code == HO_OK) {
        draw(&s);
        int key = getch();
        if (key == 'q' || key == 'Q' || key == ESCAPE) {
            break;
        }
    }
    (void)endwin();
    delscreen(terminal);
    (void)sigaction(SIGINT, &before_int, NULL);
    (void)sigaction(SIGTERM, &before_term, NULL);
    return err->code;
}
