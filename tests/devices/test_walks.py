"""The pages for a board and a phone, command by command: the board is a server of ssh on this
machine, the phone the stand-in for adb, and their processor is this machine's."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from lite_engine import write_onnx
from lite_engine.runtime import host_target
from lite_workbench.cli import main

from tests.house.pages import ROOT, blocks, command_lines, image_model, photos

pytestmark = [pytest.mark.cpu, pytest.mark.opencl]


def commands(page: str) -> list[str]:
    """In the order of the page."""
    return [
        command
        for language, line, body in blocks(ROOT / page)
        if not language
        for _, command in command_lines(body, line)
    ]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model and a photo, and a registry of devices of its own."""
    monkeypatch.chdir(tmp_path)
    write_onnx(image_model(32), tmp_path / "model.onnx")
    photos(tmp_path, ["photo.jpg"])
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def typed(command: str, address: str, *options: str) -> None:
    """A command of `lite`, for a device of this machine's processor at `address`."""
    words = [re.sub(r"\barm\b", host_target(), word) for word in shlex.split(command)]
    words = [address if "://" in word else word for word in words]
    if words[1:3] == ["devices", "add"]:
        words += options
    assert main(words[1:]) == 0, command


@pytest.mark.ssh
@pytest.mark.hours
def test_the_board(place: Path, sshd) -> None:
    user, host = sshd.address.removeprefix("ssh://").split("@")
    there = f"{user}@{host.split(':')[0]}"
    # The server has no sftp, scp's way by default.
    port = {"ssh": ("-p", sshd.port), "scp": ("-O", "-P", sshd.port)}
    ran = []
    for command in commands("docs/board.md"):
        words = shlex.split(command)
        if words[0] == "lite":
            typed(command, sshd.address, "--ssh-config", sshd.config)
        else:
            words[1:] = [word.replace("pi@192.168.0.7", there) for word in words[1:]]
            words[1:1] = map(str, ("-F", sshd.config, *port[words[0]]))
            done = subprocess.run(words, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, (command, done.stdout, done.stderr)
        ran.append(words[0])
    assert ran.count("ssh") >= 3 and ran.count("scp") >= 2 and ran.count("lite") >= 8


@pytest.mark.hours
def test_the_phone(place: Path, adb: Path) -> None:
    ran = commands("docs/phone.md")
    for command in ran:
        if command.startswith("lite convert"):
            command = command.replace("opencl,arm", f"opencl,arm,{host_target()}")
        if " --device " in command or "adb://" in command:
            typed(command, "adb://emu-1")
        else:
            assert main(shlex.split(command)[1:]) == 0, command
    assert (place / "android/settings.gradle.kts").is_file()
    assert (place / "swift/Package.swift").is_file() and len(ran) >= 7
