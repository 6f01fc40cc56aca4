#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden single updates from an independent implementation: PyTorch with autograd, in float64.

    python3 make_golden.py > golden.json        (needs python3-torch; written with torch 1.13)

Networks, targets and losses are written here from the papers, not from kernels/: plain tensors,
one sample at a time where that is clearer. test_golden_updates.c reads the file.
"""
import json
import math
import sys

import torch

torch.manual_seed(1234)
torch.set_default_dtype(torch.float64)
S, H1, H2, HEAD, B = 5, 6, 5, 4, 7  # two market features and the three of "seed54"
BRANCHES = {"exposure5": [5], "branching": [5, 3, 3], "full45": [45]}


def numbers(t):
    return [float("%.8g" % x) for x in t.detach().reshape(-1).tolist()]


def leaky(x):
    return torch.where(x > 0, x, 0.01 * x)


class Net:
    """Named tensors, as docs/weights.md has them."""

    def __init__(self, main, outputs, value, atoms=1, noisy=False, separate=False):
        self.p, self.noise, self.main, self.value, self.atoms = {}, {}, main, value, atoms
        self.noisy, self.separate = noisy, separate
        self.layer("trunk.0", S, H1)
        self.layer("trunk.1", H1, H2)
        self.layer(main + ".0", H2, HEAD, noisy)
        self.layer(main + ".1", HEAD, outputs * atoms, noisy)
        if value:
            self.layer("value.0", H2, HEAD, noisy)
            self.layer("value.1", HEAD, atoms, noisy)
        if separate:
            self.layer("value_trunk.0", S, H1)
            self.layer("value_trunk.1", H1, H2)

    def layer(self, name, n_in, n_out, noisy=False):
        self.p[name + ".weight"] = torch.randn(n_out, n_in) * 0.6
        self.p[name + ".bias"] = torch.randn(n_out) * 0.3
        if noisy:
            self.p[name + ".weight_sigma"] = torch.randn(n_out, n_in) * 0.2
            self.p[name + ".bias_sigma"] = torch.randn(n_out) * 0.2
            f = lambda x: torch.sign(x) * torch.sqrt(torch.abs(x))
            self.noise[name] = (f(torch.randn(n_in)), f(torch.randn(n_out)))

    def linear(self, name, x):
        w, b = self.p[name + ".weight"], self.p[name + ".bias"]
        if name in self.noise:
            e_in, e_out = self.noise[name]
            w = w + self.p[name + ".weight_sigma"] * torch.outer(e_out, e_in)
            b = b + self.p[name + ".bias_sigma"] * e_out
        return x @ w.T + b

    def raw(self, x):
        h = leaky(self.linear("trunk.1", leaky(self.linear("trunk.0", x))))
        main = self.linear(self.main + ".1", leaky(self.linear(self.main + ".0", h)))
        value = None
        if self.value:
            if self.separate:
                h = leaky(self.linear("value_trunk.1", leaky(self.linear("value_trunk.0", x))))
            value = self.linear("value.1", leaky(self.linear("value.0", h)))
        return main, value

    def clone(self):
        other = object.__new__(Net)
        other.__dict__.update(self.__dict__)
        other.p = {k: v + 0.05 * torch.randn_like(v) for k, v in self.p.items()}
        other.noise = {k: (torch.randn_like(a), torch.randn_like(b))
                       for k, (a, b) in self.noise.items()}
        return other

    def track(self):
        for v in self.p.values():
            v.requires_grad_(True)

    def dump(self):
        return {"online." + k: numbers(v) for k, v in self.p.items()}

    def dump_noise(self):
        return {k: numbers(torch.cat(v)) for k, v in self.noise.items()}


def adam(p, m, v, g, t, lr, b1=0.9, b2=0.999, eps=1e-5, decay=0.0):
    """Kingma and Ba, algorithm 1, with decoupled decay (Loshchilov and Hutter)."""
    m = b1 * m + (1 - b1) * g
    v = b2 * v + (1 - b2) * g * g
    p = p - lr * decay * p
    p = p - lr * (m / (1 - b1**t)) / (torch.sqrt(v / (1 - b2**t)) + eps)
    return p, m, v


def step(net, loss, lr, max_norm, trunk_scale=1.0, decay=0.0):
    """One update from fresh moments; returns gradient norm and the new parameters."""
    names = list(net.p)
    grads = torch.autograd.grad(loss, [net.p[n] for n in names])
    grads = [g * trunk_scale if n.startswith("trunk") else g for n, g in zip(names, grads)]
    norm = math.sqrt(sum(float((g * g).sum()) for g in grads))
    scale = min(1.0, max_norm / norm) if max_norm > 0 else 1.0
    after = {}
    for n, g in zip(names, grads):
        zero = torch.zeros_like(g)
        after["online." + n], _, _ = adam(net.p[n].detach(), zero, zero, g * scale, 1, lr, decay=decay)
    return norm, {k: numbers(v) for k, v in after.items()}


def split(sizes):
    at, out = 0, []
    for n in sizes:
        out.append((at, n))
        at += n
    return out


def q_values(net, x, sizes):
    """[B, outputs] of Q, the dueling mean taken per sample and per branch."""
    main, value = net.raw(x)
    if value is None:
        return main
    return torch.cat([value + main[:, a:a + n] - main[:, a:a + n].mean(1, keepdim=True)
                      for a, n in split(sizes)], 1)


def distributions(net, x, sizes):
    """[B, outputs, atoms] of probabilities."""
    main, value = net.raw(x)
    main = main.reshape(len(x), -1, net.atoms)
    if value is not None:
        main = torch.cat([value[:, None, :] + main[:, a:a + n] - main[:, a:a + n].mean(1, keepdim=True)
                          for a, n in split(sizes)], 1)
    return torch.softmax(main, 2)


def project(p, reward, discount, z):
    """Bellemare 2017, algorithm 1: a scatter with the integer case taken apart."""
    out = torch.zeros(len(z))
    delta = z[1] - z[0]
    for j in range(len(z)):
        tz = min(max(float(reward + discount * z[j]), float(z[0])), float(z[-1]))
        b = min(max((tz - float(z[0])) / float(delta), 0.0), len(z) - 1.0)
        low, high = math.floor(b), math.ceil(b)
        if low == high:
            out[low] += p[j]
        else:
            out[low] += p[j] * (high - b)
            out[high] += p[j] * (b - low)
    return out


def dqn_case(name, actions="exposure5", dueling=False, double=False, atoms=0, noisy=False,
             weights=False, delta=1.0, decay=0.0, max_norm=0.5):
    sizes = BRANCHES[actions]
    net = Net("advantage" if dueling else "q", sum(sizes), dueling, max(atoms, 1), noisy)
    target = net.clone()
    x, x_next = torch.randn(B, S), torch.randn(B, S)
    choice = torch.stack([torch.randint(0, n, (B,)) for n in sizes], 1)
    reward = torch.randn(B)
    discount = 0.97 ** torch.randint(1, 4, (B,)) * (torch.rand(B) > 0.3)
    weight = torch.rand(B) * 0.9 + 0.1 if weights else torch.ones(B)
    v_max = 2.0
    initial = net.dump()
    net.track()
    D = len(sizes)
    with torch.no_grad():
        if atoms:
            z = torch.linspace(-v_max, v_max, atoms)
            p_target, p_select = distributions(target, x_next, sizes), distributions(net, x_next, sizes)
            q_select = (p_select if double else p_target) @ z
            y = torch.zeros(B, atoms)
            for b in range(B):
                mean = torch.zeros(atoms)
                for a, n in split(sizes):
                    mean += p_target[b, a + int(q_select[b, a:a + n].argmax())] / D
                y[b] = project(mean, reward[b], discount[b], z)
        else:
            q_target = q_values(target, x_next, sizes)
            q_select = q_values(net, x_next, sizes) if double else q_target
            y = torch.zeros(B)
            for b in range(B):
                best = [q_target[b, a + int(q_select[b, a:a + n].argmax())] for a, n in split(sizes)]
                y[b] = reward[b] + discount[b] * sum(best) / D
    rows, td = [], []
    for b in range(B):
        taken = [a + int(choice[b, d]) for d, (a, n) in enumerate(split(sizes))]
        if atoms:
            p = distributions(net, x[b:b + 1], sizes)[0]
            per = [-(y[b] * torch.log(p[i])).sum() for i in taken]
            td.append(sum(per) / D)
        else:
            q = q_values(net, x[b:b + 1], sizes)[0]
            errors = [q[i] - y[b] for i in taken]
            td.append(sum(abs(e) for e in errors) / D)
            per = [0.5 * e * e if delta == 0 or abs(e) <= delta else delta * (abs(e) - 0.5 * delta)
                   for e in errors]
        rows.append(weight[b] * sum(per) / D)
    loss = sum(rows) / B
    norm, after = step(net, loss, 1e-2, max_norm, 1.0 / (D + 1) if D > 1 else 1.0, decay)
    return {"name": name, "actions": actions, "dueling": dueling, "double": double, "atoms": atoms,
            "noisy": noisy, "delta": delta, "decay": decay, "max_norm": max_norm, "v_max": v_max,
            "lr": 1e-2, "online": initial, "target": target.dump(),
            "noise": net.dump_noise(), "target_noise": target.dump_noise(),
            "x": numbers(x), "x_next": numbers(x_next), "choice": choice.reshape(-1).tolist(),
            "reward": numbers(reward), "discount": numbers(discount), "weight": numbers(weight),
            "want": {"y": numbers(y), "loss": numbers(loss)[0], "td": numbers(torch.stack(td)),
                     "norm": norm, "after": after}}


def ppo_case(name, actions, separate, value_clip):
    sizes = BRANCHES[actions]
    net = Net("policy", sum(sizes), True, separate=separate)
    x = torch.randn(B, S)
    choice = torch.stack([torch.randint(0, n, (B,)) for n in sizes], 1)
    initial = net.dump()
    net.track()
    clip, vf, ent = 0.2, 0.5, 0.03

    def parts():
        logits, value = net.raw(x)
        log_p = torch.zeros(B)
        entropy = torch.zeros(B)
        for d, (a, n) in enumerate(split(sizes)):
            dist = torch.distributions.Categorical(logits=logits[:, a:a + n])
            log_p = log_p + dist.log_prob(choice[:, d])
            entropy = entropy + dist.entropy()
        return log_p, entropy, value[:, 0]

    log_p, entropy, value = parts()
    log_p_old = (log_p + 0.4 * torch.randn(B)).detach()
    value_old = (value + 0.4 * torch.randn(B)).detach()
    target = (value + torch.randn(B)).detach()
    advantage = torch.randn(B)
    norm_adv = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    ratio = torch.exp(log_p - log_p_old)
    policy = torch.max(-norm_adv * ratio, -norm_adv * ratio.clamp(1 - clip, 1 + clip)).mean()
    v_loss = (value - target) ** 2
    if value_clip > 0:
        clipped = value_old + (value - value_old).clamp(-value_clip, value_clip)
        v_loss = torch.max(v_loss, (clipped - target) ** 2)
    loss = policy + vf * 0.5 * v_loss.mean() - ent * entropy.mean()
    kl = ((ratio - 1) - (log_p - log_p_old)).mean()
    norm, after = step(net, loss, 1e-2, 0.5)
    return {"name": name, "actions": actions, "separate": separate, "value_clip": value_clip,
            "clip": clip, "vf": vf, "ent": ent, "max_norm": 0.5, "lr": 1e-2, "online": initial,
            "x": numbers(x), "choice": choice.reshape(-1).tolist(), "log_p_old": numbers(log_p_old),
            "value_old": numbers(value_old), "value_target": numbers(target),
            "advantage": numbers(norm_adv),
            "want": {"loss": numbers(loss)[0], "kl": numbers(kl)[0],
                     "entropy": numbers(entropy.mean())[0],
                     "clipped": int(((ratio - 1).abs() > clip).sum()), "norm": norm, "after": after}}


def gae_case():
    """Backwards by definition: A_t = sum of (gamma lambda)^k delta_{t+k} up to the episode's end."""
    n, gamma, lam = 12, 0.97, 0.9
    reward, value, value_next = torch.randn(n), torch.randn(n), torch.randn(n)
    end = [0, 0, 1, 0, 2, 0, 0, 0, 1, 0, 0, 0]  # 1 terminal, 2 truncated
    out = []
    for t in range(n):
        total, weight = 0.0, 1.0
        for k in range(t, n):
            delta = reward[k] + (0.0 if end[k] == 1 else gamma * value_next[k]) - value[k]
            total += weight * float(delta)
            weight *= gamma * lam
            if end[k]:
                break
        out.append(total)
    return {"gamma": gamma, "lambda": lam, "reward": numbers(reward), "value": numbers(value),
            "value_next": numbers(value_next), "end": end, "want": out}


def adam_case():
    """torch.optim.AdamW itself, a hundred steps."""
    p = torch.randn(9)
    first = numbers(p)
    grads = [torch.randn(9) * 10.0 ** float(torch.randint(-4, 2, (1,))) for _ in range(100)]
    param = torch.nn.Parameter(p.clone())
    opt = torch.optim.AdamW([param], lr=3e-3, betas=(0.9, 0.999), eps=1e-5, weight_decay=0.02)
    for g in grads:
        param.grad = g.clone()
        opt.step()
    return {"lr": 3e-3, "decay": 0.02, "start": first, "gradient": [numbers(g) for g in grads],
            "want": numbers(param)}


def nstep_case():
    """Episode ends at index 4 (terminal) and 8 (truncated); the data ends at 11."""
    n, gamma, steps = 12, 0.9, 3
    reward = torch.randn(n)
    end = [0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]
    out = []
    for t in range(n):
        total, m = 0.0, 0
        for k in range(t, min(t + steps, n)):
            total += gamma ** (k - t) * float(reward[k])
            m += 1
            if end[k]:
                break
        out.append([total, gamma**m * (0.0 if end[t + m - 1] == 1 else 1.0), m])
    return {"gamma": gamma, "n": steps, "reward": numbers(reward), "end": end, "want": out}


golden = {
    "made_by": "tests/agents/make_golden.py, torch " + torch.__version__.split("+")[0],
    "dqn": [
        dqn_case("dqn"),
        dqn_case("dqn_mse", delta=0.0, max_norm=0.0),
        dqn_case("double", double=True),
        dqn_case("dueling", dueling=True),
        dqn_case("dueling_double_weight_decay", dueling=True, double=True, decay=0.1),
        dqn_case("branching", actions="branching", dueling=True, double=True),
        dqn_case("branching_plain", actions="branching"),
        dqn_case("c51", atoms=7, dueling=True, double=True),
        dqn_case("c51_plain", atoms=7),
        dqn_case("noisy_fixed_noise", noisy=True, dueling=True, double=True),
        dqn_case("per_weights", dueling=True, double=True, weights=True),
        dqn_case("all", actions="branching", dueling=True, double=True, atoms=7, noisy=True,
                 weights=True),
    ],
    "ppo": [
        ppo_case("exposure5", "exposure5", False, 0.0),
        ppo_case("factored", "branching", False, 0.0),
        ppo_case("separate", "exposure5", True, 0.0),
        ppo_case("factored_separate_value_clip", "branching", True, 0.2),
    ],
    "gae": gae_case(),
    "adam": adam_case(),
    "nstep": nstep_case(),
}
json.dump(golden, sys.stdout, separators=(",", ":"))
sys.stdout.write("\n")
