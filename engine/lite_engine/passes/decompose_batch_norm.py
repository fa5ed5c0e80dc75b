"""A BatchNormalization that nothing could absorb becomes a 1x1 depthwise convolution.

    y = x·s + (β − μ·s),  s = γ / √(σ² + ε)

As a convolution it is one pass over the map, and the activation behind it can be fused. A tensor of
rank 2 gets Mul and Add instead.
"""

from __future__ import annotations

from lite_messages import tr

from ..ir import Graph, Node
from ._core import C, Match, P, Skip, rule, skip
from ._rewrite import constant_like, rank_of
from .fuse_conv_batch_norm import affine_of, not_affine


@rule("decompose-batch-norm")
class decompose_batch_norm:
    patterns = [P("BatchNormalization", "x", C("gamma"), C("beta"), C("mean"), C("var"), name="bn")]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        if rank_of(m.x) not in (2, 3, 4, 5):
            return skip(tr("the rank is not 2, 3, 4 or 5"), m.bn)
        return not_affine(m.bn)

    def rewrite(self, graph: Graph, m: Match) -> list[Node]:
        scale, offset = affine_of(m, m.bn)
        rank, kind = len(m.x.shape), m.gamma.const.dtype
        shift = constant_like(graph, offset.astype(kind), m.beta, "bias")
        if rank == 2:
            factor = constant_like(graph, scale.astype(kind), m.gamma, "scale")
            name, sources = graph.unique(m.bn.name), m.bn.sources
            mul = graph.add("Mul", [m.x, factor], name=name, sources=sources, before=m.bn)
            return [mul, graph.replace([m.bn], "Add", [mul.output, shift])]
        shape = (-1, *[1] * (rank - 1))
        weight = constant_like(graph, scale.astype(kind).reshape(shape), m.gamma, "weight")
        attrs = {"group": len(scale), "kernel_shape": [1] * (rank - 2)}
        return [graph.replace([m.bn], "Conv", [m.x, weight, shift], attrs)]
