"""No verb opens a network socket unless it is asked to: the kernel ends a process that does.

A seccomp filter holds for the native library and for every process that is started, too.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from lite_workbench.commands import available

MACHINES = {"x86_64": (41, 0xC000003E), "aarch64": (198, 0xC00000B7)}  # socket(2), AUDIT_ARCH
pytestmark = [
    pytest.mark.cpu,
    pytest.mark.skipif(
        sys.platform != "linux" or platform.machine() not in MACHINES,
        reason="the filter is written for Linux on x86-64 and AArch64",
    ),
]
SAMPLES = "digits_held_back.npz"
CALLS = (
    "--help",
    "doctor",
    "info digits.onnx --layers",
    "convert digits.onnx -o m.lite --targets x86,arm",
    "opt --model_file digits.onnx --optimize_out b",
    f"quantize digits.onnx -o q.lite --calibration {SAMPLES} --samples 2 --targets x86",
    "run m.lite --input digits.png --output r.npz",
    "profile m.lite --backend x86 --runs 1 --warmup 0",
    "compare digits.onnx --backends reference,x86",
    "diff digits.onnx digits.onnx",
    "edit digits.onnx -o d.onnx --batch 2",
    f"evaluate digits.onnx --data {SAMPLES} --limit 2 --backend reference",
    "sweep digits.onnx --backends x86 --rounds 1",
    f"recommend digits.onnx --data {SAMPLES} --limit 2 -o r.lite --max-drop 100% --backends x86 "
    "--try weights",
    f"prune digits.onnx -o p.lite --calibration {SAMPLES} --samples 2 --sparsity 0.5 --no-measure "
    "--force --targets x86",
    "tune digits.onnx --backend cpu -o t.lite",
    "pipeline ocr.onnx --image ocr_total.png --backend x86",
    "get",
    "runs list",
    "devices add board ssh://me@board",
    "devices list",
    "export m.lite -o e --target x86 --no-report",
    "report m.lite -o r.html --backends x86 --runs 1",
)
#: Argv: the call. The filter ends the process (SIGSYS) at socket() of any family but AF_UNIX.
CHILD = f"""
import ctypes, struct, sys
number, machine = {MACHINES.get(platform.machine())}
code = b"".join(struct.pack("<HBBI", *line) for line in (
    (0x20, 0, 0, 4), (0x15, 0, 4, machine),      # another architecture's calls are not looked at
    (0x20, 0, 0, 0), (0x15, 0, 2, number),
    (0x20, 0, 0, 16), (0x15, 0, 1, 1),           # the family, 1 is AF_UNIX
    (0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x80000000)))
class Program(ctypes.Structure):
    _fields_ = (("count", ctypes.c_ushort), ("code", ctypes.c_char_p))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0, "PR_SET_NO_NEW_PRIVS"
program = Program(len(code) // 8, code)
assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0, "PR_SET_SECCOMP"
if sys.argv[1:] == ["socket"]:
    import socket
    socket.socket(socket.AF_UNIX).close()
    print("local sockets are allowed", flush=True)
    socket.socket(socket.AF_INET)
from lite_workbench.cli import main
for call in sys.argv[1:]:
    assert main(call.split()) == 0, call
"""


def filtered(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"LITE_CACHE_DIR": str(folder / "cache"), "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-c", CHILD, *arguments], cwd=folder, env=env, capture_output=True,
        text=True, timeout=600,
    )  # fmt: skip


def test_the_filter_sees_a_socket(tmp_path: Path) -> None:
    done = filtered(tmp_path, "socket")
    assert done.stdout == "local sockets are allowed\n" and done.returncode == -31, done.stderr


def test_every_verb_is_called() -> None:
    """But for the one that starts a server."""
    assert {call.split()[0] for call in CALLS} - {"--help"} == set(available()) - {"lab"}


def test_no_verb_opens_one(root: Path, tmp_path: Path) -> None:
    for name in ("digits.onnx", "digits.png", SAMPLES, "ocr.onnx", "ocr_total.png"):
        shutil.copy(root / "notebooks" / "models" / name, tmp_path)
    done = filtered(tmp_path, *CALLS)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:], done.stdout[-500:])
