/* SPDX-License-Identifier: Apache-2.0
 * The acceptance problems of the search. */
#include "bench/search_problems.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PARAMS_MAX = 16 };
static const double PI = 3.14159265358979323846;

static ho_param real(const char *name, double low, double high, bool log)
{
    ho_param p = {.kind = HO_PARAM_FLOAT, .log = log, .low = low, .high = high, .key = -1};

    snprintf(p.name, sizeof p.name, "%s", name);
    return p;
}

static ho_param integer(const char *name, double low, double high, double step, bool log)
{
    ho_param p = real(name, low, high, log);

    p.kind = HO_PARAM_INT;
    p.step = step;
    return p;
}

static ho_param choice(const char *name, ho_choice *choices, int count)
{
    ho_param p = real(name, 0.0, 0.0, false);

    p.kind = HO_PARAM_CHOICE;
    p.choice = choices;
    p.choice_count = count;
    return p;
}

/* n parameters x0 ... in [low, high] */
static ho_space cube(ho_param *params, int n, double low, double high)
{
    ho_space space = {.count = n, .param = params};

    for (int i = 0; i < n; i++) {
        char name[8];

        snprintf(name, sizeof name, "x%d", i);
        params[i] = real(name, low, high, false);
    }
    return space;
}

static ho_space branin_space(void)
{
    static ho_param params[2];
    ho_space space = cube(params, 2, -5.0, 10.0);

    params[1].low = 0.0;
    params[1].high = 15.0;
    return space;
}

static double branin(const double *x)
{
    double b = 5.1 / (4.0 * PI * PI), c = 5.0 / PI;
    double u = x[1] - b * x[0] * x[0] + c * x[0] - 6.0;

    return u * u + 10.0 * (1.0 - 1.0 / (8.0 * PI)) * cos(x[0]) + 10.0 - 0.39788735772973816;
}

static ho_space hartmann6_space(void)
{
    static ho_param params[6];

    return cube(params, 6, 0.0, 1.0);
}

static double hartmann6(const double *x)
{
    static const double A[4][6] = {{10, 3, 17, 3.5, 1.7, 8},
                                   {0.05, 10, 17, 0.1, 8, 14},
                                   {3, 3.5, 1.7, 10, 17, 8},
                                   {17, 8, 0.05, 10, 0.1, 14}};
    static const double P[4][6] = {{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
                                   {0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
                                   {0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
                                   {0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381}};
    static const double C[4] = {1.0, 1.2, 3.0, 3.2};
    double sum = 0.0;

    for (int k = 0; k < 4; k++) {
        double square = 0.0;

        for (int i = 0; i < 6; i++) {
            square += A[k][i] * (x[i] - P[k][i]) * (x[i] - P[k][i]);
        }
        sum += C[k] * exp(-square);
    }
    return 3.322368011391339 - sum;
}

static ho_space sphere10_space(void)
{
    static ho_param params[10];

    return cube(params, 10, -5.0, 5.0);
}

static double sphere10(const double *x)
{
    double sum = 0.0;

    for (int i = 0; i < 10; i++) {
        sum += x[i] * x[i];
    }
    return sum;
}

static ho_space rosenbrock5_space(void)
{
    static ho_param params[5];

    return cube(params, 5, -5.0, 5.0);
}

static double rosenbrock5(const double *x)
{
    double sum = 0.0;

    for (int i = 0; i < 4; i++) {
        double bend = x[i + 1] - x[i] * x[i];

        sum += 100.0 * bend * bend + (1.0 - x[i]) * (1.0 - x[i]);
    }
    return sum;
}

static ho_space rastrigin5_space(void)
{
    static ho_param params[5];

    return cube(params, 5, -5.12, 5.12);
}

static double rastrigin5(const double *x)
{
    double sum = 50.0;

    for (int i = 0; i < 5; i++) {
        sum += x[i] * x[i] - 10.0 * cos(2.0 * PI * x[i]);
    }
    return sum;
}

static ho_space mixed7_space(void)
{
    static char relu[] = "relu", tanh_[] = "tanh", gelu[] = "gelu", silu[] = "silu";
    static ho_choice act[4] = {{.type = HO_CHOICE_STRING, .text = relu},
                               {.type = HO_CHOICE_STRING, .text = tanh_},
                               {.type = HO_CHOICE_STRING, .text = gelu},
                               {.type = HO_CHOICE_STRING, .text = silu}};
    static ho_param params[7];
    ho_space space = {.count = 7, .param = params};

    params[0] = real("lr", 1e-5, 0.1, true);
    params[1] = real("gamma", 0.9, 0.999, false);
    params[2] = integer("layers", 1, 6, 1, false);
    params[3] = integer("units", 16, 512, 1, true);
    params[4] = integer("batch", 32, 512, 32, false);
    params[5] = choice("act", act, 4);
    params[6] = real("drop", 0.0, 0.5, false);
    params[6].step = 0.05;
    params[6].step_decimals = 2;
    return space;
}

static double square(double x)
{
    return x * x;
}

static double mixed7(const double *x)
{
    static const double OFFSET[4] = {0.3, 0.8, 0.0, 0.1};

    return square(log10(x[0]) + 3.3) + square((x[1] - 0.985) / 0.03) + 0.15 * square(x[2] - 3.0) +
           0.5 * square(log2(x[3]) - 7.0) + square((x[4] - 128.0) / 192.0) + OFFSET[(int)x[5]] +
           4.0 * square(x[6] - 0.1);
}

static ho_space conditional_space(void)
{
    static char dqn[] = "dqn", ppo[] = "ppo";
    static ho_choice algo[2] = {{.type = HO_CHOICE_STRING, .text = dqn},
                                {.type = HO_CHOICE_STRING, .text = ppo}};
    static ho_param params[6];
    ho_space space = {.count = 6, .param = params};

    params[0] = choice("algo", algo, 2);
    params[1] = real("eps", 1e-3, 1.0, true);
    params[2] = integer("replay", 1000, 100000, 1, true);
    params[3] = real("clip", 0.05, 0.4, false);
    params[4] = real("lam", 0.8, 1.0, false);
    params[5] = integer("k", 1, 20, 1, false);
    for (int p = 1; p < 6; p++) {
        params[p].when_count = 1;
        params[p].when[0].param = 0;
        params[p].when[0].mask = p < 3 ? 1 : 2;
    }
    return space;
}

static double conditional(const double *x)
{
    if (x[0] == 0.0) {
        return 1.0 + square(log10(x[1]) + 1.5) + square(log10(x[2]) - 4.2);
    }
    return square((x[3] - 0.2) / 0.1) + square((x[4] - 0.95) / 0.05) + square((x[5] - 8.0) / 5.0);
}

static const ho_problem PROBLEMS[] = {
    {"branin", branin_space, branin},
    {"hartmann6", hartmann6_space, hartmann6},
    {"sphere10", sphere10_space, sphere10},
    {"rosenbrock5", rosenbrock5_space, rosenbrock5},
    {"rastrigin5", rastrigin5_space, rastrigin5},
    {"mixed7", mixed7_space, mixed7},
    {"conditional", conditional_space, conditional},
};

int ho_problem_count(void)
{
    return sizeof PROBLEMS / sizeof PROBLEMS[0];
}

const ho_problem *ho_problem_at(int i)
{
    return &PROBLEMS[i];
}

ho_space ho_problem_zdt1_space(void)
{
    static ho_param params[6];

    return cube(params, 6, 0.0, 1.0);
}

void ho_problem_zdt1(const double *x, double *loss)
{
    double g = 1.0;

    for (int i = 1; i < 6; i++) {
        g += 9.0 * x[i] / 5.0;
    }
    loss[0] = x[0];
    loss[1] = g * (1.0 - sqrt(x[0] / g));
}
