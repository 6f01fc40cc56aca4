/* SPDX-License-Identifier: Apache-2.0
 * One parameter as the algorithms see it: a latent range [low, high] on which a uniform draw is a
 * fair draw of the parameter. Log parameters are the logarithm; stepped ones are widened by half a
 * step on each side before the logarithm, so that each grid point owns an interval (Optuna's
 * convention, spec/search.md 3.1 item 6). Values go back through ho_param_snap: clamped to the last
 * bit, decimal-exact on the grid. A choice has no latent scale: its index is its value. */
#ifndef HO_COORDINATOR_SEARCH_DIM_H
#define HO_COORDINATOR_SEARCH_DIM_H

#include <stdbool.h>

#include "coordinator/search/draw.h"
#include "study/space.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_dim {
    const ho_param *param;
    int choices; /* > 0: a choice */
    bool log;
    bool stepped;
    double low, high; /* latent */
} ho_dim;

ho_dim ho_dim_of(const ho_param *param);

double ho_dim_latent(const ho_dim *dim, double value);
double ho_dim_value(const ho_dim *dim, double latent);

/* The interval of latent values that snap to this value of a stepped parameter. */
void ho_dim_cell(const ho_dim *dim, double value, double *low, double *high);

/* [0, 1]: position of a value; the middle of its share for a choice. */
double ho_dim_unit(const ho_dim *dim, double value);
double ho_dim_from_unit(const ho_dim *dim, double unit);

/* Uniform over the latent range, or over the choices. */
double ho_dim_random(const ho_dim *dim, ho_draw *draw);

/* Gives each active NaN of config [P] a random value and sets inactive ones to NaN. dim [P]. */
void ho_dim_fill(const ho_space *space, const ho_dim *dim, ho_draw *draw, double *config);

#ifdef __cplusplus
}
#endif
#endif
