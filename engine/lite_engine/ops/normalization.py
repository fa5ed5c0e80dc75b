"""Normalizations: batch, instance, group, layer, RMS, Lp, local response, mean-variance."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import DType, Node, TypeInfo
from ._conditions import all_of, attr, constant, one_output
from ._core import define_op
from ._helpers import normalise_axis, same_type, wide
from ._records import Cost
from ._samples import Draw, Sample
from .activation import FUSED, apply_activation


def _spatial(node: Node, types: list[TypeInfo | None]) -> bool | str:
    x = types[0]
    return (x is not None and x.rank >= 3) or tr("it has no spatial axes")


def _constant_statistics(node: Node, types: list[TypeInfo | None]) -> bool | str:
    if node.attrs.get("training_mode") or len(node.outputs) > 1:
        return tr("it is in training mode")
    constant = all(t is not None and t.is_const for t in types[1:5])
    return constant or tr("scale, bias, mean or variance is not constant")


batch_norm = define_op(
    "BatchNormalization",
    inputs="x scale b mean var",
    attrs={"epsilon": 1e-5, "momentum": 0.9, "training_mode": 0},
    outputs="y running_mean running_var",
    layout="channels_last",
    source="ONNX BatchNormalization-15",
)


def _per_channel(v: np.ndarray, rank: int) -> np.ndarray:
    return v.reshape(1, -1, *[1] * (rank - 2)) if rank > 1 else v


@batch_norm.infer
def _(
    x: TypeInfo,
    scale: TypeInfo,
    b: TypeInfo,
    mean: TypeInfo,
    var: TypeInfo,
    *,
    n_outputs: int,
    **_: Any,
) -> list[TypeInfo]:
    channels = x.dims[1] if x.rank > 1 else 1
    for name, v in (("scale", scale), ("b", b), ("mean", mean), ("var", var)):
        if v.is_static and isinstance(channels, int) and v.size != channels:
            raise ShapeError(
                tr(
                    "{name} has {size} elements for {channels} channels",
                    name=name,
                    size=v.size,
                    channels=channels,
                )
            )
    return [same_type(x), same_type(mean), same_type(var)][:n_outputs]


@batch_norm.reference
def _(
    x: np.ndarray,
    scale: np.ndarray,
    b: np.ndarray,
    mean: np.ndarray,
    var: np.ndarray,
    *,
    epsilon: float,
    momentum: float,
    training_mode: int,
    n_outputs: int,
) -> Any:
    """y = (x − mean) / √(var + ε) · scale + b, per channel; statistics of x when training_mode"""
    xw = wide(x)
    if training_mode:
        axes = tuple(i for i in range(x.ndim) if i != 1)
        now_mean, now_var = xw.mean(axes), xw.var(axes)
        running = (
            mean * momentum + now_mean * (1 - momentum),
            var * momentum + now_var * (1 - momentum),
        )
        mean, var = now_mean, now_var
    else:
        running = (mean, var)
    factor = scale / np.sqrt(wide(var) + epsilon)
    y = (xw - _per_channel(mean, x.ndim)) * _per_channel(factor, x.ndim) + _per_channel(b, x.ndim)
    outs = [y.astype(x.dtype), *(r.astype(mean.dtype, copy=False) for r in running)]
    return outs[:n_outputs]


batch_norm.cost(lambda x, *_, **__: Cost(flops=2 * x.size))
batch_norm.kernel("cpu", "f32_batch_norm", accepts_pitch=True, when=_constant_statistics)

instance_norm = define_op(
    "InstanceNormalization", inputs="x scale b", attrs={"epsilon": 1e-5, **FUSED},
    layout="channels_last", source="ONNX InstanceNormalization-22; activation is ours",
)  # fmt: skip
instance_norm.infer(same_type)


def _standardised(x: np.ndarray, axes: tuple[int, ...], epsilon: float) -> np.ndarray:
    """(x − mean) / √(var + ε) over axes"""
    mean = x.mean(axes, keepdims=True)
    return (x - mean) / np.sqrt(np.square(x - mean).mean(axes, keepdims=True) + epsilon)


@instance_norm.reference
def _(
    x: np.ndarray,
    scale: np.ndarray,
    b: np.ndarray,
    *,
    epsilon: float,
    activation: str,
    activation_params: Sequence[float],
) -> np.ndarray:
    """y = activation(scale · (x − mean) / √(var + ε) + b), statistics per sample and channel"""
    y = _standardised(wide(x), tuple(range(2, x.ndim)), epsilon)
    y = y * _per_channel(scale, x.ndim) + _per_channel(b, x.ndim)
    return apply_activation(activation, activation_params, y).astype(x.dtype)


instance_norm.cost(lambda x, *_, **__: Cost(flops=6 * x.size))
instance_norm.kernel("cpu", "f32_instance_norm", when=_spatial)

group_norm = define_op(
    "GroupNormalization", inputs="x scale bias",
    attrs={"epsilon": 1e-5, "num_groups": 1, "stash_type": 1, **FUSED}, layout="channels_last",
    source="ONNX GroupNormalization-21; activation is ours",
)  # fmt: skip


@group_norm.infer
def _(x: TypeInfo, *_scales: TypeInfo, num_groups: int, **_: Any) -> TypeInfo:
    channels = x.dims[1] if x.rank > 1 else 1
    if isinstance(channels, int) and (num_groups < 1 or channels % num_groups):
        raise ShapeError(
            tr(
                "{channels} channels are not divisible into num_groups = {groups} groups",
                channels=channels,
                groups=num_groups,
            )
        )
    return same_type(x)


@group_norm.reference
def _(
    x: np.ndarray,
    scale: np.ndarray,
    bias: np.ndarray,
    *,
    epsilon: float,
    num_groups: int,
    stash_type: int,
    activation: str,
    activation_params: Sequence[float],
) -> np.ndarray:
    """Statistics per sample and group of channels; scale and bias per channel (C,)"""
    grouped = wide(x).reshape(x.shape[0], num_groups, -1)
    y = _standardised(grouped, (2,), epsilon).reshape(x.shape)
    y = y * _per_channel(scale, x.ndim) + _per_channel(bias, x.ndim)
    return apply_activation(activation, activation_params, y).astype(x.dtype)


group_norm.cost(lambda x, *_, **__: Cost(flops=6 * x.size))
group_norm.kernel("cpu", "f32_group_norm", when=_spatial)

layer_norm = define_op(
    "LayerNormalization", inputs="x scale b?", outputs="y mean inv_std_dev",
    attrs={"axis": -1, "epsilon": 1e-5, "stash_type": 1}, packed_inputs=("scale", "b"),
    source="ONNX LayerNormalization-17",
)  # fmt: skip


@layer_norm.infer
def _(
    x: TypeInfo, scale: TypeInfo, b: TypeInfo | None, *, axis: int, n_outputs: int, **_: Any
) -> list[TypeInfo]:
    at = normalise_axis(axis, x.rank)
    stats = TypeInfo(DType.F32, (*x.dims[:at], *[1] * (x.rank - at)))
    return [same_type(x), stats, stats][:n_outputs]


@layer_norm.reference
def _(
    x: np.ndarray,
    scale: np.ndarray,
    b: np.ndarray | None,
    *,
    axis: int,
    epsilon: float,
    stash_type: int,
    n_outputs: int,
) -> Any:
    """y = scale · (x − mean) / √(var + ε) + b over the axes from `axis` on"""
    xw = wide(x)
    axes = tuple(range(axis % x.ndim, x.ndim))
    mean = xw.mean(axes, keepdims=True)
    inverse = 1 / np.sqrt(np.square(xw - mean).mean(axes, keepdims=True) + epsilon)
    y = ((xw - mean) * inverse).astype(x.dtype) * scale
    y = y if b is None else y + b
    return [y.astype(x.dtype, copy=False), mean.astype(np.float32), inverse.astype(np.float32)][
        :n_outputs
    ]


layer_norm.cost(lambda x, *_, **__: Cost(flops=7 * x.size))


def _one_result(node: Node, types: list[TypeInfo | None]) -> bool | str:
    return len(node.outputs) == 1 or tr("its statistics are outputs")


def _whole_scale(node: Node, types: list[TypeInfo | None]) -> bool | str:
    """A scale, and a bias if there is one, for each element of what is normalized: ONNX would
    repeat smaller ones."""
    x, *scales = types
    if x is None or not x.is_static:
        return True
    inner = x.dims[normalise_axis(node.attrs.get("axis", -1), x.rank) :]
    count = math.prod(d for d in inner if isinstance(d, int))
    fit = all(s is None or not s.is_static or s.size == count for s in scales[:2])
    return fit or tr("its scale is repeated")


layer_norm.kernel("cpu", "f32_layer_norm", when=all_of(_one_result, _whole_scale))

rms_norm = define_op(
    "RMSNormalization", inputs="x scale", attrs={"axis": -1, "epsilon": 1e-5, "stash_type": 1},
    packed_inputs=("scale",), source="ONNX RMSNormalization-23",
)  # fmt: skip
rms_norm.infer(same_type)


@rms_norm.reference
def _(
    x: np.ndarray, scale: np.ndarray, *, axis: int, epsilon: float, stash_type: int
) -> np.ndarray:
    """y = scale · x / √(mean(x²) + ε) over the axes from `axis` on"""
    xw = wide(x)
    axes = tuple(range(axis % x.ndim, x.ndim))
    y = xw / np.sqrt(np.square(xw).mean(axes, keepdims=True) + epsilon)
    return (y.astype(x.dtype) * scale).astype(x.dtype, copy=False)


rms_norm.cost(lambda x, *_, **__: Cost(flops=5 * x.size))
rms_norm.kernel("cpu", "f32_layer_norm", when=_whole_scale)
for _op in (layer_norm, rms_norm):
    # Products round its output anyway; its input is a sum over many layers.
    _op.kernel(
        "cpu", "bf16_layer_norm", dtype="f32,bf16", mixed="", rank=1,
        when=all_of(_one_result, _whole_scale), precision="bf16",
    )  # fmt: skip

lp_norm = define_op(
    "LpNormalization", inputs="x", attrs={"axis": -1, "p": 2}, layout="axis", axis_attrs=("axis",),
    transpose_rule="axis", source="ONNX LpNormalization-22", choices={"p": (1, 2)},
)  # fmt: skip
lp_norm.infer(same_type)


@lp_norm.reference
def _(x: np.ndarray, *, axis: int, p: int) -> np.ndarray:
    """y = x / ‖x‖_p along axis; 0 where the norm is 0"""
    norm = np.sum(np.abs(wide(x)) ** p, axis=axis, keepdims=True) ** (1 / p)
    return np.where(norm == 0, 0, x / np.where(norm == 0, 1, norm)).astype(x.dtype)


lp_norm.cost(lambda x, **_: Cost(flops=3 * x.size))
lp_norm.kernel("cpu", "f32_lp_norm", in_place=True, when=attr("p", 1, 2))
lp_norm.kernel("opencl", "lp_norm", dtype="f32,f16", when=attr("p", 1, 2))

lrn = define_op(
    "LRN",
    inputs="x",
    attrs={"alpha": 1e-4, "beta": 0.75, "bias": 1.0, "size": 1},
    layout="channels_last",
    source="ONNX LRN-13",
)
lrn.infer(same_type)


@lrn.reference
def _(x: np.ndarray, *, alpha: float, beta: float, bias: float, size: int) -> np.ndarray:
    """y = x / (bias + α/size · Σ x² over `size` neighbouring channels)^β"""
    before = (size - 1) // 2
    square = np.square(wide(x))
    padded = np.pad(square, [(0, 0), (before, size - 1 - before), *[(0, 0)] * (x.ndim - 2)])
    total = sum(padded[:, i : i + x.shape[1]] for i in range(size))
    return (x / (bias + alpha / size * total) ** beta).astype(x.dtype)


lrn.cost(lambda x, *, size, **_: Cost(flops=(size + 12) * x.size))
lrn.kernel("cpu", "f32_lrn")

mvn = define_op(
    "MeanVarianceNormalization",
    inputs="x",
    attrs={"axes": [0, 2, 3]},
    layout="axis",
    axis_attrs=("axes",),
    source="ONNX MeanVarianceNormalization-13",
)
mvn.infer(same_type)


@mvn.reference
def _(x: np.ndarray, *, axes: list[int]) -> np.ndarray:
    """y = (x − mean) / (√var + 1e-9) over axes"""
    xw = wide(x)
    mean = xw.mean(tuple(axes), keepdims=True)
    deviation = np.sqrt(np.square(xw - mean).mean(tuple(axes), keepdims=True)) + 1e-9
    return ((xw - mean) / deviation).astype(x.dtype)


batch_norm.kernel("opencl", "batch_norm", dtype="f32,f16", when=constant(1, 2, 3, 4))
instance_norm.kernel("opencl", "instance_norm", dtype="f32,f16", when=constant(1, 2))
group_norm.kernel("opencl", "group_norm", dtype="f32,f16", when=all_of(constant(1, 2), _spatial))
layer_norm.kernel(
    "opencl", "layer_norm", dtype="f32,f16", when=all_of(constant(1, 2), one_output, _whole_scale)
)
rms_norm.kernel("opencl", "layer_norm", dtype="f32,f16", when=all_of(constant(1), _whole_scale))


@batch_norm.samples
def _(draw: Draw) -> Iterator[Sample]:
    for shape in ((1, 3, 5, 7), (2, 16, 6, 5), (1, 33, 9), (4, 7)):
        one = [draw.f32(shape[1]) for _ in range(3)]
        yield Sample([draw(*shape), *one, np.abs(draw.f32(shape[1])) + np.float32(0.5)])


def _scaled_channels(draw: Draw) -> Iterator[Sample]:
    for shape in ((1, 3, 5, 7), (2, 16, 6, 5), (1, 34, 9)):
        yield Sample([draw(*shape), draw.f32(shape[1]), draw.f32(shape[1])], {"epsilon": 1e-3})
    inputs = [draw(2, 12, 7, 3), draw.f32(12), draw.f32(12)]
    for name, params in (("Relu", []), ("Silu", []), ("LeakyRelu", [0.2])):
        yield Sample(inputs, {"activation": name, "activation_params": params})


instance_norm.samples(_scaled_channels)


@group_norm.samples
def _(draw: Draw) -> Iterator[Sample]:
    for sample in _scaled_channels(draw):
        scale = sample.inputs[1]
        assert scale is not None
        channels = scale.size
        for groups in sorted({1, 2, channels // 2 or 1, channels}):
            if channels % groups == 0:
                yield Sample(sample.inputs, {**sample.attrs, "num_groups": groups})


@layer_norm.samples
def _(draw: Draw) -> Iterator[Sample]:
    for n in (1, 7, 16, 35, 1030):
        yield Sample([draw(3, 5, n), draw.f32(n), draw.f32(n)])
        yield Sample([draw(2, n), draw.f32(n)], {"epsilon": 1e-3})
    yield Sample([draw(3, 5, 7), draw.f32(5, 7), draw.f32(5, 7)], {"axis": 1})
    yield Sample([draw(3, 5, 7), draw.f32(7), draw.f32(5, 1)], {"axis": 1}, constant=(1, 2))


@rms_norm.samples
def _(draw: Draw) -> Iterator[Sample]:
    for n in (1, 7, 16, 35, 1030):
        yield Sample([draw(3, 5, n), draw.f32(n)])
    yield Sample([draw(3, 5, 7), draw.f32(5, 7)], {"axis": 1})
    yield Sample([draw(3, 5, 7), draw.f32(7)], {"axis": 1}, constant=(1,))


@lrn.samples
def _(draw: Draw) -> Iterator[Sample]:
    for channels, size in ((3, 3), (16, 5), (19, 4), (2, 5)):
        attrs = {"size": size, "alpha": 0.2, "bias": 2.0}
        yield Sample([draw(2, channels, 3, 4)], attrs)
