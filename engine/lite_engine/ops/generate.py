"""Tensors from little: ConstantOfShape, Range, EyeLike, windows, random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import Dim, DType, TypeInfo
from ._core import REQUIRED, OpDef, define_op
from ._helpers import known_ints, unknown_dims
from ._records import Cost

constant_of_shape = define_op(
    "ConstantOfShape", inputs="shape", attrs={"value": None}, source="ONNX ConstantOfShape-25"
)


@constant_of_shape.infer
def _(shape: TypeInfo, *, value: np.ndarray | None) -> TypeInfo:
    dtype = DType.F32 if value is None else DType.of(value)
    wanted = known_ints(shape)
    if wanted is None:
        rank = shape.dims[0] if shape.shape is not None and len(shape.shape) == 1 else None
        return TypeInfo(dtype, unknown_dims(rank if isinstance(rank, int) else None))
    if any(d < 0 for d in wanted):
        raise ShapeError(tr("shape {wanted} has negative dimensions", wanted=wanted))
    return TypeInfo(dtype, tuple(wanted))


@constant_of_shape.reference
def _(shape: np.ndarray, *, value: np.ndarray | None) -> np.ndarray:
    """A tensor filled with one value (0.0 f32 when not given)"""
    fill = np.float32(0) if value is None else np.asarray(value).ravel()[0]
    return np.full(tuple(int(d) for d in shape), fill, fill.dtype)


range_op = define_op(
    "Range", inputs="start limit delta", attrs={"stash_type": 1}, source="ONNX Range-27"
)


@range_op.infer
def _(start: TypeInfo, limit: TypeInfo, delta: TypeInfo, **_: Any) -> TypeInfo:
    n: Dim = None
    if start.const is not None and limit.const is not None and delta.const is not None:
        n = _count(start.const, limit.const, delta.const)
    return TypeInfo(start.dtype, (n,))


def _count(start: np.ndarray, limit: np.ndarray, delta: np.ndarray) -> int:
    if not np.asarray(delta).item():
        raise ShapeError(tr("delta is 0"))
    return max(0, int(np.ceil((limit.item() - start.item()) / delta.item())))


@range_op.reference
def _(start: np.ndarray, limit: np.ndarray, delta: np.ndarray, **_: Any) -> np.ndarray:
    """start, start + delta, … below limit"""
    n = _count(start, limit, delta)
    wide = np.float64 if start.dtype.kind == "f" else np.int64
    return (start.astype(wide) + np.arange(n) * delta.astype(wide)).astype(start.dtype)


eye_like = define_op("EyeLike", inputs="x", attrs={"dtype": None, "k": 0}, source="ONNX EyeLike-22")
eye_like.infer(lambda x, *, dtype, k: TypeInfo(dtype or x.dtype, x.shape))


@eye_like.reference
def _(x: np.ndarray, *, dtype: DType | None, k: int) -> np.ndarray:
    """Ones on diagonal k, zeros elsewhere, in x's shape"""
    rows, columns = x.shape
    return np.eye(rows, columns, k, dtype=dtype.np if dtype else x.dtype)


# ---- windows of signal processing


def _window(name: str, fn: Callable[[np.ndarray], np.ndarray]) -> OpDef:
    op = define_op(
        name,
        inputs="size",
        attrs={"output_datatype": DType.F32, "periodic": 1},
        source=f"ONNX {name}-17",
    )

    @op.infer
    def _(size: TypeInfo, *, output_datatype: DType, periodic: int) -> TypeInfo:
        n = known_ints(size)
        return TypeInfo(output_datatype, (None if n is None else n[0],))

    @op.reference
    def _(size: np.ndarray, *, output_datatype: DType, periodic: int) -> np.ndarray:
        """w(2πn/N); N is the size, or one less when not periodic"""
        n = int(size)
        angle = 2 * np.pi * np.arange(n) / (n if periodic else max(1, n - 1))
        return fn(angle).astype(output_datatype.np)

    return op


_window("HannWindow", lambda a: 0.5 - 0.5 * np.cos(a))
_window("HammingWindow", lambda a: 25 / 46 - 21 / 46 * np.cos(a))
_window("BlackmanWindow", lambda a: 0.42 - 0.5 * np.cos(a) + 0.08 * np.cos(2 * a))

# ---- random numbers: right in distribution; equal seeds give equal numbers


def _generator(seed: float | None) -> np.random.Generator:
    return np.random.default_rng(None if seed is None else abs(hash(float(seed))))


def _random(name: str, like: bool, draw: Callable[..., np.ndarray], attrs: dict[str, Any]) -> OpDef:
    own = {"dtype": None, "seed": None, **attrs, **({} if like else {"shape": REQUIRED})}
    op = define_op(
        name, inputs="x" if like else "", attrs=own, source=f"ONNX {name}-22", random=True
    )

    @op.infer
    def _(*xs: TypeInfo, dtype: DType | None, **given: Any) -> TypeInfo:
        if like:
            return TypeInfo(dtype or xs[0].dtype, xs[0].shape)
        return TypeInfo(dtype or DType.F32, tuple(given["shape"]))

    @op.reference
    def _(*xs: np.ndarray, dtype: DType | None, seed: float | None, **given: Any) -> np.ndarray:
        shape = xs[0].shape if like else tuple(given.pop("shape"))
        kind = (dtype.np if dtype is not None else xs[0].dtype) if like else (dtype or DType.F32).np
        return np.asarray(draw(_generator(seed), shape, **given)).astype(kind)

    op.cost(lambda *_, **__: Cost())
    return op


for _suffix, _like in (("", False), ("Like", True)):
    _random(
        f"RandomNormal{_suffix}",
        _like,
        lambda g, s, mean, scale: g.normal(mean, scale, s),
        {"mean": 0.0, "scale": 1.0},
    )
    _random(
        f"RandomUniform{_suffix}",
        _like,
        lambda g, s, low, high: g.uniform(low, high, s),
        {"low": 0.0, "high": 1.0},
    )

bernoulli = define_op(
    "Bernoulli",
    random=True,
    inputs="x",
    attrs={"dtype": None, "seed": None},
    source="ONNX Bernoulli-22",
)
bernoulli.infer(lambda x, *, dtype, seed: TypeInfo(dtype or x.dtype, x.shape))
bernoulli.reference(
    lambda x, *, dtype, seed: (_generator(seed).uniform(size=x.shape) < x).astype(
        dtype.np if dtype else x.dtype
    )
)

multinomial = define_op(
    "Multinomial",
    random=True,
    inputs="x",
    attrs={"dtype": DType.I32, "sample_size": 1, "seed": None},
    source="ONNX Multinomial-22",
)
multinomial.infer(lambda x, *, dtype, sample_size, seed: TypeInfo(dtype, (x.dims[0], sample_size)))


@multinomial.reference
def _(x: np.ndarray, *, dtype: DType, sample_size: int, seed: float | None) -> np.ndarray:
    """Class indices drawn by the unnormalised log-probabilities of each row"""
    chance = np.exp(x - x.max(-1, keepdims=True))
    edges = np.cumsum(chance / chance.sum(-1, keepdims=True), -1)
    drawn = _generator(seed).uniform(size=(x.shape[0], sample_size, 1))
    return (drawn > edges[:, None, :]).sum(-1).astype(dtype.np)
