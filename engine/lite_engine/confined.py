"""A process that may compute and read, and no more: it writes no file, starts no program, opens no
connection and signals no other process. For what runs code of a file's maker.

Linux holds it to that, on x86-64 and AArch64, with a filter of system calls (seccomp), which stays
for the life of the process and of all its threads.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from dataclasses import dataclass

from .system import LINUX

#: Of linux/prctl.h, linux/seccomp.h and linux/sched.h.
_NO_NEW_PRIVS, _SET_MODE_FILTER, _ALL_THREADS = 38, 1, 1
_KILL, _REFUSE, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_CLONE_THREAD = 0x10000
#: open(2) for anything but reading.
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
#: Calls that have one number everywhere: pidfd_send_signal, io_uring_setup, the mounts of file
#: descriptors, pidfd_getfd, fchmodat2, setxattrat and removexattrat.
_SHARED = (424, 425, 428, 429, 430, 431, 432, 433, 438, 452, 463, 466)
#: clone3 and openat2 hide their flags from a filter: their callers fall back to clone and openat.
_UNKNOWN = (435, 437)


@dataclass(frozen=True)
class _Machine:
    """Numbers of asm/unistd.h. `refused` has what writes, starts, connects, signals, mounts, or
    reads other processes; `opens` maps calls to the place of their flags."""

    audit: int
    seccomp: int
    clone: int
    opens: dict[int, int]
    refused: tuple[int, ...]


_MACHINES = {
    "x86_64": _Machine(
        0xC000003E, 317, 56, {2: 1, 257: 2},
        (41, 42, 57, 58, 59, 62, 76, 77, 82, 83, 84, 85, 86, 87, 88, 90, 91, 92, 93, 94, 101, 132,
         133, 165, 166, 188, 189, 190, 197, 198, 199, 200, 234, 235, 248, 249, 250, 258, 259, 260,
         261, 263, 264, 265, 266, 268, 272, 280, 285, 298, 304, 308, 310, 311, 316, 321, 322, 323),
    ),
    "aarch64": _Machine(
        0xC00000B7, 277, 220, {56: 2},
        (5, 6, 7, 14, 15, 16, 33, 34, 35, 36, 37, 38, 39, 40, 45, 46, 47, 52, 53, 54, 55, 88, 97,
         117, 129, 130, 131, 198, 203, 217, 218, 219, 221, 241, 265, 268, 270, 271, 276, 280, 281,
         282),
    ),
}  # fmt: skip


def _filter(machine: _Machine) -> bytes:
    """The filter's program: (code, jump if true, jump if false, value) of each line."""
    load, equal, above, any_of, answer = 0x20, 0x15, 0x35, 0x45, 0x06
    refuse = (answer, 0, 0, _REFUSE | errno.EPERM)
    lines = [
        (load, 0, 0, 4), (equal, 1, 0, machine.audit), (answer, 0, 0, _KILL),
        (load, 0, 0, 0), (above, 0, 1, 0x40000000), refuse,  # x32's numbers
    ]  # fmt: skip
    for number in (*machine.refused, *_SHARED):
        lines += [(equal, 0, 1, number), refuse]
    for number in _UNKNOWN:
        lines += [(equal, 0, 1, number), (answer, 0, 0, _REFUSE | errno.ENOSYS)]
    for number, place in machine.opens.items():
        lines += [(equal, 0, 4, number), (load, 0, 0, 16 + 8 * place), (any_of, 0, 1, _WRITES),
                  refuse, (answer, 0, 0, _ALLOW)]  # fmt: skip
    lines += [(equal, 0, 3, machine.clone), (load, 0, 0, 16), (any_of, 1, 0, _CLONE_THREAD), refuse,
              (answer, 0, 0, _ALLOW)]  # fmt: skip
    return b"".join(struct.pack("<HBBI", *line) for line in lines)


class _Program(ctypes.Structure):
    _fields_ = (("count", ctypes.c_ushort), ("code", ctypes.c_char_p))


def can_confine() -> bool:
    return LINUX and platform.machine() in _MACHINES


def confine() -> bool:
    """Confines this process from here on; False where the system cannot."""
    if not can_confine():
        return False
    machine = _MACHINES[platform.machine()]
    code = _filter(machine)
    program, libc = _Program(len(code) // 8, code), ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    call = (machine.seccomp, _SET_MODE_FILTER, _ALL_THREADS)
    return bool(libc.syscall(*call, ctypes.byref(program)) == 0)
