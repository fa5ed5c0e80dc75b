"""A constant Pad before a convolution or pooling becomes its own padding."""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ..ir import Graph, Node, Value
from ..ops import op_names
from ._core import C, Match, P, Skip, rule, skip
from ._rewrite import rank_of

#: Operators whose output is never negative: padding zeros cannot win a maximum against them.
_NON_NEGATIVE = op_names(lambda op: op.output_range[0] >= 0)


@rule("fold-pad")
class fold_pad:
    """Zeros (of integers their zero point) for convolutions and for averages that count them; −∞
    (or 0 below which the input never falls) for maxima."""

    patterns = [
        P(
            ("Conv", "QLinearConv", "MaxPool", "AveragePool"),
            P("Pad", "x", C("pads"), C("value?"), C("axes?"), name="pad"),
            name="window",
            more=True,
        )
    ]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        if m.pad.attrs.get("mode", "constant") != "constant":
            return skip(tr("padding mode is {attrs}", attrs=m.pad.attrs["mode"]), m.pad)
        if m.window.attrs.get("auto_pad", "NOTSET") not in ("NOTSET", "", "VALID"):
            return skip(tr("the window chooses its own padding"), m.window)
        widths = _widths(m)
        if widths is None:
            return skip(tr("the rank is not known"), m.pad)
        if widths[:2].any():
            return skip(tr("it pads the batch or the channels"), m.pad)
        if (widths < 0).any():
            return skip(tr("negative widths crop"), m.pad)
        refusal = _value_fits(m)
        if refusal is None and m.window.op == "MaxPool":
            refusal = _maxima_change(m, widths)
        return refusal

    def rewrite(self, graph: Graph, m: Match) -> Node:
        widths = _widths(m)
        assert widths is not None
        n = len(widths) - 2
        own = list(m.window.attrs.get("pads", [])) or [0] * (2 * n)
        pads = [int(a + b) for a, b in zip(own, [*widths[2:, 0], *widths[2:, 1]])]
        attrs = {**m.window.attrs, "pads": pads, "auto_pad": "NOTSET"}
        inputs = [m.x, *m.window.inputs[1:]]
        return graph.replace([m.pad, m.window], m.window.op, inputs, attrs, name=m.window.name)


def _widths(m: Match) -> np.ndarray | None:
    """(rank, 2) cells before and after each axis."""
    rank = rank_of(m.x)
    if rank is None:
        return None
    pads = m.pads.const.reshape(2, -1).T
    axes = m.array("axes")
    if axes is None:
        return pads if len(pads) == rank else None
    widths = np.zeros((rank, 2), pads.dtype)
    widths[axes.ravel() % rank] = pads
    return widths


def _maxima_change(m: Match, widths: np.ndarray) -> Skip | None:
    """Where a maximum of padded data is not that of the same windows with padding of their own."""
    attrs = m.window.attrs
    if len(m.window.outputs) > 1:
        return skip(tr("its indices are an output"), m.window)  # they count the padding
    if attrs.get("ceil_mode") and widths[2:, 1].any():
        return skip(tr("with ceil_mode, windows that begin in the padding are left out"), m.window)
    sizes, steps = m.x.shape[2:], attrs.get("dilations") or [1] * (len(widths) - 2)
    for taps, step, size, pads in zip(attrs.get("kernel_shape", []), steps, sizes, widths[2:]):
        between = step > 1 and (not isinstance(size, int) or size < step)
        if between or pads.max() > step * (taps - 1):
            return skip(tr("a window may see nothing but padding"), m.window)
    return None


def _value_fits(m: Match) -> Skip | None:
    array = m.array("value")
    value = 0.0 if array is None else float(array.ravel()[0])
    if m.window.op == "MaxPool":
        if value <= -3.4e38 or (value == 0 and _never_negative(m.x)):
            own = m.window.attrs.get("pads", [])
            # an own pad of −∞ and a Pad of 0 are different numbers
            return (
                skip(tr("it has padding of its own"), m.window) if any(own) and value == 0 else None
            )
        return skip(tr("{value:g} could be the maximum", value=value), m.pad)
    zero = 0.0
    if m.window.op == "QLinearConv":
        if m.window.inputs[2].const is None:
            return skip(tr("the zero point is computed"), m.window)
        zero = float(m.window.inputs[2].const.ravel()[0])
    if value != zero:
        return skip(tr("pads with {value:g}, not {zero:g}", value=value, zero=zero), m.pad)
    if m.window.op == "AveragePool":
        if any(m.window.attrs.get("pads", [])) and not m.window.attrs.get("count_include_pad"):
            return skip(tr("its own padding is not counted"), m.window)
        if m.window.attrs.get("ceil_mode"):
            return skip(
                tr("with ceil_mode, windows that pass the end are averaged differently"), m.window
            )
        if not m.window.attrs.get("count_include_pad"):
            return skip(tr("the average does not count padding"), m.window)
    return None


def _never_negative(value: Value) -> bool:
    producer = value.producer
    if producer is None:
        return False
    return producer.op in _NON_NEGATIVE or producer.attrs.get("activation") in _NON_NEGATIVE
