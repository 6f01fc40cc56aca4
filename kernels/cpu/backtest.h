/* SPDX-License-Identifier: Apache-2.0
 * The CPU market and backtest, entries of the table in ops.c. Contracts: kernels/backend_ops.h. */
#ifndef HO_KERNELS_CPU_BACKTEST_H
#define HO_KERNELS_CPU_BACKTEST_H

#include "kernels/backend_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

ho_status ho_cpu_market_load(ho_backend *backend, ho_market_host *host, ho_market **out,
                             ho_err *err);
void ho_cpu_market_unload(ho_market *market);

ho_status ho_cpu_backtest(ho_market *market, ho_cohort *cohort_or_null,
                          const ho_backtest_request *requests, int n, ho_backtest_result *results,
                          ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
