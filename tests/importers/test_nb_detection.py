"""Caffe's DetectionOutput as box_coder and multiclass_nms3 of Paddle-Lite: read back, and run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lite_engine.errors import UnsupportedOperatorError
from lite_engine.importers import load
from lite_engine.importers.naive_buffer.container import read_nb
from lite_engine.ir import DType, Graph, Value
from lite_engine.model_file.naive_buffer import write_nb
from lite_engine.ops import infer_types

from tests.importers import real_paddle_lite
from tests.importers.golden_runs import run_graph

PRIORS, CLASSES = 30, 4


def detector(code: int, encoded: bool, threshold: float = 0.25, images: int = 1) -> Graph:
    rng = np.random.default_rng(code)
    low = rng.uniform(0, 0.7, (PRIORS, 2))
    corners = np.concatenate([low, low + rng.uniform(0.1, 0.3, (PRIORS, 2))], 1)
    spread = np.tile([0.1, 0.1, 0.2, 0.2], PRIORS)
    priors = np.stack([corners.ravel(), spread])[None].astype(np.float32)
    graph = Graph("g", [Value("moves", DType.F32, (images, PRIORS * 4)),
                        Value("scores", DType.F32, (images, PRIORS * CLASSES))])  # fmt: skip
    attrs = {"num_classes": CLASSES, "share_location": True, "background_label": 0,
             "code_type": code, "variance_encoded": encoded, "nms_threshold": 0.4, "nms_top_k": 9,
             "keep_top_k": 100, "confidence_threshold": threshold}  # fmt: skip
    inputs = [*graph.inputs, graph.constant(priors)]
    graph.outputs = [graph.add("DetectionOutput", inputs, attrs, name="found").output]
    infer_types(graph)
    return graph


def feed() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "moves": 0.2 * rng.normal(size=(1, PRIORS * 4)).astype(np.float32),
        "scores": rng.random((1, PRIORS * CLASSES)).astype(np.float32),
    }


def wanted(graph: Graph) -> np.ndarray:
    """What Caffe's operator finds, without the zeros that fill it up."""
    (rows,) = run_graph(graph, feed()).values()
    return rows[:, :, rows[0, 0, :, 1] > 0]


CASES = pytest.mark.parametrize(
    ("code", "encoded", "threshold"),
    [(1, False, 0.25), (1, True, 0.25), (2, False, 0.25), (2, True, 0.5), (3, False, 0.25),
     (3, True, 0.25), (2, False, 2.0)],
)  # fmt: skip


@CASES
def test_round_trip(code: int, encoded: bool, threshold: float, tmp_path: Path) -> None:
    graph = detector(code, encoded, threshold)
    path = write_nb(graph, tmp_path / "m.nb")
    kinds = [op.type for op in read_nb(memoryview(path.read_bytes())).blocks[0].ops]
    assert "multiclass_nms3" in kinds and ("box_coder" in kinds) == (code == 2)
    (got,) = run_graph(load(path), feed()).values()
    np.testing.assert_allclose(got, wanted(graph), atol=1e-6)
    assert (got.shape[2] > 0) == (threshold < 1)


@CASES
def test_paddle_lite_runs_it(code: int, encoded: bool, threshold: float, tmp_path: Path) -> None:
    graph = detector(code, encoded, threshold)
    (got,) = real_paddle_lite.run(
        tmp_path, write_nb(graph, tmp_path / "m.nb", targets=["x86"]), feed()
    )
    np.testing.assert_allclose(got, wanted(graph), atol=1e-6)


@pytest.mark.models
def test_paddle_lite_runs_a_face_detector(models_dir: Path, tmp_path: Path) -> None:
    graph = load(models_dir / "caffe/yufacedetectnet-open-v1.prototxt")
    (value,) = graph.inputs
    x = np.random.default_rng(0).uniform(0, 255, value.shape).astype(np.float32)
    (want,) = run_graph(graph, {value.name: x}).values()
    path = write_nb(graph, tmp_path / "m.nb", targets=["x86"])
    (got,) = real_paddle_lite.run(tmp_path, path, {value.name: x})
    assert want[0, 0, 0, 2] > 0.1
    np.testing.assert_allclose(got, want[:, :, : got.shape[2]], atol=1e-4)


def test_batches_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOperatorError, match="one image only"):
        write_nb(detector(2, False, images=2), tmp_path / "m.nb")
