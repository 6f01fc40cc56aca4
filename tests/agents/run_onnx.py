#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Evaluates exported models in a second implementation and compares actions and scores.

    run_onnx.py FOLDER      with FORM.onnx and FORM.json, as test_onnx.c writes them

The reader and the operators here are plain Python, so the test needs no package; where onnx and
onnxruntime are installed they check and run the same files.
"""
import glob
import json
import math
import os
import struct
import sys


# ---- Protocol Buffers and ONNX ----

def fields(data):
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
            yield key >> 3, value - (1 << 64) if value >> 63 else value
        elif kind == 2:
            size = varint()
            yield key >> 3, data[at:at + size]
            at += size
        elif kind == 5:
            yield key >> 3, struct.unpack("<f", data[at:at + 4])[0]
            at += 4
        else:
            raise ValueError("wire type %d" % kind)


def all_of(data, number):
    return [v for n, v in fields(data) if n == number]


def first_of(data, number, default=None):
    values = all_of(data, number)
    return values[0] if values else default


class Tensor:
    """Row-major values of a shape."""

    def __init__(self, shape, values):
        self.shape, self.values = list(shape), values
        assert len(values) == math.prod(self.shape), (shape, len(values))


def read_tensor(data):
    shape, raw = all_of(data, 1), first_of(data, 9)
    form = {1: "<%df", 7: "<%dq"}[first_of(data, 2)]
    count = math.prod(shape)
    return first_of(data, 8).decode(), Tensor(shape, list(struct.unpack(form % count, raw)))


def read_model(path):
    with open(path, "rb") as file:
        data = file.read()
    assert first_of(data, 1) == 7, "IR version"
    assert first_of(first_of(data, 8), 2) == 13, "opset"
    graph = first_of(data, 7)
    nodes = []
    for node in all_of(graph, 1):
        attributes = {}
        for a in all_of(node, 5):
            kind = first_of(a, 20)
            value = {1: lambda: first_of(a, 2), 2: lambda: first_of(a, 3), 7: lambda: all_of(a, 8)}[kind]()
            attributes[first_of(a, 1).decode()] = value
        nodes.append((first_of(node, 4).decode(), [v.decode() for v in all_of(node, 1)],
                      [v.decode() for v in all_of(node, 2)], attributes))
    return nodes, dict(read_tensor(t) for t in all_of(graph, 5))


# ---- operators ----

def rows(t, axis):
    """(outer, length, inner) of an axis."""
    axis %= len(t.shape)
    return math.prod(t.shape[:axis]), t.shape[axis], math.prod(t.shape[axis + 1:])


def elementwise(op, a, b):
    """Broadcasting, as numpy."""
    n = max(len(a.shape), len(b.shape))
    sa, sb = [1] * (n - len(a.shape)) + a.shape, [1] * (n - len(b.shape)) + b.shape
    shape = [max(x, y) for x, y in zip(sa, sb)]

    def index(s, place):
        at = 0
        for size, i in zip(s, place):
            at = at * size + (i if size > 1 else 0)
        return at

    out = []
    for flat in range(math.prod(shape)):
        place, left = [], flat
        for size in reversed(shape):
            place.insert(0, left % size)
            left //= size
        out.append(op(a.values[index(sa, place)], b.values[index(sb, place)]))
    return Tensor(shape, out)


def along(t, axis, work, keep=True):
    """work(list) -> list of the same length, or a number, for every line of an axis."""
    outer, length, inner = rows(t, axis)
    lines = [[work([t.values[(o * length + k) * inner + i] for k in range(length)])
              for i in range(inner)] for o in range(outer)]
    if isinstance(lines[0][0], list):
        return Tensor(t.shape, [lines[o][i][k] for o in range(outer) for k in range(length)
                                for i in range(inner)])
    shape = list(t.shape)
    axis %= len(shape)
    shape[axis:axis + 1] = [1] if keep else []
    return Tensor(shape, [lines[o][i] for o in range(outer) for i in range(inner)])


def softmax(x):
    top = max(x)
    e = [math.exp(v - top) for v in x]
    return [v / sum(e) for v in e]


def evaluate(nodes, tensors, state):
    value = dict(tensors, state=state)
    for op, inputs, outputs, at in nodes:
        x = [value[name] for name in inputs]
        if op == "Gemm":
            assert at == {"transB": 1}
            (m, k), n = x[0].shape, x[1].shape[0]
            assert x[1].shape == [n, k] and x[2].shape == [n]
            out = [Tensor([m, n], [sum(x[0].values[r * k + i] * x[1].values[c * k + i]
                                       for i in range(k)) + x[2].values[c]
                                   for r in range(m) for c in range(n)])]
        elif op == "MatMul":
            k, n = x[1].shape
            outer = len(x[0].values) // k
            out = [Tensor(x[0].shape[:-1] + [n], [sum(x[0].values[r * k + i] * x[1].values[i * n + c]
                                                      for i in range(k))
                                                  for r in range(outer) for c in range(n)])]
        elif op == "LeakyRelu":
            out = [Tensor(x[0].shape, [v if v > 0 else at["alpha"] * v for v in x[0].values])]
        elif op in ("Add", "Sub", "Mul"):
            work = {"Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b}
            out = [elementwise(work[op], *x)]
        elif op == "ReduceMean":
            assert at["keepdims"] == 1
            out = [along(x[0], at["axes"][0], lambda v: sum(v) / len(v))]
        elif op == "Softmax":
            out = [along(x[0], at["axis"], softmax)]
        elif op == "LogSoftmax":
            out = [along(x[0], at["axis"], lambda v: [math.log(p) for p in softmax(v)])]
        elif op == "ArgMax":
            out = [along(x[0], at["axis"], lambda v: v.index(max(v)), bool(at["keepdims"]))]
        elif op == "Reshape":
            shape = list(x[1].values)
            if -1 in shape:
                rest = -math.prod(shape)
                shape[shape.index(-1)] = len(x[0].values) // rest
            out = [Tensor(shape, x[0].values)]
        elif op == "Split":
            outer, length, inner = rows(x[0], at["axis"])
            assert sum(x[1].values) == length
            out, first = [], 0
            for size in x[1].values:
                shape = list(x[0].shape)
                shape[at["axis"]] = size
                out.append(Tensor(shape, [x[0].values[(o * length + first + k) * inner + i]
                                          for o in range(outer) for k in range(size)
                                          for i in range(inner)]))
                first += size
        elif op == "Concat":
            axis = at["axis"]
            outer, _, inner = rows(x[0], axis)
            shape = list(x[0].shape)
            shape[axis] = sum(t.shape[axis] for t in x)
            out = [Tensor(shape, [t.values[(o * t.shape[axis] + k) * inner + i] for o in range(outer)
                                  for t in x for k in range(t.shape[axis]) for i in range(inner)])]
        else:
            raise ValueError("operator " + op)
        value.update(zip(outputs, out))
    return value["score"], value["action"]


# ---- comparison ----

def taken_score(score, action):
    """Of the composed action: one entry, or the sum over branches."""
    width = len(score)
    if width == 45:
        return score[action]
    if width == 5:
        return score[action // 9]
    return score[action // 9] + score[5 + action // 3 % 3] + score[8 + action % 3]


def compare(name, who, want, score, width, action):
    for i, (a, s) in enumerate(zip(want["action"], want["score"])):
        got = taken_score(score[i * width:(i + 1) * width], action[i])
        assert abs(got - s) <= 1e-4 * max(1.0, abs(s)), (name, who, i, got, s)
        # a tie within rounding may go to another action; its score is then the same
        if action[i] != a:
            other = taken_score(score[i * width:(i + 1) * width], a)
            assert abs(got - other) <= 1e-5 * max(1.0, abs(got)), (name, who, i, action[i], a)
    same = sum(x == y for x, y in zip(action, want["action"]))
    assert same >= len(want["action"]) - 1, (name, who, same)
    print("%s: %s agrees in %d of %d actions" % (name, who, same, len(want["action"])))


def main():
    try:
        import numpy
        import onnx
        import onnxruntime
    except ImportError:
        onnx = None
    found = sorted(glob.glob(os.path.join(sys.argv[1], "*.onnx")))
    assert len(found) >= 8, found
    for path in found:
        name = os.path.basename(path)[:-5]
        with open(path[:-5] + ".json") as file:
            want = json.load(file)
        nodes, tensors = read_model(path)
        n, width = len(want["state"]), len(want["state"][0])
        score, action = evaluate(nodes, tensors,
                                 Tensor([n, width], [v for row in want["state"] for v in row]))
        assert len(set(want["action"])) > 1, name + ": one action only tests little"
        compare(name, "plain Python", want, score.values, score.shape[1], action.values)
        if onnx:
            onnx.checker.check_model(onnx.load(path), full_check=True)
            session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
            s, a = session.run(["score", "action"],
                               {"state": numpy.array(want["state"], dtype=numpy.float32)})
            compare(name, "onnxruntime", want, s.reshape(-1).tolist(), s.shape[1], a.tolist())


if __name__ == "__main__":
    main()
