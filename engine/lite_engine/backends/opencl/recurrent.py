"""LSTM, GRU and RNN: one product for all steps' inputs, then a kernel that walks the sequence."""

from __future__ import annotations

import numpy as np

from ...plan import Plan, PlanTensor, Step
from . import cpu_convolutions as cpu
from . import gpu_convolutions as gpu
from .constants import Constant
from .launch import Launch, Scratch
from .options import code_of, join, storage_option
from .problem import POINTWISE, Convolution
from .registry import Target, builds

_DEFAULTS = {"LSTM": ("sigmoid", "tanh", "tanh"), "GRU": ("sigmoid", "tanh"), "RNN": ("tanh",)}
_FUNCTIONS = {"sigmoid": "Sigmoid", "tanh": "Tanh", "relu": "Relu"}
#: Most work-items of the group that walks a sequence on a GPU.
_MOST_ITEMS = 512


def _array(plan: Plan, step: Step, index: int) -> np.ndarray | None:
    if index >= len(step.inputs) or step.inputs[index] < 0:
        return None
    return plan.tensors[step.inputs[index]].data


def _tensor(plan: Plan, indices: list[int], position: int) -> PlanTensor | None:
    known = position < len(indices) and indices[position] >= 0
    return plan.tensors[indices[position]] if known else None


@builds("lstm", "LSTM")
@builds("gru", "GRU")
@builds("rnn", "RNN")
def recurrent(step: Step, plan: Plan, target: Target) -> list[Launch]:
    profile = target.profile
    x = plan.tensors[step.inputs[0]]
    w, r = _array(plan, step, 1), _array(plan, step, 2)
    assert w is not None and r is not None, "the registry's condition asks for constant weights"
    directions, wide, depth = w.shape
    hidden = r.shape[2]
    gates = wide // hidden
    before = step.op == "GRU" and not step.attrs.get("linear_before_reset")
    outside, inside = _biases(step, _array(plan, step, 3), (directions, wide), hidden)
    rows = x.dims[0] * x.dims[1]
    given = Scratch(rows * directions * wide * x.dtype.itemsize, x.dtype)
    sizes = [rows, rows, 1, depth, rows, 1, directions * wide]
    kind = gpu if profile.local_tiles else cpu
    taps, offset = Constant.floats(w).reshape(-1, depth), Constant.of(outside).reshape(-1)
    product = kind.tiled(Convolution(x, given, sizes, POINTWISE, taps, offset), target)

    v = 1 if profile.local_tiles else profile.lanes
    padded = -(-hidden // v) * v
    walked = Constant.floats(r).reshape(directions, gates, hidden, hidden).transpose(0, 3, 1, 2)
    weights = walked.padded(directions, hidden, gates, padded)
    added = Constant.of(inside).reshape(directions, gates, hidden)
    added = added.padded(directions, gates, padded)
    items = 1
    while profile.local_tiles and items < min(gates * padded, _MOST_ITEMS):
        items *= 2
    h0, c0 = _tensor(plan, step.inputs, 5), _tensor(plan, step.inputs, 6)
    y, y_h, y_c = (_tensor(plan, step.outputs, i) for i in range(3))
    steps, batch = x.dims[:2]
    all_rows, state = directions * wide, (batch * hidden, hidden)
    walk = (batch * all_rows, all_rows, directions * batch * hidden, *state)
    if step.attrs.get("layout"):
        batch, steps = steps, batch
        state = (hidden, directions * hidden)
        walk = (all_rows, steps * all_rows, directions * hidden, hidden,
                steps * directions * hidden)  # fmt: skip
    reverse = {"forward": "0", "reverse": "1", "bidirectional": "(d == 1)"}
    options = join(
        storage_option(x.dtype), "#define FAST_FMA" if profile.fast_fma else "",
        f"#define G {gates}\n#define H {hidden}\n#define HP {padded}",
        f"#define V {v}\n#define ITEMS {items}",
        f"#define REVERSE {reverse[step.attrs['direction']]}",
        "#define RESET_FIRST" if before else "",
        "#define INITIAL_H" if h0 else "", "#define INITIAL_C" if c0 else "",
        "#define LAST_H" if y_h else "", "#define LAST_C" if y_c else "", _cells(step),
    )  # fmt: skip
    nothing = Scratch(rows * directions * hidden * x.dtype.itemsize, x.dtype)
    args = [
        given, weights, added, h0 or nothing, c0 or nothing, y or nothing, y_h or nothing,
        y_c or nothing, steps, batch, *walk, *state,
    ]  # fmt: skip
    grid = (directions * batch * items,)
    return [*product, Launch("recurrent", "recurrent", args, grid, options, (items,))]


def _biases(
    step: Step, given: np.ndarray | None, shape: tuple[int, int], hidden: int
) -> tuple[np.ndarray, np.ndarray]:
    """What is added to the product of all inputs, and what is left for the walk: (D, G·H) each."""
    if given is None:
        return np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    outside, inside = np.array_split(np.asarray(given, np.float32), 2, axis=1)
    both = outside + inside
    if step.op != "GRU":
        return both, np.zeros_like(inside)
    last = np.arange(shape[1]) >= 2 * hidden  # that gate is scaled or computed apart, bias and all
    return np.where(last, outside, both), np.where(last, inside, 0)


def _cells(step: Step) -> str:
    names = [n.lower() for n in step.attrs.get("activations") or ()] or _DEFAULTS[step.op]
    lines = [
        f"#define F{i}(x) {code_of(_FUNCTIONS[name], 'unary')}"
        for i, name in enumerate(names[: len(_DEFAULTS[step.op])])
    ]
    return "\n".join(lines)
