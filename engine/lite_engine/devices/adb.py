"""adb://serial: an Android device through the Android Debug Bridge."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from lite_messages import tr

from ..errors import DeviceError, UsageError
from .remote import Answer

_ADDRESS = re.compile(r"adb://(?P<serial>[A-Za-z0-9][A-Za-z0-9._:-]*)/?")
#: What adb says → what to do.
_FIXES = (
    ("unauthorized", tr("allow debugging on the device's screen")),
    ("offline", tr("unplug it and plug it in again")),
    ("not found", tr("`adb devices` lists the serial numbers")),
    ("no devices", tr("plug it in and switch on USB debugging")),
    ("device unauthorized", tr("allow debugging on the device's screen")),
    ("closed", tr("the connection was lost: check the cable, then try again")),
)


class AdbTransport:
    """Commands and files through `adb -s serial`."""

    home = "/data/local/tmp/lite-workbench"

    def __init__(self, address: str) -> None:
        """Raises UsageError."""
        match = _ADDRESS.fullmatch(address)
        if not match:
            raise UsageError(
                tr("{address!r} is not of the form adb://SERIAL", address=address),
                fix=tr("list them"),
                command="adb devices",
            )
        self.name = address
        self._serial = match["serial"]

    def call(self, command: Sequence[str], timeout_s: float) -> Answer:
        return self._adb(["shell", shlex.join(command)], timeout_s)

    def push(self, local: Path, remote: str, timeout_s: float) -> Answer:
        return self._adb(["push", str(local), remote], timeout_s)

    def pull(self, remote: str, local: Path, timeout_s: float) -> Answer:
        return self._adb(["pull", remote, str(local)], timeout_s)

    def _adb(self, arguments: Sequence[str], timeout_s: float) -> Answer:
        tool = shutil.which("adb")
        if tool is None:
            raise DeviceError(
                tr("adb is not installed"), where=self.name, command="sudo apt-get install adb"
            )
        try:
            done = subprocess.run(
                [tool, "-s", self._serial, *arguments],
                stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise DeviceError(
                tr("no answer within {timeout_s:.0f} s", timeout_s=timeout_s), where=self.name
            ) from None
        stdout, stderr = (x.decode("utf-8", "replace") for x in (done.stdout, done.stderr))
        lines = [x.strip() for x in stderr.splitlines() if x.strip()]
        # adb's own failures start like this; everything else came from the device's shell.
        if done.returncode and lines and lines[-1].startswith(("adb: device", "error:", "adb: no")):
            fix = next((f for said, f in _FIXES if said in lines[-1]), tr("try `adb devices`"))
            raise DeviceError(lines[-1].removeprefix("error: "), where=self.name, fix=fix)
        return Answer(done.returncode, stdout, stderr)
