/* SPDX-License-Identifier: Apache-2.0
 * Asking and telling a sampler, for its tests: every function fails the test on an error. */
#ifndef HO_TESTS_SEARCH_ASKING_H
#define HO_TESTS_SEARCH_ASKING_H

#include <stdlib.h>

#include "check.h"
#include "coordinator/search/draw.h"
#include "coordinator/search/sampler.h"
#include "search/spaces.h"

enum { PARAMS = 8 };

static inline ho_sampler_options kind(const char *name, uint64_t seed)
{
    ho_sampler_options options = ho_sampler_defaults();

    options.kind = name;
    options.seed = seed;
    options.direction[0] = -1;
    return options;
}

static inline ho_sampler *make(const ho_space *space, const ho_sampler_options *options)
{
    ho_sampler *sampler;
    ho_err err;

    CHECK_OK(ho_sampler_create(&sampler, space, options, &err), &err);
    return sampler;
}

static inline void ask(ho_sampler *sampler, int64_t number, double *config)
{
    ho_err err;

    CHECK_OK(ho_sampler_ask(sampler, number, config, NULL, &err), &err);
}

static inline void tell_state(ho_sampler *sampler, int64_t number, ho_told_state state,
                              double value)
{
    ho_told told = {.state = state, .value = {value, -value}, .step = 3, .seconds = NAN};
    ho_err err;

    CHECK_OK(ho_sampler_tell(sampler, number, &told, &err), &err);
}

static inline void tell(ho_sampler *sampler, int64_t number, double value)
{
    tell_state(sampler, number, HO_TOLD_COMPLETE, value);
}

/* Every kind of parameter: log float, stepped float, log int, off-grid int, choice, a branch. */
static inline ho_space rich_space(void)
{
    static ho_choice yes_no[2] = {{.type = HO_CHOICE_BOOL}, {.type = HO_CHOICE_BOOL}};
    static ho_choice three[3];
    static ho_param p[PARAMS];
    ho_space space = {.count = PARAMS, .param = p};

    memset(p, 0, sizeof p);
    p[0] = spaces_float("lr", 1e-5, 0.1);
    p[0].log = true;
    p[1] = spaces_float("drop", 0.8, 1.0);
    p[1].step = 0.1;
    p[1].step_decimals = 1;
    p[2] = spaces_int("units", 16, 512);
    p[2].log = true;
    p[3] = spaces_int("batch", 10, 238); /* 10 to 240 by 12 ends at 238 */
    p[3].step = 12;
    p[4] = spaces_choice("kind", three, 3);
    p[5] = spaces_choice("extra", yes_no, 2);
    p[6] = spaces_float("clip", 0.1, 0.3);
    spaces_when(&p[6], 4, 2);
    p[7] = spaces_int("depth", 1, 4);
    spaces_when(&p[7], 5, 2);
    return space;
}

static inline double rich_loss(const double *c)
{
    double loss = fabs(log10(c[0]) + 3.0) + fabs(c[1] - 0.9) + fabs(log2(c[2]) - 6.0) +
                  fabs(c[3] - 58.0) / 100.0 + 0.2 * c[4];

    return loss + (isnan(c[6]) ? 0.3 : fabs(c[6] - 0.2)) + (isnan(c[7]) ? 0.1 : 0.1 * c[7]);
}

/* Asks and tells 60 trials, four in flight; fills configs [60, P]. resume_at: from there on a fresh
 * sampler that was resumed goes on. */
static inline void run_study(const ho_space *space, const ho_sampler_options *options,
                             int64_t resume_at, double *configs)
{
    ho_sampler *sampler = make(space, options);
    ho_err err;
    int p = space->count;

    for (int64_t n = 0; n < 60; n++) {
        if (n == resume_at) {
            ho_sampler_destroy(&sampler);
            sampler = make(space, options);
            for (int64_t m = 0; m < n; m++) { /* the same order of asks and tells */
                CHECK_OK(ho_sampler_resume(sampler, m, &configs[m * p], &err), &err);
                if (m >= 4) {
                    tell(sampler, m - 4, rich_loss(&configs[(m - 4) * p]));
                }
            }
        }
        ask(sampler, n, &configs[n * p]);
        if (n >= 4) {
            tell(sampler, n - 4, rich_loss(&configs[(n - 4) * p]));
        }
    }
    ho_sampler_destroy(&sampler);
}

#endif
