"""Channels that go away through everything that shares them: a smaller dense model.

A group is the channels of layers whose outputs meet (added, multiplied, depthwise, pooled): all of
them lose the same ones, one after another. Next is the channel that its readers miss least once
their other weights have made up for it (He 2017; Hassibi 1993): with V = H⁻¹, H = cov(x),

    loss = tr(W_k V_kk⁻¹ W_kᵀ),  W ← W − W_k V_kk⁻¹ V_k,  V ← V − V_kᵀ V_kk⁻¹ V_k

Groups that reach an output, or an operator that is not known here, stay whole. What is kept of the
others is a multiple of 8 channels, the one nearest to the share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from lite_messages import tr

from ..ir import Graph, Node, Value
from ..ops import find_op, infer_types, op_names, residual_of
from ..quantize._run import Run
from ..quantize.moments import input_means, input_moments, matrix, moved_bias, weight_of
from ..quantize.rounding import MAX_COLUMNS
from ..quantize.samples import Feed

#: Channels that are kept are a multiple of this where there are more: whole vectors.
MULTIPLE = 8
WEIGHTED = op_names(lambda op: op.quantized == "weights")


@dataclass
class Group:
    """Layers that make the same `size` channels, named by the first; `same` are depthwise.
    `frozen` is why the channels stay, empty where they can go."""

    size: int
    makers: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    readers: list[str] = field(default_factory=list)
    frozen: str = ""

    @property
    def name(self) -> str:
        return self.makers[0]


class _Finder:
    """Which group the axis 1 of each value belongs to."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.of: dict[int, Group] = {}
        #: Layers with weights whose own outputs are no channels of a group → why.
        self.alone: dict[str, str] = {}
        for node in graph.nodes:
            self._visit(node)
        for value in graph.outputs:
            self._freeze([value], tr("its channels are an output of the model"))

    def groups(self) -> list[Group]:
        found = {id(g): g for g in self.of.values()}
        return [g for g in found.values() if g.makers]

    def _visit(self, node: Node) -> None:
        x, y = node.inputs[0] if node.inputs else None, node.outputs[0]
        why_not = _why_not(node) if node.op in WEIGHTED else ""
        if why_not:
            if (weight := node.input(1)) is not None and weight.is_const:
                self.alone[node.name] = why_not
            self._stop(node)
        elif node.op in ("Conv", "Gemm") and x is not None:
            depthwise = node.attrs.get("group", 1) > 1
            if depthwise:
                self._join(x, y)
                self.of[id(y)].same.append(node.name)
            else:
                self._group(x).readers.append(node.name)
                own = self.of[id(y)] = Group(len(_rows(node)), [node.name])
                own.frozen = "" if y.shape else tr("the shape of its output is not known")
            residual = residual_of(node)
            if residual is not None:
                self._join(residual, y)
        elif node.op.endswith("Pool") and x is not None and _of_one(node):
            self._join(x, y)
        elif _elementwise(node) and not any(_spread(v, y) for v in node.inputs if v is not None):
            for value in node.inputs:
                if value is not None and not value.is_const:
                    self._join(value, y)
        elif node.op in ("Flatten", "Reshape") and x is not None and _keeps_channels(node):
            self._join(x, y)
        else:
            self._stop(node)

    def _stop(self, node: Node) -> None:
        """Channels go no further than this layer, in either direction."""
        layer, op = node.name, node.op
        needs = tr("{layer} ({op}) needs all of its channels", layer=layer, op=op)
        meets = tr("its channels are combined with those of {layer} ({op})", layer=layer, op=op)
        self._freeze(node.inputs, needs)
        self._freeze(node.outputs, meets)

    def _group(self, value: Value) -> Group:
        unknown = tr("its channels are combined with those of {value}", value=value.name)
        return self.of.setdefault(id(value), Group(0, frozen=unknown))

    def _join(self, a: Value, b: Value) -> None:
        one, two = self._group(a), self.of.get(id(b))
        if two is None:
            self.of[id(b)] = one
        elif one is not two:
            other = (
                tr("its channels are combined with {n} others", n=two.size)
                if one.size != two.size
                else ""
            )
            one.frozen = one.frozen or two.frozen or other
            for mine, its in ((one.makers, two.makers), (one.same, two.same),
                              (one.readers, two.readers)):  # fmt: skip
                mine += its
            self.of.update({key: one for key, group in self.of.items() if group is two})

    def _freeze(self, values: Sequence[Value | None], why: str) -> None:
        for value in values:
            if value is not None and not value.is_const:
                group = self.of.setdefault(id(value), Group(0))
                group.frozen = group.frozen or why


def _elementwise(node: Node) -> bool:
    op = find_op(node.op)
    return op is not None and op.layout == "elementwise" and len(node.outputs) == 1


def _of_one(node: Node) -> bool:
    """A function of its first input, with one output; what else it reads are single numbers."""
    rest = [v for v in node.inputs[1:] if v is not None]
    return len(node.outputs) == 1 and all(v.const is not None and v.const.size == 1 for v in rest)


def _why_not(node: Node) -> str:
    """Why a layer with weights is neither one of a single group nor depthwise. Others may read its
    weight and bias, too: what is left of them is the layer's own."""
    weight, bias = node.inputs[1], node.input(2)
    if weight is None or weight.const is None or weight.const.dtype != np.float32:
        return tr("its weight is not a float32 constant")
    if node.op not in ("Conv", "Gemm"):
        return tr("channels of {op} are not removed", op=node.op)
    w, attrs = weight.const, node.attrs
    if node.op == "Conv" and w.ndim != 4:
        return tr("only convolutions of images lose channels")
    if bias is not None and (bias.const is None or bias.const.size != len(_rows(node))):
        return tr("its bias is not one constant for each output")
    if node.op == "Gemm":
        usual = all(attrs.get(k, 1.0) == 1 for k in ("alpha", "beta")) and not attrs.get("transA")
        return "" if usual else tr("it has alpha, beta or transA")
    if (group := attrs.get("group", 1)) > 1:
        depthwise = group == w.shape[0] and w.shape[1] == 1
        return "" if depthwise else tr("it has groups of several channels")
    if attrs.get("auto_pad", "NOTSET") not in ("NOTSET", "", "VALID"):
        return tr("its padding depends on the size of the image")
    return tr("it has more than {n} inputs", n=MAX_COLUMNS) if w[0].size > MAX_COLUMNS else ""


def _spread(value: Value, y: Value) -> bool:
    """Does an operand of an elementwise operator have other channels than its result?"""
    if value.shape is None or y.shape is None:
        return True
    if value.const is not None:
        return value.const.size != 1
    return len(value.shape) != len(y.shape) or len(y.shape) < 2 or value.shape[1] != y.shape[1]


def _keeps_channels(node: Node) -> bool:
    """(N,C,…) → (N,C·…), whatever C is."""
    if node.op == "Flatten":
        return bool(node.attrs.get("axis", 1) == 1)
    given = node.input(1)
    shape = None if given is None else given.const
    return shape is not None and shape.size == 2 and int(shape[1]) == -1


def _rows(node: Node) -> np.ndarray:
    return np.concatenate(list(matrix(node, weight_of(node))))


def channel_groups(graph: Graph) -> tuple[list[Group], dict[str, str]]:
    """The groups of which channels can go, from the first to the last, and of the other layers
    with weights → why not."""
    finder = _Finder(graph)
    groups = finder.groups()
    whole = {name: g.frozen for g in groups if g.frozen for name in g.makers}
    return [g for g in groups if g.readers and not g.frozen], {**whole, **finder.alone}


def remove_channels(
    graph: Graph, shares: Mapping[str, float], samples: Sequence[Feed], run: Run
) -> Graph:
    """A copy without a share of the channels of each group, given by the group's name."""
    out = graph.copy()
    for group in channel_groups(graph)[0]:
        kept = kept_of(group.size, shares.get(group.name, 0.0))
        if kept < group.size:
            _remove(graph, out, group, kept, samples, run)
    infer_types(out)
    return out


def kept_of(size: int, share: float) -> int:
    """How many of `size` channels are kept: all, or a multiple; of two that are as near, more."""
    count = round(size * (1 - share), 6)
    if size <= 2 * MULTIPLE:
        return max(round(count), 1)
    return min(size, *range(MULTIPLE, size, MULTIPLE), key=lambda n: (abs(n - count), -n))


def _remove(
    graph: Graph, out: Graph, group: Group, count: int, samples: Sequence[Feed], run: Run
) -> None:
    readers = [out.node(n) for n in group.readers]
    before = input_means(graph, [graph.node(n) for n in group.readers], samples, run)
    now = {n.name: input_moments(out.copy(), n, samples, run) for n in readers}
    solved = [_Reader(_rows(n), now[n.name].covariance()[0], group.size) for n in readers]
    left = list(range(group.size))
    while len(left) > count:
        losses = np.sum([reader.losses() for reader in solved], axis=0)
        worst = min(left, key=lambda k: losses[k])
        left.remove(worst)
        for reader in solved:
            reader.remove(worst)
    kept = np.array(left)
    for node, reader in zip(readers, solved, strict=True):
        change = reader.w - _rows(node)
        bias = moved_bias(node, change[None], before[node.name], now[node.name].mean)
        array = reader.w.reshape(len(change), group.size, -1)[:, kept]
        if node.op == "Conv":
            array = array.reshape(len(change), count, *weight_of(node).shape[2:])
        else:
            array = array.reshape(len(change), -1)
            array = array if node.attrs.get("transB", 0) else array.T
        _set(out, node, 1, array)
        _set(out, node, 2, bias)
    for name in (*group.makers, *group.same):
        node = out.node(name)
        turned = node.op == "Gemm" and not node.attrs.get("transB", 0)
        _set(out, node, 1, weight_of(node)[:, kept] if turned else weight_of(node)[kept])
        bias_value = node.input(2)
        if bias_value is not None and bias_value.const is not None:
            _set(out, node, 2, bias_value.const.reshape(-1)[kept])
        if name in group.same:
            node.attrs["group"] = count
    infer_types(out)


class _Reader:
    """A layer's weights w (outputs, columns), solved again after each channel that goes."""

    def __init__(self, w: np.ndarray, h: np.ndarray, channels: int) -> None:
        self.w, self.inverse = w.copy(), np.linalg.inv(h)
        self.channels, self.width = channels, w.shape[1] // channels
        self.scale = 1 / max(float(np.einsum("nk,kj,nj->", w, h, w, optimize=True)), 1e-300)

    def losses(self) -> np.ndarray:
        """(channels,) of the layer's output energy; what is gone has none."""
        c, r = self.channels, self.width
        blocks = np.einsum("crcs->crs", self.inverse.reshape(c, r, c, r))
        own = self.w.reshape(-1, c, r).transpose(1, 2, 0)
        gone = np.einsum("crr->c", blocks) == 0
        solved = np.linalg.solve(np.where(gone[:, None, None], np.eye(r), blocks), own)
        return np.asarray(self.scale * (own * solved).sum(axis=(1, 2)))

    def remove(self, channel: int) -> None:
        at = slice(channel * self.width, (channel + 1) * self.width)
        rows = np.linalg.solve(self.inverse[at, at], self.inverse[at])
        self.w -= self.w[:, at] @ rows
        self.inverse -= self.inverse[:, at] @ rows
        self.w[:, at] = self.inverse[at] = self.inverse[:, at] = 0


def _set(graph: Graph, node: Node, index: int, array: np.ndarray) -> None:
    old = node.input(index)
    name = f"{node.name}.{index}" if old is None else f"{old.name}.pruned"
    node.set_input(
        index, graph.constant(np.ascontiguousarray(array, np.float32), graph.unique(name))
    )
