"""Opening an OpenCL library: what came of it, told apart by kind, with the fix for each.

Libraries are opened in another process, because a broken driver may crash or stop the one that
loads it.
"""

from __future__ import annotations

import json
import platform
import re
import shlex
import struct
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lite_messages import tr

from ... import system

TIMEOUT_S = 60  # from a cold card a driver and its compiler take tens of seconds

# Opens each library of argv in turn and prints one JSON line for each.
_PROBE = """
import ctypes, json, sys
def tell(**line):
    print(json.dumps(line), flush=True)
for name in sys.argv[1:]:
    try:
        lib = ctypes.CDLL(name)
    except OSError as error:
        tell(library=name, kind="refused", detail=str(error))
        continue
    get = getattr(lib, "clGetPlatformIDs", None)
    if get is None:
        entries = ("clIcdGetPlatformIDsKHR", "clGetExtensionFunctionAddress")
        icd = any(hasattr(lib, entry) for entry in entries)
        tell(library=name, kind="opened" if icd else "not_opencl", detail="")
        continue
    count = ctypes.c_uint(0)
    status = get(0, None, ctypes.byref(count))
    kind = "opened" if count.value else "no_platform"
    tell(library=name, kind=kind, detail=f"clGetPlatformIDs returned {status}")
"""

_MACHINES = {3: tr("32-bit x86"), 40: tr("32-bit ARM"), 62: "x86-64", 183: "AArch64", 243: "RISC-V"}
_NAMES = {"x86_64": 62, "amd64": 62, "aarch64": 183, "arm64": 183, "armv7l": 40, "i686": 3}


@dataclass(frozen=True)
class Opening:
    """`kind`: opened, missing, dependency, architecture, damaged, permission, crashed, hung,
    not_opencl, no_platform or refused. `reason` is empty when it was opened."""

    kind: str
    reason: str = ""
    fix: str = ""


def open_all(names: Sequence[str]) -> dict[str, Opening]:
    """Each library with what came of opening it."""
    found: dict[str, Opening] = {}
    while left := [n for n in names if n not in found]:
        lines, end = _probe(left)
        for line in lines:
            found[line["library"]] = _opening(line["library"], line["kind"], line["detail"])
        rest = [n for n in left if n not in found]
        if rest:
            found[rest[0]] = end  # they are opened in order: the first one without an answer
    return found


def _probe(names: Sequence[str]) -> tuple[list[dict[str, str]], Opening]:
    """The lines of a process that opens these libraries, and how it ended."""
    command = [sys.executable, "-c", _PROBE, *names]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace"
    )
    try:
        said, _ = process.communicate(timeout=TIMEOUT_S)
        end = _crashed(process.returncode)
    except subprocess.TimeoutExpired:
        process.kill()
        said, _ = process.communicate()
        end = Opening(
            "hung",
            tr("did not finish opening within {timeout_s} s", timeout_s=TIMEOUT_S),
            tr(
                "restart the device or its driver, or name another library with LITE_OPENCL_LIBRARY"
            ),
        )
    return [json.loads(x) for x in said.splitlines() if x.startswith('{"library"')], end


def _crashed(status: int) -> Opening:
    how = system.crash_name(status) or tr("exit status {status}", status=status)
    return Opening(
        "crashed", tr("crashed while it was opened ({how})", how=how),
        tr("reinstall the driver, or name another library with LITE_OPENCL_LIBRARY"),
    )  # fmt: skip


def _opening(name: str, kind: str, detail: str) -> Opening:
    if kind == "opened":
        return Opening("opened")
    if kind == "not_opencl":
        return Opening(
            kind,
            tr("not an OpenCL library: it has no entry point clGetPlatformIDs"),
            tr(
                "unset LITE_OPENCL_LIBRARY, or name the driver's library "
                "(libOpenCL.so.1, libmali.so)"
            ),
        )
    if kind == "no_platform":
        return Opening(
            kind,
            tr("no platform ({detail}): a loader without a driver", detail=detail),
            tr(
                "install a driver (CPU: sudo apt-get install pocl-opencl-icd), or "
                "write its library's path into /etc/OpenCL/vendors/NAME.icd"
            ),
        )
    return _refused(name, detail)


def _refused(name: str, said: str) -> Opening:
    """What the system's loader said. It names the file that it could not use, which is `name`, one
    that it found under that name, or one that it needs."""
    file, _, why = said.partition(": ")
    own = Path(file).name == Path(name).name
    if "No such file" in why and not own:
        return Opening(
            "dependency",
            tr("needs {file}, which is not installed", file=file),
            tr(
                "install the package that has {file}, or add its folder to LD_LIBRARY_PATH",
                file=file,
            ),
        )
    path = Path(file if own else name)
    if "No such file" in why and not path.exists():
        return Opening("missing", tr("no such library"))
    machine = _machine_of(path)
    if "wrong ELF class" in why or (machine is not None and machine != _this_machine()):
        built = tr(" for {machine}", machine=_MACHINES[machine]) if machine in _MACHINES else ""
        return Opening(
            "architecture",
            tr(
                "{path} was built{built}, this machine is {machine}",
                path=path,
                built=built,
                machine=platform.machine(),
            ),
            tr("install the driver for {machine}", machine=platform.machine()),
        )
    if "Permission denied" in why:
        return Opening(
            "permission",
            tr("{path} may not be read", path=path),
            f"sudo chmod a+rx {shlex.quote(str(path))}",
        )
    if re.search("invalid ELF header|file too short|cannot read file data", why):
        return Opening(
            "damaged",
            tr("{path} is damaged ({why})", path=path, why=why),
            tr("reinstall the driver"),
        )
    return Opening(
        "refused", why or said,
        tr("reinstall the driver, or name another library with LITE_OPENCL_LIBRARY"),
    )  # fmt: skip


def _machine_of(path: Path) -> int | None:
    """The machine that an ELF file is for (e_machine), None for other files."""
    try:
        with path.open("rb") as file:
            head = file.read(20)
    except OSError:
        return None
    if len(head) < 20 or head[:4] != b"\x7fELF":
        return None
    return int(struct.unpack("<H" if head[5] == 1 else ">H", head[18:20])[0])


def _this_machine() -> int | None:
    return _NAMES.get(platform.machine().lower())
