"""Weight-only quantization as Paddle-Lite stores it: symmetric integers and a scale per channel."""

from __future__ import annotations

import numpy as np

from ...importers.paddle.program import Program
from ...ir import DType

#: Operator → (slot of the weight, axis of its output channels). For these Paddle-Lite turns the
#: integers back into floats when it loads a file; for conv2d_transpose and matmul_v2 it gives wrong
#: results without a word (measured with 2.13rc0), so they stay floats.
_WEIGHTS = {
    "conv2d": ("Filter", 0),
    "fc": ("W", 1),
}
_DTYPES = {8: np.int8, 16: np.int16}


def quantize_weights(program: Program, bits: int) -> int:
    """Replaces weights by int8 or int16; answers how many. Weights with two readers stay."""
    block = program.blocks[0]
    readers: dict[str, int] = {}
    for op in block.ops:
        for name in (n for names in op.inputs.values() for n in names):
            readers[name] = readers.get(name, 0) + 1
    count = 0
    for op in block.ops:
        slot, axis = _WEIGHTS.get(op.type, ("", 0))
        name = (op.inputs.get(slot) or [""])[0]
        weight = program.params.get(name)
        if weight is None or weight.dtype != np.float32 or readers[name] != 1:
            continue
        integers, scales = quantized(weight, bits, axis)
        program.params[name] = integers
        block.vars[name].dtype = DType.of(integers)
        op.attrs["quantization_type"] = "post_weight_channel_wise_abs_max"
        op.attrs["quantize_weight_bits"] = bits
        op.attrs[f"{name}_quant_scale"] = [float(s) for s in scales]
        count += 1
    return count


def quantized(weight: np.ndarray, bits: int, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """q = round(w / scale), scale = max|w| / (2^(bits−1) − 1) per channel along `axis`."""
    limit = 2 ** (bits - 1) - 1
    rest = tuple(a for a in range(weight.ndim) if a != axis)
    largest = np.abs(weight).max(axis=rest)
    scales = np.where(largest > 0, largest, 1.0).astype(np.float32) / np.float32(limit)
    shape = [1] * weight.ndim
    shape[axis] = -1
    integers = np.clip(np.rint(weight / scales.reshape(shape)), -limit, limit)
    return integers.astype(_DTYPES[bits]), scales
