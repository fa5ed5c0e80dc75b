"""Where a device shares the host's memory the runner copies nothing at borders; and what it does
there keeps to the specification: a driver that shares nothing checks it (strict_driver.c)."""

from __future__ import annotations

import ctypes
import json
from collections import Counter
from collections.abc import Callable
from itertools import dropwhile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.backends.cpu import native
from lite_engine.backends.opencl.native_plan import encode_opencl
from lite_engine.ir import Graph
from lite_engine.plan import make_plan
from lite_engine.plan.program import WeightTable
from lite_engine.runtime.inputs import random_feeds

from tests.native.opencl.running import given, launches, network, run
from tests.opencl import tiny
from tests.small_models import Builder

pytestmark = [pytest.mark.opencl, pytest.mark.cpu]
Library = Callable[[str, Path, str], str]
Profile = dict[str, Any]


def on_both_sides() -> Graph:
    """The CPU reads an input and a value of the device that the device goes on with."""
    b = Builder((1, 3, 24, 24), "both")
    axis = b.graph.constant(np.array(3))
    y = b.conv(b.x, 3, 8, 3)
    y = b.add("Add", y, b.conv(b.add("CumSum", b.x, axis), 3, 8, 3))
    return b.done(b.add("Add", b.add("CumSum", y, axis), y))


def in_place() -> Graph:
    """What overwrites its input stands first, and behind a layer of the CPU."""
    b = Builder((1, 3, 24, 24), "in_place")
    y = b.add("CumSum", b.add("Relu", b.x), b.graph.constant(np.array(3)))
    return b.done(b.add("Sigmoid", y))


def view() -> Graph:
    """The output is a view of what was computed."""
    b = Builder((1, 3, 24, 24), "view")
    return b.done(b.add("Flatten", b.add("GlobalAveragePool", b.conv(b.x, 3, 8, 3))))


GRAPHS = (network, on_both_sides, in_place, view)


def saved(graph: Graph, path: Path, precision: str = "fp32") -> Path:
    targets = ["opencl", native.target()]
    return optimize(graph, targets=targets, precision={"opencl": precision}).save(path)


def wanted(model: Path, backend: str = "opencl") -> np.ndarray:
    predictor = Predictor(model, backend, threads=2)
    (value,) = predictor.run(random_feeds(predictor.graph)).values()
    return value


def ran(model: Path, folder: Path, *more: object, **variables: str) -> tuple[np.ndarray, Profile]:
    """(the output for the random input, the profile)."""
    found, _ = given(model, folder, random_feeds(network()), *more, **variables)
    return found, json.loads((folder / "profile.json").read_text())


def commands(folder: Path) -> Counter[str]:
    """What was done to buffers, without what tried the device first: it only reads."""
    file = folder / "counts"
    lines = file.read_text().splitlines()
    file.unlink()
    return Counter(dropwhile(lambda line: line[0] == "R", lines))


@pytest.fixture
def strict_driver(failing_driver: str, tmp_path: Path, against: Library) -> str:
    return against("strict_driver.c", tmp_path / "libstrict.so", failing_driver)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_nothing_is_copied(graph: Callable[[], Graph], precision: str, tmp_path: Path) -> None:
    listed = json.loads(run("--list-devices").stdout)["devices"]
    if not listed[tiny.device().report.index]["unified_memory"]:
        pytest.skip("the device has memory of its own")
    model = saved(graph(), tmp_path / "m.lite", precision)
    found, profile = ran(model, tmp_path, "--runs", "3")
    assert profile["choice"].startswith("opencl: ")
    assert (profile["copies"], profile["copied_bytes"]) == (0, 0)
    assert found.tobytes() == wanted(model).tobytes()
    rows = [s["ns"] for s in profile["steps"] if s["op"] == "Copy"]
    assert rows and all(rows), "a mapping takes the time of its row"


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_specification_is_kept(
    graph: Callable[[], Graph], strict_driver: str, tmp_path: Path
) -> None:
    model = saved(graph(), tmp_path / "m.lite")
    with_it = {"LITE_OPENCL_LIBRARY": strict_driver, "COUNTS": str(tmp_path / "counts")}
    bits = wanted(model).tobytes()
    found, profile = ran(model, tmp_path, "--runs", "3", **with_it)
    lines = commands(tmp_path)
    assert profile["choice"].startswith("opencl: ") and found.tobytes() == bits
    assert {line[0] for line in lines} == {"M", "U"}
    assert all(lines[f"U{line[1:]}"] == n for line, n in lines.items())

    found, profile = ran(model, tmp_path, "--runs", "3", UNIFIED="0", **with_it)
    lines = commands(tmp_path)
    assert profile["choice"].startswith("opencl: ") and found.tobytes() == bits
    assert {line[0] for line in lines} == {"R", "W"}
    moved = sum(n * int(line[2:]) for line, n in lines.items())
    views = found.nbytes if profile["copies"] > sum(lines.values()) / 3 else 0
    assert profile["copied_bytes"] == moved / 3 + views

    found, _ = ran(model, tmp_path, "--check", "--dump", tmp_path / "all", **with_it)
    assert found.tobytes() == bits and "L 0" not in commands(tmp_path)


@pytest.mark.sweep
@pytest.mark.parametrize("what", ["MAPS_BEFORE", "UNMAPS_BEFORE"])
@pytest.mark.parametrize("graph", [network, pytest.param(on_both_sides, marks=pytest.mark.hours)])
def test_what_cannot_be_mapped_is_the_cpus(
    graph: Callable[[], Graph], what: str, strict_driver: str, tmp_path: Path
) -> None:
    """From the n-th time on, for every n of two runs."""
    model = saved(graph(), tmp_path / "m.lite")
    with_it = {"LITE_OPENCL_LIBRARY": strict_driver}
    reason = "CL_MAP_FAILURE" if what == "MAPS_BEFORE" else "CL_OUT_OF_RESOURCES"
    cpu = wanted(model, native.target())
    for n in range(100):
        found, profile = ran(model, tmp_path, "--runs", "2", **with_it, **{what: str(n)})
        np.testing.assert_allclose(found, cpu, rtol=1e-5, atol=1e-6, err_msg=f"{n}")
        if profile["choice"].startswith("opencl: "):
            break
        assert profile["choice"].startswith("cpu: OpenCL: ") and reason in profile["choice"]
    assert 5 < n < 99
    refused = run(model, "--backend", "opencl", **with_it, **{what: "1"})
    assert refused.returncode == 1 and reason in refused.stderr and refused.stderr.count("\n") == 1


@pytest.mark.parametrize("launches", ["1", "3"])
def test_a_lost_device_leaves_the_inputs(launches: str, strict_driver: str, tmp_path: Path) -> None:
    """Nothing can be mapped or read back any more, and the inputs are mapped still."""
    model = saved(network(), tmp_path / "m.lite")
    lost = {"LAUNCHES_BEFORE": launches, "READS_BEFORE": "1", "MAPS_BEFORE": "3"}
    lost["LITE_OPENCL_LIBRARY"] = strict_driver
    found, profile = ran(model, tmp_path, "--runs", "3", **lost)
    np.testing.assert_allclose(found, wanted(model, native.target()), rtol=1e-5, atol=1e-6)
    assert profile["choice"].startswith("cpu: OpenCL: ")


def test_inputs_that_are_lost_are_asked_for(strict_driver: str, tmp_path: Path) -> None:
    """The device fails where it has an input, before the host sees it again: nothing computes on
    what is left."""
    model = saved(network(), tmp_path / "m.lite")
    faults = {"MAPS_BEFORE": "2", "READS_BEFORE": "1", "LITE_OPENCL_LIBRARY": strict_driver}
    refused = run(model, **faults)
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1
    assert "CL_MAP_FAILURE" in refused.stderr and "give them again" in refused.stderr


@pytest.mark.parametrize("which", [0, 1, -1], ids=["first", "middle", "last"])
def test_a_layer_that_leaves_has_no_copies_either(
    which: int, strict_driver: str, tmp_path: Path
) -> None:
    """The CPU computes it in the device's buffers; the ports stay where they are."""
    model = saved(network(), tmp_path / "m.lite")
    kernel = [*launches(Predictor(model, "opencl").plan()).values()][which][-1].kernel
    variables = {"LITE_OPENCL_LIBRARY": strict_driver, "COUNTS": str(tmp_path / "counts")}
    found, profile = ran(model, tmp_path, "--runs", "3", LAUNCH_FAILS=kernel, **variables)
    np.testing.assert_allclose(found, wanted(model, native.target()), rtol=1e-5, atol=1e-6)
    assert profile["choice"].startswith("opencl: ") and "on the CPU" in profile["choice"]
    assert profile["copies"] == 0 and "L 0" not in commands(tmp_path)


def test_own_and_bound_memory_take_turns() -> None:
    """The program's own memory, the caller's, the program's again."""
    graph = network()
    table = WeightTable()
    data = encode_opencl(make_plan(graph, "opencl"), tiny.device().target, table)
    program = native.NativeProgram(data, table.blobs, threads=1)
    library, handle = program._lib, program._handle
    (feed,) = random_feeds(graph).values()
    other = np.ascontiguousarray(feed[..., ::-1])
    into, out = program.inputs[0], program.outputs[0]
    error = ctypes.create_string_buffer(300)

    def own(array: np.ndarray) -> bytes:
        for port in (into, out):
            assert library.lite_program_bind(handle, port.tensor, None, 0) == 0
        address = library.lite_program_data(handle, into.tensor)
        ctypes.memmove(address, array.ctypes.data, array.nbytes)
        assert library.lite_program_run(handle, error, 300) == 0, error.value
        return ctypes.string_at(library.lite_program_data(handle, out.tensor), out.nbytes)

    first = own(feed)
    assert program.run([feed])[0].tobytes() == first
    second = program.run([other])[0].tobytes()
    assert second != first and own(other) == second and own(feed) == first
