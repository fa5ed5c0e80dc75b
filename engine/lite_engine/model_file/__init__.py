"""Models on disk: `.lite` reading and writing."""

from .changes import in_float, retarget, with_int8, with_outputs, with_shapes
from .contents import TRAVELLING
from .layers import parse_layers, with_layers
from .model import Model
from .opening import open_model, optimize
from .parts import file_parts
from .precision import computed, parse_precisions, parse_targets
from .reader import is_lite, read_model

__all__ = [
    "TRAVELLING",
    "Model",
    "computed",
    "file_parts",
    "in_float",
    "is_lite",
    "open_model",
    "optimize",
    "parse_layers",
    "parse_precisions",
    "parse_targets",
    "read_model",
    "retarget",
    "with_int8",
    "with_layers",
    "with_outputs",
    "with_shapes",
]
