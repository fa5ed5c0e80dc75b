"""Resize of some axes → Resize of every axis, the form that kernels know."""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ..ir import Graph, Node
from ._core import Match, P, Skip, no_match, rule, skip
from ._rewrite import constant_like


@rule("fold-resize-axes")
class fold_resize_axes:
    """Scales become 1 and sizes the input's own where `axes` does not name an axis."""

    patterns = [P("Resize", "x", "roi?", "scales?", "sizes?", name="resize")]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        if not m.resize.attrs.get("axes"):
            return no_match(m.resize)
        if m.bound.get("roi") is not None:
            return skip(tr("a region of interest is cut out"), m.resize)
        if m.resize.attrs.get("keep_aspect_ratio_policy", "stretch") != "stretch":
            return skip(tr("it keeps the aspect ratio"), m.resize)
        if m.array("scales") is None and m.array("sizes") is None:
            return skip(tr("the size is not constant"), m.resize)
        if m.x.shape is None or (m.array("scales") is None and not m.x.type.is_static):
            return skip(tr("the input's size is not known"), m.resize)
        return None

    def rewrite(self, graph: Graph, m: Match) -> Node:
        attrs = dict(m.resize.attrs)
        axes = [a % len(m.x.shape) for a in attrs.pop("axes")]
        inputs = [m.x, None, None, None]
        port = 2 if m.array("scales") is not None else 3
        given = m.resize.inputs[port]
        whole = np.array([1] * len(m.x.shape) if port == 2 else m.x.shape, given.const.dtype)
        whole[axes] = given.const
        inputs[port] = constant_like(graph, whole, given, "every_axis")
        return graph.replace([m.resize], "Resize", inputs[: port + 1], attrs, name=m.resize.name)
