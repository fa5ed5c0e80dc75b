"""What LiteRT answers to small models, kept in a file: tests see when it changes."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

#: The bytes of a model, and its one input.
Made = tuple[bytes, np.ndarray]
Make = Callable[[], Made]


def outputs_of(content: bytes, feeds: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What the LiteRT of this environment answers."""
    from ai_edge_litert.interpreter import (  # type: ignore[import-not-found,unused-ignore]
        Interpreter,
    )

    net: Any = Interpreter(model_content=content, num_threads=1)
    net.allocate_tensors()
    for detail, x in zip(net.get_input_details(), feeds, strict=True):
        net.set_tensor(detail["index"], x)
    net.invoke()
    return [np.asarray(net.get_tensor(d["index"])) for d in net.get_output_details()]


def litert(make: Make) -> np.ndarray:
    """The same, flat; several outputs one after the other."""
    content, x = make()
    return np.concatenate([y.ravel() for y in outputs_of(content, [x])])


def read(file: Path, dtype: type) -> dict[str, np.ndarray]:
    """Case → recorded answer, flat."""
    found = json.loads(file.read_text())["answers"]
    return {
        name: np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype)
        for name, text in found.items()
    }


def record(file: Path, cases: Mapping[str, Make]) -> None:
    from importlib.metadata import version

    answers = {
        name: base64.b64encode(zlib.compress(litert(make).tobytes(), 9)).decode()
        for name, make in cases.items()
    }
    content = {"litert": version("ai-edge-litert"), "answers": answers}
    file.write_text(json.dumps(content, indent=1) + "\n")
