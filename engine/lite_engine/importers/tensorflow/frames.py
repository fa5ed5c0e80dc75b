"""Loops of TensorFlow 1 as the While of version 2.

A loop is a frame: Enter hands each value in, Merge takes it or what NextIteration brings back,
LoopCond says whether it goes on, Switch sends it into the body or to Exit. What lies between
becomes two functions of a While node, which gets the values of the Enters, constant ones last;
each Exit becomes an Identity of an output of it. Inner loops come first: an outer body holds
their Whiles.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lite_messages import tr

from ...errors import UnsupportedOperatorError
from .functions import Flat, Ref
from .graphdef import Attrs, FunctionDef, NodeDef


class LoopAttrs(Attrs):
    """Attributes of a While node that no file has."""

    def __init__(self, condition: str, body: str) -> None:
        self._values = {}
        self._functions = {"cond": condition, "body": body}

    def function(self, name: str) -> str:
        return self._functions.get(name, "")


@dataclass
class Variable:
    """One value that changes from step to step."""

    enter: str
    merge: str
    back: Ref
    switch: str = ""
    exits: list[str] = field(default_factory=list)


@dataclass
class Frame:
    name: str
    variables: list[Variable] = field(default_factory=list)
    #: Enters of values that stay as they are
    constants: list[str] = field(default_factory=list)
    condition: str = ""


def is_loop_merge(flat: Flat, name: str) -> bool:
    """Does it begin a step of a loop? Other Merges join the branches of a condition."""
    return any(_op(flat, ref) == "NextIteration" for ref in flat.inputs[name])


def rewrite_frames(flat: Flat) -> None:
    """Every loop of the graph becomes a While. Raises UnsupportedOperatorError for one that has
    another form."""
    frames = {frame.name: frame for frame in _frames(flat)}
    while frames:
        rest = len(frames)
        for name, frame in list(frames.items()):
            region = _Region(flat, frame)
            if region.read():
                region.replace()
                del frames[name]
        if len(frames) == rest:
            raise _refused(next(iter(frames.values())).name)


def _op(flat: Flat, ref: Ref) -> str:
    node = flat.nodes.get(flat.resolve(ref)[0])
    return "" if node is None else node.op


def _refused(name: str) -> UnsupportedOperatorError:
    return UnsupportedOperatorError(
        tr("{name}: this loop of TensorFlow 1 has a form that is not read", name=name),
        (name,), where=name,
        fix=tr(
            "call tf.compat.v1.enable_control_flow_v2() before the graph is built, and export again"
        ),
    )  # fmt: skip


def _frames(flat: Flat) -> list[Frame]:
    found: dict[str, Frame] = {}
    entered: dict[str, Frame] = {}
    for name, node in flat.nodes.items():
        if node.op == "Enter":
            key = node.attrs.text("frame_name")
            entered[name] = found.setdefault(key, Frame(key))
    loops: dict[str, Variable] = {}
    for name, node in flat.nodes.items():
        if node.op != "Merge" or not is_loop_merge(flat, name):
            continue
        parts = [flat.resolve(ref)[0] for ref in flat.inputs[name]]
        enters = [p for p in parts if p in entered]
        nexts = [p for p in parts if _op(flat, (p, 0)) == "NextIteration"]
        if len(enters) != 1 or len(nexts) != 1:
            raise _refused(name)
        loops[name] = Variable(enters[0], name, flat.inputs[nexts[0]][0])
        entered[enters[0]].variables.append(loops[name])
    changing = {v.enter for v in loops.values()}
    for name, frame in entered.items():
        if name not in changing:
            frame.constants.append(name)
    _find_ends(flat, loops, entered)
    return list(found.values())


def _find_ends(flat: Flat, loops: dict[str, Variable], entered: dict[str, Frame]) -> None:
    """The Switch of each variable, its Exits, and what decides."""
    switches: dict[str, Variable] = {}
    for name, node in flat.nodes.items():
        inputs = [flat.resolve(ref) for ref in flat.inputs[name]]
        if node.op == "Switch" and inputs[0][0] in loops and _op(flat, inputs[1]) == "LoopCond":
            variable = loops[inputs[0][0]]
            variable.switch = name
            switches[name] = variable
            entered[variable.enter].condition = inputs[1][0]
    for name, node in flat.nodes.items():
        if node.op == "Exit":
            switch = flat.resolve(flat.inputs[name][0])
            if switch[0] in switches and switch[1] == 0:
                switches[switch[0]].exits.append(name)


class _Region:
    """The nodes of a loop, and the functions that they become."""

    def __init__(self, flat: Flat, frame: Frame) -> None:
        self.flat, self.frame = flat, frame
        self.arguments: dict[Ref, str] = {}
        for i, variable in enumerate(frame.variables):
            self.arguments[variable.merge, 0] = self.arguments[variable.switch, 1] = f"%{i}"
        for i, enter in enumerate(frame.constants, len(frame.variables)):
            self.arguments[enter, 0] = f"%{i}"
        self.condition: list[str] = []
        self.body: list[str] = []

    def read(self) -> bool:
        """Finds the nodes; False where an inner loop has to become a While first."""
        frame = self.frame
        if not frame.condition or not all(v.switch for v in frame.variables):
            raise _refused(frame.name)
        self.test = self.flat.inputs[frame.condition][0]
        condition = self._reach([self.test])
        body = self._reach([v.back for v in frame.variables])
        if condition is None or body is None:
            return False
        self.condition, self.body = condition, body
        return True

    def _reach(self, roots: list[Ref]) -> list[str] | None:
        """Names of the nodes that make `roots`, up to the arguments."""
        found: dict[str, None] = {}
        stack = [self.flat.resolve(ref) for ref in roots]
        while stack:
            ref = stack.pop()
            if ref in self.arguments or ref[0] in found:
                continue
            node = self.flat.nodes.get(ref[0])
            if node is None:
                raise _refused(self.frame.name)
            if node.op in ("Enter", "Exit", "NextIteration", "LoopCond"):
                return None
            found[ref[0]] = None
            stack += [self.flat.resolve(r) for r in self.flat.inputs[ref[0]]]
        return list(found)

    def _text(self, ref: Ref) -> str:
        ref = self.flat.resolve(ref)
        return self.arguments.get(ref) or f"{ref[0]}:{ref[1]}"

    def _function(self, name: str, nodes: list[str], returns: list[str]) -> str:
        flat, frame = self.flat, self.frame
        count = len(frame.variables) + len(frame.constants)
        made = []
        for node in nodes:
            inputs = [self._text(ref) for ref in flat.inputs[node]]
            made.append(NodeDef(node, flat.nodes[node].op, inputs, flat.nodes[node].attrs))
        key = f"{frame.name}/{name}"
        flat.functions[key] = FunctionDef(key, [f"%{i}" for i in range(count)], returns, made)
        return key

    def replace(self) -> None:
        flat, frame = self.flat, self.frame
        test = self._function("cond", self.condition, [self._text(self.test)])
        stays = [self.arguments[enter, 0] for enter in frame.constants]
        returns = [*(self._text(v.back) for v in frame.variables), *stays]
        body = self._function("body", self.body, returns)
        entered = [*(v.enter for v in frame.variables), *frame.constants]
        inputs = [flat.inputs[enter][0] for enter in entered]
        gone = {*self.condition, *self.body, *entered, frame.condition}
        backs = [n for n, node in flat.nodes.items() if node.op == "NextIteration"
                 and any(flat.resolve(r) == flat.resolve(v.back)
                         for v in frame.variables for r in flat.inputs[n])]  # fmt: skip
        gone |= {n for v in frame.variables for n in (v.merge, v.switch)} | set(backs)
        exits = {exit_: i for i, v in enumerate(frame.variables) for exit_ in v.exits}
        gone -= exits.keys()
        while gone:
            for name in gone:
                del flat.nodes[name], flat.inputs[name]
            # What else reads a value of a step is only waited for, or not needed at all.
            gone = {n for n, inputs in flat.inputs.items() if n not in exits
                    and any(flat.resolve(ref)[0] in gone for ref in inputs)}  # fmt: skip
        loop = f"{frame.name}/while"
        flat.nodes[loop] = NodeDef(loop, "While", [], LoopAttrs(test, body))
        flat.inputs[loop] = inputs
        for name, index in exits.items():
            flat.nodes[name] = NodeDef(name, "Identity", [], flat.nodes[name].attrs)
            flat.inputs[name] = [(loop, index)]
