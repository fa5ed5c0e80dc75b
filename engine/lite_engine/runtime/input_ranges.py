"""Which numbers a model's inputs have in use, as far as the model says it."""

from __future__ import annotations

import numpy as np

from ..errors import UsageError
from ..ir import Graph, Value
from ..model_file import Model
from ..preprocess import Preprocess

#: Lowest and highest number: one of each, or one per channel, which broadcasts to the input.
Range = tuple[np.ndarray, np.ndarray]


def input_range(model: Model | Graph, value: Value) -> Range | None:
    """Of an input of floats: what pixels become by the model's preprocessing, else what its
    quantization of the input holds. None where neither is known."""
    return _of_pixels(model, value) or _of_integers(model, value.name)


def _of_pixels(model: Model | Graph, value: Value) -> Range | None:
    try:
        spec = Preprocess.of(model.metadata)
    except UsageError:  # whoever has an image learns it
        return None
    dims = value.shape or ()
    axis = 1 if spec.layout != "nhwc" else 3
    if spec.mean is None or spec.std is None or len(dims) != 4 or dims[axis] not in (1, 3):
        return None
    if not {len(spec.mean), len(spec.std)} <= {1, dims[axis]}:
        return None
    broadcast = (-1, 1, 1) if axis == 1 else (-1,)
    mean, std = (np.reshape(x, broadcast) for x in (spec.mean, spec.std))
    ends = (0 - mean) / std, (255 - mean) / std
    return np.minimum(*ends), np.maximum(*ends)


def _of_integers(model: Model | Graph, name: str) -> Range | None:
    """Of the first layer that makes integers of this input with one scale."""
    for graph in [model] if isinstance(model, Graph) else model.all_graphs():
        for node in graph.nodes:
            read = node.inputs[0] if node.op == "QuantizeLinear" else None
            if read is None or read.name != name or len(node.inputs) < 3:
                continue
            scale, zero = (v.const if v is not None else None for v in node.inputs[1:3])
            if scale is None or zero is None or scale.size != 1:
                continue
            info = np.iinfo(zero.dtype)
            low, high = ((end - zero.astype(np.float64)) * scale for end in (info.min, info.max))
            return low.reshape(()), high.reshape(())
    return None
