"""Recurrent layers. Gates: Paddle has i f c o (GRU r z c), ONNX i o f c (GRU z r h)."""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ....ir import Value
from ..registry import Call, translates

#: ONNX gate k is Paddle gate _ORDER[k].
_ORDER = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN_TANH": (0,), "RNN_RELU": (0,)}
_ACTIVATION = {"RNN_TANH": "Tanh", "RNN_RELU": "Relu"}


def _regate(array: np.ndarray, order: tuple[int, ...]) -> np.ndarray:
    parts = np.split(array, len(order), axis=0)
    return np.concatenate([parts[k] for k in order], axis=0)


def _weights(op: Call) -> list[np.ndarray]:
    values = op.all("WeightList")
    if any(v.const is None for v in values):
        raise op.unsupported(tr("its weights are computed at run time"))
    return [v.const for v in values]  # type: ignore[misc]


@translates("rnn")
def _(op: Call) -> None:
    """Input (T,B,I); weights of all layers and directions, then all biases; states (L·D,B,H)."""
    mode = str(op.attr("mode", "LSTM"))
    if mode not in _ORDER:
        raise op.unsupported(tr("mode {mode!r} is not known", mode=mode))
    layers, size = int(op.attr("num_layers", 1)), int(op.attr("hidden_size", 0))
    directions = 2 if op.flag("is_bidirec") else 1
    weights = _weights(op)
    count = 2 * layers * directions
    if layers < 1:
        raise op.unsupported(tr("{layers} layers", layers=layers))
    if len(weights) not in (count, 2 * count):
        raise op.unsupported(
            tr("{weights} weights do not fit {layers} layers", weights=len(weights), layers=layers)
        )
    states = op.all("PreState")
    x, lengths = op.need("Input"), op["SequenceLength"]
    ends: list[list[Value]] = []
    for layer in range(layers):
        at = 2 * layer * directions
        pick = weights[at : at + 2 * directions]
        biases = weights[count + at : count + at + 2 * directions]
        first, last = layer * directions, (layer + 1) * directions
        start = [s if layers == 1 else _rows(op, s, first, last) for s in states]
        x, end = _layer(op, mode, x, pick, biases, start, lengths, size)
        ends.append(end)
    op.set("Out", x)
    for i in range(len(ends[0])):
        parts = [e[i] for e in ends]
        op.set("State", parts[0] if layers == 1 else op.node("Concat", parts, axis=0), i)


def _rows(op: Call, x: Value, first: int, last: int) -> Value:
    return op.node("Slice", [x, op.const([first]), op.const([last]), op.const([0])])


def _layer(
    op: Call, mode: str, x: Value, weights: list[np.ndarray], biases: list[np.ndarray],
    states: list[Value], lengths: Value | None, size: int,
) -> tuple[Value, list[Value]]:  # fmt: skip
    """One layer of one or two directions → (T,B,D·H) and its final states."""
    order = _ORDER[mode]
    directions = len(weights) // 2
    w = np.stack([_regate(v, order) for v in weights[0::2]])
    r = np.stack([_regate(v, order) for v in weights[1::2]])
    b = None
    if biases:
        b = op.const(
            np.stack([
                np.concatenate([_regate(biases[2 * d], order), _regate(biases[2 * d + 1], order)])
                for d in range(directions)
            ])
        )  # fmt: skip
    kind = "RNN" if mode in _ACTIVATION else mode
    attrs: dict[str, object] = {
        "hidden_size": size or r.shape[-1],
        "direction": "bidirectional" if directions == 2 else "forward",
    }
    if mode == "GRU":
        attrs["linear_before_reset"] = 1
    if mode in _ACTIVATION:
        attrs["activations"] = [_ACTIVATION[mode]] * directions
    inputs = [x, op.const(w), op.const(r), b, lengths, *states]
    outs = op.nodes(kind, inputs, 3 if kind == "LSTM" else 2, **attrs)
    y = op.to_shape(op.transpose(outs[0], [0, 2, 1, 3]), [0, 0, directions * r.shape[-1]])
    return y, outs[1:]


def _sequence(op: Call, x: Value) -> Value:
    """(T, F) of one sequence as (T, 1, F)"""
    return op.node("Unsqueeze", [x, op.const([1])]) if op.rank(x) == 2 else x


def _stored(op: Call, slot: str) -> np.ndarray:
    value = op.need(slot)
    if value.const is None:
        raise op.unsupported(tr("its {slot} is computed at run time", slot=slot.lower()))
    return value.const


@translates("lstm")
def _(op: Call) -> None:
    """The old layer over one sequence: input already projected, gates c i f o, peepholes."""
    x = _sequence(op, op.need("Input"))
    weight, bias = _stored(op, "Weight"), _stored(op, "Bias").reshape(-1)
    h = weight.shape[0]
    if weight.shape != (h, 4 * h) or bias.size not in (4 * h, 7 * h):
        raise op.unsupported(
            tr(
                "a weight of shape {shape} does not fit {size} biases",
                shape=weight.shape,
                size=bias.size,
            )
        )
    order = (1, 3, 2, 0)  # i o f c
    eye = np.eye(4 * h, dtype=np.float32)
    w, r = _regate(eye, order)[None], _regate(weight.T, order)[None]
    b = np.concatenate([_regate(bias[: 4 * h], order), np.zeros(4 * h, np.float32)])[None]
    peep = None
    if op.flag("use_peepholes", True) and bias.size == 7 * h:
        i, f, o = np.split(bias[4 * h :], 3)
        peep = op.const(np.concatenate([i, o, f])[None])
    y, *_ = op.nodes(
        "LSTM", [x, op.const(w), op.const(r), op.const(b), None, None, None, peep], 3,
        hidden_size=h, direction="reverse" if op.flag("is_reverse") else "forward",
    )  # fmt: skip
    op.set("Hidden", op.to_shape(y, [-1, h]))


@translates("gru")
def _(op: Call) -> None:
    """The old layer over one sequence: input already projected, gates u r c."""
    x = _sequence(op, op.need("Input"))
    weight = _stored(op, "Weight")
    h = weight.shape[0]
    if weight.shape != (h, 3 * h):
        raise op.unsupported(
            tr("a weight must have shape (H, 3·H), found {shape}", shape=weight.shape)
        )
    flat = weight.reshape(-1)
    gates = flat[: 2 * h * h].reshape(h, 2 * h)
    r = np.concatenate([gates.T, flat[2 * h * h :].reshape(h, h).T])
    w = np.eye(3 * h, dtype=np.float32)
    b = (
        np.zeros(3 * h, np.float32)
        if op["Bias"] is None
        else _stored(op, "Bias").reshape(-1).copy()
    )
    if not op.flag("origin_mode"):
        # h' = (1−u)·h + u·c; ONNX has u·h + (1−u)·c, and 1 − σ(a) = σ(−a)
        for array in (w, r, b):
            array[:h] *= -1
    bias = np.concatenate([b, np.zeros(3 * h, np.float32)])[None]
    y, _ = op.nodes(
        "GRU", [x, op.const(w[None]), op.const(r[None]), op.const(bias)], 2, hidden_size=h,
        direction="reverse" if op.flag("is_reverse") else "forward",
    )  # fmt: skip
    op.set("Hidden", op.to_shape(y, [-1, h]))
