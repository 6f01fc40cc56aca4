/* SPDX-License-Identifier: Apache-2.0
 * The CPU market: nothing but the base, whose host tables the CPU backend reads in place. */
#include <stdlib.h>

#include "kernels/cpu/backtest.h"

ho_status ho_cpu_market_load(ho_backend *backend, ho_market_host *host, ho_market **out,
                             ho_err *err)
{
    (void)backend;
    (void)host;
    *out = calloc(1, sizeof **out);
    return *out ? HO_OK : ho_err_set(err, HO_ENOMEM, "market: out of memory");
}

void ho_cpu_market_unload(ho_market *market)
{
    free(market);
}
