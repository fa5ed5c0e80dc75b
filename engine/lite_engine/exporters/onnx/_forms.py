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

_SMALL = (DType.I8, DType.U8, DType.I16, DType.U16)
_WHOLE = (*_SMALL, DType.I32, DType.U32, DType.I64, DType.U64)
_BYTES = (DType.I8, DType.U8)
#: Operator → element types that it did not have from the start, and the first opset that does.
_ELEMENTS: dict[str, dict[int, tuple[DType, ...]]] = {
    "Add": {14: _SMALL}, "Sub": {14: _SMALL}, "Mul": {14: _SMALL}, "Div": {14: _SMALL},
    "Relu": {14: (DType.I8, DType.I16, DType.I32, DType.I64)}, "Clip": {12: _WHOLE},
    "Max": {12: _WHOLE}, "Min": {12: _WHOLE}, "MaxPool": {12: _BYTES}, "Pow": {12: _WHOLE},
    "ReduceMax": {12: _BYTES, 20: (DType.BOOL,)}, "ReduceMin": {12: _BYTES, 20: (DType.BOOL,)},
    "BitShift": {28: (DType.I8, DType.I16, DType.I32, DType.I64)}, "Pad": {13: (DType.BOOL,)},
    "Celu": {28: (DType.F16, DType.F64)}, "CumSum": {14: (DType.F16,)},
    "IsInf": {20: (DType.F16,)}, "Range": {27: (DType.F16,)}, "QLinearMatMul": {21: (DType.F16,)},
    "QuantizeLinear": {19: (DType.F16,), 21: (DType.I16, DType.U16)},
    "DequantizeLinear": {19: (DType.F16,), 21: (DType.I16, DType.U16)},
}  # fmt: skip

#: The first opset that has operators in bf16; all others that have it do since 13.
_BF16 = {
    14: ("BatchNormalization", "CumSum"),
    15: ("Pow",),
    16: ("GreaterOrEqual", "LeakyRelu", "LessOrEqual", "Loop", "PRelu", "Scan", "Where"),
    19: ("DequantizeLinear", "QuantizeLinear"),
    20: ("IsInf",),
    21: ("QLinearMatMul",),
    22: ("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "AveragePool", "Bernoulli", "Conv",
         "ConvTranspose", "Cos", "Cosh", "DeformConv", "Det", "Dropout", "Elu", "EyeLike", "GRU",
         "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "GridSample", "HardSigmoid",
         "HardSwish", "InstanceNormalization", "LSTM", "LpNormalization", "LpPool", "MaxPool",
         "MaxRoiPool", "MaxUnpool", "Mish", "Multinomial", "NegativeLogLikelihoodLoss", "RNN",
         "RandomNormalLike", "RandomUniformLike", "RoiAlign", "Round", "Selu", "Sin", "Sinh",
         "Softplus", "Softsign", "Tan", "ThresholdedRelu"),
    24: ("TopK",),
    27: ("Range",),
    28: ("Celu", "Compress", "Einsum", "OneHot", "OptionalGetElement", "OptionalHasElement",
         "ReverseSequence", "Unique"),
}  # fmt: skip
_FIRST_BF16 = {name: first for first, names in _BF16.items() for name in names}


def element_opset(op: str, dtype: DType) -> int:
    """The first opset whose form of the operator takes this element type, as far as it came after
    the operator itself."""
    if dtype is DType.BF16:
        return _FIRST_BF16.get(op, 13)
    firsts = (first for first, types in _ELEMENTS.get(op, {}).items() if dtype in types)
    return max(_TYPES.get(dtype, 0), *firsts, 0)


def elements_opset(node: Node) -> int:
    """The first opset that has this call's element types."""
    values = (*node.inputs, *node.outputs)
    known = {v.dtype for v in values if v is not None and v.dtype is not None}
    return max((element_opset(node.op, dtype) for dtype in known), default=0)


def needed_opset(node: Node, attrs: dict[str, Any], inputs: tuple[str, ...]) -> int:
    """The first opset that has this call: its operator, the attributes and inputs that are given,
    and their element types."""
    needed = _OPERATORS.get(node.op, OLDEST)
    for part in (*attrs, *inputs):
        needed = max(needed, _PARTS.get((node.op, part), 0))
    return max(needed, elements_opset(node))


def ir_version(opset: int) -> int:
    """The ir_version of a model of this opset."""
    return next((version for first, version in _IR_VERSIONS if opset >= first), 6)
