/* SPDX-License-Identifier: Apache-2.0
 * See settings.h: the table, and reading and writing of values. JSON is in settings_json.c, help in
 * settings_help.c.
 * 1. A value is parsed into a fresh `value` and only then put in place, so a refused one changes
 *    nothing.  2. `text` is the canonical text of every scalar that has a value. */
#include "study/settings.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "study/text.h"

#define NONE   NULL
#define AUTO   HO_SETTING_AUTO
#define RESUME HO_SETTING_RESUME
#define PATH   HO_SETTING_PATH

static const ho_setting_row rows[HO_KEY_COUNT] = {
#define SETTING_ROW(id, name, type, role, flags, low, high, def, choices, unit, help)              \
    {HO_KEY_##id, name, HO_TYPE_##type, HO_ROLE_##role, flags, low, high, def, choices, unit, help},
    HO_SETTINGS(SETTING_ROW)
#undef SETTING_ROW
};

typedef struct value {
    bool has, set, is_auto;
    int64_t integer; /* INT, BOOL, CHOICE index, FLAGS mask */
    double real;     /* FLOAT, DURATION; INT too */
    char *text;      /* canonical text of a scalar */
    char **item;     /* STRINGS */
    int count;
    int line, column;
} value;

struct ho_settings {
    value v[HO_KEY_COUNT];
};

/* ---- the table ------------------------------------------------------------------------------ */

const ho_setting_row *ho_setting(ho_key key)
{
    assert((int)key >= 0 && key < HO_KEY_COUNT);
    return &rows[key];
}

const char *ho_setting_type_name(ho_setting_type type)
{
    static const char *const names[] = {"bool",  "int",      "float", "string", "choice",
                                        "flags", "duration", "date",  "span",   "list"};
    return names[type];
}

const char *ho_setting_role_name(ho_setting_role role)
{
    static const char *const names[] = {"searchable", "fact", "fixed"};
    return names[role];
}

ho_key ho_setting_find(const char *name)
{
    for (int i = 0; i < HO_KEY_COUNT; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return (ho_key)i;
        }
    }
    return HO_KEY_COUNT;
}

static const char *tail(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

/* The same last part under another section is as near as two typing errors. */
ho_key ho_setting_nearest(const char *name)
{
    int best = INT_MAX, length = (int)strlen(name);
    ho_key found = HO_KEY_COUNT;
    for (int i = 0; i < HO_KEY_COUNT; i++) {
        int distance = ho_text_distance(name, rows[i].name);
        if (distance > 2 && strcmp(tail(name), tail(rows[i].name)) == 0) {
            distance = 2;
        }
        if (distance < best) {
            best = distance;
            found = (ho_key)i;
        }
    }
    int limit = length / 3 > 2 ? length / 3 : 2;
    return best <= limit ? found : HO_KEY_COUNT;
}

int ho_setting_choice_count(const ho_setting_row *row)
{
    if (row->choices[0] == '\0') {
        return 0;
    }
    int count = 1;
    for (const char *p = row->choices; *p; p++) {
        count += *p == '|';
    }
    return count;
}

const char *ho_setting_choice(const ho_setting_row *row, int i, char *out, size_t room)
{
    if (i < 0 || i >= ho_setting_choice_count(row)) {
        return NULL;
    }
    const char *p = row->choices;
    while (i-- > 0) {
        p = strchr(p, '|') + 1;
    }
    (void)snprintf(out, room, "%.*s", (int)strcspn(p, "|"), p);
    return out;
}

int ho_setting_choice_find(const ho_setting_row *row, const char *text)
{
    char choice[64];
    for (int i = 0; ho_setting_choice(row, i, choice, sizeof choice); i++) {
        if (strcmp(choice, text) == 0) {
            return i;
        }
    }
    return -1;
}

/* ---- parsing one value ---------------------------------------------------------------------- */

static void value_clear(value *v)
{
    free(v->text);
    for (int i = 0; i < v->count; i++) {
        free(v->item[i]);
    }
    free(v->item);
    *v = (value){0};
}

static ho_status refuse(const ho_setting_row *row, const char *got, ho_err *err)
{
    char also[16] = "", low[HO_TEXT_NUMBER], high[HO_TEXT_NUMBER];
    if (row->flags & HO_SETTING_AUTO) {
        (void)snprintf(also, sizeof also, " or \"auto\"");
    }
    (void)ho_text_number(row->low, low, sizeof low);
    (void)ho_text_number(row->high, high, sizeof high);
    switch (row->type) {
    case HO_TYPE_BOOL:
        return ho_err_set(err, HO_EINVAL, "%s is true or false, not %s", row->name, got);
    case HO_TYPE_INT:
        return ho_err_set(err, HO_EINVAL, "%s is a whole number from %s to %s%s, not %s", row->name,
                          low, high, also, got);
    case HO_TYPE_FLOAT:
        return ho_err_set(err, HO_EINVAL, "%s is a number from %s to %s%s, not %s", row->name, low,
                          high, also, got);
    case HO_TYPE_DURATION:
        return ho_err_set(err, HO_EINVAL,
                          "%s is a time such as \"90s\", \"20m\", \"8h\" or \"2d\" (%s s to %s "
                          "s)%s, not %s",
                          row->name, low, high, also, got);
    case HO_TYPE_DATE:
        return ho_err_set(err, HO_EINVAL,
                          "%s is a day such as 2018-01-31 or a moment such as "
                          "2018-01-31T09:30:00Z, not %s",
                          row->name, got);
    case HO_TYPE_CHOICE:
    case HO_TYPE_FLAGS:
        return ho_err_set(err, HO_EINVAL, "%s is %s of %s, not %s", row->name,
                          row->type == HO_TYPE_CHOICE ? "one" : "a list", row->choices, got);
    default:
        return ho_err_set(err, HO_EINVAL, "%s cannot be %s", row->name, got);
    }
}

static bool in_range(const ho_setting_row *row, double x)
{
    return x >= row->low && x <= row->high;
}

/* "90s", "1.5h", "250ms", or a bare number of seconds. */
static bool parse_duration(const char *text, double *out)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"ms", 0.001}, {"s", 1},     {"m", 60},     {"min", 60},
                 {"h", 3600},   {"d", 86400}, {"w", 604800}, {"", 1}};
    char number[64];
    size_t n = strspn(text, "+0123456789._eE");
    if (n == 0 || n >= sizeof number) {
        return false;
    }
    memcpy(number, text, n);
    number[n] = '\0';
    double amount;
    if (!ho_text_parse_f64(number, &amount)) {
        return false;
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(text + n, units[i].unit) == 0) {
            *out = amount * units[i].seconds;
            return true;
        }
    }
    return false;
}

static bool digits(const char *text, const char *shape)
{
    for (; *shape; shape++, text++) {
        if (*shape == '9' ? !isdigit((unsigned char)*text) : *text != *shape) {
            return false;
        }
    }
    return true;
}

/* A day of the calendar, then nothing or T or a space, hh:mm[:ss[.f]], then nothing, Z or +hh:mm.
 */
static bool legal_date(const char *text)
{
    static const int month_days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (!digits(text, "9999-99-99")) {
        return false;
    }
    int year = atoi(text), month = atoi(text + 5), day = atoi(text + 8);
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (year < 1 || month < 1 || month > 12 || day < 1 ||
        day > month_days[month - 1] + (month == 2 && leap)) {
        return false;
    }
    const char *p = text + 10;
    if (*p == '\0') {
        return true;
    }
    if ((*p != 'T' && *p != ' ') || !digits(p + 1, "99:99") || atoi(p + 1) > 23 ||
        atoi(p + 4) > 59) {
        return false;
    }
    p += 6;
    if (digits(p, ":99")) {
        if (atoi(p + 1) > 59) {
            return false;
        }
        p += 3;
        if (*p == '.') {
            size_t n = strspn(p + 1, "0123456789");
            if (n == 0) {
                return false;
            }
            p += 1 + n;
        }
    }
    return *p == '\0' || strcmp(p, "Z") == 0 ||
           ((*p == '+' || *p == '-') && digits(p + 1, "99:99") && p[6] == '\0');
}

static ho_status parse_scalar(const ho_setting_row *row, const char *text, value *v, ho_err *err)
{
    char canonical[HO_TEXT_NUMBER];
    v->has = v->set = true;
    if ((row->flags & HO_SETTING_AUTO) && strcmp(text, "auto") == 0) {
        v->is_auto = true;
        v->text = ho_text_copy(text);
        return v->text ? HO_OK : ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    const char *keep = text;
    switch (row->type) {
    case HO_TYPE_BOOL:
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0) {
            return refuse(row, text, err);
        }
        v->integer = text[0] == 't';
        break;
    case HO_TYPE_INT:
        if (!ho_text_parse_i64(text, &v->integer) || !in_range(row, (double)v->integer)) {
            return refuse(row, text, err);
        }
        v->real = (double)v->integer;
        (void)snprintf(canonical, sizeof canonical, "%" PRId64, v->integer);
        keep = canonical;
        break;
    case HO_TYPE_FLOAT:
        if (!ho_text_parse_f64(text, &v->real) || !in_range(row, v->real)) {
            return refuse(row, text, err);
        }
        (void)ho_text_f64(v->real, canonical, sizeof canonical);
        keep = canonical;
        break;
    case HO_TYPE_DURATION:
        if (!parse_duration(text, &v->real) || !in_range(row, v->real)) {
            return refuse(row, text, err);
        }
        break;
    case HO_TYPE_CHOICE:
        v->integer = ho_setting_choice_find(row, text);
        if (v->integer < 0) {
            return refuse(row, text, err);
        }
        break;
    case HO_TYPE_DATE:
        if (!legal_date(text)) {
            return refuse(row, text, err);
        }
        break;
    case HO_TYPE_SPAN: {
        ho_span span;
        ho_status rc = ho_span_parse(text, &span, err);
        if (rc != HO_OK) {
            return ho_err_prefix(err, "%s", row->name);
        }
        if (span.unit == HO_SPAN_AUTO) {
            return refuse(row, text, err); /* where auto is legal it was taken above */
        }
        break;
    }
    case HO_TYPE_STRING:
        break;
    case HO_TYPE_FLAGS:
    case HO_TYPE_STRINGS:
        assert(!"a list is no scalar");
        break;
    }
    v->text = ho_text_copy(keep);
    return v->text ? HO_OK : ho_err_set(err, HO_ENOMEM, "out of memory");
}

static ho_status parse_list(const ho_setting_row *row, const char *const *items, int count,
                            value *v, ho_err *err)
{
    v->has = v->set = true;
    if (row->type == HO_TYPE_STRINGS && (count < (int)row->low || count > (int)row->high)) {
        return ho_err_set(err, HO_EINVAL, "%s takes %d to %d items, not %d", row->name,
                          (int)row->low, (int)row->high, count);
    }
    v->item = (char **)calloc((size_t)count + 1, sizeof *v->item);
    if (!v->item) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    for (int i = 0; i < count; i++) {
        if (row->type == HO_TYPE_FLAGS) {
            int bit = ho_setting_choice_find(row, items[i]);
            if (bit < 0) {
                return refuse(row, items[i], err);
            }
            v->integer |= (int64_t)1 << bit;
        }
        v->item[i] = ho_text_copy(items[i]);
        v->count = i + 1;
        if (!v->item[i]) {
            return ho_err_set(err, HO_ENOMEM, "out of memory");
        }
    }
    return HO_OK;
}

static bool is_list(const ho_setting_row *row)
{
    return row->type == HO_TYPE_STRINGS || row->type == HO_TYPE_FLAGS;
}

static ho_status put(ho_settings *s, ho_key key, value *fresh, ho_status rc)
{
    if (rc != HO_OK) {
        value_clear(fresh);
        return rc;
    }
    value_clear(&s->v[key]);
    s->v[key] = *fresh;
    return HO_OK;
}

/* ---- writing -------------------------------------------------------------------------------- */

static ho_status split_list(ho_settings *s, ho_key key, const char *text, ho_err *err)
{
    enum { ITEMS = 512 };
    char *copy = ho_text_copy(text);
    const char **item = (const char **)calloc(ITEMS, sizeof *item);
    ho_status rc = HO_OK;
    int count = 0;
    if (!copy || !item) {
        rc = ho_err_set(err, HO_ENOMEM, "out of memory");
        goto out;
    }
    char *rest = copy, *part;
    while ((part = strsep(&rest, ",")) != NULL && count < ITEMS) {
        part += strspn(part, " ");
        size_t n = strlen(part);
        while (n > 0 && part[n - 1] == ' ') {
            part[--n] = '\0';
        }
        if (n > 0) {
            item[count++] = part;
        }
    }
    rc = ho_settings_set_list(s, key, item, count, err);
out:
    free(item);
    free(copy);
    return rc;
}

ho_status ho_settings_set_text(ho_settings *s, ho_key key, const char *text, ho_err *err)
{
    const ho_setting_row *row = ho_setting(key);
    value fresh = {0};
    if (is_list(row)) {
        return split_list(s, key, text, err);
    }
    return put(s, key, &fresh, parse_scalar(row, text, &fresh, err));
}

ho_status ho_settings_set_list(ho_settings *s, ho_key key, const char *const *items, int count,
                               ho_err *err)
{
    const ho_setting_row *row = ho_setting(key);
    value fresh = {0};
    if (!is_list(row)) {
        return ho_err_set(err, HO_EINVAL, "%s is no list", row->name);
    }
    return put(s, key, &fresh, parse_list(row, items, count, &fresh, err));
}

ho_status ho_settings_set_f64(ho_settings *s, ho_key key, double x, ho_err *err)
{
    const ho_setting_row *row = ho_setting(key);
    char text[HO_TEXT_NUMBER];
    if (row->type != HO_TYPE_INT && row->type != HO_TYPE_FLOAT && row->type != HO_TYPE_DURATION) {
        (void)ho_text_number(x, text, sizeof text);
        return refuse(row, text, err);
    }
    if (row->type == HO_TYPE_FLOAT) {
        (void)ho_text_f64(x, text, sizeof text);
    } else {
        (void)ho_text_number(x, text, sizeof text);
    }
    return ho_settings_set_text(s, key, text, err);
}

ho_status ho_settings_set_i64(ho_settings *s, ho_key key, int64_t x, ho_err *err)
{
    const ho_setting_row *row = ho_setting(key);
    char text[HO_TEXT_NUMBER];
    (void)snprintf(text, sizeof text, "%" PRId64, x);
    if (row->type != HO_TYPE_INT && row->type != HO_TYPE_FLOAT && row->type != HO_TYPE_DURATION &&
        row->type != HO_TYPE_SPAN) {
        return refuse(row, text, err);
    }
    return ho_settings_set_text(s, key, text, err);
}

ho_status ho_settings_set_bool(ho_settings *s, ho_key key, bool x, ho_err *err)
{
    const ho_setting_row *row = ho_setting(key);
    if (row->type != HO_TYPE_BOOL) {
        return refuse(row, x ? "true" : "false", err);
    }
    return ho_settings_set_text(s, key, x ? "true" : "false", err);
}

void ho_settings_set_place(ho_settings *s, ho_key key, int line, int column)
{
    s->v[key].line = line;
    s->v[key].column = column;
}

void ho_settings_unmark(ho_settings *s, ho_key key)
{
    s->v[key].set = false;
}

static bool set_default(ho_settings *s, ho_key key)
{
    const ho_setting_row *row = ho_setting(key);
    value_clear(&s->v[key]);
    if (row->default_text) {
        ho_err err;
        if (is_list(row) && row->default_text[0] == '\0') {
            s->v[key].has = true;
            return true;
        }
        if (ho_settings_set_text(s, key, row->default_text, &err) != HO_OK) {
            assert(err.code == HO_ENOMEM); /* a default is legal: a test walks all of them */
            return false;
        }
        s->v[key].set = false;
    }
    return true;
}

void ho_settings_reset(ho_settings *s, ho_key key)
{
    (void)set_default(s, key);
}

ho_status ho_settings_apply(ho_settings *s, const ho_space *space, const double *config,
                            ho_err *err)
{
    for (int i = 0; i < space->count; i++) {
        const ho_param *param = &space->param[i];
        ho_status rc = HO_OK;
        if (param->key < 0 || isnan(config[i])) {
            continue;
        }
        ho_key key = (ho_key)param->key;
        if (param->kind != HO_PARAM_CHOICE) {
            rc = ho_settings_set_f64(s, key, config[i], err);
        } else if (config[i] < 0 || config[i] >= param->choice_count) {
            rc = ho_err_set(err, HO_EINVAL, "%s has no choice %g", param->name, config[i]);
        } else {
            rc = ho_settings_set_text(s, key, param->choice[(int)config[i]].text, err);
        }
        if (rc != HO_OK) {
            return rc;
        }
        ho_settings_set_place(s, key, param->line, param->column);
    }
    return HO_OK;
}

/* ---- whole sets ----------------------------------------------------------------------------- */

ho_settings *ho_settings_create(void)
{
    ho_settings *s = (ho_settings *)calloc(1, sizeof *s);
    for (int i = 0; s && i < HO_KEY_COUNT; i++) {
        if (!set_default(s, (ho_key)i)) {
            ho_settings_destroy(&s);
        }
    }
    return s;
}

static bool value_copy(value *to, const value *from)
{
    *to = *from;
    to->text = ho_text_copy(from->text);
    to->item = NULL;
    to->count = 0;
    if (from->text && !to->text) {
        return false;
    }
    if (from->item) {
        to->item = (char **)calloc((size_t)from->count + 1, sizeof *to->item);
        for (int i = 0; to->item && i < from->count; i++) {
            to->item[i] = ho_text_copy(from->item[i]);
            if (!to->item[i]) {
                return false;
            }
            to->count = i + 1;
        }
        return to->item != NULL;
    }
    return true;
}

ho_settings *ho_settings_copy(const ho_settings *settings)
{
    ho_settings *s = (ho_settings *)calloc(1, sizeof *s);
    for (int i = 0; s && i < HO_KEY_COUNT; i++) {
        if (!value_copy(&s->v[i], &settings->v[i])) {
            ho_settings_destroy(&s);
        }
    }
    return s;
}

void ho_settings_destroy(ho_settings **settings)
{
    if (settings && *settings) {
        for (int i = 0; i < HO_KEY_COUNT; i++) {
            value_clear(&(*settings)->v[i]);
        }
        free(*settings);
        *settings = NULL;
    }
}

/* Equal numbers are equal however they were written ("8h", "480m"). */
static bool value_equal(const ho_setting_row *row, const value *a, const value *b)
{
    if (a->has != b->has || a->is_auto != b->is_auto) {
        return false;
    }
    switch (row->type) {
    case HO_TYPE_BOOL:
    case HO_TYPE_INT:
    case HO_TYPE_CHOICE:
    case HO_TYPE_FLAGS:
        return a->integer == b->integer;
    case HO_TYPE_FLOAT:
    case HO_TYPE_DURATION:
        return a->real == b->real;
    case HO_TYPE_STRINGS:
        if (a->count != b->count) {
            return false;
        }
        for (int i = 0; i < a->count; i++) {
            if (strcmp(a->item[i], b->item[i]) != 0) {
                return false;
            }
        }
        return true;
    default:
        return !a->has || strcmp(a->text, b->text) == 0;
    }
}

int ho_settings_diff(const ho_settings *a, const ho_settings *b, ho_key *out, int room)
{
    int count = 0;
    for (int i = 0; i < HO_KEY_COUNT; i++) {
        if (!value_equal(&rows[i], &a->v[i], &b->v[i])) {
            if (count < room) {
                out[count] = (ho_key)i;
            }
            count++;
        }
    }
    return count;
}

/* ---- reading -------------------------------------------------------------------------------- */

bool ho_settings_has(const ho_settings *s, ho_key key)
{
    return s->v[key].has;
}

bool ho_settings_is_set(const ho_settings *s, ho_key key)
{
    return s->v[key].set;
}

bool ho_settings_is_auto(const ho_settings *s, ho_key key)
{
    return s->v[key].is_auto;
}

void ho_settings_place(const ho_settings *s, ho_key key, int *line, int *column)
{
    *line = s->v[key].line;
    *column = s->v[key].column;
}

double ho_settings_f64(const ho_settings *s, ho_key key)
{
    assert(rows[key].type == HO_TYPE_FLOAT || rows[key].type == HO_TYPE_INT ||
           rows[key].type == HO_TYPE_DURATION);
    return s->v[key].real;
}

int64_t ho_settings_i64(const ho_settings *s, ho_key key)
{
    assert(rows[key].type == HO_TYPE_INT);
    return s->v[key].integer;
}

bool ho_settings_bool(const ho_settings *s, ho_key key)
{
    assert(rows[key].type == HO_TYPE_BOOL);
    return s->v[key].integer != 0;
}

int ho_settings_choice(const ho_settings *s, ho_key key)
{
    assert(rows[key].type == HO_TYPE_CHOICE);
    return (int)s->v[key].integer;
}

unsigned ho_settings_flags(const ho_settings *s, ho_key key)
{
    assert(rows[key].type == HO_TYPE_FLAGS);
    return (unsigned)s->v[key].integer;
}

const char *ho_settings_str(const ho_settings *s, ho_key key)
{
    assert(!is_list(&rows[key]));
    return s->v[key].text ? s->v[key].text : "";
}

ho_span ho_settings_span(const ho_settings *s, ho_key key)
{
    ho_span span = {HO_SPAN_AUTO, 0};
    assert(rows[key].type == HO_TYPE_SPAN);
    if (s->v[key].has && !s->v[key].is_auto) {
        (void)ho_span_parse(s->v[key].text, &span, NULL); /* was legal when it was set */
    }
    return span;
}

int ho_settings_list_count(const ho_settings *s, ho_key key)
{
    assert(is_list(&rows[key]));
    return s->v[key].count;
}

const char *ho_settings_list_str(const ho_settings *s, ho_key key, int i)
{
    assert(i >= 0 && i < s->v[key].count);
    return s->v[key].item[i];
}
