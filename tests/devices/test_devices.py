"""Devices: the same numbers as here through every transport; each failure names its stage and fix.

The oracle is the NumPy reference; the ssh server is a real one.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
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
from lite_engine.errors import DeviceError, LiteError, TargetMismatchError, UsageError
from lite_engine.plan import cut, make_plan
from lite_engine.profile import profile
from lite_engine.runtime import host_target
from lite_workbench.cli import main

from tests.small_models import Builder, classifier, image

pytestmark = pytest.mark.cpu


@pytest.fixture
def model():
    return optimize(classifier(), targets=["x86", "arm"])


def same_as_reference(model, device) -> None:
    feeds = image(model.graph)
    want = Predictor(model, "reference").run(feeds)
    got = Predictor(model, device=device, threads=2).run(feeds, taps=["skip"])
    np.testing.assert_allclose(got["prob"], want["prob"], atol=1e-5)
    assert got["skip"].shape == (1, 16, 10, 10)


@pytest.mark.parametrize("address", ["local", "emulated", "emulated:cortex-a53"])
def test_on_this_machine(model, address, require):
    if "emulated" in address:
        require("arm")
    device = open_address(address)
    check = check_device(device)
    assert check.good and [s.state for s in check.stages] == ["done"] * 4, check
    same_as_reference(model, device)
    if address == "emulated:cortex-a53":
        assert check.features == ["neon"]


@pytest.mark.ssh
def test_ssh(model, sshd):
    device = open_address(sshd.address, sshd.config)
    check = check_device(device)
    assert check.good, check
    assert [s.name for s in check.stages] == ["reach", "copy", "run", "fetch"]
    assert check.environment["memory_total_bytes"] > 1 << 20
    same_as_reference(model, device)
    again = check_device(device)
    assert (
        "all files were there already" in again.stages[1].detail
        or "0.00 MB" in again.stages[1].detail
    )


@pytest.mark.ssh
def test_ssh_profile_repeats_on_the_device(model, sshd):
    device = open_address(sshd.address, sshd.config)
    made = profile(Predictor(model, device=device), image(model.graph), runs=9, warmup=1)
    assert made.device == sshd.address and made.backend == host_target()
    assert len(made.samples_ms) == 9 and made.times_meaningful
    assert all(0 <= x.min_ms <= x.median_ms for x in made.layers)
    assert abs(sum(x.share for x in made.layers) - 1) < 1e-6
    assert "memory_total_bytes" in made.environment


@pytest.mark.ssh
def test_ssh_respects_host_keys(sshd, tmp_path):
    """An unknown key and a changed key are refused; nothing is written to known_hosts."""
    other = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    changed = f"[127.0.0.1]:{sshd.port} {Path(f'{other}.pub').read_text()}"
    for known in ("", changed):
        (tmp_path / "known").write_text(known)
        config = tmp_path / "config"
        text = Path(sshd.config).read_text()
        config.write_text(text.replace(f"{sshd.folder}/known", f"{tmp_path}/known"))
        check = check_device(open_address(sshd.address, str(config)))
        assert not check.good and check.stages[0].state == "failed"
        assert "Host key verification failed" in check.error and "`ssh -p" in check.error
        assert (tmp_path / "known").read_text() == known


@pytest.mark.ssh
def test_ssh_failures_say_what_to_do(sshd, tmp_path):
    config = tmp_path / "config"
    text = Path(sshd.config).read_text()
    config.write_text(text.replace("/user\n", "/nobody\n") + "PubkeyAuthentication no\n")
    denied = check_device(open_address(sshd.address, str(config)))
    assert "Permission denied" in denied.error and "ssh-copy-id" in denied.error
    closed = check_device(open_address("ssh://someone@127.0.0.1:1", sshd.config))
    assert "Connection refused" in closed.error and closed.stages[0].name == "reach"


@pytest.mark.ssh
def test_words_reach_the_device_as_they_are(sshd, tmp_path):
    """No word of a command is ever read by a shell there."""
    transport = open_address(sshd.address, sshd.config).transport
    words = ["a b", "$(touch /tmp/never)", "`id`", "'; rm -rf x", "\\", "*", "é", "-n"]
    for word in words:
        answer = transport.call(["printf", "%s", word], 20)
        assert answer.stdout == word
    source, odd = tmp_path / "s", f"{tmp_path}/o dd'$x"
    source.write_bytes(bytes(range(256)))
    assert transport.push(source, odd, 20).code == 0
    assert transport.pull(odd, tmp_path / "back", 20).code == 0
    assert (tmp_path / "back").read_bytes() == source.read_bytes() == Path(odd).read_bytes()


def _children(parent: int) -> list[int]:
    """Processes below a process, nearest first."""
    table = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has just ended
            table.setdefault(int(fields[1]), []).append(int(entry.name))
    found, at = [parent], 0
    while at < len(found):
        found += table.get(found[at], [])
        at += 1
    return found[1:]


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


@pytest.mark.ssh
@pytest.mark.parametrize("what", ["runner", "connection"])
def test_ssh_killed_during_a_run(model, sshd, what):
    """The runner, or the server's end of the connection, dies in the middle of a long profile:
    one error that names the stage, and the next run works."""
    server = int((sshd.folder / "pid").read_text())
    device = open_address(sshd.address, sshd.config)
    home = f"{device.transport.home}/files/"
    predictor = Predictor(model, device=device, threads=1)
    feeds = image(model.graph)
    want = predictor.run(feeds)["prob"]
    killed = threading.Event()

    def kill() -> None:
        for _ in range(600):
            below = _children(server)
            runners = [p for p in below if _name(p).startswith(home)]  # not a shell before it
            if runners:
                for pid in runners if what == "runner" else below:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                killed.set()
                return
            time.sleep(0.02)

    hand = threading.Thread(target=kill)
    hand.start()
    with pytest.raises(DeviceError) as caught:
        profile(predictor, feeds, runs=500_000, warmup=0)
    hand.join()
    assert killed.is_set() and caught.value.stage == "run"
    said = str(caught.value)
    assert ("was killed (signal 9)" if what == "runner" else sshd.address) in said, said
    np.testing.assert_array_equal(predictor.run(feeds)["prob"], want)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own with half a megabyte, and a function that sets its size."""
    admin = [] if os.getuid() == 0 else ["sudo", "-n"]
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(option: str) -> subprocess.CompletedProcess:
        command = [*admin, "mount", "-t", "tmpfs", "-o", option, "tmpfs", str(folder)]
        return subprocess.run(command, capture_output=True, text=True, timeout=30)

    owner = f"uid={os.getuid()},mode=0755"
    try:
        made = mount(f"size=512k,{owner}")
    except OSError as error:
        pytest.skip(f"no file system can be mounted: {error}")
    if made.returncode:
        pytest.skip(f"no file system can be mounted: {made.stderr.strip()}")
    yield folder, lambda size: mount(f"remount,size={size},{owner}")
    subprocess.run([*admin, "umount", "-l", str(folder)], check=True, timeout=30)


@pytest.mark.ssh
def test_ssh_full_disk(model, sshd, small_disk):
    """The runner does not fit: one error with the fix, nothing half-written there; the same
    predictor runs once there is room."""
    folder, resize = small_disk
    device = open_address(sshd.address, sshd.config)
    device.transport.home = str(folder)
    predictor, feeds = Predictor(model, device=device), image(model.graph)
    with pytest.raises(DeviceError, match="free space on the device's disk") as caught:
        predictor.run(feeds)
    assert caught.value.stage == "copy" and "was not copied whole" in str(caught.value)
    assert [p for p in folder.rglob("*") if p.is_file() or p.name.startswith("run-")] == []
    assert resize("16m").returncode == 0
    want = Predictor(model, "reference").run(feeds)["prob"]
    np.testing.assert_allclose(predictor.run(feeds)["prob"], want, atol=1e-5)


@pytest.mark.parametrize(
    "address",
    ["ssh://-oProxyCommand=x", "ssh://a b", "ssh://u@h;id", "ssh://u@-h", "ssh://h:99999999",
     "adb://-s", "adb://a b", "adb://x;id", "telnet://x", "emulated:-x", "emulated:a b", ""],
)  # fmt: skip
def test_hostile_addresses(address):
    with pytest.raises(UsageError):
        open_address(address)


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
    assert main(["devices", "--json", "-"]) == 0
    listed = json.loads(capsys.readouterr().out)["devices"]
    assert [d["name"] for d in listed] == ["local", "emulated", "board"]
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
        assert len({s.attrs["band"] for s in executable.plan.steps if "band" in s.attrs}) == bands
