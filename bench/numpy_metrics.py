#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The metrics that bench_env takes of 1,000 x 100,000 returns, with numpy, for comparison: Sharpe,
Sortino, volatility, drawdown, VaR and CVaR of each series. Prints the median of three runs."""
import os
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
import numpy as np  # noqa: E402  (threads first)

SERIES, RETURNS, RUNS = 1000, 100000, 3


def metrics(r):
    mean, deviation = r.mean(), r.std(ddof=1)
    downside = np.sqrt(np.mean(np.minimum(r, 0.0) ** 2))
    equity = 1e6 * np.cumprod(1.0 + r)
    peak = np.maximum.accumulate(np.concatenate(([1e6], equity)))[1:]
    drawdown = (equity / peak - 1.0).min()
    tail = np.sort(r)
    var = np.quantile(tail, 0.05)
    cvar = tail[: int(0.05 * len(r))].mean()
    return mean / deviation, mean / downside, deviation, drawdown, var, cvar


def main():
    r = 1e-5 + 1e-3 * np.random.default_rng(1).standard_normal(RETURNS)
    seconds = []
    for _ in range(RUNS):
        start = time.process_time()
        for _ in range(SERIES):
            metrics(r)
        seconds.append(time.process_time() - start)
    median = sorted(seconds)[RUNS // 2]
    print(f"numpy {np.__version__}: metrics of 1,000 x 100,000 returns: "
          f"{SERIES * RETURNS / median:.4g} returns/s median ({median:.3f} s), one core")


if __name__ == "__main__":
    main()
