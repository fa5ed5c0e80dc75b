"""Lines of text go through a model at their own width: the narrowest input that holds them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import lite_workbench as lw
import numpy as np
import pytest
from lite_engine import optimize
from lite_engine._native import runner_path
from lite_engine.errors import UsageError
from lite_engine.ir import DType, Graph, Value
from lite_engine.model_file import open_model
from lite_engine.model_file._container import read_container
from lite_engine.pipeline import Pipeline
from lite_engine.pipeline.native import NativePipeline
from lite_engine.preprocess import Preprocess

from .pipes import document, model, png

pytestmark = pytest.mark.cpu
#: x0, y0, x1, y1 of what is found: width over height is 1, 2, 8, 3 and 5.
BOXES = np.array([[2, 2, 12, 12], [2, 14, 22, 24], [0, 26, 64, 34], [4, 36, 28, 44],
                  [10, 50, 50, 58]], np.float32)  # fmt: skip
WIDTHS = [12, 24, 40]


def answered(batch: int) -> tuple[list[dict], list[np.ndarray], np.ndarray]:
    """What a model of lines that are 8 pixels high was given, and what it said: sums of pixels."""
    seen: list[np.ndarray] = []

    def run(index: int, x: np.ndarray) -> list[np.ndarray]:
        if index == 0:
            rows = [[0, 0.9 - 0.01 * i, *box] for i, box in enumerate(BOXES)]
            return [np.array(rows, np.float32)]
        seen.append(x)
        return [np.stack([x.sum((1, 2, 3)), np.zeros(len(x), np.float32)], axis=1)]

    pixels = np.random.default_rng(4).integers(0, 256, (64, 64, 3), np.uint8)
    find = model("find", size=[64, 64], labels=["thing"], read={"kind": "boxes"})
    line = model("line", size=[8, 40], input={"dtype": "f32", "batch": batch}, fit="height",
                 mean=[127.5], std=[127.5], read={"kind": "top"})  # fmt: skip
    stages = [{"model": "find"}, {"crop": {}}, {"model": "line"}]
    native = NativePipeline(document([find, {**line, "widths": WIDTHS}], stages), run)
    native.run(png(pixels))
    return json.loads(native.answer(times=False))["answers"]["find"]["items"], seen, pixels


@pytest.mark.parametrize("batch", [1, 2, 4])
def test_each_line_has_the_narrowest_input_that_holds_it(batch: int) -> None:
    items, seen, pixels = answered(batch)
    wanted = {1.0: 12, 2.0: 24, 3.0: 24, 5.0: 40, 8.0: 40}  # the last one is squeezed
    given = {}
    for box in BOXES.astype(int):
        crop = pixels[box[1] : box[3], box[0] : box[2]]
        width = wanted[crop.shape[1] / crop.shape[0]]
        how = Preprocess.parse(f"pm1,rgb,nchw,height,size=8x{width}")
        given[tuple(box)] = how.apply(crop)[0]
    rows = [row for x in seen for row in x if row.any()]
    assert len(rows) == len(BOXES) and all(len(x) == batch for x in seen)
    for row in rows:
        assert any(r.shape == row.shape and np.array_equal(r, row) for r in given.values())
    for item, row in zip(items, given.values(), strict=True):
        scores = {i["index"]: i["score"] for i in item["answers"]["line"]["items"]}
        assert scores[0] == pytest.approx(float(row.sum()), rel=1e-4, abs=1e-2)
    if batch == 4:  # those of one width share a batch
        assert sorted(x.shape[3] for x in seen) == WIDTHS


@pytest.fixture(scope="module")
def lines(tmp_path_factory) -> tuple[Pipeline, Path]:
    stages = [{"model": lw.shipped("ocr.onnx"), "name": "read", "preprocess": "pm1,height",
               "widths": [480, 160, 320, 160]}]  # fmt: skip
    pipeline = Pipeline(stages, "lines")
    folder = tmp_path_factory.mktemp("lines")
    return pipeline, pipeline.save(folder / "lines.lite", ["x86", "arm"])


def test_one_answer_of_python_and_both_runners(lines, qemu) -> None:
    pipeline, file = lines
    assert pipeline.parts[0].widths == (160, 320, 480)
    again = Pipeline.open(file)
    assert again.to_dict() == pipeline.to_dict()
    for name in ("ocr_total.png", "ocr_item.png"):
        image = lw.shipped(name)
        want = pipeline.run(image)["answers"]["read"]
        assert len(want["text"]) > 5
        assert again.run(image)["answers"]["read"]["text"] == want["text"]
        for prefix, arch in (([], None), (qemu, "aarch64")):
            words = [*prefix, str(runner_path(arch)), str(file), "--image", str(image)]
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            said = json.loads(done.stdout)["answers"]["read"]
            assert said["text"] == want["text"]
            assert said["confidence"] == pytest.approx(want["confidence"], rel=1e-3)


def test_a_further_width_costs_a_program_and_no_weights(lines, tmp_path: Path) -> None:
    _, file = lines
    (section,) = [s for tag, s in read_container(file).items() if tag.startswith("MODEL")]
    inner = read_container(file, section)
    assert {"SIZE.0", "SIZE.1", "WEIGHTS"} <= set(inner)
    for tag in ("SIZE.0", "SIZE.1"):
        part = read_container(file, inner[tag])
        assert {"NEEDS", "PROG.x86", "PROG.arm"} <= set(part) and "WEIGHTS" not in part
    single = Pipeline([{"model": lw.shipped("ocr.onnx"), "name": "read"}], "one")
    one = single.save(tmp_path / "one.lite", ["x86", "arm"]).stat().st_size
    assert file.stat().st_size < 1.15 * one


def open_model_of(shape: tuple) -> Graph:
    graph = Graph("line")
    graph.inputs = [Value("x", DType.F32, shape)]
    graph.outputs = [graph.add("Relu", [graph.inputs[0]]).output]
    return graph


def test_a_family_gives_widths_where_the_file_leaves_them_open() -> None:
    detector = optimize(open_model_of((1, 3, 64, 64)))
    for shape, widths in (((1, 3, 48, "w"), (160, 320, 640)), ((1, 3, 48, 320), ())):
        made = Pipeline.of_family("text", [detector, optimize(open_model_of(shape))])
        assert made.parts[1].widths == widths


@pytest.mark.parametrize(
    ("stage", "why"),
    [
        ({"preprocess": "unit", "widths": [8, 16]}, "need the resize mode height"),
        ({"preprocess": "unit,height", "widths": []}, "1 to 16 whole numbers"),
        ({"preprocess": "unit,height", "widths": ["8"]}, "1 to 16 whole numbers"),
        ({"preprocess": "unit,height", "widths": 8}, "1 to 16 whole numbers"),
        ({"preprocess": "unit,height", "widths": [0]}, "1 to 16 whole numbers"),
    ],
    ids=str,
)
def test_wrong_widths_are_refused(stage: dict, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        Pipeline([{"model": optimize(open_model_of((1, 3, 8, 16))), "name": "m", **stage}], "m")


def test_a_model_of_one_width_says_which_layer_has_it() -> None:
    graph = open_model_of((1, 3, 8, 16))
    flat = graph.add("Reshape", [graph.outputs[0], graph.constant([16, 24])], name="flat")
    graph.outputs = [flat.output]
    with pytest.raises(UsageError, match=r"its width cannot change: flat \(Reshape\)"):
        Pipeline([{"model": open_model(graph), "name": "m", "preprocess": "unit,height",
                   "widths": [8, 16]}], "m")  # fmt: skip


@pytest.mark.parametrize("widths", [[16, 8], [8, 8], [0], ["8"], [1 << 20]], ids=str)
def test_the_runtime_refuses_a_document_with_wrong_widths(widths: list) -> None:
    how = {**model("m", fit="height"), "widths": widths}
    with pytest.raises(UsageError, match="not widths of inputs"):
        NativePipeline(document([how]), lambda *_: ())
