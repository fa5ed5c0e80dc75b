"""The model's own framework as a side of a comparison: onnxruntime for ONNX, LiteRT for TFLite,
Paddle for its ProgramDesc files.

All are optional; they run the file as it is, every inner value made visible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import BackendUnavailableError, ModelFormatError, UsageError
from ..ir import Graph

SUFFIXES = {".onnx": "onnxruntime", ".tflite": "LiteRT", ".pdmodel": "Paddle"}


def open_original(path: str | Path) -> OnnxRuntimeSide | LiteRTSide | PaddleSide:
    """Raises UsageError for another format, BackendUnavailableError when it is not installed."""
    suffix = Path(path).suffix.lower()
    if suffix == ".onnx":
        return OnnxRuntimeSide(path)
    if suffix == ".tflite":
        return LiteRTSide(path)
    if suffix == ".pdmodel":
        return PaddleSide(path)
    known = ", ".join(f"{n} for {s}" for s, n in SUFFIXES.items())
    raise UsageError(
        tr("there is no original framework for this format"),
        where=Path(path).name,
        fix=tr("known: {known}", known=known),
    )


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
                tr("{error} is not installed", error=error.name),
                command="pip install onnx onnxruntime",
            ) from None
        self._model = onnx.load(str(path))
        self._runtime = onnxruntime
        self.output_names = [v.name for v in self._model.graph.output]
        weights = self._model.graph.initializer
        if any(w.data_type == onnx.TensorProto.FLOAT16 for w in weights):
            self.precision = "fp16"  # it rounds every value; ours computes such a file in floats
        made = {v.name for v in weights}
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
                tr("LiteRT is not installed"), command="pip install ai-edge-litert"
            ) from None
        try:
            self._interpreter: Any = Interpreter(
                str(path), experimental_preserve_all_tensors=True, num_threads=1
            )
            self._interpreter.allocate_tensors()
        except (ValueError, RuntimeError) as error:
            why = str(error).splitlines()[0][:200]
            raise ModelFormatError(
                tr("LiteRT cannot run it ({why})", why=why), where=Path(path).name
            ) from None
        details = self._interpreter.get_tensor_details()
        # custom operators' scratch has no name
        self._index = {str(d["name"]): int(d["index"]) for d in details if d["name"]}
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


class PaddleSide:
    """Paddle's executor on the CPU; values by the program's variable names. The parameters lie
    beside the file (`.pdiparams`). PIR files (`.json`) name no inner values and are not taken."""

    label = "Paddle"
    precision = "fp32"
    graph: Graph | None = None

    def __init__(self, path: str | Path) -> None:
        try:
            import paddle  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            raise BackendUnavailableError(
                tr("Paddle is not installed"), command="pip install paddlepaddle"
            ) from None
        self._paddle: Any = paddle
        self._scope = paddle.static.Scope()
        try:
            with self._old_form():
                self._executor = paddle.static.Executor(paddle.CPUPlace())
                prefix = str(Path(path).with_suffix(""))
                loaded = paddle.static.load_inference_model(prefix, self._executor)
        except (ValueError, RuntimeError, OSError) as error:
            why = (str(error).strip() or type(error).__name__).splitlines()[-1][:200]
            raise ModelFormatError(
                tr("Paddle cannot run it ({why})", why=why), where=Path(path).name
            ) from None
        self._program, self.input_names, fetched = loaded
        self.output_names = [v.name for v in fetched]

    @contextmanager
    def _old_form(self) -> Iterator[None]:
        """ProgramDesc instead of PIR, static graphs, and variables of our own."""
        paddle = self._paddle
        was_dynamic = paddle.in_dynamic_mode()
        paddle.enable_static()
        try:
            with paddle.pir_utils.OldIrGuard(), paddle.static.scope_guard(self._scope):
                yield
        finally:
            if was_dynamic:
                paddle.disable_static()

    def value_names(self) -> list[str]:
        """Variables written once: of others only the last value could be had."""
        written = Counter(n for op in self._program.global_block().ops for n in op.output_arg_names)
        return [name for name, count in written.items() if count == 1]

    def values(
        self, feeds: Mapping[str, np.ndarray], names: Sequence[str]
    ) -> dict[str, np.ndarray]:
        wanted = list(dict.fromkeys([*self.output_names, *names]))
        with self._old_form():
            found = self._executor.run(self._program, feed=dict(feeds), fetch_list=wanted)
        return dict(zip(wanted, found, strict=True))
