"""Lowerings of layers: convolution, pooling, matrix products, normalisation, resizing."""

from __future__ import annotations

from typing import Any

import numpy as np
from lite_messages import tr

from ...ir import Node, Value
from ...ops._helpers import residual_of, window_pads
from .lower import Writer, lowers
from .lower_activation import act_attrs, activation_op, finish_activation, with_activation


def _window(w: Writer, node: Node, attrs: dict[str, Any], kernel: list[int]) -> dict[str, Any]:
    """strides, paddings [top, bottom, left, right] and dilations of a 2-D window."""
    n = len(kernel)
    strides = list(attrs["strides"]) or [1] * n
    dilations = list(attrs.get("dilations") or []) or [1] * n
    sizes = [1] * n
    if attrs["auto_pad"] not in ("NOTSET", "", "VALID"):
        sizes = w.dims(node.inputs[0])[2:]
    pads = window_pads(sizes, kernel, strides, attrs["pads"], dilations, attrs["auto_pad"])
    if n == 1:
        strides, dilations = [1, *strides], [1, *dilations]
        pads = [0, pads[0], 0, pads[1]]
    if len(pads) != 4:
        raise w.refuse(tr("only 1-D and 2-D windows can be written"))
    paddings = [pads[0], pads[2], pads[1], pads[3]]
    if paddings[0] == paddings[1] and paddings[2] == paddings[3]:
        paddings = [paddings[0], paddings[2]]
    return {"strides": strides, "paddings": paddings, "dilations": dilations}


def _as_image(w: Writer, x: Value) -> str:
    """(N, C, L) as (N, C, 1, L)"""
    shape = list(x.shape or ())
    out = w.variable(f"{x.name}/image", x.dtype, [*shape[:2], 1, *shape[2:]])
    w.add("unsqueeze2", {"X": x}, {"Out": out, "XShape": w.like(x, "xshape")}, axes=[2])
    return out


@lowers("Conv")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    x, weight = node.inputs[0], node.inputs[1]
    assert x is not None and weight is not None
    kernel = w.array(weight, "weight")
    flat = kernel.ndim == 3
    if flat:
        kernel = kernel[:, :, None]
    if kernel.ndim != 4:
        raise w.refuse(tr("only 1-D and 2-D convolutions can be written"))
    window = _window(w, node, attrs, list(node.inputs[1].shape[2:]))  # type: ignore[union-attr, index, arg-type]
    group = attrs["group"]
    depthwise = group > 1 and kernel.shape[1] == 1 and kernel.shape[0] == group
    residual = node.input(3)
    name, params = attrs["activation"], list(attrs["activation_params"])
    fused = act_attrs(name, params) if name and residual is None and not flat else None
    separate = bool(name) and fused is None
    target: Value | str = node.output
    steps = [*(["conv"] if residual is not None else []), *(["act"] if separate else [])]
    if steps or flat:
        target = w.like(node.output, "conv")
    _conv(w, node, kernel, target, x if not flat else _as_image(w, x), depthwise,
          {**window, "groups": group, **(fused or {})})  # fmt: skip
    if flat:
        after = w.like(node.output, "line") if steps else node.output
        w.add("squeeze2", {"X": target}, {"Out": after, "XShape": w.like(x, "xshape")}, axes=[2])
        target = after
    if residual is not None:
        after = w.like(node.output, "sum") if separate else node.output
        w.add("elementwise_add", {"X": target, "Y": residual}, {"Out": after}, axis=-1)
        target = after
    if separate:
        activation_op(w, str(target), node.output, name, params)


def _conv(
    w: Writer, node: Node, kernel: np.ndarray, out: Value | str, x: Value | str, depthwise: bool,
    attrs: dict[str, Any],
) -> None:  # fmt: skip
    weight = node.inputs[1]
    assert weight is not None
    name = (
        w.name(weight) if kernel.ndim == len(weight.shape or ()) else w.weight(kernel, weight.name)
    )
    w.add(
        "depthwise_conv2d" if depthwise else "conv2d",
        {"Input": x, "Filter": name, "Bias": node.input(2)}, {"Output": out},
        data_format="NCHW", padding_algorithm="EXPLICIT", use_cudnn=False, **attrs,
    )  # fmt: skip


@lowers("ConvTranspose")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    kernel = w.array(node.inputs[1], "weight")
    if kernel.ndim != 4 or list(attrs.get("output_shape") or []):
        raise w.refuse(tr("only 2-D transposed convolutions with plain padding can be written"))
    window = _window(w, node, attrs, list(kernel.shape[2:]))
    out = with_activation(w, node, attrs)
    w.add(
        "conv2d_transpose",
        {"Input": node.inputs[0], "Filter": node.inputs[1], "Bias": node.input(2)}, {"Output": out},
        groups=attrs["group"], output_padding=list(attrs["output_padding"] or [0, 0]),
        output_size=[],
        data_format="NCHW", padding_algorithm="EXPLICIT", use_cudnn=False, **window,
    )  # fmt: skip
    finish_activation(w, node, attrs, out)


def _pool(w: Writer, node: Node, **attrs: Any) -> None:
    default = {
        "ksize": [1, 1], "strides": [1, 1], "paddings": [0, 0], "global_pooling": False,
        "adaptive": False, "ceil_mode": False, "exclusive": True, "data_format": "NCHW",
        "padding_algorithm": "EXPLICIT", "use_cudnn": False,
    }  # fmt: skip
    w.add("pool2d", {"X": node.inputs[0]}, {"Out": node.output}, **{**default, **attrs})


@lowers("MaxPool", "AveragePool")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    kernel = list(attrs["kernel_shape"])
    if len(kernel) != 2 or len(node.outputs) > 1:
        raise w.refuse(tr("only 2-D pooling without indices can be written"))
    window = _window(w, node, attrs, kernel)
    if window.pop("dilations") != [1, 1]:
        raise w.refuse(tr("Paddle-Lite has no dilated pooling"))
    average = node.op == "AveragePool"
    _pool(
        w, node, pooling_type="avg" if average else "max", ksize=kernel,
        ceil_mode=bool(attrs["ceil_mode"]),
        exclusive=not attrs["count_include_pad"] if average else True, **window,
    )  # fmt: skip


@lowers("GlobalAveragePool", "GlobalMaxPool")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    if w.rank(node.inputs[0]) != 4:
        raise w.refuse(tr("only 2-D pooling can be written"))
    kind = "avg" if node.op == "GlobalAveragePool" else "max"
    _pool(w, node, pooling_type=kind, global_pooling=True)


@lowers("AdaptivePool")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    size = list(attrs["output_size"])
    if len(size) != 2:
        raise w.refuse(tr("only 2-D pooling can be written"))
    _pool(w, node, pooling_type=attrs["mode"], adaptive=True, ksize=size)


@lowers("Gemm")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    """α·A·B + β·C as fc: constants take the factors in; a residual is added behind it"""
    weight = w.array(node.inputs[1], "weight").astype(np.float32)
    weight = weight.T if attrs["transB"] else weight
    if attrs["transA"]:
        raise w.refuse(tr("a transposed first operand cannot be written"))
    bias = None
    if node.input(2) is not None:
        bias = w.array(node.input(2), "bias").astype(np.float32).reshape(-1) * attrs["beta"]
        bias = np.broadcast_to(bias, weight.shape[1:]).astype(np.float32)
    stem = node.inputs[1].name if node.inputs[1] is not None else "weight"
    _fc(w, node, attrs, weight * np.float32(attrs["alpha"]), stem, bias, 1)


def _fc(
    w: Writer, node: Node, attrs: dict[str, Any], weight: np.ndarray, stem: str,
    bias: np.ndarray | None, columns: int,
) -> None:  # fmt: skip
    residual = residual_of(node)
    out = with_activation(w, node, attrs)
    relu = attrs["activation"] == "Relu" and residual is None
    made = out if residual is None else w.like(node.output, "product")
    w.add(
        "fc",
        {
            "Input": node.inputs[0], "W": w.weight(weight, stem),
            "Bias": None if bias is None else w.weight(bias, f"{stem}.bias"),
        },
        {"Out": node.output if relu else made},
        in_num_col_dims=columns, op_type="mul", **({"activation_type": "relu"} if relu else {}),
    )  # fmt: skip
    if residual is not None:
        w.add("elementwise_add", {"X": made, "Y": residual}, {"Out": out}, axis=-1)
    if not relu:
        finish_activation(w, node, attrs, out)


@lowers("MatMul")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    x, y = node.inputs[0], node.inputs[1]
    assert x is not None and y is not None
    if y.const is not None and y.const.ndim == 2 and w.rank(x) >= 2:
        _fc(w, node, attrs, y.const.astype(np.float32), y.name, None, w.rank(x) - 1)
        return
    out = with_activation(w, node, attrs)
    w.add("matmul_v2", {"X": x, "Y": y}, {"Out": out}, trans_x=False, trans_y=False, alpha=1.0)
    finish_activation(w, node, attrs, out)


@lowers("BatchNormalization")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    x, scale, bias, mean, variance = node.inputs[:5]
    w.add(
        "batch_norm",
        {"X": x, "Scale": scale, "Bias": bias, "Mean": mean, "Variance": variance},
        {
            "Y": node.output, "MeanOut": w.name(mean), "VarianceOut": w.name(variance),  # type: ignore[arg-type]
            "SavedMean": w.like(mean, "saved"), "SavedVariance": w.like(variance, "saved"),  # type: ignore[arg-type]
        },
        epsilon=float(attrs["epsilon"]), momentum=float(attrs["momentum"]), is_test=True,
        use_global_stats=False, data_layout="NCHW",
    )  # fmt: skip


@lowers("LayerNormalization")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    x = node.inputs[0]
    axis = attrs["axis"] % w.rank(x)
    flat = [None if v is None else w.weight(w.array(v, "scale").reshape(-1), v.name)
            for v in (node.inputs[1], node.input(2))]  # fmt: skip
    rows = list(x.shape or ())[:axis]  # type: ignore[union-attr]
    saved = [w.variable(f"{node.output.name}/{s}", None, rows) for s in ("mean", "variance")]
    w.add(
        "layer_norm", {"X": x, "Scale": flat[0], "Bias": flat[1]},
        {"Y": node.output, "Mean": saved[0], "Variance": saved[1]},
        begin_norm_axis=axis, epsilon=float(attrs["epsilon"]),
    )  # fmt: skip


@lowers("InstanceNormalization")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    x, scale, bias = node.inputs[:3]
    w.add(
        "instance_norm", {"X": x, "Scale": scale, "Bias": bias},
        {
            "Y": node.output, "SavedMean": w.like(node.output, "mean"),
            "SavedVariance": w.like(node.output, "variance"),
        },
        epsilon=float(attrs["epsilon"]),
    )  # fmt: skip


@lowers("GroupNormalization")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    x, scale, bias = node.inputs[:3]
    w.add(
        "group_norm", {"X": x, "Scale": scale, "Bias": bias},
        {
            "Y": node.output, "Mean": w.like(node.output, "mean"),
            "Variance": w.like(node.output, "variance"),
        },
        epsilon=float(attrs["epsilon"]), groups=int(attrs["num_groups"]), data_layout="NCHW",
    )  # fmt: skip


@lowers("LRN")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    size = int(attrs["size"])
    w.add(
        "lrn", {"X": node.inputs[0]}, {"Out": node.output, "MidOut": w.like(node.output, "mid")},
        n=size, alpha=float(attrs["alpha"]) / size, beta=float(attrs["beta"]),
        k=float(attrs["bias"]), norm_region="AcrossChannels",
    )  # fmt: skip


_INTERP = {
    ("nearest", "asymmetric"): ("nearest_interp_v2", False, 1),
    ("nearest", "align_corners"): ("nearest_interp_v2", True, 1),
    ("linear", "asymmetric"): ("bilinear_interp_v2", False, 1),
    ("linear", "half_pixel"): ("bilinear_interp_v2", False, 0),
    ("linear", "pytorch_half_pixel"): ("bilinear_interp_v2", False, 0),
    ("linear", "align_corners"): ("bilinear_interp_v2", True, 1),
}


@lowers("Resize")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    mode = (attrs["mode"], attrs["coordinate_transformation_mode"])
    x, scales = node.inputs[0], node.input(2)
    before, after = w.dims(x), w.dims(node.output)
    whole = len(before) == 4 and all(b and a % b == 0 for a, b in zip(after[2:], before[2:]))
    if mode == ("nearest", "half_pixel") and whole:
        # with whole factors both coordinates round to the same pixel
        mode = ("nearest", "asymmetric")
    if mode not in _INTERP or before[:2] != after[:2] or len(before) != 4:
        raise w.refuse(
            tr(
                "Paddle-Lite has no {mode} resizing with {coordinates} coordinates",
                mode=mode[0],
                coordinates=mode[1],
            )
        )
    if mode == ("nearest", "asymmetric") and not whole and attrs["nearest_mode"] != "floor":
        raise w.refuse(
            tr(
                "nearest resizing rounds {attrs}, but Paddle-Lite rounds down",
                attrs=attrs["nearest_mode"],
            )
        )
    kind, align, align_mode = _INTERP[mode]
    factor = []
    if scales is not None and scales.const is not None and scales.const.size == 4:
        factor = [float(s) for s in scales.const[2:]]
    w.add(
        kind, {"X": x}, {"Out": node.output}, align_corners=align, align_mode=align_mode,
        interp_method="nearest" if mode[0] == "nearest" else "bilinear", data_layout="NCHW",
        out_d=0, out_h=-1 if factor else after[2], out_w=-1 if factor else after[3], scale=factor,
    )  # fmt: skip


#: ONNX gate k is Paddle gate; Paddle has i f c o and r z c, ONNX i o f c and z r h.
_GATES = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2)}


def _regate(array: np.ndarray, op: str) -> np.ndarray:
    parts = np.split(array, len(_GATES[op]), axis=0)
    return np.concatenate([parts[k] for k in _GATES[op]], axis=0)


@lowers("LSTM", "GRU")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    """Paddle's rnn: (T,B,I) → (T,B,D·H), rearranged to ONNX's (T,D,B,H)"""
    if attrs["direction"] == "reverse" or attrs["layout"] or node.input(4) is not None:
        raise w.refuse(
            tr("only forward or bidirectional cells over whole sequences can be written")
        )
    if list(attrs["activations"]) or (node.op == "GRU" and not attrs["linear_before_reset"]):
        raise w.refuse(tr("only the default activations can be written"))
    if any(v.readers or w.graph.is_output(v) for v in node.outputs[1:]):
        raise w.refuse(tr("its final states are used, but cannot be written"))
    x, weight, recurrent = node.inputs[0], *(w.array(v, "weight") for v in node.inputs[1:3])
    bias = None if node.input(3) is None else w.array(node.input(3), "bias")
    steps, batch, size = w.dims(x)
    directions, hidden = recurrent.shape[0], recurrent.shape[2]
    names = []
    for d in range(directions):
        for kind, array in (("w_ih", weight[d]), ("w_hh", recurrent[d])):
            names.append(w.weight(_regate(array, node.op), f"{node.name}/{kind}{d}"))
    for d in range(directions):
        both = np.zeros((2, weight.shape[1]), np.float32) if bias is None else np.split(bias[d], 2)
        for kind, array in zip(("b_ih", "b_hh"), both):
            names.append(w.weight(_regate(array, node.op), f"{node.name}/{kind}{d}"))
    states = []
    for i in range(2 if node.op == "LSTM" else 1):
        given = node.input(5 + i)
        zeros = np.zeros((directions, batch, hidden), np.float32)
        states.append(given if given is not None else w.weight(zeros, f"{node.name}/state{i}"))
    out = w.variable(f"{node.name}/out", None, [steps, batch, directions * hidden])
    ends = [w.variable(f"{node.name}/end", None, [directions, batch, hidden]) for _ in states]
    w.add(
        "rnn", {"Input": x, "PreState": states, "WeightList": names},
        {
            "Out": out, "State": ends, "DropoutState": w.variable(f"{node.name}/d", None, [1]),
            "Reserve": w.variable(f"{node.name}/reserve", None, [1]),
        },
        mode=node.op, hidden_size=hidden, input_size=size, num_layers=1, is_test=True, seed=0,
        is_bidirec=directions == 2, dropout_prob=0.0,
    )  # fmt: skip
    split = w.variable(f"{node.name}/split", None, [steps, batch, directions, hidden])
    w.add("reshape2", {"X": out}, {"Out": split, "XShape": w.variable(f"{out}/xshape", None, [0])},
          shape=[steps, batch, directions, hidden])  # fmt: skip
    w.add(
        "transpose2", {"X": split},
        {"Out": node.output, "XShape": w.variable(f"{split}/xshape", None, [0])},
        axis=[0, 2, 1, 3], data_format="AnyLayout",
    )  # fmt: skip
