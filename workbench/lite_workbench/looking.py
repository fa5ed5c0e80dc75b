"""Look: the values of a tensor, on one side or two, as numbers and as `lite_widgets.TensorView`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from lite_messages import tr


@dataclass(frozen=True)
class Look:
    """One tensor of a layer, as `Session.look` returns it.

    name, layer   the tensor's, and the layer's that writes or reads it ("" for an input)
    role          "activation" (N,C,…) or "weight" (O,I,…)
    arrays        side → values, as ONNX lays them out
    tensors       [[name, text]]: outputs and weights of the layer
    source        what the network ran on: an image, or the name of the input
    """

    name: str
    layer: str
    role: str
    arrays: Mapping[str, np.ndarray]
    tensors: list[list[str]]
    source: str = ""

    def __getitem__(self, side: str) -> np.ndarray:
        return self.arrays[side]

    @property
    def sentence(self) -> str:
        """Name, shape and range of the first side."""
        side, array = next(iter(self.arrays.items()))
        shape = "×".join(map(str, array.shape)) or tr("scalar")
        finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array
        if not finite.size:
            return tr("{name} on {side}: {shape}, no finite values", name=self.name, side=side,
                      shape=shape)  # fmt: skip
        return tr("{name} on {side}: {shape}, {low:.4g} … {high:.4g}", name=self.name, side=side,
                  shape=shape, low=finite.min(), high=finite.max())  # fmt: skip

    def fill(self, widget: Any) -> None:
        """Shows it in a `lite_widgets.TensorView`."""
        widget.tensors, widget.chosen = self.tensors, self.name
        widget.show(self.name, self.arrays, self.role, layer=self.layer, note=self.source)

    def __repr__(self) -> str:
        return f"<Look {self.sentence}>"
