"""Devices: the same numbers as here through every transport; each failure names its stage and fix.

The oracle is the NumPy reference; the ssh server is a real one.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.devices import (
    RemoteDevice,
    add_entry,
    check_device,
    condition,
    find_device,
    load_entries,
    open_address,
    remove_entry,
)
from lite_engine.devices.backend import DeviceBackend
from lite_engine.devices.emulated import EmulatedDevice
from lite_engine.devices.remote import Answer
from lite_engine.devices.runner import read_results
from lite_engine.errors import DeviceError, LiteError, TargetMismatchError, UsageError
from lite_engine.plan import cut, make_plan
from lite_engine.profile import profile
from lite_engine.runtime import host_target
from lite_workbench.cli import main

from tests.devices.runs import same_as_reference
from tests.small_models import Builder, classifier, image

pytestmark = pytest.mark.cpu


@pytest.mark.parametrize("address", ["local", "wasm", "emulated", "emulated:cortex-a53"])
def test_on_this_machine(model, address, require):
    if "emulated" in address:
        require("arm")
    if address == "wasm":
        require("wasm")
    device = open_address(address)
    check = check_device(device)
    assert check.good and [s.state for s in check.stages] == ["done"] * 4, check
    same_as_reference(model, device)
    if address == "emulated:cortex-a53":
        assert check.features == ["neon"]


def test_a_device_by_its_name(model, require):
    require("arm")
    device = Predictor(model, "arm", device="emulated:cortex-a53").device
    assert isinstance(device, EmulatedDevice) and device.name == "emulated:cortex-a53"
    same_as_reference(model, "emulated")
    assert Predictor(model, device="local").device is None
    with pytest.raises(UsageError, match="device 'emulatd' is not known"):
        Predictor(model, device="emulatd")


def test_adb(model, adb, monkeypatch):
    device = open_address("adb://emu-1")
    check = check_device(device)
    assert check.good, check
    same_as_reference(model, device)
    left = [p.name for p in (adb / "lite-workbench").iterdir()]
    assert left == ["files"]  # the runs' folders are gone
    monkeypatch.setenv("FAKE_FULL", "1")
    full = check_device(open_address("adb://emu-1"))
    assert full.stages[1].state == "failed" and "free space on the device's disk" in full.error
    gone = check_device(open_address("adb://other"))
    assert "not found" in gone.error and "adb devices" in gone.error


class Broken:
    """A transport to this machine that fails on purpose at one verb."""

    name, home = "broken", ""

    def __init__(self, folder: Path, fault: str) -> None:
        self.home, self.fault = str(folder / "home"), fault

    def call(self, command, timeout_s):
        if "--profile" in command and self.fault == "lost":
            raise DeviceError("connection lost", where="broken", fix="try again")
        if "--profile" in command and self.fault == "killed":
            return Answer(137, "", "Killed")
        done = subprocess.run(list(command), capture_output=True, text=True, timeout=timeout_s)
        return Answer(done.returncode, done.stdout, done.stderr)

    def push(self, local, remote, timeout_s):
        data = Path(local).read_bytes()
        Path(remote).write_bytes(data[: len(data) // 2] if self.fault == "short" else data)
        return Answer(0, "", "")

    def pull(self, remote, local, timeout_s):
        data = Path(remote).read_bytes()
        Path(local).write_bytes(data[:20] if self.fault == "torn" else data)
        return Answer(0, "", "")


@pytest.mark.parametrize(
    ("fault", "stage", "says"),
    [("lost", "run", "connection lost"), ("killed", "run", "was killed"),
     ("short", "copy", "not copied whole"), ("torn", "fetch", "damaged")],
)  # fmt: skip
def test_failures_lose_nothing_here(model, tmp_path, fault, stage, says):
    transport = Broken(tmp_path, fault)
    predictor = Predictor(model, device=RemoteDevice(transport))
    feeds = image(model.graph)
    with pytest.raises(DeviceError, match=says) as caught:
        predictor.run(feeds)
    assert caught.value.stage == stage
    transport.fault = ""
    want = Predictor(model, "reference").run(feeds)["prob"]
    np.testing.assert_allclose(predictor.run(feeds)["prob"], want, atol=1e-5)
    assert not list(Path(transport.home).glob("run-*"))
    assert not list(Path(transport.home).glob("files/*.part"))


def test_a_file_for_another_cpu(adb):
    other = "arm" if host_target() == "x86" else "x86"
    with pytest.raises(TargetMismatchError, match=f"converted for {other}.*lite convert"):
        Predictor(optimize(classifier(), targets=[other]), device=open_address("adb://emu-1"))


def test_a_condition_of_other_words_than_numbers_stays_text():
    told = condition.parse(
        {"frequency_khz": "--5", "governor": "\u00b2", "memory_total": "m \u00b2"}
    )
    assert told == {"frequency_khz": "--5", "governor": "\u00b2"}


def test_results_that_are_cut_in_an_arrays_header_are_damaged(tmp_path):
    (tmp_path / "profile.json").write_text('{"steps": []}')
    for data in (b"\x93NUMPY\x01\x00\x20\x00{'descr': '<f4', 'shape': (1, 5\n\n", b"PK\x03\x04"):
        (tmp_path / "y.npy").write_bytes(data)
        with pytest.raises(DeviceError, match="board: a result is missing or damaged"):
            read_results("board", tmp_path, ["y"])


def test_condition_warns_of_throttling():
    lines = {"frequency_khz": "1200000\n", "max_frequency_khz": "2000000", "governor": "schedutil",
             "temperature_millicelsius": "85000", "memory_total": "MemTotal: 2048 kB",
             "model": "Board\0"}  # fmt: skip
    after = condition.parse(lines)
    assert after["memory_total_bytes"] == 2 << 20 and after["model"] == "Board"
    said = condition.warnings({"frequency_khz": 2000000}, after)
    assert len(said) == 2 and "85 °C" in said[0] and "dropped during the run" in said[1]
    assert condition.warnings({}, {}) == []


def test_the_list(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path))
    add_entry("board", "ssh://pi@10.0.0.7")
    assert [e.name for e in load_entries()] == ["board"]
    assert find_device("board").name == "ssh://pi@10.0.0.7" and find_device("local") is None
    for name, address in (("board", "local"), ("local", "local"), ("a b", "local"), ("x", "y://")):
        with pytest.raises(UsageError):
            add_entry(name, address)
    with pytest.raises(UsageError, match="'emulated' exists on every machine"):
        add_entry("emulated", "ssh://pi@10.0.0.7")
    assert main(["devices", "--json", "-"]) == 0
    listed = json.loads(capsys.readouterr().out)["devices"]
    assert [d["name"] for d in listed] == ["local", "wasm", "emulated", "board"]
    assert main(["devices", "remove", "board"]) == 0
    with pytest.raises(UsageError, match="there is no saved device 'board'"):
        remove_entry("board")
    (tmp_path / "devices.json").write_text("[{}]")
    with pytest.raises(LiteError, match="damaged"):
        load_entries()


@pytest.mark.ssh
def test_the_command(model, sshd, tmp_path, monkeypatch, capsys):
    """add, test, run, profile and compare by the device's name."""
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path))
    file = str(model.save(tmp_path / "m.lite"))
    added = ["devices", "add", "board", sshd.address, "--ssh-config", sshd.config]
    assert main(added) == 0
    assert main(["devices", "test", "board"]) == 0
    assert "works" in capsys.readouterr().out
    assert main(["run", file, "--device", "board", "-v"]) == 0
    assert sshd.address in capsys.readouterr().out
    assert main(["profile", file, "--device", "board", "--runs", "2", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["device"] == sshd.address
    sides = ["--backends", f"reference,{host_target()}"]
    assert main(["compare", file, *sides, "--devices", "local,board", "--no-isolated"]) == 0


@pytest.mark.arm
def test_doctor_checks_a_file_on_a_named_device(model, tmp_path, monkeypatch, capsys):
    """Its precision there, the device's features; another CPU's file is a failure with the fix."""
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path))
    add_entry("board", "emulated:cortex-a53")
    good = str(model.save(tmp_path / "m.lite"))
    assert main(["doctor", good, "--device", "board"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"+ {good} on emulated:cortex-a53: runs on arm (fp32)"
    assert any("arm with neon" in line for line in lines)
    other = str(optimize(classifier(), targets=["x86"]).save(tmp_path / "x.lite"))
    assert main(["doctor", other, "--device", "board"]) == 1
    first, fix = capsys.readouterr().out.splitlines()[:2]
    assert first.startswith(f"- {other} on emulated:cortex-a53: ")
    assert fix.strip().startswith("fix: run `lite convert ")
    assert main(["doctor", good]) == 0
    line = capsys.readouterr().out.splitlines()[0]
    assert line == f"+ {good} here: runs on {host_target()} (fp32)"


@pytest.mark.arm
def test_emulated_profiles_count_instructions(model, qemu):
    """Per layer, the same numbers every time, and near the multiply-adds of the large layers."""
    if not qemu:
        pytest.skip("this machine is AArch64: nothing is emulated")
    feeds = image(model.graph)
    one, two = (
        profile(Predictor(model, "arm", threads=2), feeds, runs=n, warmup=1) for n in (1, 3)
    )
    assert one.threads == 1 and one.emulated and one.instructions is not None
    counts = [x.instructions for x in one.layers]
    assert counts == [x.instructions for x in two.layers]
    assert one.instructions["run"] == two.instructions["run"]
    assert sum(counts) <= one.instructions["run"] <= 1.01 * sum(counts)
    assert one.instructions["first_result"] > one.instructions["run"]
    wide = next(x for x in one.layers if "wide" in x.sources)
    assert 0.1 < wide.instructions / wide.macs < 2  # 4 products an instruction at best, and more
    assert one.slowest(1)[0].instructions == max(counts)


def test_counts_of_several_threads_are_left_out(tmp_path):
    from lite_engine.devices.emulated import add_counts

    marks = tmp_path / "marks"
    marks.write_text("\n".join(map(str, (5, 10, 30, 70, 71, 80, 100, 140, 141))))
    for threads, runs, want in ((1, 2, (20, 40)), (2, 2, None), (1, 3, None)):
        made = {"threads": threads, "runs": runs, "steps": [{}, {}]}
        add_counts(made, marks)
        got = tuple(s["instructions"] for s in made["steps"]) if "instructions" in made else None
        assert got == want
    assert "instructions" not in made
    made = {"threads": 1, "runs": 2, "steps": [{}, {}]}
    add_counts(made, marks)
    assert (made["instructions"], made["first_result_instructions"]) == (61, 71)
    made = {"threads": 1, "runs": 2, "steps": [{"variant": "f32_pool__neon_band"}, {}]}
    add_counts(made, marks)
    assert "instructions" not in made  # its steps took turns


def test_an_emulator_runs_steps_apart(tmp_path):
    """On a board they take turns over bands of rows, which the counts could not tell apart."""
    b = Builder((1, 3, 128, 128))
    graph = b.done(b.conv(b.conv(b.x, 3, 16, 3), 16, 16, 3))

    class Board:
        times_meaningful = True

    for device, bands in ((Board(), 1), (EmulatedDevice(), 0)):
        (segment,) = cut(make_plan(graph, "cpu"))
        executable = DeviceBackend(device).compile(segment, threads=1)
        assert len({s.band for s in executable.plan.steps if s.band}) == bands
