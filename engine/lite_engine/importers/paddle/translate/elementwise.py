"""Two-input arithmetic, comparison and logic, with Paddle's `axis` alignment."""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ....ir import DType, Value
from ..._floor import floor_div, floor_mod
from ..registry import Call, translates
from .fused import activation, fused_activation


def aligned(op: Call, x: Value, y: Value) -> tuple[Value, Value]:
    """Paddle aligns the smaller operand at `axis` instead of at the end: trailing 1s are added."""
    axis = int(op.attr("axis", -1))
    if axis == -1 or x.shape is None or y.shape is None:
        return x, y
    if axis < 0:
        raise op.unsupported(tr("axis must be -1 or at least 0, got {axis}", axis=axis))
    if len(x.shape) < len(y.shape):
        y, x = aligned_to(op, y, x, axis)
        return x, y
    return aligned_to(op, x, y, axis)


def aligned_to(op: Call, x: Value, y: Value, axis: int) -> tuple[Value, Value]:
    rank, small = op.rank(x), op.rank(y)
    if y.shape is not None and axis + small > rank:
        # old models keep trailing ones in the smaller operand
        dims = list(y.shape)
        while dims and dims[-1] == 1 and axis + len(dims) > rank:
            dims.pop()
        if axis + len(dims) > rank or not all(isinstance(d, int) for d in dims):
            raise op.unsupported(
                tr(
                    "axis {axis} does not align ranks {rank} and {small}",
                    axis=axis,
                    rank=rank,
                    small=small,
                )
            )
        y = op.to_shape(y, dims)  # type: ignore[arg-type]
        small = len(dims)
    missing = rank - axis - small
    if missing > 0 and small:
        y = op.node("Unsqueeze", [y, op.const(list(range(small, small + missing)))])
    return x, y


def _operands(op: Call) -> tuple[Value, Value]:
    x, y = aligned(op, op.need("X"), op.need("Y"))
    if x.dtype is not None and y.dtype is not None and x.dtype is not y.dtype:
        # Paddle promotes; only constants and index arithmetic meet here.
        wide = DType.of(np.promote_types(x.dtype.np, y.dtype.np))
        if DType.F32 in (x.dtype, y.dtype):
            wide = DType.F32
        x, y = op.cast(x, wide), op.cast(y, wide)
    return x, y


_PLAIN = {
    "elementwise_add": "Add",
    "elementwise_sub": "Sub",
    "elementwise_mul": "Mul",
    "elementwise_div": "Div",
    "elementwise_max": "Max",
    "elementwise_min": "Min",
    "elementwise_pow": "Pow",
    "grad_add": "Add",
    "maximum": "Max",
    "minimum": "Min",
}


@translates(*_PLAIN)
def _(op: Call) -> None:
    x, y = _operands(op)
    z = op.node(_PLAIN[op.type], [x, y])
    if op.flag("fuse_scale"):  # Paddle-Lite's elementwise + scale
        z = op.node("Mul", [z, op.const(float(op.attr("scale", 1.0)))])
        z = op.node("Add", [z, op.const(float(op.attr("bias", 0.0)))])
    op.set("Out", fused_activation(op, z))


@translates(
    *[
        f"fusion_elementwise_{k}_activation"
        for k in ("add", "sub", "mul", "div", "max", "min", "pow")
    ]
)
def _(op: Call) -> None:
    x, y = _operands(op)
    kind = _PLAIN["elementwise_" + op.type.split("_")[2]]
    op.set("Out", activation(op, op.node(kind, [x, y]), str(op.attr("act_type", ""))))


@translates("fused_elemwise_activation", "fused_elemwise_add_activation")
def _(op: Call) -> None:
    names = [str(n) for n in op.attr("functor_list", ["elementwise_add", "relu"])]
    x, y = _operands(op)
    z: Value | None = None
    for name in names:
        if name in _PLAIN:
            z = op.node(_PLAIN[name], [x, y] if z is None else [x, z])
        elif z is None:
            z = activation(op, y, name)
        else:
            z = activation(op, z, name)
    if z is None:
        raise op.unsupported(tr("its functor_list is empty"))
    op.set("Out", z)


@translates("elementwise_mod")
def _(op: Call) -> None:
    """The rest has the sign of the divisor."""
    op.set("Out", floor_mod(op.scope.emit, *_operands(op)))


@translates("elementwise_floordiv", "floor_divide")
def _(op: Call) -> None:
    """Before 2.5, Paddle had only integers here, and cut off (its issue 53299)."""
    x, y = _operands(op)
    if op.dtype(x).is_float or not 0 < op.scope.program.version < 2005000:
        op.set("Out", floor_div(op.scope.emit, x, y, wide=True))
    else:
        op.set("Out", op.node("Div", [x, y]))


_COMPARE = {
    "equal": "Equal",
    "not_equal": "NotEqual",
    "less_than": "Less",
    "less_equal": "LessOrEqual",
    "greater_than": "Greater",
    "greater_equal": "GreaterOrEqual",
    "logical_and": "And",
    "logical_or": "Or",
    "logical_xor": "Xor",
    "bitwise_and": "BitwiseAnd",
    "bitwise_or": "BitwiseOr",
    "bitwise_xor": "BitwiseXor",
}
_OF_BOOL = {"BitwiseAnd": "And", "BitwiseOr": "Or", "BitwiseXor": "Xor"}


@translates(*_COMPARE)
def _(op: Call) -> None:
    x, y = _operands(op)
    kind = _COMPARE[op.type]
    if kind in ("And", "Or", "Xor"):
        x, y = op.cast(x, DType.BOOL), op.cast(y, DType.BOOL)
    elif x.dtype is DType.BOOL:
        kind = _OF_BOOL.get(kind, kind)
    z = op.node(kind, [x, y])
    if op.flag("fuse_greater_than"):  # Paddle-Lite's comparison + cast
        z = op.cast(z, DType.F32)
    op.set("Out", z)


@translates("atan2")
def _(op: Call) -> None:
    op.set("Out", op.node("Atan2", [op.need("X1"), op.need("X2")]))


@translates("logical_not", "bitwise_not")
def _(op: Call) -> None:
    x = op.need("X")
    if op.type == "bitwise_not" and x.dtype is not DType.BOOL:
        op.set("Out", op.node("BitwiseNot", [x]))
    else:
        op.set("Out", op.node("Not", [op.cast(x, DType.BOOL)]))


@translates("scale")
def _(op: Call) -> None:
    """scale·x + bias, or scale·(x + bias)"""
    x = op.need("X")
    tensor = op["ScaleTensor"]
    integer = not op.dtype(x).is_float
    factor, bias = float(op.attr("scale", 1.0)), float(op.attr("bias", 0.0))
    if integer and tensor is None and (factor != int(factor) or bias != int(bias)):
        raise op.unsupported(tr("it scales an integer tensor by a fraction"))
    scale = tensor if tensor is not None else op.const(factor, like=x)
    y = x
    after = op.flag("bias_after_scale", True)
    if bias and not after:
        y = op.node("Add", [y, op.const(bias, like=x)])
    if tensor is not None or factor != 1.0:
        y = op.node("Mul", [y, scale])
    if bias and after:
        y = op.node("Add", [y, op.const(bias, like=x)])
    if op.flag("fuse_scaleact"):  # Paddle-Lite's two scales in one
        y = op.node("Mul", [y, op.const(float(op.attr("scale1", 1.0)))])
        y = op.node("Add", [y, op.const(float(op.attr("bias1", 0.0)))])
    name = str(op.attr("activation_type", "") or "")
    if name == "leaky_relu":
        y = op.node("LeakyRelu", [y], alpha=float(op.attr("alpha", 0.01)))
    else:
        y = activation(op, y, name)
    op.set("Out", y)


@translates("sum", "add_n")
def _(op: Call) -> None:
    op.set("Out", op.node("Sum", op.all("X")))


@translates("increment")
def _(op: Call) -> None:
    x = op.need("X")
    op.set("Out", op.node("Add", [x, op.const(op.attr("step", op.attr("value", 1.0)), like=x)]))


@translates("affine_channel")
def _(op: Call) -> None:
    x = op.need("X")
    tail = [1] * (op.rank(x) - 2)
    y = op.node("Mul", [x, op.to_shape(op.need("Scale"), [-1, *tail])])
    op.set("Out", op.node("Add", [y, op.to_shape(op.need("Bias"), [-1, *tail])]))


@translates("axpy")
def _(op: Call) -> None:
    """scale·x + bias, scale (N,C,1,1)"""
    y = op.node("Mul", [op.need("X"), op.need("Scale")])
    op.set("Out", op.node("Add", [y, op.need("Bias")]))
