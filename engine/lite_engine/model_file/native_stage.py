"""A model as the native runtime's pipelines read it: what goes in, and what comes out."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..adapter import Adapter
from ..errors import LiteError
from ..ir import DType, QuantParams
from ..preprocess import Preprocess
from .contents import Contents

#: The version of a pipeline's document.
FORMAT = 1
#: Types that a model's input may have.
INPUTS = {DType.F32: "f32", DType.I8: "i8", DType.U8: "u8"}
#: Of a stage's name.
MOST_BYTES = 60


def quant_of(quant: QuantParams | None) -> dict[str, Any]:
    """Scale and zero point, where there is one of each."""
    if quant is None or np.size(quant.scale) != 1:
        return {}
    return {"scale": float(quant.scale), "zero_point": int(quant.zero_point)}


def pipeline_of_one(model: Contents) -> dict[str, Any] | None:
    """The document of the pipeline that this model is, with what travels with it; None where it has
    another input than one image of a known size."""
    graph = model.graph
    image = graph.inputs[0] if len(graph.inputs) == 1 else None
    if image is None or image.type.dtype not in INPUTS:
        return None
    shape = image.shape or ()
    try:
        fitted = Preprocess.of(model.metadata).fitted(shape)
        read = Adapter.of(model.metadata).options()
    except LiteError:
        return None
    if not fitted.size:
        return None
    batch = {"batch": shape[0]} if isinstance(shape[0], int) and shape[0] > 1 else {}
    name = model.name if 0 < len(model.name.encode()) <= MOST_BYTES else "model"
    stage = {
        "name": name,
        "section": "",  # it is the file
        "input": {"dtype": INPUTS[image.type.dtype], **quant_of(image.quant), **batch},
        "outputs": [quant_of(value.quant) for value in graph.outputs],
        "preprocess": fitted.to_dict(),
        "labels": [str(label) for label in model.metadata.get("labels") or []],
        "read": read,
    }
    return {
        "format": FORMAT, "name": model.name, "input": "image", "models": [stage],
        "stages": [{"model": name}],
    }  # fmt: skip
