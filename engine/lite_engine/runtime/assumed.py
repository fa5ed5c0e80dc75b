"""Sizes assumed for inputs that leave them open."""

from __future__ import annotations

from ..errors import LiteError, UsageError
from ..ir import Graph, Shape
from ..ops import has_sizes, specialise
from ..preprocess import Preprocess

#: heights and widths that open image inputs are tried with
_IMAGE_SIZES = (
    (224, 224),
    (48, 320),
    (32, 320),
    (320, 320),
    (128, 128),
    (96, 96),
    (112, 112),
    (640, 640),
)
_OPEN_LENGTH = 16


def with_sizes(
    graph: Graph, *, folds: bool = False
) -> tuple[Graph | None, dict[str, tuple[int, ...]], str]:
    """(the graph with every size known, the sizes assumed for inputs that leave them open, "");
    (None, those sizes, why not) when none fits. A graph whose constants are known to fold (`folds`)
    comes back itself where it has all sizes."""
    if folds and has_sizes(graph):
        return graph, {}, ""
    is_open = [v for v in graph.inputs if v.shape is not None and not v.type.is_static]
    sizes: tuple[tuple[int, int], ...] = _IMAGE_SIZES if is_open else _IMAGE_SIZES[:1]
    stated = _stated_size(graph)
    if stated and is_open:
        sizes = (stated, *sizes)
    misfit = ""
    for size in sizes:
        assumed = {v.name: assumed_shape(v.shape or (), size) for v in is_open}
        try:
            return specialise(graph, assumed), assumed, ""
        except LiteError as error:
            misfit = misfit or str(error)
    return None, {v.name: assumed_shape(v.shape or (), sizes[0]) for v in is_open}, misfit


def _stated_size(graph: Graph) -> tuple[int, int] | None:
    try:
        return Preprocess.of(graph.metadata).size
    except UsageError:
        return None  # what a picture's preparation lacks is told to who gives a picture


def assumed_shape(shape: Shape, size: tuple[int, int] = _IMAGE_SIZES[0]) -> tuple[int, ...]:
    """A batch of one, 3 channels where they are open, and an image's height and width."""
    if len(shape) != 4:
        return tuple(
            d if isinstance(d, int) else 1 if i == 0 and len(shape) > 1 else _OPEN_LENGTH
            for i, d in enumerate(shape)
        )
    likely = (1, *size, 3) if shape[3] in (1, 3) and shape[1] not in (1, 3) else (1, 3, *size)
    return tuple(d if isinstance(d, int) else likely[i] for i, d in enumerate(shape))
