"""A fault that was planted at random in a real model on OpenCL is what the screen names, with an
empty cache of our own and with a full one; its successors are not blamed."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import lite_workbench as lw
import pytest

from tests.workbench.sessions import click, settle

pytestmark = [pytest.mark.hours, pytest.mark.models, pytest.mark.opencl, pytest.mark.cpu]

MODELS = Path(os.environ.get("LITE_TEST_MODELS", "."))
NAMES = ("ultraface_rfb320/version-RFB-320.onnx", "lprnet_plate_ocr/DERIVED_lprnet.onnx",
         "tflite/mobilenet_v1_0.25_224_float.tflite")  # fmt: skip
#: Each changes the values of any layer with several columns and channels.
FAULTS = ("drop_last_column", "swap_channels", "overflow_fp16")


def drawn(session: Any, seed: int) -> tuple[str, str]:
    """A convolution with several columns and channels, and what goes wrong with it."""
    rng = random.Random(seed)
    nodes = [node for node in session.model.graph.nodes if node.op == "Conv"]
    spatial = [node.name for node in nodes if min(node.outputs[0].shape[1:]) > 1]
    return rng.choice(spatial), rng.choice(FAULTS)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_layer_is_named(name: str, seed: int, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path / "cache"))
    for _ in ("cold", "warm"):
        session = lw.open(MODELS / name)
        session.convert(targets=["x86", "opencl"])
        layer, fault = drawn(session, seed)
        session.plant_fault(layer, fault)
        bench = lw.Workbench(session)
        step = bench.step("Compare")
        settle(session)
        notice = step.strip.comparison["notice"]
        assert f"goes wrong at **{layer}**:" in notice["what"], (fault, notice)
        assert session.selected == [layer], "the evidence is open"
        failing = [r["name"] for r in step.strip.comparison["layers"] if r["state"] == "failing"]
        assert failing == [layer], "those behind it only propagate the error"
        click(step.strip, "run_on_a", layer=layer)
        settle(session)
        assert "agree on all" in step.strip.comparison["notice"]["what"]
        bench.close()
