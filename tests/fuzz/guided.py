"""Coverage-guided fuzzing of what reads files of others, in Python alone.

    python -m tests.fuzz.guided READER[,READER…] SECONDS [SEED [CORPUS]]

SECONDS are the process's own. A reader is a key of READERS in `importers`, `readers`,
`data_readers` or `kept`.
Mutants of small files that our own writers make are read; one that reaches a jump between two lines
of the reader that none before has reached is kept and mutated further, in the folder CORPUS also
for the next run. Prints a JSON line for each:
runs, the corpus before and after, jumps, the share of each source's lines that was reached, the
slowest reading, and mutants that led to anything but an answer or one line of LiteError, took
longer than MOST_SECONDS or made the process larger by more than MOST_MEGABYTES.
"""

from __future__ import annotations

import copy
import gc
import hashlib
import inspect
import json
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

from tests.importers.fuzz import SCRATCH, Peak, TooSlow, mutants

from . import protobuf

ROOT = Path(__file__).parent.parent.parent
#: Of the process's own time; tracing takes most of it.
MOST_SECONDS, MOST_MEGABYTES = 20, 500
Jump = tuple[str, int, int]


@dataclass(frozen=True)
class Reader:
    """`make` writes good files below a folder: (what to read, the file of it to damage) of each.
    `read` raises anything but a LiteError where something is wrong. `sources` are the files below
    the repository whose lines count, or `FILE:FUNCTION,FUNCTION`."""

    make: Callable[[Path], Iterable[tuple[Path, Path]]]
    read: Callable[[Path], object]
    sources: tuple[str, ...]


class Trace:
    """The jumps between lines of some files, while it is entered."""

    def __init__(self, files: set[str]) -> None:
        self.files, self.jumps = files, set[Jump]()

    def __enter__(self) -> Trace:
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _call(self, frame: FrameType, event: str, given: Any) -> Any:
        name = frame.f_code.co_filename
        if name not in self.files:
            return None
        before, jumps = 0, self.jumps

        def line(frame: FrameType, event: str, given: Any) -> Any:
            nonlocal before
            if event == "line":
                jumps.add((name, before, frame.f_lineno))
                before = frame.f_lineno
            return line

        return line


def executable(source: str) -> set[int]:
    """The lines of a source's functions, or of those that it names after a colon."""
    file, _, names = source.partition(":")
    chosen = set(names.split(",")) if names else set()
    found: set[int] = set()
    waiting = [(compile((ROOT / file).read_text(), file, "exec"), not chosen)]
    while waiting:
        outer, inside = waiting.pop()
        for code in outer.co_consts:
            if isinstance(code, CodeType):
                within = inside or code.co_name in chosen
                if within and code.co_flags & inspect.CO_OPTIMIZED:  # not the body of a class
                    found |= {line for *_, line in code.co_lines() if line} - {code.co_firstlineno}
                waiting.append((code, within))
    return found


# ---- damage of JSON, which stays JSON

_ODD: tuple[Any, ...] = (None, True, -1, 0, 1, 2**31, 2**63, 2**64, -(2**70), 0.5, float("nan"),
                         float("inf"), 1e308, "", "x", "../x", "\0", "é" * 300, [], [[]], {},
                         {"": 0}, [1, 2, 3, 4], [1e9] * 4)  # fmt: skip


def damaged_json(document: Any, rng: random.Random) -> Any:
    """One value of it replaced, left out, doubled or moved to another place."""
    places: list[tuple[Any, Any]] = []
    waiting = [document]
    while waiting:
        holder = waiting.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        places += [(holder, key) for key in keys]
        waiting += [holder[key] for key in keys if isinstance(holder[key], (dict, list))]
    if not places:
        return copy.deepcopy(rng.choice(_ODD))
    holder, key = rng.choice(places)
    kind = rng.randrange(6)
    if kind == 5 and isinstance(holder, dict):
        holder["no key of it"] = copy.deepcopy(holder[key])
    elif kind == 0:
        del holder[key]
    elif kind == 1:
        other, at = rng.choice(places)
        holder[key] = json.loads(json.dumps(other[at])) if _has(other, at) else None
    elif kind == 2 and isinstance(holder, list):
        holder.insert(rng.randrange(len(holder) + 1), copy.deepcopy(holder[key]))
    else:
        holder[key] = copy.deepcopy(rng.choice(_ODD))
    return document


def _odd_json(text: str, rng: random.Random) -> str:
    """Now and then a key twice, or lists deeper than any reader takes."""
    where = [at for at, letter in enumerate(text) if letter == ":"]
    if not where or rng.random() < 0.9:
        return text
    at = rng.choice(where)
    if rng.random() < 0.5:
        deep = rng.choice((40, 5000))
        return f"{text[:at]}: {'[' * deep}{']' * deep}{text[at + 1 :]}"
    key = text[text.rfind('"', 0, text.rfind('"', 0, at)) : at]
    return f"{text[:at]}: 0, {key}{text[at:]}"


def _has(holder: Any, key: Any) -> bool:
    return key in holder if isinstance(holder, dict) else key < len(holder)


def damaged(data: bytes, rng: random.Random, count: int) -> Iterable[bytes]:
    """Mutants of a file; a JSON document and a protobuf message mostly stay one."""
    if data[:1] in (b"{", b"[") and rng.random() < 0.8:
        try:
            for _ in range(count):
                made = json.loads(data)
                for _ in range(rng.randrange(1, 3)):
                    made = damaged_json(made, rng) if isinstance(made, (dict, list)) else made
                yield _odd_json(json.dumps(made), rng).encode()
            return
        except (ValueError, RecursionError):
            pass
    elif rng.random() < 0.7 and (message := protobuf.mutant(data, rng)) is not None:
        yield message
        for _ in range(count - 1):
            yield protobuf.mutant(data, rng) or data
        return
    elif rng.random() < 0.3 and (places := _slots(data)):
        for _ in range(count):
            made = bytearray(data)
            for at in rng.sample(places, min(len(places), rng.randrange(1, 3))):
                made[at : at + 2] = rng.choice((0, 0, 4, 8, 200)).to_bytes(2, "little")
            yield bytes(made)
        return
    yield from mutants(data, rng.randrange(1 << 30), count)


def _slots(data: bytes) -> list[int]:
    """Where words lie that can be the place of a field in a table of a FlatBuffer: 0 there leaves
    the field out."""
    words = np.frombuffer(data[: len(data) // 2 * 2], "<u2")
    return [int(at) * 2 for at in np.flatnonzero((words >= 4) & (words < 64))]


# ---- the loop


def too_slow(*_: Any) -> None:
    raise TooSlow


def fault_of(
    reader: Reader, path: Path, trace: AbstractContextManager[object], peak: Peak
) -> tuple[str, object]:
    """What is wrong with reading a file, "" where nothing is, and the reader's answer."""
    had, answer = peak(), None
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        with trace:
            answer = reader.read(path)
    except (Exception, TooSlow) as error:  # noqa: BLE001 - whatever comes is the finding
        if isinstance(error, SystemError) and "a result with an exception set" in str(error):
            # Python 3.12's tracer fails where a tokenizer raises: once more without it
            return fault_of(reader, path, nullcontext(), peak)
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        return f"{type(error).__name__} at {where}: {error}"[:300], None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    more = peak() - had
    return f"{more:.0f} MB" if more > MOST_MEGABYTES else "", answer


class Corpus:
    """What is mutated: the seeds, and what reached something new. A folder keeps the latter, in a
    folder for each seed by its place among them."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.seeds = list[tuple[Path, Path, bytes]]()
        self.entries = list[tuple[int, bytes]]()

    def seed(self, path: Path, file: Path) -> None:
        self.entries.append((len(self.seeds), file.read_bytes()))
        self.seeds.append((path, file, file.read_bytes()))

    def kept(self) -> list[tuple[int, bytes]]:
        """Of earlier runs."""
        if self.folder is None:
            return []
        places = ((i, self.folder / str(i)) for i in range(len(self.seeds)))
        files = ((i, path) for i, at in places if at.is_dir() for path in sorted(at.iterdir()))
        return [(i, path.read_bytes()) for i, path in files]

    def add(self, seed: int, data: bytes) -> None:
        self.entries.append((seed, data))
        if self.folder is not None:
            file = self.folder / str(seed) / hashlib.sha256(data).hexdigest()[:16]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)


def fuzz(
    name: str, reader: Reader, seconds: float, seed: int = 0, kept: Path | None = None
) -> dict[str, Any]:
    signal.signal(signal.SIGPROF, too_slow)
    rng = random.Random(seed)
    files = {str(ROOT / source.partition(":")[0]) for source in reader.sources}
    trace, bad, runs, slowest = Trace(files), dict[str, str](), 0, 0.0
    scratch = tempfile.TemporaryDirectory(prefix="lite-fuzz-", dir=SCRATCH)
    with scratch as place, np.errstate(all="ignore"), closing(Peak()) as peak:
        corpus = Corpus(kept)
        for path, file in reader.make(Path(place)):
            corpus.seed(path, file)
            fault, _ = fault_of(reader, path, trace, peak)
            assert not fault, (file, fault)

        def tried(at: int, data: bytes) -> None:
            nonlocal runs, slowest
            path, file, _ = corpus.seeds[at]
            file.write_bytes(data)
            known, runs, began = len(trace.jumps), runs + 1, time.process_time()
            fault, _ = fault_of(reader, path, trace, peak)
            slowest = max(slowest, time.process_time() - began)
            if fault:
                bad.setdefault(fault.replace(place, ""), data.hex()[: 2 << 16])
            if len(trace.jumps) > known and 1 < len(data) < 1 << 16:
                corpus.add(at, data)

        for at, data in corpus.kept():
            tried(at, data)
            corpus.seeds[at][1].write_bytes(corpus.seeds[at][2])
        first, start = len(corpus.entries), time.process_time()
        while time.process_time() - start < seconds:  # without the seeds' own time
            at, data = rng.choice(corpus.entries)
            for mutant in damaged(data, rng, 6):
                tried(at, mutant)
            corpus.seeds[at][1].write_bytes(corpus.seeds[at][2])
            if runs % 1200 < 6:
                gc.collect()
    return {
        "reader": name, "seconds": seconds, "runs": runs, "seeds": first,
        "corpus": len(corpus.entries),
        "jumps": len(trace.jumps), "slowest_s": round(slowest, 2), "bad": bad,
        "lines": {source: share(source, trace) for source in reader.sources},
    }  # fmt: skip


def share(source: str, trace: Trace) -> float:
    """Percentage of a source's lines that were reached."""
    lines, file = executable(source), str(ROOT / source.partition(":")[0])
    reached = lines & {at for name, _, at in trace.jumps if name == file}
    return round(100 * len(reached) / max(len(lines), 1), 1)


def main() -> int:
    from . import data_readers, importers, kept, readers

    names, seconds, *more = sys.argv[1:]
    seed, folder = int(more[0]) if more else 0, Path(more[1]) if more[1:] else None
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, most))  # so that no mutant takes the machine
    known = {**importers.READERS, **readers.READERS, **data_readers.READERS, **kept.READERS}
    bad = False
    for name in names.split(","):
        made = fuzz(name, known[name], float(seconds), seed, folder)
        print(json.dumps(made), flush=True)
        bad |= bool(made["bad"])
    return int(bad)


if __name__ == "__main__":
    raise SystemExit(main())
