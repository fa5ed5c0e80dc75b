"""XNNPACK's sparse inference, through LiteRT: what a 1x1 convolution with zeros takes there.

    python -m benchmarks.peers.xnnpack_sparse MODEL.tflite RUNS

XNNPACK keeps activations as [channel][pixel] where a network begins with a 3x3 convolution of
stride 2 of an image, padded by one, and its file has sparse weights behind DENSIFY; 1x1
convolutions with more than two thirds of zeros are then sparse products. So a layer is measured in
chains of two lengths between that convolution and a mean. On x86 with AVX XNNPACK multiplies
densely in any case (xnn_is_chw_compatible_config), and LiteRT's wheels do not run without AVX: what
is measured there are dense products.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

#: Lengths of the chains, and runs whose instructions are told apart from the start of the process.
LENGTHS, RUNS = (1, 5), (1, 3)


class _Writer:
    """A TFLite file of one subgraph."""

    def __init__(self) -> None:
        from ai_edge_litert import schema_py_generated as schema

        self.s = schema
        self.model, self.graph = schema.ModelT(), schema.SubGraphT()
        self.model.version, self.model.operatorCodes = 3, []
        self.model.buffers, self.model.subgraphs = [schema.BufferT()], [self.graph]
        self.graph.tensors, self.graph.operators = [], []

    def tensor(self, shape: tuple[int, ...], data: np.ndarray | None = None, **more: Any) -> int:
        t, whole = self.s.TensorT(), data is not None and data.dtype == np.int32
        t.name, t.shape = f"t{len(self.graph.tensors)}".encode(), list(shape)
        t.type = self.s.TensorType.INT32 if whole else self.s.TensorType.FLOAT32
        t.sparsity, t.buffer = more.get("sparsity"), len(self.model.buffers)
        buffer = self.s.BufferT()
        if data is not None:
            buffer.data = np.frombuffer(np.ascontiguousarray(data).tobytes(), np.uint8)
        self.model.buffers.append(buffer)
        self.graph.tensors.append(t)
        return len(self.graph.tensors) - 1

    def op(
        self, name: str, inputs: list[int], shape: tuple[int, ...], options: str, **values: Any
    ) -> int:
        """An operator with one output, which it answers."""
        code = getattr(self.s.BuiltinOperator, name)
        codes = [c.builtinCode for c in self.model.operatorCodes]
        if code not in codes:
            made = self.s.OperatorCodeT()
            made.builtinCode, made.deprecatedBuiltinCode, made.version = code, min(code, 127), 1
            self.model.operatorCodes.append(made)
            codes.append(code)
        o, given = self.s.OperatorT(), getattr(self.s, f"{options}T")()
        for key, value in values.items():
            setattr(given, key, value)
        y = self.tensor(shape)
        o.opcodeIndex, o.inputs, o.outputs = codes.index(code), inputs, [y]
        o.builtinOptions, o.builtinOptionsType = given, getattr(self.s.BuiltinOptions, options)
        self.graph.operators.append(o)
        return y

    def conv(self, x: int, w: int, channels: int, size: int, stride: int) -> int:
        bias = self.tensor((channels,), np.zeros(channels, np.float32))
        return self.op(
            "CONV_2D", [x, w, bias], (1, size, size, channels), "Conv2DOptions",
            padding=self.s.Padding.VALID, strideW=stride, strideH=stride, dilationWFactor=1,
            dilationHFactor=1, fusedActivationFunction=self.s.ActivationFunctionType.RELU,
        )  # fmt: skip

    def sparse(self, w: np.ndarray) -> int:
        """A weight (outputs, inputs) as stored rows of what is not 0, dense behind DENSIFY."""
        o, c = w.shape
        layout, kept = self.s.SparsityParametersT(), w != 0
        layout.traversalOrder, layout.dimMetadata = [0, 1, 2, 3], []
        for size in (o, 1, 1, c):
            dim = self.s.DimensionMetadataT()
            dim.denseSize = size
            layout.dimMetadata.append(dim)
        rows, vector = layout.dimMetadata[3], self.s.SparseIndexVector.Int32Vector
        rows.format = self.s.DimensionType.SPARSE_CSR
        rows.arraySegments, rows.arrayIndices = self.s.Int32VectorT(), self.s.Int32VectorT()
        rows.arraySegmentsType = rows.arrayIndicesType = vector
        rows.arraySegments.values = np.append(0, kept.sum(axis=1).cumsum()).tolist()
        rows.arrayIndices.values = np.nonzero(kept)[1].tolist()
        stored = self.tensor((o, 1, 1, c), w[kept], sparsity=layout)
        return self.op("DENSIFY", [stored], (o, 1, 1, c), "DensifyOptions")

    def save(self, path: Path, x: int, y: int) -> Path:
        from ai_edge_litert.tools import flatbuffer_utils

        self.graph.inputs, self.graph.outputs = [x], [y]
        path.write_bytes(bytes(flatbuffer_utils.convert_object_to_bytearray(self.model)))
        return path


def chain(path: Path, weights: np.ndarray, size: int, length: int) -> Path:
    """`length` times this 1x1 convolution (outputs = inputs), each with a ReLU."""
    n, (channels, _) = _Writer(), weights.shape
    x = n.tensor((1, 2 * size, 2 * size, 3))
    border = n.tensor((4, 2), np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
    padded = n.op("PAD", [x, border], (1, 2 * size + 2, 2 * size + 2, 3), "PadOptions")
    first = np.random.default_rng(0).standard_normal((channels, 3, 3, 3)).astype(np.float32)
    y = n.conv(padded, n.tensor(first.shape, first), channels, size, 2)
    for _ in range(length):
        y = n.conv(y, n.sparse(weights), channels, size, 1)
    axes = n.tensor((2,), np.array([1, 2], np.int32))
    y = n.op("MEAN", [y, axes], (1, 1, 1, channels), "ReducerOptions", keepDims=True)
    return n.save(path, x, y)


def measured(weights: np.ndarray, size: int, command: list[str]) -> float:
    """Milliseconds of a layer; with the command of an emulator that counts instructions into its
    standard error ("instructions N"), those."""
    with tempfile.TemporaryDirectory() as folder:
        totals = []
        for length in LENGTHS:
            path = chain(Path(folder) / "m.tflite", weights, size, length)
            if command:
                few, many = (_instructions(command, path, runs) for runs in RUNS)
                totals.append((many - few) / (RUNS[1] - RUNS[0]))
            else:
                totals.append(run(path, 200))
    return (totals[1] - totals[0]) / (LENGTHS[1] - LENGTHS[0])


def _instructions(command: list[str], path: Path, runs: int) -> int:
    told = subprocess.run([*command, Path(__file__).resolve(), path, str(runs)], check=True,
                          capture_output=True, text=True, timeout=1200)  # fmt: skip
    found = re.search(r"instructions (\d+)", told.stderr)
    if found is None:
        raise SystemExit(
            "the emulator counts no instructions; see the example in benchmarks/sparse.py"
        )
    return int(found[1])


def run(path: Path, runs: int) -> float:
    """Least milliseconds of one thread's processor time."""
    from ai_edge_litert.interpreter import Interpreter

    net = Interpreter(model_path=str(path), num_threads=1)
    net.allocate_tensors()
    detail = net.get_input_details()[0]
    x = np.random.default_rng(1).standard_normal(detail["shape"]).astype(np.float32)
    net.set_tensor(detail["index"], x)
    best = float("inf")
    for _ in range(runs):
        begin = time.process_time()
        net.invoke()
        best = min(best, 1e3 * (time.process_time() - begin))
    return best


if __name__ == "__main__":
    print(f"{run(Path(sys.argv[1]), int(sys.argv[2])):.3f} ms")
