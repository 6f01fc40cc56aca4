/* SPDX-License-Identifier: Apache-2.0
 * What a kind of sampler is: one file that fills one ho_sampler_kind, and a row in the table of
 * sampler.c. A kind reads the history and proposes; it never writes it. */
#ifndef HO_COORDINATOR_SEARCH_KIND_H
#define HO_COORDINATOR_SEARCH_KIND_H

#include "coordinator/search/dim.h"
#include "coordinator/search/history.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_search_context {
    const ho_space *space;
    const ho_dim *dim;         /* [P] */
    const ho_history *history; /* shared, read only */
    ho_sampler_options options;
} ho_search_context;

/* One line of explanation, appended to; cut at the end. */
typedef struct ho_why {
    char text[HO_WHY_MAX];
    size_t used;
} ho_why;

void ho_why_add(ho_why *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

typedef struct ho_sampler_kind {
    const char *name;
    const char *help;
    /* Checks that the space and objectives can be searched. *self may stay NULL. The context
     * outlives self. */
    ho_status (*create)(void **self, const ho_search_context *context, ho_err *err);
    void (*destroy)(void *self); /* accepts NULL */
    /* Fills config [P] for a trial. attempt > 0: the answer of attempt - 1 was a duplicate or broke
     * a requirement. Active parameters left NaN are drawn at random. HO_EDONE: nothing left. */
    ho_status (*propose)(void *self, int64_t number, int attempt, double *config, ho_why *why,
                         ho_err *err);
    /* After a row became pending (by ask or resume), and after it was settled. NULL: not needed. */
    ho_status (*asked)(void *self, int64_t row, ho_err *err);
    ho_status (*told)(void *self, int64_t row, ho_err *err);
} ho_sampler_kind;

extern const ho_sampler_kind ho_kind_random, ho_kind_grid, ho_kind_sobol, ho_kind_tpe,
    ho_kind_cmaes, ho_kind_gp, ho_kind_nsga2;

#ifdef __cplusplus
}
#endif
#endif
