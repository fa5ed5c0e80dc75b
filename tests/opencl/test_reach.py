"""What kernels state of their reach: complete, true of every launch that the builders make, and
exact, as Oclgrind sees when buffers have just that size."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from lite_engine.backends.opencl import reach
from lite_engine.backends.opencl.cases.graphs import conv
from lite_engine.backends.opencl.cases.integers import conv as integer_conv
from lite_engine.backends.opencl.launch import Launch, Scratch
from lite_engine.backends.opencl.profile import PROFILES
from lite_engine.backends.opencl.programs import KERNELS
from lite_engine.backends.opencl.registry import Target, Way
from lite_engine.backends.opencl.steps import launches_of
from lite_engine.plan import Plan, make_plan

from tests.opencl import exact
from tests.tools import simulator

FILES = sorted(path.stem for path in KERNELS.glob("*.cl"))
#: Which elements these read depends on the values that they are given.
BY_DATA = {
    f"LOOSE {x}"
    for x in (
        "gather x",
        "gather_elements x",
        "gather_nd x",
        "gather_runs x",
        "grid_sample x",
        "map table",
        "softmax e",
        "fixed b",
    )
}
#: Of which a whole image is stated: windows with a stride may end before its last pixel.
BY_WINDOW = {"LOOSE mma x"}


@pytest.mark.parametrize("file", FILES)
def test_every_kernel_states_its_reach(file: str) -> None:
    text = (KERNELS / f"{file}.cl").read_text()
    names = set(re.findall(r"^(?:kernel .*)?\bvoid (\w+)\(", text, re.M))
    assert names and text.count("\n//@ kernel ") == len(names)
    for name in names:
        parameters, lines = reach.statement(file, name)
        written = {p: line.word == "writes" for line in lines for p, _ in line.parts if p}
        memory = {p.name: p.written for p in parameters if p.kind in ("buffer", "image")}
        assert {p: w for p, w in written.items() if p in memory} == memory, name
        assert "items" in {line.word for line in lines}, name


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("profile", PROFILES)
def test_launches_stay_within_their_memory(profile: str, precision: str) -> None:
    for launch, plan in exact.planned(profile, precision):
        reach.check(launch, plan)


class Each:
    """Takes each way that a builder offers, one after the other."""

    def __init__(self) -> None:
        self.number, self.offered = 0, 1

    def __call__(self, size: str, ways: Sequence[Way], /) -> Way:
        self.offered = len(ways)
        return ways[self.number]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("values", ["fp32", "fp16", "int8"])
def test_every_way_of_a_convolution_stays_within_its_memory(profile: str, values: str) -> None:
    """Also those that no case takes first: sizes of networks do, and the runtime refuses a whole
    program for one launch with an option that its kernel does not state."""
    made = integer_conv if values == "int8" else conv
    for shape, outputs, window in (
        ((1, 128, 40, 40), 128, 3), ((1, 2048, 7, 7), 512, 1), ((1, 32, 56, 56), 32, 3),
        ((2, 12, 33, 30), 20, 5),
    ):  # fmt: skip
        plan = make_plan(made(shape, outputs, window), "opencl", precision=values)
        (step,) = [s for s in plan.steps if s.backend == "opencl" and "Conv" in s.op]
        each = Each()
        while each.number < each.offered:
            for launch in launches_of(step, plan, Target(PROFILES[profile], each)):
                reach.check(launch, plan)
            each.number += 1
        assert each.offered > 1 or (values, PROFILES[profile].kind) == ("int8", "CPU")


def launch_and_plan() -> tuple[Launch, Plan]:
    plan = make_plan(conv((1, 8, 6, 6), 8, 3), "opencl")
    step = next(s for s in plan.steps if s.backend == "opencl" and s.op == "Conv")
    (*_, launch) = launches_of(step, plan, Target(PROFILES["cpu, 8 lanes"]))
    return launch, plan


@pytest.mark.parametrize(
    "name, value, words",
    [("OW", 7, "items"), ("W", 4000, "leaves argument"), ("KH", 4, "leaves argument"),
     ("OH", 0, "OH"), ("y_at", 1, "leaves argument"), ("x_at", -1000, "negative"),
     ("O", 9, "items"), ("w_plane", -1, "does not hold")],
)  # fmt: skip
def test_what_does_not_fit_is_refused(name: str, value: int, words: str) -> None:
    launch, plan = launch_and_plan()
    reach.check(launch, plan)
    parameters, _ = reach.statement(launch.file, launch.kernel)
    args = list(launch.args)
    args[[p.name for p in parameters].index(name)] = value
    with pytest.raises(reach.ReachError, match=words):
        reach.check(replace(launch, args=args), plan)


def test_grids_options_and_memory_are_checked() -> None:
    launch, plan = launch_and_plan()
    for wrong in (
        replace(launch, global_size=(launch.global_size[0] + 1, *launch.global_size[1:])),
        replace(launch, options=f"{launch.options}\n#define ALIGNED"),
        replace(launch, args=[Scratch(4), *launch.args[1:]]),
        replace(launch, kernel="no_such_kernel"),
    ):
        with pytest.raises(reach.ReachError):
            reach.check(wrong, plan)


def simulated(profile: str, precision: str, what: str, root: Path, tmp_path: Path) -> str:
    """What the process prints; what Oclgrind complained of stands in tmp_path/log."""
    library = simulator()
    assert library is not None
    env = {**os.environ, "OCL_ICD_VENDORS": library, "OCLGRIND_LOG": str(tmp_path / "log"),
           "OCLGRIND_MAX_ERRORS": str(10**9), "OCLGRIND_LOCAL_MEM_SIZE": str(64 << 10),
           "OCLGRIND_DATA_RACES": str(int(what != "tight"))}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "tests.opencl.exact", profile, precision, what],
        env=env, cwd=root, capture_output=True, text=True, timeout=7200,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


SOME = [
    ("cpu, 8 lanes", "fp32"),
    pytest.param("nvidia with matrix units", "fp16", marks=pytest.mark.hours),
    pytest.param("adreno", "fp32", marks=pytest.mark.hours),
]


@pytest.mark.opencl
@pytest.mark.simulator
@pytest.mark.parametrize("profile, precision", SOME)
def test_nothing_beyond_is_touched(
    profile: str, precision: str, root: Path, tmp_path: Path
) -> None:
    simulated(profile, precision, "some", root, tmp_path)
    assert not (tmp_path / "log").read_text()


@pytest.mark.opencl
@pytest.mark.simulator
@pytest.mark.parametrize("profile, precision", [
    SOME[0], pytest.param("nvidia with matrix units", "fp16", marks=pytest.mark.hours),
])  # fmt: skip
def test_one_element_less_is_too_few(
    profile: str, precision: str, root: Path, tmp_path: Path
) -> None:
    lines = simulated(profile, precision, "tight", root, tmp_path).splitlines()
    assert {line for line in lines if line.startswith("LOOSE")} <= BY_DATA | BY_WINDOW


@pytest.mark.opencl
@pytest.mark.simulator
@pytest.mark.hours
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("profile", PROFILES)
def test_nothing_beyond_is_touched_by_any_launch(
    profile: str, precision: str, root: Path, tmp_path: Path
) -> None:
    simulated(profile, precision, "all", root, tmp_path)
    assert not (tmp_path / "log").read_text()
