"""The model's own framework as a side of a comparison: onnxruntime for ONNX, LiteRT for TFLite.

Both are optional; they run the file as it is, every inner value made visible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import BackendUnavailableError, ModelFormatError, UsageError
from ..ir import Graph

SUFFIXES = {".onnx": "onnxruntime", ".tflite": "LiteRT"}


def open_original(path: str | Path) -> OnnxRuntimeSide | LiteRTSide:
    """Raises UsageError for another format, BackendUnavailableError when it is not installed."""
    suffix = Path(path).suffix.lower()
    if suffix == ".onnx":
        return OnnxRuntimeSide(path)
    if suffix == ".tflite":
        return LiteRTSide(path)
    known = ", ".join(f"{n} for {s}" for s, n in SUFFIXES.items())
    raise UsageError(f"{Path(path).name}: there is no original framework to ask; known: {known}")


class OnnxRuntimeSide:
    """onnxruntime on the CPU, optimisations off, so that every value of the file exists."""

    label = "onnxruntime"
    precision = "fp32"
    graph: Graph | None = None
    output_names: list[str]

    def __init__(self, path: str | Path) -> None:
        try:
            import onnx
            import onnxruntime
        except ImportError as error:
            raise BackendUnavailableError(
                f"{error.name} is not installed; pip install onnx onnxruntime"
            ) from None
        self._model = onnx.load(str(path))
        self._runtime = onnxruntime
        self.output_names = [v.name for v in self._model.graph.output]
        made = {v.name for v in self._model.graph.initializer}
        self.input_names = [v.name for v in self._model.graph.input if v.name not in made]

    def value_names(self) -> list[str]:
        return [name for node in self._model.graph.node for name in node.output if name]

    def values(
        self, feeds: Mapping[str, np.ndarray], names: Sequence[str]
    ) -> dict[str, np.ndarray]:
        import onnx

        model = onnx.ModelProto()
        model.CopyFrom(self._model)
        wanted = [n for n in dict.fromkeys(names) if n not in self.output_names]
        # Without a type, onnxruntime infers it: that is what makes an inner value an output.
        model.graph.output.extend(onnx.ValueInfoProto(name=n) for n in wanted)
        options = self._runtime.SessionOptions()
        options.graph_optimization_level = self._runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3
        session = self._runtime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        asked = [*self.output_names, *wanted]
        found = session.run(asked, dict(feeds))
        return dict(zip(asked, found, strict=True))


class LiteRTSide:
    """LiteRT's interpreter with all tensors preserved; values by the file's tensor names."""

    label = "LiteRT"
    precision = "fp32"
    graph: Graph | None = None

    def __init__(self, path: str | Path) -> None:
        try:
            from ai_edge_litert.interpreter import (  # type: ignore[import-not-found,unused-ignore]
                Interpreter,
            )
        except ImportError:
            raise BackendUnavailableError(
                "LiteRT is not installed; pip install ai-edge-litert"
            ) from None
        try:
            self._interpreter: Any = Interpreter(
                str(path), experimental_preserve_all_tensors=True, num_threads=1
            )
            self._interpreter.allocate_tensors()
        except (ValueError, RuntimeError) as error:
            why = str(error).splitlines()[0][:200]
            raise ModelFormatError(f"{Path(path).name}: LiteRT refuses it ({why})") from None
        details = self._interpreter.get_tensor_details()
        self._index = {str(d["name"]): int(d["index"]) for d in details}
        self._inputs = {str(d["name"]): d for d in self._interpreter.get_input_details()}
        self.input_names = list(self._inputs)
        self.output_names = [str(d["name"]) for d in self._interpreter.get_output_details()]

    def value_names(self) -> list[str]:
        return list(self._index)

    def values(
        self, feeds: Mapping[str, np.ndarray], names: Sequence[str]
    ) -> dict[str, np.ndarray]:
        for name, array in feeds.items():
            self._interpreter.set_tensor(self._inputs[name]["index"], array)
        self._interpreter.invoke()
        wanted = dict.fromkeys([*self.output_names, *names])
        return {n: np.array(self._interpreter.get_tensor(self._index[n])) for n in wanted}
