"""Every recorded output of every format through `Predictor` on every backend.

Floats agree to 1e-4 of the output's range. Quantised TFLite gives the very integers of LiteRT's
default kernels (XNNPACK, which rounds float32(acc)·scale half to even, as we do). Its reference
kernels round twice, so the two sets of kernels differ from each other in 0-1.8 % of a classifier's
outputs by up to 11 steps after the softmax: no one engine can be bit-exact with both.

The ONNX QDQ network was recorded with onnxruntime's optimisation off, where every operator computes
in floats; integer operators (ours, and onnxruntime's own when optimising) round ties otherwise.
Largest differences over its six pictures: onnxruntime on/off 8.5e-2, ours/off 8.5e-2, ours/on
1.3e-2; the same class comes first in all three.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor, load
from lite_engine.ir import Graph

from tests.importers.golden_runs import Golden, relative_error

MODELS = Path(os.environ.get("LITE_TEST_MODELS", ""))
FLOAT_TOLERANCE = 1e-4
QDQ_TOLERANCE = 9e-2
#: quick enough under emulation to run always
SMALL_ON_ARM = (
    "caffe/mtcnn/det2",
    "onnx/mnist",
    "ppocr_v2_cls/model.onnx__text_cls",
    "tf/DS_CNN_S.pb__yes",
    "tflite/micro_speech",
    "tflite/mobilenet_v1_0.25_224_quant.tflite__cat",
    "tflite/vww_96",
)


def _cases() -> list:
    if not MODELS.name:
        return []
    folder = MODELS / "goldens"
    names = sorted(str(p.relative_to(folder)) for p in folder.rglob("*__*.npz"))
    return [_case(backend, name) for backend in ("x86", "arm", "opencl", "reference")
            for name in names]  # fmt: skip


def _case(backend: str, name: str) -> object:
    marks = [pytest.mark.cpu]
    if backend in ("arm", "opencl"):
        marks.append(getattr(pytest.mark, backend))
    if backend not in ("x86", "arm") or (backend == "arm" and not name.startswith(SMALL_ON_ARM)):
        marks.append(pytest.mark.slow)
    return pytest.param(backend, name, marks=marks, id=f"{backend}-{Path(name).stem}")


@lru_cache(maxsize=4)
def _graph(name: str, shape: tuple[int, ...]) -> Graph:
    path = MODELS / name
    graph = load(path)
    declared = graph.inputs[0]
    if declared.shape == shape or len(shape) == 1:
        return graph
    return load(path, shapes={declared.name: shape})


def _feed(golden: Golden, name: str) -> np.ndarray:
    if ".wav" in name:  # the graph decodes the file itself
        sound = Path(name).stem.partition("__")[2]
        return np.fromfile(MODELS / "audio" / sound, np.uint8)
    return golden.feed()


@pytest.mark.models
@pytest.mark.parametrize(("backend", "name"), _cases())
def test_golden(backend: str, name: str) -> None:
    golden = Golden(MODELS, MODELS / "goldens" / name)
    x = _feed(golden, name)
    graph = _graph(golden.meta["model"], x.shape)
    (value,) = graph.inputs
    outputs = Predictor(graph, backend).run({value.name: x.astype(value.type.dtype.np)})
    known = golden.names and set(golden.names) <= set(outputs)
    names = golden.names if known else list(outputs)
    for index, output in enumerate(names):
        found, wanted = golden.sampled(index, outputs[output]), golden.wanted(index)
        if wanted.dtype.kind in "iu":
            np.testing.assert_array_equal(found, wanted)
        elif "qdq" in name:
            assert found.argmax() == wanted.argmax()
            assert relative_error(found, wanted) < QDQ_TOLERANCE
        else:
            assert relative_error(found, wanted) < FLOAT_TOLERANCE
