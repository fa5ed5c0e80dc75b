"""Pipelines whose models are functions: what goes in is seen, what comes out is given."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from lite_engine.pipeline.native import NativePipeline
from PIL import Image


def png(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def model(
    name: str, outputs: int = 1, *, labels: Sequence[str] = (),
    read: Mapping[str, Any] | None = None, input: Mapping[str, Any] | None = None,
    quants: Sequence[Mapping[str, Any]] | None = None,
    **preprocess: Any,
) -> dict[str, Any]:  # fmt: skip
    return {
        "name": name,
        "section": "MODEL.0",
        "input": dict(input or {"dtype": "f32"}),
        "outputs": [dict(q) for q in quants or [{}] * outputs],
        "preprocess": {"size": [16, 16], **preprocess},
        "labels": list(labels),
        "read": dict(read or {}),
    }


def document(
    models: Sequence[Mapping[str, Any]], stages: Sequence[Mapping[str, Any]] = ()
) -> bytes:
    stages = stages or [{"model": models[0]["name"]}]
    return json.dumps(
        {"format": 1, "name": "test", "input": "image", "models": models, "stages": stages}
    ).encode()


def answers(
    outputs: Sequence[np.ndarray], how: Mapping[str, Any], pixels: np.ndarray | None = None
) -> dict[str, Any]:
    """What a pipeline of one model, which gives these outputs, says of a picture."""
    native = NativePipeline(document([how]), lambda *_: outputs)
    native.run(png(np.zeros((16, 16, 3), np.uint8) if pixels is None else pixels))
    found: dict[str, Any] = json.loads(native.answer(times=False))["answers"][how["name"]]
    return found
