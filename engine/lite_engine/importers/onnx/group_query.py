"""com.microsoft::GroupQueryAttention as operators of ONNX.

The past may be longer than what a row of the batch has of it: its first `lengths + 1 − S` keys
count, and the S new ones follow right behind them, in each row at another place.
Source: ContribOperators.md of onnxruntime.
"""

from __future__ import annotations

from ...ir import DType, Value
from .call import Call, Emit
from .microsoft import become
from .upgrade import upgrades

#: Attributes whose other values ask for what no operator of ONNX computes.
_PLAIN = {"smooth_softmax": (0, -1), "qk_output": (0,), "kv_cache_bit_width": (0,),
          "k_quant_type": ("NONE", b"NONE"), "v_quant_type": ("NONE", b"NONE")}  # fmt: skip


@upgrades("com.microsoft::GroupQueryAttention")
def _(call: Call, emit: Emit) -> None:
    """Several heads of the query share one of the keys; a query sees what came before it"""
    attrs = call.attrs
    heads, kv_heads = attrs.get("num_heads"), attrs.get("kv_num_heads")
    query, past, lengths = call.input(0), call.input(3), call.input(5)
    others = [call.input(i) for i in range(9, 14)]  # positions, bias, sinks, scales of a cache
    plain = all(attrs.get(key, values[0]) in values for key, values in _PLAIN.items())
    if not heads or not kv_heads or lengths is None:
        return
    if query is None or query.shape is None or len(query.shape) != 3:
        return
    if not plain or any(v is not None for v in others) or len(call.outputs) > 3:
        return
    qkv = [query, call.input(1), call.input(2)]
    if qkv[1] is None:
        width = query.shape[2]
        if not isinstance(width, int):
            return
        size = width // (heads + 2 * kv_heads)
        sizes = call.constant("sizes", [heads * size, kv_heads * size, kv_heads * size])
        qkv = [Value(f"{call.outputs[0].name}.{word}") for word in ("q", "k", "v")]
        emit("Split", [query, sizes], {"axis": -1}, qkv)
    length = emit("Shape", [query], {"start": 1, "end": 2})
    one = call.constant("one", [1])
    known = emit("Add", [emit("Cast", [lengths], {"to": DType.I64}), one])
    known = emit("Max", [emit("Reshape", [known, call.constant("flat", [-1])]), length])
    before = emit("Unsqueeze", [emit("Sub", [known, length]), one])  # (B,1)
    if attrs.get("do_rotary"):
        at = emit("Add", [before, _range(call, emit, length)])
        turn = {"interleaved": attrs.get("rotary_interleaved", 0)}
        tables = [call.input(7), call.input(8)]
        for i, count in ((0, heads), (1, kv_heads)):
            turned = [qkv[i], *tables, at]
            qkv[i] = emit("RotaryEmbedding", turned, {"num_heads": count, **turn})
    q, k, v = (_by_head(call, emit, x, n) for x, n in zip(qkv, (heads, kv_heads, kv_heads)))
    inputs: list[Value | None] = [q, k, v]
    if past is not None and (past.shape is None or past.shape[2] != 0):
        inputs = [q, *_joined(call, emit, [k, v], before, length), None, None, None, known]
    for out, both in zip(call.outputs[1:], inputs[1:3]):
        emit("Identity", [_up_to_total(call, emit, both)], {}, [out])
    window = attrs.get("local_window_size", -1)
    more = {"scale": attrs["scale"]} if attrs.get("scale") else {}
    y = emit("Attention", inputs, {
        "is_causal": 1, "softcap": attrs.get("softcap", 0.0),
        "left_window_size": window - 1 if window > 0 else -1, **more,  # itself and those before
    })  # fmt: skip
    y = emit("Transpose", [y], {"perm": [0, 2, 1, 3]})
    call.outputs = call.outputs[:1]
    become(call, "Reshape", [y, call.constant("packed", [0, 0, -1])])


def _range(call: Call, emit: Emit, length: Value) -> Value:
    """0, 1, … as many as the one number of `length` says."""
    scalar = emit("Squeeze", [length])
    return emit("Range", [call.constant("start", 0), scalar, call.constant("step", 1)])


def _by_head(call: Call, emit: Emit, x: Value | None, heads: int) -> Value:
    """(B,L,H·D) → (B,H,L,D)"""
    split = emit("Reshape", [x, call.constant(f"heads_{heads}", [0, 0, heads, -1])])
    return emit("Transpose", [split], {"perm": [0, 2, 1, 3]})


def _joined(
    call: Call, emit: Emit, new: list[Value], before: Value, length: Value
) -> list[Value]:  # fmt: skip
    """Each past (B,H,P,D) with the new one behind what counts of it; what does not comes last."""
    room = emit("Shape", [call.input(3)], {"start": 2, "end": 3})
    total = emit("Add", [room, length])
    column = _range(call, emit, total)
    behind = emit("Sub", [emit("Add", [column, room]), before])
    last = emit("Sub", [total, call.constant("last", [1])])
    place = emit("Where", [emit("Less", [column, before]), column, emit("Min", [behind, last])])
    place = emit("Unsqueeze", [place, call.constant("place_axes", [1, 3])])
    found = []
    for at, x in zip((3, 4), new):
        both = emit("Concat", [call.input(at), x], {"axis": 2})
        each = emit("Expand", [place, emit("Shape", [both])])
        found.append(emit("GatherElements", [both, each], {"axis": 2}))
    return found


def _up_to_total(call: Call, emit: Emit, x: Value | None) -> Value | None:
    """The keys that leave: as many as the past has room for, or `total_sequence_length`."""
    past, total = call.input(3), call.input(6)
    if past is None or total is None:
        return x
    end = emit(
        "Cast", [emit("Reshape", [total, call.constant("one_total", [1])])], {"to": DType.I64}
    )
    end = emit("Max", [end, emit("Shape", [past], {"start": 2, "end": 3})])
    axes = call.constant("length_axis", [2])
    return emit("Slice", [x, call.constant("begin", [0]), end, axes])
