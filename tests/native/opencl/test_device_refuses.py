"""A kernel that a device refuses: its layers are planned for the device's CPU, with the reason."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.devices import open_address
from lite_engine.runtime import host_target

from tests.native.opencl.running import launches, network
from tests.small_models import image

pytestmark = [pytest.mark.opencl, pytest.mark.cpu]


def test_its_layers_go_to_the_cpu(failing_driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = optimize(network(), targets=[host_target(), "opencl"])
    here = Predictor(model, "opencl")
    by_layer = launches(here.plan())
    last = max(n for n, rows in by_layer.items() if n.startswith("GlobalAveragePool"))
    monkeypatch.setenv("LITE_OPENCL_LIBRARY", failing_driver)
    monkeypatch.setenv("KERNEL_FAILS", by_layer[last][0].kernel)
    there = Predictor(model, "opencl", device=open_address("local"))
    feeds = image(model.graph)
    (got,), (want,) = there.run(feeds).values(), here.run(feeds).values()
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    assert "CL_OUT_OF_RESOURCES" in there.refused[last] and last in there.explain()
    assert {s.name: s.backend for s in there.plan().steps}[last] == "cpu"
    assert there.shares()["opencl"].layers >= 3
