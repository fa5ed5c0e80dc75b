"""Our engine and its five peers behind one interface; only the process that runs one imports it.

A peer's module has

    FORMAT                                       # ending of its model file
    PRECISIONS                                   # of "fp32", "bf16", "fp16", "int8"
    convert(onnx, out, precision)                # in the environment of converters; absent: ONNX
    quantise(model, out, feeds)                  # its float file to int8, in its own environment
    open(model, feeds, threads, precision)       # → run() → list of outputs, in the file's order
    layers(model, feeds, threads, precision, runs)   # → [{"nodes": names of ONNX nodes, "ms": least
                                                 #     time, "kernel": …}]; absent: no profile

`onnx` of int8 is the QDQ form of the network (`benchmarks.models`) for all that do not quantise by
themselves.
"""

from __future__ import annotations

import importlib
from types import ModuleType

#: The order of the table; ours first.
ENGINES = ("lite", "onnxruntime", "openvino", "ncnn", "mnn", "litert")


def peer(name: str) -> ModuleType:
    """The module of an engine."""
    return importlib.import_module(f"benchmarks.peers.{name}_peer")
