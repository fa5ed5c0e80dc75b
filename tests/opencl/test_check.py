"""Every kernel of a device checked: right, wrong, slow and broken are told apart, and kept."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from pathlib import Path

import lite_engine.backends.opencl as opencl
import pytest
from lite_engine import settings
from lite_engine.backends import LayersRefused
from lite_engine.backends.opencl import check, check_process
from lite_engine.backends.opencl.cases import cases, large
from lite_engine.backends.opencl.check import KernelVerdict, check_device
from lite_engine.backends.opencl.check_process import check_apart
from lite_engine.backends.opencl.device import Device
from lite_engine.backends.opencl.faults import Fault, planted
from lite_engine.backends.opencl.roofs import Roofs
from lite_engine.backends.opencl.steps import launches_of
from lite_engine.backends.opencl.verdicts import Failure, Verdicts
from lite_engine.backends.opencl.ways import family_of, program_key
from lite_engine.errors import LiteError
from lite_engine.ir import Graph
from lite_engine.ops import all_kernels
from lite_engine.plan import make_plan
from lite_engine.runtime.execute import Execution

from tests.opencl.tiny import device
from tests.opencl.ways import every_way

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
    found = rows(own, "softmax", "batch_norm")
    # The others bring a model's inputs and outputs to the layout and to fp16, and back.
    names = ("softmax", "batch_norm", "cast", "copy_relayout")
    wanted = {(kernel, t) for kernel in names for t in ("f32", "f16")}
    assert {(k.kernel, k.dtype) for k in found.values()} == wanted
    assert {k.verdict for k in found.values()} == {"ok"}
    assert found["softmax f32"].cases == 5 and found["softmax f32"].seconds > 0
    again = Verdicts.load(own.verdicts.path, own.report.name, own.report.driver)
    assert len(again.passed) >= sum(k.cases for k in found.values()) and not again.failures


@pytest.mark.parametrize("kind, verdict, reason", [
    ("build", "failed", "does not build (Softmax): "), ("launch", "failed", "does not run ("),
    ("numbers", "wrong", "gives different results than the reference ("),
])  # fmt: skip
def test_a_fault_is_found_and_kept(own: Device, kind: str, verdict: str, reason: str) -> None:
    with planted(Fault(kind, "softmax")):
        found = rows(own, "softmax", "batch_norm")
    bad = [k for k in found.values() if k.verdict != "ok"]
    assert {k.kernel for k in bad} == {"softmax"} and {k.verdict for k in bad} == {verdict}
    assert all(k.detail.startswith(reason) for k in bad)
    kept = json.loads(own.verdicts.path.read_text())["failures"]
    assert {(f["kernel"], f["kind"]) for f in kept} == {("softmax", kind)}


def offered(own: Device, graph: Graph) -> set[Hashable]:
    """The ways that the builders have for a graph's convolution on a device."""
    plan = make_plan(graph, "opencl")
    steps = [s for s in plan.steps if s.kernel == "conv2d"]
    return {way for step in steps for way in every_way(step, plan, own.profile, family_of)}


def few(own: Device) -> tuple[list[Graph], set[Hashable]]:
    """Convolutions that offer, one after the other, all ways that any of them has."""
    graphs, ways = [], set()
    for graph in (*cases()["conv2d"], *large()["conv2d"]):
        if more := offered(own, graph) - ways:
            graphs.append(graph)
            ways |= more
    return graphs, ways


@pytest.mark.slow
def test_a_way_that_fails_leaves_the_others(own: Device, monkeypatch) -> None:
    graphs, ways = few(own)
    monkeypatch.setattr(check, "cases", lambda: {"conv2d": graphs})
    monkeypatch.setattr(check, "large", dict)
    with planted(Fault("build", "conv2d", "Winograd")):
        found = rows(own, "conv2d")
    verdicts = {way: k.verdict for way, k in found.items() if k.kernel == "conv2d"}
    assert own.profile.local_tiles or ways == {"Winograd", "bytes", "direct", "simple"}
    assert verdicts == {
        f"conv2d {dtype} {way}": "failed" if way == "Winograd" else "ok"
        for dtype in ("f16", "f32") for way in ways
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


def test_memory_that_is_short_for_a_moment_is_not_kept(own: Device) -> None:
    own.verdicts.add(Failure("ab", "conv2d", "", "memory", "none left"))
    assert not own.verdicts.failures


#: The other process with a driver that breaks when it builds that kernel's program.
BREAKS = """
import json, os, sys, time
sys.path[:] = json.loads(sys.argv.pop(1))
from lite_engine.backends.opencl import check_process, programs
get = programs.Programs.get
def broken(self, file, defines=""):
    if file == "norm":
        FAULT
    return get(self, file, defines)
programs.Programs.get = broken
check_process.main(sys.argv[1:])
"""


@pytest.fixture
def shared(own: Device, tmp_path: Path) -> Iterator[Device]:
    """A device with a cache that another process has, too."""
    own.verdicts.path = tmp_path / "opencl" / f"verdicts-{own.tuning.key}.json"
    with settings.override(LITE_CACHE_DIR=str(tmp_path)):
        yield own


def apart(own: Device, fault: str) -> dict[str, KernelVerdict]:
    code = BREAKS.replace("FAULT", fault)
    kernels = ["batch_norm", "arg"]
    _, made = check_apart(own, note=lambda *where: None, kernels=kernels, code=code)
    return {f"{k.kernel} {k.dtype}": k for k in made}


def test_another_process_finds_the_same(shared: Device) -> None:
    found, here = apart(shared, "pass"), rows(shared, "batch_norm", "arg")
    assert {(k, v.verdict, v.cases) for k, v in found.items()} == {
        (k, v.verdict, v.cases) for k, v in here.items()
    }
    assert shared.verdicts.passed and not shared.verdicts.failures


class UntilItHangs(threading.Thread):
    """In place of a timer: ends the process when the driver says that it hangs. Seconds would have
    to be more than a process needs to start on a busy machine."""

    def __init__(self, said: Path, end: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self.said, self.end, self.cancelled = said, end, threading.Event()
        self.start()

    def run(self) -> None:
        while not self.cancelled.wait(0.02):
            if self.said.exists():
                self.said.unlink()
                return self.end()

    def cancel(self) -> None:
        self.cancelled.set()


@pytest.mark.slow
@pytest.mark.parametrize("fault, said", [
    ("os.abort()", "crashed (SIGABRT)"),
    ("open('HANGS', 'w').close(); time.sleep(999)", "hung for 300 s"),
    pytest.param("os._exit(7)", "ended the process with status 7", marks=pytest.mark.hours),
])  # fmt: skip
def test_a_driver_that_crashes_costs_the_programs(
    shared: Device, tmp_path: Path, monkeypatch, fault: str, said: str
) -> None:
    hangs = tmp_path / "hangs"
    fault = fault.replace("HANGS", str(hangs))
    if "sleep" in fault:
        monkeypatch.setattr(check_process, "_started", partial(UntilItHangs, hangs))
    found = apart(shared, fault)
    broken = [k for k in found.values() if k.kernel == "batch_norm"]
    assert broken and {k.verdict for k in broken} == {"failed"}
    assert {k.detail.rpartition(": ")[2] for k in broken} == {said}
    assert found["arg f32"].verdict == found["arg f16"].verdict == "ok"
    assert {(f.kernel, f.kind) for f in shared.verdicts.failures.values()} == {
        ("batch_norm", "crash")
    }
    plan = make_plan(cases()["batch_norm"][0], "opencl")
    with pytest.MonkeyPatch.context() as patch, pytest.warns(UserWarning, match="ends the process"):
        patch.setattr(opencl, "open_device", lambda report: shared)
        with pytest.raises(LayersRefused, match="layer: batch_norm ends the process: "):
            Execution(plan, threads=1)


def test_our_own_error_is_not_the_drivers(shared: Device) -> None:
    with pytest.raises(LiteError, match="an error of its own: ZeroDivisionError"):
        apart(shared, "1 / 0")
    assert not shared.verdicts.failures


def wrong(found: dict[str, KernelVerdict]) -> list[str]:
    return [f"{n}: {k.detail}" for n, k in found.items() if k.verdict in ("wrong", "failed")]


@pytest.mark.slow
def test_some_kernels_of_this_device(own: Device) -> None:
    """Every fifteenth, in their large cases too; other tests have the small cases of all, and
    `hours` has the large ones."""
    some = sorted({k.name for k in all_kernels("opencl")} - {"conv2d"})[::15]
    found = rows(own, *some)
    assert set(some) <= {k.kernel for k in found.values()}
    assert not wrong(found)


@pytest.mark.hours
def test_every_kernel_of_this_device(own: Device) -> None:
    found = rows(own)
    assert {k.name for k in all_kernels("opencl")} <= {k.kernel for k in found.values()}
    assert not wrong(found)
