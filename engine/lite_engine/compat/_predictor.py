"""Paddle-Lite's predictor and tensors on `lite_engine.Predictor`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from lite_messages import tr

from .._version import __version__
from ..errors import ShapeError, UsageError
from ..importers import load
from ..ir import DType, Graph, Value
from ..model_file import Model, is_lite, optimize, read_model
from ..runtime import Predictor
from ._config import CxxConfig, MobileConfig, PrecisionType, TargetType

_PRECISIONS = {
    DType.F32: PrecisionType.FP32, DType.I8: PrecisionType.INT8, DType.I32: PrecisionType.INT32,
    DType.F16: PrecisionType.FP16, DType.BOOL: PrecisionType.BOOL, DType.I64: PrecisionType.INT64,
    DType.I16: PrecisionType.INT16, DType.U8: PrecisionType.UINT8, DType.F64: PrecisionType.FP64,
}  # fmt: skip


class Tensor:
    """An input or output. `shape()` is empty until it is resized or filled, as in Paddle-Lite."""

    def __init__(self, name: str, dtype: DType) -> None:
        self.name = name
        self._dtype = dtype
        self._array: np.ndarray | None = None
        self._shape: list[int] = []
        self._lod: list[list[int]] = []

    def shape(self) -> list[int]:
        return list(self._shape)

    def resize(self, shape: list[int]) -> None:
        """Raises ShapeError for a negative size."""
        if any(d < 0 for d in shape):
            raise ShapeError(tr("cannot be resized to {shape}", shape=list(shape)), where=self.name)
        self._shape = [int(d) for d in shape]
        if self._array is not None and self._array.size == int(np.prod(self._shape)):
            self._array = self._array.reshape(self._shape)
        else:
            self._array = None

    def from_numpy(self, array: Any, place: TargetType = TargetType.Host) -> None:
        """Takes a copy; the tensor gets the array's shape."""
        self._array = np.array(array, self._dtype.np, order="C")
        self._shape = list(self._array.shape)

    def numpy(self) -> np.ndarray:
        """A copy of the data. Raises UsageError when there is none yet."""
        return np.array(self.data())

    def data(self) -> np.ndarray:
        if self._array is None:
            raise UsageError(
                tr("holds no data yet"), where=self.name, fix=tr("fill it, or run the predictor")
            )
        return self._array

    def _set(self, data: Any, dtype: np.dtype) -> None:
        array = np.asarray(data, dtype)
        if not self._shape:
            raise ShapeError(tr("call resize before setting the data"), where=self.name)
        if array.size != int(np.prod(self._shape)):
            raise ShapeError(
                tr("{size} elements for shape {shape}", size=array.size, shape=self._shape),
                where=self.name,
            )
        self._array = array.reshape(self._shape).astype(self._dtype.np)

    def set_float_data(self, data: Any, type: TargetType = TargetType.Host) -> None:
        self._set(data, np.dtype(np.float32))

    def set_int32_data(self, data: Any, type: TargetType = TargetType.Host) -> None:
        self._set(data, np.dtype(np.int32))

    def set_int8_data(self, data: Any, type: TargetType = TargetType.Host) -> None:
        self._set(data, np.dtype(np.int8))

    def set_uint8_data(self, data: Any, type: TargetType = TargetType.Host) -> None:
        self._set(data, np.dtype(np.uint8))

    def float_data(self) -> list[float]:
        return [float(v) for v in self.data().ravel()]

    def int32_data(self) -> list[int]:
        return [int(v) for v in self.data().ravel()]

    int8_data = uint8_data = int32_data

    def lod(self) -> list[list[int]]:
        return self._lod

    def set_lod(self, lod: list[list[int]]) -> None:
        """Recorded; the engine runs padded batches."""
        self._lod = [list(level) for level in lod]

    def precision(self) -> PrecisionType:
        return _PRECISIONS.get(self._dtype, PrecisionType.Unk)

    def target(self) -> TargetType:
        return TargetType.Host

    def fill(self, array: np.ndarray) -> None:
        self._array, self._shape = array, list(array.shape)
        self._dtype = DType.of(array)


class LightPredictor:
    """A model, its input tensors and its output tensors."""

    def __init__(self, config: MobileConfig | CxxConfig) -> None:
        self._config = config
        self._predictors: dict[tuple[Any, ...], Predictor] = {}
        self._model: Model | None = None
        if config.model_bytes is None:
            graph = self._open(config.model_path(), config.param_path())
        else:
            with tempfile.TemporaryDirectory() as folder:
                path, params = Path(folder) / "model", None
                path.write_bytes(config.model_bytes)
                if config.param_bytes is not None:
                    params = Path(folder) / "params"
                    params.write_bytes(config.param_bytes)
                graph = self._open(path, params)
                self._model = self._model or optimize(graph)
        self._inputs = [_tensor(v) for v in graph.inputs]
        self._outputs = [_tensor(v) for v in graph.outputs]
        self._predictor(self._declared(graph))

    def _open(self, path: Path, params: Path | None) -> Graph:
        if path.is_file() and is_lite(path):
            self._model = read_model(path)
            return self._model.graph
        return load(path, params=params)

    @staticmethod
    def _declared(graph: Graph) -> tuple[Any, ...]:
        return tuple((v.name, v.shape) for v in graph.inputs)

    def _predictor(self, shapes: tuple[Any, ...]) -> Predictor:
        """The predictor for these input shapes. Paddle's models run on any size, so another shape
        is another import; `.lite` files decide for themselves."""
        if shapes not in self._predictors:
            config = self._config
            model: Model | Graph
            if self._model is not None:
                model = self._model
            else:
                fixed = {n: s for n, s in shapes if s is not None}
                model = load(config.model_path(), params=config.param_path(), shapes=fixed)
            self._predictors[shapes] = Predictor(
                model, config.backend(), threads=config.threads(),
                precision=config.engine_precision(),
            )  # fmt: skip
        return self._predictors[shapes]

    # ---- tensors
    def get_input(self, index: int) -> Tensor:
        return _at(self._inputs, index, "input")

    def get_output(self, index: int) -> Tensor:
        return _at(self._outputs, index, "output")

    def get_input_by_name(self, name: str) -> Tensor:
        return _named(self._inputs, name, "input")

    def get_output_by_name(self, name: str) -> Tensor:
        return _named(self._outputs, name, "output")

    def get_input_names(self) -> list[str]:
        return [t.name for t in self._inputs]

    def get_output_names(self) -> list[str]:
        return [t.name for t in self._outputs]

    # ---- running
    def run(self) -> None:
        """Raises ShapeError, UsageError when an input is missing."""
        feeds = {t.name: t.data() for t in self._inputs}
        shapes = tuple((n, a.shape) for n, a in feeds.items())
        predictor = self._predictor(shapes)
        for tensor, array in zip(self._outputs, predictor.run(feeds).values(), strict=True):
            tensor.fill(array)

    def get_version(self) -> str:
        return __version__

    def explain(self) -> str:
        """Why this backend was chosen (not in Paddle-Lite)."""
        return next(iter(self._predictors.values())).explain()


class CxxPredictor(LightPredictor):
    """A predictor that can save what it optimised."""

    def save_optimized_model(self, folder: str) -> None:
        """Writes `FOLDER.nb`, as Paddle-Lite does."""
        from ..model_file.naive_buffer import write_nb

        config = self._config
        places = config.places if isinstance(config, CxxConfig) else []
        names = {TargetType.X86: "x86", TargetType.ARM: "arm", TargetType.OpenCL: "opencl"}
        targets = [names[p.target] for p in places if p.target in names]
        graph = load(config.model_path(), params=config.param_path())
        write_nb(graph, f"{folder}.nb", targets=targets or ["arm"])

    def save_optimized_pb_model(self, folder: str) -> None:
        """Raises UsageError: Paddle's own form is not written."""
        raise UsageError(
            tr("cannot write Paddle models"),
            where="save_optimized_pb_model",
            fix=tr("save_optimized_model writes a .nb file"),
        )


def _tensor(value: Value) -> Tensor:
    return Tensor(value.name, value.dtype or DType.F32)


def _at(tensors: list[Tensor], index: int, kind: str) -> Tensor:
    if not 0 <= index < len(tensors):
        raise UsageError(
            tr("{kind} {index}: the model has {count}", kind=kind, index=index, count=len(tensors))
        )
    return tensors[index]


def _named(tensors: list[Tensor], name: str, kind: str) -> Tensor:
    for tensor in tensors:
        if tensor.name == name:
            return tensor
    raise UsageError(
        tr("no {kind} is called {name!r}", kind=kind, name=name),
        fix=f"{kind}s: {', '.join(t.name for t in tensors)}",
    )
