/* SPDX-License-Identifier: Apache-2.0
 * See require.h. A recursive-descent parser into an array of nodes; a node's operands come before
 * it, so evaluation is a walk over indexes. Bounded: REQUIRE_NODES nodes, REQUIRE_DEPTH levels. */
#include "study/require.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "study/text.h"

enum { REQUIRE_NODES = 256, REQUIRE_DEPTH = 32, WORD = HO_PARAM_NAME_MAX };

typedef enum op {
    OP_NUMBER,
    OP_TEXT,
    OP_PARAM,
    OP_NEGATE,
    OP_NOT,
    OP_ADD,
    OP_SUBTRACT,
    OP_MULTIPLY,
    OP_DIVIDE,
    OP_LESS,
    OP_LESS_EQUAL,
    OP_MORE,
    OP_MORE_EQUAL,
    OP_EQUAL,
    OP_UNEQUAL,
    OP_AND,
    OP_OR,
} op;

typedef struct node {
    op kind;
    int left, right; /* operands; OP_PARAM: left is the parameter */
    double number;
    char *text; /* OP_TEXT, owned */
} node;

typedef struct rule {
    char *source;
    node *nodes;
    int count; /* the last node is the root */
    struct rule *next;
} rule;

struct ho_require {
    rule *first;
};

/* Of an expression: a number (truth is 0 or 1) or a text. */
typedef struct result {
    double number;
    const char *text; /* NULL: a number */
} result;

typedef struct parser {
    const char *source, *at;
    const ho_space *space;
    const ho_settings *settings;
    rule *out;
    int depth;
    bool names_parameter;
    ho_err *err;
} parser;

static ho_status complain(parser *p, const char *what)
{
    return ho_err_set(p->err, HO_EINVAL, "\"%s\", character %d: %s", p->source,
                      (int)(p->at - p->source) + 1, what);
}

static ho_status push(parser *p, node n, int *index)
{
    if (p->out->count == REQUIRE_NODES) {
        free(n.text);
        return complain(p, "the requirement is too long");
    }
    *index = p->out->count;
    p->out->nodes[p->out->count++] = n;
    return HO_OK;
}

static void skip_spaces(parser *p)
{
    while (isspace((unsigned char)*p->at)) {
        p->at++;
    }
}

static bool accept(parser *p, const char *token)
{
    size_t n = strlen(token);
    skip_spaces(p);
    if (strncmp(p->at, token, n) != 0) {
        return false;
    }
    if (isalpha((unsigned char)token[0]) &&
        (isalnum((unsigned char)p->at[n]) || p->at[n] == '_' || p->at[n] == '.')) {
        return false;
    }
    p->at += n;
    return true;
}

static ho_status parse_or(parser *p, int *index);

static ho_status parse_number(parser *p, int *index)
{
    char word[64];
    size_t n = 0;
    while (isalnum((unsigned char)p->at[n]) || p->at[n] == '.' || p->at[n] == '_' ||
           ((p->at[n] == '-' || p->at[n] == '+') && n > 0 &&
            (p->at[n - 1] == 'e' || p->at[n - 1] == 'E'))) {
        n++;
    }
    double number = 0;
    if (n < sizeof word) {
        memcpy(word, p->at, n);
    }
    word[n < sizeof word ? n : 0] = '\0';
    if (!ho_text_parse_f64(word, &number) || !isfinite(number)) {
        return complain(p, "this is no number");
    }
    p->at += n;
    return push(p, (node){.kind = OP_NUMBER, .number = number}, index);
}

static ho_status parse_text(parser *p, int *index)
{
    char quote = *p->at;
    const char *end = strchr(p->at + 1, quote);
    if (!end) {
        return complain(p, "this quote is not closed");
    }
    char *text = strndup(p->at + 1, (size_t)(end - p->at - 1));
    if (!text) {
        return ho_err_set(p->err, HO_ENOMEM, "out of memory");
    }
    p->at = end + 1;
    return push(p, (node){.kind = OP_TEXT, .text = text}, index);
}

/* A key that is not searched is a constant. */
static ho_status parse_setting(parser *p, const char *word, int *index)
{
    ho_key key = ho_setting_find(word);
    if (key == HO_KEY_COUNT || !p->settings) {
        char what[256];
        ho_key near = ho_setting_nearest(word);
        (void)snprintf(what, sizeof what, "\"%s\" is neither a parameter nor a setting%s%s%s", word,
                       near == HO_KEY_COUNT ? "" : "; did you mean \"",
                       near == HO_KEY_COUNT ? "" : ho_setting(near)->name,
                       near == HO_KEY_COUNT ? "" : "\"?");
        return complain(p, what);
    }
    ho_setting_type type = ho_setting(key)->type;
    node n = {.kind = OP_NUMBER};
    if (ho_settings_is_auto(p->settings, key) || !ho_settings_has(p->settings, key)) {
        return complain(p, "this setting has no fixed value to compare with");
    }
    if (type == HO_TYPE_INT || type == HO_TYPE_FLOAT || type == HO_TYPE_DURATION) {
        n.number = ho_settings_f64(p->settings, key);
    } else if (type == HO_TYPE_BOOL) {
        n.number = ho_settings_bool(p->settings, key);
    } else if (type == HO_TYPE_CHOICE || type == HO_TYPE_STRING) {
        n.kind = OP_TEXT;
        n.text = ho_text_copy(ho_settings_str(p->settings, key));
        if (!n.text) {
            return ho_err_set(p->err, HO_ENOMEM, "out of memory");
        }
    } else {
        return complain(p, "this setting is neither a number nor a text");
    }
    return push(p, n, index);
}

static ho_status parse_name(parser *p, int *index)
{
    char word[WORD];
    size_t n = 0;
    while (isalnum((unsigned char)p->at[n]) || p->at[n] == '_' || p->at[n] == '.') {
        n++;
    }
    if (n >= sizeof word) {
        return complain(p, "this name is too long");
    }
    memcpy(word, p->at, n);
    word[n] = '\0';
    ho_status rc;
    int param = ho_space_find(p->space, word);
    if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0) {
        rc = push(p, (node){.kind = OP_NUMBER, .number = word[0] == 't'}, index);
    } else if (param >= 0) {
        p->names_parameter = true;
        rc = push(p, (node){.kind = OP_PARAM, .left = param}, index);
    } else {
        rc = parse_setting(p, word, index);
    }
    p->at += rc == HO_OK ? n : 0;
    return rc;
}

static ho_status parse_primary(parser *p, int *index)
{
    skip_spaces(p);
    if (accept(p, "(")) {
        ho_status rc = parse_or(p, index);
        if (rc == HO_OK && !accept(p, ")")) {
            rc = complain(p, "\")\" is missing");
        }
        return rc;
    }
    if (isdigit((unsigned char)*p->at) || *p->at == '.') {
        return parse_number(p, index);
    }
    if (*p->at == '"' || *p->at == '\'') {
        return parse_text(p, index);
    }
    if (isalpha((unsigned char)*p->at) || *p->at == '_') {
        return parse_name(p, index);
    }
    return complain(p, *p->at ? "a number, a name or \"(\" is expected" : "something is missing");
}

static ho_status parse_unary(parser *p, int *index)
{
    if (++p->depth > REQUIRE_DEPTH) {
        return complain(p, "nested too deeply");
    }
    ho_status rc;
    if (accept(p, "-")) {
        int operand = 0;
        rc = parse_unary(p, &operand);
        if (rc == HO_OK) {
            rc = push(p, (node){.kind = OP_NEGATE, .left = operand}, index);
        }
    } else {
        rc = parse_primary(p, index);
    }
    p->depth--;
    return rc;
}

/* One level of binary operators; `same` says whether several may follow one another. */
typedef struct level {
    struct {
        const char *token;
        op kind;
    } ops[6];
    bool same;
} level;

static const level levels[] = {
    {{{"*", OP_MULTIPLY}, {"/", OP_DIVIDE}}, true},
    {{{"+", OP_ADD}, {"-", OP_SUBTRACT}}, true},
    {{{"<=", OP_LESS_EQUAL},
      {">=", OP_MORE_EQUAL},
      {"==", OP_EQUAL},
      {"!=", OP_UNEQUAL},
      {"<", OP_LESS},
      {">", OP_MORE}},
     false},
};

static ho_status parse_level(parser *p, int rank, int *index)
{
    ho_status rc = rank < 0 ? parse_unary(p, index) : parse_level(p, rank - 1, index);
    for (bool more = rank >= 0; rc == HO_OK && more;) {
        more = false;
        for (int i = 0; i < 6 && levels[rank].ops[i].token && rc == HO_OK; i++) {
            if (accept(p, levels[rank].ops[i].token)) {
                int right = 0;
                rc = parse_level(p, rank - 1, &right);
                if (rc == HO_OK) {
                    rc = push(
                        p, (node){.kind = levels[rank].ops[i].kind, .left = *index, .right = right},
                        index);
                }
                more = levels[rank].same;
                break;
            }
        }
    }
    return rc;
}

static ho_status parse_not(parser *p, int *index)
{
    if (accept(p, "not")) {
        if (++p->depth > REQUIRE_DEPTH) {
            return complain(p, "nested too deeply");
        }
        int operand = 0;
        ho_status rc = parse_not(p, &operand);
        p->depth--;
        return rc == HO_OK ? push(p, (node){.kind = OP_NOT, .left = operand}, index) : rc;
    }
    return parse_level(p, 2, index);
}

static ho_status parse_and(parser *p, int *index)
{
    ho_status rc = parse_not(p, index);
    while (rc == HO_OK && accept(p, "and")) {
        int right = 0;
        rc = parse_not(p, &right);
        if (rc == HO_OK) {
            rc = push(p, (node){.kind = OP_AND, .left = *index, .right = right}, index);
        }
    }
    return rc;
}

static ho_status parse_or(parser *p, int *index)
{
    if (++p->depth > REQUIRE_DEPTH) {
        return complain(p, "nested too deeply");
    }
    ho_status rc = parse_and(p, index);
    while (rc == HO_OK && accept(p, "or")) {
        int right = 0;
        rc = parse_and(p, &right);
        if (rc == HO_OK) {
            rc = push(p, (node){.kind = OP_OR, .left = *index, .right = right}, index);
        }
    }
    p->depth--;
    return rc;
}

static void rule_free(rule *r)
{
    if (r) {
        for (int i = 0; i < r->count; i++) {
            free(r->nodes[i].text);
        }
        free(r->nodes);
        free(r->source);
        free(r);
    }
}

ho_status ho_require_add(ho_space *space, const ho_settings *settings, const char *text,
                         ho_err *err)
{
    ho_status rc = HO_OK;
    int root = 0;
    rule *r = (rule *)calloc(1, sizeof *r);
    if (!space->require) {
        space->require = (ho_require *)calloc(1, sizeof *space->require);
    }
    if (r) {
        r->source = ho_text_copy(text);
        r->nodes = (node *)calloc(REQUIRE_NODES, sizeof *r->nodes);
    }
    if (!r || !r->source || !r->nodes || !space->require) {
        rc = ho_err_set(err, HO_ENOMEM, "out of memory");
        goto out;
    }
    parser p = {r->source, r->source, space, settings, r, 0, false, err};
    rc = parse_or(&p, &root);
    skip_spaces(&p);
    if (rc == HO_OK && *p.at) {
        rc = complain(&p, "the requirement should end here");
    }
    if (rc == HO_OK && (r->nodes[root].kind < OP_LESS && r->nodes[root].kind != OP_NOT)) {
        rc = ho_err_set(err, HO_EINVAL, "\"%s\" compares nothing: write e.g. \"a > b\"", text);
    }
    if (rc == HO_OK && !p.names_parameter) {
        rc = ho_err_set(err, HO_EINVAL, "\"%s\" names no parameter of [search]", text);
    }
    if (rc == HO_OK) {
        rule **last = &space->require->first;
        while (*last) {
            last = &(*last)->next;
        }
        *last = r;
        r = NULL;
    }
out:
    rule_free(r);
    return rc;
}

/* ---- evaluation ----------------------------------------------------------------------------- */

static result param_value(const ho_param *param, double value)
{
    if (param->kind != HO_PARAM_CHOICE) {
        return (result){value, NULL};
    }
    const ho_choice *choice = &param->choice[(int)value];
    switch (choice->type) {
    case HO_CHOICE_BOOL:
        return (result){choice->boolean, NULL};
    case HO_CHOICE_INT:
        return (result){(double)choice->integer, NULL};
    case HO_CHOICE_FLOAT:
        return (result){choice->real, NULL};
    default:
        return (result){0, choice->text};
    }
}

/* Texts are equal or not; in any other use they make a comparison false. */
static double compare(op kind, result a, result b)
{
    if (a.text || b.text) {
        bool equal = a.text && b.text && strcmp(a.text, b.text) == 0;
        return kind == OP_EQUAL ? equal : kind == OP_UNEQUAL ? !equal : 0;
    }
    switch (kind) {
    case OP_LESS:
        return a.number < b.number;
    case OP_LESS_EQUAL:
        return a.number <= b.number;
    case OP_MORE:
        return a.number > b.number;
    case OP_MORE_EQUAL:
        return a.number >= b.number;
    case OP_EQUAL:
        return a.number == b.number;
    default:
        return a.number != b.number;
    }
}

static result evaluate(const node *n, const result *value, const ho_space *space,
                       const double *config)
{
    result a = n->kind > OP_PARAM ? value[n->left] : (result){0, NULL};
    result b = n->kind > OP_NOT ? value[n->right] : (result){0, NULL};
    double x = a.text ? NAN : a.number, y = b.text ? NAN : b.number;
    switch (n->kind) {
    case OP_NUMBER:
        return (result){n->number, NULL};
    case OP_TEXT:
        return (result){0, n->text};
    case OP_PARAM:
        return param_value(&space->param[n->left], config[n->left]);
    case OP_NEGATE:
        return (result){-x, NULL};
    case OP_NOT:
        return (result){!(x != 0), NULL};
    case OP_ADD:
        return (result){x + y, NULL};
    case OP_SUBTRACT:
        return (result){x - y, NULL};
    case OP_MULTIPLY:
        return (result){x * y, NULL};
    case OP_DIVIDE:
        return (result){x / y, NULL};
    case OP_AND:
        return (result){x != 0 && y != 0, NULL};
    case OP_OR:
        return (result){x != 0 || y != 0, NULL};
    default:
        return (result){compare(n->kind, a, b), NULL};
    }
}

static bool holds(const rule *r, const ho_space *space, const double *config)
{
    result value[REQUIRE_NODES];
    for (int i = 0; i < r->count; i++) {
        if (r->nodes[i].kind == OP_PARAM && isnan(config[r->nodes[i].left])) {
            return true; /* an inactive parameter binds nothing */
        }
        value[i] = evaluate(&r->nodes[i], value, space, config);
    }
    return value[r->count - 1].number != 0;
}

ho_status ho_require_check(const ho_require *require, const ho_space *space, const double *config,
                           ho_err *err)
{
    for (const rule *r = require ? require->first : NULL; r; r = r->next) {
        if (!holds(r, space, config)) {
            return ho_err_set(err, HO_EINVAL, "the requirement \"%s\" does not hold", r->source);
        }
    }
    return HO_OK;
}

int ho_require_count(const ho_require *require)
{
    int count = 0;
    for (const rule *r = require ? require->first : NULL; r; r = r->next) {
        count++;
    }
    return count;
}

const char *ho_require_text(const ho_require *require, int i)
{
    const rule *r = require->first;
    while (i-- > 0) {
        r = r->next;
    }
    return r->source;
}

void ho_require_free(ho_require **require)
{
    if (require && *require) {
        for (rule *r = (*require)->first; r;) {
            rule *next = r->next;
            rule_free(r);
            r = next;
        }
        free(*require);
        *require = NULL;
    }
}
