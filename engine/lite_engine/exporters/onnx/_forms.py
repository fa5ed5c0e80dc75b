"""From which opset on ONNX has an operator in the form that a Graph holds.

A Graph holds the newest form (`OpDef.source`), which is often the form of an older opset with more
element types. Listed is what came after opset 11. Source: Changelog.md of ONNX.
"""

from __future__ import annotations

from typing import Any

from ...ir import DType, Node

#: Opsets that are written, and the one that is enough for most networks.
OLDEST, USUAL, NEWEST = 11, 17, 28

#: The ModelProto's ir_version that goes with an opset (onnx/helper.py: VERSION_TABLE).
_IR_VERSIONS = ((25, 13), (24, 12), (23, 11), (21, 10), (19, 9), (15, 8), (12, 7))

_OPERATORS = {
    "AffineGrid": 20, "Attention": 23, "Bernoulli": 15, "BitCast": 26, "BitwiseAnd": 18,
    "BitwiseNot": 18, "BitwiseOr": 18, "BitwiseXor": 18, "BlackmanWindow": 17, "CastLike": 15,
    "CausalConvWithState": 27, "CenterCropPad": 18, "Col2Im": 18, "CumProd": 26, "DFT": 20,
    "DeformConv": 19, "Gelu": 20, "GridSample": 20, "GroupNormalization": 21, "HammingWindow": 17,
    "HannWindow": 17, "HardSwish": 14, "LayerNormalization": 17, "LinearAttention": 27,
    "MelWeightMatrix": 17, "Mish": 18, "RMSNormalization": 23, "ReduceL1": 18, "ReduceL2": 18,
    "ReduceLogSum": 18, "ReduceLogSumExp": 18, "ReduceMax": 18, "ReduceMean": 18, "ReduceMin": 18,
    "ReduceProd": 18, "ReduceSumSquare": 18, "RoiAlign": 16, "RotaryEmbedding": 23, "STFT": 17,
    "SwiGLU": 28, "Swish": 24, "TensorScatter": 24, "Trilu": 14,
    "ReduceSum": 13, "Squeeze": 13, "Unsqueeze": 13, "Split": 13, "Softmax": 13, "LogSoftmax": 13,
    "Hardmax": 13, "ImageDecoder": 20, "NegativeLogLikelihoodLoss": 12, "OptionalGetElement": 15,
    "OptionalHasElement": 15, "SoftmaxCrossEntropyLoss": 12, "Celu": 12, "Einsum": 12,
    "GreaterOrEqual": 12, "LessOrEqual": 12,
}  # fmt: skip

#: (operator, attribute or input) → the first opset that has it.
_PARTS = {
    ("ArgMax", "select_last_index"): 12, ("ArgMin", "select_last_index"): 12,
    ("Attention", "nonpad_kv_seqlen"): 24, ("Attention", "left_window_size"): 25,
    ("Attention", "right_window_size"): 25, ("AveragePool", "dilations"): 19,
    ("BatchNormalization", "training_mode"): 14, ("Cast", "round_mode"): 24,
    ("Cast", "saturate"): 19, ("CastLike", "round_mode"): 24, ("CastLike", "saturate"): 19,
    ("DequantizeLinear", "axis"): 13, ("QuantizeLinear", "axis"): 13,
    ("DequantizeLinear", "block_size"): 21, ("DequantizeLinear", "output_dtype"): 23,
    ("Dropout", "ratio"): 12, ("Dropout", "seed"): 12, ("Dropout", "training_mode"): 12,
    ("GatherND", "batch_dims"): 12,
    ("GRU", "layout"): 14, ("LSTM", "layout"): 14, ("RNN", "layout"): 14,
    ("LpPool", "ceil_mode"): 18, ("LpPool", "dilations"): 18, ("Pad", "axes"): 18,
    ("QuantizeLinear", "block_size"): 21, ("QuantizeLinear", "output_dtype"): 21,
    ("QuantizeLinear", "precision"): 23, ("QuantizeLinear", "saturate"): 19,
    ("Range", "stash_type"): 27, ("Reshape", "allowzero"): 14, ("Resize", "antialias"): 18,
    ("Resize", "axes"): 18, ("Resize", "keep_aspect_ratio_policy"): 18,
    ("ScatterElements", "reduction"): 18, ("ScatterND", "reduction"): 18, ("Shape", "end"): 15,
    ("Shape", "start"): 15, ("SpaceToDepth", "mode"): 28, ("Split", "num_outputs"): 18,
}  # fmt: skip


#: Element types that came after opset 13.
_TYPES = {
    DType.F8E4M3FN: 19, DType.F8E4M3FNUZ: 19, DType.F8E5M2: 19, DType.F8E5M2FNUZ: 19,
    DType.U4: 21, DType.I4: 21, DType.F4E2M1: 23, DType.F8E8M0: 24, DType.U2: 25, DType.I2: 25,
}  # fmt: skip


def needed_opset(node: Node, attrs: dict[str, Any], inputs: tuple[str, ...]) -> int:
    """The first opset that has this call: its operator, the attributes and inputs that are given,
    and 16-bit quantized types."""
    needed = _OPERATORS.get(node.op, OLDEST)
    for part in (*attrs, *inputs):
        needed = max(needed, _PARTS.get((node.op, part), 0))
    for value in (*node.inputs, *node.outputs):
        if value is not None and value.dtype is not None:
            needed = max(needed, _TYPES.get(value.dtype, 0))
    if node.op in ("QuantizeLinear", "DequantizeLinear"):
        zero = node.input(2)
        if zero is not None and zero.dtype in (DType.I16, DType.U16):
            needed = max(needed, 21)
    return needed


def ir_version(opset: int) -> int:
    """The ir_version of a model of this opset."""
    return next((version for first, version in _IR_VERSIONS if opset >= first), 6)
