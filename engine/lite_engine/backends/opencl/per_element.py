"""Launches of kernels that have no builder of their own: a work-item makes one element of y.

`op.kernel("opencl", "name")` with a `kernels/name.cl` is enough for them. The kernel `name` gets
the operator's inputs in their order, without those that are absent or attributes, then its outputs
and `int n`, the elements of the first output. What else its `//@ options` list it gets as
`#define`s, by the names of the schema: of a tensor x `X_RANK`, outermost first `X_0`, `X_1`, … and
`X_LAST`; of an attribute alpha `ALPHA`, of one with several numbers `ALPHA_COUNT`, `ALPHA_0`, ….
`tests/newcomer` has an example.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...ops import get_op
from ...plan import Plan, PlanTensor, Step
from .launch import Launch
from .options import join, literal, storage_option
from .programs import kernel_file
from .reach import option_forms
from .registry import Target


def has_kernel(name: str) -> bool:
    """Whether a file of this name is there."""
    return kernel_file(name).is_file()


def per_element(step: Step, plan: Plan, target: Target) -> list[Launch]:
    op, found = get_op(step.op, step.name), dict[str, PlanTensor]()
    for position, index in enumerate(step.inputs):
        name = op.input_name(position)
        if index >= 0 and name not in op.attr_inputs:
            number = f"{position - len(op.inputs) + 1}" if op.is_variadic else ""
            found[name + number] = plan.tensors[index]
    found |= {n: plan.tensors[i] for n, i in zip(op.outputs, step.outputs) if i >= 0}
    y = plan.tensors[step.outputs[0]]
    numbers = dict(number for name, x in found.items() for number in _dims(name.upper(), x))
    for name, value in step.attrs.items():
        if value is not None and not isinstance(value, str):
            numbers |= dict(_attribute(name.upper(), np.asarray(value)))
    listed = option_forms(step.kernel)
    options = [f"#define {name} {text}" for name, text in numbers.items() if name in listed]
    return [
        Launch(
            step.kernel, step.kernel, [*found.values(), y.size], (y.size,),
            join(storage_option(y.dtype), *options),
        )
    ]  # fmt: skip


def _dims(name: str, tensor: PlanTensor) -> Iterator[tuple[str, str]]:
    yield f"{name}_RANK", str(len(tensor.dims))
    if tensor.dims:
        yield f"{name}_LAST", str(tensor.dims[-1])
    for axis, count in enumerate(tensor.dims):
        yield f"{name}_{axis}", str(count)


def _attribute(name: str, value: np.ndarray) -> Iterator[tuple[str, str]]:
    if value.dtype.kind not in "biuf":
        return
    if value.ndim == 0:
        yield name, _number(value)
        return
    yield f"{name}_COUNT", str(value.size)
    for i, one in enumerate(value.ravel()):
        yield f"{name}_{i}", _number(one)


def _number(value: np.ndarray) -> str:
    return literal(float(value)) if value.dtype.kind == "f" else str(int(value))
