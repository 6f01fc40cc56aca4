/* SPDX-License-Identifier: Apache-2.0
 * The fixtures of spec/metrics.md 1.0. */
#ifndef HO_TESTS_KERNELS_FIXTURES_H
#define HO_TESTS_KERNELS_FIXTURES_H

static const double fixture_a[10] = {0.02, -0.01, 0.03, -0.02, 0.01,
                                     0.00, -0.03, 0.04, 0.01,  -0.01};
/* Bacon (2008), 24 monthly returns */
static const double fixture_b[24] = {.003,  .026,  .011,  -.01, .015,  .025,  .016,  .067,
                                     -.014, .04,   -.005, .081, .04,   -.037, -.061, .017,
                                     -.049, -.022, .07,   .058, -.065, .024,  -.005, -.009};
static const double fixture_c[20] = {-.050, -.041, -.033, -.028, -.022, -.019, -.015,
                                     -.011, -.008, -.004, .001,  .003,  .006,  .009,
                                     .012,  .016,  .021,  .027,  .034,  .045};
static const double fixture_e[10] = {100, 110, 99, 104.5, 115.5, 103.95, 100.485, 112, 120, 118};
static const double fixture_t[7] = {120, -80, 200, -50, 0, -100, 60};

#endif
