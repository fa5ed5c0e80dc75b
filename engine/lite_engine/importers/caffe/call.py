"""One Caffe layer as its translator sees it, and the register of translators."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from lite_messages import tr

from ...errors import ModelFormatError
from ...ir import Value
from .._emit import Emitter
from ._prototxt import Block
from .model import Layer

Result = Value | Sequence[Value]


class Call:
    """One layer with its bottoms as values."""

    def __init__(self, emit: Emitter, layer: Layer, bottoms: list[Value]) -> None:
        self.emit = emit
        self.layer = layer
        self.bottoms = bottoms

    @property
    def x(self) -> Value:
        if not self.bottoms:
            raise ModelFormatError(
                tr("prototxt: layer {layer} has no bottom", layer=self.layer.name)
            )
        return self.bottoms[0]

    def bottom(self, index: int) -> Value:
        if index >= len(self.bottoms):
            raise ModelFormatError(
                tr(
                    "prototxt: layer {layer}: expected at least {index} bottoms",
                    layer=self.layer.name,
                    index=index + 1,
                )
            )
        return self.bottoms[index]

    def param(self, name: str) -> Block:
        return self.layer.block.block(name)

    def blob(self, index: int) -> np.ndarray:
        if index >= len(self.layer.blobs):
            raise ModelFormatError(
                tr(
                    "caffemodel: layer {layer} ({type}) has {weights} weights, "
                    "expected at least {index}",
                    layer=self.layer.name,
                    type=self.layer.type,
                    weights=len(self.layer.blobs),
                    index=index + 1,
                ),
                fix=tr("do the prototxt and the caffemodel belong together?"),
            )
        return self.layer.blobs[index]

    def weight(self, index: int, shape: Sequence[int] | None = None) -> Value:
        array = self.blob(index)
        try:
            array = array if shape is None else array.reshape(shape)
        except ValueError:
            raise ModelFormatError(
                tr(
                    "caffemodel: layer {layer}: a weight of {size} numbers does not "
                    "fill shape {shape}",
                    layer=self.layer.name,
                    size=array.size,
                    shape=list(shape or ()),
                )
            ) from None
        return self.emit.const(array, f"{self.layer.name}/{index}")

    def rank(self) -> int:
        return self.emit.rank(self.x)

    def axis(self, given: int) -> int:
        """An axis of the first bottom, counted from the front. Raises ModelFormatError."""
        rank = self.rank()
        if not -rank <= given < rank:
            raise ModelFormatError(
                tr(
                    "prototxt: layer {layer}: axis {given} is outside a bottom of rank {rank}",
                    layer=self.layer.name,
                    given=given,
                    rank=rank,
                )
            )
        return given % rank


LAYERS: dict[str, Callable[[Call], Result]] = {}


def layer(*names: str) -> Callable[[Callable[[Call], Result]], Callable[[Call], Result]]:
    def register(fn: Callable[[Call], Result]) -> Callable[[Call], Result]:
        for name in names:
            LAYERS[name] = fn
        return fn

    return register
