/* SPDX-License-Identifier: Apache-2.0
 * See objective.h: parsing and comparing. Aggregation is in aggregate.c. */
#include "study/objective.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "study/text.h"

/* Values that a metric cannot leave; others can be any number. */
static const struct {
    int metric;
    double low, high;
} bounds[] = {
    {HO_METRIC_MAX_DRAWDOWN, -1, 0},
    {HO_METRIC_MAX_DRAWDOWN_CASH, 0, INFINITY},
    {HO_METRIC_CAGR, -1, INFINITY},
    {HO_METRIC_TOTAL_RETURN, -1, INFINITY},
    {HO_METRIC_VOLATILITY, 0, INFINITY},
    {HO_METRIC_DRAWDOWN_DURATION, 0, INFINITY},
    {HO_METRIC_RECOVERY_TIME, 0, INFINITY},
    {HO_METRIC_LONGEST_DRAWDOWN, 0, INFINITY},
    {HO_METRIC_WIN_RATE, 0, 1},
    {HO_METRIC_PROFIT_FACTOR, 0, INFINITY},
    {HO_METRIC_PAYOFF, 0, INFINITY},
    {HO_METRIC_TURNOVER, 0, INFINITY},
    {HO_METRIC_EXPOSURE, 0, 1},
    {HO_METRIC_TRADES, 0, INFINITY},
    {HO_METRIC_AMBIGUOUS_BARS, 0, INFINITY},
    {HO_METRIC_LONGEST_FLAT, 0, INFINITY},
};

static ho_status no_metric(const char *name, ho_err *err)
{
    int best = 0;
    for (int i = 1; i < HO_METRIC_COUNT; i++) {
        if (ho_text_distance(name, ho_metric_name((ho_metric)i)) <
            ho_text_distance(name, ho_metric_name((ho_metric)best))) {
            best = i;
        }
    }
    return ho_err_set(err, HO_EINVAL, "there is no metric \"%.60s\"; the nearest is \"%s\"", name,
                      ho_metric_name((ho_metric)best));
}

ho_status ho_objective_parse(const char *name, ho_objective *out, ho_err *err)
{
    int metric = ho_metric_find(name);
    if (metric < 0) {
        return no_metric(name, err);
    }
    if (ho_metric_direction((ho_metric)metric) == 0) {
        return ho_err_set(err, HO_EINVAL,
                          "%s has no better direction, so it cannot be an objective; a constraint "
                          "can use it",
                          name);
    }
    (void)snprintf(out->name, sizeof out->name, "%s", name);
    out->metric = metric;
    out->direction = ho_metric_direction((ho_metric)metric);
    return HO_OK;
}

static ho_status check_bound(const ho_constraint *c, ho_err *err)
{
    double low = -INFINITY, high = INFINITY;
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        if (bounds[i].metric == c->metric) {
            low = bounds[i].low;
            high = bounds[i].high;
        }
    }
    bool always = false, never = false;
    switch (c->compare) {
    case HO_AT_LEAST:
        always = low >= c->bound;
        never = high < c->bound;
        break;
    case HO_MORE_THAN:
        always = low > c->bound;
        never = high <= c->bound;
        break;
    case HO_AT_MOST:
        always = high <= c->bound;
        never = low > c->bound;
        break;
    case HO_LESS_THAN:
        always = high < c->bound;
        never = low >= c->bound;
        break;
    }
    if (!always && !never) {
        return HO_OK;
    }
    char range[64];
    (void)snprintf(range, sizeof range, isinf(high) ? "at least %g" : "%g to %g", low, high);
    return ho_err_set(err, HO_EINVAL, "the constraint \"%s\" can never be %s: %s is %s%s", c->text,
                      always ? "violated" : "satisfied", ho_metric_name((ho_metric)c->metric),
                      range,
                      c->metric == HO_METRIC_MAX_DRAWDOWN
                          ? "; drawdown is negative, e.g. \"max_drawdown >= -0.25\""
                          : "");
}

ho_status ho_constraint_parse(const char *text, ho_constraint *out, ho_err *err)
{
    static const struct {
        const char *token;
        ho_compare compare;
    } ops[] = {{">=", HO_AT_LEAST}, {"<=", HO_AT_MOST}, {">", HO_MORE_THAN}, {"<", HO_LESS_THAN}};
    char name[64], number[64];
    const char *p = text + strspn(text, " ");
    size_t n = strcspn(p, " <>=");
    if (strlen(text) >= sizeof out->text || n == 0 || n >= sizeof name) {
        goto bad;
    }
    memset(out, 0, sizeof *out);
    (void)snprintf(out->text, sizeof out->text, "%s", text);
    (void)snprintf(name, sizeof name, "%.*s", (int)n, p);
    p += n + strspn(p + n, " ");
    bool found = false;
    for (size_t i = 0; i < sizeof ops / sizeof *ops && !found; i++) {
        if (strncmp(p, ops[i].token, strlen(ops[i].token)) == 0) {
            out->compare = ops[i].compare;
            p += strlen(ops[i].token);
            found = true;
        }
    }
    p += strspn(p, " ");
    n = strcspn(p, " ");
    if (!found || n >= sizeof number || p[n + strspn(p + n, " ")]) {
        goto bad;
    }
    (void)snprintf(number, sizeof number, "%.*s", (int)n, p);
    if (!ho_text_parse_f64(number, &out->bound) || !isfinite(out->bound)) {
        goto bad;
    }
    out->metric = ho_metric_find(name);
    return out->metric < 0 ? no_metric(name, err) : check_bound(out, err);
bad:
    return ho_err_set(err, HO_EINVAL,
                      "a constraint is METRIC >= NUMBER (or <=, >, <), e.g. \"max_drawdown >= "
                      "-0.25\", not \"%.100s\"",
                      text);
}

double ho_constraint_violation(const ho_constraint *constraint, double value)
{
    bool least = constraint->compare == HO_AT_LEAST || constraint->compare == HO_MORE_THAN;
    bool strict = constraint->compare == HO_MORE_THAN || constraint->compare == HO_LESS_THAN;
    if (isnan(value)) {
        return INFINITY;
    }
    double excess = least ? constraint->bound - value : value - constraint->bound;
    return excess > 0 ? excess : excess == 0 && strict ? DBL_TRUE_MIN : 0;
}

int ho_value_compare(int direction, double a, double b)
{
    if (isnan(a) || isnan(b)) {
        return isnan(a) - isnan(b);
    }
    double gain = direction > 0 ? a - b : b - a;
    if (a == b) {
        return 0; /* infinities too, whose difference is NaN */
    }
    return gain > 0 ? -1 : 1;
}
