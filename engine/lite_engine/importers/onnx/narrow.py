"""Narrow types (floats of 8 and 4 bits, integers of 4 and 2): nodes say them in attributes.

NumPy arrays do not tell such a type, so what asks for one gets it as an attribute; and constants
of narrow integers become 8-bit ones for what computes with them, one for all that do.
"""

from __future__ import annotations

from ...ir import DType, Value
from .call import Call

_WIDER = {DType.I4: DType.I8, DType.I2: DType.I8, DType.U4: DType.U8, DType.U2: DType.U8}
#: What asks for the element type of a constant.
_OF_TYPES = ("BitCast", "Cast", "Identity", "QuantizeLinear")


def settle_types(call: Call) -> None:
    """Changes a call in place."""
    if call.op == "CastLike":
        like = call.input(1)
        if like is not None and like.dtype is not None:
            call.op, call.inputs = "Cast", call.inputs[:1]
            call.attrs["to"] = like.dtype
    elif call.op == "QuantizeLinear":
        zero = call.input(2)
        if zero is not None and zero.dtype is not None and zero.dtype.is_narrow:
            call.attrs["output_dtype"] = zero.dtype
    for i, value in enumerate(call.inputs):
        if value is None or not value.is_const or value.dtype not in _WIDER:
            continue
        wide = call.wider.get(value)
        if call.op in _OF_TYPES:
            if wide is not None:
                wide.name = f"{value.name}.wide"
            continue
        if wide is None:
            name = f"{value.name}.wide" if value.readers else value.name
            wide = call.wider[value] = Value(name, _WIDER[value.dtype], const=value.const)
        call.inputs[i] = wide
