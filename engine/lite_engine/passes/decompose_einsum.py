"""An Einsum of one or two operands becomes what backends have kernels for.

    one operand:   Transpose(ReduceSum(x))
    two, a sum:    Reshape(MatMul((batch…, M, K), (batch…, K, N))) → Transpose
    two, no sum:   Mul of both, each in the order of the output with 1 where it has no such axis

Labels of both operands and the output are batch axes, of both alone are summed (K), of one and the
output are rows (M) or columns (N); a label that only one operand has and the output lacks is summed
before. Where both operands have a label and one has size 1 there (broadcasting), that one loses it.
Either operand may stand on the left: the order with fewer transposes is taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from lite_messages import tr

from ..ir import Dim, DType, Graph, Node, Value
from ..ops.linalg import parse_einsum
from ._core import Match, P, Skip, infer_new, rule, skip
from ._rewrite import constant_like


@dataclass
class _Builder:
    """Nodes before the Einsum, each under a name of its own and with its sources."""

    graph: Graph
    einsum: Node
    made: list[Node] = field(default_factory=list)

    def add(self, op: str, inputs: list[Value], **attrs: object) -> Value:
        name = self.graph.unique(self.einsum.name)
        node = self.graph.add(
            op, inputs, attrs, name=name, sources=self.einsum.sources, before=self.einsum
        )
        infer_new([node])
        self.made.append(node)
        return node.output

    def reshape(self, value: Value, batch: list[Dim], groups: Sequence[Sequence[Dim]]) -> Value:
        """The batch as it is, then one axis for each group; one of those may be open."""
        shape = [d if isinstance(d, int) else 0 for d in batch]
        for group in groups:
            numbers = [d for d in group if isinstance(d, int)]
            shape.append(math.prod(numbers) if len(numbers) == len(group) else -1)
        return self.add("Reshape", [value, self.numbers(shape)])

    def numbers(self, values: Sequence[int]) -> Value:
        return constant_like(self.graph, np.array(values, np.int64), self.einsum.output, "numbers")


@dataclass(frozen=True)
class _Operand:
    """A value and the label of each of its axes."""

    value: Value
    labels: list[str]

    @property
    def sizes(self) -> dict[str, Dim]:
        return dict(zip(self.labels, self.value.shape or ()))

    def in_order(self, build: _Builder, labels: list[str]) -> Value:
        if labels == self.labels:
            return self.value
        return build.add("Transpose", [self.value], perm=[self.labels.index(x) for x in labels])

    def joined(self, build: _Builder, batch: list[str], *groups: list[str]) -> Value:
        """(batch…, one axis for each group)."""
        value = self.in_order(build, sum(groups, batch))
        if all(len(group) == 1 for group in groups):
            return value
        sizes = self.sizes
        parts = [[sizes[label] for label in group] for group in groups]
        return build.reshape(value, [sizes[label] for label in batch], parts)

    def cut(self, build: _Builder, left: list[str]) -> _Operand:
        """Without the labels that are not left: summed, or squeezed where the size is 1."""
        gone = [label for label in self.labels if label not in left]
        if not gone:
            return self
        axes = build.numbers([self.labels.index(label) for label in gone])
        if all(self.sizes[label] == 1 for label in gone):
            value = build.add("Squeeze", [self.value, axes])
        else:
            value = build.add("ReduceSum", [self.value, axes], keepdims=0)
        return _Operand(value, [label for label in self.labels if label in left])


@dataclass(frozen=True)
class _Product:
    """Labels of a product a·b by their part in it; `a` and `b` have no label for themselves that
    the output lacks."""

    batch: list[str]
    rows: list[str]
    columns: list[str]
    summed: list[str]

    @classmethod
    def of(cls, a: list[str], b: list[str], output: list[str]) -> _Product:
        return cls(
            [label for label in output if label in a and label in b],
            [label for label in output if label not in b],
            [label for label in output if label not in a],
            [label for label in a if label in b and label not in output],
        )

    def writable(self, sizes: dict[str, Dim]) -> bool:
        """Whether each Reshape has at most one axis, behind the batch, that is no number."""
        ends = [[label] for label in (*self.rows, *self.columns)]
        for groups in ([self.rows, self.summed], [self.summed, self.columns], ends):
            opened = [g for g in groups if not all(isinstance(sizes[label], int) for label in g)]
            if len(opened) > 1 and any(len(g) != 1 for g in (self.rows, self.columns, self.summed)):
                return False
        return True

    def transposes(self, a: _Operand, b: _Operand, output: list[str]) -> int:
        """How many values that are no constants move; a constant on the left counts as one, since
        weights stand on the right."""
        constant = a.value.const is not None
        return sum([
            constant or a.labels != [*self.batch, *self.rows, *self.summed],
            b.value.const is None and b.labels != [*self.batch, *self.summed, *self.columns],
            output != [*self.batch, *self.rows, *self.columns],
        ])  # fmt: skip

    def build(self, build: _Builder, a: _Operand, b: _Operand) -> _Operand:
        left = a.joined(build, self.batch, self.rows, self.summed)
        right = b.joined(build, self.batch, self.summed, self.columns)
        value, sizes = build.add("MatMul", [left, right]), {**b.sizes, **a.sizes}
        if len(self.rows) != 1 or len(self.columns) != 1:
            free = [[sizes[label]] for label in (*self.rows, *self.columns)]
            value = build.reshape(value, [sizes[label] for label in self.batch], free)
        return _Operand(value, [*self.batch, *self.rows, *self.columns])


@rule("decompose-einsum", source="ONNX Einsum-12")
class decompose_einsum:
    patterns = [P("Einsum", "a", name="einsum"), P("Einsum", "a", "b", name="einsum")]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        values = [v for v in m.einsum.inputs if v is not None]
        if any(v.dtype is not DType.F32 for v in values):
            return skip(tr("the operands are not float32"), m.einsum)
        if any(v.shape is None or None in v.shape or 0 in v.shape for v in values):
            return skip(tr("a size of an operand is not known, or is 0"), m.einsum)
        operands, output = _parsed(m.einsum)
        if any(len(set(x.labels)) != len(x.labels) for x in operands):
            return skip(tr("a label occurs twice in a term (a diagonal)"), m.einsum)
        if len(operands) == 1:
            return None
        a, b = operands
        for label in (label for label in a.labels if label in b.labels):
            pair = {a.sizes[label], b.sizes[label]}
            if len(pair) > 1 and 1 not in pair:
                return skip(
                    tr("it is not known whether the sizes of {label} are equal", label=label),
                    m.einsum,
                )
        if not _Product.of(*_terms(a, b, output), output).writable({**b.sizes, **a.sizes}):
            return skip(tr("two unknown sizes would be in one Reshape"), m.einsum)
        return None

    def rewrite(self, graph: Graph, m: Match) -> list[Node]:
        build, (operands, output) = _Builder(graph, m.einsum), _parsed(m.einsum)
        result = operands[0]
        for other in operands[1:]:
            result = _multiplied(build, result, other, output)
        result = result.cut(build, output)
        perm = [result.labels.index(label) for label in output]
        moved = perm != sorted(perm)
        op, attrs = ("Transpose", {"perm": perm}) if moved else ("Identity", {})
        return [*build.made, graph.replace([m.einsum], op, [result.value], attrs)]


def _parsed(einsum: Node) -> tuple[list[_Operand], list[str]]:
    values = [v for v in einsum.inputs if v is not None]
    terms, output = parse_einsum(einsum.attrs["equation"], [len(v.shape or ()) for v in values])
    return [_Operand(v, t) for v, t in zip(values, terms)], output


def _terms(a: _Operand, b: _Operand, output: list[str]) -> tuple[list[str], list[str]]:
    """The labels with which the operands enter their product."""
    left = [label for label in a.labels if a.sizes[label] != 1 or b.sizes.get(label, 1) == 1]
    right = [label for label in b.labels if b.sizes[label] != 1 or a.sizes.get(label, 1) == 1]
    return (
        [label for label in left if label in right or label in output],
        [label for label in right if label in left or label in output],
    )


def _multiplied(build: _Builder, a: _Operand, b: _Operand, output: list[str]) -> _Operand:
    """a·b with the axes in any order."""
    terms = _terms(a, b, output)
    a, b = a.cut(build, terms[0]), b.cut(build, terms[1])
    plans = [(_Product.of(x.labels, y.labels, output), x, y) for x, y in ((a, b), (b, a))]
    product, x, y = min(plans, key=lambda plan: plan[0].transposes(plan[1], plan[2], output))
    if product.summed:
        return product.build(build, x, y)
    return _Operand(build.add("Mul", [_spread(build, v, output) for v in (a, b)]), output)


def _spread(build: _Builder, x: _Operand, output: list[str]) -> Value:
    """In the order of the output, with axes of size 1 for the labels that it lacks."""
    value = x.in_order(build, [label for label in output if label in x.labels])
    missing = [i for i, label in enumerate(output) if label not in x.labels]
    return build.add("Unsqueeze", [value, build.numbers(missing)]) if missing else value
