"""Layouts as permutations, against NumPy's own transposes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lite_engine.ir import DType
from lite_engine.ops import get_op
from lite_engine.ops.pad_tile import pad_widths
from lite_engine.plan import PlanTensor
from lite_engine.plan import layout as lay

shapes = st.lists(st.integers(1, 4), min_size=1, max_size=5)


@st.composite
def arrays(draw):
    shape = draw(shapes)
    layout = tuple(draw(st.permutations(range(len(shape)))))
    return np.arange(np.prod(shape)).reshape(shape).astype(np.float32), layout


def stored(array: np.ndarray, layout: tuple[int, ...]) -> PlanTensor:
    dims = lay.physical_dims(array.shape, layout)
    return PlanTensor(0, "t", DType.F32, dims, layout, "arena")


@settings(deadline=None, derandomize=True)
@given(arrays())
def test_physical_and_back(case) -> None:
    array, layout = case
    tensor = stored(array, layout)
    physical = tensor.to_physical(array)
    assert tensor.shape == array.shape
    np.testing.assert_array_equal(physical, array.transpose(layout))
    np.testing.assert_array_equal(tensor.to_logical(physical), array)


@settings(deadline=None, derandomize=True)
@given(arrays(), st.data())
def test_transpose_keeps_the_bytes(case, data) -> None:
    array, layout = case
    perm = data.draw(st.permutations(range(array.ndim)))
    before = stored(array, layout).to_physical(array)
    after_layout = lay.transposed(layout, perm)
    after = stored(array.transpose(perm), after_layout).to_physical(array.transpose(perm))
    np.testing.assert_array_equal(before.ravel(), after.ravel())


@settings(deadline=None, derandomize=True)
@given(arrays(), st.data())
def test_same_bytes_is_right(case, data) -> None:
    array, layout = case
    other = tuple(data.draw(st.permutations(range(array.ndim))))
    a, b = (stored(array, x).to_physical(array).ravel() for x in (layout, other))
    if lay.same_bytes(array.shape, layout, other):
        np.testing.assert_array_equal(a, b)
    elif array.size > 1:
        assert not np.array_equal(a, b)


@pytest.mark.parametrize("axes", [[0], [1, 2], [3]])
def test_unsqueeze_and_remove(axes) -> None:
    layout = (0, 2, 3, 1)
    kept = lay.without_axes(layout, axes)
    array = np.zeros((2, 3, 4, 5))
    reduced = array.sum(axis=tuple(axes))
    assert lay.physical_dims(reduced.shape, kept) == tuple(
        array.shape[a] for a in layout if a not in axes
    )
    grown = lay.unsqueezed(kept, axes)
    assert sorted(grown) == [0, 1, 2, 3]


RESHAPES = [
    ((2, 6, 4, 5), (2, 2, 3, 4, 5)),
    ((2, 2, 3, 4, 5), (2, 6, 4, 5)),
    ((2, 6, 4, 5), (2, 6, 20)),
    ((2, 6, 4, 5), (2, 120)),
    ((2, 6, 4, 5), (240,)),
    ((1, 6, 1, 1), (1, 6)),
    ((6,), (1, 2, 3, 1)),
    ((4, 6), (3, 8)),
    ((2, 3, 1, 4), (2, 1, 3, 4)),
    ((0, 3), (3, 0)),
]


@pytest.mark.parametrize(("shape", "out"), RESHAPES, ids=str)
@pytest.mark.parametrize("last", [False, True])
def test_reshape_as_a_view(shape, out, last) -> None:
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    rank = len(shape)
    layout = (0, *range(2, rank), 1) if last and rank > 2 else tuple(range(rank))
    wanted, target = lay.reshaped(shape, out, layout)
    assert sorted(wanted) == list(range(rank)) and sorted(target) == list(range(len(out)))
    before = stored(array, wanted).to_physical(array)
    after = stored(array.reshape(out), target).to_physical(array.reshape(out))
    np.testing.assert_array_equal(before.ravel(), after.ravel())


def test_channels_last_survives_a_split_of_channels() -> None:
    assert lay.reshaped((1, 6, 4, 5), (1, 2, 3, 4, 5), (0, 2, 3, 1)) == (
        (0, 2, 3, 1),
        (0, 3, 4, 1, 2),
    )


@settings(deadline=None, derandomize=True)
@given(arrays(), st.data())
def test_pads_of_listed_axes(case, data) -> None:
    """The axes move, their pads stay theirs, by NumPy's pad before and after the transposition."""
    array, layout = case
    axes = data.draw(st.lists(st.sampled_from(range(array.ndim)), min_size=1, unique=True))
    pads = data.draw(st.lists(st.integers(0, 3), min_size=2 * len(axes), max_size=2 * len(axes)))
    attrs = lay.remap_attrs(get_op("Pad"), {"axes": axes, "pads": pads}, layout)
    wanted = np.pad(array, pad_widths(array.ndim, pads, axes)).transpose(layout)
    widths = pad_widths(array.ndim, attrs["pads"], attrs["axes"])
    np.testing.assert_array_equal(np.pad(array.transpose(layout), widths), wanted)
