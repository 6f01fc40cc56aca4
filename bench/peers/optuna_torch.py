#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trials an hour of the usual way: Optuna (TPE, successive halving) around an eager PyTorch loop
that does the work of a trial of configs/h200.toml.

    python3 optuna_torch.py [--seconds 30] [--share 128] [--json FILE] [--check]

A trial: 8 agents (folds) of 40 epochs; an epoch: 512 episodes x 256 steps and 128 updates of 1,024
rows; every 5th epoch 25,516 validation bars, at the end 63,852 test bars. The 8 agents run side by
side as torch_gpu.py's lanes, which a usual loop does not do.
Every part is done in 1 of --share of its steps, updates and bars (each costs the same), and the time
of those loops is stated times --share; what a trial does once (networks, buffers, resets) and
Optuna's own time are not scaled. A pruned trial counts by its
epochs: "trials an hour" are trials of full length. Features, environment and market are
torch_gpu.py's, simpler than ours; of the six searched parameters the learning rate and gamma matter
to the loop. Without Optuna the same space is drawn at random and nothing is pruned: it says so.
--check runs two trials at a tiny size, on any device."""
import argparse
import json
import random
import sys
import time

import torch

import torch_gpu

try:
    import optuna
except ImportError:
    optuna = None

FOLDS, EPOCHS, EVERY = 8, 40, 5
FULL = {"episodes": 512, "steps": 256, "updates": 128, "batch": 1024, "replay": 262144,
        "validation": 25516, "test": 63852, "bars": 902880}
TINY = {"episodes": 4, "steps": 64, "updates": 64, "batch": 16, "replay": 1024, "validation": 640,
        "test": 640, "bars": 3000}


class Draw:
    """Random numbers in the place of a trial of Optuna's."""

    def __init__(self, rng):
        self.rng = rng

    def suggest_float(self, _, low, high, log=False):
        return low * (high / low) ** self.rng.random() if log else self.rng.uniform(low, high)

    def suggest_int(self, _, low, high, step=1):
        return self.rng.randrange(low, high + 1, step)

    def report(self, value, epoch):
        pass

    def should_prune(self):
        return False


def suggest(trial):
    return {"lr": trial.suggest_float("learning_rate", 1e-5, 3e-3, log=True),
            "gamma": trial.suggest_float("gamma", 0.9, 0.999),
            "n_step": trial.suggest_int("n_step", 1, 8),
            "hold": trial.suggest_float("explore_hold", 2, 60, log=True),
            "stop": trial.suggest_float("stop_loss", 5, 40),
            "holding": trial.suggest_int("max_holding", 20, 240, step=20)}


class Loop:
    """The objective: seconds of its loops and epochs it did are summed up."""

    def __init__(self, work, share, device):
        self.work, self.share, self.device = work, share, device
        self.market = torch_gpu.Market(work["bars"], device)
        self.last = EPOCHS
        self.wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
        self.clear()

    def clear(self):
        self.looped, self.epochs, self.finished, self.pruned = 0.0, 0, 0, 0

    def repeat(self, work, name):
        """The share of a loop of the workload, on the clock that is scaled. How many it was."""
        count = self.of(name)
        self.wait()
        start = time.perf_counter()
        for _ in range(count):
            work()
        self.wait()
        self.looped += time.perf_counter() - start
        return count

    def of(self, name):
        return max(1, round(self.work[name] / self.share))

    def score(self, test, name):
        begin, step, kept = test
        begin()
        for x in kept[:2]:
            x.zero_()
        bars = self.repeat(step, name)
        mean = kept[0] / bars
        return (mean / (kept[1] / bars - mean * mean).clamp(min=1e-18).sqrt()).mean().item()

    def __call__(self, trial):
        p, w, device = suggest(trial), self.work, self.device
        net, target = torch_gpu.Net(FOLDS).to(device), torch_gpu.Net(FOLDS).to(device)
        target.load_state_dict(net.state_dict())
        begin, step, memory = torch_gpu.collector(self.market, net, target, FOLDS, w["episodes"],
                                                  w["replay"], device, False, p["gamma"])
        update = torch_gpu.learner(self.market, net, target, memory, w["batch"], device, False,
                                   p["lr"])
        test = torch_gpu.tester(self.market, net, FOLDS, 1, device, False)
        for epoch in range(1, self.last + 1):
            begin()
            self.repeat(step, "steps")
            self.repeat(update, "updates")
            self.epochs += 1
            if epoch % EVERY:
                continue
            trial.report(self.score(test, "validation"), epoch)
            if trial.should_prune():
                self.pruned += 1
                raise optuna.TrialPruned()
        value = self.score(test, "test")
        self.finished += 1
        return value


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--seconds", type=float, default=30.0)
    args.add_argument("--share", type=int, default=128)
    args.add_argument("--json", default="")
    args.add_argument("--check", action="store_true")
    args = args.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    loop = Loop(TINY if args.check else FULL, args.share, device)
    trials = 2 if args.check else 100000
    rng = random.Random(1)
    if optuna:
        how = "optuna %s TPE" % optuna.__version__
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        study = optuna.create_study(
            direction="maximize", sampler=optuna.samplers.TPESampler(seed=1, n_startup_trials=16),
            pruner=optuna.pruners.SuccessiveHalvingPruner(min_resource=10, reduction_factor=3))
    else:
        how = "random sampling (no optuna here)"
    if not args.check:  # a short trial warms up and does not count
        loop.last = EVERY
        loop(Draw(rng))
        loop.last = EPOCHS
        loop.clear()
    begun = time.perf_counter()
    if optuna:
        study.optimize(loop, n_trials=trials, timeout=args.seconds)
    else:
        while loop.finished < trials and time.perf_counter() - begun < args.seconds:
            loop(Draw(rng))
    wall = time.perf_counter() - begun
    once = wall - loop.looped
    scaled = loop.looped * args.share + once
    rate = loop.epochs / EPOCHS / scaled * 3600
    print("%s + torch %s eager, 8 agents side by side: %d trials, %d of them pruned, %d epochs in %.1f "
          "s, at 1/%d of the work: %.2f trials of full length an hour (%.1f ms a trial not "
          "scaled)" % (how, torch.__version__, loop.finished + loop.pruned, loop.pruned, loop.epochs,
                      wall, args.share, rate,
                      once * 1e3 / max(1, loop.finished + loop.pruned)), flush=True)
    if args.json:
        with open(args.json, "w") as f:
            json.dump({"peer": "%s + torch %s eager" % (how, torch.__version__),
                       "trials_an_hour": rate, "share": args.share, "wall_s": wall,
                       "scaled_s": scaled, "epochs": loop.epochs, "finished": loop.finished,
                       "pruned": loop.pruned}, f, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
