"""What differs between Linux, macOS and Windows, in one place: processors, memory, signals, locks,
replaced files, folders of a person. Nobody else asks for the system's name (a house test)."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import IO

try:
    from lzma import LZMAError
except ImportError:  # left out of a Python: zipfile says so where an archive needs it

    class LZMAError(Exception):  # type: ignore[no-redef]
        """Never raised."""


WINDOWS = sys.platform == "win32"
MACOS = sys.platform == "darwin"
#: Pyodide, in a page of a browser or in Node.js: one process, and no other to lock files against.
ALONE = sys.platform == "emscripten"
LINUX = not (WINDOWS or MACOS or ALONE)
#: Endings of a library that is loaded by its path, and of a program.
LIBRARY_SUFFIX = ".dll" if WINDOWS else ".dylib" if MACOS else ".so"
PROGRAM_SUFFIX = ".exe" if WINDOWS else ""


def processors() -> int:
    """The number of processors that this process may use: of all where the system does not say. In
    a container that may use a machine only for a part of the time, as many as that time is worth,
    rounded down: more threads would use it up early in each period, and then all stand still."""
    if hasattr(os, "sched_getaffinity"):
        return min(len(os.sched_getaffinity(0)), container_limit() or sys.maxsize)
    return os.cpu_count() or 1


def container_limit(
    groups: str | None = None, mounted: Path = Path("/sys/fs/cgroup")
) -> int | None:
    """Processors' worth of time that Linux's cgroups, of version 1 or 2, give this process and
    those around it; None where they set no limit. `groups` is what /proc/self/cgroup says."""
    limits = []
    for line in (text_of("/proc/self/cgroup") if groups is None else groups).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers not in ("", "cpu", "cpu,cpuacct"):
            continue
        base = mounted / controllers
        folder = base / path.lstrip("/")
        for group in (folder, *folder.parents):
            limits.append(_limit_of(group))
            if group == base:
                break
    return min((limit for limit in limits if limit), default=None)


def _limit_of(group: Path) -> int | None:
    """Of one cgroup: cpu.max of version 2, cpu.cfs_* of version 1, in microseconds."""
    both = text_of(str(group / "cpu.max")).split() or [
        text_of(str(group / f"cpu.cfs_{name}_us")) for name in ("quota", "period")
    ]
    if len(both) != 2 or not all(number.isdecimal() and int(number) for number in both):
        return None  # "max", -1, or not there
    return max(int(both[0]) // int(both[1]), 1)


def first_line(path: str) -> str | None:
    """The first line of a file of the system, None where there is none that can be read."""
    try:
        with Path(path).open(errors="replace") as file:
            return file.readline(200)
    except OSError:
        return None


def text_of(path: str) -> str:
    """A file of the system, empty where there is none that can be read."""
    try:
        return Path(path).read_text(errors="replace").strip("\0\n ")
    except OSError:
        return ""


def cpu_fields() -> list[tuple[str, str]]:
    """What Linux lists of every processor, (name, value); [] elsewhere."""
    rows = (line.partition(":") for line in text_of("/proc/cpuinfo").splitlines())
    return [(name.strip(), value.strip()) for name, _, value in rows]


def mapped_files() -> list[str]:
    """Paths of the libraries in this process, sorted; [] where the system does not list them."""
    rows = (line.split(None, 5) for line in text_of("/proc/self/maps").splitlines())
    return sorted({row[5] for row in rows if len(row) == 6})


def peak_rss_bytes() -> int:
    """Largest resident size of this process so far; 0 where the system does not tell.

    Linux's VmHWM belongs to the program; ru_maxrss starts at what the parent held when it started
    this process, and is used where there is no /proc.
    """
    for line in text_of("/proc/self/status").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    if WINDOWS:
        return _peak_working_set()
    if ALONE:
        return 0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if MACOS else peak * 1024  # macOS counts bytes


def _peak_working_set() -> int:
    import ctypes

    class Counters(ctypes.Structure):  # PROCESS_MEMORY_COUNTERS
        _fields_ = [
            ("size", ctypes.c_uint32), ("faults", ctypes.c_uint32),
            ("peak_working_set", ctypes.c_size_t), ("others", ctypes.c_size_t * 7),
        ]  # fmt: skip

    counters = Counters(ctypes.sizeof(Counters))
    kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined]
    kernel.GetCurrentProcess.restype = ctypes.c_void_p
    call = kernel.K32GetProcessMemoryInfo
    call.argtypes = [ctypes.c_void_p, ctypes.POINTER(Counters), ctypes.c_uint32]
    known = call(kernel.GetCurrentProcess(), ctypes.byref(counters), counters.size)
    return int(counters.peak_working_set) if known else 0


#: How Windows says that a process crashed; POSIX says the signal, negative.
_EXCEPTIONS = {
    0xC0000005: "SIGSEGV", 0xC000001D: "SIGILL", 0xC0000094: "SIGFPE", 0xC00000FD: "SIGSEGV",
    0xC0000409: "SIGABRT",
}  # fmt: skip


def crash_name(returncode: int) -> str | None:
    """ "SIGSEGV" and the like for a process that crashed; None for one that ended by itself."""
    if WINDOWS:
        return _EXCEPTIONS.get(returncode & 0xFFFFFFFF)
    with contextlib.suppress(ValueError):
        return signal.Signals(-returncode).name
    return None


def cache_home() -> Path:
    """Where programs keep what they can make again, for this person."""
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given)
    if WINDOWS and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local)
    if MACOS:
        return Path.home() / "Library" / "Caches"
    return Path.home() / ".cache"


def lock_waiting(file: IO[bytes]) -> None:
    """Waits until no other process has this file locked, and locks it until it is closed."""
    if WINDOWS:
        import msvcrt
        import time

        while True:
            file.seek(0)
            try:
                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
                return
            except OSError:
                time.sleep(0.05)
    if ALONE:
        return
    import fcntl

    fcntl.flock(file, fcntl.LOCK_EX)


def try_lock(number: int) -> bool | None:
    """Locks an open file or folder; False when another process has, None where that cannot be
    known. Windows keeps an open file from being removed, which says as much."""
    if WINDOWS or ALONE:
        return None
    try:
        import fcntl

        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None


def keep_mode(number: int, mode: int) -> None:
    """Gives an open file these permissions, where the file system has such."""
    if not WINDOWS:
        with contextlib.suppress(OSError):
            os.fchmod(number, mode)


def open_folder(folder: Path) -> int | None:
    """A descriptor that keeps a lock of a folder; None where folders cannot be opened. Raises
    OSError."""
    return None if WINDOWS else os.open(folder, os.O_RDONLY)


def sync_folder(folder: Path) -> None:
    """Makes a rename last through a power cut, where the file system can."""
    if WINDOWS:
        return
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def is_root() -> bool:
    """Whether this process may do everything, as in most containers."""
    return not WINDOWS and os.geteuid() == 0
