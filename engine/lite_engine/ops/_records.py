"""What an operator says of its work and its kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..ir import DType, Node, TypeInfo


@dataclass(frozen=True)
class Cost:
    """Work of one call. `macs` are multiply-accumulates; flops = 2·macs + other flops.

    Bytes moved are derived from inputs and outputs unless given.
    """

    macs: int = 0
    flops: int = 0
    bytes: int | None = None


@dataclass(frozen=True)
class KernelRef:
    """A kernel that can run an operator on a backend, and under which conditions.

    `when(node, types)` gets the Node and its inputs' TypeInfos (None for absent) and answers
    True, or a string that says why not. Kernels of one operator are tried in `rank` order, lowest
    first. With `mixed`, outputs and the inputs that it names may each be of any of `dtypes`.
    """

    op: str
    backend: str  # "cpu" | "opencl"
    name: str
    dtypes: frozenset[DType]
    when: Callable[[Node, list[TypeInfo | None]], bool | str] | None = None
    why: str = ""
    rank: int = 0
    accepts_pitch: bool = False
    accepts_halo: bool = False
    in_place: bool = False
    by_rows: bool = False  # can compute some rows of an image, as plan/bands.py wants it
    precision: DType | None = None  # only for plans of this precision; None: for all
    mixed: tuple[str, ...] | None = None
    code: str = ""  # the operator's own part of a kernel that several share, in its language

    def __str__(self) -> str:
        return f"{self.backend}:{self.op}:{self.name}"
