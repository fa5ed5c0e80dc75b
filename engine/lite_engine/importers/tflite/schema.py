"""TFLite's schema as far as it is read: element types, operator codes, slots of the option tables.

Source: tensorflow/lite/schema/schema.fbs, version 3.
"""

from __future__ import annotations

from typing import Any

from lite_messages import tr

from ...errors import ModelFormatError
from ...ir import DType
from .._flatbuffers import Table

#: TensorType → DType; the missing ones are strings, complex numbers, resources, 4- and 2-bit types
TENSOR_TYPES = {
    0: DType.F32, 1: DType.F16, 2: DType.I32, 3: DType.U8, 4: DType.I64, 6: DType.BOOL,
    7: DType.I16, 9: DType.I8, 10: DType.F64, 12: DType.U64, 15: DType.U32, 16: DType.U16,
    18: DType.BF16,
}  # fmt: skip
INT4 = 17
TYPE_NAMES = {5: "string", 8: "complex64", 11: "complex128", 13: "resource", 14: "variant",
              17: "int4", 19: "int2", 20: "uint4", 21: "float8", 22: "float8"}  # fmt: skip

CUSTOM = 32

_CODES = """ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE
EMBEDDING_LOOKUP FLOOR FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D
LOCAL_RESPONSE_NORMALIZATION LOGISTIC LSH_PROJECTION LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6
RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS SKIP_GRAM CALL CUSTOM
EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN GATHER BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND
TRANSPOSE MEAN SUB DIV SQUEEZE UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE BIDIRECTIONAL_SEQUENCE_RNN
EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM ARG_MAX
MINIMUM
LESS NEG PADV2 GREATER GREATER_EQUAL LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE TILE
EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX
PACK LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT UNPACK REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE
ZEROS_LIKE FILL FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR LEAKY_RELU SQUARED_DIFFERENCE MIRROR_PAD ABS
SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N GATHER_ND COS WHERE RANK ELU REVERSE_SEQUENCE MATRIX_DIAG
QUANTIZE MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5
SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM BATCH_MATMUL PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM
CALL_ONCE BROADCAST_TO RFFT2D CONV_3D IMAG REAL COMPLEX_ABS HASHTABLE HASHTABLE_FIND
HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE
ASSIGN_VARIABLE BROADCAST_ARGS RANDOM_STANDARD_NORMAL BUCKETIZE RANDOM_UNIFORM MULTINOMIAL GELU
DYNAMIC_UPDATE_SLICE RELU_0_TO_1 UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM
ATAN2 UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR RIGHT_SHIFT"""
#: operator names by code
OPERATORS = tuple(_CODES.split())

#: name:struct letter, in slot order; "*i" is a list, "=value" the schema's default when it is not 0
_WINDOW = "padding:b stride_w:i stride_h:i"
_DILATION = "dilation_w:i=1 dilation_h:i=1"
_FIELDS = {
    "CONV_2D": f"{_WINDOW} activation:b {_DILATION}",
    "CONV_3D": "padding:b stride_d:i stride_w:i stride_h:i activation:b"
    " dilation_d:i=1 dilation_w:i=1 dilation_h:i=1",
    "CONV_3D_TRANSPOSE": "padding:b stride_d:i stride_w:i stride_h:i activation:b"
    " dilation_d:i=1 dilation_w:i=1 dilation_h:i=1",
    "DEPTHWISE_CONV_2D": f"{_WINDOW} multiplier:i activation:b {_DILATION}",
    "TRANSPOSE_CONV": f"{_WINDOW} activation:b",
    "AVERAGE_POOL_2D": f"{_WINDOW} filter_w:i filter_h:i activation:b",
    "MAX_POOL_2D": f"{_WINDOW} filter_w:i filter_h:i activation:b",
    "L2_POOL_2D": f"{_WINDOW} filter_w:i filter_h:i activation:b",
    "FULLY_CONNECTED": "activation:b weights_format:b keep_num_dims:?",
    "SOFTMAX": "beta:f",
    "CONCATENATION": "axis:i activation:b",
    "ADD": "activation:b", "SUB": "activation:b", "MUL": "activation:b", "DIV": "activation:b",
    "L2_NORMALIZATION": "activation:b",
    "LOCAL_RESPONSE_NORMALIZATION": "radius:i bias:f alpha:f beta:f",
    "RESIZE_BILINEAR": "new_height:i new_width:i align_corners:? half_pixel:?",
    "RESIZE_NEAREST_NEIGHBOR": "align_corners:? half_pixel:?",
    "SPACE_TO_DEPTH": "block:i", "DEPTH_TO_SPACE": "block:i",
    "GATHER": "axis:i batch_dims:i",
    "MEAN": "keep:?", "SUM": "keep:?", "REDUCE_MAX": "keep:?", "REDUCE_MIN": "keep:?",
    "REDUCE_PROD": "keep:?", "REDUCE_ANY": "keep:?", "REDUCE_ALL": "keep:?",
    "SPLIT": "count:i", "SPLIT_V": "count:i",
    "STRIDED_SLICE": "begin_mask:i end_mask:i ellipsis_mask:i new_axis_mask:i shrink_axis_mask:i"
    " offset:?",
    "RESHAPE": "shape:*i", "SQUEEZE": "axes:*i",
    "CAST": "source:b to:b",
    "ARG_MAX": "to:b", "ARG_MIN": "to:b", "SHAPE": "to:b",
    "PACK": "count:i axis:i", "UNPACK": "count:i axis:i", "ONE_HOT": "axis:i",
    "LEAKY_RELU": "alpha:f", "GELU": "approximate:?", "MIRROR_PAD": "mode:b",
    "BATCH_MATMUL": "adj_x:? adj_y:?", "CUMSUM": "exclusive:? reverse:?",
    "REVERSE_SEQUENCE": "seq_dim:i batch_dim:i",
    "FAKE_QUANT": "min:f max:f num_bits:i narrow_range:?",
    "SVDF": "rank:i activation:b",
    "UNIDIRECTIONAL_SEQUENCE_LSTM":
        "activation:b cell_clip:f proj_clip:f time_major:? asymmetric:?",
    "BIDIRECTIONAL_SEQUENCE_LSTM":
        "activation:b cell_clip:f proj_clip:f merge:? time_major:?=1 asymmetric:?",
    "UNIDIRECTIONAL_SEQUENCE_RNN": "time_major:? activation:b",
    "VAR_HANDLE": "", "CALL_ONCE": "init:i",
    "IF": "then:i other:i", "WHILE": "condition:i body:i",
}  # fmt: skip

PADDING = ("SAME", "VALID")
ACTIVATIONS = ("", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT")


def read_options(operator: str, table: Table | None) -> dict[str, Any]:
    """The option fields of a built-in operator by name, with the schema's defaults."""
    out: dict[str, Any] = {}
    for slot, field in enumerate(_FIELDS.get(operator, "").split()):
        name, _, rest = field.partition(":")
        code, _, default = rest.partition("=")
        if code == "*i":
            array = None if table is None else table.array(slot, "i4")
            out[name] = [] if array is None else [int(v) for v in array]
            continue
        fallback = int(default or 0)
        out[name] = fallback if table is None else table.number(slot, code, fallback)
    return out


def padding_name(code: int) -> str:
    if not 0 <= code < len(PADDING):
        raise ModelFormatError(tr("tflite: padding code {code} is not known", code=code))
    return PADDING[code]
