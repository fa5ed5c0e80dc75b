"""Long use takes no more than short use: memory, open files, threads and mappings stay constant."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from lite_engine import optimize

from tests.small_models import classifier

pytestmark = pytest.mark.cpu
#: Memory that an allocator may keep from one round to the next.
SLACK_BYTES = 6 << 20
#: Argv: the model, the rounds of each kind. The first tenth of the rounds warms up.
CHILD = """
import gc, json, os, sys, threading
from pathlib import Path
import numpy as np
import lite_workbench as lw
from lite_engine import Predictor
from lite_engine.history import History

def used():
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {"bytes": pages * os.sysconf("SC_PAGESIZE"), "files": len(os.listdir("/proc/self/fd")),
            "threads": len(os.listdir("/proc/self/task")),
            "mappings": Path("/proc/self/maps").read_text().count(sys.argv[1])}

path, *counts = sys.argv[1:]
predictor = Predictor(path, threads=2)
feeds = {"x": np.zeros((1, 3, 20, 20), np.float32)}
def infer(): predictor.run(feeds)
def load(): Predictor(path, threads=2).run(feeds)
def plan(): Predictor(path, "reference").run(feeds)
def click():
    session = lw.open(path)
    session.run(backend="x86")
    session.compare("reference", "x86")
    History().add(session.profile(backend="x86", runs=1))
    History().list()
for work, count in zip((infer, load, plan, click), map(int, counts)):
    for _ in range(count // 10 + 2):
        work()
    before = used()
    for _ in range(count):
        work()
    print(json.dumps([work.__name__, count, before, used()]), flush=True)
"""


def soak(folder: Path, *counts: int) -> list[str]:
    """What grew, and a line per kind of work."""
    path = optimize(classifier(), targets=["x86", "arm"]).save(folder / "soak.lite")
    env = os.environ | {"LITE_CACHE_DIR": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), *map(str, counts)],
        capture_output=True, text=True, env=env,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert len(lines) == len(counts)
    for line in lines:
        work, count, before, after = json.loads(line)
        grown = after.pop("bytes") - before.pop("bytes")
        assert after == before, f"{count} × {work}: {before} became {after}"
        assert grown < SLACK_BYTES, f"{count} × {work}: {grown / 1e6:.1f} MB more"
    return lines


def test_a_short_soak(tmp_path: Path) -> None:
    soak(tmp_path, 2000, 50, 10, 3)


@pytest.mark.hours
def test_a_long_soak(tmp_path: Path, capsys) -> None:
    lines = soak(tmp_path, 1_000_000, 10_000, 1000, 200)
    with capsys.disabled():
        print("\n" + "\n".join(lines))
