"""Changes of a graph by hand: cut, resized, renamed, layers replaced, ends added or removed.

part = extract(load("model.onnx"), ["conv1"], ["pool5"])
write_onnx(rebatch(part, 8).graph, "part.onnx")

Each function leaves the graph it gets as it is and returns another one, which shares the weights.
"""

from .bare import remove_normalization, remove_postprocessing
from .cut import extract, extract_layers
from .ends import append, append_nms, fold, normalize, optimized
from .nodes import drop, rename, replace, replace_matches
from .pattern_text import pattern
from .sizes import Refusal, Resized, batched, rebatch, resize

__all__ = [
    "Refusal",
    "Resized",
    "append",
    "append_nms",
    "batched",
    "drop",
    "extract",
    "extract_layers",
    "fold",
    "normalize",
    "optimized",
    "pattern",
    "rebatch",
    "remove_normalization",
    "remove_postprocessing",
    "rename",
    "replace",
    "replace_matches",
    "resize",
]
