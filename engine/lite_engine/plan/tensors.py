"""Where each value lies: its tensors by space, layout and type, and the steps that bring it."""

from __future__ import annotations

from typing import Any

import numpy as np
from lite_messages import tr

from ..ir import DType, Value
from . import layout as lay
from .beyond_half import LARGEST_HALF
from .model import Layout, Plan, PlanTensor, Step, logical_dims, row_major

Key = tuple[str, Layout, DType]  # space, layout, element type
HOST, DEVICE = "host", "opencl"


class TensorPool:
    """Makes the tensors of a plan. `want` answers with a value's tensor in the form asked for, and
    adds Copy, Cast and Relayout steps where it has to."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        #: tensors of each value (by id), by where and how they lie
        self.tensors: dict[int, dict[Key, int]] = {}
        self.made: set[int] = set()
        self._names: set[str] = set()

    def new(
        self,
        name: str,
        value: Value,
        layout: Layout,
        role: str,
        dtype: DType | None = None,
        **more: Any,
    ) -> int:
        dims = lay.physical_dims(logical_dims(value), layout)
        return self.add(PlanTensor(0, name, dtype or value.type.dtype, dims, layout, role, **more))

    def add(self, tensor: PlanTensor) -> int:
        tensor.index = len(self.plan.tensors)
        if tensor.name in self._names:
            tensor.name = f"{tensor.name}#{tensor.index}"
        self._names.add(tensor.name)
        self.plan.tensors.append(tensor)
        return tensor.index

    def register(self, value: Value, space: str, index: int) -> int:
        tensor = self.plan.tensors[index]
        tensor.space = space
        self.tensors.setdefault(id(value), {})[(space, tensor.layout, tensor.dtype)] = index
        self.plan.tensor_of.setdefault(value.name, index)
        return index

    def alias(self, name: str, of: int, dims: tuple[int, ...], layout: Layout) -> int:
        old = self.plan.tensors[of]
        data = None if old.data is None else old.data.reshape(dims)
        return self.add(
            PlanTensor(0, name, old.dtype, dims, layout, old.role, data=data, alias_of=of)
        )

    def natural(self, value: Value) -> Layout:
        """The layout that a value already has (row-major when it is not made yet)."""
        for _, layout, _ in self.tensors.get(id(value), ()):
            return layout
        return row_major(len(value.shape or ()))

    def want(self, value: Value, space: str, layout: Layout, dtype: DType) -> int:
        """The tensor of a value in that place and form; adds Copy, Cast, Relayout steps to get
        it."""
        have = self.tensors.setdefault(id(value), {})
        if (space, layout, dtype) in have:
            return have[space, layout, dtype]
        shape = logical_dims(value)
        if value.const is not None:
            return self._constant(value, space, layout, dtype)
        for (where, other, kind), index in have.items():
            if where == space and kind == dtype and lay.same_bytes(shape, other, layout):
                dims = lay.physical_dims(shape, layout)
                return self.register(value, space, self.alias(value.name, index, dims, layout))
        return self._convert(value, space, layout, dtype)

    def _constant(self, value: Value, space: str, layout: Layout, dtype: DType) -> int:
        assert value.const is not None
        array = value.const if dtype == value.dtype else _converted(value.const, dtype)
        index = self.new(value.name, value, layout, "weight", dtype)
        tensor = self.plan.tensors[index]
        tensor.data = tensor.to_physical(array)
        tensor.integers = value.integers
        return self.register(value, space, index)

    def _convert(self, value: Value, space: str, layout: Layout, dtype: DType) -> int:
        have = self.tensors[id(value)]
        source = next((k for k in have if k[0] == space and k[2] == dtype), None)
        source = source or next((k for k in have if k[0] == space), None) or next(iter(have))
        where, at, kind = source
        index = have[source]
        if where == DEVICE and space == HOST and kind != dtype:
            index = self._cast(value, index, at, kind, dtype, where)
            kind = dtype
        if (
            where == DEVICE
            and space == HOST
            and not lay.same_bytes(logical_dims(value), at, layout)
        ):
            index = self._relayout(value, index, layout, kind, where)
            at = layout
        if where != space:
            index = self._move(
                value,
                "Copy",
                index,
                at,
                kind,
                space,
                tr("to the OpenCL device") if space == DEVICE else tr("from the OpenCL device"),
            )
        if kind != dtype:
            index = self._cast(value, index, at, kind, dtype, space)
        tensor = self.plan.tensors[index]
        shape = logical_dims(value)
        if tensor.layout != layout and lay.same_bytes(shape, tensor.layout, layout):
            dims = lay.physical_dims(shape, layout)
            return self.register(value, space, self.alias(value.name, index, dims, layout))
        if tensor.layout != layout:
            index = self._relayout(value, index, layout, dtype, space)
        return index

    def _relayout(self, value: Value, source: int, layout: Layout, dtype: DType, space: str) -> int:
        have = self.plan.tensors[source].layout
        perm = [have.index(axis) for axis in layout]
        why = tr("memory order {before} to {after}", before=_order(have), after=_order(layout))
        return self._move(value, "Relayout", source, layout, dtype, space, why, perm=perm)

    def _cast(
        self, value: Value, source: int, layout: Layout, kind: DType, dtype: DType, space: str
    ) -> int:
        """Finite numbers stay finite in a half: a mask of -1e9 hides, but is not -inf."""
        finite = {"finite": 1} if dtype is DType.F16 else {}
        why = f"{kind} to {dtype}"
        return self._move(value, "Cast", source, layout, dtype, space, why, to=str(dtype), **finite)

    def _move(
        self,
        value: Value,
        op: str,
        source: int,
        layout: Layout,
        dtype: DType,
        space: str,
        why: str,
        **attrs: Any,
    ) -> int:
        kernel = {"Copy": "copy", "Cast": "cast", "Relayout": "copy_relayout"}[op]
        devices = (space, self.plan.tensors[source].space)
        backend = "opencl" if DEVICE in devices else self._host_backend()
        index = self.new(f"{value.name}:{op.lower()}", value, layout, "arena", dtype)
        self.emit(Step(0, f"{op} {value.name}", op, kernel, why, backend, [source], [index], attrs))
        return self.register(value, space, index)

    def _host_backend(self) -> str:
        return "reference" if self.plan.backend == "reference" else "cpu"

    def emit(self, step: Step) -> None:
        step.index = len(self.plan.steps)
        tensors = self.plan.tensors
        step.bytes = step.bytes or sum(
            tensors[i].nbytes for i in (*step.inputs, *step.outputs) if i >= 0
        )
        self.made.update(step.outputs)
        self.plan.steps.append(step)


def _order(layout: Layout) -> str:
    letters = {3: "NCW", 4: "NCHW", 5: "NCDHW"}.get(len(layout))
    return "".join(letters[i] for i in layout) if letters else str(list(layout))


def _converted(array: np.ndarray, dtype: DType) -> np.ndarray:
    """A constant in another type; in fp16, finite numbers stay finite."""
    if dtype is DType.F16 and array.dtype.kind == "f":
        beyond = np.abs(array) > LARGEST_HALF
        if beyond.any():
            nearest = np.copysign(LARGEST_HALF, array)
            array = np.where(beyond & np.isfinite(array), nearest, array)
    return array.astype(dtype.np)
