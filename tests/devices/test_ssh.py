"""A device reached by ssh: profiles, host keys, failures, a full disk, hostile words."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.devices import backend, check_device, open_address
from lite_engine.errors import DeviceError, UsageError
from lite_engine.profile import profile
from lite_engine.runtime import host_target

from tests.devices.runs import same_as_reference
from tests.small_models import image

pytestmark = pytest.mark.cpu


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
def test_ssh_profile_repeats_on_the_device(model, sshd, monkeypatch):
    monkeypatch.setattr(backend, "WARM_UP_S", 1)
    device = open_address(sshd.address, sshd.config)
    made = profile(Predictor(model, device=device), image(model.graph), runs=9, warmup=1)
    assert made.device == sshd.address and made.backend == host_target()
    assert len(made.samples_ms) == 9 and made.times_meaningful
    assert all(0 <= x.min_ms <= x.median_ms for x in made.layers)
    assert abs(sum(x.share for x in made.layers) - 1) < 1e-6
    assert "memory_total_bytes" in made.environment
    assert made.environment["warm_up_runs"] >= 14
    assert made.environment["warm_up_steady"] in (True, False)


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
