"""Division that rounds down, as TensorFlow, TFLite and Paddle define it; ONNX's cuts off."""

from __future__ import annotations

from ..ir import DType, Value
from ._emit import Emitter


def floor_mod(emit: Emitter, a: Value, b: Value) -> Value:
    """Remainder with the divisor's sign. Of floats it is exact, as a − b·⌊a/b⌋ is not."""
    return emit("Mod", a, b, fmod=0)


def floor_div(emit: Emitter, a: Value, b: Value, *, wide: bool = False) -> Value:
    """⌊a / b⌋. Floats are divided in double precision if `wide`: in their own, a quotient just
    below a whole number may become that number."""
    if a.dtype is not None and a.dtype.is_float:
        if not wide:
            return emit("Floor", emit("Div", a, b))
        quotient = emit("Div", emit.cast(a, DType.F64), emit.cast(b, DType.F64))
        return emit.cast(emit("Floor", quotient), a.dtype)
    # The two remainders differ where the quotient is negative and not whole.
    less = emit("NotEqual", floor_mod(emit, a, b), emit("Mod", a, b, fmod=1))
    return emit("Sub", emit("Div", a, b), emit.cast(less, a.dtype or DType.I64))
