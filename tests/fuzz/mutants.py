"""Damaged files by the thousand, counted.

    python -m tests.fuzz.mutants COUNT FOLDER [READER…]
    python -m tests.fuzz.mutants table FOLDER

brings the mutants that each reader has read to COUNT. A reader is one of guided.py, `models` (those
of the eight formats of models; without names these), or `onnx_operators`: the cases of the ONNX
project, one or more for each form of an operator, imported and planned. Nothing is traced, so that
thousands are read in a minute; what a campaign with coverage kept in FOLDER/<READER> is mutated
too. Each STRETCH mutants are a process of their own and a line of FOLDER/mutants.jsonl, so that a
campaign that was stopped goes on, and a crash is a finding. `table` adds the lines up. Ends with 1
after a finding.

    python -m tests.fuzz.mutants stretch READER COUNT SEED FOLDER

is one of them.
"""

from __future__ import annotations

import gc
import json
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from tests.importers.fuzz import SCRATCH, Peak, examine

from .campaign import GUIDED, digest_of
from .guided import Corpus, Reader, damaged, fault_of, too_slow

ROOT = Path(__file__).parent.parent.parent
MODELS = ("onnx", "onnx_operators", "paddle", "pir", "naive_buffer", "tflite", "tensorflow",
          "caffe", "lite")  # fmt: skip
STRETCH = 5000
LOG = "mutants.jsonl"
Line = dict[str, Any]


def _onnx_operators(folder: Path) -> Iterator[tuple[Path, Path]]:
    """The cases that hold little more than their operator, and that we read."""
    from tests.importers import onnx_cases

    with np.errstate(all="ignore"):
        for kind in ("node", "simple"):
            for case in onnx_cases.cases(kind):
                data = onnx_cases.model_bytes(case)
                file = folder / f"{case.name}.onnx"
                file.write_bytes(data)
                if len(data) < 8000 and examine(file) == "read":
                    yield file, file
                else:
                    file.unlink()


#: The parsers are those of `onnx`; here the operators count, whose sources are many.
READERS = {**GUIDED, "onnx_operators": Reader(_onnx_operators, examine, GUIDED["onnx"].sources)}


def stretch(name: str, count: int, seed: int, folder: Path) -> Line:
    signal.signal(signal.SIGPROF, too_slow)
    reader, rng = READERS[name], random.Random(f"{name} {seed}")
    seen, bad, slowest = Counter[str](), dict[str, str](), 0.0
    scratch = tempfile.TemporaryDirectory(prefix="lite-fuzz-", dir=SCRATCH)
    with scratch as place, np.errstate(all="ignore"), closing(Peak()) as peak:
        corpus = Corpus(folder / name)
        for path, file in reader.make(Path(place)):
            corpus.seed(path, file)
        corpus.entries += corpus.kept()
        gc.freeze()  # the seeds' writers are not looked at again
        while seen.total() < count:
            at, data = rng.choice(corpus.entries)
            path, file, good = corpus.seeds[at]
            for mutant in damaged(data, rng, min(6, count - seen.total())):
                file.write_bytes(mutant)
                began = time.process_time()
                fault, answer = fault_of(reader, path, nullcontext(), peak)
                slowest = max(slowest, time.process_time() - began)
                seen[answer if isinstance(answer, str) else "ended"] += 1
                if fault:
                    bad.setdefault(
                        fault.replace(place, ""), f"{file.name}: {mutant.hex()}"[: 2 << 16]
                    )
            file.write_bytes(good)
    return {"mutants": seen.total(), "seen": seen, "slowest_s": round(slowest, 2),
            "seconds": round(time.process_time(), 1), "bad": bad}  # fmt: skip


def digest(name: str) -> str:
    return digest_of(ROOT / source.partition(":")[0] for source in READERS[name].sources)


def known(folder: Path) -> Iterator[Line]:
    log = folder / LOG
    if log.is_file():
        yield from map(json.loads, log.read_text().splitlines())


def one_process(name: str, count: int, seed: int, folder: Path) -> Line:
    command = [sys.executable, "-m", "tests.fuzz.mutants", "stretch", name, str(count), str(seed)]
    done = subprocess.run([*command, str(folder)], cwd=ROOT, capture_output=True, text=True)
    try:
        made = json.loads(done.stdout)
    except ValueError:
        made = {"mutants": 0, "bad": {"the process ended": done.stderr[-2000:]}}
    return {"name": name, "digest": digest(name), "seed": seed, **made}


def campaign(names: list[str], count: int, folder: Path) -> bool:
    """Whether there is a finding. The reader that has read least goes first."""
    folder.mkdir(parents=True, exist_ok=True)
    done, turns, found = Counter[str](dict.fromkeys(names, 0)), Counter[str](), False
    for line in known(folder):
        done[line["name"]] += line["mutants"]
        turns[line["name"]] += 1
    waiting = set(names)
    while waiting := {name for name in waiting if done[name] < count}:
        name = min(sorted(waiting), key=done.__getitem__)
        made = one_process(name, min(STRETCH, count - done[name]), turns[name], folder)
        with (folder / LOG).open("a") as log:
            log.write(json.dumps(made) + "\n")
        done[name] += made["mutants"]
        turns[name] += 1
        if made["bad"]:
            found = True
            waiting.discard(name)  # mend it first
        print(name, done[name], made["bad"] or "no finding", flush=True)
    return found


def table(folder: Path) -> Iterator[str]:
    lines = defaultdict[str, list[Line]](list)
    for line in known(folder):
        lines[line["name"]].append(line)
    yield "| reader | mutants | read | of another parser | slowest, s | findings |"
    yield "|---|---|---|---|---|---|"
    for name, those in lines.items():
        total = sum(line["mutants"] for line in those)
        read = sum(line.get("seen", {}).get("read", 0) for line in those)
        older = sum(line["mutants"] for line in those if line["digest"] != digest(name))
        slowest = max(line.get("slowest_s", 0) for line in those)
        found = len({fault for line in those for fault in line["bad"]})
        yield f"| `{name}` | {total:,} | {read:,} | {older:,} | {slowest} | {found} |"


def main() -> int:
    first, *rest = sys.argv[1:]
    if first == "stretch":
        name, count, seed, folder = rest
        most = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, most))  # no mutant takes the machine
        print(json.dumps(stretch(name, int(count), int(seed), Path(folder))))
        return 0
    folder = Path(rest[0]).resolve()
    if first == "table":
        print("\n".join(table(folder)))
        return 0
    chosen = [
        n for given in rest[1:] or ["models"] for n in (MODELS if given == "models" else [given])
    ]
    return int(campaign(chosen, int(first), folder))


if __name__ == "__main__":
    raise SystemExit(main())
