"""Precisions bf16 on x86 and fp16 on AArch64: close to float32 on whole networks."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from lite_engine import Predictor, optimize
from lite_engine.devices.emulated import EmulatedDevice
from lite_engine.runtime import host_target

zoo = pytest.importorskip("benchmarks.zoo", reason="the zoo is in the source tree only")

pytestmark = pytest.mark.cpu
#: Networks that the emulator runs within a minute.
SMALL = (
    "mobilenet_v1",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "shufflenet_v2",
    "ghostnet",
    "resnet18",
    "efficientnet_b0",
    "ocr_recogniser",
    "vit_tiny",
)


def error_of(model, precision: str, backend: str, **more) -> float:
    """Norm of the outputs' difference to fp32, over that of the outputs."""
    rng = np.random.default_rng(0)
    feeds = {v.name: rng.standard_normal(v.shape).astype(np.float32) for v in model.graph.inputs}
    exact, short = (
        next(iter(Predictor(model, backend, precision=p, **more).run(feeds).values())).astype(
            np.float64
        )
        for p in ("fp32", precision)
    )
    return float(np.linalg.norm(short - exact) / np.linalg.norm(exact))


@pytest.mark.parametrize("name", ["mobilenet_v3_small", "squeezenet"])
def test_outputs_are_close(name, tmp_path):
    path = tmp_path / f"{name}.onnx"
    onnx.save(zoo.build(name), path)
    assert error_of(optimize(path), "bf16", host_target()) <= 1e-2


@pytest.mark.arm
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("squeezenet", marks=pytest.mark.sweep),
        *(pytest.param(n, marks=pytest.mark.hours) for n in SMALL),
    ],
)
def test_fp16_on_arm(name, tmp_path):
    path = tmp_path / f"{name}.onnx"
    onnx.save(zoo.build(name), path)
    model = optimize(path, targets=["arm"])
    assert 0 < error_of(model, "fp16", "arm", device=EmulatedDevice()) <= 1e-2
