"""Running an imported graph with the NumPy references, and the recorded outputs of other
engines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from lite_engine.ir import Graph
from lite_engine.ops import run_node
from PIL import Image


def run_graph(graph: Graph, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Outputs by name. Values are dropped after their last reader."""
    left = {id(v): len(v.readers) for v in graph.values()}
    arrays: dict[int, np.ndarray] = {id(v): feeds[v.name] for v in graph.inputs}
    keep = {id(v) for v in graph.outputs}

    def read(value):
        if value is None or value.const is not None:
            return None if value is None else value.const
        array = arrays[id(value)]
        left[id(value)] -= 1
        if not left[id(value)] and id(value) not in keep:
            del arrays[id(value)]
        return array

    for node in graph.nodes:
        for value, array in zip(node.outputs, run_node(node, [read(v) for v in node.inputs])):
            arrays[id(value)] = array
    return {v.name: v.const if v.is_const else arrays[id(v)] for v in graph.outputs}


class Golden:
    """One recorded run: its feeds, and its outputs in the order of `names`."""

    def __init__(self, models: Path, path: Path) -> None:
        self.models, self.data = models, np.load(path)
        self.meta: dict[str, Any] = json.loads(str(self.data["meta"]))
        self.names: list[str] = [n.removesuffix(":0") for n in self.meta.get("outputs", [])]

    def feed(self) -> np.ndarray:
        """The input as the engine got it: resized image, normalised, in the model's layout."""
        if "input" in self.data.files:
            return self.data["input"]
        image = np.asarray(Image.open(self.models / "goldens" / self.meta["input_png"]))
        x = (image if image.ndim == 3 else image[..., None]).astype(np.float32)
        if self.meta.get("bgr"):
            x = x[..., ::-1]
        mean = np.asarray(self.meta["mean"], np.float32)
        if "scale" in self.meta:
            x = (x - mean) * np.float32(self.meta["scale"])
        else:
            x = (x - mean) / np.asarray(self.meta["std"], np.float32)
        scale, zero = self.meta.get("in_q", (0, 0))
        if scale:
            info = np.iinfo(self.meta["in_dtype"])
            x = np.clip(np.rint(x / np.float32(scale)) + zero, info.min, info.max)
            x = x.astype(self.meta["in_dtype"])
        x = x[None]
        return np.ascontiguousarray(x if self.meta["layout"] == "NHWC" else x.transpose(0, 3, 1, 2))

    def wanted(self, index: int, prefix: str = "") -> np.ndarray:
        """Output `index`; every 11th element of a large one."""
        for key in (f"{prefix}out{index}", f"out{index}", f"out{index}_stride11"):
            if key in self.data.files:
                return self.data[key]
        raise KeyError(f"{prefix}out{index}")

    def sampled(self, index: int, array: np.ndarray) -> np.ndarray:
        """An output of ours, reduced as the recorded one was."""
        if f"out{index}_stride11" in self.data.files:
            assert tuple(self.data[f"out{index}_shape"]) == array.shape
            return array.ravel()[::11]
        return array


def relative_error(found: np.ndarray, wanted: np.ndarray) -> float:
    """Largest difference over the range of the wanted values."""
    assert found.shape == wanted.shape, f"{found.shape} instead of {wanted.shape}"
    span = float(np.ptp(wanted)) or float(np.abs(wanted).max()) or 1.0
    return float(np.abs(found.astype(np.float64) - wanted).max()) / span
