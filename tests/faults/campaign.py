"""Verbs whose n-th file operation fails: what they say, and what they leave behind.

One server process has everything imported and forks a child for each case, so that a case costs
the verb alone. The child's file operations below one folder go through `shim.c`.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from lite_engine.model_file import read_model
from PIL import Image

from .place import Place

HERE = Path(__file__).parent
KILLED = -signal.SIGKILL
#: What the operation does instead: an error number, half a write, or the end of the process.
KINDS = {
    "ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EROFS": errno.EROFS, "EMFILE": errno.EMFILE,
    "EACCES": errno.EACCES, "EINTR": errno.EINTR, "short": -1, "killed": -2,
}  # fmt: skip
#: What `lite get` has so far, which its next call goes on with, and journals of SQLite.
DOWNLOADS = "cache/downloads/PaddlePaddle--PP-OCRv5_mobile_det/"
PASSING = (DOWNLOADS, "cache/runs.sqlite-")
SERVER = """
import contextlib, ctypes, functools, gc, importlib, io, json, os, signal, sys
from lite_workbench.cli import main
from lite_workbench.commands import available
for verb in available():
    importlib.import_module("lite_workbench.commands." + verb)
import lite_engine, lite_engine.importers.onnx, lite_engine.passes, lite_engine.plan
import lite_engine.compare, lite_engine.profile, lite_engine.quantize, lite_engine.history
import PIL.PngImagePlugin, lite_engine.backends.reference, sqlite3, numpy
import lite_workbench as lw
from lite_engine.errors import LiteError
import lite_engine.doctor.field_report
if os.environ.get("LITE_TEST_KERNELS"):  # instead of minutes for all of them
    check_apart = lite_engine.doctor.field_report.check_apart
    lite_engine.doctor.field_report.check_apart = functools.partial(
        check_apart, kernels=os.environ["LITE_TEST_KERNELS"].split())
# Short measurements: no case looks at the times.
roof, sweep = (importlib.import_module(name) for name in (
    "lite_engine.profile.roof", "lite_workbench.sweep.measure"))
roof.PRODUCT_SIDE, roof.CONV, sweep.BURST_S = 64, (32, 14, 14, 32), 0.0
roof.MEMORY_ELEMS, roof.CACHE_ELEMS = 1 << 14, 1 << 12
def session(action, *given):
    # What a notebook does, with the exit codes and the error line of a verb.
    try:
        opened = lw.open(given[0])
        if action == "save":
            opened.set_input(given[2])
            opened.profile("reference", runs=1)
        if action == "keep":
            opened.convert(targets=["x86"])
            opened.keep()
        elif action != "open":
            getattr(opened, action)(given[1])
    except LiteError as error:
        print("error:", error, file=sys.stderr)
        return 1
    return 0
shim = ctypes.CDLL(os.environ["LITE_TEST_SHIM"])
shim.fault_name.restype = ctypes.c_char_p
shim.fault_count.restype = ctypes.c_long
shim.fault_arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int]
gc.collect()
gc.freeze()  # a child that collects would copy all of this process's memory
for line in sys.stdin:
    case = json.loads(line)
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        told = os.memfd_create("stderr")
        os.dup2(told, 2); os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.chdir(case["folder"])
        os.environ["LITE_CACHE_DIR"] = case["folder"] + "/cache"
        code = -1
        try:
            shim.fault_arm(case["folder"].encode(), case["n"], case["kind"])
            verb, *given = case["call"]
            code = session(*given) if verb == "session" else main(case["call"])
        finally:
            sys.stderr.flush()
            size = os.lseek(2, 0, 2)
            answer = [code, shim.fault_count(), shim.fault_name().decode(),
                      os.pread(2, size, 0).decode(errors="replace"), sorted(sys.modules)]
            os.write(write, json.dumps(answer).encode())
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as answers:
        text = answers.read()
    _, status = os.waitpid(pid, 0)
    ended = os.waitstatus_to_exitcode(status)
    *answer, modules = json.loads(text) if text else [ended, 0, "", "", []]
    for name in set(modules) - set(sys.modules):  # so that the next child has them already
        with contextlib.suppress(ImportError):  # made by other modules
            importlib.import_module(name)
    print(json.dumps(answer), flush=True)
"""


@dataclass
class Outcome:
    code: int
    operations: int
    operation: str  # that failed
    stderr: str


class Server:
    def __init__(self, shim: Path, root: Path, hub: str) -> None:
        """`hub` is the address that `lite get` asks."""
        env = os.environ | {
            "LD_PRELOAD": str(shim), "LITE_TEST_SHIM": str(shim), "LITE_TEST_KERNELS": "softmax",
            "HF_ENDPOINT": hub, "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            # threads that wait for work would take most of the time of models as small as these
            "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
        }  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env=env, cwd=root,
        )  # fmt: skip

    def run(self, call: str, folder: Path, n: int = 0, kind: int = 0) -> Outcome:
        assert self._process.stdin and self._process.stdout
        case = {"call": call.split(), "folder": str(folder), "n": n, "kind": kind}
        print(json.dumps(case), file=self._process.stdin, flush=True)
        return Outcome(*json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(30)


def compiled_shim(folder: Path) -> Path:
    made = folder / "shim.so"
    command = ["gcc", "-shared", "-fPIC", "-O1", "-o", made, HERE / "shim.c", "-ldl"]
    subprocess.run(command, check=True)
    return made


@dataclass
class Campaign:
    """Faults of one call: how many operations it has, which failed how often, what went wrong."""

    operations: int
    failed: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)


@dataclass
class Verb:
    """A call of `lite` in a folder. With `old` its files are there from an earlier run, with `warm`
    the cache is; `first` is a call that was made before."""

    call: str
    inputs: Path
    place: Path
    old: bool = False
    warm: bool = False
    first: str = ""
    golden: dict[str, bytes] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)  # the files that a call without a fault writes
    operations: int = 0

    def __post_init__(self) -> None:
        self.files = Place(self.place)

    def prepare(self, server: Server) -> None:
        """Runs the call without a fault."""
        self._fill()
        if self.first:
            assert server.run(self.first, self.place).code == 0
        if self.old:
            self._run(server)
        before = self.files.contents()
        if self.warm:  # what was measured of this machine is known
            self._run(server)
            found = self.files.contents()
            before |= {n: data for n, data in found.items() if n.startswith("cache/")}
        self.files.keep(before)
        self.files.restore()
        self.operations = self._run(server)
        self.golden = self.files.contents()
        made = self.golden.keys() - self.files.untouched()
        self.made = {name for name in made if not name.startswith("cache/")}

    def _run(self, server: Server) -> int:
        outcome = server.run(self.call, self.place)
        assert outcome.code == 0, (self.call, outcome)
        return outcome.operations

    def _fill(self) -> None:
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(self.inputs, self.place)

    def campaign(self, server: Server, chosen: Iterable[tuple[int, str]]) -> Campaign:
        """The faults of `cases`, each from the same files."""
        made = Campaign(self.operations)
        for n, kind in chosen:
            try:
                failed = self.check(server, n, kind)
            except AssertionError as error:
                failed = "found"
                made.findings.append(str(error)[:1500])
            if failed:
                made.failed[failed] += 1
        return made

    def check(self, server: Server, n: int, kind: str) -> str:
        """The n-th operation fails; returns its name, "" where it cannot fail in this way.
        AssertionError says what went wrong."""
        self.files.restore()
        outcome = server.run(self.call, self.place, n, KINDS[kind])
        said = (self.call, n, kind, outcome)
        after = self.files.contents()
        changed = self.files.written_in_place()
        assert not changed, (f"written in place: {changed}", said)
        parts = [name for name in after if ".part" in name]
        if outcome.code == KILLED:
            assert kind == "killed", said
        else:
            assert outcome.code in (0, 1, 2), said
            assert not parts or outcome.operation in ("unlink", "unlinkat", "rmdir", "open"), said
        self._check_files(after, said)
        if outcome.code == 0:
            missing = [f for f in self.golden if f not in after and not f.startswith("cache/")]
            assert not missing, (missing, said)
            old = self.made & self.files.untouched()
            assert not old, (f"not written: {old}", said)
        elif outcome.code > 0:
            self._check_message(outcome, said)
        if parts or outcome.code == KILLED:  # the next call cleans up, and succeeds
            again = server.run(self.call, self.place)
            left = [n for n in self.files.contents() if ".part" in n or n.startswith(DOWNLOADS)]
            finished = all(after.get(name) == data for name, data in self.golden.items())
            assert (again.code == 0 or finished) and not left, (left, again, said)
            assert not self.files.written_in_place(), ("written in place", again, said)
        return "killed" if outcome.code == KILLED else outcome.operation

    def _check_files(self, after: dict[str, bytes], said: object) -> None:
        before = self.files.before
        for name, data in after.items():
            if ".part" in name or data in (before.get(name), self.golden.get(name)):
                continue
            known = name in self.golden or name in before
            passing = name.startswith(PASSING)
            assert passing or known, (f"left behind: {name}", said)
            assert passing or whole(self.place / name), (f"not whole: {name}", said)
        gone = [name for name in before if name not in after]
        assert not gone, (f"gone: {gone}", said)

    def _check_message(self, outcome: Outcome, said: object) -> None:
        lines = outcome.stderr.splitlines()
        errors = [line for line in lines if not line.startswith(("history ", "warning: "))]
        assert len(errors) == 1 and errors[0].startswith("error: "), said
        words = {part for word in self.call.split() for part in (word, word.partition(":")[0])}
        own = [word for word in words if "/" in word or "." in word]
        assert any(word in errors[0] for word in [*own, str(self.place)]), said
        assert ".part" not in errors[0] and "internal error" not in errors[0], said


def whole(path: Path) -> bool:
    """Whether a file that differs from run to run (it holds times) is complete."""
    if path.suffix in (".json", ".ipynb"):
        return bool(json.loads(path.read_text()))
    if path.suffix == ".csv":
        return path.read_text().endswith("\n")
    if path.suffix == ".html":
        return path.read_text().rstrip().endswith("</html>")
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return all(arrays[name] is not None for name in arrays)
    if path.suffix == ".png":
        with Image.open(path, formats=["PNG"]) as image:
            image.load()
        return True
    if path.suffix == ".liteproject":
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    if path.suffix == ".lite":
        return bool(read_model(path).graph.nodes)
    if path.suffix == ".sqlite":
        with closing(sqlite3.connect(path)) as db:
            return db.execute("pragma integrity_check").fetchone() == ("ok",)
    return path.suffix == ".lock"


def cases(verb: Verb, kinds: Iterable[str], every: int = 1) -> list[tuple[int, str]]:
    """(n, kind) of a campaign; `every` takes some of them, evenly."""
    found = [(n, kind) for n in range(1, verb.operations + 1) for kind in kinds]
    return found[::every]
