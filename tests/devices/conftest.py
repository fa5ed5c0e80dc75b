"""A real ssh server on loopback and a stand-in for adb, both in temporary folders."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from lite_engine import optimize
from lite_engine.devices import backend

from tests.small_models import classifier


def keygen(path: Path) -> Path:
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True, timeout=30
    )
    return path


@pytest.fixture(scope="session")
def sshd(tmp_path_factory):
    """port, config (an OpenSSH client configuration that knows the server), folder, stop()."""
    server = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin")
    folder = tmp_path_factory.mktemp("sshd")
    host, user = keygen(folder / "host"), keygen(folder / "user")
    (folder / "authorized").write_text((folder / "user.pub").read_text())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {host}\nPidFile {folder}/pid\n"
        f"AuthorizedKeysFile {folder}/authorized\nStrictModes no\nUsePAM no\n"
        "PasswordAuthentication no\nPermitRootLogin prohibit-password\n"
        # A home of its own: files that are sent stay, and other test processes send theirs.
        f'ForceCommand cd {folder}/home && eval "$SSH_ORIGINAL_COMMAND"\n'
    )
    (folder / "home").mkdir()
    key = (folder / "host.pub").read_text()
    (folder / "known").write_text(f"[127.0.0.1]:{port} {key}")
    config = folder / "config"
    config.write_text(
        f"IdentityFile {user}\nIdentitiesOnly yes\nUserKnownHostsFile {folder}/known\n"
        "GlobalKnownHostsFile /dev/null\n"
    )
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # sshd's own need when it starts as root
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [server, "-D", "-e", "-f", str(folder / "sshd_config")], stdout=log, stderr=log
        )
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.05)
    else:
        process.kill()
        pytest.fail(f"sshd did not start: {(folder / 'log').read_text()}")
    yield SimpleNamespace(
        address=f"ssh://{getpass.getuser()}@127.0.0.1:{port}",
        port=port,
        config=str(config),
        folder=folder,
    )
    process.terminate()
    process.wait(10)


ADB = """#!/bin/sh
# Stands in for adb: one device "emu-1" whose /data/local/tmp is a folder here.
[ "$1" = -s ] || exit 1
[ "$2" = emu-1 ] || { echo "error: device '$2' not found" >&2; exit 1; }
verb=$3; shift 3
there() { printf %s "$1" | sed "s#/data/local/tmp#$FAKE_PHONE#g"; }
case $verb in
  shell) exec sh -c "$(there "$1")" ;;
  push) [ -z "$FAKE_FULL" ] || { echo "adb: error: failed to copy: No space left on device" >&2
          exit 1; }
        cp "$1" "$(there "$2")" ;;
  pull) cp "$(there "$1")" "$2" ;;
esac
"""


@pytest.fixture
def adb(tmp_path, monkeypatch):
    """The stand-in's folder for /data/local/tmp; `adb` is on the PATH."""
    tools, phone = tmp_path / "tools", tmp_path / "phone"
    tools.mkdir()
    phone.mkdir()
    (tools / "adb").write_text(ADB)
    (tools / "adb").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_PHONE", str(phone))
    return phone


@pytest.fixture
def model():
    return optimize(classifier(), targets=["x86", "arm", "wasm"])


@pytest.fixture(autouse=True)
def _cold(monkeypatch):
    """Nothing here depends on steady times, for which a device warms up a few seconds at each
    profile; test_ssh.py tests the warm-up."""
    monkeypatch.setattr(backend, "WARM_UP_S", 0)
