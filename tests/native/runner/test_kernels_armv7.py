"""The kernel cases and whole networks on 32-bit ARM: the programs of `arm`, run by its runner under
qemu-arm."""

from __future__ import annotations

import struct
import subprocess

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine._native import runner_path
from lite_engine.model_file._container import read_container, write_container
from lite_engine.model_file.program_file import write_program_file
from lite_engine.plan import make_plan
from lite_engine.quantize import quantize

from tests.native.runtime import test_turns, test_turns_damage
from tests.small_models import classifier, image
from tests.tools import emulator

from ..cases import check_outputs, collected, merged

pytestmark = pytest.mark.armv7


@pytest.fixture(scope="module")
def runner() -> list[str]:
    return [str(emulator("arm")), str(runner_path("armv7"))]


@pytest.mark.parametrize("threads", [1, 3])
def test_all_cases(runner, tmp_path, threads):
    """Those of kernels that this processor has: not of half arithmetic."""
    listed = subprocess.run([*runner, "--kernels"], capture_output=True, text=True, check=True)
    known = {line.split()[1] for line in listed.stdout.splitlines()}
    cases = [case for case in collected() if case.kernel in known]
    assert len(cases) > 100
    plan = merged([case.plan(all_constant=True) for case in cases])
    program = write_program_file(plan, tmp_path / "cases.lite", ("arm",))
    options = ["--threads", str(threads), "--output", str(tmp_path)]
    done = subprocess.run(
        [*runner, str(program), *options], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    check_outputs(cases, plan, tmp_path)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_network(runner, tmp_path, precision):
    graph = classifier()
    feeds = image(graph)
    others = [{k: v * scale for k, v in feeds.items()} for scale in (0.5, 0.8)]
    model = optimize(graph, targets=["arm"])
    if precision == "int8":
        model = optimize(quantize(graph, [feeds, *others], force=True).graph, targets=["arm"])
    wanted = Predictor(model, "reference").run(feeds)
    path = tmp_path / "m.lite"
    model.save(path)
    ((name, array),) = feeds.items()
    np.save(tmp_path / "in.npy", array)
    options = ["--input", f"{name}={tmp_path}/in.npy", "--output", str(tmp_path)]
    done = subprocess.run([*runner, str(path), *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "prob.npy"), wanted["prob"], atol=1e-5)


def refused(runner, tmp_path, monkeypatch, change) -> str:
    """What the runner says of a program with turns whose bytes `change` has changed."""
    monkeypatch.setattr("lite_engine.plan.samples._CACHE_BYTES", 1 << 20)
    plan = make_plan(test_turns.shuffled(), "cpu")
    whole = read_container(write_program_file(plan, tmp_path / "whole.lite", ("arm",)))
    program = bytearray(whole["PROG.arm"])
    change(program)
    parts = {tag: [whole[tag]] for tag in whole} | {"PROG.arm": [bytes(program)]}
    model = write_container(tmp_path / "changed.lite", parts)
    done = subprocess.run([*runner, str(model)], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    return done.stderr


def test_memory_beyond_32_bits_is_refused(runner, tmp_path, monkeypatch):
    """What is kept during a turn lies where the file says: 4 GiB further on, no number wraps."""

    def far(program: bytearray) -> None:
        kept = next(
            at
            for at in test_turns_damage.marked(program, test_turns_damage.KEPT)
            if struct.unpack_from("<i", program, at + 8)[0] < 0
        )
        struct.pack_into("<Q", program, kept + 16, 1 << 32)

    assert "lies outside the arena" in refused(runner, tmp_path, monkeypatch, far)


def test_a_tensor_beyond_32_bits_is_refused(runner, tmp_path, monkeypatch):
    """Its 2^32 bytes are not none."""

    def large(program: bytearray) -> None:
        at = next(
            at
            for at in test_turns_damage.records(program)[:-1]
            if program[at + 5] == 4 and program[at + 6] == 4 and program[at + 7] == 1
        )
        struct.pack_into("<q", program, at + 24, 1 << 15)  # pitch
        struct.pack_into("<3q", program, at + 60, 1, 1 << 15, 1 << 15)

    assert "shape is out of range" in refused(runner, tmp_path, monkeypatch, large)
