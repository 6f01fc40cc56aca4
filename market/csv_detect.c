/* SPDX-License-Identifier: Apache-2.0
 * Finds the dialect of a CSV file: the sample of its first lines, separator, decimals and header.
 * Everything found can be overridden by a key of [data]; what cannot be told apart is an error that
 * names the key. See csv.h; the columns are csv_roles.c. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "market/csv_detector.h"
#include "market/number.h"

int ho_csv_sample_split(ho_csv_detector *s, int i)
{
    return ho_csv_split(s->line[i].begin, s->line[i].end, s->d->separator, s->field);
}

/* Without a trailing empty field. */
int ho_csv_sample_split_trimmed(ho_csv_detector *s, int i)
{
    int n = ho_csv_sample_split(s, i);
    return n > 1 && s->field[n - 1].length == 0 ? n - 1 : n;
}

void ho_csv_field_copy(const ho_csv_field *field, char *out, size_t size)
{
    size_t n = field->length < size - 1 ? field->length : size - 1;
    memcpy(out, field->text, n);
    out[n] = '\0';
}

bool ho_csv_is_number(const ho_csv_detector *s, const ho_csv_field *field)
{
    double value = 0.0;
    char decimal = s->d->decimal ? s->d->decimal : '.';
    return ho_number_parse(field->text, field->length, decimal, s->d->thousands, &value) ==
           HO_NUMBER_OK;
}

static bool is_number_or_nothing(const ho_csv_detector *s, const ho_csv_field *field)
{
    double value = 0.0;
    ho_number_kind kind = ho_number_parse(
        field->text, field->length, s->d->decimal ? s->d->decimal : '.', s->d->thousands, &value);
    return kind == HO_NUMBER_OK || kind == HO_NUMBER_EMPTY;
}

ho_stamp_result ho_csv_parse_stamp(const ho_csv_detector *s, const ho_csv_field *field,
                                   ho_stamp *out)
{
    return ho_stamp_parse(field->text, field->length, s->d->order, s->d->epoch_unit, s->now_s, out);
}

bool ho_csv_is_stamp(const ho_csv_detector *s, const ho_csv_field *field)
{
    ho_stamp stamp;
    ho_stamp_result result = ho_csv_parse_stamp(s, field, &stamp);
    return result == HO_STAMP_OK || result == HO_STAMP_AMBIGUOUS;
}

/* ---- lines, separator, decimals -------------------------------------------------------------- */

static bool is_comment(const char *p, const char *end)
{
    return p < end && (*p == '#' || (end - p > 1 && p[0] == '/' && p[1] == '/'));
}

static void take_sample(ho_csv_detector *s)
{
    const char *p = s->text;
    int64_t number = 0;
    while (p < s->end && s->lines < HO_CSV_SAMPLE) {
        const char *stop = ho_csv_line_end(p, s->end), *q = p;
        ++number;
        while (q < stop && isspace((unsigned char)*q)) {
            ++q;
        }
        if (q < stop && !is_comment(q, stop)) {
            s->line[s->lines++] = (ho_csv_line){p, stop, number};
        }
        p = stop + 1;
    }
}

/* Most frequent number of fields in the sample's later part, and whether most have it. */
static int modal_fields(ho_csv_detector *s, bool *agreeing)
{
    int first = s->lines > 2 * HO_CSV_HEAD ? HO_CSV_HEAD
                : s->lines > 6             ? s->lines / 2
                                           : s->lines > 1;
    int best = 0, best_count = 0;
    int count[HO_CSV_FIELDS + 1] = {0};
    for (int i = first; i < s->lines; ++i) {
        int n = ho_csv_sample_split_trimmed(s, i);
        if (n > 0 && ++count[n] > best_count) {
            best_count = count[n];
            best = n;
        }
    }
    int lines = s->lines - first;
    *agreeing = best_count * 100 >= lines * (lines < 10 ? 50 : 80);
    return best;
}

static ho_status find_separator(ho_csv_detector *s)
{
    static const char candidates[] = {'\t', ';', '|', ','};
    const char *key = s->options->separator;
    if (key[0]) {
        s->d->separator = strcasecmp(key, "tab") == 0 || strcmp(key, "\\t") == 0 ? '\t' : key[0];
        if (s->d->separator != '\t' && key[1] != '\0') {
            return ho_err_set(s->err, HO_EINVAL,
                              "data.separator = \"%s\": write one character, or \"tab\"", key);
        }
        return HO_OK;
    }
    if (s->line[0].end - s->line[0].begin >= 5 && strncasecmp(s->line[0].begin, "sep=", 4) == 0) {
        s->d->separator = s->line[0].begin[4]; /* as Excel writes it */
        memmove(s->line, s->line + 1, (size_t)--s->lines * sizeof s->line[0]);
        return s->lines > 0 ? HO_OK
                            : ho_err_set(s->err, HO_EDATA, "%s: there are no rows", s->path);
    }
    char best = '\0';
    int best_fields = 1;
    for (size_t i = 0; i < sizeof candidates; ++i) {
        bool agreeing = false;
        s->d->separator = candidates[i];
        int n = modal_fields(s, &agreeing);
        if (n >= 5 && agreeing) { /* time and four prices: the first that fits */
            return HO_OK;
        }
        if (n > best_fields && agreeing) {
            best = candidates[i];
            best_fields = n;
        }
    }
    if (!best) {
        return ho_err_set(s->err, HO_EDATA,
                          "%s:%lld: no separator (tab ; | ,) splits the lines into columns; is "
                          "this a CSV file? Write data.separator if it is another one",
                          s->path, (long long)s->line[0].number);
    }
    s->d->separator = best;
    return HO_OK;
}

/* Votes of the sample's number fields on what '.' and ',' are. */
static ho_status find_decimal(ho_csv_detector *s)
{
    int comma = 0, dot = 0, comma_groups = 0, dot_groups = 0, open_question = 0;
    int64_t where = 0;
    char example[32] = "";
    for (int i = 0; i < s->lines; ++i) {
        int n = ho_csv_sample_split(s, i);
        for (int k = 0; k < n; ++k) {
            const ho_csv_field *f = &s->field[k];
            int commas = 0, dots = 0, digits = 0, others = 0;
            size_t last = 0;
            for (size_t j = 0; j < f->length; ++j) {
                char c = f->text[j];
                commas += c == ',';
                dots += c == '.';
                digits += isdigit((unsigned char)c) != 0;
                others += !(isdigit((unsigned char)c) || c == ',' || c == '.' ||
                            (j == 0 && (c == '-' || c == '+')));
                last = c == ',' || c == '.' ? j : last;
            }
            size_t after = f->length - last - 1;
            if (others || !digits || commas + dots == 0 || (commas > 1 && dots > 1)) {
                continue;
            }
            if (commas && dots) {
                *(f->text[last] == ',' ? &comma : &dot) += 1;
                *(f->text[last] == ',' ? &dot_groups : &comma_groups) += 1;
            } else if (commas > 1) {
                comma_groups += after == 3;
            } else if (dots > 1) {
                continue; /* a date with points */
            } else if (dots == 1) {
                dot += after != 3;
            } else if (after != 3) {
                ++comma;
            } else if (!open_question++) {
                where = s->line[i].number;
                ho_csv_field_copy(f, example, sizeof example);
            }
        }
    }
    const char *key = s->options->decimal;
    if (key[0]) {
        if ((key[0] != '.' && key[0] != ',') || key[1]) {
            return ho_err_set(s->err, HO_EINVAL, "data.decimal must be \".\" or \",\", not \"%s\"",
                              key);
        }
        s->d->decimal = key[0];
        s->d->thousands = key[0] == '.' ? ',' : '.';
        return HO_OK;
    }
    bool is_comma = comma > 0 && (dot == 0 || comma > 10 * dot);
    if (comma > 0 && !is_comma && !(dot > 10 * comma)) {
        return ho_err_set(s->err, HO_EDATA,
                          "%s: some numbers have a decimal comma and some a decimal point; write "
                          "data.decimal = \",\" or \".\"",
                          s->path);
    }
    if (open_question && !is_comma && dot == 0 && comma_groups == 0) {
        return ho_err_set(s->err, HO_EDATA,
                          "%s:%lld: \"%s\" may be with a decimal comma or with thousands; write "
                          "data.decimal = \",\" or \".\"",
                          s->path, (long long)where, example);
    }
    s->d->decimal = is_comma ? ',' : '.';
    s->d->thousands = is_comma ? (dot_groups ? '.' : '\0')
                               : (dot || comma_groups || s->d->separator == ',' ? ',' : '\0');
    return HO_OK;
}

/* ---- header ---------------------------------------------------------------------------------- */

/* A row of values: a number behind the first field, or a stamp in the first and no words. */
static bool is_data(ho_csv_detector *s, int i)
{
    int n = ho_csv_sample_split_trimmed(s, i), numbers = 0, nothing = 0;
    for (int k = 1; k < n; ++k) {
        numbers += ho_csv_is_number(s, &s->field[k]);
        nothing += is_number_or_nothing(s, &s->field[k]);
    }
    return n > 1 && (numbers > 0 || (ho_csv_is_stamp(s, &s->field[0]) && nothing == n - 1));
}

/* Number of fields with a role's name. */
static int roles_in(ho_csv_detector *s, int i)
{
    int n = ho_csv_sample_split(s, i), roles = 0;
    for (int k = 0; k < n; ++k) {
        char name[48];
        ho_csv_field_copy(&s->field[k], name, sizeof name);
        roles += ho_csv_role_of(name) != HO_CSV_SKIP;
    }
    return roles;
}

static ho_status find_header(ho_csv_detector *s)
{
    s->header_line = -1;
    s->data_line = 0;
    if (s->options->header == HO_YES) {
        s->header_line = 0;
        s->data_line = 1;
    } else if (s->options->header != HO_NO) {
        while (s->data_line < s->lines && s->data_line < HO_CSV_HEAD && !is_data(s, s->data_line)) {
            ++s->data_line;
        }
        int most = -1;
        for (int i = 0; i < s->data_line; ++i) {
            int roles = roles_in(s, i);
            if (roles > most || (roles == most && roles == 0)) {
                most = roles;
                s->header_line = i;
            }
        }
    }
    if (s->data_line >= s->lines || s->data_line >= HO_CSV_HEAD) {
        return ho_err_set(s->err, HO_EDATA,
                          "%s:%lld: no row with a time and numbers is among the first lines; if "
                          "the file has bars, write data.separator and data.columns",
                          s->path, (long long)s->line[0].number);
    }
    s->d->header = s->header_line >= 0;
    s->d->data_offset = (size_t)(s->line[s->data_line].begin - s->text);
    s->d->data_line = s->line[s->data_line].number;
    for (int i = 0; i < s->data_line; ++i) {
        if (i != s->header_line) {
            ho_report_note(s->report, false, "line %lld before the data is not used: %.60s",
                           (long long)s->line[i].number,
                           i < s->header_line ? "text above the header" : "second header line");
        }
    }
    return HO_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void describe(ho_csv_detector *s)
{
    ho_csv_dialect *d = s->d;
    ho_data_report *r = s->report;
    const char *separator = d->separator == '\t'  ? "tab"
                            : d->separator == ',' ? "comma"
                            : d->separator == ';' ? "semicolon"
                            : d->separator == '|' ? "bar"
                                                  : "otherwise";
    size_t used = 0;
    (void)snprintf(r->dialect, sizeof r->dialect, "%s%sCSV, %s separated, %s%s%s", d->known_as,
                   d->known_as[0] ? ": " : "", separator, d->header ? "header" : "no header",
                   d->decimal == ',' ? ", decimal comma" : "",
                   d->price_scale != 1.0 ? ", fixed-point prices" : "");
    r->columns[0] = '\0';
    for (int role = HO_CSV_STAMP; role < HO_CSV_ROLES; ++role) {
        int k = d->column[role];
        if (k >= 0 && used < sizeof r->columns) {
            int n = snprintf(r->columns + used, sizeof r->columns - used, "%s%s = %s%s%d%s",
                             used ? ", " : "", ho_csv_role_name((ho_csv_role)role), d->name[k],
                             d->name[k][0] ? " (" : "column ", k + 1, d->name[k][0] ? ")" : "");
            used += n > 0 ? (size_t)n : 0;
        }
    }
}

ho_status ho_csv_detect(const char *path, const char *member, const char *text, size_t size,
                        const ho_data_options *options, ho_csv_dialect *out, ho_data_report *report,
                        ho_err *err)
{
    ho_status rc = HO_OK;
    memset(out, 0, sizeof *out);
    for (int role = 0; role < HO_CSV_ROLES; ++role) {
        out->column[role] = -1;
    }
    out->known_as = "";
    out->day_s = -1;
    out->epoch_unit = options->epoch_unit;
    out->decimal = '.';
    ho_csv_detector *s = calloc(1, sizeof *s);
    if (!s) {
        return ho_err_set(err, HO_ENOMEM, "%s: no memory", path);
    }
    *s = (ho_csv_detector){.path = path,
                           .text = text,
                           .end = text + size,
                           .options = options,
                           .d = out,
                           .report = report,
                           .err = err,
                           .now_s = (int64_t)time(NULL)};
    if (memchr(text, '\0', size < 4096 ? size : 4096)) {
        rc = ho_err_set(err, HO_EDATA, "%s: is neither text nor a known binary format", path);
        goto out;
    }
    take_sample(s);
    if (s->lines > 0 && size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 &&
        s->line[0].begin == text) {
        s->line[0].begin += 3; /* byte order mark */
    }
    if (s->lines == 0) {
        rc = ho_err_set(err, HO_EDATA, "%s: there are no rows", path);
        goto out;
    }
    if ((rc = find_separator(s)) != HO_OK || (rc = find_decimal(s)) != HO_OK ||
        (rc = find_header(s)) != HO_OK) {
        goto out;
    }
    if ((rc = ho_csv_find_roles(s, member)) == HO_OK) {
        describe(s);
    }
out:
    free(s);
    return rc;
}
