"""A loop that pastes masks, whatever its operators, becomes PasteMasks; others stay loops."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.runtime.choice import host_target

onnx = pytest.importorskip("onnx", reason="pip install onnx")
onnxruntime = pytest.importorskip("onnxruntime", reason="pip install onnxruntime")

WIDTH, HEIGHT = 17, 13


def model(path: Path, mode: str = "half_pixel", counted: str = "boxes") -> Path:
    """masks (5,1,6,6) and boxes (5,4) → the masks in images of 17x13. Not torchvision's way to
    write it: sizes are pairs, and one Pad brings a mask to its place."""
    text = f"""<ir_version: 9, opset_import: ["" : 18]>
g (float[5,1,6,6] masks, int64[5,4] boxes, int64[3] three) => (float[n,{HEIGHT},{WIDTH}] y) {{
    nought = Constant<value_int = 0>()
    zero = Constant<value_ints = [0]>()
    one = Constant<value_int = 1>()
    two = Constant<value_ints = [2]>()
    four = Constant<value_ints = [4]>()
    turned = Constant<value_ints = [1, 0]>()
    ones = Constant<value_ints = [1, 1]>()
    none = Constant<value_ints = [0, 0]>()
    axes = Constant<value_ints = [2, 3]>()
    size = Constant<value_ints = [{WIDTH}, {HEIGHT}]>()
    shape = Shape({counted})
    count = Gather(shape, nought)
    going = Constant<value = bool {{1}}>()
    blank = Constant<value_ints = [0, {HEIGHT}, {WIDTH}]>()
    start = ConstantOfShape(blank)
    y = Loop(count, going, start) <body = step (int64 i, bool c, float[r,h,w] before)
        => (bool again, float[r2,h2,w2] after) {{
        again = Identity(c)
        mask = Gather(masks, i)
        image = Unsqueeze(mask, zero)
        box = Gather(boxes, i)
        low = Slice(box, zero, two)
        last = Slice(box, two, four)
        high = Add(last, one)
        span = Sub(high, low)
        long = Max(span, one)
        hw = Gather(long, turned)
        sizes = Concat<axis = 0>(ones, hw)
        large = Resize<mode = "linear", coordinate_transformation_mode = "{mode}">(
            image, , , sizes
        )
        inside = Min(high, size)
        first = Max(low, nought)
        lost = Sub(first, low)
        from = Gather(lost, turned)
        kept = Sub(inside, low)
        to = Gather(kept, turned)
        part = Slice(large, from, to, axes)
        rest = Sub(size, inside)
        head = Gather(first, turned)
        tail = Gather(rest, turned)
        pads = Concat<axis = 0>(none, head, none, tail)
        whole = Pad(part, pads)
        plane = Squeeze(whole, zero)
        after = Concat<axis = 0>(before, plane)
    }}>
}}"""
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def feeds() -> dict[str, np.ndarray]:
    boxes = [[2, 3, 9, 8], [-4, -2, 5, 20], [10, 5, 30, 6], [0, 0, 16, 12], [7, 7, 7, 7]]
    masks = np.random.default_rng(0).uniform(0, 1, (5, 1, 6, 6)).astype(np.float32)
    return {"masks": masks, "boxes": np.array(boxes), "three": np.zeros(3, np.int64)}


@pytest.mark.cpu
@pytest.mark.parametrize("counted", ["boxes", "masks"])
def test_a_loop_that_pastes(tmp_path: Path, counted: str) -> None:
    path = model(tmp_path / "m.onnx", counted=counted)
    made = optimize(path)
    assert [n.op for n in made.graph.nodes] == ["PasteMasks"]
    (wanted,) = onnxruntime.InferenceSession(str(path)).run(None, feeds())
    predictor = Predictor(made, host_target())
    assert {s.backend for s in predictor.plan().steps} == {"cpu"}
    np.testing.assert_allclose(predictor.run(feeds())["y"], wanted, atol=1e-6)


@pytest.mark.parametrize("other", [{"mode": "asymmetric"}, {"counted": "three"}])
def test_a_loop_that_does_something_else(tmp_path: Path, other: dict[str, str]) -> None:
    """Other weights, or another number of steps."""
    graph = optimize(model(tmp_path / "m.onnx", **other)).graph
    assert "Loop" in {n.op for n in graph.nodes}
    assert "PasteMasks" not in {n.op for n in graph.nodes}


@pytest.mark.cpu
def test_boxes_of_any_numbers(tmp_path: Path) -> None:
    """As those of detections that are not there: nothing is read or written outside."""
    made = optimize(model(tmp_path / "m.onnx"))
    far = np.iinfo(np.int64)
    boxes = np.array([[far.min] * 4, [far.max] * 4, [far.min, far.min, far.max, far.max],
                      [far.max, far.max, far.min, far.min], [3, 3, -9, -9]])  # fmt: skip
    found = Predictor(made, host_target()).run(feeds() | {"boxes": boxes})["y"]
    assert np.isfinite(found).all() and not found[[0, 1, 3, 4]].any()
