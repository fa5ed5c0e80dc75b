"""A plan with OpenCL steps → the bytes that the native runtime executes.

Format, version 2, or 3 with several ways to compute a step (read by
`native/src/opencl/device_plan.cc`). Little-endian, packed:

    header    char magic[4] "LCLP"; u32 version; u8 device_class, lanes, needs, 0;
              u32 columns, rows, strings_bytes, num_texts, num_buffers, num_places, num_constants,
              num_scratch, num_images, num_launches, num_steps, program_bytes; version 3: num_ways
    strings   strings_bytes bytes of 0-terminated UTF-8; a name below is its offset here
    text      u8 digest[32] of the files that it consists of (programs.parts_of) with line feeds
              between them: SHA-256, BLAKE2b where a custom operator brings the text
    buffer    u64 bytes
    place     u32 tensor, buffer: a tensor of the program that owns storage on the device
    constant  u32 weight; u8 dtype, rank, num_ops, 0; u32 dims[rank]; num_ops times: u8 kind, count,
              0, 0; u32 values[count] (constants.py has the operations; kind is their number)
    scratch   u64 bytes
    image     u32 width, height; u8 dtype, 0, 0, 0; i32 constant (-1: scratch)
    launch    u32 text, options, kernel, dimensions; u32 grid[3], group[3]; u32 num_args;
              u8 kind[num_args], zeros up to a multiple of 4; u32 value[num_args]
    step      u32 step (of the program), action (0 launches, 1 upload, 2 download), first launch,
              count; version 2: the kernel of the CPU that may take the step over (a name; 2^32 − 1:
              none), and 1 where it computes in float32 what the device has in fp16
    way       u32 row (of the steps), size, name (names), first launch, count: what computes a step,
              in the order of the rows; the first of each row is what the step itself names
    program   program_bytes bytes: the whole plan (plan/program.py), in which tensors on the device
              have the role 5, no place in the arena, and steps on the device the name of its kernel

An argument's value is, by kind: 1 the number of a tensor, 2 of a constant, 3 of a scratch buffer,
4 of an image; 5 an int, 6 a float, 7 a uchar, 8 a ushort, 9 a uint, 10 a ulong below 2^32 by its
bits. Constants refer to the weights that the program refers to. A port of the program that has a
place is moved between host and device when a run starts or ends.

The fastest of a step's ways is measured by `lite_run --tune` and kept as in tuning.py, under the
size and the name that `Target.pick` knows them by. Where a kernel has one way and leaves the size
of its groups open, the sizes are the ways.

`device_class` is the place in DEVICE_CLASSES, `lanes` those of the profile (profile.py), `needs`
the bits of NEEDS; images are at most `columns` by `rows` texels.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Hashable
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from lite_messages import tr

from ...errors import ShapeError
from ...ir import DType
from ...plan import Plan, PlanTensor, Step, assign_offsets
from ...plan.model import changed
from ...plan.program import DTYPE_CODES, Strings, WeightTable, encode, with_table
from ...plan.select import kernels_for
from .constants import Constant
from .kinds import Named, Repeatable, kind_of, ports_of, repeatable
from .launch import Image, Launch, Scratch, grouped
from .programs import custom_files, parts_of
from .registry import Target
from .sharing import share
from .stored_ways import StoredWay, ways_of

VERSION, WITH_WAYS = 2, 3
DEVICE_CLASSES = ("cpu", "gpu", "nvidia", "mali", "adreno")
#: What of a device a program may need: half arithmetic, NVIDIA's matrix units, and the extensions
#: with dot products of four 8-bit integers (`DeviceProfile.dot`).
NEEDS = {"fp16": 1, "matrix_units": 2, "khr": 4, "arm": 8, "arm_add": 16, "qcom": 32}
_TENSOR, _CONSTANT, _SCRATCH, _IMAGE, _INT, _FLOAT = 1, 2, 3, 4, 5, 6
_SCALARS = {"uint8": 7, "uint16": 8, "uint32": 9, "uint64": 10}
_LAUNCHES, _UPLOAD, _DOWNLOAD = 0, 1, 2
_NO_KERNEL = 2**32 - 1


class Shared:
    """What the programs of one plan and table have in common, whatever the kind of device: worked
    out once."""

    def __init__(self, plan: Plan, table: WeightTable) -> None:
        self.plan, self.table = plan, table
        self._program = b""
        self._kernels: dict[int, str | None] = {}
        self._kinds: dict[int, int | None] = {}
        self._numbers: dict[Hashable, int] = {}
        self._ports: dict[int, list[PlanTensor | None]] = {}

    @cached_property
    def owners(self) -> list[int]:
        """Of each tensor, the one that owns its storage."""
        return [self.plan.root(i).index for i in range(len(self.plan.tensors))]

    @cached_property
    def buffers(self) -> tuple[dict[int, int], list[int]]:
        return share(self.plan)

    def program(self) -> bytes:
        """The whole plan, for the weights that the table holds now."""
        self._program = self._program or encode(on_device(self.plan), self.table)
        return with_table(self._program, self.table)

    def cpu_kernel(self, step: Step) -> str | None:
        if step.index not in self._kernels:
            self._kernels[step.index] = cpu_kernel(step)
        return self._kernels[step.index]

    def kind(self, step: Step) -> int | None:
        """Number of the step's kind, which is quick to look up, None where it has none."""
        if step.index not in self._kinds:
            kind, numbers = kind_of(step, self.plan), self._numbers
            number = None if kind is None else numbers.setdefault(kind, len(numbers))
            self._kinds[step.index] = number
        return self._kinds[step.index]

    def ports(self, step: Step) -> list[PlanTensor | None]:
        if step.index not in self._ports:
            self._ports[step.index] = ports_of(step, self.plan)
        return self._ports[step.index]


def encode_opencl(
    plan: Plan, target: Target, table: WeightTable, *,
    fallback: bool = True, ways: int = 1, shared: Shared | None = None,
) -> bytes:  # fmt: skip
    """A plan whose steps all run on the CPU or on OpenCL, for one kind of device; its weights go
    into `table`. With `fallback` a step that the device refuses runs on the CPU, without it the
    whole program is refused. At most `ways` ways to compute a step are in the program. `shared` is
    of this plan and table, for who makes programs for several kinds.

    Raises ShapeError for a plan that the format cannot hold, UnsupportedOperatorError for a step
    that this kind of device cannot run.
    """
    try:
        return _Writer(shared or Shared(plan, table), target, fallback, ways).written()
    except (struct.error, OverflowError):
        raise ShapeError(tr("a size of this model is too large for an OpenCL program")) from None


def on_device(plan: Plan) -> Plan:
    """The plan as the runtime lays it out: what lies on the device takes no place in the arena."""
    tensors = [changed(t) for t in plan.tensors]
    for tensor in tensors:
        if tensor.role == "arena" and tensor.alias_of is None and tensor.space == "opencl":
            tensor.role, tensor.offset = "device", 0
    laid = replace(plan, tensors=tensors)
    assign_offsets(laid)
    return laid


@lru_cache
def text_digest(file: str) -> bytes:
    """Names the kernels of FILE.cl. A custom operator's has another kind of hash, so that its text
    never passes for one of the runtime's."""
    whole = b"\n".join(part.read_bytes() for part in parts_of(file))
    if file in custom_files:
        return hashlib.blake2b(whole, digest_size=32).digest()
    return hashlib.sha256(whole).digest()


def custom_texts(plan: Plan) -> list[Path]:
    """The files of custom operators' kernels that a program of this plan needs; nothing else brings
    them to a runtime."""
    kernels = dict.fromkeys(s.kernel for s in plan.steps if s.backend == "opencl")
    return [custom_files[kernel] for kernel in kernels if kernel in custom_files]


def cpu_kernel(step: Step) -> str | None:
    """The kernel that runs a step of the device on the CPU: the steps of both are the same."""
    if step.node is None:  # Cast and Relayout of the plan's own
        return step.kernel
    types = [None if v is None or v.dtype is None else v.type for v in step.node.inputs]
    usable, _ = kernels_for(step.node, types, "cpu", DType.F32, best=True)
    return usable[0].name if usable else None


class _Table:
    """Rows that others refer to by number, equal ones once."""

    def __init__(self) -> None:
        self.rows: list[bytes] = []
        self._known: dict[bytes, int] = {}

    def add(self, row: bytes) -> int:
        if row not in self._known:
            self._known[row] = len(self.rows)
            self.rows.append(row)
        return self._known[row]


class _Writer:
    def __init__(self, shared: Shared, target: Target, fallback: bool, most: int) -> None:
        self.shared, self.target = shared, target
        self.plan, self.weights = shared.plan, shared.table
        self.fallback, self.most = fallback, most
        self.strings = Strings()
        self.texts, self.constants, self.images = _Table(), _Table(), _Table()
        self.scratch: list[int] = []
        self.launches: list[bytes] = []
        self.steps: list[bytes] = []
        self.ways: list[bytes] = []
        self.columns = self.rows = 0
        self.needs: set[str] = set()
        self.known: dict[int | None, Repeatable | None] = {}  # by kind of step
        self.used: set[int] = set()  # storage owners that launches and copies touch

    def written(self) -> bytes:
        for step in self.plan.steps:
            if step.backend == "opencl":
                self._step(step)
        numbers, sizes = self.shared.buffers
        kept = {t: n for t, n in numbers.items() if t in self.used}
        dense = {n: i for i, n in enumerate(sorted(set(kept.values())))}
        program = self.shared.program()
        profile = self.target.profile
        has = (profile.fp16, profile.matrix_units)
        self.needs |= {name for name, needed in zip(NEEDS, has, strict=False) if needed}
        needs = sum(NEEDS[name] for name in self.needs)
        tables = (
            self.texts.rows,
            [struct.pack("<Q", sizes[n]) for n in dense],
            [struct.pack("<2I", t, dense[n]) for t, n in sorted(kept.items())],
            self.constants.rows,
            [struct.pack("<Q", n) for n in self.scratch],
            self.images.rows,
            self.launches,
            self.steps,
            self.ways,
        )
        header = b"LCLP" + struct.pack(
            "<I4B12I",
            WITH_WAYS if self.ways else VERSION,
            DEVICE_CLASSES.index(profile.device_class),
            profile.lanes,
            needs,
            0,
            self.columns,
            self.rows,
            len(self.strings.data),
            *map(len, tables[:-1]),
            len(program),
        )
        header += struct.pack("<I", len(self.ways)) if self.ways else b""
        rows = b"".join(row for rows in tables for row in rows)
        return b"".join((header, bytes(self.strings.data), rows, program))

    def _step(self, step: Step) -> None:
        first, count, action = len(self.launches), 0, _LAUNCHES
        host, floats = _NO_KERNEL, False
        if step.op == "Copy":
            to_host = self.plan.tensors[step.outputs[0]].space == "host"
            action = _DOWNLOAD if to_host else _UPLOAD
            device = step.inputs[0] if to_host else step.outputs[0]
            self.used.add(self.shared.owners[device])
        else:
            # What nothing reads still has a place, so that it can be tapped.
            self.used |= {self.shared.owners[i] for i in step.outputs if i >= 0}
            count = self._repeated(step) or self._made(step)
            if self.fallback and (kernel := self.shared.cpu_kernel(step)):
                host = self.strings.add(kernel)
                # Moves of bytes take any type; what computes on the CPU does so in float32.
                floats = step.node is not None
        self.steps.append(struct.pack("<6I", step.index, action, first, count, host, floats))

    def _repeated(self, step: Step) -> int:
        """Writes the launches of a step after those of an earlier one of its kind; how many they
        are, 0 where none was."""
        known = self.known.get(self._kind(step))
        ports = self.shared.ports(step)
        if known is None or not known.fits(ports):
            return 0
        rows = [*map(bytearray, known.rows)]
        for argument in known.named:
            tensor = ports[argument.port]
            assert tensor is not None, "ports of a kind are alike"
            value = self._named(argument.arg, tensor)
            struct.pack_into("<I", rows[argument.launch], argument.place, value)
        self.launches += map(bytes, rows)
        return len(rows)

    def _kind(self, step: Step) -> int | None:
        # What fits into a program with several ways depends on what it has already.
        return self.shared.kind(step) if self.most == 1 else None

    def _named(self, arg: Named, tensor: PlanTensor) -> int:
        """The value of an argument like this one, for another tensor."""
        if isinstance(arg, PlanTensor):
            self.used.add(self.shared.owners[tensor.index])
            return tensor.index
        assert tensor.data is not None, "ports of a kind are alike"
        if isinstance(arg, Image):
            return self._image(arg, tensor.data)
        return self._constant(arg, tensor.data)

    def _made(self, step: Step) -> int:
        """Makes the launches of a step, in all its ways; how many its own are."""
        first = len(self.launches)
        preferred, *others = ways_of(step, self.plan, self.target, self.most)
        self._launches(preferred)
        count = len(self.launches) - first
        if others:
            self._way(preferred, first)
        for way in others:
            at = len(self.launches)
            if self._asks_no_more(way):
                self._launches(way)
                self._way(way, at)
        if (kind := self._kind(step)) is not None and kind not in self.known:
            ports, rows = self.shared.ports(step), self.launches[first:]
            self.known[kind] = repeatable(ports, preferred.launches, rows)
        return count

    def _launches(self, way: StoredWay) -> None:
        scratch: dict[int, int] = {}
        self.launches += [self._launch(launch, scratch) for launch in way.launches]

    def _way(self, way: StoredWay, first: int) -> None:
        """Of the step that is written now, whose launches these are."""
        size, name = map(self.strings.add, (way.size, way.name))
        count = len(self.launches) - first
        self.ways.append(struct.pack("<5I", len(self.steps), size, name, first, count))

    def _asks_no_more(self, way: StoredWay) -> bool:
        """Whether a device that takes the program's own ways takes this one, too."""
        images = [a for x in way.launches for a in x.args if isinstance(a, Image)]
        small = all(i.width <= self.columns and i.height <= self.rows for i in images)
        return small and all(self._dot(x) <= self.needs for x in way.launches)

    def _dot(self, launch: Launch) -> set[str]:
        """The extension with dot products that a launch needs."""
        dot = self.target.profile.dot
        named = dot in NEEDS and f"#define DOT_{dot.upper()}" in launch.options.splitlines()
        return {dot} if named else set()

    def _launch(self, launch: Launch, scratch: dict[int, int]) -> bytes:
        self.needs |= self._dot(launch)
        grid, group = launch.global_size, launch.local_size
        if group is None:
            grid, group = grouped(grid)
        args = [self._argument(arg, scratch) for arg in launch.args]
        kinds = bytes(kind for kind, _ in args)
        return b"".join((
            struct.pack(
                "<11I",
                self.texts.add(text_digest(launch.file)),
                self.strings.add(launch.options),
                self.strings.add(launch.kernel),
                len(grid),
                *(*grid, 1, 1)[:3],
                *(*group, 1, 1)[:3],
                len(args),
            ),
            kinds + bytes(-len(kinds) % 4),
            b"".join(value for _, value in args),
        ))  # fmt: skip

    def _argument(self, arg: Any, scratch: dict[int, int]) -> tuple[int, bytes]:
        if type(arg) is int:  # as most are
            return _INT, struct.pack("<i", arg)
        if isinstance(arg, PlanTensor):
            self.used.add(self.shared.owners[arg.index])
            return _TENSOR, struct.pack("<I", arg.index)
        if isinstance(arg, Constant):
            return _CONSTANT, struct.pack("<I", self._constant(arg))
        if isinstance(arg, Scratch):
            return _SCRATCH, struct.pack("<I", self._shared(arg, scratch))
        if isinstance(arg, Image):
            return _IMAGE, struct.pack("<I", self._image(arg))
        if isinstance(arg, float):
            return _FLOAT, struct.pack("<f", arg)
        if type(arg).__name__ in _SCALARS:
            return _SCALARS[type(arg).__name__], struct.pack("<I", int(arg))
        return _INT, struct.pack("<i", int(arg))

    def _constant(self, constant: Constant, base: np.ndarray | None = None) -> int:
        """`base` is an array in place of its own."""
        weight = self.weights.add(np.ascontiguousarray(constant.base if base is None else base))
        return self.constants.add(struct.pack("<I", weight) + constant.recipe)

    def _shared(self, scratch: Scratch, known: dict[int, int]) -> int:
        """A step's first scratch is every step's first one: they run one after the other."""
        number = known.setdefault(id(scratch), len(known))
        if number == len(self.scratch):
            self.scratch.append(0)
        self.scratch[number] = max(self.scratch[number], scratch.nbytes, 4)
        return number

    def _image(self, image: Image, base: np.ndarray | None = None) -> int:
        constant = -1 if image.data is None else self._constant(image.data, base)
        self.columns, self.rows = max(self.columns, image.width), max(self.rows, image.height)
        dtype = DTYPE_CODES[image.dtype]
        return self.images.add(
            struct.pack("<2I4Bi", image.width, image.height, dtype, 0, 0, 0, constant)
        )
