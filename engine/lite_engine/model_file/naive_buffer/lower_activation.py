"""Activations in Paddle-Lite's operators: attributes of a layer, or an operator of their own."""

from __future__ import annotations

from math import inf
from typing import Any

from lite_messages import tr

from ...ir import Node, Value
from .lower import Writer


def act_attrs(name: str, params: list[float]) -> dict[str, Any] | None:
    """Attributes of an activation fused into conv2d, None when Paddle-Lite cannot fuse it."""
    if name == "Relu":
        return {"with_act": True, "act_type": "relu", "fuse_relu": True}
    if name == "Clip" and params and params[0] == 0.0 and 0.0 < params[1] < inf:
        threshold = float(params[1])
        return {"with_act": True, "act_type": "relu6", "fuse_brelu_threshold": threshold}
    if name == "LeakyRelu":
        alpha = float(params[0]) if params else 0.01
        return {"with_act": True, "act_type": "leaky_relu", "leaky_relu_alpha": alpha}
    if name == "HardSwish":
        return {
            "with_act": True, "act_type": "hard_swish", "hard_swish_threshold": 6.0,
            "hard_swish_scale": 6.0, "hard_swish_offset": 3.0,
        }  # fmt: skip
    return None


def activation_op(w: Writer, x: str, out: Value | str, name: str, params: list[float]) -> None:
    """A separate activation operator."""
    values = [float(p) for p in params]
    plain = {"Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh"}
    if name in plain:
        w.add(plain[name], {"X": x}, {"Out": out})
    elif name == "Clip":
        if values == [0.0, 6.0]:
            w.add("relu6", {"X": x}, {"Out": out}, threshold=6.0)
        else:
            w.add("clip", {"X": x}, {"Out": out}, min=values[0], max=values[1])
    elif name == "LeakyRelu":
        w.add("leaky_relu", {"X": x}, {"Out": out}, alpha=values[0] if values else 0.01)
    elif name == "HardSigmoid":
        slope, offset = values or [0.2, 0.5]
        w.add("hard_sigmoid", {"X": x}, {"Out": out}, slope=slope, offset=offset)
    elif name == "HardSwish":
        w.add("hard_swish", {"X": x}, {"Out": out}, threshold=6.0, scale=6.0, offset=3.0)
    elif name in ("Silu", "Swish"):
        w.add("swish", {"X": x}, {"Out": out}, beta=values[0] if values else 1.0)
    elif name == "Gelu":
        w.add("gelu", {"X": x}, {"Out": out}, approximate=bool(values and values[0]))
    elif name == "Elu":
        w.add("elu", {"X": x}, {"Out": out}, alpha=values[0] if values else 1.0)
    elif name == "Softplus":
        w.add("softplus", {"X": x}, {"Out": out}, beta=1.0, threshold=20.0)
    elif name == "Mish":
        w.add("mish", {"X": x}, {"Out": out}, threshold=20.0)
    else:
        raise w.refuse(tr("Paddle-Lite has no activation {name}", name=name))


def with_activation(w: Writer, node: Node, attrs: dict[str, Any]) -> Value | str:
    """Where the operator itself writes: the node's output, or a variable before the activation."""
    return w.like(node.output, "before") if attrs.get("activation") else node.output


def finish_activation(w: Writer, node: Node, attrs: dict[str, Any], written: Value | str) -> None:
    if attrs.get("activation"):
        params = list(attrs["activation_params"])
        activation_op(w, str(written), node.output, attrs["activation"], params)
