"""Sizes in layers that `lite edit --shape` follows, and those that it keeps and tells."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lite_engine import edit
from lite_engine.ir import Graph
from lite_engine.ops import infer_types
from lite_workbench.editing import Edits, write_edited

from tests.edit.test_edit import run
from tests.small_models import Builder


def _of(build) -> Graph:
    b = Builder((1, 4, 8, 6))
    graph = b.done(build(b))
    infer_types(graph)
    return graph


KEPT = {
    "slice_all": (lambda b: b.add("Slice", b.x, b.ints(0), b.ints(8), b.ints(2)), "ends at 8"),
    "slice_last": (lambda b: b.add("Slice", b.x, b.ints(5), b.ints(9), b.ints(-1)), "starts at 5"),
    "gather_last": (lambda b: b.add("Gather", b.x, b.ints(7), axis=2), "index 7 of axis 2"),
    "pool_whole": (lambda b: b.add("AveragePool", b.x, kernel_shape=[8, 6]), "8x6 window"),
    "resize": (
        lambda b: b.add("Resize", b.x, None, None, b.ints(1, 4, 12, 9), mode="nearest"),
        "resizes axis 3 to 9",
    ),
    "top": (lambda b: b.add("TopK", b.x, b.ints(6), axis=3), "the first 6"),
}

FREE = {
    "slice_first": lambda b: b.add("Slice", b.x, b.ints(0), b.ints(3), b.ints(2)),
    "slice_to_the_end": lambda b: b.add("Slice", b.x, b.ints(-1), b.ints(2**63 - 1), b.ints(2)),
    "slice_channels": lambda b: b.add("Slice", b.x, b.ints(0), b.ints(4), b.ints(1)),
    "gather_first": lambda b: b.add("Gather", b.x, b.ints(0), axis=2),
    "pool": lambda b: b.add("MaxPool", b.x, kernel_shape=[2, 2], strides=[2, 2]),
}


@pytest.mark.parametrize("name", KEPT)
def test_told(name: str) -> None:
    build, said = KEPT[name]
    made = edit.resize(_of(build), {"x": (1, 4, 16, 10)})
    assert made.refused == [] and any(said in text for text in made.kept), made.kept
    again = edit.resize(_of(build), {"x": (1, 4, 8, 6)})
    assert again.kept == []


@pytest.mark.parametrize("name", FREE)
def test_not_told(name: str) -> None:
    assert edit.resize(_of(FREE[name]), {"x": (1, 4, 16, 10)}).kept == []


@pytest.mark.parametrize("rows", [16, 5, "rows"])
def test_a_map_that_is_doubled_is_doubled_again(rows: int | str) -> None:
    """By NumPy: each row and column twice. Sizes without numbers stay, and are told."""
    graph = _of(
        lambda b: b.add(
            "Resize", b.x, None, None, b.ints(1, 4, 16, 12), mode="nearest",
            coordinate_transformation_mode="asymmetric", nearest_mode="floor",
        )
    )  # fmt: skip
    made = edit.resize(graph, {"x": (1, 4, rows, 7)})
    assert made.refused == []
    if isinstance(rows, str):
        assert made.adapted == [] and len(made.kept) == 2
    else:
        assert len(made.adapted) == 1 and made.kept == []
        x = np.random.default_rng(1).random((1, 4, rows, 7), np.float32)
        (y,) = run(made.graph, {"x": x}).values()
        np.testing.assert_array_equal(y, x.repeat(2, 2).repeat(2, 3))


def test_the_command_says_which_layers(tmp_path: Path) -> None:
    build, said = KEPT["gather_last"]
    made = write_edited(_of(build), tmp_path / "m.lite", Edits(shapes={"x": (1, 4, 16, 10)}))
    assert any("Gather" in text and said in text for text in made.done)


def test_half_of_a_map_is_told_where_it_is_the_whole_now() -> None:
    graph = _of(lambda b: b.add("Resize", b.x, None, None, b.ints(1, 4, 4, 3), mode="nearest"))
    made = edit.resize(graph, {"x": (1, 4, 4, 3)})
    assert made.adapted == [] and len(made.kept) == 2
