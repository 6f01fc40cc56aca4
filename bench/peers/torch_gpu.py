#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The reference workload (docs/gpu.md) in PyTorch on a GPU: eager, K agents at once, and for one
agent with each step and each update captured as a CUDA graph.

    python3 torch_gpu.py [--lanes 1,32,128] [--json FILE] [--seconds 2] [--check]

collect: 128 episodes x 500 steps an agent: online network, epsilon-greedy, the step (market orders,
  spread, fees, barriers, diversity ring, curiosity model), target network for the td error,
  transition stored. learn: double DQN, 1,024 rows, Huber, clip, Adam, soft target, uniform replay of
  204,800. backtest: 8 windows an agent, greedy, Sharpe ratio and drawdown kept. Products in bfloat16
  (autocast). Agents side by side are a leading axis of every tensor and of every weight (baddbmm), so
  that K agents take as many launches as one: more than a usual loop does.
Timed over fewer steps, updates and bars than the workload's and stated for all of them, since every
one costs the same; --seconds bounds a case. The environment is that of jax_reference.py: simpler
than ours, so its times are lower bounds for PyTorch. --check runs everything once at a tiny size, on
the CPU too (there without the graphs)."""
import argparse
import json
import sys
import time

import torch

F, P, A, WINDOW = 51, 9, 45, 100
LOTS, MULTIPLIER, CAPITAL, FEE, HALF_SPREAD, WIDTH = 4.0, 50.0, 1e6, 1.5e-4, 0.5e-4, 0.004


class Net(torch.nn.Module):
    """K networks: x [K, n, F + P] -> values [K, n, A]."""

    def __init__(self, lanes):
        super().__init__()
        sizes = {"l1": (F + P, 256), "l2": (256, 256), "v1": (256, 128), "v2": (128, 1),
                 "a1": (256, 128), "a2": (128, A)}
        for name, (n, m) in sizes.items():
            w = (torch.rand(lanes, n, m) * 2 - 1) / n**0.5
            self.register_parameter(name, torch.nn.Parameter(w))
            self.register_parameter(name + "_b", torch.nn.Parameter(torch.zeros(lanes, 1, m)))

    def layer(self, name, x):
        return torch.baddbmm(getattr(self, name + "_b"), x, getattr(self, name))

    def forward(self, x):
        act = torch.nn.functional.leaky_relu
        with torch.autocast(x.device.type, dtype=torch.bfloat16):
            h = act(self.layer("l2", act(self.layer("l1", x), 0.01)), 0.01)
            a = self.layer("a2", act(self.layer("a1", h), 0.01))
            v = self.layer("v2", act(self.layer("v1", h), 0.01))
        a = a.float()
        return v.float() + a - a.mean(2, keepdim=True)


class Market:
    def __init__(self, bars, device):
        generator = torch.Generator(device=device).manual_seed(1)
        self.features = torch.randn(bars, F, generator=generator, device=device)
        move = (torch.rand(bars, generator=generator, device=device) - 0.5) * 2e-3
        close = 4000 * torch.exp(torch.cumsum(move, 0) -
                                 torch.linspace(0, 1, bars, device=device) * move.sum())
        opened = torch.cat([close[:1], close[:-1]])
        self.bars = torch.stack([opened, torch.maximum(opened, close) * 1.0002,
                                 torch.minimum(opened, close) * 0.9998, close], 1)


class Env:
    """N episodes; all that changes is written in place, so that a step can be captured."""

    def __init__(self, market, n, device):
        z = lambda *shape: torch.zeros(*shape, device=device)
        self.m, self.n, self.rows = market, n, torch.arange(n, device=device)
        self.exposure = torch.tensor([-1.0, -0.5, 0.0, 0.5, 1.0], device=device)
        self.urgency = torch.tensor([0.34, 0.67, 1.0], device=device)
        self.curiosity = torch.nn.Sequential(
            torch.nn.Linear(35, 64), torch.nn.LeakyReLU(0.01), torch.nn.Linear(64, 32)).to(device)
        self.t = torch.zeros(n, dtype=torch.long, device=device)
        self.at = torch.zeros(1, dtype=torch.long, device=device)
        self.position, self.entry, self.equity, self.held = z(n), z(n), z(n), z(n)
        self.ring, self.count = z(n, WINDOW, 3), z(n, 3)

    def reset(self, t):
        for x in (self.position, self.entry, self.held, self.ring, self.count, self.at):
            x.zero_()
        self.equity.fill_(CAPITAL)
        self.t.copy_(t)

    def entropy(self):
        share = self.count / self.count.sum(1, keepdim=True).clamp(min=1)
        return -(share * torch.log2(share.clamp(min=1e-9))).sum(1)

    def portfolio(self):
        close, side = self.m.bars[self.t, 3], self.position.sign()
        stop, target = self.entry * (1 - side * WIDTH), self.entry * (1 + side * WIDTH)
        away = (self.entry * WIDTH).clamp(min=1e-9)
        return torch.stack([((self.equity / CAPITAL - 1) * 50).clamp(-5, 5), self.position / LOTS,
                            ((close - self.entry) * side / close * 100).clamp(-5, 5),
                            (self.held / 240).clamp(max=1), ((close - stop) * side / away).clamp(0, 5),
                            ((target - close) * side / away).clamp(0, 5), self.entropy(),
                            torch.ones_like(close), torch.zeros_like(close)], 1)

    def state(self, portfolio):
        return torch.cat([self.m.features[self.t], portfolio], 1)

    def step(self, action, rewarded=True):
        e = torch.div(action, 9, rounding_mode="floor")
        urgency, exposure = self.urgency[action % 3], self.exposure[e]
        delta = torch.round(exposure * LOTS) - self.position
        traded = delta.sign() * torch.floor(urgency * delta.abs()).clamp(min=1)
        bar, before = self.m.bars[self.t + 1], self.m.bars[self.t, 3]
        opened, high, low, close = bar[:, 0], bar[:, 1], bar[:, 2], bar[:, 3]
        price = opened * (1 + traded.sign() * HALF_SPREAD)
        position = self.position + traded
        flips = (position.sign() != self.position.sign()) & (position != 0)
        entry = torch.where(flips, price, self.entry)
        side = position.sign()
        stop, target = entry * (1 - side * WIDTH), entry * (1 + side * WIDTH)
        stopped = (position != 0) & torch.where(side > 0, low <= stop, high >= stop)
        passed = (position != 0) & ~stopped & torch.where(side > 0, high > target, low < target)
        out = stopped | passed | (self.held >= 240)
        leave = torch.where(stopped, stop, torch.where(passed, target, close))
        pnl = (opened - before) * self.position * MULTIPLIER
        pnl = pnl - traded * (price - opened) * MULTIPLIER
        pnl = pnl - traded.abs() * price * MULTIPLIER * FEE
        pnl = pnl + (torch.where(out, leave, close) - opened) * position * MULTIPLIER
        pnl = pnl - out * position.abs() * leave * MULTIPLIER * FEE
        ret = pnl / self.equity
        self.equity.add_(pnl)
        self.entry.copy_(entry)
        self.position.copy_(position * ~out)
        self.held.copy_((self.held + 1) * (self.position != 0))
        category = 1 + exposure.sign().long()
        one = torch.nn.functional.one_hot(category, 3).float()
        at = self.at.expand(self.n)
        self.count.add_(one - self.ring[self.rows, at])
        self.ring[self.rows, at] = one
        self.at.copy_((self.at + 1) % WINDOW)
        z = None
        if rewarded:
            now, after = self.m.features[self.t], self.m.features[self.t + 1]
            mse = ((self.curiosity(torch.cat([now[:, :32], one], 1)) - after[:, :32]) ** 2).mean(1)
            z = ret / 1e-3
            z = z + 0.5 * (passed.float() - stopped.float()) * z.abs() + (0.1 * mse).clamp(max=0.1)
            z = (z - 0.1 * (self.entropy() < 1.0).float()).clamp(-10, 10)
        self.t.add_(1)
        return z, ret, self.equity < 0.5 * CAPITAL


def captured(work, graphs):
    """work, or a graph of it that does the same."""
    if not graphs:
        return work
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def collector(market, net, target, lanes, n, size, device, graphs, gamma=0.99):
    env = Env(market, lanes * n, device)
    z = lambda *s: torch.zeros(*s, device=device)
    whole = lambda: torch.zeros(lanes, size, dtype=torch.long, device=device)
    memory = {"bar": whole(), "action": whole(), "reward": z(lanes, size),
              "discount": z(lanes, size), "td": z(lanes, size), "now": z(lanes, size, P),
              "next": z(lanes, size, P)}
    where, q, p = torch.arange(n, device=device), z(lanes * n, A), z(lanes * n, P)
    values = lambda f, x: f(x.view(lanes, n, F + P)).view(lanes * n, A)
    last = market.bars.shape[0] - 2

    @torch.no_grad()
    def step():
        random = torch.rand(lanes * n, device=device) < 0.1
        action = torch.where(random, torch.randint(0, A, (lanes * n,), device=device), q.argmax(1))
        bar = env.t.clone()
        reward, _, ruined = env.step(action)
        p2 = env.portfolio()
        x = env.state(p2)
        q2 = values(net, x)
        discount = gamma * (~ruined).float()
        best = values(target, x).gather(1, q2.argmax(1, keepdim=True))[:, 0]
        td = (reward + discount * best - q.gather(1, action[:, None])[:, 0]).abs()
        for key, value in (("bar", bar), ("action", action), ("reward", reward), ("now", p),
                           ("discount", discount), ("td", td), ("next", p2)):
            memory[key][:, where] = value.view((lanes, n) + value.shape[1:])
        where.copy_((where + n) % size)
        q.copy_(q2)
        p.copy_(p2)

    @torch.no_grad()
    def begin():
        env.reset(torch.randint(100, last - 600, (lanes * n,), device=device))
        p.copy_(env.portfolio())
        q.copy_(values(net, env.state(p)))

    begin()
    return begin, captured(step, graphs), memory


def learner(market, net, target, memory, batch, device, graphs, lr=1e-4):
    optimiser = torch.optim.Adam(net.parameters(), lr=lr, eps=1e-5, **(
        {"capturable": True} if graphs else {}))
    lanes, size = memory["bar"].shape
    lane = torch.arange(lanes, device=device)[:, None]

    def update():
        i = torch.randint(0, size, (lanes, batch), device=device)
        bar = memory["bar"][lane, i]
        with torch.no_grad():
            x2 = torch.cat([market.features[bar + 1], memory["next"][lane, i]], 2)
            best = target(x2).gather(2, net(x2).argmax(2, keepdim=True))[:, :, 0]
            y = memory["reward"][lane, i] + memory["discount"][lane, i] * best
        q = net(torch.cat([market.features[bar], memory["now"][lane, i]], 2))
        q = q.gather(2, memory["action"][lane, i][:, :, None])[:, :, 0]
        loss = torch.nn.functional.smooth_l1_loss(q, y, reduction="none").mean(1).sum()
        optimiser.zero_grad(set_to_none=False)
        loss.backward()
        with torch.no_grad():  # every agent is clipped by its own norm
            gradients = [w.grad for w in net.parameters()]
            norm = sum(g.square().sum((1, 2)) for g in gradients).sqrt()
            scale = (10.0 / (norm + 1e-6)).clamp(max=1.0)[:, None, None]
            for g in gradients:
                g.mul_(scale)
        optimiser.step()
        with torch.no_grad():
            for w, t in zip(net.parameters(), target.parameters()):
                t.lerp_(w, 0.005)

    return captured(update, graphs)


def tester(market, net, lanes, windows, device, graphs):
    rows = lanes * windows
    env = Env(market, rows, device)
    kept = [torch.zeros(rows, device=device) for _ in range(4)]  # sum, square, peak, depth

    @torch.no_grad()
    def step():
        x = env.state(env.portfolio()).view(lanes, windows, F + P)
        _, ret, _ = env.step(net(x).argmax(2).view(rows), rewarded=False)
        kept[0].add_(ret)
        kept[1].add_(ret * ret)
        kept[2].copy_(torch.maximum(kept[2], env.equity))
        kept[3].copy_(torch.minimum(kept[3], env.equity / kept[2] - 1))

    def begin():
        env.reset(100 + torch.arange(rows, device=device) % windows * 200)
        kept[2].fill_(CAPITAL)

    begin()
    return begin, captured(step, graphs), kept


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--lanes", default="1,32,128")
    args.add_argument("--json", default="")
    args.add_argument("--seconds", type=float, default=2.0, help="of one case's runs")
    args.add_argument("--check", action="store_true")
    args = args.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    torch.manual_seed(0)
    bars, n, size, batch = (3000, 8, 256, 32) if args.check else (1000000, 128, 204800, 1024)
    market, figures = Market(bars, device), []
    print("torch %s, %s" % (torch.__version__, torch.cuda.get_device_name(0)
                            if device.type == "cuda" else "cpu"), flush=True)

    def show(name, lanes, all_units, units, amount, unit, begin, work):
        """The time of all_units calls of `work`, which make `amount` a lane, from runs of `units`."""
        seconds, start = [], time.perf_counter()
        while len(seconds) < 2 or time.perf_counter() - start < args.seconds:
            begin()
            wait()
            one = time.perf_counter()
            for _ in range(units):
                work()
            wait()
            seconds.append((time.perf_counter() - one) * all_units / units)
        seconds = sorted(seconds[1:])  # the first warms up
        median = seconds[len(seconds) // 2]
        figures.append({"name": name, "lanes": lanes, "median_ms": median * 1e3,
                        "best_ms": seconds[0] * 1e3, "rate": lanes * amount / median,
                        "unit": unit})
        print("%-38s K=%3d %12.3f ms %12.4f %s" % (
            name, lanes, median * 1e3, lanes * amount / median, unit), flush=True)
        if args.json:
            with open(args.json, "w") as f:
                json.dump({"peer": "torch " + torch.__version__, "figures": figures}, f, indent=1)

    parts = [(k, False) for k in ([1, 2] if args.check else map(int, args.lanes.split(",")))]
    if device.type == "cuda":
        parts.append((1, True))
    for lanes, graphs in parts:
        how = "graph" if graphs else "eager"
        net, target = Net(lanes).to(device), Net(lanes).to(device)
        few = 5 if args.check else (500 if graphs else 50)
        begin, step, memory = collector(market, net, target, lanes, n, size, device, graphs)
        show("collect, " + how, lanes, 500, few, n * 500e-6, "M exp/s", begin, step)
        update = learner(market, net, target, memory, batch, device, graphs)
        show("learn, soft target, " + how, lanes, 341, few, 341, "updates/s", lambda: None, update)
        begin, step, kept = tester(market, net, lanes, 8, device, graphs)
        show("backtest 8 x 100,000 bars, " + how, lanes, 100000, few, 0.8, "M bars/s", begin, step)
        if not all(bool(torch.isfinite(x).all()) for x in kept + [memory["td"]]):
            print("a td error or metric is not finite", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
