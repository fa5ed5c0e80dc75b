"""Sizes that are symbols: what is worked out of them is what the numbers would give."""

from __future__ import annotations

import shlex

import numpy as np
import pytest
from lite_engine.errors import ShapeError
from lite_engine.ir import DType, TypeInfo, from_text
from lite_engine.ops import get_op, specialise
from lite_engine.ops._helpers import (
    broadcast_dims,
    symbol_limited,
    symbol_product,
    symbol_quotient,
    window_output,
)
from lite_engine.runtime.hints import open_sizes

WINDOWS = [(3, 1, 2, 1), (3, 2, 2, 1), (1, 1, 0, 1), (5, 3, 1, 1), (3, 1, 4, 2), (2, 2, 0, 1)]


@pytest.mark.parametrize("name", ["H", "unk__617", "p2o.Dynamic.0", "height-1", "(a+1)//2"])
def test_windows_behind_each_other(name: str) -> None:
    """(kernel, stride, pads, dilation): the symbol, with a number for the name, is that number."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        chain = [WINDOWS[i] for i in rng.integers(0, len(WINDOWS), int(rng.integers(1, 6)))]
        size, symbol = 977, name
        for kernel, stride, pads, dilation in chain:
            size = window_output(size, kernel, stride, pads, dilation)
            symbol = window_output(symbol, kernel, stride, pads, dilation)
        values = {"H": 977, "unk__617": 977, "p2o.Dynamic.0": 977, "height": 978, "a": 1953}
        base = next(b for b in values if b in symbol)
        assert eval(symbol.replace(base, str(values[base]))) == size


def test_one_form() -> None:
    assert window_output("H", 3, 1, 2, 1) == "H"
    assert window_output("H", 3, 2, 2, 1) == window_output("H", 1, 2, 0, 1) == "(H+1)//2"
    assert window_output("H", 3, 2, 2, 1, ceil=True) is None  # the last window may be left out
    assert window_output(None, 3, 2, 2, 1) is None


def test_digits_do_not_pile_up() -> None:
    assert symbol_quotient("H//1099511627776", 0, 2) is None


def test_multiples() -> None:
    """Twice a size halves to it, and windows of stride 1 leave it."""
    twice = symbol_product("(H+1)//2", 2)
    assert twice == "2*((H+1)//2)"
    assert symbol_product(twice, 3) == "6*((H+1)//2)"
    assert window_output(twice, 3, 1, 2, 1) == twice
    assert window_output(twice, 3, 2, 2, 1) == "(H+1)//2"
    assert window_output(twice, 3, 3, 2, 1) is None
    for size in range(1, 40):
        half = (size + 1) // 2
        assert (2 * half + 2 - 3) // 2 + 1 == half
    assert symbol_product("H", 1) == "H" and symbol_product("2*(H)", 1 << 50) is None


@pytest.mark.parametrize(
    ("scale", "wanted"), [(2.0, "2*(H)"), (1.0, "H"), (0.5, "H//2"), (0.25, "H//4"), (1.5, None)]
)
def test_resized(scale: float, wanted: str | None) -> None:
    scales = np.array([1, 1, scale, scale], np.float32)
    x, known = TypeInfo(DType.F32, (1, 3, "H", 8)), TypeInfo(DType.F32, (4,), scales)
    y = get_op("Resize")._infer(x, None, known, None, **get_op("Resize").attrs)
    assert y.shape == (1, 3, wanted, int(8 * scale))
    for size in range(1, 50):
        if wanted:
            assert eval(wanted.replace("H", str(size))) == int(np.floor(size * scale))


def test_transposed_convolution() -> None:
    """Twice the size where kernel, stride and pads make exactly that."""
    op = get_op("ConvTranspose")
    x = TypeInfo(DType.F32, (1, 8, "H", 5))
    for k, pads, wanted in ((2, [0] * 4, "2*(H)"), (4, [1] * 4, "2*(H)"), (3, [1] * 4, None)):
        w = TypeInfo(DType.F32, (8, 4, k, k))
        y = op._infer(x, w, None, **{**op.attrs, "strides": [2, 2], "pads": pads})
        assert y.shape == (1, 4, wanted, 8 + k - sum(pads[:2]))


def test_joined() -> None:
    """Beside the joined axis sizes are the same: what one of them knows holds for all."""
    xs = [TypeInfo(DType.F32, (1, c, d)) for c, d in ((2, None), (3, "H"), (1, None))]
    assert get_op("Concat")._infer(*xs, axis=1).shape == (1, 6, "H")


def test_what_is_open_is_asked_for_in_the_inputs_own_rank() -> None:
    graph = from_text('graph "g" {\ninput x: f32[batch,30]\noutput x\n}')
    with pytest.raises(ShapeError, match=r"--shape x:\?x30 \(a number for each \?\)"):
        specialise(graph)


def test_a_name_that_a_shell_would_split_is_quoted() -> None:
    """In what asks for sizes, and in the hint of `lite info`: a shell reads one word."""
    graph = from_text('graph "g" {\ninput x: f32[batch,30]\noutput x\n}')
    graph.inputs[0].name = "it's a/b"
    with pytest.raises(ShapeError) as told:
        specialise(graph)
    for said in (told.value.fix, open_sizes({"it's a/b": (1, 30)}, fits=True)):
        words = shlex.split(said[said.index("--shape") :])
        assert words[1] in ("it's a/b:?x30", "it's a/b:1x30")


@pytest.mark.parametrize(
    ("dims", "target", "wanted"),
    [
        (("N", 64, 7, 7), [0, -1], 3136),
        ((197, "N", 768), [-1, 768], "197*(N)"),
        ((197, "12*(N)", 64), [-1, 768], "197*(N)"),
        (("197*(N)", 768), [197, -1, 768], "N"),
        (("N", 14, 14), [0, -1, 7, 7], 4),
        (("N", 8), [-1, 16], "N//2"),
        (("N", 6), [-1, 4], None),
        (("N", "T", 64), [-1, 64], None),
        (("N", None, 64), [0, -1, 16], None),
        ((None, 64), [0, -1], 64),
    ],
)
def test_what_a_reshape_leaves(dims: tuple, target: list[int], wanted: int | str | None) -> None:
    """−1 beside open sizes is what it is for the numbers that fill it."""
    shape = TypeInfo(DType.I64, (len(target),), np.array(target, np.int64))
    y = get_op("Reshape")._infer(TypeInfo(DType.F32, dims), shape, allowzero=0)
    found = y.shape[target.index(-1)]
    assert found == wanted
    for n in (4, 12):
        if wanted is not None and None not in dims:
            numbers = [eval(str(d), {"N": n}) for d in dims]
            x = np.empty(numbers, np.bool_)
            filled = [numbers[i] if d == 0 else d for i, d in enumerate(target)]
            assert x.reshape(filled).shape[target.index(-1)] == eval(str(found), {"N": n})


def test_a_slice_to_the_last() -> None:
    """`x[:, 0:]` keeps an open size, `x[:, 1:]` does not."""
    for start, wanted in ((0, "T"), (1, None)):
        ends = [np.array([v], np.int64) for v in (start, (1 << 63) - 1, 1, 1)]
        given = [TypeInfo(DType.I64, (1,), v) for v in ends]
        assert get_op("Slice")._infer(TypeInfo(DType.F32, (2, "T")), *given).shape == (2, wanted)


def test_the_smaller_of_a_symbol_and_a_number() -> None:
    """n positions of a table of 64 beside n tokens: they fit as n, or the model does not run."""
    few = symbol_limited("n", 64)
    assert few == "n≤64" and symbol_limited("n", 1) is None
    assert broadcast_dims("n", few) == broadcast_dims(few, "n") == "n"
    assert broadcast_dims(few, symbol_limited("n", 32)) is None
    assert broadcast_dims(few, "m") is None and broadcast_dims(few, 1) == few
    # n of 64 and one more is not n + 1, and no other size follows from it
    assert symbol_quotient(few, 1, 1) is symbol_product(few, 2) is None
    assert broadcast_dims("n≤64+1", "n") is None and symbol_limited(few, 8) is None
