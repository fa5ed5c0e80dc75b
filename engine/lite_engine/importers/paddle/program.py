"""A Paddle program in memory: blocks of named operators, variables, parameters.

Four readers make it (ProgramDesc protobuf, PIR JSON, naive buffer 1-2, naive buffer 0) and one
translation (`build`) turns it into a Graph. The names are ProgramDesc's own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from lite_messages import tr

from ...errors import ModelFormatError
from ...ir import DType

#: Paddle's element type numbers (framework.proto VarType.Type).
DTYPES = {
    0: DType.BOOL,
    1: DType.I16,
    2: DType.I32,
    3: DType.I64,
    4: DType.F16,
    5: DType.F32,
    6: DType.F64,
    20: DType.U8,
    21: DType.I8,
    22: DType.BF16,
}
DTYPE_NUMBERS = {dtype: number for number, dtype in DTYPES.items()}

#: Kinds of variable (same enumeration).
DENSE_TENSOR, FEED_LIST, FETCH_LIST, TENSOR_ARRAY, RAW = 7, 9, 10, 13, 17

#: Attribute types of OpDesc, by number; `BLOCK` values are indices into `Program.blocks`.
ATTR_TYPES = (
    "INT", "FLOAT", "STRING", "INTS", "FLOATS", "STRINGS", "BOOLEAN", "BOOLEANS", "BLOCK", "LONG",
    "BLOCKS", "LONGS", "FLOAT64S", "VAR", "VARS", "FLOAT64",
)  # fmt: skip

MAX_RANK = 32
#: Kinds of attribute: numbers (true and false are some), texts, lists.
_KINDS = (Real, str, (list, tuple))


def dtype_of(number: int, where: str) -> DType:
    """Raises ModelFormatError for a number that is no tensor element type."""
    found = DTYPES.get(number)
    if found is None:
        raise ModelFormatError(
            tr("element type {number} is not a type of tensors", number=number), where=where
        )
    return found


@dataclass
class Op:
    """One operator call: slots name lists of variables."""

    type: str
    inputs: dict[str, list[str]] = field(default_factory=dict)
    outputs: dict[str, list[str]] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)

    def attr(self, name: str, default: Any = None, where: str = "") -> Any:
        """An attribute, of the kind that `default` has. Raises ModelFormatError."""
        value = self.attrs.get(name)
        if value is None:
            return default
        kind: Any = next((k for k in _KINDS if isinstance(default, k)), object)
        if not isinstance(value, kind) or (type(default) is int and not math.isfinite(value)):
            raise self._damaged(name, value, where)
        return value

    def ints(self, name: str, default: Sequence[int] = (), where: str = "") -> list[int]:
        """An attribute that is an integer or a list of integers, as a list."""
        value = self.attrs.get(name)
        if value is None:
            return list(default)
        values = list(value) if isinstance(value, (list, tuple)) else [value]
        if not all(isinstance(v, Real) and math.isfinite(v) for v in values):
            raise self._damaged(name, value, where)
        return [int(v) for v in values]

    def _damaged(self, name: str, value: Any, where: str) -> ModelFormatError:
        shown = f"{value!r:.40}" if isinstance(value, (str, Real)) else f"a {type(value).__name__}"
        return ModelFormatError(
            tr("its attribute {name!r} is {shown}, which is not valid", name=name, shown=shown),
            where=where or self.type,
        )


@dataclass
class Var:
    """One variable. `shape` has -1 for what is not known; None when nothing is."""

    name: str
    kind: int = DENSE_TENSOR
    dtype: DType | None = None
    shape: tuple[int, ...] | None = None
    persistable: bool = False


@dataclass
class Block:
    """Operators in order, and their variables."""

    ops: list[Op] = field(default_factory=list)
    vars: dict[str, Var] = field(default_factory=dict)
    parent: int = -1

    def sources(self) -> list[str]:
        """A name for each operator: `type:variable it makes`, with `@2`, `@3`, … where
        the program writes a variable again."""
        out: list[str] = []
        seen: dict[str, int] = {}
        for op in self.ops:
            first = next((n for names in op.outputs.values() for n in names if n), "")
            name = f"{op.type}:{first}" if first else op.type
            seen[name] = seen.get(name, 0) + 1
            out.append(name if seen[name] == 1 else f"{name}@{seen[name]}")
        return out


@dataclass
class Program:
    """`blocks[0]` is the main one. `params` maps variable names to their arrays.

    `reuses_variables`: Paddle-Lite gives one variable to several tensors, so that its declared type
    says nothing about what it holds at a point.
    """

    blocks: list[Block] = field(default_factory=list)
    params: dict[str, np.ndarray] = field(default_factory=dict)
    version: int = 0
    producer: str = ""
    reuses_variables: bool = False

    def parameter_names(self) -> list[str]:
        """Names of the stored tensors in the order of a combined parameter file: sorted."""
        return sorted(
            v.name
            for v in self.blocks[0].vars.values()
            if v.persistable and v.kind not in (FEED_LIST, FETCH_LIST, RAW)
        )

    def version_text(self) -> str:
        """`2.3.1` of major·10⁶ + minor·10³ + patch; empty when the file does not say."""
        if self.version <= 0:
            return ""
        return f"{self.version // 1000000}.{self.version // 1000 % 1000}.{self.version % 1000}"
