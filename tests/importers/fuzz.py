"""Damaged files of every format, read in a process of their own under limits.

    python -m tests.importers.fuzz FORMAT [COUNT [SEED]]

makes a small good model, damages one of its files in COUNT ways, reads each result as `lite info`
does (import, passes, support table), plans what it can for the CPU, and prints one JSON line: how
often what came out, the slowest reading, the memory it took. A file that leads to anything but a
Graph or a LiteError, takes longer than SECONDS or needs more than MEGABYTES is kept in the folder
that the line names.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
from lite_engine.errors import LiteError, ShapeError, UnsupportedOperatorError
from lite_engine.importers import load
from lite_engine.model_file.naive_buffer import write_nb
from lite_engine.passes import optimize_graph
from lite_engine.plan import make_plan
from lite_engine.plan.program import WeightTable, encode
from lite_engine.runtime.support import model_info
from lite_engine.system import LINUX, peak_rss_bytes

from tests.importers import nb_files, paddle_files, tiny_caffe, tiny_pir, tiny_tflite
from tests.importers import tiny_tensorflow as tf
from tests.importers.wire import damaged

SECONDS = 5
MEGABYTES = 300
#: Where mutants are written: in memory where the system has such a folder.
SCRATCH = next((place for place in ("/dev/shm",) if Path(place).is_dir()), None)


class TooSlow(BaseException):
    """Not an Exception: nothing on the way may take it for a damaged file."""


# ---- good models: each writes a folder and answers what to load and which files to damage


def _paddle(folder: Path) -> tuple[Path, list[str]]:
    return paddle_files.small_network().save(folder), ["inference.pdmodel", "inference.pdiparams"]


def _pir(folder: Path) -> tuple[Path, list[str]]:
    return tiny_pir.save(folder), ["inference.json", "inference.pdiparams"]


def _naive_buffer(convert: Callable[[bytes], bytes]) -> Callable[[Path], tuple[Path, list[str]]]:
    def make(folder: Path) -> tuple[Path, list[str]]:
        path = write_nb(load(paddle_files.small_network().save(folder)), folder / "m.nb")
        path.write_bytes(convert(path.read_bytes()))
        return path, ["m.nb"]

    return make


def _file(name: str, data: Callable[[], bytes]) -> Callable[[Path], tuple[Path, list[str]]]:
    def make(folder: Path) -> tuple[Path, list[str]]:
        (folder / name).write_bytes(data())
        return folder / name, [name]

    return make


def _onnx() -> bytes:
    from tests.importers.tiny_onnx import small_model  # needs the onnx package

    return small_model()


def _caffe(folder: Path) -> tuple[Path, list[str]]:
    return tiny_caffe.save(folder), ["net.prototxt", "net.caffemodel"]


def _saved_model(folder: Path) -> tuple[Path, list[str]]:
    tf.small_saved_model(folder)
    return folder, ["saved_model.pb", "variables/variables.index"]


MODELS: dict[str, Callable[[Path], tuple[Path, list[str]]]] = {
    "paddle": _paddle,
    "pir": _pir,
    "nb2": _naive_buffer(bytes),
    "nb1": _naive_buffer(nb_files.meta_1),
    "nb0": _naive_buffer(nb_files.meta_0),
    "onnx": _file("m.onnx", _onnx),
    "tflite": _file("m.tflite", tiny_tflite.conv_model),
    "tflite_int8": _file("m.tflite", lambda: tiny_tflite.conv_model(True)),
    "tflite_ssd": _file("m.tflite", lambda: tiny_tflite.detection_model(False)),
    "tflite_metadata": _file("m.tflite", lambda: tiny_tflite.metadata_model(b"a\nb")),
    "tensorflow": _file("m.pb", tf.small_graph),
    "saved_model": _saved_model,
    "caffe": _caffe,
}

# ---- damage

_LIES = ("-1", "0", "1e400", "nan", str(1 << 31), str(1 << 63), "7" * 40, '"x"', "{", "}", "[", "")


def _damaged_text(text: str, rng: np.random.Generator) -> str:
    """Some words replaced by values that lie, or by other words of the text, or repeated."""
    words = re.findall(r"\w[\w.]*|\s+|[^\w\s]", text)
    solid = [i for i, word in enumerate(words) if not word.isspace()]
    for at in rng.choice(solid, int(rng.integers(1, 4))):
        choice = rng.integers(4)
        if choice == 0:
            words[at] += " " + words[at]
        elif choice == 1:
            words[at] = words[int(rng.choice(solid))]
        else:
            words[at] = str(rng.choice(_LIES))
    return "".join(words)


def _spliced(data: bytes, rng: np.random.Generator) -> bytes:
    """A piece left out, doubled, or moved."""
    a, b = sorted(int(i) for i in rng.integers(0, len(data), 2))
    b = min(b, a + 200)
    at = int(rng.integers(0, len(data)))
    piece, rest = data[a:b], data[:a] + data[b:]
    return (rest, data[:b] + data[a:], rest[:at] + piece + rest[at:])[int(rng.integers(3))]


def mutants(data: bytes, seed: int, count: int) -> Iterator[bytes]:
    rng = np.random.default_rng(seed)
    is_text = b"\0" not in data and re.search(rb"\w", data) is not None
    yield from damaged(data, seed, count // 3)
    for _ in range(count - count // 3):
        if is_text and rng.random() < 0.8:
            yield _damaged_text(data.decode("latin-1"), rng).encode("latin-1")
        else:
            yield _spliced(data, rng)


# ---- reading


def examine(path: Path) -> str:
    """What comes out of a file; anything else than a LiteError passes through."""
    try:
        graph = load(path)
    except LiteError as error:
        said = str(error)
        if "\n" in said or str(path) not in said or re.search(r"\((?!Shape)\w+Error: ", said):
            raise AssertionError(said) from error
        return type(error).__name__
    model_info(graph, "m")
    with suppress(ShapeError, UnsupportedOperatorError):  # of free axes, without a kernel
        encode(make_plan(optimize_graph(graph), "cpu"), WeightTable())
    return "read"


class Peak:
    """The largest resident size of this process so far, in MB. On Linux one open file gives every
    answer: to open it again takes as long as to read a small model."""

    def __init__(self) -> None:
        self._status = os.open("/proc/self/status", os.O_RDONLY) if LINUX else None

    def __call__(self) -> float:
        if self._status is None:
            return peak_rss_bytes() / 1e6
        found = re.search(rb"VmHWM:\s*(\d+) kB", os.pread(self._status, 1 << 14, 0))
        assert found
        return int(found[1]) / 1e3

    def close(self) -> None:
        if self._status is not None:
            os.close(self._status)


def _too_slow(*_: Any) -> None:
    raise TooSlow


def run(name: str, count: int, seed: int) -> dict[str, Any]:
    """Every mutant of a format; see the top of the file."""
    signal.signal(signal.SIGPROF, _too_slow)  # this process's own time: neighbours do not count
    kept = Path(tempfile.mkdtemp(prefix=f"lite-fuzz-{name}-"))
    seen: Counter[str] = Counter()
    bad: dict[str, str] = {}
    slowest = 0.0
    scratch = tempfile.TemporaryDirectory(prefix="lite-fuzz-", dir=SCRATCH)
    with scratch as temporary, closing(Peak()) as peak:
        folder = Path(temporary)
        path, files = MODELS[name](folder)
        assert examine(path) == "read"
        before = peak()
        for number, file in enumerate(files):
            good = (folder / file).read_bytes()
            share = -(-count // len(files))
            for index, data in enumerate(mutants(good, seed + number, share)):
                (folder / file).write_bytes(data)
                start, had = time.process_time(), peak()
                signal.setitimer(signal.ITIMER_PROF, SECONDS)
                try:
                    seen[examine(path)] += 1
                    fault = ""
                except (Exception, TooSlow) as error:  # noqa: BLE001 - whatever comes is the finding
                    fault = f"{type(error).__name__}: {error}"
                finally:
                    signal.setitimer(signal.ITIMER_PROF, 0)
                slowest = max(slowest, time.process_time() - start)
                if not fault and peak() - had > MEGABYTES:
                    fault = f"{peak() - had:.0f} MB"
                if fault:
                    keep = kept / f"{index}-{Path(file).name}"
                    keep.write_bytes(data)
                    bad[keep.name] = fault
            (folder / file).write_bytes(good)
        used = peak() - before
    if not bad:
        kept.rmdir()
    return {"format": name, "seen": dict(seen), "slowest_s": round(slowest, 2),
            "memory_mb": round(used), "bad": bad, "kept": str(kept) if bad else ""}  # fmt: skip


if __name__ == "__main__":
    np.seterr(all="ignore")
    count, seed = (int(a) for a in (*sys.argv[2:], *("200", "0")[len(sys.argv) - 2 :]))
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, most))  # so that no mutant takes the machine
    print(json.dumps(run(sys.argv[1], count, seed)))
