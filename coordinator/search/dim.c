/* SPDX-License-Identifier: Apache-2.0
 * Parameters on their latent and unit scales. */
#include "coordinator/search/dim.h"

#include <math.h>

ho_dim ho_dim_of(const ho_param *param)
{
    ho_dim dim = {.param = param};
    double half = 0.0;

    if (param->kind == HO_PARAM_CHOICE) {
        dim.choices = param->choice_count;
        dim.high = param->choice_count;
        return dim;
    }
    dim.log = param->log;
    dim.stepped = param->kind == HO_PARAM_INT || param->step > 0.0;
    if (dim.stepped) {
        half = 0.5 * (param->step > 0.0 ? param->step : 1.0);
    }
    dim.low = param->low - half;
    dim.high = param->high + half;
    if (dim.log) {
        dim.low = log(dim.low);
        dim.high = log(dim.high);
    }
    return dim;
}

double ho_dim_latent(const ho_dim *dim, double value)
{
    return dim->log ? log(value) : value;
}

double ho_dim_value(const ho_dim *dim, double latent)
{
    return ho_param_snap(dim->param, dim->log ? exp(latent) : latent);
}

void ho_dim_cell(const ho_dim *dim, double value, double *low, double *high)
{
    double half = 0.5 * (dim->param->step > 0.0 ? dim->param->step : 1.0);

    *low = fmax(ho_dim_latent(dim, value - half), dim->low);
    *high = fmin(ho_dim_latent(dim, value + half), dim->high);
}

double ho_dim_unit(const ho_dim *dim, double value)
{
    if (dim->choices > 0) {
        return (value + 0.5) / dim->choices;
    }
    if (!(dim->high > dim->low)) {
        return 0.5;
    }
    return fmin(fmax((ho_dim_latent(dim, value) - dim->low) / (dim->high - dim->low), 0.0), 1.0);
}

double ho_dim_from_unit(const ho_dim *dim, double unit)
{
    if (dim->choices > 0) {
        double index = floor(unit * dim->choices);

        return fmin(fmax(index, 0.0), dim->choices - 1.0);
    }
    return ho_dim_value(dim, dim->low + unit * (dim->high - dim->low));
}

double ho_dim_random(const ho_dim *dim, ho_draw *draw)
{
    return ho_dim_from_unit(dim, ho_draw_unit(draw));
}

void ho_dim_fill(const ho_space *space, const ho_dim *dim, ho_draw *draw, double *config)
{
    for (int p = 0; p < space->count; p++) {
        if (!ho_space_active(space, config, p)) {
            config[p] = NAN;
        } else if (isnan(config[p])) {
            config[p] = ho_dim_random(&dim[p], draw);
        }
    }
}
