"""Trains the small text transformer that the page on compression measures, and writes it as ONNX.

    pip install numpy onnx
    python notebooks/models/train_listops.py

It answers nested lists of digits, [MAX 3 [MIN 7 5] 1] with 5: ListOps (Nangia 2018) with MAX, MIN,
MED (the upper median) and RNG (largest minus smallest), two levels deep. Everything is NumPy,
gradients too, and seeded; it takes two minutes of one core. The accuracy that is printed, and kept
in the file's metadata, is that on 2,000 lists of another seed.

Large language models grow a few channels that are up to a hundred times louder than the others,
which makes their activations hard to quantize (Dettmers 2022, "LLM.int8()"; Xiao 2023,
"SmoothQuant"). A network this small does not, so it is given some when it is written: LOUD channels
of every normalization are multiplied by GAIN, and the weights that read them divided by it, which
changes nothing in floats.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).parent
OPERATORS = {
    "MAX": max,
    "MIN": min,
    "MED": lambda values: sorted(values)[len(values) // 2],
    "RNG": lambda values: max(values) - min(values),
}
TOKENS = [*map(str, range(10)), *(f"[{name}" for name in OPERATORS), "]", "pad", "answer"]
CLOSE, PAD, ANSWER = 14, 15, 16
LENGTH, WIDTH, HEADS, BLOCKS, HIDDEN = 20, 64, 4, 2, 192
STEPS, BATCH, RATE = 5000, 64, 3e-3
TRAINING, HELD_BACK = 40_000, 2000
LOUD, GAIN = 3, 64.0
#: Of Gelu's approximation by tanh.
ROOT, CUBE = np.float32(np.sqrt(2 / np.pi)), np.float32(0.044715)

Array = np.ndarray
Parameters = dict[str, Array]


# ---------------------------------------------------------------- lists


def draw(rng: np.random.Generator, depth: int) -> tuple[list[int], int]:
    """Tokens of a digit or a list, and its value."""
    if depth == 0 or (depth < 2 and rng.random() < 0.55):
        digit = int(rng.integers(10))
        return [digit], digit
    which = int(rng.integers(len(OPERATORS)))
    parts = [draw(rng, depth - 1) for _ in range(int(rng.integers(2, 6)))]
    value = list(OPERATORS.values())[which]([v for _, v in parts])
    return [10 + which, *(t for tokens, _ in parts for t in tokens), CLOSE], value


def lists(seed: int, count: int) -> tuple[Array, Array]:
    """`count` lists (count, LENGTH), behind a token where the answer is read, and their values."""
    rng = np.random.default_rng(seed)
    tokens, values = np.full((count, LENGTH), PAD, np.int64), np.zeros(count, np.int64)
    tokens[:, 0] = ANSWER
    made = 0
    while made < count:
        own, value = draw(rng, 2)
        if 6 <= len(own) < LENGTH:
            tokens[made, 1 : 1 + len(own)] = own
            values[made] = value
            made += 1
    return tokens, values


# ---------------------------------------------------------------- network


def initial(rng: np.random.Generator) -> Parameters:
    def normal(*shape: int, deviation: float = 0.0) -> Array:
        return (rng.standard_normal(shape) * (deviation or shape[0] ** -0.5)).astype(np.float32)

    zeros, ones = (lambda n: np.zeros(n, np.float32)), (lambda n: np.ones(n, np.float32))
    p = {
        "embedding": normal(len(TOKENS), WIDTH, deviation=0.5),
        "position": normal(LENGTH, WIDTH, deviation=0.5),
        "norm.scale": ones(WIDTH), "norm.offset": zeros(WIDTH),
        "answer.weight": normal(WIDTH, 10), "answer.bias": zeros(10),
    }  # fmt: skip
    less = np.float32((2 * BLOCKS) ** -0.5)  # sums of all blocks start as large as their input
    for b in range(BLOCKS):
        own = {
            "norm1.scale": ones(WIDTH), "norm1.offset": zeros(WIDTH),
            "heads.weight": normal(WIDTH, 3 * WIDTH), "heads.bias": zeros(3 * WIDTH),
            "mix.weight": normal(WIDTH, WIDTH) * less, "mix.bias": zeros(WIDTH),
            "norm2.scale": ones(WIDTH), "norm2.offset": zeros(WIDTH),
            "wide.weight": normal(WIDTH, HIDDEN), "wide.bias": zeros(HIDDEN),
            "narrow.weight": normal(HIDDEN, WIDTH) * less, "narrow.bias": zeros(WIDTH),
        }  # fmt: skip
        p.update({f"{b}.{name}": array for name, array in own.items()})
    return p


class Norm:
    """Layer normalization of rows, and its gradients."""

    def __init__(self, p: Parameters, name: str, x: Array) -> None:
        self.name, self.scale = name, p[f"{name}.scale"]
        centered = x - x.mean(-1, keepdims=True)
        variance = (centered * centered).mean(-1, keepdims=True)
        self.inverse = 1 / np.sqrt(variance + np.float32(1e-5))
        self.unit = centered * self.inverse
        self.y = self.unit * self.scale + p[f"{name}.offset"]

    def back(self, dy: Array, g: Parameters) -> Array:
        g[f"{self.name}.scale"], g[f"{self.name}.offset"] = (dy * self.unit).sum(0), dy.sum(0)
        d = dy * self.scale
        mean = d.mean(-1, keepdims=True)
        along = (d * self.unit).mean(-1, keepdims=True)
        return self.inverse * (d - mean - self.unit * along)


class Linear:
    def __init__(self, p: Parameters, name: str, x: Array) -> None:
        self.name, self.x, self.w = name, x, p[f"{name}.weight"]
        self.y = x @ self.w + p[f"{name}.bias"]

    def back(self, dy: Array, g: Parameters) -> Array:
        g[f"{self.name}.weight"], g[f"{self.name}.bias"] = self.x.T @ dy, dy.sum(0)
        return dy @ self.w.T


class Gelu:
    def __init__(self, x: Array) -> None:
        self.x, self.t = x, np.tanh(ROOT * (x + CUBE * x * x * x))
        self.y = np.float32(0.5) * x * (1 + self.t)

    def back(self, dy: Array) -> Array:
        half, x = np.float32(0.5), self.x
        slope = ROOT * (1 + 3 * CUBE * x * x)
        return dy * (half * (1 + self.t) + half * x * (1 - self.t * self.t) * slope)


class Attention:
    """Rows (batch * LENGTH, 3 * WIDTH) of queries, keys and values → (batch * LENGTH, WIDTH)."""

    def __init__(self, rows: Array) -> None:
        split = rows.reshape(-1, LENGTH, 3, HEADS, WIDTH // HEADS).transpose(2, 0, 3, 1, 4)
        self.q, self.k, self.v = (np.ascontiguousarray(part) for part in split)
        self.root = np.float32((WIDTH // HEADS) ** -0.5)
        scores = self.q @ self.k.transpose(0, 1, 3, 2) * self.root
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        self.weights = weights / weights.sum(-1, keepdims=True)
        self.y = (self.weights @ self.v).transpose(0, 2, 1, 3).reshape(-1, WIDTH)

    def back(self, dy: Array) -> Array:
        dy = dy.reshape(-1, LENGTH, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)
        dy = np.ascontiguousarray(dy)
        dv = self.weights.transpose(0, 1, 3, 2) @ dy
        d = dy @ self.v.transpose(0, 1, 3, 2)
        d = self.weights * (d - (d * self.weights).sum(-1, keepdims=True)) * self.root
        parts = np.stack([d @ self.k, d.transpose(0, 1, 3, 2) @ self.q, dv])
        return parts.transpose(1, 3, 0, 2, 4).reshape(-1, 3 * WIDTH)


class Block:
    """x + mix(attention(norm(x))), then the same with two layers and Gelu between them."""

    def __init__(self, p: Parameters, b: int, x: Array) -> None:
        self.norm1 = Norm(p, f"{b}.norm1", x)
        self.heads = Linear(p, f"{b}.heads", self.norm1.y)
        self.attention = Attention(self.heads.y)
        self.mix = Linear(p, f"{b}.mix", self.attention.y)
        middle = x + self.mix.y
        self.norm2 = Norm(p, f"{b}.norm2", middle)
        self.wide = Linear(p, f"{b}.wide", self.norm2.y)
        self.gelu = Gelu(self.wide.y)
        self.narrow = Linear(p, f"{b}.narrow", self.gelu.y)
        self.y = middle + self.narrow.y

    def back(self, dy: Array, g: Parameters) -> Array:
        hidden = self.gelu.back(self.narrow.back(dy, g))
        dy = dy + self.norm2.back(self.wide.back(hidden, g), g)
        heads = self.attention.back(self.mix.back(dy, g))
        return dy + self.norm1.back(self.heads.back(heads, g), g)


class Network:
    """Tokens (batch, LENGTH) → logits (batch, 10), with all that gradients need."""

    def __init__(self, p: Parameters, tokens: Array) -> None:
        self.tokens = tokens
        x = (p["embedding"][tokens] + p["position"]).reshape(-1, WIDTH)
        self.blocks = []
        for b in range(BLOCKS):
            self.blocks.append(Block(p, b, x))
            x = self.blocks[-1].y
        self.norm = Norm(p, "norm", x.reshape(-1, LENGTH, WIDTH)[:, 0])
        self.answer = Linear(p, "answer", self.norm.y)
        self.logits = self.answer.y

    def gradients(self, values: Array) -> Parameters:
        """Of the mean cross entropy."""
        rows, g = np.arange(len(values)), {}
        share = np.exp(self.logits - self.logits.max(1, keepdims=True))
        d = share / share.sum(1, keepdims=True)
        d[rows, values] -= 1
        whole = np.zeros((len(values), LENGTH, WIDTH), np.float32)
        whole[:, 0] = self.norm.back(self.answer.back(d / np.float32(len(values)), g), g)
        dx = whole.reshape(-1, WIDTH)
        for block in reversed(self.blocks):
            dx = block.back(dx, g)
        g["position"] = dx.reshape(-1, LENGTH, WIDTH).sum(0)
        hot = np.zeros((len(TOKENS), dx.shape[0]), np.float32)
        hot[self.tokens.reshape(-1), np.arange(dx.shape[0])] = 1
        g["embedding"] = hot @ dx
        return g


def train(tokens: Array, values: Array) -> Parameters:
    """Adam, a warm start, a rate that falls like a cosine, gradients of norm 1 at most."""
    rng = np.random.default_rng(0)
    p = initial(rng)
    first, second = ({k: np.zeros_like(v) for k, v in p.items()} for _ in range(2))
    for step in range(STEPS):
        picked = rng.integers(0, len(tokens), BATCH)
        g = Network(p, tokens[picked]).gradients(values[picked])
        rate = RATE * min(1, (step + 1) / 200) * (0.5 + 0.5 * np.cos(np.pi * step / STEPS))
        norm = np.sqrt(sum(float((d * d).sum()) for d in g.values()))
        for name, d in g.items():
            d = d * np.float32(min(1, 1 / norm))
            first[name] += np.float32(0.1) * (d - first[name])
            second[name] += np.float32(0.02) * (d * d - second[name])
            mean = first[name] / np.float32(1 - 0.9 ** (step + 1))
            square = second[name] / np.float32(1 - 0.98 ** (step + 1))
            p[name] -= np.float32(rate) * mean / (np.sqrt(square) + np.float32(1e-8))
        if (step + 1) % 500 == 0:
            print(f"step {step + 1} of {STEPS}", flush=True)
    return p


def make_loud(p: Parameters) -> None:
    """LOUD channels of every normalization in a block times GAIN, in place."""
    rng = np.random.default_rng(1)
    for b, (norm, reader) in itertools.product(
        range(BLOCKS), (("norm1", "heads"), ("norm2", "wide"))
    ):
        gain = np.ones(WIDTH, np.float32)
        gain[rng.choice(WIDTH, LOUD, replace=False)] = GAIN
        p[f"{b}.{norm}.scale"] *= gain
        p[f"{b}.{norm}.offset"] *= gain
        p[f"{b}.{reader}.weight"] /= gain[:, None]


# ---------------------------------------------------------------- file


class Writer:
    """The network as ONNX, opset 20."""

    def __init__(self, p: Parameters) -> None:
        self.p, self.nodes, self.constants = p, [], {}

    def const(self, name: str, array: Any) -> str:
        self.constants[name] = np.array(array, order="C")
        return name

    def op(self, kind: str, *inputs: str, name: str, **attrs: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attrs))
        return name

    def norm(self, x: str, name: str) -> str:
        ends = [self.const(f"{name}.{e}", self.p[f"{name}.{e}"]) for e in ("scale", "offset")]
        return self.op("LayerNormalization", x, *ends, name=name, axis=-1, epsilon=1e-5)

    def linear(self, x: str, name: str, weight: Array, bias: Array) -> str:
        product = self.op("MatMul", x, self.const(f"{name}.weight", weight), name=f"{name}.product")
        return self.op("Add", product, self.const(f"{name}.bias", bias), name=name)

    def named(self, x: str, name: str) -> str:
        return self.linear(x, name, self.p[f"{name}.weight"], self.p[f"{name}.bias"])

    def attention(self, x: str, b: int) -> str:
        weights, biases = (self.p[f"{b}.heads.{e}"] for e in ("weight", "bias"))
        parts = []
        for i, name in enumerate(("query", "key", "value")):
            own = slice(i * WIDTH, (i + 1) * WIDTH)
            y = self.linear(x, f"{b}.{name}", weights[:, own], biases[own])
            y = self.op("Reshape", y, "heads", name=f"{b}.{name}.split")
            perm = [0, 2, 3, 1] if name == "key" else [0, 2, 1, 3]
            parts.append(self.op("Transpose", y, name=f"{b}.{name}.heads", perm=perm))
        scores = self.op("MatMul", *parts[:2], name=f"{b}.scores")
        scores = self.op("Mul", scores, "root", name=f"{b}.scaled")
        weights = self.op("Softmax", scores, name=f"{b}.weights", axis=-1)
        y = self.op("MatMul", weights, parts[2], name=f"{b}.mixed")
        y = self.op("Transpose", y, name=f"{b}.joined", perm=[0, 2, 1, 3])
        return self.op("Reshape", y, "rows", name=f"{b}.rows")

    def model(self) -> onnx.ModelProto:
        self.const("heads", [1, LENGTH, HEADS, WIDTH // HEADS])
        self.const("rows", [1, LENGTH, WIDTH])
        self.const("root", np.float32((WIDTH // HEADS) ** -0.5))
        x = self.op("Gather", self.const("embedding", self.p["embedding"]), "tokens", name="words")
        x = self.op("Add", x, self.const("position", self.p["position"]), name="places")
        for b in range(BLOCKS):
            y = self.attention(self.norm(x, f"{b}.norm1"), b)
            x = self.op("Add", x, self.named(y, f"{b}.mix"), name=f"{b}.middle")
            y = self.named(self.norm(x, f"{b}.norm2"), f"{b}.wide")
            y = self.op("Gelu", y, name=f"{b}.gelu", approximate="tanh")
            x = self.op("Add", x, self.named(y, f"{b}.narrow"), name=f"{b}.out")
        x = self.op("Gather", x, self.const("first", np.int64(0)), name="summary", axis=1)
        self.named(self.norm(x, "norm"), "answer")
        tokens = helper.make_tensor_value_info("tokens", TensorProto.INT64, [1, LENGTH])
        answer = helper.make_tensor_value_info("answer", TensorProto.FLOAT, [1, 10])
        weights = [numpy_helper.from_array(a, name) for name, a in self.constants.items()]
        graph = helper.make_graph(self.nodes, "listops", [tokens], [answer], weights)
        opset = [helper.make_opsetid("", 20)]
        return helper.make_model(graph, opset_imports=opset, ir_version=9)


def main() -> None:
    p = train(*lists(1, TRAINING))
    tokens, values = lists(2, HELD_BACK)
    accuracy = float((Network(p, tokens).logits.argmax(1) == values).mean())
    told = f"{accuracy:.4f} on {HELD_BACK} held-out lists"
    print(f"accuracy: {told}")
    make_loud(p)
    model = Writer(p).model()
    labels = json.dumps([str(digit) for digit in range(10)])
    helper.set_model_props(model, {"labels": labels, "accuracy": told})
    onnx.checker.check_model(model)
    onnx.save(model, HERE / "listops.onnx")
    np.savez_compressed(HERE / "listops_held_back.npz", tokens=tokens, labels=values)


if __name__ == "__main__":
    main()
