"""Every kernel of a device checked: right, wrong, slow and broken are told apart, and kept."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from lite_engine.backends.opencl import check
from lite_engine.backends.opencl.cases import cases
from lite_engine.backends.opencl.check import KernelVerdict, check_device
from lite_engine.backends.opencl.device import Device
from lite_engine.backends.opencl.faults import Fault, planted
from lite_engine.backends.opencl.roofs import Roofs
from lite_engine.backends.opencl.steps import launches_of
from lite_engine.backends.opencl.verdicts import Failure, Verdicts
from lite_engine.backends.opencl.ways import program_key
from lite_engine.ops import all_kernels
from lite_engine.plan import make_plan

from tests.opencl.tiny import device

pytestmark = pytest.mark.opencl

#: A device so slow that nothing is slow beside it, and one so fast that everything is.
SLOW, FAST = (Roofs(rate, rate, rate, 1.0, 1 / rate) for rate in (1e-6, 1e12))


@pytest.fixture
def own(tmp_path: Path) -> Device:
    report = device().report
    verdicts = Verdicts.load(tmp_path / "verdicts.json", report.name, report.driver)
    return dataclasses.replace(device(), verdicts=verdicts)


def rows(own: Device, *kernels: str, roofs: Roofs = SLOW) -> dict[str, KernelVerdict]:
    made = check_device(own, roofs, kernels=kernels)
    return {f"{k.kernel} {k.dtype} {k.way}".strip(): k for k in made}


def test_right_kernels_pass(own: Device) -> None:
    found = rows(own, "softmax", "gemm")
    assert {"softmax f32", "softmax f16", "gemm f32", "gemm f16"} <= set(found)
    assert {k.verdict for k in found.values()} == {"ok"}
    assert found["softmax f32"].cases == 3 and found["softmax f32"].seconds > 0
    again = Verdicts.load(own.verdicts.path, own.report.name, own.report.driver)
    assert len(again.passed) >= sum(k.cases for k in found.values()) and not again.failures


@pytest.mark.parametrize("kind, verdict, reason", [
    ("build", "failed", "does not build (Softmax): "), ("launch", "failed", "does not run ("),
    ("numbers", "wrong", "gives different results than the reference ("),
])  # fmt: skip
def test_a_fault_is_found_and_kept(own: Device, kind: str, verdict: str, reason: str) -> None:
    with planted(Fault(kind, "softmax")):
        found = rows(own, "softmax", "gemm")
    bad = [k for k in found.values() if k.verdict != "ok"]
    assert {k.kernel for k in bad} == {"softmax"} and {k.verdict for k in bad} == {verdict}
    assert all(k.detail.startswith(reason) for k in bad)
    kept = json.loads(own.verdicts.path.read_text())["failures"]
    assert {(f["kernel"], f["kind"]) for f in kept} == {("softmax", kind)}


@pytest.mark.slow
def test_a_way_that_fails_leaves_the_others(own: Device) -> None:
    with planted(Fault("build", "conv2d", "Winograd")):
        found = rows(own, "conv2d")
    verdicts = {way: k.verdict for way, k in found.items() if k.kernel == "conv2d"}
    assert verdicts == {
        "conv2d f16 Winograd": "failed", "conv2d f32 Winograd": "failed",
        "conv2d f16 direct": "ok", "conv2d f32 direct": "ok",
        "conv2d f16": "ok", "conv2d f32": "ok",
    }  # fmt: skip


def test_what_is_right_again_is_used_again(own: Device) -> None:
    plan = make_plan(cases()["softmax"][0], "opencl")
    (step,) = [s for s in plan.steps if s.kernel == "softmax"]
    (launch,) = launches_of(step, plan, own.target)
    own.verdicts.add(Failure(program_key(launch), "softmax", "", "numbers", "of another day"))
    own.verdicts.add(Failure("ab", "softmax", "", "numbers", "of a kernel that is no more"))
    rows(own, "softmax")
    again = Verdicts.load(own.verdicts.path, own.report.name, own.report.driver)
    assert set(again.failures) == {"ab"}


def test_slow_is_measured_by_the_device(own: Device) -> None:
    """By what launches, bytes and operations need at its own rates."""
    found = rows(own, "softmax", roofs=FAST)
    assert {k.verdict for k in found.values()} == {"slow"}
    row = found["softmax f32"]
    assert row.seconds > check.SLOW * row.least_seconds > 0
    assert row.detail.endswith("times longer than the device allows")


def test_rates_are_measured_as_cases_are(own: Device) -> None:
    rates = check.roofs_of(own)
    assert all(value > 0 for key, value in rates.to_dict().items() if key != "f16_gflops")


def test_every_kernel_has_a_case() -> None:
    assert {kernel.name for kernel in all_kernels("opencl")} <= set(cases())


def test_memory_that_is_short_for_a_moment_is_not_kept(own: Device) -> None:
    own.verdicts.add(Failure("ab", "conv2d", "", "memory", "none left"))
    assert not own.verdicts.failures


@pytest.mark.slow
def test_every_kernel_of_this_device(own: Device) -> None:
    found = rows(own)
    bad = ("wrong", "failed")
    wrong = [f"{name}: {k.detail}" for name, k in found.items() if k.verdict in bad]
    assert {k.name for k in all_kernels("opencl")} <= {k.kernel for k in found.values()}
    assert not wrong
