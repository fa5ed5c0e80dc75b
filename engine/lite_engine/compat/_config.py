"""Paddle-Lite's configuration objects: plain records of what a script sets."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from lite_messages import tr

from ..errors import LiteWarning, UsageError


class _Named(IntEnum):
    """A number that prints as `TargetType.X86`, as Paddle-Lite's do."""

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


class TargetType(_Named):
    """Numbers as in Paddle-Lite's paddle_place.h; this engine runs X86, ARM, OpenCL and Host."""

    Unk = 0
    Host = 1
    X86 = 2
    ARM = 4
    OpenCL = 5
    Any = 6
    FPGA = 7
    XPU = 9
    BM = 10
    MLU = 11
    RKNPU = 12
    APU = 13
    HUAWEI_ASCEND_NPU = 14
    IMAGINATION_NNA = 15
    INTEL_FPGA = 16
    Metal = 17
    NNAdapter = 18


class PrecisionType(_Named):
    Unk = 0
    FP32 = 1
    INT8 = 2
    INT32 = 3
    Any = 4
    FP16 = 5
    BOOL = 6
    INT64 = 7
    INT16 = 8
    UINT8 = 9
    FP64 = 10


class DataLayoutType(_Named):
    Unk = 0
    NCHW = 1
    Any = 2
    NHWC = 3
    ImageDefault = 4
    ImageFolder = 5
    ImageNW = 6
    MetalTexture2DArray = 7
    MetalTexture2D = 8


class PowerMode(_Named):
    LITE_POWER_HIGH = 0
    LITE_POWER_LOW = 1
    LITE_POWER_FULL = 2
    LITE_POWER_NO_BIND = 3
    LITE_POWER_RAND_HIGH = 4
    LITE_POWER_RAND_LOW = 5


class CLTuneMode(_Named):
    CL_TUNE_NONE = 0
    CL_TUNE_RAPID = 1
    CL_TUNE_NORMAL = 2
    CL_TUNE_EXHAUSTIVE = 3


class CLPrecisionType(_Named):
    CL_PRECISION_AUTO = 0
    CL_PRECISION_FP32 = 1
    CL_PRECISION_FP16 = 2


#: Targets of Paddle-Lite that this engine has, and the backend that serves each.
BACKENDS = {
    TargetType.X86: "x86",
    TargetType.ARM: "arm",
    TargetType.OpenCL: "opencl",
    TargetType.Host: "auto",
    TargetType.Any: "auto",
}


@dataclass(frozen=True)
class Place:
    """Where a kernel may run."""

    target: TargetType
    precision: PrecisionType = PrecisionType.FP32
    layout: DataLayoutType = DataLayoutType.NCHW
    device: int = 0

    def is_valid(self) -> bool:
        return self.target is not TargetType.Unk and self.precision is not PrecisionType.Unk


def _elsewhere(name: str) -> Callable[..., None]:
    """A setting of hardware that this engine does not have: accepted with a warning."""

    def accept(self: _Config, *_: object, **__: object) -> None:
        warnings.warn(
            tr(
                "{name}: this hardware is not supported; x86, arm or opencl runs the model",
                name=name,
            ),
            LiteWarning,
            stacklevel=2,
        )

    accept.__name__ = name
    return accept


class _Config:
    """What both kinds of config hold."""

    def __init__(self) -> None:
        self._model_dir = ""
        self._model_file = ""
        self._param_file = ""
        self._threads = 1
        self._power_mode = PowerMode.LITE_POWER_NO_BIND
        self._cl_precision = CLPrecisionType.CL_PRECISION_AUTO
        self.model_bytes: bytes | None = None
        self.param_bytes: bytes | None = None
        self.tune_mode = CLTuneMode.CL_TUNE_NONE
        self.opencl_binary: Path | None = None

    def set_model_dir(self, path: str) -> None:
        self._model_dir = str(path)

    def model_dir(self) -> str:
        return self._model_dir

    def is_model_from_memory(self) -> bool:
        return self.model_bytes is not None

    def set_threads(self, threads: int) -> None:
        """Raises UsageError for fewer than one."""
        if threads < 1:
            raise UsageError(tr("threads must be at least 1, got {threads}", threads=threads))
        self._threads = int(threads)

    def threads(self) -> int:
        return self._threads

    def set_power_mode(self, mode: PowerMode) -> None:
        """Recorded; which cores run is left to the system's scheduler."""
        self._power_mode = PowerMode(mode)

    def power_mode(self) -> PowerMode:
        return self._power_mode

    def set_opencl_tune(
        self, mode: CLTuneMode = CLTuneMode.CL_TUNE_NORMAL, path: str = "", name: str = "",
        lws_repeats: int = 4,
    ) -> None:  # fmt: skip
        """Recorded; tuning results live in the engine's own cache."""
        self.tune_mode = CLTuneMode(mode)

    def set_opencl_precision(self, precision: CLPrecisionType) -> None:
        self._cl_precision = CLPrecisionType(precision)

    def set_opencl_binary_path_name(self, path: str, name: str) -> None:
        """Recorded; compiled kernels live in the engine's own cache."""
        self.opencl_binary = Path(path) / name

    def engine_precision(self) -> str | None:
        """What the predictor is asked for: fp32, fp16, or nothing."""
        if self._cl_precision is CLPrecisionType.CL_PRECISION_AUTO:
            return None
        return self._cl_precision.name[-4:].lower()

    def backend(self) -> str:
        return "auto"

    def model_path(self) -> Path:
        """Raises UsageError when the script named no model."""
        path = self._model_file or self._model_dir
        if not path:
            raise UsageError(
                tr("the config has no model"), fix=tr("call set_model_from_file or set_model_dir")
            )
        return Path(path)

    def param_path(self) -> Path | None:
        return Path(self._param_file) if self._param_file else None


for _name in (
    "set_metal_lib_path",
    "set_metal_use_memory_reuse",
    "set_metal_use_mps",
    "set_nnadapter_context_properties",
    "set_nnadapter_device_names",
    "set_nnadapter_dynamic_shape_info",
    "set_nnadapter_mixed_precision_quantization_config_path",
    "set_nnadapter_model_cache_buffers",
    "set_nnadapter_model_cache_dir",
    "set_nnadapter_subgraph_partition_config_path",
):
    setattr(_Config, _name, _elsewhere(_name))


class MobileConfig(_Config):
    """Opens `.nb` and `.lite` files."""

    def set_model_from_file(self, path: str) -> None:
        self._model_file = str(path)

    def set_model_from_buffer(self, data: bytes | str) -> None:
        """The bytes of a `.nb` or `.lite` file."""
        self.model_bytes = _bytes(data)

    def set_model_buffer(
        self, model: bytes | str, model_size: int, params: bytes | str = b"", params_size: int = 0
    ) -> None:
        """The bytes of a `.nb` file. Raises UsageError for weights in a buffer of their own, the
        form before `.nb` files."""
        if params_size:
            raise UsageError(tr("set_model_buffer: expected one buffer with the whole .nb file"))
        self.model_bytes = _bytes(model)[:model_size]


def _bytes(data: bytes | str) -> bytes:
    return data.encode("latin-1") if isinstance(data, str) else bytes(data)


class CxxConfig(_Config):
    """Opens Paddle models, and every other format the engine reads."""

    def __init__(self) -> None:
        super().__init__()
        self.places: list[Place] = []

    def set_model_file(self, path: str) -> None:
        self._model_file = str(path)

    def model_file(self) -> str:
        return self._model_file

    def set_param_file(self, path: str) -> None:
        self._param_file = str(path)

    def param_file(self) -> str:
        return self._param_file

    def set_model_buffer(
        self, model: bytes | str, model_size: int, params: bytes | str, params_size: int
    ) -> None:
        """The bytes of a program and of its combined parameters."""
        self.model_bytes = _bytes(model)[:model_size]
        self.param_bytes = _bytes(params)[:params_size]

    def set_passes_internal(self, passes: Sequence[str]) -> None:
        """Accepted: the passes are the engine's own."""

    def add_discarded_pass(self, name: str) -> None:
        """Accepted: the passes are the engine's own."""

    def set_valid_places(self, places: Sequence[Place]) -> None:
        """Raises UsageError when none of them is a target of this engine."""
        known = [p for p in places if p.target in BACKENDS]
        if places and not known:
            names = ", ".join(TargetType(p.target).name for p in places)
            raise UsageError(
                tr("targets {names}: this engine has X86, ARM and OpenCL", names=names)
            )
        self.places = list(places)

    def backend(self) -> str:
        """The first place's backend, in the script's order of preference."""
        for place in self.places:
            if place.target in BACKENDS:
                return BACKENDS[place.target]
        return "auto"
