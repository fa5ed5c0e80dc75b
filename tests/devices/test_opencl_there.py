"""OpenCL on a device: run, compared and profiled by the runner there."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.compare import Side, compare
from lite_engine.devices import condition, open_address, usable_opencl
from lite_engine.errors import BackendUnavailableError, TargetMismatchError
from lite_engine.profile import profile
from lite_engine.profile.roof import measured_roof
from lite_engine.runtime import host_target
from lite_workbench.cli import main

from tests.compare.kernel_faults import plant_in_plan
from tests.small_models import Builder, image
from tests.tools import arm_opencl as the_persons

pytestmark = pytest.mark.cpu
TARGETS = ["x86", "arm", "opencl"]


def network():
    """A layer that OpenCL has no kernel for between two that it has."""
    b = Builder((1, 3, 12, 12), "split")
    y = b.conv(b.x, 3, 8, 3, name="first")
    y = b.add("CumSum", y, b.graph.constant(np.array(3)), name="sums")
    return b.done(b.conv(y, 8, 8, 1, name="last"))


@pytest.fixture(scope="module")
def model():
    return optimize(network(), targets=TARGETS)


@pytest.fixture(scope="module")
def board(sshd):
    return open_address(sshd.address, sshd.config)


def sides(model, device):
    return (Side(Predictor(model, b, device=device)) for b in (device.target(), "opencl"))


@pytest.mark.opencl
@pytest.mark.ssh
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_it_runs_there(board, precision):
    """OpenCL and the CPU in one call of the runner, and what is inside can be seen."""
    model = optimize(network(), targets=TARGETS, precision={"opencl": precision})
    feeds = image(model.graph)
    there, here = Predictor(model, "opencl", device=board), Predictor(model, "opencl")
    got, want = (p.run(feeds, taps=["first"]) for p in (there, here))
    rtol = 1e-5 if precision == "fp32" else 4e-3
    for name in want:
        np.testing.assert_allclose(got[name], want[name], rtol=rtol, atol=rtol)
    assert [s.backend for s in there.plan().steps if s.name == "sums"] == ["cpu"]
    assert there.shares().keys() == {"opencl", "cpu"} and len(there.execution()._parts) == 1
    assert usable_opencl(board).name in there.explain()


@pytest.mark.opencl
@pytest.mark.ssh
def test_a_fault_is_named_from_the_boards_own_runs(model, board, monkeypatch):
    """The board's CPU against its OpenCL; nothing of the model runs here."""
    plant_in_plan(monkeypatch, "last", "forget_bias", only="opencl")
    found = compare(*sides(model, board), image(model.graph))
    assert found.shares["candidate"].keys() == {"opencl", "cpu"}
    assert [row.within for row in found.layers] == [True, True, False]
    assert found.first_divergence["name"] == "last"
    assert found.first_divergence["wrong_side"].startswith("opencl is the one")


@pytest.mark.opencl
@pytest.mark.ssh
@pytest.mark.hours
def test_profile_has_the_boards_own_roofs(model, board):
    """Time of PoCL's compiler: a roof is five small networks."""
    predictor = Predictor(model, "opencl", device=board)
    made = profile(predictor, image(model.graph), runs=7)
    assert made.device == board.name and len(made.samples_ms) == 7
    ran = {x.name: x for x in made.layers}
    assert "__opencl" in ran["first"].kernel and "__opencl" not in ran["sums"].kernel
    assert made.roofline["gflops"] > 0 and made.roofline["what"] == "opencl fp32"
    assert ran["first"].roofline_fraction is not None and ran["sums"].roofline_fraction is None
    cpu = measured_roof(Predictor(model, device=board))
    assert cpu.gflops > 0 and cpu.integer_gops > 0 and cpu.gbytes_per_s > 0


@pytest.mark.ssh
def test_a_board_without_opencl(model, sshd, monkeypatch, tmp_path, capsys):
    """What was found is told; a file that prefers OpenCL runs on the CPU there."""
    monkeypatch.setenv("LITE_OPENCL_LIBRARY", "libm.so.6")
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    board = open_address("local")
    with pytest.raises(BackendUnavailableError, match="has no usable OpenCL") as caught:
        Predictor(model, "opencl", device=board)
    assert "libm.so.6" in str(caught.value) and "lite devices test local" in str(caught.value)
    first = optimize(network(), targets=["opencl", host_target()])
    chosen = Predictor(first, device=board)
    assert chosen.backend == host_target() and "- opencl: " in chosen.explain()
    with pytest.raises(TargetMismatchError, match="--targets x86,opencl"):
        Predictor(optimize(network(), targets=["x86"]), "opencl", device=board)


@pytest.mark.arm_opencl
@pytest.mark.sweep
def test_the_emulated_device_compares_arm_and_opencl(model, monkeypatch, tmp_path, capsys):
    """The question of the whole project, asked of one device: ARM is right, is OpenCL?"""
    (tmp_path / "arm-opencl").symlink_to(the_persons())
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path))
    file = str(model.save(tmp_path / "m.lite"))
    command = ["compare", file, "--device", "emulated", "--backends", "arm,opencl"]
    assert main(command) == 0
    assert "agree on all" in capsys.readouterr().out
    plant_in_plan(monkeypatch, "last", "swap_channels", only="opencl")
    assert main(command) == 1
    assert "last" in capsys.readouterr().out.splitlines()[-1]


def test_a_hot_device_is_waited_for(monkeypatch):
    monkeypatch.setattr(condition, "COOLING_STEP_S", 0)
    told = iter([{"temperature_millicelsius": t} for t in (85_000, 81_000, 70_000, 60_000)])
    assert condition.cooled(lambda: next(told)) == {"temperature_millicelsius": 70_000}
    monkeypatch.setattr(condition, "COOLING_S", 0)
    hot = condition.cooled(lambda: {"temperature_millicelsius": 90_000})
    assert "throttling likely: 90 °C" in condition.warnings({}, hot)[0]
