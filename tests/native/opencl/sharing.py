"""Convolutions for several sizes of one network, whose weights lie in one table as in a file.

    python -m tests.native.opencl.sharing DRIVER    # one JSON object: what it was asked for

DRIVER is counting_driver.c before failing_driver.c; COUNTS names its file.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
from lite_engine.backends.cpu.native import NativeProgram
from lite_engine.backends.opencl.native_plan import encode_opencl
from lite_engine.errors import LiteError
from lite_engine.ir import DType, Graph, Value
from lite_engine.passes import optimize_graph
from lite_engine.plan import make_plan
from lite_engine.plan.program import WeightTable

from tests.opencl import tiny

SIZES = (16, 24, 33)
_SHAPES = ((32, 16, 3, 3), (64, 32, 1, 1), (32, 64, 1, 1))


def image(size: int) -> np.ndarray:
    rng = np.random.default_rng(size)
    return rng.standard_normal((1, 16, size, size)).astype(np.float32)


class Sizes:
    """`programs[size]()` loads the program for images of that many rows and columns."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.arrays = [(rng.standard_normal(s) / 8).astype(np.float32) for s in _SHAPES]
        self.table = WeightTable()
        self.encoded = {size: self._encode(size) for size in SIZES}

    def _encode(self, size: int) -> bytes:
        graph, x = Graph("network"), Value("x", DType.F32, (1, 16, size, size))
        graph.inputs = [x]
        for array in self.arrays:
            pads = {"pads": [1, 1, 1, 1]} if array.shape[2] == 3 else {}
            x = graph.add("Conv", [x, graph.constant(array)], pads).output
            x = graph.add("Relu", [x]).output
        graph.outputs = [x]
        plan = make_plan(optimize_graph(graph), "opencl")
        return encode_opencl(plan, tiny.device().target, self.table)

    def load(self, size: int) -> NativeProgram:
        return NativeProgram(self.encoded[size], self.table.blobs, threads=1)


def output(program: NativeProgram, size: int) -> bytes:
    (found,) = program.run([image(size)])
    return found.tobytes()


def main() -> None:
    sizes, counts, kept = Sizes(), Path(os.environ["COUNTS"]), []
    os.environ["LITE_OPENCL_LIBRARY"] = sys.argv[1]  # not Python's, which plans without it
    asked: list[list[list[str]]] = []

    def load(size: int) -> NativeProgram:
        counts.unlink(missing_ok=True)
        program = sizes.load(size)
        asked.append([line.split() for line in counts.read_text().splitlines()])
        return program

    for size in SIZES:
        kept.append(load(size))
    os.environ["LAUNCHES_BEFORE"] = "0"
    try:
        kept[0].run([image(SIZES[0])])
        refused = ""
    except LiteError as error:
        refused = str(error)
    del os.environ["LAUNCHES_BEFORE"]
    kept.append(load(SIZES[0]))
    beside = output(kept[1], SIZES[1]), output(kept[-1], SIZES[0])
    kept.clear()
    alone = output(load(SIZES[1]), SIZES[1]), output(load(SIZES[0]), SIZES[0])
    print(json.dumps({"asked": asked, "refused": refused, "same": beside == alone}))


if __name__ == "__main__":
    main()
