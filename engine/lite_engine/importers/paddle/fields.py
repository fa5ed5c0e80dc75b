"""Field numbers of Paddle's messages (framework.proto), as far as they are read."""


class ProgramDesc:
    BLOCKS = 1
    VERSION = 4


class Version:
    VERSION = 1


class BlockDesc:
    PARENT_IDX = 2
    VARS = 3
    OPS = 4


class VarDesc:
    NAME = 1
    TYPE = 2
    PERSISTABLE = 3


class VarType:
    TYPE = 1


class DenseTensor:
    TENSOR = 1


class TensorDesc:
    DATA_TYPE = 1
    DIMS = 2


class OpDesc:
    INPUTS = 1
    OUTPUTS = 2
    TYPE = 3
    ATTRS = 4


class OpVar:
    PARAMETER = 1
    ARGUMENTS = 2


class OpAttr:
    NAME = 1
    TYPE = 2
    I = 3
    F = 4
    S = 5
    INTS = 6
    FLOATS = 7
    STRINGS = 8
    B = 10
    BOOLS = 11
    BLOCK_IDX = 12
    L = 13
    BLOCKS_IDX = 14
    LONGS = 15
    FLOAT64S = 16
    VAR_NAME = 17
    VARS_NAME = 18
    FLOAT64 = 19
