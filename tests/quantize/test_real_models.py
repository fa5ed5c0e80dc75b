"""Trained networks through calibration and integers, on the native runtime."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from lite_engine.importers import load
from lite_engine.ir import Graph
from lite_engine.passes import optimize_graph
from lite_engine.quantize import quantize, quantize_weights
from lite_engine.quantize.samples import feed_of
from lite_engine.runtime import Predictor
from lite_workbench.cli import main
from lite_workbench.quantizing import float_graph

from tests.pipeline.reference import regions
from tests.pipeline.reference.regions import BOX_THRESHOLD, find_regions
from tests.quantize import text_pictures

pytestmark = [pytest.mark.models, pytest.mark.cpu, pytest.mark.sweep]
MODELS = Path(os.environ.get("LITE_TEST_MODELS", "."))
LABELLED = ("bird.bmp", "burger.jpg", "cat.bmp", "grace_hopper.bmp", "hot_dog.jpg", "tabby_cat.jpg")
CHEAP_BYTES = 0.28
REGIONS = {"ch_en_num.jpg": 17, "plate_scene.jpg": 4, "burger.jpg": 1, "dog.jpg": 1, "face.jpg": 0}


class NativeRun:
    """run(graph, feeds, taps) on the native runtime. A quantised graph runs in integers; values
    that fusion took away are read from the integers behind them."""

    def __init__(self) -> None:
        self.ready: dict[int, tuple] = {}

    def __call__(self, graph: Graph, feeds, taps=()) -> dict[str, np.ndarray]:
        from lite_engine.model_file import Model

        if id(graph) not in self.ready:
            quantised = any(n.op == "DequantizeLinear" for n in graph.nodes)
            runnable = optimize_graph(graph) if quantised else graph
            values = {v.name: v for v in runnable.values() if not v.is_const}
            self.ready[id(graph)] = graph, Predictor(Model(runnable)), values
        _, predictor, values = self.ready[id(graph)]
        direct = [t for t in taps if t in values]
        hidden = {t: values[f"{t}.q"] for t in taps if t not in values and f"{t}.q" in values}
        names = dict.fromkeys([*direct, *(v.name for v in hidden.values())])
        found = predictor.run(dict(feeds), taps=list(names))
        for name, value in hidden.items():
            q = found[value.name].astype(np.float32)
            found[name] = (q - value.quant.zero_point) * value.quant.scale
        return found


def sqnr_db(want: np.ndarray, got: np.ndarray) -> float:
    noise = max(float(np.square(want - got).sum()), 1e-30)
    return 10 * np.log10(float(np.square(want).sum()) / noise)


def mobilenet() -> Graph:
    graph = load(MODELS / "onnx/DERIVED_mobilenet_v1_0.25_224_tf2onnx.onnx")
    graph.metadata["preprocess"] = {"mean": [127.5], "std": [127.5], "size": [224, 224]}
    return optimize_graph(graph)


def labeled_feeds(graph: Graph) -> list[dict[str, np.ndarray]]:
    folder = MODELS / "goldens/inputs"
    return [feed_of(graph, folder / f"{name}_224x224_RGB.png") for name in LABELLED]


def test_mobilenet_in_integers():
    graph, run = mobilenet(), NativeRun()
    result = quantize(graph, MODELS / "images/calib_kodak_small", run=run)
    output = graph.outputs[0].name
    pairs = [
        (run(graph, feed)[output], run(result.graph, feed)[output]) for feed in labeled_feeds(graph)
    ]
    assert sum(int(a.argmax() == b.argmax()) for a, b in pairs) >= 5
    assert result.rounding == "learned"
    assert np.mean([sqnr_db(a, b) for a, b in pairs]) >= 30  # 30.7; 30.3 with "sums"


def test_mobilenet_with_integer_weights(tmp_path):
    """The whole file, graph and programs for two targets included."""
    from lite_engine.model_file import Model

    graph, run = mobilenet(), NativeRun()
    small = quantize_weights(graph)
    sizes = [
        Model(g, targets=["x86", "arm"]).save(tmp_path / "m.lite").stat().st_size
        for g in (small, graph)
    ]
    assert sizes[0] <= CHEAP_BYTES * sizes[1]
    output = graph.outputs[0].name
    for feed in labeled_feeds(graph):
        assert run(graph, feed)[output].argmax() == run(small, feed)[output].argmax()


def faces(found: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Boxes with a score above 0.7 after non-maximum suppression at 0.3."""
    arrays = list(found.values())
    scores = next(a for a in arrays if a.shape[-1] == 2)[0, :, 1]
    boxes = next(a for a in arrays if a.shape[-1] == 4)[0]
    kept: list[np.ndarray] = []
    for i in np.argsort(-scores):
        if scores[i] > 0.7 and all(overlap(boxes[i], k) <= 0.3 for k in kept):
            kept.append(boxes[i])
    return kept


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    size = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0)
    both = float(size.prod())
    return both / float((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - both)


@pytest.mark.hours
def test_ultraface_finds_the_same_faces():
    graph = optimize_graph(load(MODELS / "ultraface_rfb320/version-RFB-320.onnx"))
    graph.metadata["preprocess"] = {"mean": [127], "std": [128], "size": [240, 320]}
    run = NativeRun()
    result = quantize(graph, MODELS / "images/calib_kodak_small", run=run)
    for image, count in (("face.jpg", 4), ("grace_hopper.bmp", 1)):
        feed = feed_of(graph, MODELS / "images" / image)
        names = [v.name for v in graph.outputs]
        want, got = (faces({n: run(g, feed)[n] for n in names}) for g in (graph, result.graph))
        assert len(want) == len(got) == count
        assert all(max(overlap(a, b) for b in got) > 0.8 for a in want)


@pytest.mark.hours
def test_the_text_detector_finds_the_same_regions(tmp_path, monkeypatch):
    """The command of docs/quantization.md, on pictures that calibration has not seen. What it finds
    besides is a region that the float model itself takes to be one, within 0.05 of the score asked
    for: 25 dB do not decide those."""
    text = text_pictures.draw(MODELS / "images/calib_kodak_small", tmp_path / "text")
    files = [tmp_path / f"{name}.lite" for name in ("float", "int8")]
    words = [str(MODELS / "ppocr_v3_det_ch/model.onnx"), "--shape", "x:1x3x640x640"]
    words += ["--preprocess", "imagenet", "-o"]
    mixed = ["--calibration", str(text), "--method", "mse", "--keep-float", "Conv_0..Conv_46"]
    assert main(["convert", *words, str(files[0])]) == 0
    assert main(["quantize", *words, str(files[1]), *mixed]) == 0
    predictors = [Predictor(file) for file in files]
    for image, count in REGIONS.items():
        feed = feed_of(float_graph(predictors[0].model), MODELS / "images" / image)
        maps = [p.run(feed) for p in predictors]
        want, got = (find_regions(m) or [] for m in maps)
        monkeypatch.setattr(regions, "BOX_THRESHOLD", BOX_THRESHOLD - 0.05)
        likely = find_regions(maps[0]) or []
        monkeypatch.undo()
        assert len(want) == count and all(nearest(w, got) > 0.5 for w in want), image
        assert all(nearest(g, likely) > 0.5 for g in got), image


def nearest(region: dict, others: list[dict]) -> float:
    boxes = [np.array(other["box"]) for other in others]
    return max((overlap(np.array(region["box"]), box) for box in boxes), default=0.0)


def test_plates_are_read_in_integers():
    folder = MODELS / "lprnet_plate_ocr"
    graph = optimize_graph(load(folder / "DERIVED_lprnet.onnx"))
    graph.metadata["preprocess"] = {
        "mean": [127.5], "std": [128.0], "colour": "bgr", "size": [24, 94],
    }  # fmt: skip
    files = sorted((folder / "plates").glob("*.jpg"))
    feeds, run = [feed_of(graph, f) for f in files], NativeRun()
    result = quantize(graph, feeds[:50:2], run=run)
    output = graph.outputs[0].name
    rows = (folder / "plates_labels.tsv").read_text().splitlines()[1:]
    labels = {r.split("\t")[0]: r.split("\t")[1] for r in rows}
    chars = [c for c in (folder / "chars.txt").read_text().split("\n") if c]
    right = [0, 0]
    for file, feed in zip(files, feeds):
        for i, g in enumerate((graph, result.graph)):
            right[i] += read_plate(run(g, feed)[output], chars) == labels[file.name]
    kept = sorted(result.options.scheme.keep_float)
    assert right[0] == 93 and right[1] >= 92, (right, kept, result.tried)


def read_plate(scores: np.ndarray, chars: list[str]) -> str:
    """Greedy CTC; the last class is the blank."""
    best = scores[0].argmax(axis=0)
    kept = [b for i, b in enumerate(best) if i == 0 or b != best[i - 1]]
    return "".join(chars[b] for b in kept if b != len(chars) - 1)
