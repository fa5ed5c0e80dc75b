"""What the integers of a graph's inputs and outputs stand for: `metadata["scales"]` of a GRAPH
section is `{value: [scale, zero point]}`, for those with one scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from lite_messages import tr

from ..errors import ModelFormatError
from ..ir import QuantParams

if TYPE_CHECKING:  # a stored program starts without it
    from ..ir import Graph


def scales_of(graph: Graph) -> dict[str, Any]:
    """What `restore_scales` reads; empty where there is none."""
    found = {
        value.name: [float(value.quant.scale), int(value.quant.zero_point)]
        for value in (*graph.inputs, *graph.outputs)
        if value.quant is not None and np.size(value.quant.scale) == 1
    }
    return {"scales": found} if found else {}


def restore_scales(graph: Graph) -> None:
    """Takes them out of the metadata and gives them to the values. Raises ModelFormatError."""
    scales = graph.metadata.pop("scales", {})
    values = {value.name: value for value in (*graph.inputs, *graph.outputs)}
    if not isinstance(scales, Mapping):
        raise ModelFormatError(tr("`scales` is not an object"))
    for name, row in scales.items():
        value = values.get(name)
        if value is None or value.dtype is None or value.dtype.is_float or not _is_scale(row):
            raise ModelFormatError(tr("the scale of {name!r} is not valid", name=name))
        info = np.iinfo(value.dtype.np)
        if not info.min <= row[1] <= info.max:
            raise ModelFormatError(tr("the scale of {name!r} is not valid", name=name))
        value.quant = QuantParams(np.array(row[0], np.float32), np.array(row[1], value.dtype.np))


def _is_scale(row: Any) -> bool:
    if not isinstance(row, list) or len(row) != 2 or type(row[1]) is not int:
        return False
    return isinstance(row[0], (int, float)) and 0 < row[0] < 1e30
