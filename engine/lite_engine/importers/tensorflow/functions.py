"""A flat graph: calls of the function library are replaced by the bodies, once per call."""

from __future__ import annotations

from collections.abc import Collection

from lite_messages import tr

from ...errors import ModelFormatError, UnsupportedOperatorError
from .graphdef import FunctionDef, GraphDef, NodeDef

MAX_DEPTH = 32
MAX_NODES = 1 << 17
CALLS = ("PartitionedCall", "StatefulPartitionedCall")

#: operators with several named outputs: position of each name (others have one, or one list)
_OUTPUTS = {
    "FusedBatchNorm": ("y", "batch_mean", "batch_variance"),
    "FusedBatchNormV2": ("y", "batch_mean", "batch_variance"),
    "FusedBatchNormV3": ("y", "batch_mean", "batch_variance"),
    "TopKV2": ("values", "indices"),
    "DecodeWav": ("audio", "sample_rate"),
    "MaxPoolWithArgmax": ("output", "argmax"),
    "NonMaxSuppressionV4": ("selected_indices", "valid_outputs"),
    "NonMaxSuppressionV5": ("selected_indices", "selected_scores", "valid_outputs"),
    "CombinedNonMaxSuppression": (
        "nmsed_boxes", "nmsed_scores", "nmsed_classes", "valid_detections",
    ),
    "Unique": ("y", "idx"),
    "Switch": ("output_false", "output_true"),
}  # fmt: skip

#: What a loop of TensorFlow 1 is made of.
_FRAMES = ("Enter", "Exit", "LoopCond", "Merge", "NextIteration", "Switch")
Ref = tuple[str, int]


def split_ref(text: str) -> Ref:
    """ "node" or "node:2" → (node, output)."""
    name, _, index = text.rpartition(":")
    return (name, int(index)) if name and index.isdigit() else (text, 0)


class Flat:
    """Nodes by name after inlining; inputs are (node, output) pairs."""

    def __init__(self, graph: GraphDef) -> None:
        self.functions = graph.functions
        self.nodes: dict[str, NodeDef] = {}
        self.inputs: dict[str, list[Ref]] = {}
        #: outputs of inlined calls: (call, output) → what stands for it
        self._alias: dict[Ref, Ref] = {}
        self._bodies: dict[str, int] = {}
        #: in file order, calls replaced by their bodies
        for node in graph.nodes:
            self._add(node.name, node, [split_ref(i) for i in node.inputs], 0)

    def call(self, name: str, function: str, inputs: list[Ref]) -> list[Ref]:
        """Adds the body of a function under `name`; references to what it returns."""
        found = self.functions.get(function)
        if found is None:
            raise ModelFormatError(
                tr(
                    "tensorflow: {name} calls {function!r}, which does not exist",
                    name=name,
                    function=function,
                )
            )
        self._inline(name, found, inputs, 0)
        return [(name, i) for i in range(len(found.returns))]

    def resolve(self, ref: Ref) -> Ref:
        """What a reference stands for after inlining. Raises ModelFormatError on a cycle."""
        seen = 0
        while ref in self._alias:
            ref = self._alias[ref]
            seen += 1
            if seen > len(self._alias):
                raise ModelFormatError(
                    tr("tensorflow: the definition of {ref} refers to itself", ref=ref[0])
                )
        return ref

    def fresh(self, stem: str) -> str:
        """A name for a body that is translated once more."""
        count = self._bodies[stem] = self._bodies.get(stem, 0) + 1
        return f"{stem}{count}"

    def stand_for(self, ref: Ref, other: Ref) -> None:
        """Readers of `ref` get `other` from now on."""
        self._alias[ref] = other

    def _add(self, name: str, node: NodeDef, inputs: list[Ref], depth: int) -> None:
        function = self.functions.get(node.attrs.function("f") if node.op in CALLS else node.op)
        if function is not None:
            self._inline(name, function, inputs, depth)
            return
        if name in self.nodes:
            raise ModelFormatError(tr("tensorflow: two nodes are called {name!r}", name=name))
        if len(self.nodes) > MAX_NODES:
            raise ModelFormatError(
                tr("tensorflow: more than {max_nodes} nodes after inlining", max_nodes=MAX_NODES)
            )
        self.nodes[name] = node
        self.inputs[name] = inputs

    def _inline(self, call: str, function: FunctionDef, inputs: list[Ref], depth: int) -> None:
        if depth > MAX_DEPTH:
            raise ModelFormatError(
                tr("tensorflow: function calls nested deeper than {max_depth}", max_depth=MAX_DEPTH)
            )
        if len(inputs) < len(function.args):
            raise ModelFormatError(
                tr(
                    "tensorflow: {call} passes {count} arguments to {function}, which takes"
                    " {arguments}",
                    call=call,
                    function=function.name,
                    count=len(inputs),
                    arguments=len(function.args),
                )
            )
        args = dict(zip(function.args, inputs))
        kinds = {n.name: n.op for n in function.nodes}

        def target(text: str) -> Ref:
            parts = text.split(":")
            if parts[0] in args:
                return args[parts[0]]
            if parts[0] not in kinds:
                raise ModelFormatError(
                    tr(
                        "tensorflow: {function} reads {parts!r}, which does not exist",
                        function=function.name,
                        parts=parts[0],
                    )
                )
            index = int(parts[-1]) if parts[-1].isdigit() else 0
            names = _OUTPUTS.get(kinds[parts[0]])
            if names and len(parts) > 2 and parts[1] in names:
                index += names.index(parts[1])
            return f"{call}/{parts[0]}", index

        for node in function.nodes:
            self._add(f"{call}/{node.name}", node, [target(i) for i in node.inputs], depth + 1)
        for index, text in enumerate(function.returns):
            self._alias[call, index] = target(text)

    def order(self, wanted: list[Ref], done: Collection[Ref] = ()) -> list[str]:
        """Names of the nodes that `wanted` needs, producers first, without those whose outputs
        are in `done`. Raises ModelFormatError."""
        out: list[str] = []
        state: dict[str, int] = {}
        for root, _ in (self.resolve(ref) for ref in wanted):
            stack = [(root, 0)]
            while stack:
                name, at = stack.pop()
                if at == 0:
                    if state.get(name) == 2 or (name, 0) in done:
                        continue
                    if name not in self.nodes:
                        raise ModelFormatError(
                            tr("tensorflow: node {name!r} is read, but does not exist", name=name)
                        )
                    state[name] = 1
                inputs = self.inputs[name]
                if at == len(inputs):
                    state[name] = 2
                    out.append(name)
                    continue
                stack.append((name, at + 1))
                child = self.resolve(inputs[at])[0]
                if state.get(child) == 1 and self.nodes[child].op in _FRAMES:
                    raise UnsupportedOperatorError(
                        tr("loops of TensorFlow 1 (Enter, Merge, NextIteration) are not supported"),
                        (child,),
                        where=child,
                        fix=tr(
                            "call tf.compat.v1.enable_control_flow_v2() before the graph is "
                            "built, and export again"
                        ),
                    )
                if state.get(child) == 1:
                    raise ModelFormatError(tr("tensorflow: a cycle through {child!r}", child=child))
                if state.get(child) != 2:
                    stack.append((child, 0))
        return out
