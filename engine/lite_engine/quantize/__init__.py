"""Graph + samples → ranges → a quantised graph in QDQ form."""

from ._run import Run, reference_run
from .calibrate import Calibration, Ranges, calibrate
from .observers import METHODS
from .prepare import prepare
from .samples import Samples, read_samples
from .scheme import Scheme
from .select import conversions, integer_nodes
from .static import quantize_static
from .statistics import Statistics

__all__ = [
    "METHODS",
    "Calibration",
    "Ranges",
    "Run",
    "Samples",
    "Scheme",
    "Statistics",
    "calibrate",
    "conversions",
    "integer_nodes",
    "prepare",
    "quantize_static",
    "read_samples",
    "reference_run",
]
