"""Finding OpenCL: every place it may hide is tried, and every refusal is kept with its reason.

Candidates in order: LITE_OPENCL_LIBRARY, OCL_ICD_VENDORS, the ICD folders, the loaders' usual
names, and the vendors' own libraries (Mali, PowerVR, Adreno), which often come without an ICD file.
Each is opened in another process, because a broken driver may crash the one that loads it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ... import settings

ICD_FOLDERS = ("/etc/OpenCL/vendors", "/usr/share/OpenCL/vendors", "/vendor/etc/OpenCL/vendors")
LOADERS = ("libOpenCL.so.1", "libOpenCL.so")
VENDOR_NAMES = (
    "libmali.so.1", "libmali.so", "libGLES_mali.so.1", "libGLES_mali.so", "libPVROCL.so.1",
    "libPVROCL.so", "libnvidia-opencl.so.1",
)  # fmt: skip
VENDOR_PATHS = (
    "/usr/lib/aarch64-linux-gnu/libmali.so", "/usr/lib/aarch64-linux-gnu/mali/libOpenCL.so",
    "/usr/lib/aarch64-linux-gnu/libOpenCL.so", "/usr/lib/arm-linux-gnueabihf/libmali.so",
    "/vendor/lib64/libOpenCL.so", "/vendor/lib64/egl/libGLES_mali.so", "/vendor/lib64/libPVROCL.so",
    "/system/vendor/lib64/libOpenCL.so", "/system/lib64/libOpenCL.so",
    "/system/vendor/lib64/egl/libGLES_mali.so", "/vendor/lib/libOpenCL.so",
    "/system/vendor/lib/libOpenCL.so",
)  # fmt: skip
PROBE_TIMEOUT_S = 20

# Runs in a process of its own: opens each library of argv and prints one JSON line for each.
_PROBE = """
import ctypes, json, os, sys
for name in sys.argv[1:]:
    out = {"library": name}
    print(json.dumps({**out, "reason": "crashed while it was opened"}), flush=True)
    try:
        lib = ctypes.CDLL(name)
        get = getattr(lib, "clGetPlatformIDs", None)
    except AttributeError:
        get = None
    except OSError as error:
        text = str(error)
        absent = "cannot open shared object file: No such file" in text
        out["reason"] = "not there" if absent else text.replace(name + ": ", "")
        print(json.dumps(out), flush=True)
        continue
    except Exception as error:
        out["reason"] = str(error)
        print(json.dumps(out), flush=True)
        continue
    if get is None:
        entries = ("clIcdGetPlatformIDsKHR", "clGetExtensionFunctionAddress")
        icd = any(hasattr(lib, name) for name in entries)
        out["reason"] = "" if icd else "no entry point clGetPlatformIDs: not an OpenCL library"
    else:
        count = ctypes.c_uint(0)
        status = get(0, None, ctypes.byref(count))
        out["platforms"] = count.value
        out["reason"] = "" if count.value else f"no platform (clGetPlatformIDs gave {status})"
    print(json.dumps(out), flush=True)
"""


@dataclass(frozen=True)
class Attempt:
    """One candidate. `reason` is empty when it could be opened and has a platform."""

    candidate: str
    found_by: str
    reason: str

    @property
    def good(self) -> bool:
        return not self.reason


def candidates() -> list[tuple[str, str]]:
    """(library, how it came to be a candidate), each library once, in the order of preference."""
    found: list[tuple[str, str]] = []
    named = settings.get("LITE_OPENCL_LIBRARY")
    if named:
        found.append((named, "LITE_OPENCL_LIBRARY"))
    vendors = os.environ.get("OCL_ICD_VENDORS")
    if vendors:
        found += _icd_libraries(Path(vendors), "OCL_ICD_VENDORS")
    else:
        for folder in ICD_FOLDERS:
            found += _icd_libraries(Path(folder), folder)
    found += [(name, "loader") for name in LOADERS]
    found += [(name, "vendor library") for name in VENDOR_NAMES]
    found += [(path, "vendor path") for path in VENDOR_PATHS if Path(path).exists()]
    seen: dict[str, str] = {}
    for library, how in found:
        seen.setdefault(library, how)
    return list(seen.items())


def _icd_libraries(place: Path, how: str) -> list[tuple[str, str]]:
    """Libraries named by an ICD folder, one .icd file, or a library itself."""
    if place.suffix == ".icd":
        files = [place]
    elif place.is_dir():
        files = sorted(place.glob("*.icd"))
    else:
        return [(str(place), how)] if place.exists() else []
    out = []
    for file in files:
        try:
            text = file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            text = ""
        out.append((text.splitlines()[0] if text else str(file), f"{how}/{file.name}"))
    return out


@lru_cache(maxsize=4)
def _attempts(key: tuple[str | None, ...]) -> tuple[Attempt, ...]:
    how = dict(candidates())
    results: dict[str, str] = {}
    left = list(how)
    while left:
        lines = _probe(left)
        for line in lines:
            results[line["library"]] = line["reason"]
        done = [n for n in left if n in results]
        if len(done) == len(left) or not done:
            break
        left = [n for n in left if n not in results]  # after the one that crashed
    return tuple(Attempt(n, how[n], results.get(n, "could not be tried")) for n in how)


def _probe(names: list[str]) -> list[dict[str, str]]:
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE, *names],
            capture_output=True,
            text=True,
            timeout=PROBE_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        text = error.stdout or b""
        lines = (text.decode() if isinstance(text, bytes) else text).splitlines()
        return [json.loads(x) for x in lines]
    return [json.loads(x) for x in done.stdout.splitlines() if x.startswith("{")]


def attempts() -> tuple[Attempt, ...]:
    """Every candidate with what came of it. Cached for one set of variables."""
    names = ("LITE_OPENCL_LIBRARY", "OCL_ICD_VENDORS", "LD_LIBRARY_PATH")
    return _attempts(tuple(os.environ.get(n) for n in names))


def why_not() -> tuple[str, str]:
    """(reason, fix) when no candidate is good."""
    tried = attempts()
    present = [a for a in tried if a.reason and a.reason != "not there"]
    if present:
        worst = present[0]
        return (
            f"{worst.candidate} ({worst.found_by}): {worst.reason}",
            f"{fix_for(worst.reason)}",
        )
    return (
        f"no OpenCL library among {len(tried)} places",
        "sudo apt-get install pocl-opencl-icd ocl-icd-libopencl1 (CPU), or the GPU vendor's "
        "driver; a library elsewhere: LITE_OPENCL_LIBRARY=/path/libmali.so",
    )


def fix_for(reason: str) -> str:
    """What to do about the reason of an attempt."""
    if "wrong ELF class" in reason or "invalid ELF header" in reason or "file too short" in reason:
        return "the library is for another architecture or damaged: install the one for this"
    if "no platform" in reason:
        return (
            "a loader without a driver: install one (pocl-opencl-icd for the CPU), or write its "
            "library's path into /etc/OpenCL/vendors/NAME.icd"
        )
    if "entry point" in reason:
        return "unset LITE_OPENCL_LIBRARY or give the driver's library (libOpenCL.so.1, libmali.so)"
    return "reinstall the driver, or name another one with LITE_OPENCL_LIBRARY"
