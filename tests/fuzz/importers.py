"""Coverage-guided fuzzing of the importers, in Python alone.

    python -m tests.fuzz.importers FORMAT SECONDS [SEED]

reads mutants of small models that our own writers make. A mutant that reaches a jump between two
lines of the parser that none before has reached is kept and mutated further. Prints one JSON line:
runs, the corpus before and after, jumps, the share of the parser's lines that was reached, and
mutants that led to anything but a graph or a LiteError (tests/importers/fuzz.py has the rules).
"""

from __future__ import annotations

import inspect
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import lite_engine.importers
import numpy as np

from tests.importers.fuzz import MODELS, examine, mutants

HERE = Path(lite_engine.importers.__file__).parent
#: Format → (its small models, what reads its bytes). What translates operators is not counted.
FORMATS = {
    "onnx": (["onnx"], ["_protobuf.py", "onnx/__init__.py", "onnx/reader.py", "onnx/tensors.py",
                        "onnx/attributes.py"]),
    "tflite": (["tflite", "tflite_int8", "tflite_ssd", "tflite_metadata"],
               ["_flatbuffers.py", "tflite/__init__.py", "tflite/model.py", "tflite/metadata.py"]),
    "paddle": (["paddle"], ["_protobuf.py", "paddle/program_desc.py", "paddle/params.py",
                            "paddle/program.py"]),
    "pir": (["pir"], ["paddle/pir.py", "paddle/params.py"]),
    "naive_buffer": (["nb0", "nb1", "nb2"], ["naive_buffer/container.py", "naive_buffer/tlv.py"]),
    "tensorflow": (["tensorflow", "saved_model"],
                   ["_protobuf.py", "tensorflow/graphdef.py", "tensorflow/saved_model.py",
                    "tensorflow/bundle.py"]),
    "caffe": (["caffe"], ["caffe/_prototxt.py", "caffe/model.py"]),
}  # fmt: skip
Jump = tuple[str, int, int]


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


def executable(file: str) -> set[int]:
    """The lines of a file's functions."""
    found: set[int] = set()
    waiting = list(compile(Path(file).read_text(), file, "exec").co_consts)
    while waiting:
        code = waiting.pop()
        if isinstance(code, CodeType):
            if code.co_flags & inspect.CO_OPTIMIZED:  # a function, not the body of a class
                found |= {line for *_, line in code.co_lines() if line} - {code.co_firstlineno}
            waiting += code.co_consts
    return found


def _folders(name: str, place: Path) -> Iterator[tuple[Path, Path]]:
    """(what to load, the file to damage) of each small model."""
    for model in FORMATS[name][0]:
        folder = place / model
        folder.mkdir()
        path, files = MODELS[model](folder)
        for file in files:
            yield path, folder / file


def fuzz(name: str, seconds: float, seed: int = 0) -> dict[str, Any]:
    rng = random.Random(seed)
    files = {str(HERE / file) for file in FORMATS[name][1]}
    trace, bad, runs = Trace(files), dict[str, str](), 0
    with tempfile.TemporaryDirectory() as place, np.errstate(all="ignore"):
        corpus = []
        for path, file in _folders(name, Path(place)):
            corpus.append((path, file, file.read_bytes()))
            with trace:
                examine(path)
        first, good = len(corpus), {file: data for _, file, data in corpus}
        start = time.monotonic()  # what reading the whole seeds takes does not count
        while time.monotonic() - start < seconds:
            path, file, data = rng.choice(corpus)
            for mutant in mutants(data, rng.randrange(1 << 30), 6):
                file.write_bytes(mutant)
                known, runs = len(trace.jumps), runs + 1
                try:
                    with trace:
                        examine(path)
                except Exception as error:  # noqa: BLE001 - whatever comes is the finding
                    bad.setdefault(f"{type(error).__name__}: {error}"[:300], mutant.hex()[:4000])
                if len(trace.jumps) > known and 16 < len(mutant) < 1 << 16:
                    corpus.append((path, file, mutant))
            file.write_bytes(good[file])
    lines = {file: executable(file) for file in files}
    reached = {file: {at for name, _, at in trace.jumps if name == file} for file in files}
    return {
        "format": name, "seconds": seconds, "runs": runs, "seeds": first, "corpus": len(corpus),
        "jumps": len(trace.jumps), "bad": bad,
        "lines": {str(Path(file).relative_to(HERE)):
                  round(100 * len(reached[file] & lines[file]) / max(len(lines[file]), 1), 1)
                  for file in sorted(files)},
    }  # fmt: skip


if __name__ == "__main__":
    format_name, budget, *more = sys.argv[1:]
    made = fuzz(format_name, float(budget), *map(int, more))
    print(json.dumps(made))
    raise SystemExit(1 if made["bad"] else 0)
