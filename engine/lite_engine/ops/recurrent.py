"""LSTM, GRU and RNN over whole sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import Dim, Node, TypeInfo, format_shape
from ._conditions import absent, all_of, attr, constant
from ._core import OpDef, define_op
from ._records import Cost
from ._samples import Draw, Sample
from .activation import _sigmoid

_ATTRS: dict[str, Any] = {
    "activation_alpha": [], "activation_beta": [], "activations": [], "clip": 0.0,
    "direction": "forward", "hidden_size": None, "layout": 0,
}  # fmt: skip

Array = np.ndarray
_CELL: dict[str, Callable[[Array, float, float], Array]] = {
    "sigmoid": lambda x, a, b: _sigmoid(x),
    "tanh": lambda x, a, b: np.tanh(x),
    "relu": lambda x, a, b: np.maximum(x, 0),
    "affine": lambda x, a, b: a * x + b,
    "leakyrelu": lambda x, a, b: np.where(x < 0, a * x, x),
    "thresholdedrelu": lambda x, a, b: np.where(x > a, x, 0),
    "scaledtanh": lambda x, a, b: a * np.tanh(b * x),
    "hardsigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1),
    "elu": lambda x, a, b: np.where(x < 0, a * np.expm1(np.minimum(x, 0)), x),
    "softsign": lambda x, a, b: x / (1 + np.abs(x)),
    "softplus": lambda x, a, b: np.logaddexp(x, 0),
}
_DEFAULTS = {  # (alpha, beta) when the node gives none
    "leakyrelu": (0.01, 0.0), "thresholdedrelu": (1.0, 0.0), "hardsigmoid": (0.2, 0.5),
    "elu": (1.0, 0.0), "affine": (1.0, 0.0), "scaledtanh": (1.0, 1.0),
}  # fmt: skip


class Cell:
    """Activations, clipping and shapes that the three operators share."""

    def __init__(self, default: Sequence[str], attrs: dict[str, Any]) -> None:
        self.directions = 2 if attrs["direction"] == "bidirectional" else 1
        names = [n.lower() for n in attrs["activations"]] or [*default] * self.directions
        alphas, betas = iter(attrs["activation_alpha"]), iter(attrs["activation_beta"])
        self.functions = []
        for name in names:
            if name not in _CELL:
                raise ShapeError(
                    tr("the activation {name!r} of a recurrent cell is not known", name=name)
                )
            alpha, beta = _DEFAULTS.get(name, (0.0, 0.0))
            if name in _DEFAULTS:
                alpha = next(alphas, alpha)
            if name in ("hardsigmoid", "affine", "scaledtanh"):
                beta = next(betas, beta)
            self.functions.append((_CELL[name], alpha, beta))
        self.per_direction = len(default)
        self.limit = attrs["clip"]

    def reverse(self, direction: int, attrs: dict[str, Any]) -> bool:
        return direction == 1 or attrs["direction"] == "reverse"

    def apply(self, direction: int, which: int, x: Array) -> Array:
        fn, alpha, beta = self.functions[direction * self.per_direction + which]
        return fn(np.clip(x, -self.limit, self.limit) if self.limit else x, alpha, beta)


def _run(
    step: Callable[..., tuple[Array, ...]],
    states: int,
    x: Array,
    lengths: Array | None,
    initial: Sequence[Array | None],
    hidden: int,
    cell: Cell,
    attrs: dict[str, Any],
) -> list[Array]:
    """`step(direction, x_t, *states) → states` over time; x (T,B,I) → y (T,D,B,H), last states."""
    steps, batch, _ = x.shape
    lens = np.full(batch, steps) if lengths is None else lengths.astype(int)
    y = np.zeros((steps, cell.directions, batch, hidden), x.dtype)
    last = [np.zeros((cell.directions, batch, hidden), x.dtype) for _ in range(states)]
    for d in range(cell.directions):
        now = [
            np.zeros((batch, hidden), x.dtype) if s is None else s[d].astype(x.dtype)
            for s in initial
        ]
        backwards = cell.reverse(d, attrs)
        for i in range(steps):
            # a shorter sequence, run backwards, starts at its own end
            t = np.where(i < lens, lens - 1 - i, i) if backwards else np.full(batch, i)
            new = step(d, x[t, np.arange(batch)], *now)
            alive = (i < lens)[:, None]
            now = [np.where(alive, n, old) for n, old in zip(new, now)]
            y[t, d, np.arange(batch)] = np.where(alive, new[0], 0)
        for k in range(states):
            last[k][d] = now[k]
    return [y, *last]


def _define(name: str, gates: int, inputs: str, outputs: str, **attrs: Any) -> OpDef:
    op = define_op(
        name,
        inputs=inputs,
        outputs=outputs,
        attrs={**_ATTRS, **attrs},
        packed_inputs=("w", "r", "b", "p"),
        weights={1: 1, 2: 1},
        source=f"ONNX {name}-22",
    )

    @op.infer
    def _(
        x: TypeInfo, w: TypeInfo, r: TypeInfo, *rest: TypeInfo | None, n_outputs: int, **attrs: Any
    ) -> list[TypeInfo]:
        if x.rank != 3 or w.rank != 3 or r.rank != 3:
            raise ShapeError(tr("x, w and r have rank 3"))
        steps, batch, width = x.dims
        hidden, directions = r.dims[2], w.dims[0]
        if isinstance(w.dims[1], int) and isinstance(hidden, int) and w.dims[1] != gates * hidden:
            raise ShapeError(
                tr(
                    "weight has {dims} rows for {gates} gates of {hidden}",
                    dims=w.dims[1],
                    gates=gates,
                    hidden=hidden,
                )
            )
        if isinstance(width, int) and isinstance(w.dims[2], int) and width != w.dims[2]:
            raise ShapeError(
                tr(
                    "the input has width {width}, but the weight takes {dims}",
                    width=width,
                    dims=w.dims[2],
                )
            )
        y: tuple[Dim, ...] = (steps, directions, batch, hidden)
        state: tuple[Dim, ...] = (directions, batch, hidden)
        if attrs["layout"]:
            steps, batch = batch, steps
            y, state = (batch, steps, directions, hidden), (batch, directions, hidden)
        for i, given in enumerate(rest, 3):
            _check_start(op.input_name(i), given, state, batch)
        return [x.with_shape(y), x.with_shape(state), x.with_shape(state)][:n_outputs]

    @op.cost
    def _(x: TypeInfo, w: TypeInfo, r: TypeInfo, *_: Any, **__: Any) -> Cost:
        steps = x.size // int(x.dims[2] or 1)  # type: ignore[call-overload]
        return Cost(macs=steps * (w.size + r.size), flops=steps * int(r.dims[2] or 0) * gates * 10)  # type: ignore[call-overload]

    return op


def _check_start(name: str, given: TypeInfo | None, state: tuple[Dim, ...], batch: Dim) -> None:
    """Raises ShapeError for first states or lengths that are not one for each sample."""
    wanted = (batch,) if name == "sequence_lens" else state
    if given is None or given.shape is None or not name.startswith(("initial", "sequence_lens")):
        return
    pairs = list(zip(given.shape, wanted))
    if len(given.shape) != len(wanted) or any(
        a != b for a, b in pairs if isinstance(a, int) and isinstance(b, int)
    ):
        raise ShapeError(
            tr(
                "{name} has shape {shape}, not {wanted}",
                name=name, shape=format_shape(given.shape), wanted=format_shape(wanted),
            )
        )  # fmt: skip


def _unpack(
    x: Array, states: Sequence[Array | None], layout: int
) -> tuple[Array, list[Array | None]]:
    """Time-major x and direction-major states."""
    if not layout:
        return x, list(states)
    return x.swapaxes(0, 1), [None if s is None else s.swapaxes(0, 1) for s in states]


def _pack(outs: list[Array], layout: int, n_outputs: int) -> list[Array]:
    if layout:
        outs = [outs[0].transpose(2, 0, 1, 3), *(s.swapaxes(0, 1) for s in outs[1:])]
    return outs[:n_outputs]


lstm = _define(
    "LSTM", 4, "x w r b? sequence_lens? initial_h? initial_c? p?", "y y_h y_c", input_forget=0
)


@lstm.reference
def _(
    x: Array,
    w: Array,
    r: Array,
    b: Array | None,
    lengths: Array | None,
    h0: Array | None,
    c0: Array | None,
    p: Array | None,
    *,
    input_forget: int,
    layout: int,
    n_outputs: int,
    **attrs: Any,
) -> list[Array]:
    """C = f∘C + i∘g, H = o∘h(C).

    Gates in the order i, o, f, c: w (D,4H,I), r (D,4H,H), b (D,8H), p (D,3H).
    """
    cell, hidden = Cell(("sigmoid", "tanh", "tanh"), attrs), r.shape[2]
    x, (h0, c0) = _unpack(x, (h0, c0), layout)
    bias = np.zeros((w.shape[0], 8 * hidden), x.dtype) if b is None else b
    peep = np.zeros((w.shape[0], 3 * hidden), x.dtype) if p is None else p

    def step(d: int, xt: Array, h: Array, c: Array) -> tuple[Array, ...]:
        wb, rb = np.split(bias[d], 2)
        i, o, f, g = np.split(xt @ w[d].T + h @ r[d].T + wb + rb, 4, axis=1)
        pi, po, pf = np.split(peep[d], 3)
        i = cell.apply(d, 0, i + pi * c)
        f = 1 - i if input_forget else cell.apply(d, 0, f + pf * c)
        g = cell.apply(d, 1, g)
        new_c = f * c + i * g
        o = cell.apply(d, 0, o + po * new_c)
        return o * cell.apply(d, 2, new_c), new_c

    return _pack(_run(step, 2, x, lengths, (h0, c0), hidden, cell, attrs), layout, n_outputs)


gru = _define("GRU", 3, "x w r b? sequence_lens? initial_h?", "y y_h", linear_before_reset=0)


@gru.reference
def _(
    x: Array,
    w: Array,
    r: Array,
    b: Array | None,
    lengths: Array | None,
    h0: Array | None,
    *,
    linear_before_reset: int,
    layout: int,
    n_outputs: int,
    **attrs: Any,
) -> list[Array]:
    """Gates in the order z, r, h: H = (1 − z)∘h + z∘H. w (D,3H,I), r (D,3H,H), b (D,6H)"""
    cell, hidden = Cell(("sigmoid", "tanh"), attrs), r.shape[2]
    x, (h0,) = _unpack(x, (h0,), layout)
    bias = np.zeros((w.shape[0], 6 * hidden), x.dtype) if b is None else b

    def step(d: int, xt: Array, h: Array) -> tuple[Array, ...]:
        wb, rb = np.split(bias[d], 2)
        xz, xr, xh = np.split(xt @ w[d].T + wb, 3, axis=1)
        rz, rr, rh = np.split(r[d], 3)
        bz, br, bh = np.split(rb, 3)
        z = cell.apply(d, 0, xz + h @ rz.T + bz)
        reset = cell.apply(d, 0, xr + h @ rr.T + br)
        inner = reset * (h @ rh.T + bh) if linear_before_reset else (reset * h) @ rh.T + bh
        return ((1 - z) * cell.apply(d, 1, xh + inner) + z * h,)

    return _pack(_run(step, 1, x, lengths, (h0,), hidden, cell, attrs), layout, n_outputs)


rnn = _define("RNN", 1, "x w r b? sequence_lens? initial_h?", "y y_h")


@rnn.reference
def _(
    x: Array,
    w: Array,
    r: Array,
    b: Array | None,
    lengths: Array | None,
    h0: Array | None,
    *,
    layout: int,
    n_outputs: int,
    **attrs: Any,
) -> list[Array]:
    """H = f(x·Wᵀ + H·Rᵀ + Wb + Rb). w (D,H,I), r (D,H,H), b (D,2H)"""
    cell, hidden = Cell(("tanh",), attrs), r.shape[2]
    x, (h0,) = _unpack(x, (h0,), layout)
    bias = np.zeros((w.shape[0], 2 * hidden), x.dtype) if b is None else b

    def step(d: int, xt: Array, h: Array) -> tuple[Array, ...]:
        return (cell.apply(d, 0, xt @ w[d].T + h @ r[d].T + sum(np.split(bias[d], 2))),)

    return _pack(_run(step, 1, x, lengths, (h0,), hidden, cell, attrs), layout, n_outputs)


def _plain_cells(node: Node, types: list[TypeInfo | None]) -> bool | str:
    names = {n.lower() for n in node.attrs.get("activations", ())}
    return names <= {"sigmoid", "tanh", "relu"} or f"activations {', '.join(sorted(names))}"


def _alike_directions(node: Node, types: list[TypeInfo | None]) -> bool | str:
    """Both directions have the same functions."""
    names = [n.lower() for n in node.attrs.get("activations", ())]
    both = node.attrs.get("direction") == "bidirectional"
    half = len(names) // 2
    same = not both or names[:half] == names[half:]
    return same or tr("its directions have different activations")


def _fits_local_memory(node: Node, types: list[TypeInfo | None]) -> bool | str:
    r = types[2]
    if r is None or r.shape is None or len(r.shape) != 3:
        return tr("its recurrent weights do not have three axes")
    hidden = int(r.shape[2] or 0)  # type: ignore[call-overload]
    return hidden <= 1024 or tr("a state of {hidden} is too long for local memory", hidden=hidden)


_native = (constant(1, 2, 3), absent(4), attr("clip", 0), _plain_cells)
_cells: tuple[tuple[OpDef, tuple[Any, ...]], ...] = (
    (lstm, (*_native, absent(7), attr("input_forget", 0))), (gru, _native), (rnn, _native),
)  # fmt: skip
for _op, _conditions in _cells:
    _op.kernel("cpu", f"f32_{_op.name.lower()}", when=all_of(*_conditions))
    _op.kernel(
        "cpu", f"bf16_{_op.name.lower()}", when=all_of(*_conditions), rank=-1, precision="bf16",
        why=tr("bf16 products, float32 sums: two multiplications per lane"),
    )  # fmt: skip
_device = (*_native, absent(7), _alike_directions, _fits_local_memory)
_walks = tr("a work-group walks a sequence")
lstm.kernel(
    "opencl", "lstm", dtype="f32,f16", when=all_of(*_device, attr("input_forget", 0)), why=_walks
)
gru.kernel("opencl", "gru", dtype="f32,f16", when=all_of(*_device), why=_walks)
rnn.kernel("opencl", "rnn", dtype="f32,f16", when=all_of(*_device), why=_walks)


def _sequences(
    gates: int, states: int, *more: dict[str, Any]
) -> Callable[[Draw], Iterator[Sample]]:
    """Calls of a cell: below, at and above a vector, each direction, with and without states."""

    def calls(draw: Draw) -> Iterator[Sample]:
        def call(steps: int, batch: int, hidden: int, **attrs: Any) -> Sample:
            sides = 2 if attrs.get("direction") == "bidirectional" else 1

            def f(*shape: int) -> Array:  # contracting: an error does not grow from step to step
                return draw.f32(*shape, scale=hidden**-0.5)

            given = [f(sides, batch, hidden) for _ in range(states)] if steps > 4 else []
            x = draw(batch, steps, 5) if attrs.get("layout") else draw(steps, batch, 5)
            if attrs.get("layout"):
                given = [s.swapaxes(0, 1).copy() for s in given]
            w, r = f(sides, gates * hidden, 5), f(sides, gates * hidden, hidden)
            inputs = [x, w, r, f(sides, 2 * gates * hidden), None, *given]
            attrs["hidden_size"] = hidden
            return Sample(inputs, attrs, outputs=1 + states, constant=(1, 2, 3))

        for direction in ("forward", "reverse", "bidirectional"):
            for steps, batch, hidden in ((1, 1, 4), (5, 2, 17), (6, 3, 33), (4, 1, 16)):
                yield call(steps, batch, hidden, direction=direction)
        for attrs in (*more, {"layout": 1}):
            yield call(5, 2, 9, **attrs)

    return calls


lstm.samples(_sequences(4, 2))
gru.samples(_sequences(3, 1, {"linear_before_reset": 1}, {"activations": ["Relu", "Tanh"]}))
rnn.samples(_sequences(1, 1, {"activations": ["Relu"]}))
