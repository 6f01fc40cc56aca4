/* SPDX-License-Identifier: Apache-2.0
 * See space.h. Grids of floats are counted in units of 10^-step_decimals, in which low, step and
 * every point are whole numbers below 2^53: a point is one correctly rounded division, so it is the
 * double nearest to its decimal text. */
#include "study/space.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "study/require.h"
#include "study/text.h"

void ho_space_free(ho_space *space)
{
    for (int i = 0; i < space->count; i++) {
        for (int c = 0; c < space->param[i].choice_count; c++) {
            free(space->param[i].choice[c].text);
        }
        free(space->param[i].choice);
    }
    free(space->param);
    ho_require_free(&space->require);
    *space = (ho_space){0, NULL, NULL};
}

int ho_space_find(const ho_space *space, const char *name)
{
    for (int i = 0; i < space->count; i++) {
        if (strcmp(space->param[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

bool ho_space_active(const ho_space *space, const double *config, int i)
{
    const ho_param *param = &space->param[i];
    for (int w = 0; w < param->when_count; w++) {
        const ho_when *when = &param->when[w];
        double choice = config[when->param];
        if (!(choice >= 0 && choice < 64) || !((when->mask >> (int)choice) & 1)) {
            return false;
        }
    }
    return true;
}

/* ---- one parameter -------------------------------------------------------------------------- */

/* 10^decimals when the grid can be counted in whole decimals, else 0. */
static double grid_scale(const ho_param *p)
{
    if (p->step_decimals < 0 || p->step_decimals > 15) {
        return 0;
    }
    double scale = pow(10, p->step_decimals);
    double largest = fmax(fabs(p->low), fabs(p->high)) * scale;
    return largest < 9007199254740992.0 ? scale : 0;
}

/* Whole part of x, where x may be an ulp or so below a whole number. */
static double whole(double x)
{
    double near = nearbyint(x);
    return fabs(x - near) <= 1e-9 * fmax(1, fabs(x)) ? near : floor(x);
}

int64_t ho_param_cardinality(const ho_param *param)
{
    if (param->kind == HO_PARAM_CHOICE) {
        return param->choice_count;
    }
    if (param->kind == HO_PARAM_INT) {
        return (int64_t)((param->high - param->low) / param->step) + 1;
    }
    if (param->step <= 0) {
        return 0;
    }
    double scale = grid_scale(param);
    if (scale > 0) {
        double low = nearbyint(param->low * scale), step = nearbyint(param->step * scale);
        return (int64_t)floor((whole(param->high * scale) - low) / step) + 1;
    }
    return (int64_t)whole((param->high - param->low) / param->step) + 1;
}

double ho_param_grid_value(const ho_param *param, int64_t i)
{
    double scale = grid_scale(param), index = (double)i;
    if (param->kind == HO_PARAM_CHOICE) {
        return index;
    }
    if (param->kind == HO_PARAM_FLOAT && scale > 0) {
        double low = nearbyint(param->low * scale), step = nearbyint(param->step * scale);
        return (low + index * step) / scale;
    }
    double value = param->low + index * param->step;
    return value > param->high ? param->high : value;
}

double ho_param_snap(const ho_param *param, double value)
{
    int64_t last = ho_param_cardinality(param) - 1;
    if (isnan(value)) {
        return value;
    }
    if (param->kind == HO_PARAM_CHOICE) {
        double index = round(value);
        return index < 0 ? 0 : index > (double)last ? (double)last : index;
    }
    if (value <= param->low) {
        return param->low;
    }
    if (value >= param->high) {
        return param->high;
    }
    if (last < 0) {
        return value;
    }
    int64_t i = (int64_t)round((value - param->low) / param->step);
    return ho_param_grid_value(param, i < 0 ? 0 : i > last ? last : i);
}

/* The texts of two numbers of the grid are equal exactly when they are: print the decimals. */
static int print_stepped(const ho_param *param, double value, char *out, size_t room)
{
    char text[400];
    int decimals = param->step_decimals > 0 ? param->step_decimals : 1;
    (void)snprintf(text, sizeof text, "%.*f", decimals, value);
    if (strtod(text, NULL) != value) {
        return ho_text_f64(value, out, room);
    }
    return snprintf(out, room, "%s", text);
}

int ho_param_print(const ho_param *param, double value, char *out, size_t room)
{
    if (isnan(value)) {
        return snprintf(out, room, "nan");
    }
    if (param->kind == HO_PARAM_INT) {
        return snprintf(out, room, "%" PRId64, (int64_t)value);
    }
    if (param->kind == HO_PARAM_FLOAT) {
        return param->step > 0 ? print_stepped(param, value, out, room)
                               : ho_text_f64(value, out, room);
    }
    if (!(value >= 0 && value < param->choice_count)) {
        return snprintf(out, room, "nan");
    }
    const ho_choice *choice = &param->choice[(int)value];
    return choice->type == HO_CHOICE_STRING ? ho_text_quote(choice->text, out, room)
                                            : snprintf(out, room, "%s", choice->text);
}

static ho_status check_value(const ho_param *param, double value, ho_err *err)
{
    char got[HO_TEXT_NUMBER], low[HO_TEXT_NUMBER], high[HO_TEXT_NUMBER];
    if (ho_param_snap(param, value) == value) {
        return HO_OK;
    }
    (void)ho_text_number(value, got, sizeof got);
    if (param->kind == HO_PARAM_CHOICE) {
        return ho_err_set(err, HO_EINVAL, "%s has %d choices, not number %s", param->name,
                          param->choice_count, got);
    }
    (void)ho_param_print(param, param->low, low, sizeof low);
    (void)ho_param_print(param, param->high, high, sizeof high);
    if (!(value >= param->low && value <= param->high)) {
        return ho_err_set(err, HO_EINVAL, "%s is %s to %s, not %s", param->name, low, high, got);
    }
    char step[HO_TEXT_NUMBER];
    (void)ho_text_number(param->step, step, sizeof step);
    return ho_err_set(err, HO_EINVAL, "%s goes from %s to %s in steps of %s, which leave out %s",
                      param->name, low, high, step, got);
}

/* A text in quotes is a string; without them it is first what it looks like, then a string. */
static int find_choice(const ho_param *param, const char *text)
{
    char printed[512];
    for (int i = 0; i < param->choice_count; i++) {
        (void)ho_param_print(param, i, printed, sizeof printed);
        if (strcmp(printed, text) == 0) {
            return i;
        }
    }
    for (int i = 0; i < param->choice_count; i++) {
        if (param->choice[i].type == HO_CHOICE_STRING && strcmp(param->choice[i].text, text) == 0) {
            return i;
        }
    }
    return -1;
}

ho_status ho_param_parse(const ho_param *param, const char *text, double *out, ho_err *err)
{
    double value = 0;
    int64_t integer = 0;
    if (param->kind == HO_PARAM_CHOICE) {
        int found = find_choice(param, text);
        if (found < 0) {
            return ho_err_set(err, HO_EINVAL, "%s has no choice %s", param->name, text);
        }
        *out = found;
        return HO_OK;
    }
    if (param->kind == HO_PARAM_INT) {
        if (!ho_text_parse_i64(text, &integer)) {
            return ho_err_set(err, HO_EINVAL, "%s is a whole number, not %s", param->name, text);
        }
        value = (double)integer;
    } else if (!ho_text_parse_f64(text, &value) || isnan(value)) {
        return ho_err_set(err, HO_EINVAL, "%s is a number, not %s", param->name, text);
    }
    ho_status rc = check_value(param, value, err);
    if (rc == HO_OK) {
        *out = value;
    }
    return rc;
}

/* ---- configurations ------------------------------------------------------------------------- */

void ho_space_canonical(const ho_space *space, double *config)
{
    for (int i = 0; i < space->count; i++) {
        config[i] =
            ho_space_active(space, config, i) ? ho_param_snap(&space->param[i], config[i]) : NAN;
    }
}

ho_status ho_space_check(const ho_space *space, const double *config, ho_err *err)
{
    for (int i = 0; i < space->count; i++) {
        const ho_param *param = &space->param[i];
        bool active = ho_space_active(space, config, i);
        if (active && isnan(config[i])) {
            return ho_err_set(err, HO_EINVAL, "%s has no value", param->name);
        }
        if (!active && !isnan(config[i])) {
            return ho_err_set(err, HO_EINVAL, "%s has a value, but is not active", param->name);
        }
        ho_status rc = active ? check_value(param, config[i], err) : HO_OK;
        if (rc != HO_OK) {
            return rc;
        }
    }
    return ho_require_check(space->require, space, config, err);
}

/* splitmix64 (Steele, Lea, Flood 2014) */
static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t ho_space_hash(const ho_space *space, const double *config)
{
    uint64_t hash = mix((uint64_t)space->count);
    for (int i = 0; i < space->count; i++) {
        double value = config[i] == 0 ? 0 : config[i];
        uint64_t bits = UINT64_C(0x7ff8000000000000); /* every NaN alike */
        if (!isnan(value)) {
            memcpy(&bits, &value, sizeof bits);
        }
        hash = mix(hash ^ bits);
    }
    return hash;
}
