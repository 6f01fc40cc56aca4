/* SPDX-License-Identifier: Apache-2.0
 * The acceptance problems of spec/search.md, the same as in bench/peers/optuna_search.py: a space
 * and a function that returns value minus optimum (regret, less is better). */
#ifndef HO_BENCH_SEARCH_PROBLEMS_H
#define HO_BENCH_SEARCH_PROBLEMS_H

#include "study/space.h"

typedef struct ho_problem {
    const char *name;
    ho_space (*space)(void); /* parameters are static; nothing to free */
    double (*regret)(const double *config);
} ho_problem;

/* Count, and problem i. */
int ho_problem_count(void);
const ho_problem *ho_problem_at(int i);

/* ZDT1 (Zitzler, Deb, Thiele 2000) over six parameters in [0, 1]: two losses. */
ho_space ho_problem_zdt1_space(void);
void ho_problem_zdt1(const double *config, double *loss);

#endif
