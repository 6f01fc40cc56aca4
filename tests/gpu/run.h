/* SPDX-License-Identifier: Apache-2.0
 * The end of a GPU test's main. */
#ifndef HO_TEST_GPU_RUN_H
#define HO_TEST_GPU_RUN_H

#include "check.h"
#include "kernels/backend.h"

/* 1: there is a GPU. argv[1]: only the tests whose name matches, as run_all.sh wants them. */
static inline int gpu_tests_wanted(int argc, char **argv)
{
    if (ho_backend_gpu_count() == 0) {
        print_message("no GPU: skipped\n");
        return 0;
    }
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return 1;
}

/* Runs an array of tests; the exit status of main. */
#define GPU_TESTS_RUN(tests, argc, argv)                                                           \
    (gpu_tests_wanted(argc, argv) ? cmocka_run_group_tests(tests, NULL, NULL) : HO_TEST_SKIPPED)

#endif
