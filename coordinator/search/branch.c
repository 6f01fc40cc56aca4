/* SPDX-License-Identifier: Apache-2.0
 * See branch.h. */
#include "coordinator/search/branch.h"

#include <math.h>

static const double SHARE = 0.25;        /* of the told trials: they vote */
static const double UNIFORM_VOTES = 3.0; /* of the uniform draw */

int64_t ho_branch_vote(const ho_told_rank *told, ho_draw *draw)
{
    double votes = ceil(SHARE * (double)told->scored);
    double u = ho_draw_unit(draw) * (votes + UNIFORM_VOTES);

    return u < votes ? told->row[(int64_t)u] : -1;
}

bool ho_branch_same(const double *a, const double *b, int params)
{
    for (int p = 0; p < params; p++) {
        if (isnan(a[p]) != isnan(b[p])) {
            return false;
        }
    }
    return true;
}
