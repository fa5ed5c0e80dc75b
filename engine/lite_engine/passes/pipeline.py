"""The list of passes. Reading it is knowing what happens to a graph, in which order."""

from __future__ import annotations

from ..ir import Graph, Journal
from ._core import Pass, run_passes
from .drop_identity import drop_identity
from .fold_constants import fold_constants
from .fold_shapes import fold_shapes
from .fuse_activation import fuse_activation
from .fuse_conv_affine import fuse_conv_bias, fuse_conv_scale
from .fuse_conv_batch_norm import fuse_conv_batch_norm
from .fuse_conv_residual import fuse_conv_residual

CLEAN: list[Pass] = [
    fold_constants,
    fold_shapes,
    drop_identity,
]
FUSE: list[Pass] = [
    fuse_conv_bias,
    fuse_conv_batch_norm,
    fuse_conv_scale,
    fuse_conv_bias,
    fuse_conv_residual,
    fuse_activation,
]
PIPELINE: list[Pass] = [*CLEAN, *FUSE]


def optimize_graph(graph: Graph, *, journal: Journal | None = None) -> Graph:
    """An optimised copy of a graph; `journal` receives every rewrite and refusal.

    Raises ShapeError naming the pass when one breaks the graph.
    """
    out = graph.copy()
    run_passes(out, PIPELINE, Journal() if journal is None else journal)
    return out
