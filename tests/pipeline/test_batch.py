"""Crops go through a model in batches, alike in shape; the answers are those of one by one."""

from __future__ import annotations

import json
import subprocess

import numpy as np
import pytest
from lite_engine import optimize
from lite_engine._native import runner_path
from lite_engine.errors import UsageError
from lite_engine.pipeline import Pipeline
from lite_engine.pipeline.native import NativePipeline

from tests.small_models import classifier

from .pipes import document, model, png

pytestmark = pytest.mark.cpu
#: x0, y0, x1, y1 of five things that are found, of different shapes.
BOXES = np.array([[2, 2, 30, 12], [2, 20, 12, 60], [20, 20, 60, 32], [40, 36, 50, 46],
                  [20, 50, 62, 60]], np.float32)  # fmt: skip


def answered(batch: int) -> tuple[list[dict], list[np.ndarray]]:
    """The second model gives each picture's mean, brightest row and darkest as class scores."""
    seen: list[np.ndarray] = []

    def run(index: int, x: np.ndarray) -> list[np.ndarray]:
        if index == 0:
            scores = np.linspace(0.9, 0.8, len(BOXES), dtype=np.float32)
            rows = [[0, s, *box] for s, box in zip(scores, BOXES, strict=True)]
            return [np.array(rows, np.float32)]
        seen.append(x)
        each = x.reshape(len(x), -1)
        return [np.stack([each.mean(1), each.max(1), each.min(1)], axis=1)]

    pixels = rng_image()
    find = model("find", size=[64, 64], labels=["thing"], read={"kind": "boxes"})
    look = model("look", size=[8, 16], input={"dtype": "f32", "batch": batch}, read={"kind": "top"})
    stages = [{"model": "find"}, {"crop": {}}, {"model": "look"}]
    native = NativePipeline(document([find, look], stages), run)
    native.run(png(pixels))
    return json.loads(native.answer(times=False))["answers"]["find"]["items"], seen


def rng_image() -> np.ndarray:
    return np.random.default_rng(4).integers(0, 256, (64, 64, 3), np.uint8)


@pytest.mark.parametrize("batch", [2, 4, 8])
def test_batches_answer_as_one_by_one(batch: int) -> None:
    (want, alone), (got, seen) = answered(1), answered(batch)
    assert got == want and len(want) == len(BOXES)
    assert [x.shape[0] for x in alone] == [1] * len(BOXES)
    assert [x.shape[0] for x in seen] == [batch] * -(-len(BOXES) // batch)
    # sorted by width over height; what is left of the last batch is zero
    wide = np.argsort((BOXES[:, 2] - BOXES[:, 0]) / (BOXES[:, 3] - BOXES[:, 1]))
    every = np.concatenate(seen)
    np.testing.assert_array_equal(every[: len(BOXES)], np.concatenate(alone)[wide])
    assert not every[len(BOXES) :].any()


def test_a_model_with_an_open_batch(photo, tmp_path) -> None:
    """Python and lite_run, of a model that takes four at once."""
    found = []
    for batch in (1, 4):
        made = optimize(classifier("n"), targets=["x86", "arm"])
        pipeline = Pipeline([{"model": made, "name": "m", "batch": batch}], "batch")
        assert pipeline.parts[0].input_dims[0] == batch
        file = pipeline.save(tmp_path / f"{batch}.lite", ["x86", "arm"])
        done = subprocess.run([str(runner_path()), str(file), "--image", str(photo)],
                              capture_output=True, text=True, check=True)  # fmt: skip
        found += [pipeline.run(photo), Pipeline.open(file).run(photo), json.loads(done.stdout)]
    items = [made["answers"]["m"]["items"] for made in found]
    for one in items[1:]:
        assert [i["label"] for i in one] == [i["label"] for i in items[0]]
        scores = [i["score"] for i in items[0]]
        assert [i["score"] for i in one] == pytest.approx(scores, rel=1e-4)


def test_a_batch_that_does_not_fit() -> None:
    with pytest.raises(UsageError, match="its batch is 1, not 4"):
        Pipeline([{"model": optimize(classifier()), "name": "m", "batch": 4}], "m")
    with pytest.raises(UsageError, match="between 1 and 256, got 0"):
        Pipeline([{"model": optimize(classifier("n")), "name": "m", "batch": 0}], "m")
    wrong = NativePipeline(
        document([model("m", input={"dtype": "f32", "batch": 2})]),
        lambda *_: [np.zeros((1, 3), np.float32)],
    )
    with pytest.raises(UsageError, match="output 0 has no batch of 2"):
        wrong.run(png(rng_image()))
