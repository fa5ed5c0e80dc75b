"""Changes of a graph by hand: cut, resized, renamed, layers replaced, ends added.

part = extract(load("model.onnx"), ["conv1"], ["pool5"])
write_onnx(rebatch(part, 8).graph, "part.onnx")

Each function leaves the graph it gets as it is and returns another one, which shares the weights.
"""

from .cut import extract, extract_layers
from .ends import append, append_nms, fold, normalize, optimized
from .nodes import drop, rename, replace, replace_matches
from .sizes import Refusal, Resized, rebatch, resize

__all__ = [
    "Refusal",
    "Resized",
    "append",
    "append_nms",
    "drop",
    "extract",
    "extract_layers",
    "fold",
    "normalize",
    "optimized",
    "rebatch",
    "rename",
    "replace",
    "replace_matches",
    "resize",
]
