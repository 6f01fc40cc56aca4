#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Optuna on the acceptance problems of bench_search: same definitions, same budgets.

usage: optuna_search.py SAMPLER SEEDS [PROBLEM ...]
SAMPLER: random | tpe | cmaes | gp | nsga2 | tpe-mo. Prints one line a run: problem, seed, and the
regret after 50, 100 and 200 trials (nsga2, tpe-mo: hypervolume of zdt1).
       optuna_search.py speed TRIALS | version
"""
import math
import random
import sys
import time
import warnings

import optuna

warnings.filterwarnings("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)

BUDGETS = (50, 100, 200)


def branin(t):
    x, y = t.suggest_float("x0", -5, 10), t.suggest_float("x1", 0, 15)
    b, c = 5.1 / (4 * math.pi**2), 5 / math.pi
    return ((y - b * x * x + c * x - 6) ** 2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10
            - 0.39788735772973816)


H_A = [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8],
       [17, 8, 0.05, 10, 0.1, 14]]
H_P = [[0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
       [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
       [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
       [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381]]
H_C = [1, 1.2, 3, 3.2]


def hartmann6(t):
    x = [t.suggest_float(f"x{i}", 0, 1) for i in range(6)]
    return 3.322368011391339 - sum(
        c * math.exp(-sum(a * (u - p) ** 2 for a, p, u in zip(ra, rp, x)))
        for c, ra, rp in zip(H_C, H_A, H_P))


def sphere10(t):
    return sum(t.suggest_float(f"x{i}", -5, 5) ** 2 for i in range(10))


def rosenbrock5(t):
    x = [t.suggest_float(f"x{i}", -5, 5) for i in range(5)]
    return sum(100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2 for i in range(4))


def rastrigin5(t):
    x = [t.suggest_float(f"x{i}", -5.12, 5.12) for i in range(5)]
    return 50 + sum(u * u - 10 * math.cos(2 * math.pi * u) for u in x)


def mixed7(t):
    lr = t.suggest_float("lr", 1e-5, 0.1, log=True)
    gamma = t.suggest_float("gamma", 0.9, 0.999)
    layers = t.suggest_int("layers", 1, 6)
    units = t.suggest_int("units", 16, 512, log=True)
    batch = t.suggest_int("batch", 32, 512, step=32)
    act = t.suggest_categorical("act", ["relu", "tanh", "gelu", "silu"])
    drop = t.suggest_float("drop", 0.0, 0.5, step=0.05)
    return ((math.log10(lr) + 3.3) ** 2 + ((gamma - 0.985) / 0.03) ** 2 + 0.15 * (layers - 3) ** 2
            + 0.5 * (math.log2(units) - 7) ** 2 + ((batch - 128) / 192) ** 2
            + {"relu": 0.3, "tanh": 0.8, "gelu": 0.0, "silu": 0.1}[act] + 4 * (drop - 0.1) ** 2)


def conditional(t):
    if t.suggest_categorical("algo", ["dqn", "ppo"]) == "dqn":
        eps = t.suggest_float("eps", 1e-3, 1.0, log=True)
        replay = t.suggest_int("replay", 1000, 100000, log=True)
        return 1 + (math.log10(eps) + 1.5) ** 2 + (math.log10(replay) - 4.2) ** 2
    clip = t.suggest_float("clip", 0.05, 0.4)
    lam = t.suggest_float("lam", 0.8, 1.0)
    k = t.suggest_int("k", 1, 20)
    return ((clip - 0.2) / 0.1) ** 2 + ((lam - 0.95) / 0.05) ** 2 + ((k - 8) / 5) ** 2


PROBLEMS = {f.__name__: f for f in
            (branin, hartmann6, sphere10, rosenbrock5, rastrigin5, mixed7, conditional)}


def zdt1(x):
    g = 1 + 9 * sum(x[1:]) / 5
    return x[0], g * (1 - math.sqrt(x[0] / g))


def make(name, seed):
    kinds = {"random": "RandomSampler", "tpe": "TPESampler", "tpe-mo": "TPESampler",
             "cmaes": "CmaEsSampler", "gp": "GPSampler", "nsga2": "NSGAIISampler"}
    return getattr(optuna.samplers, kinds[name])(seed=seed)


def hypervolume(front, ref):
    volume, floor = 0.0, ref[1]
    for a, b in sorted(front):
        if a < ref[0] and b < floor:
            volume += (ref[0] - a) * (floor - b)
            floor = b
    return volume


def two_objectives(sampler, seeds):
    """zdt1 with noise; scored by the noise-free values of what was tried."""
    for seed in range(seeds):
        noise, tried = random.Random(seed), []

        def objective(t):
            tried.append(zdt1([t.suggest_float(f"x{i}", 0, 1) for i in range(6)]))
            return tuple(v + noise.gauss(0, 0.01) for v in tried[-1])

        study = optuna.create_study(directions=["minimize"] * 2, sampler=make(sampler, seed))
        study.optimize(objective, n_trials=BUDGETS[-1])
        print("zdt1", seed, *(f"{hypervolume(tried[:n], (1.1, 6.0)):.6g}" for n in BUDGETS),
              flush=True)


def one_objective(sampler, seeds, names):
    for name in names:
        for seed in range(seeds):
            study = optuna.create_study(sampler=make(sampler, seed))
            study.optimize(PROBLEMS[name], n_trials=BUDGETS[-1])
            values = [t.value for t in study.trials]
            print(name, seed, *(f"{min(values[:n]):.6g}" for n in BUDGETS), flush=True)


def speed(trials):
    """Milliseconds of ask + tell with 10 parameters after so many finished trials."""
    space = {f"x{i}": optuna.distributions.FloatDistribution(0, 1) for i in range(10)}
    rng = random.Random(1)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1))
    study.add_trials([optuna.trial.create_trial(
        params={k: rng.random() for k in space}, distributions=space, value=rng.random())
        for _ in range(trials)])
    times = []
    for _ in range(5):
        start = time.perf_counter()
        study.tell(study.ask(space), rng.random())
        times.append(time.perf_counter() - start)
    print(f"speed {trials} {1000 * sorted(times)[2]:.3f}")


def main():
    command, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
    if command == "version":
        print(optuna.__version__)
    elif command == "speed":
        speed(count)
    elif command in ("nsga2", "tpe-mo"):
        two_objectives(command, count)
    else:
        one_objective(command, count, sys.argv[3:] or PROBLEMS)


main()
