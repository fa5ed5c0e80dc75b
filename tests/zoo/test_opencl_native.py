"""Every network of the zoo on OpenCL without pyopencl: the same bits, in both precisions."""

from __future__ import annotations

import onnx
import pytest
from lite_engine import Predictor, optimize, settings
from lite_engine.model_file import Model
from lite_engine.runtime.inputs import random_feeds

zoo = pytest.importorskip("benchmarks.zoo", reason="the zoo is in the source tree only")

pytestmark = [pytest.mark.opencl, pytest.mark.cpu, pytest.mark.hours]


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("name", zoo.NAMES)
def test_equal_to_pyopencl(name: str, precision: str, tmp_path) -> None:
    onnx.save(zoo.build(name), tmp_path / "model.onnx")
    model: Model = optimize(tmp_path / "model.onnx", targets=["opencl"])
    feeds = random_feeds(model.graph)
    made = {}
    for executor in ("pyopencl", "native"):
        with settings.override(LITE_OPENCL_EXECUTOR=executor):
            made[executor] = Predictor(model, "opencl", precision=precision, threads=2).run(feeds)
    for output, wanted in made["pyopencl"].items():
        assert made["native"][output].tobytes() == wanted.tobytes(), output
