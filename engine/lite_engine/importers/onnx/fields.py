"""Field numbers of ONNX's messages (onnx.proto3), as far as they are read."""


class Model:
    IR_VERSION = 1
    PRODUCER_NAME = 2
    PRODUCER_VERSION = 3
    DOMAIN = 4
    MODEL_VERSION = 5
    DOC_STRING = 6
    GRAPH = 7
    OPSET_IMPORT = 8
    METADATA_PROPS = 14
    TRAINING_INFO = 20
    FUNCTIONS = 25


class OperatorSet:
    DOMAIN = 1
    VERSION = 2


class Entry:
    KEY = 1
    VALUE = 2


class GraphProto:
    NODE = 1
    NAME = 2
    INITIALIZER = 5
    INPUT = 11
    OUTPUT = 12
    VALUE_INFO = 13
    SPARSE_INITIALIZER = 15


class NodeProto:
    INPUT = 1
    OUTPUT = 2
    NAME = 3
    OP_TYPE = 4
    ATTRIBUTE = 5
    DOMAIN = 7
    OVERLOAD = 8


class Attribute:
    NAME = 1
    F = 2
    I = 3
    S = 4
    T = 5
    G = 6
    FLOATS = 7
    INTS = 8
    STRINGS = 9
    TENSORS = 10
    GRAPHS = 11
    TYPE = 20
    REF_ATTR_NAME = 21
    SPARSE_TENSOR = 22


class Function:
    NAME = 1
    INPUT = 4
    OUTPUT = 5
    NODE = 7
    OPSET_IMPORT = 9
    DOMAIN = 10
    ATTRIBUTE_PROTO = 11
    OVERLOAD = 13


class Tensor:
    DIMS = 1
    DATA_TYPE = 2
    FLOAT_DATA = 4
    INT32_DATA = 5
    INT64_DATA = 7
    NAME = 8
    RAW_DATA = 9
    DOUBLE_DATA = 10
    UINT64_DATA = 11
    EXTERNAL_DATA = 13
    DATA_LOCATION = 14


class SparseTensor:
    VALUES = 1
    INDICES = 2
    DIMS = 3


class ValueInfo:
    NAME = 1
    TYPE = 2


class Type:
    TENSOR_TYPE = 1
    SEQUENCE_TYPE = 4
    MAP_TYPE = 5
    SPARSE_TENSOR_TYPE = 8
    OPTIONAL_TYPE = 9


class TensorType:
    ELEM_TYPE = 1
    SHAPE = 2


class Shape:
    DIM = 1


class Dimension:
    DIM_VALUE = 1
    DIM_PARAM = 2
