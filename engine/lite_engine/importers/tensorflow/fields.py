"""Field numbers of TensorFlow's messages, as far as they are read."""


class GraphDef:
    NODE = 1
    LIBRARY = 2
    VERSIONS = 4


class Versions:
    PRODUCER = 1


class NodeDef:
    NAME = 1
    OP = 2
    INPUT = 3
    ATTR = 5


class AttrValue:
    LIST = 1
    S = 2
    I = 3
    F = 4
    B = 5
    TYPE = 6
    SHAPE = 7
    TENSOR = 8
    FUNC = 10


class ListValue:
    S = 2
    I = 3
    F = 4
    B = 5
    TYPE = 6
    SHAPE = 7


class NameAttrList:
    NAME = 1


class MapEntry:
    KEY = 1
    VALUE = 2


class FunctionLibrary:
    FUNCTION = 1


class FunctionDef:
    SIGNATURE = 1
    NODE_DEF = 3
    RET = 4


class OpDef:
    NAME = 1
    INPUT_ARG = 2
    OUTPUT_ARG = 3


class ArgDef:
    NAME = 1


class TensorShape:
    DIM = 2
    UNKNOWN_RANK = 3


class Dim:
    SIZE = 1


class TensorProto:
    DTYPE = 1
    TENSOR_SHAPE = 2
    TENSOR_CONTENT = 4
    FLOAT_VAL = 5
    DOUBLE_VAL = 6
    INT_VAL = 7
    STRING_VAL = 8
    INT64_VAL = 10
    BOOL_VAL = 11
    HALF_VAL = 13
    UINT32_VAL = 16
    UINT64_VAL = 17


class SavedModel:
    META_GRAPHS = 2


class MetaGraph:
    META_INFO_DEF = 1
    GRAPH_DEF = 2
    SIGNATURE_DEF = 5


class Signature:
    INPUTS = 1
    OUTPUTS = 2


class MetaInfo:
    TAGS = 4


class TensorInfo:
    NAME = 1


class BundleHeader:
    NUM_SHARDS = 1
    ENDIANNESS = 2


class BundleEntry:
    DTYPE = 1
    SHAPE = 2
    SHARD_ID = 3
    OFFSET = 4
    SIZE = 5
    SLICES = 7
