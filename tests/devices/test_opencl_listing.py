"""The OpenCL of a device, as the runner there lists it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from lite_engine import settings
from lite_engine.devices import RemoteDevice, arm_opencl, check_device, open_address
from lite_engine.devices.opencl import read_listing
from lite_engine.devices.remote import Answer
from lite_engine.doctor import device_check
from lite_engine.errors import DeviceError
from lite_workbench.cli import main

from tests.tools import arm_opencl as the_persons

pytestmark = pytest.mark.cpu


def local_listing():
    found = check_device(open_address("local"), opencl=True).opencl
    assert found and not found.failure and found.devices and found.chosen == found.devices[0]
    return found


def told(listing):
    """What stays the same from one listing to the next: PoCL counts the memory that is free."""
    return [listing.libraries, listing.kernels, *(d.text() for d in listing.devices)]


@pytest.mark.opencl
@pytest.mark.ssh
def test_over_ssh(sshd, monkeypatch):
    for name in ("OCL_ICD_VENDORS", "LD_LIBRARY_PATH"):  # the other machine does not have them
        monkeypatch.delenv(name, raising=False)
    checked = check_device(open_address(sshd.address, sshd.config), opencl=True)
    assert told(checked.opencl) == told(local_listing())
    assert checked.to_dict()["opencl"]["devices"][0]["extensions"]


@pytest.mark.opencl
def test_over_adb(adb):
    check, tested = device_check(open_address("adb://emu-1"))
    assert told(tested.opencl) == told(local_listing())
    assert {"opencl": tested.opencl.devices[0].text()} in check.tried


def test_without_a_driver_every_place_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    monkeypatch.setenv("LITE_OPENCL_LIBRARY", "libm.so.6")
    listing = open_address("local").opencl()
    assert not listing.devices and listing.chosen is None
    assert any(
        "libm.so.6 (LITE_OPENCL_LIBRARY): not an OpenCL library" in x for x in listing.lines()
    )


class OldBoard:
    """A transport to a board whose C library is too old for the runner."""

    name, home = "ssh://old@board", "/home/old"

    def __init__(self) -> None:
        self.sent: dict[str, int] = {}

    def call(self, command, timeout_s):
        if command[0] == "uname":
            return Answer(0, "aarch64\n", "")
        if command[0] == "wc":
            return Answer(0, str(self.sent.get(command[2], -1)), "")
        if command[0] == "mv":
            self.sent[command[3]] = self.sent[command[2]]
        if command[-1] == "--list-devices":
            said = "libc.so.6: version `GLIBC_2.99' not found (required by ./x)\n"
            return Answer(1, "", said)
        return Answer(0, "", "")

    def push(self, local, remote, timeout_s):
        self.sent[remote] = local.stat().st_size
        return Answer(0, "", "")


@pytest.mark.arm
def test_a_runner_that_does_not_start_is_a_reason():
    listing = RemoteDevice(OldBoard()).opencl()
    assert "GLIBC_2.99' not found" in listing.failure and listing.lines() == [listing.failure]


@pytest.mark.parametrize(
    "text",
    ["", "{}x", "[]", '{"devices": [{}]}', '{"libraries": 3}', '{"devices": {"a": 1}}',
     '{"devices": [{"index": "0"}]}', "[" * 100000, '{"kernels": [1]}'],
)  # fmt: skip
def test_a_damaged_list(text):
    with pytest.raises(DeviceError, match="damaged"):
        read_listing("board", text)


@pytest.mark.arm
def test_emulated_without_opencl_names_the_command(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path))
    listing = open_address("emulated").opencl()
    assert "lite devices setup emulated" in listing.failure
    assert main(["devices"]) == 0 and arm_opencl.HINT in capsys.readouterr().out
    assert main(["devices", "setup", "local"]) == 2
    assert "only the emulated device" in capsys.readouterr().err


@pytest.mark.arm_opencl
@pytest.mark.slow
def test_emulated_has_opencl(monkeypatch, tmp_path):
    """The AArch64 runner builds and runs a kernel on PoCL under qemu."""
    (tmp_path / "arm-opencl").symlink_to(the_persons())
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path))
    checked = check_device(open_address("emulated"), opencl=True)
    (device,) = checked.opencl.devices
    assert not device.reason and device.device_class == "cpu" and "libpocl" in device.library
    assert checked.opencl.kernels == open_address("local").opencl().kernels


#: Stand-ins: `apt-get download` leaves a file for each package, `dpkg -x` unpacks what PoCL has.
TOOLS = {
    "apt-get": """
test -f "$APT_CONFIG" || exit 9
if [ -n "$BROKEN" ]; then echo "E: no network" >&2; exit 100; fi
[ "$2" = download ] || exit 0
shift 2; for p; do : > "$p.deb"; done
""",
    "apt-cache": 'printf "%s\\n" $PACKAGES "  Depends: x"',
    "dpkg": """
lib="$3/usr/lib"
mkdir -p "$lib/aarch64-linux-gnu" "$3/usr/share/doc" "$lib/gcc/aarch64/12"
: > "$lib/aarch64-linux-gnu/libpocl.so.2.1"
[ -n "$NOGCC" ] || : > "$lib/gcc/aarch64/12/libgcc.a"
""",
    "aarch64-linux-gnu-ld": 'echo "$@"',
}


@pytest.fixture
def tools(tmp_path, monkeypatch):
    if arm_opencl.host_arch() == "aarch64":
        pytest.skip("this machine needs no emulator")
    place = tmp_path / "tools"
    place.mkdir()
    for name, script in TOOLS.items():
        (place / name).write_text(f"#!/bin/sh\n{script}\n")
        (place / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path / "cache dir"))
    monkeypatch.setenv(
        "PACKAGES", "pocl-opencl-icd libpocl2 clang-15 libclang1-15 binutils systemd"
    )
    return place


def test_setting_up(tools, monkeypatch):
    said = []
    assert "is set up" in arm_opencl.set_up(said.append)
    assert said == [
        "reading the package lists of AArch64", "fetching 2 packages", "unpacking 2 packages",
    ]  # fmt: skip
    root = settings.cache_dir() / "arm-opencl"
    driver = Path((root / "icds" / "pocl.icd").read_text().strip())
    assert driver.is_file() and driver.is_relative_to(root)
    assert not (root / "sysroot/usr/share/doc").exists() and not (root / "apt").exists()
    assert (root / "sysroot/lib/aarch64-linux-gnu").is_dir()  # where programs look for their loader
    linked = os.popen(f"'{root}/bin/ld' -o 'a b'").read()
    assert linked.startswith(f"--sysroot={root}/sysroot -L") and linked.endswith("-o a b\n")
    words = arm_opencl.arguments()
    assert words[:2] == ["-L", f"{root}/sysroot"] and f"OCL_ICD_VENDORS={root}/icds" in words
    monkeypatch.setenv("BROKEN", "1")  # what is there is not fetched again
    assert "is set up" in arm_opencl.set_up(said.append)


@pytest.mark.parametrize(
    ("variables", "what"),
    [
        ({"BROKEN": "1"}, "apt-get failed: E: no network"),
        ({"PACKAGES": "libpocl2"}, "have no pocl-opencl-icd for AArch64"),
        ({"NOGCC": "1"}, "the downloaded packages do not contain libgcc.a"),
    ],
)
def test_setting_up_fails_with_a_reason_and_can_be_tried_again(tools, monkeypatch, variables, what):
    with monkeypatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        with pytest.raises(DeviceError, match=what):
            arm_opencl.set_up(lambda text: None)
        assert not arm_opencl.is_set_up() and arm_opencl.arguments() == []
    assert "is set up" in arm_opencl.set_up(lambda text: None)


def test_what_setting_up_needs(tools, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "dpkg" else f"/bin/{name}")
    with pytest.raises(DeviceError, match="no dpkg here"):
        arm_opencl.set_up(lambda text: None)
    monkeypatch.setattr(shutil, "which", lambda name: None if "-ld" in name else f"/bin/{name}")
    with pytest.raises(DeviceError, match="binutils-aarch64-linux-gnu"):
        arm_opencl.set_up(lambda text: None)


def test_the_list_of_a_device_is_shown(capsys):
    code = main(["devices", "test", "local"])
    out = capsys.readouterr().out
    assert code == 0 and "    OpenCL: " in out
    assert main(["devices", "test", "local", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["opencl"]["libraries"]
