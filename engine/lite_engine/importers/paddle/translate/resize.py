"""Interpolation. Paddle's align_corners/align_mode pairs are ONNX's coordinate modes."""

from __future__ import annotations

from lite_messages import tr

from ....ir import DType, Value
from ..registry import Call, translates
from .conv import channels_first, channels_last, is_channels_last

_AXES = {"linear": 1, "bilinear": 2, "nearest": 2, "bicubic": 2, "trilinear": 3}
_TYPES = [f"{kind}_interp{version}" for kind in _AXES for version in ("", "_v2")]


def _coordinates(op: Call, method: str) -> dict[str, object]:
    align = op.flag("align_corners", True)
    if method == "nearest":
        if align:
            return {"coordinate_transformation_mode": "align_corners",
                    "nearest_mode": "round_prefer_ceil"}  # fmt: skip
        return {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    if align:
        mode = "align_corners"
    elif method == "bicubic" or int(op.attr("align_mode", 1)) == 0:
        mode = "half_pixel"
    else:
        mode = "asymmetric"
    cubic = {"cubic_coeff_a": -0.75} if method == "bicubic" else {}
    return {"coordinate_transformation_mode": mode, **cubic}


def _scales(op: Call, n: int) -> list[float]:
    """Positive scales given as attribute or constant tensor, empty otherwise."""
    tensor, given = op["Scale"], op.attr("scale")
    if tensor is not None:
        if tensor.const is None:
            raise op.unsupported(tr("its scale is computed at run time"))
        given = tensor.const.reshape(-1).tolist()
    if given is None:
        return []
    values = [float(v) for v in given] if isinstance(given, (list, tuple)) else [float(given)]
    values = values * n if len(values) == 1 else values
    return values if len(values) == n and all(v > 0 for v in values) else []


def _size(op: Call, n: int) -> Value | None:
    """The output size as a tensor, where the model gives one."""
    parts = op.all("SizeTensor")
    if parts:
        return op.list_input("", "SizeTensor", [])
    if op["OutSize"] is not None:
        return op.vector(op.need("OutSize"))
    if _scales(op, n):
        return None
    names = ("out_d", "out_h", "out_w")[3 - n :]
    size = [int(op.attr(name, -1)) for name in names]
    if any(s <= 0 for s in size):
        raise op.unsupported(tr("it has neither a scale nor an output size"))
    return op.const(size)


@translates(*_TYPES)
def _(op: Call) -> None:
    x = op.need("X")
    method = op.type.split("_")[0]
    n = _AXES[method]
    last = is_channels_last(op) or op.attr("data_layout") == "NHWC"
    if last:
        x = channels_first(op, x)
    mode = {"nearest": "nearest", "bicubic": "cubic"}.get(method, "linear")
    attrs = {"mode": mode, **_coordinates(op, method)}
    size = _size(op, n)
    if size is None:
        scales = op.const([1.0, 1.0, *_scales(op, n)])
        y = op.node("Resize", [x, None, scales], **attrs)
    else:
        lead = op.node("Shape", [x], start=0, end=2)
        sizes = op.node("Concat", [lead, op.cast(size, DType.I64)], axis=0)
        y = op.node("Resize", [x, None, None, sizes], **attrs)
    op.set("Out", channels_last(op, y) if last else y)


@translates("grid_sampler")
def _(op: Call) -> None:
    mode = {"bilinear": "linear", "nearest": "nearest"}.get(
        str(op.attr("mode", "bilinear")), "linear"
    )
    op.set("Output", op.node(
        "GridSample", [op.need("X"), op.need("Grid")], mode=mode,
        padding_mode=str(op.attr("padding_mode", "zeros")),
        align_corners=int(op.flag("align_corners", True)),
    ))  # fmt: skip


@translates("affine_grid")
def _(op: Call) -> None:
    size = op.list_input("OutputShape", "", "output_shape")
    align = int(op.flag("align_corners", True))
    op.set("Output", op.node("AffineGrid", [op.need("Theta"), size], align_corners=align))
