"""Programs with an OpenCL part in which somebody changed launches, sizes or options are refused, or
run without a fault: under AddressSanitizer on this machine's device, and a sample under Oclgrind,
which sees inside kernels."""

from __future__ import annotations

import os
import struct
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from lite_engine.backends.opencl.cases import cases
from lite_engine.backends.opencl.native_plan import encode_opencl
from lite_engine.backends.opencl.profile import PROFILES
from lite_engine.backends.opencl.registry import Target
from lite_engine.ir import Graph
from lite_engine.plan import make_plan
from lite_engine.plan.program import WeightTable

from tests.native.opencl.mutation import mutants
from tests.opencl import tiny
from tests.tools import simulator

pytestmark = [pytest.mark.opencl, pytest.mark.cpu, pytest.mark.asan]
#: Of each graph; Oclgrind runs a few, slowly.
FEW, MANY, SIMULATED = 120, 1000, 30
#: One kernel of each kind of reach.
SOME = ("conv2d", "copy_concat", "binary", "softmax", "i8_conv2d")
#: What Oclgrind counts as.
ON_OCLGRIND = Target(PROFILES["gpu without fp16 and images"])
#: What a mutant may end with.
ENDS = {"refused", "ran", "failed"}


@pytest.fixture(scope="session")
def runner(root: Path) -> Path:
    return root / "build" / "asan" / "plan_run"


def written(
    graph: Graph, folder: Path, seed: int, count: int, target: Target | None = None
) -> tuple[bytes, list[bytes]]:
    """(the plan for this machine's device or `target`, its mutants); FOLDER/weights is what they
    share."""
    table = WeightTable()
    data = encode_opencl(make_plan(graph, "opencl"), target or tiny.device().target, table, ways=4)
    blobs = [np.ascontiguousarray(b).tobytes() for b in table.blobs]
    rows = [struct.pack("<Q", len(b)) + b for b in blobs]
    (folder / "weights").write_bytes(struct.pack("<Q", len(blobs)) + b"".join(rows))
    return data, list(mutants(data, seed, count))


def run(runner: Path, folder: Path, plans: list[bytes], **variables: str) -> list[str]:
    """What became of each plan. One that runs for too long ends the process, and the next one takes
    up after it."""
    (folder / "plans").write_bytes(b"".join(struct.pack("<I", len(p)) + p for p in plans))
    env = {k: v for k, v in os.environ.items() if not k.startswith("LITE_")}
    # Drivers and their compilers keep what they have until the process ends.
    options = "detect_leaks=0:handle_segv=1:allocator_may_return_null=1"
    ends: list[str] = []
    while len(ends) < len(plans):
        done = subprocess.run(
            [runner, folder / "plans", folder / "weights", str(len(ends))],
            env={**env, "ASAN_OPTIONS": options, **variables}, capture_output=True, text=True,
            timeout=3600,
        )  # fmt: skip
        assert done.returncode in (0, 3), done.stdout[-300:] + done.stderr[-3000:]
        ends += [line.split()[1] for line in done.stdout.splitlines() if line.split()[1:]]
        ends += ["slow"] * (done.returncode == 3)
    return ends


def check(graphs: list[Graph], runner: Path, folder: Path, count: int) -> list[bytes]:
    """The mutants that ran."""
    survivors = []
    for seed, graph in enumerate(graphs):
        plan, changed = written(graph, folder, seed, count)
        assert run(runner, folder, [plan]) == ["ran"], graph.name
        ends = run(runner, folder, changed)
        assert set(ends) <= ENDS | {"slow"}, Counter(ends)
        assert Counter(ends)["refused"] > count / 4, Counter(ends)
        survivors += [p for p, end in zip(changed, ends, strict=True) if end == "ran"]
    return survivors


@pytest.mark.parametrize("kernel", SOME)
def test_some(kernel: str, runner: Path, tmp_path: Path) -> None:
    check(cases()[kernel][:1], runner, tmp_path, FEW)


@pytest.mark.hours
@pytest.mark.parametrize("kernel", cases())
def test_many(kernel: str, runner: Path, tmp_path: Path) -> None:
    """10^5 in all."""
    check(cases()[kernel][:3], runner, tmp_path, MANY)


@pytest.mark.slow
@pytest.mark.simulator
@pytest.mark.parametrize(
    "kernel", [SOME[-1], *(pytest.param(kernel, marks=pytest.mark.hours) for kernel in SOME[:-1])]
)
def test_kernels_of_mutants_touch_nothing_else(kernel: str, runner: Path, tmp_path: Path) -> None:
    """`campaign.py` does this for every kernel, for a given time."""
    library, report = simulator(), tmp_path / "report"
    assert library is not None
    plan, changed = written(cases()[kernel][0], tmp_path, 1, SIMULATED, ON_OCLGRIND)
    with_it = {"OCL_ICD_VENDORS": library, "OCLGRIND_LOG": str(report)}
    ends = run(runner, tmp_path, [plan, *changed], **with_it)
    assert ends[0] == "ran" and Counter(ends)["ran"] > 3, Counter(ends)
    assert not report.exists() or not report.read_text()
