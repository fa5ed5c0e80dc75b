"""Programs of one step, for kernel tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from lite_engine.backends.cpu.native import NativeProgram
from lite_engine.backends.cpu.native import isas as native_isas
from lite_engine.errors import BackendUnavailableError
from lite_engine.ir import DType, Node, Value
from lite_engine.ir.bfloat16 import f32_to_bf16
from lite_engine.ops import get_op
from lite_engine.plan.memory import assign_offsets
from lite_engine.plan.model import Plan, PlanTensor, Step, row_major
from lite_engine.plan.program import WeightTable, encode


class Bf16(np.ndarray):
    """bf16 as its bits, uint16."""


def as_bf16(x: np.ndarray) -> np.ndarray:
    return f32_to_bf16(x).view(Bf16)


def one_step_plan(
    op: str,
    kernel: str,
    inputs: Sequence[np.ndarray | None],
    outputs: Sequence[np.ndarray],
    attrs: dict[str, Any] | None = None,
    constant: Sequence[int] = (),
) -> Plan:
    """A plan with one step. `outputs` give shapes and types; `constant` lists the weights."""
    plan = Plan("cpu")

    def add(name: str, array: np.ndarray, role: str) -> int:
        index = len(plan.tensors)
        plan.tensors.append(
            PlanTensor(
                index,
                name,
                DType.BF16 if isinstance(array, Bf16) else DType.of(array),
                array.shape,
                row_major(array.ndim),
                role,
                data=np.ascontiguousarray(array) if role == "weight" else None,
            )
        )
        return index

    ports = []
    for i, array in enumerate(inputs):
        if array is None:
            ports.append(-1)
            continue
        role = "weight" if i in constant else "input"
        ports.append(add(f"x{i}", array, role))
        if role == "input":
            plan.inputs.append(ports[-1])
    results = [add(f"y{i}", array, "output") for i, array in enumerate(outputs)]
    plan.outputs.extend(results)
    plan.steps.append(Step(0, f"the_{op}", op, kernel, "test", "cpu", ports, results, attrs or {}))
    assign_offsets(plan)
    return plan


def load(plan: Plan, **options: Any) -> NativeProgram:
    table = WeightTable()
    data = encode(plan, table)
    return NativeProgram(data, table.blobs, **options)


def run_step(
    op: str,
    kernel: str,
    inputs: Sequence[np.ndarray | None],
    outputs: Sequence[np.ndarray],
    attrs: dict[str, Any] | None = None,
    constant: Sequence[int] = (),
    **options: Any,
) -> list[np.ndarray]:
    """Outputs of one kernel call on real inputs."""
    plan = one_step_plan(op, kernel, inputs, outputs, attrs, constant)
    fed = [a for i, a in enumerate(inputs) if a is not None and i not in constant]
    return load(plan, **options).run(fed)


def isas() -> tuple[str, ...]:
    """Instruction sets to test; none when the library is not built."""
    try:
        return native_isas()
    except BackendUnavailableError:
        return ()


def reference(
    op: str, inputs: Sequence[np.ndarray | None], attrs: dict[str, Any], n_outputs: int = 1
) -> list[np.ndarray]:
    """What the operator's NumPy definition gives, in logical order."""
    found = get_op(op)
    values = [
        None if a is None else Value(f"x{i}", DType.of(a), a.shape) for i, a in enumerate(inputs)
    ]
    first = next(v for v in values if v is not None)
    node = Node(
        op, values, [Value(f"y{i}", first.dtype, None) for i in range(n_outputs)], attrs, name=op
    )
    return found.run(node, list(inputs))


def to_channels_last(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(array, 1, -1)) if array.ndim > 2 else array


@dataclass
class Case:
    """One kernel call with what it should give, in physical order."""

    op: str
    kernel: str
    inputs: list[np.ndarray | None]
    wanted: list[np.ndarray]
    attrs: dict[str, Any]
    constant: Sequence[int]
    tolerance: float

    def plan(self, *, all_constant: bool = False) -> Plan:
        constant = range(len(self.inputs)) if all_constant else self.constant
        return one_step_plan(self.op, self.kernel, self.inputs, self.wanted, self.attrs, constant)


def make_case(
    op: str,
    kernel: str,
    inputs: Sequence[np.ndarray | None],
    attrs: dict[str, Any] | None = None,
    *,
    channels_last: Sequence[int] = (),
    constant: Sequence[int] = (),
    as_attrs: dict[str, int] | None = None,
    tolerance: float = 2e-6,
    n_outputs: int = 1,
) -> Case:
    """A case from logical inputs.

    `channels_last` lists inputs that the kernel sees channels-last (its output is then too);
    `as_attrs` maps attribute names to inputs that the kernel gets as attributes.
    """
    attrs, as_attrs = attrs or {}, as_attrs or {}
    wanted = [np.asarray(w) for w in reference(op, inputs, attrs, n_outputs)]
    if channels_last:
        wanted = [to_channels_last(w) for w in wanted]
    given = [
        to_channels_last(a) if i in channels_last and a is not None else a
        for i, a in enumerate(inputs)
    ]
    native_attrs = {**get_op(op).attrs, **attrs}
    for name, index in as_attrs.items():
        value = given[index]
        flat = None if value is None else value.ravel().tolist()
        if flat and channels_last and name in get_op(op).per_axis_attrs:
            flat = [flat[0], *flat[2:], flat[1]]
        native_attrs[name] = flat
        given[index] = None
    while given and given[-1] is None:
        given.pop()
    return Case(op, kernel, given, wanted, native_attrs, constant, tolerance)


def check(
    *args: Any, isas: Sequence[str | None] = (None,), threads: Sequence[int] = (1, 2), **more: Any
) -> None:
    """The case of these arguments agrees on every instruction set and thread count."""
    case = make_case(*args, **more)
    for isa in isas:
        for count in threads:
            got = run_step(
                case.op,
                case.kernel,
                case.inputs,
                case.wanted,
                case.attrs,
                case.constant,
                max_isa=isa,
                threads=count,
            )
            for g, w in zip(got, case.wanted):
                assert_close(g, w, case.tolerance, f"{case.kernel} {isa} {count} threads")


def assert_close(got: np.ndarray, wanted: np.ndarray, tolerance: float, what: str) -> None:
    """Exact for integers; for floats within `tolerance` of the output's range, NaN where NaN."""
    assert got.shape == wanted.shape and got.dtype == wanted.dtype, (
        f"{what}: {got.shape} {got.dtype}"
    )
    if wanted.dtype.kind != "f":
        assert np.array_equal(got, wanted), f"{what}: {np.count_nonzero(got != wanted)} differ"
        return
    with np.errstate(invalid="ignore"):  # signalling NaN
        a, b = got.astype(np.float64), wanted.astype(np.float64)
    assert np.array_equal(np.isnan(a), np.isnan(b)), f"{what}: NaN in other places"
    same = (a == b) | np.isnan(b)
    finite = b[np.isfinite(b)]
    scale = max(1.0, float(np.abs(finite).max())) if finite.size else 1.0
    with np.errstate(invalid="ignore"):
        error = np.where(same, 0, np.abs(a - b) / scale)
    worst = int(np.argmax(error)) if error.size else 0
    assert error.size == 0 or error.flat[worst] <= tolerance, (
        f"{what}: element {np.unravel_index(worst, b.shape)} is {a.flat[worst]!r}, "
        f"wanted {b.flat[worst]!r}"
    )
