"""Whether a driver survives loading a compiled kernel: tried once in another process, remembered.

An intact binary (`binary_cache` sees to that) can still end the process when the driver has a
fault of its own. Nothing in this process can catch that, so before a driver's first load from the
cache another process does the same load. One verdict stands for all binaries of that device and
driver version: the fault is the driver's, not the file's. A marker file written before each load
and removed after it would find the crash only by suffering it, would cost two writes for every
program of every start, and would take a process that was killed for a driver that crashed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from lite_messages import tr

from ... import system
from ...documents import parse
from ...errors import LiteError, ModelFormatError
from ...files import write_file

_log = logging.getLogger(__name__)
TIMEOUT_S = 60
#: Signals by which a fault of the driver ends a process; any other came from outside.
_FAULTS = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE", "SIGSYS")

# argv: sys.path and build options as JSON, number of the device. The binary comes by stdin.
_TRIAL = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
import pyopencl as cl
devices = []
for platform in cl.get_platforms():
    try:
        devices += platform.get_devices()
    except cl.Error:
        pass
device = devices[int(sys.argv[3])]
try:
    program = cl.Program(cl.Context([device]), [device], [sys.stdin.buffer.read()])
    program.build(json.loads(sys.argv[2])).all_kernels()
except cl.Error:
    pass  # refused without a crash: this process can handle that itself
"""


class LoadTrial:
    """The verdict on one device and driver (`device` names them, `index` is its number)."""

    def __init__(self, folder: Path, device: Sequence[str], index: int) -> None:
        name = hashlib.blake2b("\0".join(device).encode(), digest_size=16).hexdigest()
        self.path = folder / f"driver-{name}.json"
        self.device = list(device)
        self.index = index
        self._verdict: bool | None = None

    def loads(self, binary: bytes, options: Sequence[str]) -> bool:
        """Whether binaries of this device may be loaded here. The first call of a device and
        driver ever tries `binary`, built with `options`."""
        if self._verdict is None:
            self._verdict = self._remembered()
        if self._verdict is None:
            self._verdict = self._try(binary, options)
        return self._verdict

    def _remembered(self) -> bool | None:
        """None when there is no verdict, or a damaged one."""
        try:
            verdict = parse(self.path.read_bytes(), tr("driver's verdict"))
            same = verdict["device"].into(list[str]) == self.device
            return verdict["loads"].truth() if same else None
        except (OSError, ModelFormatError):
            return None

    def _try(self, binary: bytes, options: Sequence[str]) -> bool:
        arguments = [json.dumps(sys.path), json.dumps(list(options)), str(self.index)]
        command = [sys.executable or "python3", "-c", _TRIAL, *arguments]
        try:
            done = subprocess.run(command, input=binary, capture_output=True, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return self._decide(False, tr("hung for {seconds} s", seconds=TIMEOUT_S))
        except OSError as error:
            _log.debug("no trial of loading compiled kernels: %s", error)
            return False
        if done.returncode == 0:
            return self._decide(True)
        crash = system.crash_name(done.returncode)
        if crash in _FAULTS:
            return self._decide(False, tr("crashed ({signal})", signal=crash))
        log = done.stderr.decode(errors="replace")
        _log.debug("trial of loading compiled kernels ended with %d: %s", done.returncode, log)
        return False  # proves nothing: kernels are compiled, and the next process tries again

    def _decide(self, loads: bool, reason: str = "") -> bool:
        if reason:
            _log.warning(
                "%s: the driver %s when it loaded a compiled kernel; kernels are compiled at every "
                "start until the driver changes", " ".join(self.device[:2]), reason,
            )  # fmt: skip
        content = {"device": self.device, "loads": loads, "reason": reason}
        with contextlib.suppress(OSError, LiteError):
            write_file(self.path, json.dumps(content, indent=1))
        return loads
