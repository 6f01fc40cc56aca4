/* SPDX-License-Identifier: Apache-2.0
 * Which backend a test of environments or lanes runs on: the CPU, or with
 * HYPEROPT_TEST_BACKEND=cuda the first GPU. A program that finds no GPU then is skipped (77). */
#ifndef HO_TESTS_BACKEND_CHOICE_H
#define HO_TESTS_BACKEND_CHOICE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"

static inline int test_on_gpu(void)
{
    const char *name = getenv("HYPEROPT_TEST_BACKEND");
    return name && strcmp(name, "cuda") == 0;
}

static inline ho_backend_options test_backend_options(int threads)
{
    ho_backend_options options = ho_backend_defaults();
    options.threads = threads;
    if (test_on_gpu()) {
        if (ho_backend_gpu_count() == 0) {
            printf("no GPU: skipped\n");
            exit(77);
        }
        options.kind = HO_BACKEND_CUDA;
    }
    return options;
}

#endif
