"""Preprocessing and post-processing as layers of the graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import UsageError
from ..importers import values_named
from ..ir import Graph, Journal, Value, verify
from ..ops import infer_types
from ..passes import optimize_graph
from ..passes.fold_constants import fold_constants
from ..passes.fold_conv_input import fold_conv_input
from ..passes.fold_shapes import fold_shapes
from ..passes.fuse_conv_affine import fuse_conv_bias
from ..passes.running import run_passes
from ..preprocess import Preprocess


def normalize(graph: Graph, how: Preprocess, name: str = "") -> tuple[Graph, list[str]]:
    """The graph with an image input of pixels (0 … 255, float): (pixel − mean) / std is part of it,
    in the weights of the first convolution where that is exact. Also the reasons where it is not
    (an offset cannot pass zero padding). Raises UsageError for an input that is not an image."""
    copy = graph.copy()
    infer_types(copy)
    x = one_input(copy, name)
    if x.shape is None or len(x.shape) != 4 or x.dtype is None or not x.dtype.is_float:
        raise UsageError(tr("{name} is not an image input of floats", name=x.name))
    fitted = how.fitted(x.shape)
    axis = 3 if fitted.layout == "nhwc" else 1
    mean, std = fitted.scaling
    size = x.shape[axis]
    if len(mean) not in (1, size) or len(std) not in (1, size):
        raise UsageError(
            tr(
                "expected one mean, or one for each of {size} channels, found {count}",
                count=len(mean),
                size=size,
            )
        )
    readers = list(dict.fromkeys(x.readers))
    y, added = x, set()
    for op, numbers in (("Sub", mean), ("Div", std)):
        shape = [1] * 4
        shape[axis] = len(numbers)
        k = copy.constant(
            np.reshape(numbers, shape).astype(x.dtype.np), copy.unique(f"{x.name}.{op}")
        )
        y = copy.add(op, [y, k], name=copy.unique(f"{x.name}/{op}"), before=readers[0]).output
        added.add(y.producer.name)  # type: ignore[union-attr]
    for node in readers:
        node.inputs = [y if v is x else v for v in node.inputs]  # type: ignore[assignment]
    copy.sort()
    infer_types(copy)
    journal = Journal()
    run_passes(copy, [fold_conv_input, fuse_conv_bias], journal)  # type: ignore[list-item]
    # What is left to do for whoever feeds it: the color order and the size stay.
    said = copy.metadata.get("preprocess")
    known, pixels = said if isinstance(said, dict) else {}, {"mean": [0.0], "std": [1.0]}
    copy.metadata["preprocess"] = {**known, **how.to_dict(), **pixels}
    verify(copy, "edit")
    left = [n.name for n in copy.nodes if n.name in added]
    near = [*left, *(n.name for n in readers)]
    why = [e.reason for name in near for e in journal.refusals(name) if e.reason]
    return copy, list(dict.fromkeys(why)) if left else []


def append(graph: Graph, op: str, output: str = "", attrs: dict[str, Any] | None = None) -> Graph:
    """The graph with an operator of one input behind an output (default: the only one): `Softmax`,
    `ArgMax`, `Sigmoid`, … Its result takes the output's place. Raises UsageError, ShapeError."""
    copy = graph.copy()
    y = _output(copy, output)
    node = copy.add(op, [y], attrs, name=copy.unique(op))
    copy.outputs = [node.output if v is y else v for v in copy.outputs]
    infer_types(copy, strict=True)
    verify(copy, "edit")
    return copy


def append_nms(
    graph: Graph, boxes: str, scores: str, *, most: int = 100, iou: float = 0.5, score: float = 0.05
) -> Graph:
    """The graph with NonMaxSuppression behind boxes (N,B,4: y0 x0 y1 x1) and scores (N,C,B): the
    output `selected` (K,3) has batch, class and box of each that is left, at most `most` of a
    class. Raises UsageError, ShapeError."""
    copy = graph.copy()
    both = values_named(copy, [boxes, scores])
    limits = [
        copy.constant(np.array(number, dtype), copy.unique("nms"))
        for number, dtype in ((most, np.int64), (iou, np.float32), (score, np.float32))
    ]

    def free(name: str) -> str:
        known = [v.name for v in copy.values()] + [n.name for n in copy.nodes]
        return copy.unique(name) if name in known else name

    node = copy.add(
        "NonMaxSuppression", [*both, *limits], outputs=[free("selected")], name=free("nms")
    )
    copy.outputs = [*copy.outputs, node.output]
    infer_types(copy, strict=True)
    verify(copy, "edit")
    return copy


def fold(graph: Graph) -> Graph:
    """The graph with what depends on no input computed."""
    copy = graph.copy()
    run_passes(copy, [fold_constants, fold_shapes, fold_constants], Journal())
    return copy


def optimized(graph: Graph) -> Graph:
    """The graph after every pass."""
    return optimize_graph(graph.copy())


def one_input(graph: Graph, name: str = "") -> Value:
    """The input of this name, or the only one. Raises UsageError."""
    found = values_named(graph, [name]) if name else graph.inputs
    if len(found) != 1 or found[0].producer is not None:
        raise UsageError(tr("name one input of {inputs}", inputs=_all(graph.inputs)))
    return found[0]


def _output(graph: Graph, name: str) -> Value:
    found = values_named(graph, [name]) if name else graph.outputs
    if len(found) != 1 or not graph.is_output(found[0]):
        raise UsageError(
            tr("name one output of {outputs}", outputs=_all(graph.outputs)),
            fix=tr("end the model at one of them with --outputs"),
        )
    return found[0]


def _all(values: list[Value]) -> str:
    return ", ".join(v.name for v in values)
