/* SPDX-License-Identifier: Apache-2.0
 * See evaluation_files.h. */
#include "worker/evaluation_files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct csv_file {
    FILE *file;
    const char *path;
    char part[4100];
} csv_file;

static ho_status csv_open(csv_file *f, const char *path, ho_err *err)
{
    f->path = path;
    if (snprintf(f->part, sizeof f->part, "%s.part", path) >= (int)sizeof f->part) {
        return ho_err_set(err, HO_EIO, "%s: too long a path", path);
    }
    f->file = fopen(f->part, "w");
    return f->file ? HO_OK : ho_err_set(err, HO_EIO, "%s: %s", f->part, strerror(errno));
}

static ho_status csv_close(csv_file *f, ho_err *err)
{
    int bad = ferror(f->file);
    bad |= fclose(f->file);
    if (bad || rename(f->part, f->path) != 0) {
        ho_err_set(err, HO_EIO, "%s: %s", f->path, strerror(errno));
        (void)unlink(f->part);
        return HO_EIO;
    }
    return HO_OK;
}

/* "2024-01-31T09:30:00Z", with nanoseconds when there are some */
static void put_time(FILE *file, int64_t ns)
{
    time_t s = (time_t)(ns / 1000000000);
    struct tm tm;
    char text[32];
    gmtime_r(&s, &tm);
    (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)fputs(text, file);
    if (ns % 1000000000 != 0) {
        (void)fprintf(file, ".%09lld", (long long)(ns % 1000000000));
    }
    (void)fputc('Z', file);
}

ho_status ho_evaluation_write_trades(const ho_evaluation *e, const ho_evaluation_run *run,
                                     const char *path, ho_err *err)
{
    static const char *const reason[HO_EXIT_REASONS] = {"none", "signal",  "stop", "profit",
                                                        "time", "session", "end"};
    csv_file f = {0};
    ho_status rc = csv_open(&f, path, err);
    if (rc != HO_OK) {
        return rc;
    }
    (void)fputs(
        "window,entry_time,exit_time,bars,side,quantity,max_quantity,entry_price,exit_price,"
        "pnl,fees,net,reason\n",
        f.file);
    for (int w = 0; w < run->count; w++) {
        for (int64_t i = 0; i < run->window[w].trade_count; i++) {
            const ho_trade *t = &run->window[w].trades[i];
            (void)fprintf(f.file, "%d,", w);
            put_time(f.file, e->bars.open_ns[t->entry_bar]);
            (void)fputc(',', f.file);
            put_time(f.file, e->bars.open_ns[t->exit_bar]);
            (void)fprintf(f.file, ",%lld,%d,%.17g,%.17g,%.17g,%.17g,%.17g,%.17g,%.17g,%s\n",
                          (long long)(t->exit_bar - t->entry_bar), t->side, t->quantity,
                          t->max_quantity, t->entry_price, t->exit_price, t->pnl, t->fees, t->net,
                          reason[t->reason]);
        }
    }
    return csv_close(&f, err);
}

ho_status ho_evaluation_write_equity(const ho_evaluation *e, const ho_evaluation_run *run,
                                     const char *path, ho_err *err)
{
    csv_file f = {0};
    ho_status rc = csv_open(&f, path, err);
    if (rc != HO_OK) {
        return rc;
    }
    (void)fputs("time,window,equity,return\n", f.file);
    for (int w = 0; w < run->count; w++) {
        for (int64_t i = 0; i < run->window[w].bars; i++) {
            put_time(f.file, e->bars.open_ns[e->window[w].test.begin + 1 + i]);
            (void)fprintf(f.file, ",%d,%.17g,%.17g\n", w, run->window[w].equity[i + 1],
                          run->window[w].bar_return[i]);
        }
    }
    return csv_close(&f, err);
}

ho_status ho_evaluation_write_actions(const ho_evaluation *e, const ho_evaluation_run *run,
                                      const char *path, ho_err *err)
{
    csv_file f = {0};
    ho_status rc = HO_OK;
    for (int w = 0; w < run->count && rc == HO_OK; w++) {
        int64_t counted = 0;
        for (int a = 0; a < HO_ACTIONS; a++) {
            counted += run->window[w].action_count[a];
        }
        if (!run->window[w].actions || counted != run->window[w].bars) {
            rc = ho_err_set(err, HO_EUNSUPPORTED,
                            "%s: target exposures are no actions; there is nothing to write", path);
        }
    }
    rc = rc == HO_OK ? csv_open(&f, path, err) : rc;
    if (rc != HO_OK) {
        return rc;
    }
    (void)fputs("time,action\n", f.file);
    for (int w = 0; w < run->count; w++) {
        for (int64_t i = 0; i < run->window[w].bars; i++) {
            put_time(f.file, e->bars.open_ns[e->window[w].test.begin + i]);
            (void)fprintf(f.file, ",%d\n", run->window[w].actions[i]);
        }
    }
    return csv_close(&f, err);
}
