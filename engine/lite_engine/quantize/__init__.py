"""Graph + samples → ranges → a quantized graph in QDQ form."""

from typing import Any

from .._deprecated import warn_renamed
from ._run import Run, reference_run
from .analyze import analyze, choose, sensitivity, trade_off
from .calibrate import Calibration, Ranges, calibrate
from .curve import Curve, read_curve
from .equalize import equalize
from .groups import Groups
from .guard import Verdict, judge
from .observers import METHODS
from .options import Options
from .post_training import Quantized, quantize
from .prepare import prepare
from .samples import Samples, read_samples
from .scheme import Scheme
from .select import conversions, in_integers, integer_nodes, named_layers
from .static import quantize_static
from .statistics import Statistics
from .weight_only import quantize_weights
from .weights_int4 import METHODS_INT4, Int4Weights, quantize_weights_int4

__all__ = [
    "METHODS",
    "METHODS_INT4",
    "Calibration",
    "Curve",
    "Groups",
    "Int4Weights",
    "Options",
    "Quantized",
    "Ranges",
    "Run",
    "Samples",
    "Scheme",
    "Statistics",
    "Verdict",
    "analyze",
    "calibrate",
    "choose",
    "conversions",
    "equalize",
    "in_integers",
    "integer_nodes",
    "judge",
    "named_layers",
    "prepare",
    "quantize",
    "quantize_static",
    "quantize_weights",
    "quantize_weights_int4",
    "read_curve",
    "read_samples",
    "reference_run",
    "sensitivity",
    "trade_off",
]


def __getattr__(name: str) -> Any:
    if name != "Quantised":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warn_renamed("lite_engine.quantize.Quantised", "lite_engine.quantize.Quantized")
    return Quantized
