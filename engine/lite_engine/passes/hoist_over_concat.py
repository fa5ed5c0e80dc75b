"""What comes behind a Concat of convolutions is computed of each part, and fused into it.

    BatchNormalization(Concat(a, b))     →     Concat(BatchNormalization(a), BatchNormalization(b))
    activation(Concat(a, b))             →     Concat(activation(a), activation(b))

Networks whose blocks mix filters of several sizes (MixNet) or join two paths (CSPNet) write their
norm and activation behind the Concat, where both would be a pass over the whole map.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from lite_messages import tr

from ..ir import Graph, Node, Value
from ._core import C, Match, P, Skip, no_match, rule, skip
from ._rewrite import constant_like, rank_of
from .fuse_activation import FUSABLE
from .fuse_conv_batch_norm import foldable, not_affine, out_channels

_CONVOLUTIONS = ("Conv", "ConvTranspose")
_NORM = ("gamma", "beta", "mean", "var")


class _OverConcat:
    """A node called `behind` of a Concat called `join`."""

    def check(self, graph: Graph, m: Match) -> Skip | None:
        for value in m.join.inputs:
            maker = None if value is None else value.producer
            if maker is None or maker.op not in _CONVOLUTIONS:
                return no_match(m.join)
            if graph.sole_reader(value) is not m.join:
                return skip(tr("a part of the Concat has another reader"), maker)
            refusal = foldable(maker)
            if refusal is not None:
                return refusal
        return None

    def rewrite(self, graph: Graph, m: Match) -> list[Node]:
        made = []
        for part, rest in zip(m.join.inputs, self._operands(graph, m), strict=True):
            node = graph.add(
                m.behind.op, [part, *rest], m.behind.attrs, name=graph.unique(m.behind.name),
                sources=m.behind.sources, before=m.join,
            )  # fmt: skip
            node.output.dtype, node.output.shape = part.dtype, part.shape
            made.append(node)
        outputs: list[Value | None] = [node.output for node in made]
        sources = m.join.sources
        join = graph.replace([m.join, m.behind], "Concat", outputs, m.join.attrs, name=m.join.name)
        join.sources = sources
        return [*made, join]

    def _operands(self, graph: Graph, m: Match) -> Iterator[list[Value | None]]:
        """The further inputs of the node of each part: here, those of the one behind."""
        for _ in m.join.inputs:
            yield list(m.behind.inputs[1:])


@rule("hoist-batch-norm")
class hoist_batch_norm(_OverConcat):
    patterns = [P("BatchNormalization", P("Concat", name="join", more=True), *map(C, _NORM),
                  name="behind")]  # fmt: skip

    def check(self, graph: Graph, m: Match) -> Skip | None:
        refusal = super().check(graph, m) or not_affine(m.behind)
        if refusal is not None:
            return refusal
        axis, rank = m.join.attrs.get("axis"), rank_of(m.join.inputs[0])
        if axis != 1 and (rank is None or axis != 1 - rank):
            return skip(tr("the parts do not lie side by side along the channels"), m.join)
        if sum(self._channels(m)) != m.gamma.const.size:
            return skip(tr("the constants of batch-norm differ in size"), m.behind)
        return None

    @staticmethod
    def _channels(m: Match) -> list[int]:
        return [out_channels(value.producer) for value in m.join.inputs]

    def _operands(self, graph: Graph, m: Match) -> Iterator[list[Value | None]]:
        ends = np.cumsum(self._channels(m))[:-1]
        parts = [np.split(m.bound[name].const, ends) for name in _NORM]
        for arrays in zip(*parts, strict=True):
            named = zip(_NORM, arrays, strict=True)
            yield [constant_like(graph, array, m.bound[name], name) for name, array in named]


@rule("hoist-activation-over-concat")
class hoist_activation_over_concat(_OverConcat):
    patterns = [P(FUSABLE, P("Concat", name="join", more=True), name="behind", more=True)]
