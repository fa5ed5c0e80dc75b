"""The float graph as the quantiser wants it: one range for every number that integers will hold.

Residual inputs become additions again and activations other than clamps become nodes of their own:
Conv(x, w, b, r){HardSwish} → Conv, Add, HardSwish. Relu and Clip stay, they are free in integers.
"""

from __future__ import annotations

from ..ir import Graph, Node, Value
from ..ops import get_op, infer_types, op_names, residual_of

#: Activations that cost nothing: the integer range of the output clamps.
CLAMPS = op_names(lambda op: op.clamps)


def prepare(graph: Graph) -> Graph:
    """A copy with residuals and activations split off. New values are named after the old ones."""
    out = graph.copy()
    for node in list(out.nodes):
        if residual_of(node) is not None:
            node = split_residual(out, node)
        if node.attrs.get("activation") and node.attrs["activation"] not in CLAMPS:
            _split_activation(out, node)
    infer_types(out)
    return out


def split_residual(graph: Graph, layer: Node) -> Node:
    """The layer and an Add, which carries the activation and makes the old output value."""
    attrs = {k: v for k, v in layer.attrs.items() if not k.startswith("activation")}
    fused = {k: v for k, v in layer.attrs.items() if k.startswith("activation")}
    before = _insert(graph, layer, attrs, list(layer.inputs[:3]), f".{layer.op.lower()}")
    inputs = [before, residual_of(layer)]
    return graph.replace([layer], "Add", inputs, fused, name=f"{layer.name}.add")


def _split_activation(graph: Graph, node: Node) -> None:
    op = node.attrs["activation"]
    params = list(node.attrs.get("activation_params", []))
    attrs = {k: v for k, v in node.attrs.items() if not k.startswith("activation")}
    before = _insert(graph, node, attrs, list(node.inputs), ".linear")
    own = activation_attrs(op, params)
    graph.replace([node], op, [before], own, name=f"{node.name}.{op.lower()}")


def activation_attrs(op: str, params: list[float]) -> dict[str, object]:
    """Attributes of the operator that a fused activation stands for (not Clip)."""
    if op == "Gelu":
        return {"approximate": "tanh" if params and params[0] else "none"}
    return dict(zip(get_op(op).attrs, params))


def _insert(
    graph: Graph, node: Node, attrs: dict[str, object], inputs: list[Value | None], suffix: str
) -> Value:
    """The node without its tail, before itself; its output is named after the old one."""
    made = graph.add(
        node.op, inputs, attrs, outputs=[f"{node.output.name}{suffix}"],
        name=f"{node.name}{suffix}", sources=node.sources, before=node,
    )  # fmt: skip
    made.output.dtype, made.output.shape = node.output.dtype, node.output.shape
    return made.output
