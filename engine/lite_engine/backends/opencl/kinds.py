"""Kinds of steps: those of one kind have the same launches but for the tensors that these name.

A network of thousands of layers repeats a few dozen kinds, and finding the kind of a step costs
less than making its launches. A builder reads of a step its operator, kernel and attributes; of its
tensors, how and where they lie; and contents of constants, but not of floats that it hands on to a
launch. All that is compared here.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...ir import DType
from ...plan import Plan, PlanTensor, Step
from .constants import Constant
from .launch import Image, Launch

_FLOATS = (DType.F32, DType.F16)


def kind_of(step: Step, plan: Plan) -> Hashable:
    """Equal for steps of one kind, as far as that follows from all but the contents of constants.
    None for a step of a kind of its own."""
    ports = ports_of(step, plan)
    if any(t is not None and t.integers is not None for t in ports):
        return None  # their scales may decide
    first: dict[int, int] = {}  # by identity: which ports share a tensor, its memory or contents
    lie = tuple(None if t is None else _port(t, plan, first) for t in ports)
    return step.op, step.kernel, len(step.inputs), _frozen(step.attrs), lie


def ports_of(step: Step, plan: Plan) -> list[PlanTensor | None]:
    return [plan.tensors[i] if i >= 0 else None for i in (*step.inputs, *step.outputs)]


def _port(tensor: PlanTensor, plan: Plan, first: dict[int, int]) -> Hashable:
    root, start = tensor, 0
    while root.alias_of is not None:
        start += root.alias_offset
        root = plan.tensors[root.alias_of]
    shared = [first.setdefault(id(x), len(first)) for x in (tensor, root, tensor.data)]
    data = None if tensor.data is None else (tensor.data.dtype.str, tensor.data.shape)
    return (
        tensor.dtype, tensor.dims, tensor.layout, tensor.pitch, tensor.halo, tensor.alias_offset,
        start, tensor.role, tensor.space, tensor.short, data, *shared,
    )  # fmt: skip


def _frozen(value: Any) -> Hashable:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, dict):
        return tuple((key, _frozen(one)) for key, one in value.items())
    if isinstance(value, (list, tuple)):
        return type(value), tuple(map(_frozen, value))
    return type(value), repr(value)


#: What an argument is that names a tensor of its step.
Named = PlanTensor | Constant | Image


class Argument(NamedTuple):
    """An argument that names a port of its step: where its value is in the row of its launch,
    counted from the end."""

    launch: int
    place: int
    port: int
    arg: Named


@dataclass
class Repeatable:
    """What the launches of a step are for another of its kind: `rows` as they are written, in which
    the values of `named` are to be replaced. A builder may have read the contents of the ports
    `read`, which were these."""

    rows: list[bytes]
    named: list[Argument]
    read: list[tuple[int, np.ndarray]]

    def fits(self, ports: Sequence[PlanTensor | None]) -> bool:
        """Whether another step of the kind, with these ports, has the same launches."""
        return all(_same(ports[port], before) for port, before in self.read)


def repeatable(
    ports: Sequence[PlanTensor | None], launches: Sequence[Launch], rows: list[bytes]
) -> Repeatable | None:
    """None where a launch has a tensor of another step, or a constant that was worked out."""
    named: list[Argument] = []
    for i, launch in enumerate(launches):
        for position, arg in enumerate(launch.args):
            of = arg.data if isinstance(arg, Image) else arg
            if not isinstance(of, (PlanTensor, Constant)):
                continue
            if isinstance(of, Constant) and of.base.size == 0:  # zeros alone
                continue
            port = _port_of(of, ports)
            if port is None:
                return None
            named.append(Argument(i, 4 * (position - len(launch.args)), port, arg))
    handed = {a.port for a in named}
    read = [
        (port, t.data)
        for port, t in enumerate(ports)
        if t is not None and t.data is not None and (port not in handed or t.dtype not in _FLOATS)
    ]
    return Repeatable(rows, named, read)


def _port_of(arg: PlanTensor | Constant, ports: Sequence[PlanTensor | None]) -> int | None:
    for port, tensor in enumerate(ports):
        if tensor is not None and (
            tensor is arg or (isinstance(arg, Constant) and tensor.data is arg.base)
        ):
            return port
    return None


def _same(tensor: PlanTensor | None, data: np.ndarray) -> bool:
    if tensor is None or tensor.data is None:
        return False
    return tensor.data is data or tensor.data.tobytes() == data.tobytes()
