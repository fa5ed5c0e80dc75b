"""Which numbers a model's inputs have in use, as far as the model says it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import LiteError
from ..ir import Graph, Value
from ..model_file import Model
from ..preprocess import Preprocess

#: Lowest and highest number: one of each, or one per channel, which broadcasts to the input.
Range = tuple[np.ndarray, np.ndarray]


def input_range(model: Model | Graph, inputs: Sequence[Value], value: Value) -> Range | None:
    """Of one of the inputs, of floats: what pixels become by the model's preprocessing, else what
    its quantization of the input holds. None where neither is known, or it is no range of the type.
    """
    dtype = value.type.dtype.np
    if dtype.kind != "f":
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        ends = _of_pixels(model, inputs, value) or _of_integers(model, value.name)
        if ends is None:
            return None
        low, high = np.minimum(*ends), np.maximum(*ends)
        most = np.finfo(dtype).max
        held = (-most <= low) & (low < high) & (high <= most) & np.isfinite(high - low)
    return (low, high) if held.all() else None


def _of_pixels(model: Model | Graph, inputs: Sequence[Value], value: Value) -> Range | None:
    """What a black and a white pixel become in the image input, in any order."""
    if not model.metadata.get("preprocess"):
        return None
    found = ((one, _image(model, one)) for one in inputs)
    image, spec = next(((one, spec) for one, spec in found if spec is not None), (None, None))
    if spec is None or image is not value:
        return None
    broadcast = (-1,) if spec.layout == "nhwc" else (-1, 1, 1)
    mean, std = (np.reshape(x, broadcast) for x in spec.scaling)
    return (0 - mean) / std, (255 - mean) / std


def _image(model: Model | Graph, value: Value) -> Preprocess | None:
    """How images become this input; None where none does."""
    dims = value.shape or ()
    try:
        spec = Preprocess.of(model.metadata).fitted(dims)
    except LiteError:  # whoever has an image learns it
        return None
    return spec if len(dims) == 4 and dims[3 if spec.layout == "nhwc" else 1] in (1, 3) else None


def _of_integers(model: Model | Graph, name: str) -> Range | None:
    """What the least and the largest integer stand for, in any order: of the first layer that makes
    integers of this input with one scale."""
    for graph in [model] if isinstance(model, Graph) else model.all_graphs():
        for node in graph.nodes:
            read = node.inputs[0] if node.op == "QuantizeLinear" else None
            if read is None or read.name != name or len(node.inputs) < 3:
                continue
            scale, zero = (v.const if v is not None else None for v in node.inputs[1:3])
            if scale is None or zero is None or scale.size != 1 or zero.size != 1:
                continue
            info = np.iinfo(zero.dtype)
            step, middle = scale.astype(np.float64).reshape(()), int(zero.reshape(()))
            return np.asarray((info.min - middle) * step), np.asarray((info.max - middle) * step)
    return None
