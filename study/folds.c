/* SPDX-License-Identifier: Apache-2.0
 * See folds.h. Everything is laid out backwards from the holdout: `back` is the one function that
 * turns a span into a boundary, so bars, days and shares behave alike. */
#include "study/folds.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "study/text.h"

ho_status ho_span_parse(const char *text, ho_span *out, ho_err *err)
{
    char number[64];
    size_t n = strlen(text);
    ho_span_unit unit = HO_SPAN_BARS;
    double amount = 0;
    *out = (ho_span){HO_SPAN_AUTO, 0};
    if (strcmp(text, "auto") == 0) {
        return HO_OK;
    }
    if (n > 0 && text[n - 1] == 'd') {
        unit = HO_SPAN_DAYS;
        n--;
    } else if (n > 0 && text[n - 1] == '%') {
        unit = HO_SPAN_SHARE;
        n--;
    }
    if (n == 0 || n >= sizeof number) {
        goto bad;
    }
    memcpy(number, text, n);
    number[n] = '\0';
    if (!ho_text_parse_f64(number, &amount) || !(amount >= 0)) {
        goto bad;
    }
    if (unit == HO_SPAN_SHARE ? amount > 100 : (amount != floor(amount) || amount > 1e12)) {
        goto bad;
    }
    *out = (ho_span){unit, unit == HO_SPAN_SHARE ? amount / 100 : amount};
    return HO_OK;
bad:
    return ho_err_set(err, HO_EINVAL,
                      "a length is bars (\"20000\"), days (\"20d\"), a share (\"15%%\") or "
                      "\"auto\", not \"%s\"",
                      text);
}

typedef struct layout {
    const ho_fold_spec *spec;
    int64_t first, T;
    const int32_t *session;
    const uint8_t *split;
} layout;

/* Begin of the window of this span that ends at `end`; below `first` where bars are missing (days
 * that the data lacks count as average ones). share_of: the bars that a share is of. */
static int64_t back(const layout *l, int64_t end, ho_span span, int64_t share_of)
{
    if (span.unit == HO_SPAN_BARS) {
        return end - (int64_t)span.amount;
    }
    if (span.unit == HO_SPAN_SHARE) {
        return end - (int64_t)floor(span.amount * (double)share_of);
    }
    int64_t at = end;
    double days = span.amount;
    while (days > 0 && at > l->first) {
        int32_t day = l->session[at - 1];
        while (at > l->first && l->session[at - 1] == day) {
            at--;
        }
        days--;
    }
    if (days > 0) {
        double bars = (double)(l->T - l->first), all = 1;
        for (int64_t t = l->first + 1; t < l->T; t++) {
            all += l->session[t] != l->session[t - 1];
        }
        at -= (int64_t)ceil(days * bars / all);
    }
    return at;
}

static ho_status check_split(const layout *l, ho_window w, const char *what, int fold, ho_err *err)
{
    for (int64_t t = w.begin + 1; l->split && t < w.end; t++) {
        if (l->split[t]) {
            char where[32] = "";
            if (fold >= 0) {
                (void)snprintf(where, sizeof where, " of fold %d", fold);
            }
            return ho_err_set(err, HO_ECONFIG,
                              "the data is split at bar %lld, inside the %s window%s [%lld, %lld): "
                              "move it with folds.test, folds.step or data.end, or set data.gaps "
                              "to \"keep\"",
                              (long long)t, what, where, (long long)w.begin, (long long)w.end);
        }
    }
    return HO_OK;
}

static ho_status check_window(const layout *l, ho_window w, const char *what, const char *key,
                              int fold, ho_err *err)
{
    if (w.end - w.begin < 2) {
        return ho_err_set(err, HO_ECONFIG,
                          "the %s window of fold %d has %lld bars, it needs at least 2: make %s "
                          "longer, folds.purge shorter or folds.count smaller",
                          what, fold, (long long)(w.end > w.begin ? w.end - w.begin : 0), key);
    }
    if (strcmp(what, "train") != 0) {
        return check_split(l, w, what, fold, err);
    }
    return HO_OK;
}

/* Train and validation of the fold whose test window begins at `test_begin`. */
static ho_status plan_train(const layout *l, int64_t train_begin, int64_t test_begin, ho_span purge,
                            int k, ho_fold *out, ho_err *err)
{
    const ho_fold_spec *spec = l->spec;
    int64_t usable = l->T - l->first;
    int64_t end = back(l, test_begin, purge, usable);
    int64_t cut = back(l, end, spec->validation, end > train_begin ? end - train_begin : 0);
    ho_status rc;
    out->validation = (ho_window){cut, end};
    out->train = (ho_window){train_begin, cut < end ? back(l, cut, purge, usable) : end};
    rc = check_window(l, out->train, "train", "folds.train", k, err);
    if (rc == HO_OK && cut < end) {
        rc = check_window(l, out->validation, "validation", "folds.validation", k, err);
    } else if (rc == HO_OK && spec->validation.amount > 0) {
        rc = ho_err_set(err, HO_ECONFIG,
                        "the validation window of fold %d has no bars: make folds.validation "
                        "larger, or \"0\" for none",
                        k);
    }
    return rc;
}

static ho_status check_spec(const layout *l, ho_err *err)
{
    const ho_fold_spec *s = l->spec;
    const struct {
        ho_span span;
        const char *key;
        bool may_be_auto;
    } spans[] = {{s->test, "folds.test", true},
                 {s->train, "folds.train", true},
                 {s->step, "folds.step", true},
                 {s->purge, "folds.purge", true},
                 {s->validation, "folds.validation", false},
                 {s->holdout, "folds.holdout", false}};
    if (s->count < 1 || s->count > HO_FOLDS_MAX) {
        return ho_err_set(err, HO_ECONFIG, "folds.count is 1 to %d, not %d", HO_FOLDS_MAX,
                          s->count);
    }
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++) {
        if (spans[i].span.unit == HO_SPAN_AUTO && !spans[i].may_be_auto) {
            return ho_err_set(err, HO_ECONFIG, "%s cannot be \"auto\"", spans[i].key);
        }
        if (spans[i].span.unit == HO_SPAN_DAYS && !l->session) {
            return ho_err_set(err, HO_ECONFIG, "%s is in days, but the data has no sessions",
                              spans[i].key);
        }
    }
    if (l->first < 0 || l->T - l->first < 2) {
        return ho_err_set(err, HO_ECONFIG,
                          "%lld bars remain after the warm-up of %lld: use more data or a shorter "
                          "features.long_window",
                          (long long)(l->T > l->first ? l->T - l->first : 0), (long long)l->first);
    }
    return HO_OK;
}

ho_status ho_folds_plan(const ho_fold_spec *spec, int64_t first, int64_t T, const int32_t *session,
                        const uint8_t *split, ho_fold_plan *out, ho_err *err)
{
    const layout l = {spec, first, T, session, split};
    const int64_t usable = T - first;
    ho_span test = spec->test, train = spec->train, step = spec->step, purge = spec->purge;
    ho_status rc = check_spec(&l, err);
    memset(out, 0, sizeof *out);
    if (rc != HO_OK) {
        return rc;
    }
    out->first = first;
    out->T = T;
    out->count = spec->count;
    out->holdout = (ho_window){back(&l, T, spec->holdout, usable), T};
    if (out->holdout.begin < first || out->holdout.end - out->holdout.begin == 1) {
        return ho_err_set(err, HO_ECONFIG,
                          "folds.holdout takes %lld of %lld usable bars: change it",
                          (long long)(T - out->holdout.begin), (long long)usable);
    }
    rc = check_split(&l, out->holdout, "holdout", -1, err);
    if (rc != HO_OK) {
        return rc;
    }

    if (purge.unit == HO_SPAN_AUTO) {
        purge = (ho_span){HO_SPAN_BARS, (double)spec->purge_auto};
    }
    if (test.unit == HO_SPAN_AUTO) {
        int64_t bars = (out->holdout.begin - first) / (spec->count + 4);
        test = (ho_span){HO_SPAN_BARS, (double)bars};
    }
    if (train.unit == HO_SPAN_AUTO) {
        train = test;
        train.amount *= 4;
    }
    if (step.unit == HO_SPAN_AUTO) {
        step = test;
    }

    int64_t missing = 0, test_end = out->holdout.begin, train_begin = 0;
    for (int k = spec->count - 1; k >= 0; k--) {
        ho_window *w = &out->fold[k].test;
        *w = (ho_window){back(&l, test_end, test, usable), test_end};
        train_begin = back(&l, w->begin, train, usable);
        if (train_begin < first) {
            missing = first - train_begin;
        }
        int64_t next = back(&l, test_end, step, usable);
        if (k == spec->count - 1) {
            out->step = test_end - next;
            out->purge = w->begin - back(&l, w->begin, purge, usable);
        } else if (spec->stitched && w->end > out->fold[k + 1].test.begin) {
            return ho_err_set(err, HO_ECONFIG,
                              "folds.step is shorter than folds.test, so test windows overlap by "
                              "%lld bars and cannot be stitched: make folds.step at least the test "
                              "length, or set study.aggregate to \"mean\"",
                              (long long)(w->end - out->fold[k + 1].test.begin));
        }
        if (test_end - next < 1 && spec->count > 1) {
            return ho_err_set(err, HO_ECONFIG, "folds.step is no bar long: make it longer");
        }
        out->fold[k].train.begin = spec->scheme == HO_FOLDS_ANCHORED ? first : train_begin;
        test_end = next;
    }
    if (missing > 0) {
        return ho_err_set(err, HO_ECONFIG,
                          "%d folds need %lld bars more than the %lld usable ones: use more data, "
                          "or make folds.count, folds.train, folds.test or folds.holdout smaller",
                          spec->count, (long long)missing, (long long)usable);
    }
    for (int k = 0; k < spec->count && rc == HO_OK; k++) {
        ho_fold *fold = &out->fold[k];
        if (spec->refit_once && k > 0) {
            fold->train = out->fold[0].train;
            fold->validation = out->fold[0].validation;
        } else {
            rc = plan_train(&l, fold->train.begin, fold->test.begin, purge, k, fold, err);
        }
        if (rc == HO_OK) {
            rc = check_window(&l, fold->test, "test", "folds.test", k, err);
        }
    }
    return rc;
}
