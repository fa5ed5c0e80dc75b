"""Convolutions of one tensor that are added or subtracted become one convolution.

    W₁∗x + b₁ ± (W₂∗x + b₂)     →     (W₁ ± W₂)∗x + (b₁ ± b₂)

The smaller filter gets zeros around it. A BatchNormalization of x counts as a 1x1 convolution, and
beside a depthwise convolution so does x itself: such are the branches of training (RepVGG,
MobileOne, RepViT, FastViT) that their authors' tools join before deployment. Beside other
convolutions, x stays the residual that a convolution adds at no cost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import Graph, Node
from ..ops._conv_window import WINDOW, conv_window
from ._core import C, Match, P, Skip, rule, skip
from ._rewrite import constant_like
from .fuse_conv_batch_norm import affine_of, foldable, not_affine, out_channels


@dataclass(frozen=True)
class _Filter:
    """What a branch computes of each pixel's surroundings."""

    taps: np.ndarray  # (outputs, inputs of a group, *size)
    bias: np.ndarray  # (outputs,)
    low: tuple[int, ...]  # where the first tap lies from the pixel, per axis
    step: tuple[int, ...]  # from tap to tap
    smaller: tuple[int, ...]  # by how much the result is smaller than x, before strides

    @property
    def size(self) -> tuple[int, ...]:
        return self.taps.shape[2:]

    @property
    def high(self) -> tuple[int, ...]:
        """Where the last tap lies."""
        return tuple(a + s * (n - 1) for a, s, n in zip(self.low, self.step, self.size))


def _conv(name: str) -> P:
    return P("Conv", "x", C(f"{name}_weight"), C(f"{name}_bias?"), name=name)


_NORM = P("BatchNormalization", "x", C("gamma"), C("beta"), C("mean"), C("var"), name="bn")


@rule("merge-branches", source="Ding 2021 (RepVGG) §3.3")
class merge_branches:
    patterns = [
        P(("Add", "Sub"), _conv("conv"), _conv("other")),
        P(("Add", "Sub"), _conv("conv"), _NORM),
        P("Sub", _NORM, _conv("conv")),
        P(("Add", "Sub"), _conv("conv"), "x"),
        P("Sub", "x", _conv("conv")),
    ]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        if m.root.attrs.get("activation"):
            return skip(tr("the addition carries an activation"), m.root)
        refusal = _convolution_fits(m.conv)
        if refusal is None:
            refusal = _second_convolution_fits(m) if "other" in m.bound else _input_fits(m)
        if refusal is not None:
            return refusal
        first, second = _branches(m)
        if first.smaller != second.smaller:
            return skip(tr("the results differ in size"), m.root)
        if _joined(first, second) is None:
            return skip(
                tr("one filter for both would have more taps than the two together"), m.root
            )
        return None

    def rewrite(self, graph: Graph, m: Match) -> Node:
        joined = _joined(*_branches(m))
        assert joined is not None
        begin = [-low for low in joined.low]
        end = [high - less for high, less in zip(joined.high, joined.smaller, strict=True)]
        attrs = {
            **m.conv.attrs, "kernel_shape": list(joined.size), "dilations": list(joined.step),
            "pads": [*begin, *end],
        }  # fmt: skip
        kind = m.conv_weight.const.dtype
        weight = constant_like(graph, joined.taps.astype(kind), m.conv_weight, "weight")
        like = m.bound.get("conv_bias") or m.conv_weight
        bias = constant_like(graph, joined.bias.astype(kind), like, "bias")
        return graph.replace(m.nodes, "Conv", [m.x, weight, bias], attrs, name=m.conv.name)


def _convolution_fits(conv: Node) -> Skip | None:
    if conv.attrs.get("auto_pad", "NOTSET") not in ("NOTSET", ""):
        return skip(tr("the window chooses its own padding"), conv)
    refusal = foldable(conv)
    if refusal is not None:
        return refusal
    if not _window_fits(conv):
        return skip(tr("strides, dilations or pads do not fit the weight"), conv)
    return None


def _window_fits(conv: Node) -> bool:
    """Where the input has no shape yet, nobody has looked at the attributes before."""
    weight = conv.inputs[1]
    assert weight is not None and weight.const is not None
    try:
        _, strides, pads, dilations = conv_window(
            weight.const, weight.const, {**WINDOW, **conv.attrs}
        )
        steps = [*strides, *dilations, _group(conv)]
        return len(steps) > 1 and min(steps) > 0 and max(map(abs, steps + pads)) < 1 << 31
    except (ShapeError, TypeError, ValueError):  # of another kind than numbers
        return False


def _second_convolution_fits(m: Match) -> Skip | None:
    refusal = _convolution_fits(m.other)
    if refusal is not None:
        return refusal
    if _strides(m.conv) != _strides(m.other) or _group(m.conv) != _group(m.other):
        return skip(tr("the convolutions differ in strides or groups"), m.root)
    shapes = [weight.const.shape for weight in (m.conv_weight, m.other_weight)]
    if shapes[0][:2] != shapes[1][:2] or len(shapes[0]) != len(shapes[1]):
        return skip(tr("the convolutions differ in channels"), m.root)
    return None


def _input_fits(m: Match) -> Skip | None:
    """May x itself, or its batch norm, be a branch?"""
    inputs = m.conv_weight.const.shape[1]
    if inputs * _group(m.conv) != out_channels(m.conv) or max(_strides(m.conv)) > 1:
        return skip(tr("the convolution changes the shape"), m.conv)
    if "bn" in m.bound:
        if m.gamma.const.size != out_channels(m.conv):
            return skip(tr("the convolutions differ in channels"), m.root)
        return not_affine(m.bn)
    if inputs > 1:
        return skip(tr("the convolution takes its input as a residual"), m.conv)
    return None


def _strides(conv: Node) -> tuple[int, ...]:
    return tuple(conv.attrs.get("strides") or (1,) * _axes(conv))


def _group(conv: Node) -> int:
    return int(conv.attrs.get("group", 1))


def _axes(conv: Node) -> int:
    weight = conv.inputs[1]
    assert weight is not None and weight.const is not None
    return weight.const.ndim - 2


def _branches(m: Match) -> tuple[_Filter, _Filter]:
    conv = _convolution(m.conv)
    if "other" in m.bound:
        other = _convolution(m.other)
    elif "bn" in m.bound:
        other = _of_each_pixel(*affine_of(m, m.bn), conv)
    else:
        other = _of_each_pixel(np.ones(len(conv.bias)), np.zeros(len(conv.bias)), conv)
    if m.root.op == "Add":
        return conv, other
    if m.root.inputs[0] is m.conv.output:
        return conv, _negative(other)
    return _negative(conv), other


def _negative(branch: _Filter) -> _Filter:
    return replace(branch, taps=-branch.taps, bias=-branch.bias)


def _convolution(conv: Node) -> _Filter:
    weight, bias, axes = conv.inputs[1], conv.input(2), _axes(conv)
    assert weight is not None and weight.const is not None
    taps = weight.const.astype(np.float64)
    pads = np.reshape(conv.attrs.get("pads") or (0,) * 2 * axes, (2, axes))
    step = conv.attrs.get("dilations") or (1,) * axes
    reach = [s * (n - 1) for s, n in zip(step, taps.shape[2:], strict=True)]
    return _Filter(
        taps,
        np.zeros(len(taps)) if bias is None or bias.const is None else bias.const.astype(float),
        tuple(-int(p) for p in pads[0]),
        tuple(int(s) for s in step),
        tuple(int(r - p) for r, p in zip(reach, pads.sum(0), strict=True)),
    )


def _of_each_pixel(scale: np.ndarray, offset: np.ndarray, beside: _Filter) -> _Filter:
    """x·scale + offset, with the groups of another branch."""
    outputs, inputs = beside.taps.shape[:2]
    taps = np.zeros((outputs, inputs, *[1] * len(beside.size)))
    channel = np.arange(outputs)
    taps[channel, channel % inputs] = np.reshape(scale, (-1, *[1] * len(beside.size)))
    none = (0,) * len(beside.size)
    return _Filter(taps, offset, none, beside.step, none)


def _joined(first: _Filter, second: _Filter) -> _Filter | None:
    """The sum, on the smallest grid that holds the taps of both. None where they lie on no common
    one, or it has more taps than they."""
    step = [
        b if n == 1 else a
        for a, b, n in zip(first.step, second.step, first.size, strict=True)
    ]  # fmt: skip
    low = np.minimum(first.low, second.low)
    high = np.maximum(first.high, second.high)
    for branch in (first, second):
        apart = [n > 1 and s != t for n, s, t in zip(branch.size, branch.step, step, strict=True)]
        if any(apart) or np.any((branch.low - low) % step):
            return None
    size = tuple((high - low) // step + 1)
    if np.prod(size) > np.prod(first.size) + np.prod(second.size):
        return None
    taps = np.zeros((*first.taps.shape[:2], *size))
    for branch in (first, second):
        at = (branch.low - low) // step
        places = [slice(a, a + n) for a, n in zip(at, branch.size, strict=True)]
        taps[(slice(None), slice(None), *places)] += branch.taps
    return replace(
        first, taps=taps, bias=first.bias + second.bias,
        low=tuple(int(a) for a in low), step=tuple(step),
    )  # fmt: skip
