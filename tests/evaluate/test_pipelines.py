"""Pipelines end to end: what the whole says is judged as what a model says."""

from __future__ import annotations

import json
from pathlib import Path

import lite_workbench as lw
import numpy as np
import pytest
from lite_engine import optimize
from lite_engine.errors import LiteError, UsageError
from lite_engine.model_file import open_model
from lite_engine.pipeline import Pipeline, is_pipeline
from lite_engine.runtime import Predictor, host_target
from lite_workbench.cli import main
from lite_workbench.evaluate import PipelineSide, Side, evaluate, read_dataset
from PIL import Image

from tests.small_models import classifier

pytestmark = pytest.mark.cpu


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """Lines of text, one of whose labels is wrong."""
    image = Path(lw.shipped("ocr_total.png"))
    (tmp_path / image.name).write_bytes(image.read_bytes())
    Image.open(image).resize((90, 20)).save(tmp_path / "small.png")
    (tmp_path / "lines.tsv").write_text(
        f"file\ttext\n{image.name}\tTOTAL 128.40\n{image.name}\tTOTAL\nsmall.png\tTOTAL 128.40\n"
    )
    return tmp_path / "lines.tsv"


def test_a_pipeline_of_one_model_is_judged_as_the_model(lines: Path) -> None:
    path, data = lw.shipped("ocr.onnx"), read_dataset(lines)
    model = evaluate([Side("model", Predictor(open_model(path), host_target()))], data)
    whole = evaluate([PipelineSide("whole", Pipeline.open(path), host_target())], data)
    assert [m.value for m in whole.sides[0].metrics] == [m.value for m in model.sides[0].metrics]
    assert [m.name for m in whole.sides[0].metrics] == ["exact match", "CER"]
    said = [[(r.name, r.label, *(s.prediction for s in r.sides.values())) for r in e.rows]
            for e in (model, whole)]  # fmt: skip
    assert said[0] == said[1] and whole.sides[0].backend == host_target()


@pytest.mark.models
def test_a_detector_has_the_same_precision_as_a_pipeline(models_dir: Path, tmp_path: Path) -> None:
    from lite_workbench.evaluate.dataset import Box, Dataset, Sample

    labels = (models_dir / "labels/coco_90_labels.txt").read_text().splitlines()
    images = [models_dir / "images" / name for name in ("cats_and_dogs.jpg", "dog.jpg")]
    truth = [(Box(0, (20, 20, 200, 300), 6e4), Box(1, (250, 40, 220, 280), 6e4)),
             (Box(1, (100, 100, 300, 300), 9e4),)]  # fmt: skip
    samples = [Sample(p.name, p, boxes) for p, boxes in zip(images, truth, strict=True)]
    data = Dataset("pets", "detection", samples, ("cat", "dog"))
    path = models_dir / "tflite/ssd_mobilenet_v1_coco_quant.tflite"
    pipeline = Pipeline([{"model": path, "preprocess": "pm1", "labels": labels}], "ssd")
    model = open_model(path)
    model.metadata["preprocess"] = {"mean": [127.5], "std": [127.5]}
    one = evaluate([Side("model", Predictor(model, host_target()))], data, labels=labels)
    whole = evaluate([PipelineSide("whole", pipeline, host_target())], data)
    assert {m.name for m in whole.sides[0].metrics} >= {"mAP", "recall"}
    for a, b in zip(one.sides[0].metrics, whole.sides[0].metrics, strict=True):
        assert (a.name, b.value) == (b.name, pytest.approx(a.value, abs=1e-6))


class Spotter(Pipeline):
    """Finds two squares and reads in each the letter that its brightness stands for."""

    def runner_of(self, predictor):
        if predictor.model is self.parts[0].model:
            return lambda x: [np.where(x[:, :1] > 0.2, 0.9, 0.0).astype(np.float32)]
        return lambda x: [np.eye(4, dtype=np.float32)[[[0, 1 + int(x.mean() > 0.6), 0]]]]


def spotter(tmp_path: Path) -> tuple[Spotter, Path]:
    pixels = np.zeros((64, 64, 3), np.uint8)
    pixels[8:24, 8:40], pixels[36:56, 10:50] = 120, 250
    Image.fromarray(pixels).save(tmp_path / "page.png")
    from lite_engine.ir import DType, Graph, Value

    def model(name: str, size: int):
        graph = Graph(name)
        graph.inputs = [Value("x", DType.F32, (1, 3, size, size))]
        graph.outputs = [graph.add("Relu", [graph.inputs[0]]).output]
        return optimize(graph)

    read = {"kind": "regions", "unclip": 0}
    stages = [{"model": model("find", 64), "name": "find", "read": read},
              {"crop": {}},
              {"model": model("read", 16), "name": "read", "labels": ["-", "A", "B", "C"],
               "read": {"kind": "text"}}]  # fmt: skip
    return Spotter(stages, "spotter"), tmp_path / "page.png"


def test_regions_count_where_they_are_found_and_read_right(tmp_path: Path) -> None:
    pipeline, image = spotter(tmp_path)
    texts = [i["answers"]["read"]["text"] for i in pipeline.run(image)["answers"]["find"]["items"]]
    assert texts == ["A", "B"]

    def region(text: str, x: int, y: int, w: int, h: int) -> dict:
        return {"transcription": text, "points": [[x, y], [x + w, y], [x + w, y + h], [x, y + h]]}

    rows = [
        [region("A", 8, 8, 32, 16), region("B", 10, 36, 40, 20)],  # both right
        [region("A", 8, 8, 32, 16), region("C", 10, 36, 40, 20)],  # one is read wrong
        [region("A", 8, 8, 32, 16), region("###", 10, 36, 40, 20)],  # one does not count
        [region("A", 8, 8, 32, 16), region("B", 10, 36, 40, 20), region("D", 56, 0, 8, 8)],
    ]
    path = tmp_path / "pages.txt"
    path.write_text("".join(f"page.png\t{json.dumps(row)}\n" for row in rows))
    data = read_dataset(path, task="spotting")
    made = evaluate([PipelineSide("whole", pipeline)], data)
    values = {m.name: m.value for m in made.sides[0].metrics}
    right, found, there, told = 2 + 1 + 1 + 2, 2 + 2 + 1 + 2, 2 + 2 + 1 + 3, 2 + 2 + 1 + 2
    assert values == {
        "Hmean": pytest.approx(2 * right / (there + told)),
        "precision": pytest.approx(right / told), "recall": pytest.approx(right / there),
        "exact match": pytest.approx(right / found),
        "detection Hmean": pytest.approx(2 * found / (there + told)),
    }  # fmt: skip
    assert sorted(row.sides["whole"].right for row in made.rows) == [False, False, True, True]
    regions = evaluate([PipelineSide("whole", pipeline)], read_dataset(path))
    assert (
        regions.task == "regions" and regions.sides[0].metrics[0].value == values["detection Hmean"]
    )
    alone = Spotter(
        [{"model": pipeline.parts[0].model, "name": "find", "read": {"kind": "regions"}}], "alone"
    )
    with pytest.raises(LiteError, match="regions are not read"):
        evaluate([PipelineSide("alone", alone)], data)


def test_the_verb_takes_pipelines(lines: Path, capsys) -> None:
    document = lines.with_name("ocr.json")
    stages = [{"model": str(lw.shipped("ocr.onnx")), "name": "read"}]
    document.write_text(json.dumps({"stages": stages}))
    assert is_pipeline(document) and not is_pipeline(lw.shipped("ocr.onnx"))
    words = ["evaluate", str(document), "--data", str(lines)]
    assert main([*words, "--backend", f"{host_target()},reference"]) == 0
    said = capsys.readouterr().out
    assert "ocr on lines: text, 3 samples" in said and "exact match" in said
    assert "agree on 3 samples" in said
    assert main([*words, "--preprocess", "pm1"]) == 2
    assert "their own preprocessing" in capsys.readouterr().err
    assert main([*words, "--workers", "2"]) == 2
    assert "in this process" in capsys.readouterr().err


@pytest.mark.parametrize("labels", [[], [str(i) for i in range(10)]])
def test_classes_of_a_pipeline_are_counted(labels: list[str], tmp_path: Path) -> None:
    """A label beyond them would count as a wrong answer; of ten classes, five are in the top-5."""
    for name in ("3", "10"):
        (tmp_path / name).mkdir()
        Image.new("RGB", (20, 20), (9, 99, 200)).save(tmp_path / name / "a.png")
    made = Pipeline([{"model": optimize(classifier()), "name": "m", "labels": labels}], "m")
    side, data = PipelineSide("top", made), read_dataset(tmp_path)
    with pytest.raises(UsageError, match=r"label 10, but the model|no class '10'"):
        evaluate([side], data)
    found = evaluate([side], data.first(2).shifted(-1)).sides[0].metrics
    assert [m.name for m in found] == ["top-1", "top-5"]


def test_what_a_pipeline_does_not_take(lines: Path) -> None:
    side = PipelineSide("whole", Pipeline.open(lw.shipped("ocr.onnx")))
    data = read_dataset(lines)
    (lines.parent / "small.png").write_bytes(b"no image")
    made = evaluate([side], data)
    ((name, why),) = made.unreadable
    assert name == "small.png" and why.startswith(f"{lines.parent / name}: ")
    with pytest.raises(UsageError, match="no sample of 3 can be read"):
        evaluate([side], type(data)("feeds", "text", [
            type(s)(s.name, {"x": np.zeros(3)}, s.label) for s in data.samples]))  # fmt: skip
    top = PipelineSide("top", Pipeline([{"model": optimize(classifier()), "name": "m"}], "m"))
    with pytest.raises(LiteError, match="needs a line of text"):
        evaluate([top], data)
