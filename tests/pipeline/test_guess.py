"""Families that models look like: by their shapes, and of the real models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lite_engine import optimize
from lite_engine.ir import DType, Graph, Value
from lite_engine.model_file import open_model
from lite_engine.pipeline import FAMILIES, guess
from lite_workbench.cli import main

pytestmark = pytest.mark.cpu
INPUT = (1, 3, 320, 320)
CELLS = 40 * 40 + 20 * 20 + 10 * 10


def model(*outputs: tuple[int, ...], last: str = "Abs"):
    """A model of this image and these outputs, whatever computes them."""
    graph = Graph("shapes")
    graph.inputs = [Value("x", DType.F32, INPUT)]
    mean = graph.add("ReduceMean", [graph.inputs[0]], {"keepdims": 0}).output
    for dims in outputs:
        shape = graph.constant(np.array(dims, np.int64))
        spread = graph.add("Expand", [mean, shape]).output
        graph.outputs.append(graph.add(last, [spread]).output)
    return optimize(graph)


@pytest.mark.parametrize(
    ("shapes", "families"),
    [
        ([(1, 1000)], ["classification"]), ([(1, 10, 1, 1)], ["classification"]),
        ([(1, 4420, 2), (1, 4420, 4)], ["ultraface"]), ([(1, 3000, 4), (1, 3000, 21)], ["ssd"]),
        ([(1, 1, 100, 7)], ["ssd"]), ([(1, 3 * CELLS, 85)], ["yolo"]),
        ([(1, 84, CELLS)], ["yolo"]), ([(1, CELLS, 85)], ["yolox", "yolo"]),
        ([(1, 56, CELLS)], ["pose", "yolo"]), ([(1, CELLS + 25, 112)], ["nanodet-plus"]),
        ([(1, 255, 40, 40), (1, 255, 20, 20), (1, 255, 10, 10)], ["yolov5", "yolov3", "yolov8"]),
        ([(1, 144, 40, 40), (1, 144, 20, 20), (1, 144, 10, 10)], ["yolov5", "yolov3", "yolov8"]),
        ([(1, 65, 40, 40), (1, 65, 20, 20), (1, 65, 10, 10)], ["yolov8"]),
        ([(1, 255, 20, 20), (1, 255, 10, 10)], ["yolov3-tiny"]),
        ([(1, 3, 20, 20, 85), (1, 3, 10, 10, 85)], ["yolov3-tiny"]),
        ([(1, 21, 320, 320)], ["segmentation"]), ([(1, 7, 7, 3, 5)], []), ([(3, 3), (2,)], []),
    ],
    ids=str,
)  # fmt: skip
def test_shapes_speak_for_families(shapes, families) -> None:
    found = guess([model(*shapes)])
    assert [g.family for g in found] == families
    assert all(g.evidence and g.family in FAMILIES for g in found)


def test_several_models_are_a_reader_of_text(tmp_path, capsys) -> None:
    text_map = model((1, 1, 320, 320), last="Sigmoid")
    line, direction, boxes = model((1, 40, 97)), model((1, 2)), model((1, 100, 4), (1, 100, 3))
    for models, family in (
        ([text_map, direction, line], "ppocr"), ([text_map, line], "text"),
        ([boxes, line], "plates"),
    ):  # fmt: skip
        assert [g.family for g in guess(models)] == [family]
    assert guess([line, text_map]) == []
    paths = [str(m.save(tmp_path / f"{i}.lite")) for i, m in enumerate((text_map, line))]
    assert main(["pipeline", *paths]) == 2
    assert "pass --family text if that is right" in capsys.readouterr().err


@pytest.mark.models
@pytest.mark.parametrize(
    ("files", "family"),
    [
        (["ultraface_rfb320/version-RFB-320.onnx"], "ultraface"), (["tf/DS_CNN_S.pb"], "keywords"),
        (["tflite/ssd_mobilenet_v1_coco_quant.tflite"], "ssd"),
        (["tflite/mobilenet_v1_0.25_224_quant.tflite"], "classification"),
        (["ppocr_v3_det_ch/model.onnx", "ppocr_v2_cls/model.onnx",
          "nb/ch_ppocr_mobile_v2.0_rec_slim_opt.nb"], "ppocr"),
    ],
)  # fmt: skip
def test_real_models(models_dir: Path, files, family) -> None:
    assert guess([open_model(models_dir / name) for name in files])[0].family == family
