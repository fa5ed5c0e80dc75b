"""With no fault there is no alarm: every network, real and of the zoo, on every pair of sides.

The normal suite takes a few small ones; `-m hours` takes all.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import onnx
import pytest
from lite_engine import Predictor, optimize
from lite_engine.compare import Side, compare
from lite_engine.compare.originals import SUFFIXES, open_original
from lite_engine.compare.outputs import output_limit
from lite_engine.errors import BackendUnavailableError, ModelFormatError
from lite_engine.model_file import Model
from lite_engine.runtime import host_target
from lite_engine.runtime.inputs import random_feeds

from tests.real_models import REAL

zoo = pytest.importorskip("benchmarks.zoo", reason="the zoo is in the source tree only")

QUICK = ("onnx/mnist_8.onnx", "tflite/vww_96_int8.tflite", "text_encoder")
#: pair → (backend, precision) of each side; "original" is the file's own framework.
PAIRS = {
    "reference": (("reference", None), (host_target(), None)),
    "opencl": ((host_target(), None), ("opencl", None)),
    "opencl fp16": ((host_target(), None), ("opencl", "fp16")),
    "bf16": ((host_target(), None), (host_target(), "bf16")),
    "arm": ((host_target(), None), ("arm", None)),
    "original": (("original", None), (host_target(), None)),
}
MARKS = {"opencl": pytest.mark.opencl, "opencl fp16": pytest.mark.opencl, "arm": pytest.mark.arm}


def cases() -> list:
    return [
        pytest.param(name, pair, id=f"{name}-{pair}",
                     marks=[*([MARKS[pair]] if pair in MARKS else []),
                            *([pytest.mark.models, pytest.mark.sweep] if name in REAL else []),
                            *([pytest.mark.hours] if name not in QUICK else [])])
        for name in (*REAL, *zoo.NAMES) for pair in PAIRS
    ]  # fmt: skip


@lru_cache(1)
def opened(path: Path, shape: tuple[int, ...] | None) -> Model:
    model = optimize(path)
    if shape:
        model = optimize(path, shapes={model.graph.inputs[0].name: shape})
    return model


@pytest.mark.cpu
@pytest.mark.parametrize(("name", "pair"), cases())
def test_no_false_alarm(name, pair, request, tmp_path) -> None:
    if name in REAL:
        path = request.getfixturevalue("models_dir") / name
    else:
        path = tmp_path / f"{name}.onnx"
        onnx.save(zoo.build(name), path)
    model = opened(path, REAL.get(name))
    sides = []
    for backend, precision in PAIRS[pair]:
        if backend == "original":
            if path.suffix not in SUFFIXES:
                pytest.skip("no original framework reads it")
            try:
                sides.append(open_original(path))
            except (BackendUnavailableError, ModelFormatError) as error:
                pytest.skip(str(error))
            continue
        sides.append(Side(Predictor(model, backend, precision=precision), f"{backend} {precision}"))
    result = compare(*sides, random_feeds(model.graph))
    assert result.finding.exit_code != 1, result.verdict  # no layer, plan or driver is blamed
    limit = output_limit(result.layers, *sides)
    for name in result.differing_outputs:  # more than errors add up to, but still of use
        assert result.outputs[name]["rel_l2"] <= limit, result.verdict
    assert not result.unmatched_outputs, result.verdict
