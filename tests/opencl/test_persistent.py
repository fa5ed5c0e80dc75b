"""Launches of a segment as one kernel that stays on the device: its text, its order, what happens
when it fails. PoCL runs it with one group, which has nothing to wait for."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from math import prod
from types import SimpleNamespace
from typing import Any
from unittest import mock

import lite_engine.backends.opencl as opencl
import numpy as np
import pytest
from lite_engine.backends.opencl import persistent, persistent_text
from lite_engine.backends.opencl.cases import cases
from lite_engine.backends.opencl.kernels import Kernel
from lite_engine.backends.opencl.launch import Launch
from lite_engine.backends.opencl.persistent import Persistent
from lite_engine.backends.opencl.profile import PROFILES
from lite_engine.backends.opencl.registry import Target
from lite_engine.backends.opencl.sharing import share
from lite_engine.backends.opencl.steps import launches_of
from lite_engine.backends.opencl.verdicts import Verdicts
from lite_engine.ir import Graph
from lite_engine.plan import Step, cut, make_plan
from lite_engine.runtime.execute import Execution
from lite_engine.runtime.inputs import random_feeds

from tests.opencl import offline
from tests.opencl.tiny import device
from tests.small_models import Builder, classifier

NVIDIA = PROFILES["nvidia with matrix units"]
PLACES, ITEMS = 132, 256


def launches(graph: Graph, precision: str = "fp32") -> Iterator[Launch]:
    plan = make_plan(graph, "opencl", precision=precision)
    for step in plan.steps:
        if step.backend == "opencl" and step.op != "Copy":
            yield from launches_of(step, plan, Target(NVIDIA))


def fitting(graph: Graph, precision: str) -> list[Launch]:
    found = launches(graph, precision)
    room = NVIDIA.local_memory
    return [x for x in found if persistent_text.fits(x, ITEMS, room, side_by_side=True)]


def text_of(found: list[Launch]) -> persistent_text.Text:
    text = persistent_text.Text(ITEMS, PLACES, NVIDIA.local_memory)
    for launch in found:
        text.number(launch)
    return text


# ---- the text


@pytest.mark.offline
@pytest.mark.sweep
def test_every_kernel_compiles() -> None:
    """The programs of each kernel file together, as one; images alone are left out."""
    by_file: dict[str, list[Launch]] = {}
    every = [g for graphs in cases().values() for g in graphs]
    for graph in every:
        for precision in ("fp32", "fp16"):
            for launch in fitting(graph, precision):
                by_file.setdefault(launch.file, []).append(launch)
    for precision in ("fp32", "fp16"):
        found = {x.file for graph in every for x in launches(graph, precision)}
        assert found <= by_file.keys()
    jobs = [(text_of(x).whole(), "nvptx64-nvidia-nvcl", False) for x in by_file.values()]
    for file, result in zip(by_file, offline.check(jobs), strict=True):
        assert not result.error, file


@pytest.mark.offline
def test_all_groups_have_their_registers() -> None:
    """A program of a network's layers, with matrix units, local memory and barriers of parts of a
    group, is machine code that spills nothing."""
    found = [x for precision in ("fp32", "fp16") for x in fitting(classifier(), precision)]
    result = offline.assemble(text_of(found).whole())
    assert not result.error
    assert "0 bytes spill stores" in result.report


def test_numbers_are_no_part_of_the_text() -> None:
    def convolution(side: int) -> Graph:
        b = Builder((1, 32, side, side), "convolution")
        return b.done(b.add("Conv", b.x, b.weights(32, 32, 1, 1), b.weights(32)))

    texts = [text_of(fitting(convolution(side), "fp32")).whole() for side in (28, 29)]
    assert texts[0] == texts[1]


def test_fewer_steps_on_their_way_where_groups_lie_side_by_side() -> None:
    b = Builder((1, 512, 28, 28), "many groups")
    graph = b.done(b.add("Conv", b.x, b.weights(512, 512, 1, 1), b.weights(512)))
    (launch,) = [x for x in fitting(graph, "fp16") if x.file == "conv_mma"]
    assert prod(launch.global_size) > PLACES * persistent_text.items_of(launch)
    (key,) = text_of([launch]).numbers
    deep, shallow = (int(x.split("STAGES ")[1].split()[0]) for x in (launch.options, key[1]))
    assert 3 <= shallow < deep


# ---- the order


def kernel(reads: list[Any], writes: Any, n: int = 64) -> Kernel:
    """A sum of two arrays."""
    launch = Launch(
        "binary", "binary_same", [*reads, writes, n], (128,), "#define V 1\n#define OP(p, q) p + q"
    )
    args = [*reads, writes, np.int32(n)]
    return Kernel(launch, None, (128,), (128,), lambda: 0, args)


def test_only_what_depends_waits() -> None:
    a, b, c, d, e = (SimpleNamespace(name=x) for x in "abcde")
    run = [
        kernel([a, b], c),
        kernel([a, b], d),  # of the same
        kernel([c, d], e),  # what both wrote
        kernel([a, b], c),  # what the last one read
        kernel([a, b], d),
    ]
    assert persistent.waiting(run) == [False, False, True, True, False]


def test_copies_go_to_the_ends() -> None:
    buffers = {name: SimpleNamespace(name=name) for name in "xyzw"}
    x, y, z, w = buffers.values()

    def copy(name: str, upload: bool) -> Step:
        return Step(0, name, "Copy", "copy" if upload else "back", "", "opencl", [], [], {}, [])

    up_x, up_y, down_z, down_w = (
        copy("x", True),
        copy("y", True),
        copy("z", False),
        copy("w", False),
    )
    first, second = kernel([x, x], z), kernel([y, y], w)
    third = kernel([w, w], z)
    parts = [up_x, first, down_z, up_y, second, down_w, third]
    found = persistent.gathered(
        parts, lambda step: buffers[step.name], lambda step: step.kernel == "copy"
    )
    # z is written again, and w is read: whether a launch writes a buffer is not asked.
    assert [id(p) for p in found] == [
        id(p) for p in (up_x, up_y, first, down_z, second, down_w, third)
    ]


def test_copied_values_have_buffers_of_their_own() -> None:
    """In fp16 each output is a cast of an intermediate value, and casts take turns in a buffer."""
    b = Builder((1, 8, 6, 6), "outputs")
    first = b.add("Relu", b.x)
    outputs = [b.add("Sigmoid", first), b.add("Tanh", first)]
    (segment,) = [
        s
        for s in cut(make_plan(b.done(*outputs), "opencl", precision="fp16"))
        if s.backend == "opencl"
    ]
    plan = segment.plan
    copied = {
        plan.root(i).index
        for step in plan.steps
        if step.op == "Copy"
        for i in (*step.inputs, *step.outputs)
        if plan.root(i).space == "opencl"
    }
    assert len(copied) == 3
    for apart in (False, True):
        numbers, _ = share(plan, apart)
        shared = [n for i, n in numbers.items() if list(numbers.values()).count(n) > 1]
        assert bool({numbers[i] for i in copied} & {*shared}) is not apart


@pytest.mark.parametrize(
    "kind, major, linux, wanted",
    [("nvidia", 9, True, True), ("nvidia", 6, True, False), ("nvidia", 9, False, False),
     ("gpu", 9, True, False)],
)  # fmt: skip
def test_devices(
    monkeypatch: pytest.MonkeyPatch, kind: str, major: int, linux: bool, wanted: bool
) -> None:
    monkeypatch.setattr(persistent.system, "LINUX", linux)
    profile = SimpleNamespace(device_class=kind)
    own = SimpleNamespace(
        profile=profile, device=SimpleNamespace(compute_capability_major_nv=major)
    )
    assert persistent.possible(own) is wanted


@pytest.mark.parametrize("large, shape", [(0, (264, 128)), (2, (264, 128)), (3, (132, 256))])
def test_groups_of_a_unit(large: int, shape: tuple[int, int]) -> None:
    """Two, unless too many launches have groups that fit only into one."""
    some = [SimpleNamespace(launch=Launch("", "", [], (n,), "", (n,)))
            for n in [128] * (32 - large) + [256] * large]  # fmt: skip
    assert persistent.shape_for(some, 132) == shape


# ---- running


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Any:
    """The device of this machine as one that may keep a group, which is tried for any segment."""
    own = device(tiles=True)
    made = dataclasses.replace(
        own,
        report=dataclasses.replace(own.report, compute_units=1),
        verdicts=Verdicts(tmp_path / "verdicts.json", "", ""),
    )
    monkeypatch.setattr(persistent, "possible", lambda _: True)
    monkeypatch.setattr(persistent, "shape_for", lambda *_: (1, 128))
    monkeypatch.setattr(persistent, "_FEWEST", 2)
    monkeypatch.setattr(persistent, "_CALLS_SHARE", 0.0)
    monkeypatch.setattr(persistent, "_ENOUGH", np.inf)
    monkeypatch.setattr(opencl, "open_device", lambda _: made)
    return made


def execution(graph: Graph, precision: str = "fp32") -> tuple[Execution, list[np.ndarray], Any]:
    """Having run once; its inputs, and the executable on OpenCL."""
    made = Execution(make_plan(graph, "opencl", precision=precision), threads=1)
    feeds = random_feeds(graph)
    given = [feeds[value.name] for value in graph.inputs]
    made.run(given)
    (part,) = [p.executable for p in made._parts if p.segment.backend == "opencl"]
    return made, given, part


GRAPHS = {
    "classifier": classifier(),
    **{name: cases()[name][0] for name in ("conv2d", "deconv2d", "copy_concat", "batch_norm")},
    **{name: cases()[name][0] for name in ("i8_conv2d", "i8_deconv2d")},
}


@pytest.mark.opencl
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("name", GRAPHS)
def test_same_bits_in_fewer_calls(together, name: str, precision: str) -> None:
    made, given, part = execution(GRAPHS[name], precision)
    assert part._persistent, together.verdicts.failures  # it had the bits of the launches
    calls = [p for p in part._persistent.parts if isinstance(p, Kernel)]
    assert any(p.launch.file == "persistent" for p in calls)
    assert len(calls) < sum(len(ways.kernels) for ways in part._steps)
    found = made.run(given)
    part._persistent = None
    assert all(map(np.array_equal, found, made.run(given)))


@pytest.mark.opencl
def test_inputs_of_each_run(together) -> None:
    made, given, part = execution(classifier())
    other = [x + 1 for x in given]
    found = made.run(other), made.run(given)
    part._persistent = None
    for outputs, inputs in zip(found, (other, given), strict=True):
        assert all(map(np.array_equal, outputs, made.run(inputs)))


@pytest.mark.opencl
def test_taps_and_times_are_of_single_launches(together) -> None:
    made, given, part = execution(classifier())
    with mock.patch.object(part, "_keep", wraps=part._keep) as single:
        made.run(given)
        assert not single.called
        part.tap([part.plan.steps[1].outputs[0]])
        made.run(given)
        assert single.call_count == len(part._steps)
    assert len(made.times()) == len(made.plan.steps)


@pytest.mark.opencl
def test_a_group_that_gives_up(together) -> None:
    """The run is done again by launches of their own, which stay."""
    made, given, part = execution(classifier())
    wanted = made.run(given)
    with mock.patch.object(Persistent, "gave_up", return_value=True):
        assert all(map(np.array_equal, made.run(given), wanted))
    assert part._persistent is None
    assert all(map(np.array_equal, made.run(given), wanted))


@pytest.mark.opencl
@pytest.mark.parametrize("fault", ["bits", "build", "group"])
def test_a_trial_that_fails(together, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """Launches stay, without a word, and no later start tries again."""
    wanted = Execution(make_plan(classifier(), "opencl"), threads=1)
    if fault == "bits":
        rows = Persistent._rows

        def dropped(made: Persistent, run: list[Kernel], numbers: list[int]) -> np.ndarray:
            found = rows(made, run, numbers)
            found[-1, 4] = 0  # groups of the last launch
            return found

        monkeypatch.setattr(Persistent, "_rows", dropped)
    elif fault == "build":
        monkeypatch.setattr(persistent_text.Text, "whole", lambda self: "kernel void persistent(")
    else:
        monkeypatch.setattr(Persistent, "gave_up", lambda self, seconds: True)
    made, given, part = execution(classifier())
    assert part._persistent is None
    (failure,) = together.verdicts.failures.values()
    assert failure.kind == {"bits": "numbers", "build": "build", "group": "launch"}[fault]
    expected = wanted.run(given)
    assert all(np.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(made.run(given), expected))
    with mock.patch.object(together.programs, "build", side_effect=AssertionError):
        execution(classifier())
