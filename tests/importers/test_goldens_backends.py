"""Every recorded output of every format: the graph as it was imported, on the NumPy references, and
optimised through `Predictor` on every backend.

Floats agree to 1e-4 of the output's range. Quantized TFLite gives the very integers of LiteRT's
default kernels (XNNPACK, which rounds float32(acc)·scale half to even, as we do). Its reference
kernels round twice, so the two sets of kernels differ from each other in 0-1.8 % of a classifier's
outputs by up to 11 steps after the softmax: no one engine can be bit-exact with both.

The ONNX QDQ network was recorded with onnxruntime's optimisation off, where every operator computes
in floats; integer operators (ours, and onnxruntime's own when optimising) fall on other sides of
rounding borders, and a flipped integer travels on. Largest differences over its six pictures:
onnxruntime on/off 8.5e-2, ours/off 8.5e-2, ours/on 1.3e-2. All of it is one step of the logits, and
that is held here; test_onnx_qdq.py holds every layer to the standard's arithmetic.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor, load
from lite_engine.ir import Graph

from tests.importers.golden_runs import Golden, relative_error, run_graph

MODELS = Path(os.environ.get("LITE_TEST_MODELS", ""))
Run = Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]
FLOAT_TOLERANCE = 1e-4
BACKENDS = ("import", "x86", "arm", "opencl", "reference")
#: float operators give their integers only nearly (test_tflite_goldens.py says how nearly)
INTEGERS = ("_quant.tflite", "_int8.tflite")
#: the same networks from another format, and one that takes as long as all others under emulation;
#: on x86 and the references every file runs
TWINS = (
    "ultraface_rfb320/RFB-320.caffemodel",
    "deeplab_dm05_person/",
    "ppocr_v3_det_ch/inference",
    "tf/mobilenet_v1",
    "ultraface_rfb320/version-RFB-320_without_postprocessing.tflite",
)


def _cases() -> list:
    if not MODELS.name:
        return []
    folder = MODELS / "goldens"
    names = sorted(str(p.relative_to(folder)) for p in folder.rglob("*__*.npz"))
    first = {name.partition("__")[0]: name for name in reversed(names)}.values()
    return [_case(backend, name, name in first) for backend in BACKENDS for name in names
            if backend != "import" or not name.partition("__")[0].endswith(INTEGERS)]  # fmt: skip


def _case(backend: str, name: str, first: bool) -> object:
    """Further pictures of a network run on x86: what the others add are kernels, and those do not
    depend on the picture. `-m hours` runs the others too, `--sweeps` all but x86 and the import."""
    marks = [pytest.mark.cpu] if backend != "import" else []
    if backend in ("arm", "opencl"):
        marks.append(getattr(pytest.mark, backend))
    twin = backend == "arm" and name.startswith(TWINS)
    if backend != "x86" and (twin or not first):
        marks.append(pytest.mark.hours)
    elif backend in ("arm", "opencl", "reference"):
        marks.append(pytest.mark.sweep)
    return pytest.param(backend, name, marks=marks, id=f"{backend}-{Path(name).stem}")


@lru_cache(maxsize=4)
def _graph(name: str, shape: tuple[int, ...]) -> Graph:
    path = MODELS / name
    graph = load(path)
    declared = graph.inputs[0]
    if declared.shape == shape or len(shape) == 1:
        return graph
    return load(path, shapes={declared.name: shape})


@lru_cache(maxsize=1)
def _network(backend: str, name: str, shape: tuple[int, ...]) -> Run:
    """One for all pictures of a network, which stand together."""
    graph = _graph(name, shape)
    return partial(run_graph, graph) if backend == "import" else Predictor(graph, backend).run


def _feed(golden: Golden, name: str) -> np.ndarray:
    if ".wav" in name:  # the graph decodes the file itself
        sound = Path(name).stem.partition("__")[2]
        return np.fromfile(MODELS / "audio" / sound, np.uint8)
    return golden.feed()


def _within_one_logit_step(found: np.ndarray, wanted: np.ndarray, graph: Graph) -> None:
    """Softmax of quantised logits, quantised: where no logit is more than one step off, log-odds
    move by two steps at the most (a logit up, the others down), and the output by its own step."""
    softmax = next(n for n in graph.nodes if n.op == "Softmax")
    logit_step, step = (float(v.producer.inputs[1].const)  # scales of the DequantizeLinear nodes
                        for v in (softmax.inputs[0], graph.outputs[0]))  # fmt: skip
    for shift in (-2 * logit_step, 2 * logit_step):
        odds = np.exp(shift) * wanted / np.maximum(1 - wanted, 1e-9)
        bound = odds / (1 + odds)
        assert (np.sign(shift) * (found - bound) <= step * 1.001).all()


@pytest.mark.models
@pytest.mark.parametrize(("backend", "name"), _cases())
def test_golden(backend: str, name: str) -> None:
    golden = Golden(MODELS, MODELS / "goldens" / name)
    x = _feed(golden, name)
    graph = _graph(golden.meta["model"], x.shape)
    (value,) = graph.inputs
    feeds = {value.name: x.astype(value.type.dtype.np)}
    outputs = _network(backend, golden.meta["model"], x.shape)(feeds)
    known = golden.names and set(golden.names) <= set(outputs)
    names = golden.names if known else list(outputs)
    for index, output in enumerate(names):
        found, wanted = golden.sampled(index, outputs[output]), golden.wanted(index)
        if wanted.dtype.kind in "iu":
            np.testing.assert_array_equal(found, wanted)
        elif "qdq" in name:
            assert found.argmax() == wanted.argmax()
            _within_one_logit_step(found, wanted, graph)
        else:
            assert relative_error(found, wanted) < FLOAT_TOLERANCE


@pytest.mark.models
def test_plates() -> None:
    """A recording of another form: pictures and logits."""
    data = np.load(MODELS / "goldens/lprnet_plate_ocr/lprnet_first20.npz")
    graph = load(MODELS / "lprnet_plate_ocr/DERIVED_lprnet.onnx")
    for image, logits in list(zip(data["image_u8"], data["logits"], strict=True))[:2]:
        bgr = (image[..., ::-1].astype(np.float32) - 127.5) * np.float32(0.0078125)
        x = np.ascontiguousarray(bgr.transpose(2, 0, 1)[None])
        (y,) = run_graph(graph, {graph.inputs[0].name: x}).values()
        assert np.abs(y[0] - logits).max() <= 1e-4 * np.ptp(logits)
