/* SPDX-License-Identifier: Apache-2.0
 * See examples.h. To add one: a file in sql/examples, a line in sql/CMakeLists.txt, a row here. */
#include "coordinator/examples.h"

#include <string.h>

/* name, symbol */
#define EXAMPLES(X)                                                                                \
    X("best-by-fold", ho_sql_best_by_fold)                                                         \
    X("baselines", ho_sql_baselines)                                                               \
    X("failures", ho_sql_failures)                                                                 \
    X("running", ho_sql_running)                                                                   \
    X("parameters", ho_sql_parameters)                                                             \
    X("fold-spread", ho_sql_fold_spread)                                                           \
    X("learning", ho_sql_learning)                                                                 \
    X("pruned", ho_sql_pruned)                                                                     \
    X("workers", ho_sql_workers)                                                                   \
    X("events", ho_sql_events)                                                                     \
    X("tables", ho_sql_tables)

#define EXAMPLE_DECLARE(name, symbol) extern const char symbol[];
EXAMPLES(EXAMPLE_DECLARE)
#undef EXAMPLE_DECLARE

static const ho_example examples[] = {
#define EXAMPLE_ROW(name, symbol) {name, symbol},
    EXAMPLES(EXAMPLE_ROW)
#undef EXAMPLE_ROW
};

int ho_example_count(void)
{
    return (int)(sizeof examples / sizeof examples[0]);
}

const ho_example *ho_example_at(int i)
{
    return &examples[i];
}

const ho_example *ho_example_find(const char *name)
{
    for (int i = 0; i < ho_example_count(); i++) {
        if (strcmp(examples[i].name, name) == 0) {
            return &examples[i];
        }
    }
    return NULL;
}
