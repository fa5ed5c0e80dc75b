"""Paddle-Lite's Python API on this engine: change the import, keep the script.

    from lite_engine.compat.paddlelite import MobileConfig, create_paddle_predictor

    config = MobileConfig()
    config.set_model_from_file("model.nb")          # .nb or .lite
    predictor = create_paddle_predictor(config)
    predictor.get_input(0).from_numpy(image)
    predictor.run()
    result = predictor.get_output(0).numpy()

Names, arguments and results are those of `paddlelite.lite` 2.13, except that errors are LiteError
with a message instead of an abort. What its Python API lacks is here too: `set_threads` and
`set_power_mode` on MobileConfig, and `is_opencl_backend_valid`.
"""

from __future__ import annotations

from .._version import __version__
from ..errors import BackendUnavailableError
from ._config import (
    CLPrecisionType,
    CLTuneMode,
    CxxConfig,
    DataLayoutType,
    MobileConfig,
    Place,
    PowerMode,
    PrecisionType,
    TargetType,
)
from ._predictor import CxxPredictor, LightPredictor, Tensor
from .opt import Opt

Config = CxxConfig | MobileConfig


def create_paddle_predictor(config: Config) -> LightPredictor:
    """Opens the model of a config. Raises ModelFormatError, UsageError, BackendUnavailableError."""
    return CxxPredictor(config) if isinstance(config, CxxConfig) else LightPredictor(config)


def is_opencl_backend_valid(check_fp16_valid: bool = False) -> bool:
    """True when an OpenCL device can be used here (and computes in half precision, when asked)."""
    from ..backends.opencl.device import choose

    try:
        device = choose()
    except BackendUnavailableError:
        return False
    return device.fp16 or not check_fp16_valid


def get_version() -> str:
    return __version__


__all__ = [
    "CLPrecisionType",
    "CLTuneMode",
    "CxxConfig",
    "CxxPredictor",
    "DataLayoutType",
    "LightPredictor",
    "MobileConfig",
    "Opt",
    "Place",
    "PowerMode",
    "PrecisionType",
    "TargetType",
    "Tensor",
    "create_paddle_predictor",
    "get_version",
    "is_opencl_backend_valid",
]
