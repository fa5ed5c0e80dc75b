"""LSTM, GRU and RNN kernels against the operators' definitions."""

import numpy as np
import pytest
from lite_engine.ir import Graph, Value
from lite_engine.ops import run_node

from ..tiny import check, isas

pytestmark = pytest.mark.cpu
rng = np.random.default_rng(13)
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
#: bf16 rounds inputs, weights and the state of every step by 2^-9 at most; steps contract, so what
#: they make of it stays below four times that.
TOLERANCE = {"f32": 3e-6, "bf16": 2**-7}


def cell(op, steps, batch, width, hidden, directions, states):
    def f(*shape):
        # contracting: an error must not grow from step to step
        return (rng.normal(size=shape) / np.sqrt(hidden)).astype(np.float32)

    g = GATES[op]
    x = f(steps, batch, width)
    inputs = [
        x,
        f(directions, g * hidden, width),
        f(directions, g * hidden, hidden),
        f(directions, 2 * g * hidden),
        None,
    ]
    inputs += [f(directions, batch, hidden) if states else None for _ in range(1 + (op == "LSTM"))]
    return inputs


@pytest.mark.parametrize("isa", isas())
@pytest.mark.parametrize("kind", TOLERANCE)
@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_recurrent(op, direction, kind, isa):
    for steps, batch, width, hidden in [
        (1, 1, 3, 4),
        (5, 2, 7, 17),
        (9, 3, 16, 33),
        (4, 1, 5, 16),
        (3, 2, 0, 5),
    ]:
        inputs = cell(
            op, steps, batch, width, hidden, 1 + (direction == "bidirectional"), steps > 4
        )
        attrs = {"hidden_size": hidden, "direction": direction}
        check(
            op,
            f"{kind}_{op.lower()}",
            inputs,
            attrs,
            constant=[1, 2, 3],
            isas=[isa],
            threads=[1, 3],
            n_outputs=3 if op == "LSTM" else 2,
            tolerance=TOLERANCE[kind],
        )


@pytest.mark.parametrize("kind", TOLERANCE)
@pytest.mark.parametrize("attrs", [
    {"linear_before_reset": 1}, {"activations": ["Relu", "Tanh"]},
    {"activations": ["Sigmoid", "Sigmoid"]},
])  # fmt: skip
def test_gru_variants(attrs, kind):
    inputs = cell("GRU", 6, 2, 5, 21, 1, True)
    check(
        "GRU",
        f"{kind}_gru",
        inputs,
        {"hidden_size": 21, **attrs},
        constant=[1, 2, 3],
        n_outputs=2,
        tolerance=TOLERANCE[kind],
    )


def test_clip_bounds_the_cell_as_well():
    """Before every activation, that of the state included; the formula written out."""
    x, w, r, _, _, h0, c0 = cell("LSTM", 6, 2, 5, 3, 1, True)
    limit, h, c = 0.1, h0[0], c0[0] + 1
    node = Graph("g").add(
        "LSTM", [Value(str(i)) for i in range(7)], {"hidden_size": 3, "clip": limit}
    )
    (y, *_) = run_node(node, [x, w, r, None, None, h0, c0 + 1])

    def gate(v):
        return 1 / (1 + np.exp(-np.clip(v, -limit, limit)))

    for step, got in zip(x, y, strict=True):
        i, o, f, new = np.split(step @ w[0].T + h @ r[0].T, 4, axis=1)
        c = gate(f) * c + gate(i) * np.tanh(np.clip(new, -limit, limit))
        h = gate(o) * np.tanh(np.clip(c, -limit, limit))
        np.testing.assert_allclose(got[0], h, rtol=1e-5)
