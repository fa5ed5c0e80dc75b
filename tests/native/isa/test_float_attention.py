"""Float attention on every instruction set, with products of float32 and of bf16."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.backends.cpu import native
from lite_engine.ir import DType, Node, Value
from lite_engine.ir.bfloat16 import bf16_to_f32
from lite_engine.ops import get_op

from ..tiny import as_bf16, run_step
from .cases_f32 import short

pytestmark = pytest.mark.cpu

#: Of the largest value. Weights that are rounded to bf16 are off by at most 2^-9 of themselves,
#: and so is what they make of the values.
TOLERANCE = {"f32_attention": 1e-5, "bf16_attention": 2**-9 + 1e-5}
#: Rows, keys, numbers of a key and of a value, attributes.
CALLS = [
    *((rows, 22, 6, 13, {}) for rows in (*range(1, 16), 28, 29, 30)),
    *((9, keys, 7, 5, {}) for keys in (1, 2, 15, 16, 17, 31, 33, 64, 65)),
    *(
        (17, 40, size, value, {})
        for size, value in ((1, 1), (16, 16), (31, 33), (33, 32), (64, 48))
    ),
    (50, 50, 24, 24, {"is_causal": 1}),
    (20, 35, 24, 24, {"softcap": 2.0}),
    (16, 4999, 40, 33, {}),  # keys and values of some blocks
]


def _called(q, k, v, mask, attrs):
    given = [q, k, v, mask]
    values = [None if x is None else Value("x", DType.of(x), x.shape) for x in given]
    exact = [None if x is None or x.dtype == bool else x.astype(np.float64) for x in given]
    exact[3] = mask
    return get_op("Attention").run(Node("Attention", values, [Value("y")], attrs), exact)[0]


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("kernel", TOLERANCE)
def test_attention(kernel, isa):
    rng = np.random.default_rng(3)
    for i, (rows, keys, size, value, attrs) in enumerate(CALLS):
        shapes = (2, 3, rows, size), (2, 3, keys, size), (2, 3, keys, value)
        q, k, v = (short(rng.standard_normal(s, np.float32)) for s in shapes)
        mask = None
        if i % 3 == 1:
            mask = rng.random((rows, keys)) < 0.7
            mask[:, 0] = True  # every row sees a key
        elif i % 3 == 2:
            mask = rng.standard_normal((rows, keys), np.float32)
        want = _called(q, k, v, mask, attrs)
        inputs = [q, k, v] if mask is None else [q, k, v, mask]
        for threads in (1, 3):
            (got,) = run_step(
                "Attention", kernel, inputs, [np.full(want.shape, np.nan, np.float32)], attrs,
                constant=(), threads=threads, max_isa=isa,
            )  # fmt: skip
            error = np.abs(got - want).max() / np.abs(v).max()
            assert error <= TOLERANCE[kernel], (rows, keys, size, value, attrs, error)


#: What exporters add to hide a key.
HIDE = {"-inf": -np.inf, "lowest": np.finfo(np.float32).min}


def _hiding(rng: np.random.Generator, rows: int, keys: int) -> dict[str, np.ndarray]:
    """Which keys are hidden."""
    row, key = np.arange(rows)[:, None], np.arange(keys)
    return {
        "later": key > row,
        "all but some": key % 37 != row % 5,
        "the first rows see nothing": (row < 4) | (key > row),
        "the last keys": np.broadcast_to(key >= keys // 3, (rows, keys)),
        "a window": (key > row) | (key < row - 3),
        "the first keys": np.broadcast_to(key < keys - 2, (rows, keys)),
        "any": rng.random((rows, keys)) < 0.6,
    }


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("hide", [*HIDE, "bool"])
def test_keys_that_a_mask_hides(hide, isa):
    """Behind the last one that a tile of rows sees nothing is computed; the answer is the same."""
    rng = np.random.default_rng(8)
    for rows, keys in ((29, 29), (45, 1200), (13, 64), (2, 70)):
        shapes = (1, 2, rows, 200), (1, 2, keys, 200), (1, 2, keys, 130)
        q, k, v = (short(rng.standard_normal(s, np.float32)) for s in shapes)
        bias = rng.standard_normal((rows, keys), np.float32)
        for name, hidden in _hiding(rng, rows, keys).items():
            mask = ~hidden if hide == "bool" else np.where(hidden, np.float32(HIDE[hide]), bias)
            want = _called(q, k, v, mask, {})
            for kernel, limit in TOLERANCE.items():
                (got,) = run_step(
                    "Attention", kernel, [q, k, v, mask], [np.full(want.shape, np.nan, np.float32)],
                    {}, constant=(), threads=2, max_isa=isa,
                )  # fmt: skip
                error = np.abs(got - want).max() / np.abs(v).max()
                assert error <= limit, (rows, keys, name, kernel, error)


@pytest.mark.parametrize("isa", native.isas())
def test_attention_of_shorts(isa):
    """Each of q, k, v and y in memory in bf16, alone and all together."""
    rng = np.random.default_rng(4)
    for i, (rows, keys, size, value, attrs) in enumerate(CALLS[::2]):
        # As models have it: rows of all heads side by side.
        shapes = (2, rows, 3 * size), (2, keys, 3 * size), (2, keys, 3 * value)
        inputs = [short(rng.standard_normal(s, np.float32)) for s in shapes]
        attrs = {**attrs, "q_num_heads": 3, "kv_num_heads": 3}
        want = _called(*inputs, None, attrs)
        for which in ({0, 1, 2, 3}, {i % 4}):
            y = np.full(want.shape, np.nan, np.float32)
            (got,) = run_step(
                "Attention", "bf16_attention",
                [as_bf16(x) if n in which else x for n, x in enumerate(inputs)],
                [as_bf16(y) if 3 in which else y], attrs,
                constant=(), threads=1 + i % 3, max_isa=isa,
            )  # fmt: skip
            got = bf16_to_f32(got) if 3 in which else got
            error = np.abs(got - want).max() / np.abs(inputs[2]).max()
            limit = TOLERANCE["bf16_attention"] + 2**-9 * (3 in which)
            assert error <= limit, (rows, keys, size, value, which, error)


@pytest.mark.parametrize("isa", native.isas())
def test_a_mask_of_shorts(isa):
    rng = np.random.default_rng(5)
    q, k, v, mask = (
        short(rng.standard_normal(s, np.float32))
        for s in ((1, 2, 9, 8), (1, 2, 21, 8), (1, 2, 21, 8), (9, 21))
    )
    want = _called(q, k, v, mask, {})
    y = np.full(want.shape, np.nan, np.float32)
    given = [as_bf16(x) for x in (q, k, v, mask)]
    (got,) = run_step("Attention", "bf16_attention", given, [y], {}, constant=(), max_isa=isa)
    assert np.abs(got - want).max() <= TOLERANCE["bf16_attention"] * np.abs(v).max()
