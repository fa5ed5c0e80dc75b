"""A confined process computes and reads; whatever else it tries is refused (confined.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from lite_engine.confined import can_confine

pytestmark = [
    pytest.mark.cpu,
    pytest.mark.skipif(not can_confine(), reason="Linux on x86-64 and AArch64 confine"),
]
#: Argv: a folder with the file `kept`. Prints what was not refused.
CHILD = """
import os, signal, socket, subprocess, sys, threading
from pathlib import Path
from lite_engine.confined import confine
waiting, done = threading.Event(), []
def late():
    waiting.wait()
    attempt("another thread writes", (folder / "thread").write_text, "x")
def attempt(name, work, *given):
    try:
        work(*given)
    except PermissionError:
        return
    print(name, flush=True)
folder = Path(sys.argv[1])
earlier = threading.Thread(target=late)
earlier.start()
assert confine()
waiting.set()
earlier.join()
kept, new = folder / "kept", folder / "new"
for name, work, *given in (
    ("writes", kept.write_text, "x"), ("appends", open, kept, "a"), ("makes", open, new, "x"),
    ("creates", os.open, new, os.O_CREAT), ("truncates", os.truncate, kept, 0),
    ("removes", kept.unlink), ("renames", kept.rename, new), ("folder", new.mkdir),
    ("links", os.link, kept, new), ("symlinks", os.symlink, kept, new),
    ("mode", kept.chmod, 0o777), ("times", os.utime, kept), ("owner", os.chown, kept, 0, 0),
    ("socket", socket.socket), ("local socket", socket.socket, socket.AF_UNIX),
    ("program", subprocess.run, ["/bin/true"]), ("exec", os.execv, "/bin/true", ["true"]),
    ("fork", os.fork), ("signal", os.kill, os.getppid(), 0),
    ("attribute", os.setxattr, kept, "user.a", b""),
):
    attempt(name, work, *given)
assert kept.read_text() == "kept" and os.listdir(folder) == ["kept"]
worker = threading.Thread(target=lambda: done.append(sum(range(10))))
worker.start()
worker.join()
print("computed", done, flush=True)
"""


def test_only_computing_and_reading_is_left(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("kept")
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path)], capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "computed [45]\n" and done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / "kept").read_text() == "kept"
