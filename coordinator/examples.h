/* SPDX-License-Identifier: Apache-2.0
 * The example queries of sql/examples, embedded. The first line of each is a comment that says what
 * it answers. */
#ifndef HO_COORDINATOR_EXAMPLES_H
#define HO_COORDINATOR_EXAMPLES_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_example {
    const char *name; /* file name without ending */
    const char *sql;
} ho_example;

int ho_example_count(void);
const ho_example *ho_example_at(int i);
const ho_example *ho_example_find(const char *name); /* NULL: no such query */

#ifdef __cplusplus
}
#endif
#endif
