"""A process that may have only so much memory: each verb does its work, or says in one line that
there is too little, and leaves nothing half written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from lite_engine.exporters.onnx import write_bytes
from lite_engine.ir import DType, Graph, Value

from .campaign import whole

pytestmark = pytest.mark.cpu
#: One process imports everything; a child of it gets what it has plus so many MB.
CHILD = """
import json, os, resource, sys
from lite_workbench.cli import main
from lite_workbench.commands import available
import importlib
for verb in available():
    importlib.import_module("lite_workbench.commands." + verb)
import lite_engine.importers.onnx, lite_engine.passes, lite_engine.plan, lite_engine.profile
import lite_engine.backends.reference, lite_engine.quantize, numpy as np
def once(words, more=None):
    if more is not None:
        pages = int(open("/proc/self/statm").read().split()[0])
        most = pages * os.sysconf("SC_PAGESIZE") + (more << 20)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    return main(words)
for line in sys.stdin:
    words, more = json.loads(line)
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        told = os.memfd_create("stderr")
        os.dup2(told, 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = -1
        try:
            code = once(words, more)
        finally:
            sys.stderr.flush()
            text = os.pread(2, os.lseek(2, 0, 2), 0).decode(errors="replace")
            os.write(write, json.dumps([code, text]).encode())
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as answers:
        text = answers.read()
    _, status = os.waitpid(pid, 0)
    print(text.decode() or json.dumps([os.waitstatus_to_exitcode(status), ""]), flush=True)
"""
CALLS = {
    "run": "run m.onnx --backend reference --output out/y.npz",
    "run_native": "run m.onnx --backend x86 --threads 1 --output out/y.npz",
    "convert": "convert m.onnx -o out/m.lite --targets x86",
    "info": "info m.onnx --json out/i.json",
    "profile": "profile m.onnx --backend reference --runs 1 --warmup 0 --json out/p.json",
}


def wide(folder: Path) -> None:
    """Layers of 8 MB each, and a weight of 8 MB."""
    graph = Graph("wide")
    x = Value("x", DType.F32, (1, 2 << 20))
    w = Value("w", DType.F32, (1, 2 << 20), const=np.ones((1, 2 << 20), np.float32))
    graph.inputs = [x]
    for op in ("Add", "Mul", "Sub", "Add"):
        x = graph.add(op, [x, w], {}, name=f"{op}{len(graph.nodes)}").output
    graph.outputs = [x]
    (folder / "m.onnx").write_bytes(write_bytes(graph))


@pytest.fixture
def child(tmp_path: Path):
    wide(tmp_path)
    env = {**os.environ, "LITE_CACHE_DIR": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1",
           "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=env, cwd=tmp_path,
    )  # fmt: skip

    def call(words: str, more: int | None) -> tuple[int, str]:
        assert process.stdin and process.stdout
        print(json.dumps([words.split(), more]), file=process.stdin, flush=True)
        return tuple(json.loads(process.stdout.readline()))

    yield call
    process.stdin.close()
    process.wait(30)


def limited(call, words: str, folder: Path, sizes) -> tuple[int, int]:
    """(runs that ended with an error, runs that did their work)."""
    assert call(words, None) == (0, call(words, None)[1])
    refused = done = 0
    for more in sizes:
        for file in (folder / "out").glob("*"):
            file.unlink()
        code, said = call(words, more)
        lines = [line for line in said.splitlines() if not line.startswith("warning: ")]
        left = [file.name for file in (folder / "out").glob("*")]
        told = f"{words} with {more} MB: {code}, {said!r}, {left}"
        if code == 0:
            done += 1
            assert not lines and left, told
            continue
        refused += 1
        assert code == 1 and len(lines) == 1 and lines[0].startswith("error: "), told
        assert "memory" in lines[0] and "internal" not in lines[0], told
        assert all(whole(folder / "out" / name) for name in left), told
    return refused, done


@pytest.mark.parametrize("name", ["run", "convert"])
def test_some_limits(name: str, child, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    refused, done = limited(child, CALLS[name], tmp_path, (2, 24, 40, 400))
    assert refused and done


@pytest.mark.hours
@pytest.mark.parametrize("name", CALLS)
def test_every_limit(name: str, child, tmp_path: Path, capsys) -> None:
    (tmp_path / "out").mkdir()
    refused, done = limited(child, CALLS[name], tmp_path, range(200))
    with capsys.disabled():
        print(f"\n{name}: {refused} refused, {done} done")
    assert refused and done
