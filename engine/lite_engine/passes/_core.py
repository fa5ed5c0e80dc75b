"""Pattern → check → rewrite: how a pass finds a place, refuses it with a reason, or rewrites it.

    @rule("fuse-conv-batch-norm", source="Jacob 2018 §3.2")
    class FuseConvBatchNorm:                      # W' = W·s, b' = (b−μ)·s + β
        patterns = [P("BatchNormalization", P("Conv", "x", C("w"), C("b?"), name="conv"), …)]
        def check(self, graph, m): return skip("…", m.conv) or None
        def rewrite(self, graph, m): return graph.replace([m.conv, m.bn], "Conv", …)

Arguments of a pattern: a nested `P`, a word (binds any value; the same word twice must be the same
value; `b?` may be absent), `C("w")` (binds a constant), a number (a constant of one element with
that value). The same name of a `P` twice must be the same node. `P("Conv", …, attrs={"group": 1})`
also looks at attributes.
Two-input commutative operators match in both orders. The values between the nodes of a
match must have no other reader and not be an output of the model, or the place is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any, Protocol

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import Graph, Journal, Node, Value, handed_out, holders
from ..ops import infer_outputs, op_names
from ._attributes import NUMBER_TOLERANCE, A, bound_attributes, check_names

COMMUTATIVE = op_names(lambda op: op.commutative)
_OPERATOR = attrgetter("op")

#: Attributes of `Match` that no word of a pattern may hide behind.
RESERVED = ("bound", "nodes", "inner", "root", "array")

# ---------------------------------------------------------------- patterns


class C:
    """A constant, bound to a word; `C("b?")` may be absent."""

    def __init__(self, name: str) -> None:
        self.name = name


class P:
    """One node of a pattern. `op` is a name or several. `attrs` says what attributes, given or by
    default, must be: a value, a predicate of it, or `A("word")`, which binds it to a word (the same
    word twice must be the same value). `more` lets the node have inputs beyond those listed;
    `shared` lets its output have other readers."""

    def __init__(
        self,
        op: str | Sequence[str],
        *args: P | C | str | float,
        name: str = "",
        attrs: dict[str, Any] | None = None,
        more: bool = False,
        shared: bool = False,
    ) -> None:
        words = [name, *(a.name for a in (attrs or {}).values() if isinstance(a, A))]
        if hidden := next((word for word in words if word in RESERVED), ""):
            raise ValueError(tr("a pattern part cannot be called {name!r}", name=hidden))
        self.ops = (op,) if isinstance(op, str) else tuple(op)
        check_names(self.ops, attrs or {})
        self.args = args
        self.name = name
        self.attrs = attrs or {}
        self.more = more
        self.shared = shared
        self._below = [set(arg.ops) for arg in args if isinstance(arg, P)]
        #: for each part, the operators that it may be
        self.operators: list[set[str]] = [set(self.ops)]
        for arg in args:
            self.operators += arg.operators if isinstance(arg, P) else ()

    def may_fit(self, node: Node) -> bool:
        """False where an operator that the pattern asks for is not among those that make the node's
        inputs, which is so at most nodes and quickly told."""
        for below in self._below:
            for value in node.inputs:
                if value is not None and (maker := value.producer) and maker.op in below:
                    break
            else:
                return False
        return True


@dataclass
class Match:
    """What the words of a pattern stand for; `m.conv` is a Node, `m.x` a Value or None, `m.alpha`
    what an attribute is.

    `nodes` are the matched nodes, inner ones first, the root last.
    """

    bound: dict[str, Any] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    inner: list[Node] = field(default_factory=list)  # those that may not be read elsewhere

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["bound"][name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def root(self) -> Node:
        return self.nodes[-1]

    def array(self, name: str) -> np.ndarray | None:
        """The contents of a bound constant, None when it is absent."""
        value = self.bound.get(name)
        return None if value is None else value.const


def words_of(pattern: P) -> list[str]:
    """The words that stand for attributes."""
    own = [a.name for a in pattern.attrs.values() if isinstance(a, A) and a.name]
    inner = [w for arg in pattern.args if isinstance(arg, P) for w in words_of(arg)]
    return list(dict.fromkeys([*own, *inner]))


def match(pattern: P, node: Node) -> Iterator[Match]:
    """Every way in which a pattern fits with `node` as its root."""
    for found in _match_node(pattern, node, Match()):
        nodes = list(dict.fromkeys(found.nodes))  # a part used twice counts once
        yield Match(found.bound, nodes, [n for n in dict.fromkeys(found.inner) if n is not node])


def _match_node(pattern: P, node: Node, m: Match) -> Iterator[Match]:
    if node.op not in pattern.ops:
        return
    if pattern.attrs:
        words = bound_attributes(pattern.attrs, node, m.bound)
        if words is None:
            return
        m = Match(words, m.nodes, m.inner)
    if pattern.name and m.bound.get(pattern.name, node) is not node:
        return
    inputs = list(node.inputs)
    while inputs and inputs[-1] is None:
        inputs.pop()
    if len(inputs) > len(pattern.args) and not pattern.more:
        return
    orders = [inputs]
    if node.op in COMMUTATIVE and len(inputs) == 2 and len(pattern.args) == 2:
        orders.append(inputs[::-1])
    for order in orders:
        padded = order + [None] * (len(pattern.args) - len(order))
        for found in _match_args(pattern.args, padded, m):
            bound = {**found.bound, pattern.name: node} if pattern.name else found.bound
            inner = found.inner if pattern.shared else [*found.inner, node]
            yield Match(bound, [*found.nodes, node], inner)


def _match_args(args: Sequence[Any], values: Sequence[Value | None], m: Match) -> Iterator[Match]:
    if not args:
        yield m
        return
    for found in _match_value(args[0], values[0], m):
        yield from _match_args(args[1:], values[1:], found)


def _match_value(arg: P | C | str | float, value: Value | None, m: Match) -> Iterator[Match]:
    if isinstance(arg, P):
        producer = None if value is None else value.producer
        if producer is not None and producer.outputs[0] is value:
            yield from _match_node(arg, producer, m)
        return
    if isinstance(arg, (int, float)):
        if value is not None and is_number(value.const, arg):
            yield m
        return
    word = arg.name if isinstance(arg, C) else arg
    name = word.rstrip("?")
    if value is None and not word.endswith("?"):
        return
    if isinstance(arg, C) and value is not None and value.const is None:
        return
    if name in m.bound and m.bound[name] is not value:
        return
    yield Match({**m.bound, name: value}, m.nodes, m.inner)


def is_number(array: np.ndarray | None, number: float) -> bool:
    """Is it a constant of one element with that value?"""
    if array is None or array.size != 1 or array.dtype.kind not in "fiu":
        return False
    return abs(float(array.ravel()[0]) - number) <= NUMBER_TOLERANCE * max(abs(number), 1e-9)


# ---------------------------------------------------------------- refusals and passes


@dataclass(frozen=True)
class Skip:
    """Why a rule leaves a place alone."""

    reason: str
    where: Node | Value


def skip(reason: str, where: Node | Value) -> Skip:
    """A refusal that the journal tells."""
    return Skip(reason, where)


def no_match(where: Node) -> Skip:
    """The place only looked like the pattern: nothing to tell."""
    return Skip("", where)


class Pass(Protocol):
    """One line of the pipeline.

    `local`, where it has that, says that it makes nodes and gives nodes other inputs or outputs,
    and changes neither attributes nor types of nodes and values that stay.
    """

    name: str

    def __call__(self, graph: Graph, journal: Journal) -> int:
        """Rewrites the graph in place; returns the number of rewrites."""


class Rule(Protocol):
    """What a class under `@rule` gives. `rewrite` is `local`, as `Pass` says."""

    @property
    def patterns(self) -> Sequence[P]: ...

    def check(self, graph: Graph, m: Match) -> Skip | None: ...

    def rewrite(self, graph: Graph, m: Match) -> Node | Sequence[Node] | None: ...


@dataclass
class RulePass:
    """Applies one rule wherever it fits, until nothing changes."""

    name: str
    rule: Rule
    source: str = ""
    local = True

    def __call__(self, graph: Graph, journal: Journal) -> int:
        total = 0
        while count := self._sweep(graph, journal):
            total += count
        return total

    def _sweep(self, graph: Graph, journal: Journal) -> int:
        count, pinned = 0, _Pinned(graph)
        roots = self._roots(set(map(_OPERATOR, graph.nodes)))
        for node in [node for node in graph.nodes if node.op in roots] if roots else ():
            # Without inputs: an earlier rewrite of this sweep took the node out.
            if node.inputs and self._try(graph, node, roots[node.op], pinned, journal):
                count += 1
        return count

    def _roots(self, present: set[str]) -> dict[str, list[P]]:
        """The patterns by the operator of their root, those whose parts are all `present`."""
        found: dict[str, list[P]] = {}
        for pattern in self.rule.patterns:
            if not any(present.isdisjoint(part) for part in pattern.operators):
                for op in pattern.ops:
                    found.setdefault(op, []).append(pattern)
        return found

    def _try(
        self, graph: Graph, node: Node, patterns: list[P], pinned: _Pinned, journal: Journal
    ) -> bool:
        for pattern in patterns:
            for m in match(pattern, node) if pattern.may_fit(node) else ():
                refusal = self._inner_readers(graph, m, pinned) or self._checked(graph, m)
                if refusal is not None:
                    self._refuse(m, refusal, journal)
                    continue
                before = tuple(n.name for n in m.nodes)
                made = self.rule.rewrite(graph, m)
                nodes = [made] if isinstance(made, Node) else list(made or ())
                infer_new(nodes)
                journal.rewrote(self.name, before, tuple(n.name for n in nodes))
                return True
        return False

    def _checked(self, graph: Graph, m: Match) -> Skip | None:
        """`check`, where a node may be none that its inputs fit while other sizes are open: the
        run, which knows them all, then names it."""
        try:
            return self.rule.check(graph, m)
        except ShapeError as error:
            return skip(error.what, m.root)

    @staticmethod
    def _inner_readers(graph: Graph, m: Match, pinned: _Pinned) -> Skip | None:
        members = {id(n) for n in m.nodes}
        operands = {id(v) for v in m.bound.values() if isinstance(v, Value)}
        for node in m.inner:
            for value in node.outputs:
                if graph.is_output(value) or id(value) in pinned.ids:
                    return skip(tr("{name} is an output of the model", name=value.name), node)
                if id(value) in operands or any(id(r) not in members for r in value.readers):
                    return skip(tr("{node} output has another reader", node=node.op), node)
        return None

    def _refuse(self, m: Match, refusal: Skip, journal: Journal) -> None:
        if not refusal.reason:
            return
        names = [refusal.where.name, *(n.name for n in m.nodes)]
        journal.refused(self.name, tuple(dict.fromkeys(names)), refusal.reason)


def rule(name: str, *, source: str = "") -> Callable[[type], RulePass]:
    """Makes a pass of a class with `patterns`, `check` and `rewrite`."""

    def make(cls: type) -> RulePass:
        made = RulePass(name, cls(), source)
        made.__doc__ = cls.__doc__
        return made

    return make


@dataclass
class FunctionPass:
    """A pass that walks the graph by itself."""

    name: str
    function: Callable[[Graph, Journal], int]
    local: bool = False

    def __call__(self, graph: Graph, journal: Journal) -> int:
        return self.function(graph, journal)


def graph_pass(
    name: str, *, local: bool = False
) -> Callable[[Callable[[Graph, Journal], int]], FunctionPass]:
    """Makes a pass of a function; `local` as `Pass` says."""
    return lambda function: FunctionPass(name, function, local)


def infer_new(nodes: Sequence[Node]) -> None:
    """Types of the outputs of new nodes, where they can be told already."""
    for node in nodes:
        if all(v is None or v.dtype is not None for v in node.inputs):
            infer_outputs(node)  # after the pass again, with all types known


class _Pinned:
    """Ids of values that a subgraph hands out directly, found when a match first needs them."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    @cached_property
    def ids(self) -> set[int]:
        return captured_outputs(self._graph)


def captured_outputs(graph: Graph) -> set[int]:
    """Ids of values that a subgraph hands out directly."""
    return set().union(*map(handed_out, holders(graph)))
