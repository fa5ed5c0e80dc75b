"""Einsum, Det and Inverse."""

from __future__ import annotations

import re

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import Dim, TypeInfo
from ._core import REQUIRED, define_op
from ._helpers import broadcast_dims, same_type, typed
from ._records import Cost

einsum = define_op("Einsum", inputs="*xs", attrs={"equation": REQUIRED}, source="ONNX Einsum-12")


def parse_einsum(equation: str, ranks: list[int]) -> tuple[list[list[str]], list[str]]:
    """Axis labels of the inputs and of the output; an ellipsis is `.0`, `.1`, … from the right."""
    equation = equation.replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if not re.fullmatch(r"[A-Za-z.,]*(->[A-Za-z.]*)?", equation) or len(terms) != len(ranks):
        raise ShapeError(
            tr(
                "the equation {equation!r} is not valid for {inputs} inputs",
                equation=equation,
                inputs=len(ranks),
            )
        )
    widest = max(
        [r - len(t.replace("...", "")) for t, r in zip(terms, ranks) if "..." in t], default=0
    )

    def labels(term: str, dots: int) -> list[str]:
        if "..." not in term:
            return list(term)
        head, _, tail = term.partition("...")
        return [*head, *(f".{i}" for i in reversed(range(dots))), *tail]

    inputs = []
    for term, rank in zip(terms, ranks):
        found = labels(term, rank - len(term.replace("...", "")))
        if len(found) != rank:
            raise ShapeError(
                tr("the term {term!r} does not fit an input of rank {rank}", term=term, rank=rank)
            )
        inputs.append(found)
    every = [label for term in inputs for label in term]
    if arrow:
        output = labels(right, widest)
        if len(set(output)) != len(output) or not set(output) <= set(every):
            raise ShapeError(
                tr(
                    "equation {equation!r}: each axis of the output must occur in an input,"
                    " and only once in the output",
                    equation=equation,
                )
            )
        return inputs, output
    once = sorted(label for label in set(every) if every.count(label) == 1 and label[0] != ".")
    return inputs, [*(f".{i}" for i in reversed(range(widest))), *once]


@einsum.infer
def _(*xs: TypeInfo, equation: str) -> TypeInfo:
    inputs, output = parse_einsum(equation, [x.rank for x in xs])
    sizes: dict[str, Dim] = {}
    for term, x in zip(inputs, xs):
        for label, d in zip(term, x.dims):
            sizes[label] = broadcast_dims(sizes[label], d) if label in sizes else d
    return xs[0].with_shape(tuple(sizes[label] for label in output))


@einsum.reference
def _(*xs: np.ndarray, equation: str) -> np.ndarray:
    """numpy.einsum"""
    return np.asarray(np.einsum(equation, *xs, optimize=len(xs) > 1)).astype(
        xs[0].dtype, copy=False
    )


@einsum.cost
def _(*xs: TypeInfo, equation: str) -> Cost:
    if len(xs) == 1:
        return Cost()  # values that are moved or added up, not multiplied
    inputs, _ = parse_einsum(equation, [x.rank for x in xs])
    sizes = {label: int(d or 1) for t, x in zip(inputs, xs) for label, d in zip(t, x.dims)}  # type: ignore[call-overload]
    return Cost(macs=int(np.prod(list(sizes.values()), dtype=float)))


det = define_op("Det", inputs="x", source="ONNX Det-22")
det.infer(lambda x: x.with_shape(x.dims[:-2]))
det.reference(typed(np.linalg.det))

inverse = define_op("Inverse", inputs="x", source="com.microsoft Inverse-1")
inverse.infer(same_type)
inverse.reference(typed(np.linalg.inv))
