#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The reference workload in PyTorch eager, as a competent user writes it: environments vectorised
over episodes, one network, no Python loop over episodes; float32 throughout, or with --bf16 the
networks under torch.autocast (its CPU rules: linear layers in bfloat16, losses in float32).

    python3 torch_eager.py [--json] [--threads N] [--runs N] [--cpu-time] [--bf16]

collect: N episodes x 500 steps: online network, epsilon-greedy, the step (market orders, spread,
  fees, barriers, diversity ring, curiosity model), target network for the td error, transition
  stored as two states. learn: double DQN, batch 1,024, Huber, clip, Adam, soft target.
  backtest: 8 windows side by side, greedy.
The environment is simpler than spec/environment.md, so its time is a lower bound for the peer.
"""
import argparse
import json
import time

import torch

F, P, A, BARS = 51, 9, 45, 200000
clock = time.perf_counter
bf16 = False


def autocast():
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l1, self.l2 = torch.nn.Linear(F + P, 256), torch.nn.Linear(256, 256)
        self.v1, self.v2 = torch.nn.Linear(256, 128), torch.nn.Linear(128, 1)
        self.a1, self.a2 = torch.nn.Linear(256, 128), torch.nn.Linear(128, A)
        self.act = torch.nn.LeakyReLU(0.01)

    def forward(self, x):
        with autocast():
            h = self.act(self.l2(self.act(self.l1(x))))
            a = self.a2(self.act(self.a1(h)))
            v = self.v2(self.act(self.v1(h)))
        a = a.float()
        return v.float() + a - a.mean(1, keepdim=True)


class Market:
    def __init__(self):
        g = torch.Generator().manual_seed(1)
        self.features = torch.randn(BARS, F, generator=g)
        self.close = 4000 + torch.cumsum(self.features[:, 0].double(), 0)
        self.open = torch.cat([self.close[:1], self.close[:-1]])
        self.high = torch.maximum(self.open, self.close) + 0.5
        self.low = torch.minimum(self.open, self.close) - 0.5


class Env:
    """N episodes; what changes is a tensor of N."""

    def __init__(self, market, n, window=100):
        self.m, self.n, self.window = market, n, window
        self.lots, self.multiplier, self.capital = 4.0, 50.0, 1e6
        self.exposure = torch.tensor([-1.0, -0.5, 0.0, 0.5, 1.0], dtype=torch.float64)
        self.urgency = torch.tensor([0.34, 0.67, 1.0], dtype=torch.float64)
        self.curiosity = torch.nn.Sequential(torch.nn.Linear(35, 64), torch.nn.LeakyReLU(0.01),
                                             torch.nn.Linear(64, 32))
        self.ring = torch.zeros(n, window, 3)
        self.reset(torch.randint(100, BARS - 1000, (n,)))

    def reset(self, t):
        n = self.n
        self.t = t
        self.position = torch.zeros(n, dtype=torch.float64)
        self.entry = torch.zeros(n, dtype=torch.float64)
        self.equity = torch.full((n,), self.capital, dtype=torch.float64)
        self.held = torch.zeros(n)
        self.ring.zero_()
        self.at = 0

    def state(self):
        close = self.m.close[self.t]
        p = torch.zeros(self.n, P)
        p[:, 0] = ((self.equity / self.capital - 1) * 50).clamp(-5, 5).float()
        p[:, 1] = (self.position / self.lots).float()
        p[:, 2] = ((close - self.entry) * self.position.sign() / close * 100).clamp(-5, 5).float()
        p[:, 3] = (self.held / 240).clamp(max=1)
        p[:, 6] = self.entropy()
        p[:, 7] = 1.0
        return torch.cat([self.m.features[self.t], p], 1)

    def entropy(self):
        share = self.ring.sum(1)
        share = share / share.sum(1, keepdim=True).clamp(min=1)
        return -(share * torch.log2(share.clamp(min=1e-9))).sum(1)

    def step(self, action):
        m = self.m
        e, urgency = action // 9, self.urgency[action % 3]
        want = torch.round(self.exposure[e] * self.lots)
        delta = want - self.position
        traded = torch.sign(delta) * torch.clamp(torch.floor(urgency * delta.abs()), min=0)
        traded = torch.where((traded == 0) & (delta != 0), torch.sign(delta), traded)
        nxt = self.t + 1
        reference = m.open[nxt]
        price = reference * (1 + torch.sign(traded) * 0.5e-4)
        cost = traded.abs() * price * self.multiplier * 1.5e-4
        cash = -traded * (price - reference) * self.multiplier - cost
        position = self.position + traded
        flips = (position.sign() != self.position.sign()) & (position != 0)
        self.entry = torch.where(flips, price, self.entry)
        stop = self.entry * (1 - position.sign() * 0.004)
        target = self.entry * (1 + position.sign() * 0.004)
        long = position > 0
        stopped = (position != 0) & torch.where(long, m.low[nxt] <= stop, m.high[nxt] >= stop)
        passed = (position != 0) & ~stopped & torch.where(long, m.high[nxt] > target,
                                                         m.low[nxt] < target)
        leave = torch.where(stopped, stop, target)
        out = stopped | passed
        end_price = torch.where(out, leave, m.close[nxt])
        pnl = (reference - m.close[self.t]) * self.position * self.multiplier
        pnl = pnl + (end_price - reference) * position * self.multiplier + cash
        pnl = pnl - torch.where(out, position.abs() * leave * self.multiplier * 1.5e-4, 0.0)
        self.position = torch.where(out, 0.0, position)
        self.held = torch.where(self.position == 0, torch.zeros(self.n), self.held + 1)
        ret = pnl / self.equity
        self.equity = self.equity + pnl
        category = 1 + torch.sign(self.exposure[e]).long()
        self.ring[:, self.at] = torch.nn.functional.one_hot(category, 3).float()
        self.at = (self.at + 1) % self.window
        f = m.features[self.t, :32]
        guess = self.curiosity(torch.cat([f, torch.nn.functional.one_hot(category, 3).float()], 1))
        mse = ((guess - m.features[nxt, :32]) ** 2).mean(1)
        z = ret.float() / 1e-3 + torch.clamp(0.1 * mse, max=0.1)
        z = z - 0.1 * (self.entropy() < 1.0).float()
        self.t = nxt
        terminal = self.equity < 0.5 * self.capital
        return z.clamp(-10, 10), terminal


def timed(runs, units, work):
    seconds = []
    for _ in range(runs + 1):
        start = clock()
        work()
        seconds.append(clock() - start)
    seconds = sorted(seconds[1:])
    return units / seconds[len(seconds) // 2], units / seconds[0], seconds[len(seconds) // 2]


def collect(market, net, target, n, steps=500):
    env = Env(market, n)
    size = 204800
    memory = {"s": torch.zeros(size, F + P), "s2": torch.zeros(size, F + P),
              "a": torch.zeros(size, dtype=torch.long), "r": torch.zeros(size),
              "d": torch.zeros(size), "td": torch.zeros(size)}
    at = [0]

    @torch.no_grad()
    def epoch():
        env.reset(torch.randint(100, BARS - 1000, (n,)))
        s = env.state()
        q = net(s)
        for _ in range(steps):
            action = q.argmax(1)
            random = torch.rand(n) < 0.1
            action = torch.where(random, torch.randint(0, A, (n,)), action)
            r, terminal = env.step(action)
            s2 = env.state()
            discount = 0.99 * (~terminal).float()
            q2 = net(s2)  # the next step's values choose, the target network values
            y = r + discount * target(s2).gather(1, q2.argmax(1, keepdim=True))[:, 0]
            td = (y - q.gather(1, action[:, None])[:, 0]).abs()
            where = (at[0] + torch.arange(n)) % size
            for key, value in (("s", s), ("s2", s2), ("a", action), ("r", r), ("d", discount),
                               ("td", td)):
                memory[key][where] = value
            at[0] += n
            s, q = s2, q2

    return epoch, memory


def learn(net, target, memory, updates):
    opt = torch.optim.Adam(net.parameters(), lr=3e-4, eps=1e-5)
    size = len(memory["r"])

    def epoch():
        for _ in range(updates):
            i = torch.randint(0, size, (1024,))
            s, s2 = memory["s"][i], memory["s2"][i]
            with torch.no_grad():
                best = net(s2).argmax(1, keepdim=True)
                y = memory["r"][i] + memory["d"][i] * target(s2).gather(1, best)[:, 0]
            q = net(s).gather(1, memory["a"][i][:, None])[:, 0]
            loss = torch.nn.functional.smooth_l1_loss(q, y)
            opt.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 10.0)
            opt.step()
            with torch.no_grad():
                for p, t in zip(net.parameters(), target.parameters()):
                    t.lerp_(p, 0.005)

    return epoch


def backtest(market, net, windows=8, bars=500):
    env = Env(market, windows)

    @torch.no_grad()
    def run():
        env.reset(torch.arange(windows) * 2000 + 100)
        for _ in range(bars):
            env.step(net(env.state()).argmax(1))

    return run, windows * bars


def main():
    global clock, bf16
    args = argparse.ArgumentParser()
    args.add_argument("--json", action="store_true")
    args.add_argument("--threads", type=int, default=0)
    args.add_argument("--runs", type=int, default=5)
    args.add_argument("--cpu-time", action="store_true")
    args.add_argument("--bf16", action="store_true")
    args = args.parse_args()
    bf16 = args.bf16
    if args.cpu_time:
        clock = time.process_time
    if args.threads:
        torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    market, net, target = Market(), Net(), Net()

    precision = "bf16" if bf16 else "f32"

    def show(name, unit, result):
        median, best, seconds = result
        if args.json:
            print(json.dumps({"bench": "torch " + name, "unit": unit + "/s", "median": median,
                              "best": best, "seconds": seconds, "threads": torch.get_num_threads(),
                              "torch": torch.__version__, "precision": precision}), flush=True)
        else:
            print("%-34s %12.4g %s/s median, %.4g best (%.3f s), torch %s, %s, %d threads" % (
                name, median, unit, best, seconds, torch.__version__, precision,
                torch.get_num_threads()), flush=True)

    epoch, memory = collect(market, net, target, 128)
    show("collect, 128 episodes", "experiences", timed(args.runs, 128 * 500, epoch))
    small, _ = collect(market, net, target, 8)
    show("collect, 8 episodes", "experiences", timed(args.runs, 8 * 500, small))
    show("learn, updates of 1,024", "updates", timed(args.runs, 20, learn(net, target, memory, 20)))
    run, bars = backtest(market, net)
    show("backtest, 8 windows, greedy", "bars", timed(args.runs, bars, run))


if __name__ == "__main__":
    main()
