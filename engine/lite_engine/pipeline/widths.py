"""Lines of text at their own width: a model whose input has one of several widths.

The model keeps its width open. Here it is planned for each width that occurs; a file has a program
for each of them, which share the weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lite_messages import tr

from ..edit import resize
from ..errors import UsageError
from ..ir import Graph, Shape, Value
from ..model_file import Model, with_shapes

#: Of a stage; each is a program.
_MOST = 16


def read_widths(said: Any) -> tuple[int, ...]:
    """`widths` of a stage, the narrowest first. Raises UsageError."""
    if said is None:
        return ()
    good = isinstance(said, (list, tuple)) and all(
        isinstance(width, int) and not isinstance(width, bool) and 1 <= width <= 65535
        for width in said
    )
    if not good or not 1 <= len(said) <= _MOST:
        raise UsageError(
            tr("`widths` must be 1 to {most} whole numbers, got {value!r}", most=_MOST, value=said)
        )
    return tuple(sorted(set(said)))


def width_axis(layout: str | None, dims: tuple[Any, ...]) -> int:
    """Of an image input with these dims."""
    return 2 if (layout or ("nhwc" if dims[3] in (1, 3) else "nchw")) == "nhwc" else 3


def for_widths(model: Model, axis: int, widths: Sequence[int]) -> Model:
    """The model with an open width of its only input, which may have each of these. Raises
    UsageError for a layer that cannot follow."""
    (image,) = model.graph.inputs

    def follows(graph: Graph, width: int | str) -> Graph:
        made = resize(graph, {image.name: _but(image, axis, width)})
        if made.refused:
            first = made.refused[0]
            raise UsageError(
                tr("its width cannot change: {layer} ({op}): {why}",
                   layer=first.layer, op=first.op, why=first.why),
                where=model.name,
                fix=tr("leave `widths` out, or export the model with an open width"),
            )  # fmt: skip
        return made.graph

    def opened(graph: Graph) -> Graph:
        made = graph if image.shape and not isinstance(image.shape[axis], int) else None
        made = made or follows(graph, "width")
        for width in widths:
            follows(made, width)
        return made

    graphs: Mapping[str, Graph] = {p: opened(graph) for p, graph in model.graphs.items()}
    return model.but(source=opened(model.graph), graphs=graphs, path=None)


def _but(image: Value, axis: int, width: int | str) -> Shape:
    return tuple(width if i == axis else d for i, d in enumerate(image.shape or ()))


def of_width(model: Model, axis: int, width: int) -> Model:
    """The model for this width alone. Raises ShapeError."""
    (image,) = model.graph.inputs
    return with_shapes(model, {image.name: _but(image, axis, width)})
