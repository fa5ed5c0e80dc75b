"""Conditionals of TensorFlow 1: Switch, which hands a tensor to one of two branches, and Merge,
which takes the one that was computed.

Where the predicate is constant a Merge stands for the branch that is taken, and nodes of the other
are dropped. So it is where an input decides whether random numbers are drawn, as `is_training` does
for dropout: it is no input, and none are drawn. Otherwise both branches are computed, and the
predicate selects between the results.
Merges and Switches of loops are left alone: `frames` makes a While of each loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lite_messages import tr

from ...errors import UnsupportedOperatorError
from ...ir import Value
from ._translate import Call, Result, op
from .frames import is_loop_merge
from .functions import Flat, Ref
from .graphdef import read_tensor

#: They draw numbers, which an inference does not.
DRAWING = (
    "RandomUniform", "RandomStandardNormal", "TruncatedNormal", "StatelessRandomUniform",
    "StatelessRandomUniformV2", "StatelessRandomNormal", "StatelessRandomNormalV2",
)  # fmt: skip
_PASSING = ("Identity", "StopGradient", "PlaceholderWithDefault")
#: A predicate, and which output of its Switches: what must hold for a node to be computed.
Branch = tuple[Ref, int]


@dataclass
class Conditionals:
    """What decides whether each output of a graph's nodes is computed."""

    branches: dict[Ref, frozenset[Branch]] = field(default_factory=dict)
    known: dict[Ref, bool] = field(default_factory=dict)
    #: Placeholders that switch training on, and what stands for each.
    switches: dict[str, bool] = field(default_factory=dict)
    #: Identities of a predicate that went through a Switch: what a branch's nodes wait for
    pivots: set[str] = field(default_factory=set)

    def of(self, ref: Ref) -> frozenset[Branch]:
        return self.branches.get(ref) or self.branches.get((ref[0], 0), frozenset())

    def is_output(self, ref: Ref) -> bool:
        """Whether a value without readers may be an output of the model."""
        return ref[0] not in self.pivots and not self.is_dead(ref)

    def is_dead(self, ref: Ref) -> bool:
        """Is it never computed?"""
        return any(p in self.known and self.known[p] != bool(k) for p, k in self.of(ref))

    def check(self, wanted: list[tuple[str, Ref]]) -> None:
        """Raises UnsupportedOperatorError for an output that only one branch has."""
        for name, ref in wanted:
            if any(p not in self.known for p, _ in self.of(ref)):
                raise UnsupportedOperatorError(
                    tr("{name} is computed in one branch of a condition only", name=name),
                    (name,),
                    where=name,
                    fix=tr("name the outputs behind the control flow (Merge) with outputs="),
                )


def fold_conditionals(flat: Flat) -> Conditionals:
    """Merges by constant predicates are replaced in place; others get the inputs predicate, true
    branch, false branch."""
    found = Conditionals()
    if not any(node.op == "Switch" for node in flat.nodes.values()):
        return found
    found.switches = _training_switches(flat)
    for name in _in_order(flat):
        node, inputs = flat.nodes[name], [flat.resolve(r) for r in flat.inputs[name]]
        needs = [*inputs, *((c, 0) for c in node.controls if c in flat.nodes)]
        if node.op == "Merge" and is_loop_merge(flat, name):
            found.branches[name, 0] = frozenset(
                b
                for ref in inputs
                if flat.nodes[ref[0]].op != "NextIteration"
                for b in found.of(ref)
            )
            continue
        if node.op == "Merge" and len(inputs) == 2:
            found.branches[name, 0] = found.of(inputs[0]) & found.of(inputs[1])
            _fold_merge(flat, found, name, inputs)
            continue
        if node.op == "Identity" and inputs and _is_pivot(flat, inputs[0][0]):
            found.pivots.add(name)
        above = frozenset(b for ref in needs for b in found.of(ref))
        found.branches[name, 0] = above
        if node.op == "Switch" and len(inputs) == 2:
            predicate = _source(flat, inputs[1])
            if flat.nodes[predicate[0]].op == "LoopCond":
                found.branches[name, 0] = found.branches[name, 1] = above
                continue
            value = _constant(flat, predicate, found.switches)
            if value is not None:
                found.known[predicate] = value
            for k in (0, 1):
                found.branches[name, k] = above | {(predicate, k)}
    return found


def _is_pivot(flat: Flat, name: str) -> bool:
    """Is it a Switch of a predicate by itself?"""
    node, read = flat.nodes.get(name), flat.inputs.get(name, [])
    return node is not None and node.op == "Switch" and len(read) == 2 and read[0] == read[1]


def _fold_merge(flat: Flat, found: Conditionals, name: str, inputs: list[Ref]) -> None:
    alive = [ref for ref in inputs if not found.is_dead(ref)]
    if len(alive) == 1:
        flat.stand_for((name, 0), alive[0])
        return
    first, second = (found.of(ref) for ref in inputs)
    deciding = [(p, k) for p, k in first if (p, 1 - k) in second and p not in found.known]
    if len(deciding) == 1:
        predicate, k = deciding[0]
        flat.inputs[name] = [predicate, inputs[1 - k], inputs[k]]


def _source(flat: Flat, ref: Ref) -> Ref:
    """What Identities hand on."""
    for _ in range(len(flat.nodes)):
        ref = flat.resolve(ref)
        node = flat.nodes.get(ref[0])
        if node is None or node.op != "Identity" or not flat.inputs[ref[0]]:
            break
        ref = flat.inputs[ref[0]][0]
    return ref


def _constant(flat: Flat, ref: Ref, switches: Mapping[str, bool]) -> bool | None:
    """The predicate where the file or a switch of training says it."""
    name, flip = _origin(flat, ref)
    node = flat.nodes.get(name)
    if name in switches:
        return switches[name] != flip
    message = node.attrs.tensor("value") if node is not None and node.op == "Const" else None
    array = None if message is None else read_tensor(message, name)[0]
    return None if array is None or array.size != 1 else bool(array.reshape(())) != flip


def _origin(flat: Flat, ref: Ref) -> tuple[str, bool]:
    """The node behind Identity, LogicalNot and defaults, and whether its value is turned round."""
    flip = False
    for _ in range(len(flat.nodes)):
        name = flat.resolve(ref)[0]
        node = flat.nodes.get(name)
        if node is None or node.op not in (*_PASSING, "LogicalNot") or not flat.inputs[name]:
            break
        flip ^= node.op == "LogicalNot"
        ref = flat.inputs[name][0]
    return flat.resolve(ref)[0], flip


def _training_switches(flat: Flat) -> dict[str, bool]:
    """Placeholders with a branch in which numbers are drawn, and the value of the other one."""
    quiet: dict[str, set[bool]] = {}
    for name, node in flat.nodes.items():
        if node.op not in DRAWING:
            continue
        for predicate, k in _guards(flat, name):
            origin, flip = _origin(flat, predicate)
            if flat.nodes[origin].op == "Placeholder":
                quiet.setdefault(origin, set()).add((not k) != flip)
    return {name: values.pop() for name, values in quiet.items() if len(values) == 1}


def _guards(flat: Flat, name: str) -> set[Branch]:
    """The predicates of the Switches that a node's inputs and controls come from."""
    found: set[Branch] = set()
    seen: set[str] = set()
    waiting: list[Ref] = [(name, 0)]
    while waiting:
        at, output = waiting.pop()
        node = flat.nodes.get(at)
        if node is None or node.op == "Merge":
            continue
        if node.op == "Switch" and len(flat.inputs[at]) == 2:
            found.add((flat.resolve(flat.inputs[at][1]), output))
        elif at not in seen:
            seen.add(at)
            waiting += [flat.resolve(ref) for ref in flat.inputs[at]]
            waiting += [(control, 0) for control in node.controls]
    return found


def _in_order(flat: Flat) -> list[str]:
    """Every node behind what it reads and waits for; what lies on a cycle comes anywhere."""
    out: list[str] = []
    seen: set[str] = set()
    for root in flat.nodes:
        stack = [(root, False)]
        while stack:
            name, is_done = stack.pop()
            if is_done:
                out.append(name)
            elif name not in seen and name in flat.nodes:
                seen.add(name)
                stack.append((name, True))
                before = [flat.resolve(ref)[0] for ref in flat.inputs[name]]
                if flat.nodes[name].op == "Merge":  # where a loop closes
                    before = [n for n in before if n not in flat.nodes
                              or flat.nodes[n].op != "NextIteration"]  # fmt: skip
                stack += [(n, False) for n in (*before, *flat.nodes[name].controls)]
    return out


@op("Switch")
def switch(c: Call) -> Result:
    return [c.x(0), c.x(0)]


@op("Merge")
def merge(c: Call) -> Value:
    if len(c.refs) != 3:
        raise UnsupportedOperatorError(
            tr("{name}: no single predicate decides between its inputs", name=c.name),
            (c.name,),
            where=c.name,
            fix=tr(
                "control flow is not supported: export for inference, with training switches frozen"
            ),
        )
    predicate, yes, no = c.xs()
    if yes.shape is None or yes.shape != no.shape:
        raise UnsupportedOperatorError(
            tr(
                "{name}: the branches of a condition have the shapes {yes} and {no}",
                name=c.name,
                yes=list(yes.shape or ()),
                no=list(no.shape or ()),
            ),
            (c.name,),
            where=c.name,
            fix=tr("fix the input shapes"),
        )
    return c.emit("Where", predicate, yes, no)
