"""An answer on its image, drawn by the runtime."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
from lite_messages import tr

from ..adapter import Adapter
from ..errors import UsageError
from ..model_file import Model
from ..model_file.native_stage import pipeline_of_one
from .native import NativePipeline


def drawn(
    model: Model, image: bytes, outputs: Sequence[np.ndarray], labels: Sequence[str] | None,
    adapter: Adapter,
) -> bytes:  # fmt: skip
    """What `outputs` of the model say about an image (a JPEG, PNG or BMP file), as a PNG file.
    Raises UsageError for a model that takes no image."""
    document = pipeline_of_one(model)
    if document is None:
        raise UsageError(tr("its input is not one image of a known size"), where=model.name)
    stage = document["models"][0]
    stage["read"] = adapter.options()
    if labels is not None:
        stage["labels"] = list(labels)
    native = NativePipeline(json.dumps(document).encode(), lambda *_: outputs)
    native.run(image)
    return native.drawn()
