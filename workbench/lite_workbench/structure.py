"""The architecture of a network: stem, stages of repeated blocks, neck and head, with evidence.

Names are not asked, only the graph. Where every path passes through one value, the network is cut;
what lies between two cuts is classified by how its paths join (He et al. 2015, residual; Sandler
et al. 2018, inverted bottleneck; Vaswani et al. 2017, attention and feed-forward). Neighbours of
one kind and resolution are a stage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from lite_engine.ir import Graph, Node, Value
from lite_engine.ops import residual_of
from lite_messages import tr, trn
from lite_widgets._rows import family

CONVOLUTIONS = ("Conv", "Conv 1×1", "Depthwise conv", "Transposed conv")
_ATTENTION_OPS = (
    "Attention", "MultiHeadAttention", "GroupQueryAttention", "FusedAttention", "QLinearAttention",
)  # fmt: skip
_SUMS = ("Add", "Sum")
_MOST = 24  # nodes that are shown as one block
_ENDS = ("Pool", "MatMul", "Layout", "Detection")  # what begins a head behind the last block


@dataclass
class Block:
    """Consecutive nodes of one kind; `evidence` says what was seen."""

    kind: str
    nodes: list[Node]
    evidence: str


@dataclass
class Region:
    """One part of the architecture; `name` is unique in the model, `short` is that of its blocks:
    "stage 2" of "stage 2: residual block ×3"."""

    name: str
    short: str
    evidence: str
    blocks: list[Block]

    @property
    def nodes(self) -> list[Node]:
        return [node for block in self.blocks for node in block.nodes]

    def named_blocks(self) -> list[tuple[str, list[Node]]]:
        """Nodes of each block under a name that is unique in the model; long ones in pieces."""
        pieces = [block.nodes[i : i + _MOST] for block in self.blocks
                  for i in range(0, len(block.nodes), _MOST)]  # fmt: skip
        if len(pieces) == 1:
            return [(self.short, pieces[0])]
        return [(f"{self.short}.{i}", nodes) for i, nodes in enumerate(pieces, 1)]


def find_regions(graph: Graph) -> list[Region]:
    """The regions from input to output; together they hold every node once."""
    if not graph.nodes:
        return []
    return _Finder(graph).regions()


class _Finder:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.kinds = {id(node): _kind_of(node) for node in graph.nodes}
        # Nodes that read constants alone (dequantized weights) go with whoever reads them.
        self.constant: set[int] = set()
        for node in graph.nodes:
            if not self._data(node):
                self.constant.add(id(node))
        if len(self.constant) == len(graph.nodes):  # nothing depends on an input
            self.constant.clear()
        self.nodes = [node for node in graph.nodes if id(node) not in self.constant]

    def regions(self) -> list[Region]:
        trunk = self._backbone()
        inside = {id(node) for node in trunk}
        neck, head = self._neck_and_head([n for n in self.nodes if id(n) not in inside], inside)
        blocks = self._blocks(trunk)
        if not neck and blocks:
            blocks, tail = blocks[:-1], self._tail(blocks[-1])
            blocks += tail[:1]
            head = [*(tail[1].nodes if len(tail) > 1 else []), *head]
        found = _stages(_pairs(blocks), self._area)
        if neck:
            said = tr("joins features of several resolutions")
            found.append(Region(tr("neck"), tr("neck"), said, [Block("neck", neck, said)]))
        if head:
            said = trn("leads to {n} output", "leads to {n} outputs", len(self.graph.outputs))
            found.append(Region(tr("head"), tr("head"), said, [Block("head", head, said)]))
        self._give_constants(found)
        return found

    def _data(self, node: Node) -> list[Value]:
        """The inputs that depend on the input of the model."""
        return [v for v in node.inputs
                if v is not None and not v.is_const
                and (v.producer is None or id(v.producer) not in self.constant)]  # fmt: skip

    def _convolves(self, node: Node) -> bool:
        return self.kinds[id(node)] in CONVOLUTIONS

    def _area(self, nodes: Sequence[Node]) -> int:
        """Height × width of the last convolution's output; 0 without one."""
        return next((_area(n) for n in reversed(nodes) if self._convolves(n) and _area(n)), 0)

    def _backbone(self) -> list[Node]:
        """What the features of the lowest resolution are made of: detectors and U-shaped networks
        read earlier features again, so that no cut would be left."""
        convolutions = [n for n in self.nodes if self._convolves(n) and _area(n) > 1]
        if not convolutions or self._attends(self.nodes):
            return self.nodes
        least = min(map(_area, convolutions))
        wanted = {id([n for n in convolutions if _area(n) == least][-1])}
        for node in reversed(self.nodes):
            if id(node) in wanted:
                wanted |= {id(v.producer) for v in self._data(node) if v.producer is not None}
        # what only follows the last of them, its activation or the sum of its block, belongs to it
        for node in self.nodes:
            makers = {id(v.producer) for v in self._data(node)}
            follows = self.kinds[id(node)] in ("Activation", "Norm", "Elementwise")
            if follows and makers <= wanted and _area(node) in (0, least):
                wanted.add(id(node))
        return [node for node in self.nodes if id(node) in wanted]

    def _neck_and_head(
        self, rest: Sequence[Node], backbone: set[int]
    ) -> tuple[list[Node], list[Node]]:
        """Of what is not backbone: up to the last join of several of its features that a
        convolution reads, and what follows."""
        taps: dict[int, set[int]] = {}
        last = joined = -1
        for i, node in enumerate(rest):
            seen: set[int] = set()
            for value in self._data(node):
                if value.producer is not None:
                    maker = id(value.producer)
                    seen |= {maker} if maker in backbone else taps[maker]
            taps[id(node)] = seen
            if len(self._data(node)) > 1 and len(seen) > 1 and _area(node) > 1:
                joined = i
            if self._convolves(node) and len(seen) > 1:
                last = joined
        return list(rest[: last + 1]), list(rest[last + 1 :])

    # ---- blocks of the backbone

    def _blocks(self, nodes: Sequence[Node]) -> list[Block]:
        """Parts between cuts, classified; the others by the order of their convolutions."""
        out: list[Block] = []
        classified = [(part, self._classified(part)) for part in self._parts(nodes)]
        for known, group in groupby(classified, lambda pair: pair[1] is not None):
            if known:
                out += [block for _, block in group if block is not None]
                continue
            for block in self._chain([part for part, _ in group]):
                if out and not block.kind:  # an activation behind a sum belongs to its block
                    out[-1].nodes += block.nodes
                else:
                    out.append(block)
        if len(out) > 1 and not out[0].kind:  # what prepares the input belongs to what follows
            first = out.pop(0)
            out[0].nodes[:0] = first.nodes
        return out

    def _parts(self, nodes: Sequence[Node]) -> list[list[Node]]:
        """Runs of nodes between the places where only one value is alive."""
        at = {id(node): i for i, node in enumerate(nodes)}
        alive = [0] * (len(nodes) + 1)
        spans: dict[int, tuple[int, int]] = {}
        for i, node in enumerate(nodes):
            for value in self._data(node):
                made = at[id(value.producer)] if value.producer is not None else i
                start = spans.get(id(value), (made, i))[0]
                spans[id(value)] = (start, i)
        for start, end in spans.values():
            alive[start] += 1
            alive[end] -= 1
        parts: list[list[Node]] = [[]]
        count = 0
        for i, node in enumerate(nodes):
            parts[-1].append(node)
            count += alive[i]
            if count <= 1 and i + 1 < len(nodes):
                parts.append([])
        return [part for part in parts if part]

    def _attends(self, nodes: Sequence[Node]) -> bool:
        """Whether a Softmax lies between two matrix products, or an operator is all of it."""
        if any(node.op in _ATTENTION_OPS for node in nodes):
            return True
        ops = [n.op for n in nodes if n.op == "Softmax" or self.kinds[id(n)] == "MatMul"]
        return any(a != "Softmax" and s == "Softmax" and b != "Softmax"
                   for a, s, b in zip(ops, ops[1:], ops[2:]))  # fmt: skip

    def _classified(self, part: list[Node]) -> Block | None:
        """What the way its paths join says; None for a plain chain, gates and activations."""
        kinds = Counter(self.kinds[id(node)] for node in part)
        if self._attends(part):
            return Block(tr("attention"), part, tr("a Softmax between two matrix products"))
        if kinds["Recurrent"]:
            return Block(tr("recurrent layer"), part, part[-1].op)
        convolutions = [node for node in part if self._convolves(node)]
        last = part[-1]
        joins = len(self._data(last)) > 1
        if joins and (last.op in _SUMS or residual_of(last) is not None):
            added = tr("{name} adds the block's input", name=last.name)
            if kinds["Depthwise conv"] and kinds["Conv 1×1"]:
                widths = _widths(convolutions)
                return Block(tr("inverted bottleneck"), part, f"{added}; {widths}")
            if convolutions:
                return Block(tr("residual block"), part, f"{added}; {_widths(convolutions)}")
            if kinds["MatMul"] > 1:
                products = tr("{n} matrix products", n=kinds["MatMul"])
                return Block(tr("feed-forward"), part, f"{added}; {products}")
        if joins and last.op == "Concat" and len(convolutions) > 1:
            said = tr("{n} paths joined by {name}", n=len(self._data(last)), name=last.name)
            return Block(tr("parallel branches"), part, said)
        return None

    def _chain(self, parts: Sequence[list[Node]]) -> list[Block]:
        """Blocks of a run without joins: expand, depthwise, project; depthwise, 1×1; or each
        convolution. What comes before the first one has no kind."""
        starts = [i for i, part in enumerate(parts) if len(part) == 1 and self._convolves(part[0])]
        before = parts[: starts[0] if starts else len(parts)]
        out = [Block("", [node for part in before for node in part], "")]
        while starts:
            taken = self._pattern([parts[i][0] for i in starts[:3]])
            begin, starts = starts[0], starts[taken:]
            nodes = [n for part in parts[begin : starts[0] if starts else None] for n in part]
            kind = (tr("convolution"), tr("depthwise separable"),
                    tr("inverted bottleneck"))[taken - 1]  # fmt: skip
            out.append(Block(kind, nodes, _widths([n for n in nodes if self._convolves(n)])))
        return [block for block in out if block.nodes]

    def _pattern(self, convolutions: Sequence[Node]) -> int:
        """How many of these make one block."""
        kinds = [self.kinds[id(node)] for node in convolutions]
        widths = [_width(node) for node in convolutions]
        if kinds == ["Conv 1×1", "Depthwise conv", "Conv 1×1"] and widths[2] < widths[1]:
            return 3
        return 2 if kinds[:2] == ["Depthwise conv", "Conv 1×1"] else 1

    def _tail(self, block: Block) -> list[Block]:
        """The last block without the head behind it, and that head."""
        ends = [i for i, node in enumerate(block.nodes)
                if node.op in _SUMS or (self._convolves(node) and _area(node) > 1)]  # fmt: skip
        start = ends[-1] + 1 if ends else 1
        for i in range(start, len(block.nodes)):
            if self.kinds[id(block.nodes[i])] in _ENDS and not self._gated(block.nodes, i):
                return [Block(block.kind, block.nodes[:i], block.evidence),
                        Block("head", block.nodes[i:], "")]  # fmt: skip
        return [block]

    def _gated(self, nodes: Sequence[Node], i: int) -> bool:
        """Whether what node i reads is read again later: squeeze-and-excite, not the head."""
        later = {id(node) for node in nodes[i + 1 :]}
        return any(id(reader) in later for v in self._data(nodes[i]) for reader in v.readers)

    def _give_constants(self, found: Sequence[Region]) -> None:
        home = {id(n): block for region in found for block in region.blocks for n in block.nodes}
        for node in reversed(self.graph.nodes):
            if id(node) not in home:
                readers = [r for v in node.outputs for r in v.readers if id(r) in home]
                block = home[id(readers[0])] if readers else found[0].blocks[0]
                home[id(node)] = block
                block.nodes.append(node)


def _kind_of(node: Node) -> str:
    """The type that an operator is counted under, as in every chart."""
    shapes = [_shape(value) for value in node.inputs]
    return family(node.op, "", shapes)


def _shape(value: Value | None) -> list[int | None] | None:
    if value is None or value.shape is None:
        return None
    return [d if isinstance(d, int) else None for d in value.shape]


def _area(node: Node) -> int:
    """Height × width of the first output (N,C,H,W); 0 where there is none."""
    shape = _shape(node.outputs[0]) if node.outputs else None
    height, width = shape[2:] if shape is not None and len(shape) == 4 else (0, 0)
    return (height or 0) * (width or 0)


def _width(node: Node) -> int:
    shape = _shape(node.outputs[0])
    return (shape[1] or 0) if shape and len(shape) > 1 else 0


def _widths(convolutions: Sequence[Node]) -> str:
    return tr("channels {widths}", widths=" → ".join(str(_width(n)) for n in convolutions))


def _pairs(blocks: Sequence[Block]) -> list[Block]:
    """Attention and the feed-forward part behind it are one layer of a transformer."""
    out: list[Block] = []
    for block in blocks:
        if out and block.kind == tr("feed-forward") and out[-1].kind == tr("attention"):
            before = out.pop()
            said = f"{before.evidence}; {block.evidence}"
            block = Block(tr("transformer layer"), before.nodes + block.nodes, said)
        out.append(block)
    return out


def _stages(blocks: Sequence[Block], area: Callable[[Sequence[Node]], int]) -> list[Region]:
    """Neighbours of one kind and resolution, numbered; plain convolutions before them are the
    stem."""
    plain = tr("convolution")
    first = next((i for i, block in enumerate(blocks) if block.kind not in ("", plain)), 0)
    out = []
    if first:
        nodes = [node for block in blocks[:first] for node in block.nodes]
        said = tr("before the first block: {evidence}", evidence=blocks[0].evidence)
        out.append(Region(tr("stem"), tr("stem"), said, [Block("stem", nodes, said)]))
    runs = groupby(blocks[first:], lambda block: (block.kind, area(block.nodes)))
    for number, ((kind, _), group) in enumerate(runs, 1):
        members = list(group)
        short = tr("stage {number}", number=number)
        times = f" ×{len(members)}" if len(members) > 1 else ""
        name = f"{short}: {kind}{times}" if kind else short
        said = members[0].evidence
        if kind == plain:
            members = [Block(kind, [node for block in members for node in block.nodes], said)]
        out.append(Region(name, short, said, members))
    return out
