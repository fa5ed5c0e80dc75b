"""Reductions over axes, and ArgMax/ArgMin."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from lite_messages import tr

from ..ir import DType, Node, TypeInfo
from ._conditions import all_of, constant, separate_axes
from ._core import OpDef, define_op
from ._helpers import COUNTED, known_ints, normalise_axes, normalise_axis, unknown_dims, wide
from ._records import Cost
from ._samples import Draw, Sample


def opencl_fold(start: str, step: str, done: str = "(s)", merge: str = "((s)+(t))") -> str:
    """A reduction in OpenCL C: what `s` starts as, how a value `v` goes into it, what becomes of it
    after `n` values, and how two partial results `s` and `t` are joined."""
    return (
        f"#define START {start}\n#define STEP(s,v) {step}\n#define DONE(s,n) {done}\n"
        f"#define MERGE(s,t) {merge}"
    )


OPENCL_MEAN = opencl_fold("0.0f", "((s)+(v))", "((s)/(n))")
OPENCL_MAXIMUM = opencl_fold("-INFINITY", "MAXIMUM(s,v)", merge="MAXIMUM(s,t)")


def _reduced(
    x: TypeInfo, axes: TypeInfo | None, *, keepdims: int, noop_with_empty_axes: int
) -> TypeInfo:
    given = known_ints(axes)
    if axes is not None and given is None:
        return TypeInfo(x.dtype, unknown_dims(x.rank) if keepdims else None)
    if not given and noop_with_empty_axes:
        return TypeInfo(x.dtype, x.shape)
    chosen = set(normalise_axes(given, x.rank) if given else range(x.rank))
    if keepdims:
        return x.with_shape(tuple(1 if i in chosen else d for i, d in enumerate(x.dims)))
    return x.with_shape(tuple(d for i, d in enumerate(x.dims) if i not in chosen))


def _has_elements(node: Node, types: list[TypeInfo | None]) -> bool | str:
    x = types[0]
    return x is None or not x.is_static or x.size > 0 or tr("it reduces no elements")


def _reduction(
    name: str,
    fn: Callable[[np.ndarray, tuple[int, ...], bool], Any],
    source: str,
    *,
    alone: Callable[[np.ndarray], Any] = lambda x: x,
    native: bool = True,
    opencl: str = "",
) -> OpDef:
    """`fn(x, axes, keepdims)`; `alone` applies when no axis is reduced (no-op, empty axes).
    `opencl` is what `opencl_fold` returns; without it there is no kernel."""
    op = define_op(
        name,
        inputs="x axes?",
        attrs={"keepdims": 1, "noop_with_empty_axes": 0},
        layout="axis",
        transpose_rule="reduce",
        attr_inputs=("axes",),
        axis_attrs=("axes",),
        source=source,
    )
    op.infer(_reduced)

    def run(
        x: np.ndarray, axes: np.ndarray | None, *, keepdims: int, noop_with_empty_axes: int
    ) -> np.ndarray:
        if (axes is None or axes.size == 0) and noop_with_empty_axes:
            return np.asarray(alone(x)).astype(x.dtype, copy=False)
        chosen = (
            normalise_axes(axes.ravel().tolist(), x.ndim)
            if axes is not None and axes.size
            else range(x.ndim)
        )
        return np.asarray(fn(wide(x), tuple(chosen), bool(keepdims))).astype(x.dtype, copy=False)

    run.__doc__ = fn.__doc__
    op.reference(run)
    op.samples(_reduction_samples)
    op.cost(lambda x, axes, **_: Cost(flops=x.size))
    if native:
        op.kernel("cpu", "f32_reduce", when=_has_elements)
        if opencl:
            fits = all_of(_has_elements, constant(1), separate_axes)
            op.kernel("opencl", "reduce", dtype="f32,f16", when=fits, code=opencl)
    return op


def _reduction_samples(draw: Draw) -> Iterator[Sample]:
    for shape, axes in (
        ((3, 37), [1]), ((3, 37), [0]), ((2, 5, 6, 19), [1, 2]), ((2, 5, 6, 19), [2, 3]),
        ((2, 5, 6), None), ((2, 5, 6, 7), [0, 2]), ((2, 5, 6, 7), [1, 3]), ((9,), [0]),
        ((1, 1, 300), [-1]), ((4, 1), [1]),
    ):  # fmt: skip
        for keepdims in (0, 1):
            given = [] if axes is None else [np.array(axes, np.int64)]
            yield Sample([draw(*shape), *given], {"keepdims": keepdims})


def _log_sum_exp(x: np.ndarray, axes: tuple[int, ...], keep: bool) -> np.ndarray:
    """ln Σ e^x, shifted by the maximum"""
    if x.size == 0:
        return np.log(np.sum(np.exp(x), axis=axes, keepdims=keep))
    top = np.max(x, axis=axes, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    total = np.log(np.sum(np.exp(x - top), axis=axes, keepdims=True)) + top
    return total if keep else np.squeeze(total, axis=axes)


def _extreme(ufunc: np.ufunc, largest: bool) -> Callable[[np.ndarray, tuple[int, ...], bool], Any]:
    """Maximum or minimum; of nothing it is the type's end of range."""

    def run(x: np.ndarray, axes: tuple[int, ...], keep: bool) -> Any:
        if x.dtype.kind == "f":
            initial: Any = -np.inf if largest else np.inf
        elif x.dtype.kind == "b":
            initial = not largest
        else:
            info = np.iinfo(x.dtype)
            initial = info.min if largest else info.max
        return ufunc.reduce(x, axis=axes, keepdims=keep, initial=initial)

    return run


def _mean(x: np.ndarray, axes: tuple[int, ...], keep: bool) -> Any:
    """Arithmetic mean; integers are summed exactly"""
    return np.mean(x, axis=axes, keepdims=keep)


_reduction(
    "ReduceSum", lambda x, a, k: np.sum(x, axis=a, keepdims=k), "ONNX ReduceSum-13",
    opencl=opencl_fold("0.0f", "((s)+(v))"),
)  # fmt: skip
_reduction("ReduceMean", _mean, "ONNX ReduceMean-18", opencl=OPENCL_MEAN)
_reduction("ReduceMax", _extreme(np.maximum, True), "ONNX ReduceMax-20", opencl=OPENCL_MAXIMUM)
_reduction(
    "ReduceMin", _extreme(np.minimum, False), "ONNX ReduceMin-20",
    opencl=opencl_fold("INFINITY", "MINIMUM(s,v)", merge="MINIMUM(s,t)"),
)  # fmt: skip
_reduction(
    "ReduceProd", lambda x, a, k: np.prod(x, axis=a, keepdims=k), "ONNX ReduceProd-18",
    opencl=opencl_fold("1.0f", "((s)*(v))", merge="((s)*(t))"),
)  # fmt: skip
_reduction(
    "ReduceL1",
    lambda x, a, k: np.sum(np.abs(x), axis=a, keepdims=k),
    "ONNX ReduceL1-18",
    alone=np.abs,
    opencl=opencl_fold("0.0f", "((s)+fabs(v))"),
)
_reduction(
    "ReduceL2",
    lambda x, a, k: np.sqrt(np.sum(np.square(x), axis=a, keepdims=k)),
    "ONNX ReduceL2-18",
    alone=np.abs,
    opencl=opencl_fold("0.0f", "((s)+(v)*(v))", "sqrt(s)"),
)
_reduction(
    "ReduceSumSquare",
    lambda x, a, k: np.sum(np.square(x), axis=a, keepdims=k),
    "ONNX ReduceSumSquare-18",
    alone=np.square,
    opencl=opencl_fold("0.0f", "((s)+(v)*(v))"),
)
_reduction(
    "ReduceLogSum",
    lambda x, a, k: np.log(np.sum(x, axis=a, keepdims=k)),
    "ONNX ReduceLogSum-18",
    alone=np.log,
)
_reduction("ReduceLogSumExp", _log_sum_exp, "ONNX ReduceLogSumExp-18")
_reduction(
    "ReduceAny", lambda x, a, k: np.any(x, axis=a, keepdims=k), "TFLite REDUCE_ANY", native=False
)
_reduction(
    "ReduceAll", lambda x, a, k: np.all(x, axis=a, keepdims=k), "TFLite REDUCE_ALL", native=False
)


def _arg(name: str, pick: Callable[..., np.ndarray]) -> OpDef:
    op = define_op(
        name,
        inputs="x",
        attrs={"axis": 0, "keepdims": 1, "select_last_index": 0},
        layout="axis",
        transpose_rule="arg",
        axis_attrs=("axis",),
        source=f"ONNX {name}-13",
        postprocess="choice",
    )

    @op.infer
    def _(x: TypeInfo, *, axis: int, keepdims: int, select_last_index: int) -> TypeInfo:
        at = normalise_axis(axis, x.rank)
        kept = [1 if i == at else d for i, d in enumerate(x.dims) if keepdims or i != at]
        return TypeInfo(DType.I64, tuple(kept))

    @op.reference
    def _(x: np.ndarray, *, axis: int, keepdims: int, select_last_index: int) -> np.ndarray:
        """Index of the first (or last) extreme element along `axis`, i64"""
        if select_last_index:
            y = x.shape[axis] - 1 - pick(np.flip(x, axis), axis=axis, keepdims=bool(keepdims))
        else:
            y = pick(x, axis=axis, keepdims=bool(keepdims))
        return np.asarray(y, np.int64)

    op.cost(lambda x, **_: Cost(flops=x.size))
    op.kernel("cpu", "any_arg", dtype=COUNTED)
    op.kernel("opencl", "arg", dtype="f32,f16")
    return op


_arg("ArgMax", np.argmax)
_arg("ArgMin", np.argmin)
