"""Convolutions. Weights are OIHW (transposed ones IOHW) in Paddle as in ONNX."""

from __future__ import annotations

from typing import Any

from lite_messages import tr

from ....ir import Value
from ..._nhwc import same_pads
from ..registry import Call, translates
from .fused import fused_activation
from .lite_int8 import bias_of, weight_of, with_int8_input, with_int8_output
from .sparse_conv import dense_filter


def window_pads(op: Call, n: int) -> dict[str, Any]:
    """ONNX `pads` or `auto_pad` of Paddle's paddings (n values, or begin/end pairs)."""
    algorithm = op.attr("padding_algorithm", "EXPLICIT")
    if algorithm == "SAME":
        return {"auto_pad": "SAME_UPPER"}
    if algorithm == "VALID":
        return {"pads": [0] * (2 * n)}
    pads = op.ints("paddings", [0] * n)
    if len(pads) == 2 * n:
        return {"pads": pads[0::2] + pads[1::2]}
    if len(pads) == 1:
        pads = pads * n
    if len(pads) != n:
        raise op.unsupported(
            tr("paddings {pads} do not fit {number} spatial axes", pads=pads, number=n)
        )
    return {"pads": pads + pads}


def is_channels_last(op: Call, default: str = "NCHW") -> bool:
    layout = str(op.attr("data_format", default) or default)
    return layout in ("NHWC", "NDHWC", "NLC", "NWC")


def channels_first(op: Call, x: Value) -> Value:
    rank = op.rank(x)
    return op.transpose(x, [0, rank - 1, *range(1, rank - 1)])


def channels_last(op: Call, x: Value) -> Value:
    rank = op.rank(x)
    return op.transpose(x, [0, *range(2, rank), 1])


def spatial(op: Call, name: str, n: int) -> list[int]:
    values = op.ints(name, [1] * n)
    if len(values) not in (1, n):
        raise op.unsupported(
            tr(
                "{name} {values} do not fit {number} spatial axes",
                name=name,
                values=values,
                number=n,
            )
        )
    return values * n if len(values) == 1 else values


@translates("conv2d", "depthwise_conv2d", "conv3d", "sparse_conv2d")
def _(op: Call) -> None:
    x = with_int8_input(op, "Input")
    w = dense_filter(op, x) if op.type == "sparse_conv2d" else weight_of(op, "Filter")
    n = op.rank(w) - 2
    last = is_channels_last(op)
    if last:
        x = channels_first(op, x)
    pads = window_pads(op, n)
    # Paddle's SAME padding ignores the dilation attribute.
    dilations = [1] * n if "auto_pad" in pads else spatial(op, "dilations", n)
    y = op.node(
        "Conv", [x, w, bias_of(op)],
        strides=spatial(op, "strides", n), dilations=dilations,
        group=int(op.attr("groups", 1) or 1), **pads,
    )  # fmt: skip
    residual = op["ResidualData"] or op["SecondInput"]
    if residual is not None:
        y = op.node("Add", [y, residual])
    y = fused_activation(op, y)
    op.set("Output", channels_last(op, y) if last else with_int8_output(op, y))


@translates("conv2d_transpose", "depthwise_conv2d_transpose", "conv3d_transpose")
def _(op: Call) -> None:
    x, w = with_int8_input(op, "Input"), weight_of(op, "Filter")
    n = op.rank(w) - 2
    last = is_channels_last(op)
    if last:
        x = channels_first(op, x)
    strides, dilations = spatial(op, "strides", n), spatial(op, "dilations", n)
    pads = window_pads(op, n)
    if "auto_pad" in pads:
        pads, dilations = _pads_of_input(op, x, w, strides), [1] * n
    extra = op.ints("output_padding")
    size = op.ints("output_size")
    if size:
        extra = _extra_of_size(op, x, w, size, strides, dilations, pads)
    y = op.node(
        "ConvTranspose", [x, w, bias_of(op)],
        strides=strides, dilations=dilations, group=int(op.attr("groups", 1) or 1),
        output_padding=extra or None, **pads,
    )  # fmt: skip
    y = fused_activation(op, y)
    op.set("Output", channels_last(op, y) if last else with_int8_output(op, y))


def _pads_of_input(op: Call, x: Value, w: Value, strides: list[int]) -> dict[str, Any]:
    """SAME as Paddle understands it here: the pads of a convolution that reads x (N,C,*S)."""
    pairs = []
    for axis, stride in enumerate(strides, 2):
        size, kernel = op.size(x, axis), op.size(w, axis)
        if kernel is None or (size is None and stride != 1):
            raise op.unsupported(tr("padding SAME needs a fixed input size; import with shapes=…"))
        pairs.append(same_pads(size or 1, kernel, stride, 1))  # stride 1 pads any size alike
    return {"pads": [begin for begin, _ in pairs] + [end for _, end in pairs]}


def _extra_of_size(
    op: Call, x: Value, w: Value, size: list[int], strides: list[int], dilations: list[int],
    pads: dict[str, Any],
) -> list[int]:  # fmt: skip
    """output_padding that makes the transposed convolution `size` large."""
    n = len(strides)
    if op.rank(x) != n + 2 or len(size) not in (1, n):
        raise op.unsupported(
            tr(
                "output_size {size} does not fit an input of rank {rank}",
                size=size,
                rank=op.rank(x),
            )
        )
    out = []
    for i in range(n):
        length, kernel = x.shape[2 + i], w.shape[2 + i]  # type: ignore[index]
        if not isinstance(length, int) or not isinstance(kernel, int) or "pads" not in pads:
            raise op.unsupported(tr("output_size needs a fixed input size; import with shapes=…"))
        window = dilations[i] * (kernel - 1) + 1
        plain = (length - 1) * strides[i] - pads["pads"][i] - pads["pads"][n + i] + window
        out.append((size * n)[i] - plain if len(size) == 1 else size[i] - plain)
    return out


@translates("deformable_conv", "deformable_conv_v1")
def _(op: Call) -> None:
    w = op.need("Filter")
    op.set("Output", op.node(
        "DeformConv", [op.need("Input"), w, op.need("Offset"), None, op["Mask"]],
        strides=spatial(op, "strides", 2), dilations=spatial(op, "dilations", 2),
        group=int(op.attr("groups", 1) or 1),
        offset_group=int(op.attr("deformable_groups", 1) or 1), **window_pads(op, 2),
    ))  # fmt: skip


@translates("sequence_conv", "row_conv", "conv_shift")
def _(op: Call) -> None:
    raise op.unsupported(tr("sequences of several lengths are not supported; use a padded batch"))
