"""The nouns of planning: PlanTensor, Step, Plan. Plain data; ARCHITECTURE section 3 explains
them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from ..ir import DType, Integers, Node, Shape, Value

ROLES = ("input", "output", "weight", "arena", "device")
ALIGNMENT = 64
#: Backends that execute steps; all others are accelerators, which get sub-graphs.
OWN_BACKENDS = ("cpu", "opencl", "reference")
Layout = tuple[int, ...]


def row_major(rank: int) -> Layout:
    return tuple(range(rank))


def channels_last(rank: int) -> Layout:
    """N, spatial…, C. Ranks below 3 have no spatial axes and stay row-major."""
    return (0, *range(2, rank), 1) if rank >= 3 else row_major(rank)


@dataclass(eq=False)
class PlanTensor:
    """A value as it lies in memory.

    `dims` are physical, outermost first; physical axis i holds logical axis `layout[i]`.
    `offset` is in bytes in the arena, `whole` where steps that take turns (turns.py) take the whole
    batch in one; an alias lies `alias_offset` bytes after `alias_of`. `piece` is the tensor whose
    elements it shows where both lie inside a larger one (views.py).
    `data` is set for
    weights: the array in physical order. `space` says whose memory it is: "host" or "opencl".
    `short`: float32 values that are kept in bf16 (plan/storage).
    `integers` are those that the real numbers of `data` were made from, in logical order.
    `shape_known` is False for a value whose shape depends on data: its `dims` are then empty, and
    `open_shape` is what is known of it.
    """

    index: int
    name: str
    dtype: DType
    dims: tuple[int, ...]
    layout: Layout
    role: str
    offset: int = 0
    pitch: int = 0
    halo: tuple[int, int, int, int] = (0, 0, 0, 0)
    data: np.ndarray | None = None
    alias_of: int | None = None
    alias_offset: int = 0
    piece: int | None = None
    space: str = "host"
    shape_known: bool = True
    open_shape: Shape | None = None
    short: bool = False
    whole: int = 0
    integers: Integers | None = None

    def __post_init__(self) -> None:
        if not self.pitch:
            self.pitch = self.dims[-1] if self.dims else 1

    @property
    def shape(self) -> tuple[int, ...]:
        """Logical dimensions."""
        out = [0] * len(self.dims)
        for physical, logical in enumerate(self.layout):
            out[logical] = self.dims[physical]
        return tuple(out)

    @property
    def known_shape(self) -> list[int | None] | None:
        """Logical dimensions, None for those that depend on data, and for an unknown rank."""
        if self.shape_known:
            return list(self.shape)
        if self.open_shape is None:
            return None
        return [d if isinstance(d, int) else None for d in self.open_shape]

    @property
    def size(self) -> int:
        return math.prod(self.dims)

    @property
    def nbytes(self) -> int:
        """Bytes of the storage, halo and pitch included."""
        rows = list(self.dims[:-1])
        if any(self.halo) and len(rows) >= 3:
            top, left, bottom, right = self.halo
            rows[-2] += top + bottom
            rows[-1] += left + right
        return (
            math.prod(rows) * self.pitch * self.dtype.itemsize if self.dims else self.dtype.itemsize
        )

    def to_logical(self, physical: np.ndarray) -> np.ndarray:
        """An array in physical order as a view in logical order."""
        inverse = [self.layout.index(axis) for axis in range(len(self.layout))]
        return physical.reshape(self.dims).transpose(inverse)

    def to_physical(self, logical: np.ndarray) -> np.ndarray:
        """A logical array as a C-contiguous array in physical order."""
        array = np.asarray(logical, self.dtype.np).reshape(self.shape)
        return np.ascontiguousarray(array.transpose(self.layout)).reshape(self.dims)


_Record = TypeVar("_Record", "PlanTensor", "Step")


def changed(record: _Record, **fields: Any) -> _Record:
    """`dataclasses.replace` of one of many thousands: without working out again what the others
    hold."""
    made = object.__new__(type(record))
    made.__dict__.update(record.__dict__, **fields)
    return made


@dataclass(eq=False)
class Step:
    """One kernel call. `inputs` and `outputs` are tensor indices, −1 for an absent input.

    `attrs` are the operator's attributes in physical terms, constant inputs included.
    """

    index: int
    name: str
    op: str
    kernel: str
    why: str
    backend: str  # "cpu" | "opencl" | "reference" | the name of an accelerator
    inputs: list[int]
    outputs: list[int]
    attrs: dict[str, Any]
    sources: tuple[str, ...] = ()
    node: Node | None = None
    macs: int = 0
    flops: int = 0
    bytes: int = 0
    in_place: bool = False
    #: The batch over whose samples the step takes turns with its neighbors (turns.py); 0: none.
    samples: int = 0
    #: The band of steps that take turns over rows of images (bands.py); 0: none.
    band: int = 0


@dataclass
class Plan:
    """Steps in order for one backend and one set of input shapes.

    `tensor_of` finds the tensor of a graph value by name: where a value has several layouts it is
    the one its producer wrote. Graph outputs are in row-major tensors of role "output".
    """

    backend: str
    tensors: list[PlanTensor] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    tensor_of: dict[str, int] = field(default_factory=dict)
    arena_bytes: int = 0
    #: Where what is kept during a turn begins in the arena (turns.py), with room for one sample.
    kept_at: int = 0
    #: The arena where a turn takes the whole batch (`PlanTensor.whole`).
    whole_bytes: int = 0
    notes: list[str] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    #: What accelerators compute float values in, and what the planner expects of their sub-graphs:
    #: backend, number of nodes, estimated ms.
    precision: str = "fp32"
    subgraphs: list[tuple[str, int, float]] = field(default_factory=list)

    def root(self, index: int) -> PlanTensor:
        """The tensor that owns the storage of `index`."""
        tensor = self.tensors[index]
        while tensor.alias_of is not None:
            tensor = self.tensors[tensor.alias_of]
        return tensor

    def weights(self) -> Iterator[PlanTensor]:
        return (t for t in self.tensors if t.role == "weight")

    @property
    def weight_bytes(self) -> int:
        return sum(t.nbytes for t in self.weights())

    def segments(self, together: Collection[str] = ()) -> list[tuple[str, list[Step]]]:
        """Runs of consecutive steps on one backend; those on backends that work `together` are one
        run, under the name of the first that is not the CPU. An accelerator gets nodes: where one
        reads a view of what an earlier one makes, another run begins."""
        out: list[tuple[str, list[Step]]] = []
        for step in self.steps:
            last = out[-1][0] if out else ""
            alike = last == step.backend and not (out and self._reads_a_view_of(out[-1][1], step))
            if alike or {last, step.backend} <= {*together}:
                out[-1][1].append(step)
                if last == "cpu":
                    out[-1] = step.backend, out[-1][1]
            else:
                out.append((step.backend, [step]))
        return out

    def _reads_a_view_of(self, steps: Sequence[Step], step: Step) -> bool:
        """Whether a step of an accelerator reads memory of theirs as a value that none of them
        makes."""
        views = [i for i in step.inputs if i >= 0 and self.tensors[i].alias_of is not None]
        if step.backend in OWN_BACKENDS or not views:
            return False
        made = {i for s in steps for i in s.outputs if i >= 0}
        roots = {self.root(i).index for i in made}
        return any(i not in made and self.root(i).index in roots for i in views)


@dataclass
class Placement:
    """Why a node runs where it runs."""

    backend: str
    kernel: str
    why: str


def logical_dims(value: Value) -> tuple[int, ...]:
    """Static dimensions of a value of a specialised graph."""
    return tuple(int(d) for d in value.shape or ())  # type: ignore[arg-type]
