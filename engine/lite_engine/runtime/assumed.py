"""Sizes assumed for inputs that leave them open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..errors import LiteError, UsageError
from ..ir import Graph, Shape, Value
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
        assumed = assumed_shapes(is_open, size)
        try:
            return specialise(graph, assumed), assumed, ""
        except LiteError as error:
            misfit = misfit or str(error)
    return None, assumed_shapes(is_open, sizes[0]), misfit


def _stated_size(graph: Graph) -> tuple[int, int] | None:
    try:
        return Preprocess.of(graph.metadata).size
    except UsageError:
        return None  # what a picture's preparation lacks is told to who gives a picture


def assumed_shapes(
    inputs: Iterable[Value], size: tuple[int, int] = _IMAGE_SIZES[0],
    given: Mapping[str, Sequence[int]] | None = None,
) -> dict[str, tuple[int, ...]]:  # fmt: skip
    """Sizes of the inputs that are not `given`. A symbol has one size wherever it stands: what was
    given for it, else the first that is assumed."""
    given, found, waiting = given or {}, {}, []
    known: dict[object, int] = {}
    for value in inputs:
        if value.name in given:
            known.update(zip(value.shape or (), given[value.name]))
        else:
            waiting.append(value)
    for value in waiting:
        shape = (None,) * 4 if value.shape is None else value.shape
        likely = zip(shape, _assumed_shape(shape, size))
        found[value.name] = tuple(
            known.setdefault(d, n) if isinstance(d, str) else n for d, n in likely
        )
    return found


def _assumed_shape(shape: Shape, size: tuple[int, int]) -> tuple[int, ...]:
    """A batch of one, 3 channels where they are open, and an image's height and width."""
    if len(shape) != 4:
        return tuple(
            d if isinstance(d, int) else 1 if i == 0 and len(shape) > 1 else _OPEN_LENGTH
            for i, d in enumerate(shape)
        )
    likely = (1, *size, 3) if shape[3] in (1, 3) and shape[1] not in (1, 3) else (1, 3, *size)
    return tuple(d if isinstance(d, int) else likely[i] for i, d in enumerate(shape))
