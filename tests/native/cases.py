"""The cases of the kernel tests as data, to run them elsewhere: on AArch64, under damage, where
memory is short."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from lite_engine.cases import cases
from lite_engine.model_file.program_file import tensor_file_name
from lite_engine.ops import KernelRef, all_kernels
from lite_engine.plan import make_plan
from lite_engine.plan.memory import assign_offsets
from lite_engine.plan.model import Plan, PlanTensor

from .isa import (
    test_compute_f32,
    test_compute_int8,
    test_elementwise,
    test_float_attention,
    test_float_kernels,
    test_matmul_f32,
    test_quant_kernels,
    test_recurrent,
)
from .ops import test_data_kernels, test_detection, test_search_kernels
from .tiny import Case, assert_close, make_case, one_step_plan, run_step

MODULES = (
    test_elementwise,
    test_float_kernels,
    test_quant_kernels,
    test_data_kernels,
    test_recurrent,
    test_search_kernels,
    test_detection,
)


@lru_cache(1)
def collected() -> tuple[Case, ...]:
    """Every case that those modules hand to `check`, once."""
    found: list[Case] = []

    def record(*args: Any, isas: Any = None, threads: Any = None, **more: Any) -> None:
        found.append(make_case(*args, **more))

    def ignore(*args: Any, **more: Any) -> list[Any]:
        raise _NotACase  # this one runs kernels by itself

    for module in MODULES:
        _call_tests(module, record, ignore)
    return tuple(found)


def check_outputs(cases: Sequence[Case], plan: Plan, folder: Path) -> None:
    """What `lite_run` left in `folder` of the cases' one plan is what each of them wants."""
    names = iter(tensor_file_name(i) for i in plan.outputs)
    wrong = []
    for case in cases:
        for wanted in case.wanted:
            got = np.load(folder / f"{next(names)}.npy")
            try:
                assert_close(got, wanted, case.tolerance, f"{case.kernel} {case.op} {case.attrs}")
            except AssertionError as error:
                wrong.append(str(error))
    assert not wrong, f"{len(wrong)} wrong; first: {wrong[0]}"


@lru_cache(2)
def plans(*, all_constant: bool = False) -> tuple[Plan, ...]:
    """Every call of a kernel that the kernel tests make, once, as a program of one step; with
    `all_constant` the inputs are among the weights. Every registered kernel is there."""
    found = [case.plan(all_constant=all_constant) for case in collected()]

    def record(
        op: str,
        kernel: str,
        inputs: Sequence[np.ndarray | None],
        outputs: Sequence[np.ndarray],
        attrs: dict[str, Any] | None = None,
        constant: Sequence[int] = (),
        **options: Any,
    ) -> list[np.ndarray]:
        got = run_step(op, kernel, inputs, outputs, attrs, constant, **options)
        if options.get("threads", 1) == 1:  # tests run the same call with more
            weights = range(len(inputs)) if all_constant else constant
            found.append(one_step_plan(op, kernel, inputs, outputs, attrs, weights))
        return got

    others = (test_compute_f32, test_matmul_f32, test_compute_int8, test_float_attention)
    for module in (*MODULES, *others):
        _call_tests(module, lambda *args, **more: None, record)
    tested = {plan.steps[0].kernel for plan in found}
    for kernel in all_kernels("cpu"):
        if kernel.name not in tested:
            found += _of_samples(kernel, all_constant)
    return tuple(found)


def _of_samples(kernel: KernelRef, all_constant: bool) -> Iterator[Plan]:
    """The same from the operator's own samples."""
    rng = np.random.default_rng(1)
    for case in cases(kernel):
        plan = make_plan(case.graph, "cpu", tuning={case.node.name: kernel.name})
        for step in plan.steps:
            if step.kernel != kernel.name:
                continue
            given = [plan.tensors[i] if i >= 0 else None for i in step.inputs]
            is_weight = [t and (all_constant or t.data is not None) for t in given]
            arrays = [t and _values(t, rng) for t in given]
            made = [_values(plan.tensors[i], rng) for i in step.outputs]
            weights = [i for i, fixed in enumerate(is_weight) if fixed]
            yield one_step_plan(step.op, step.kernel, arrays, made, step.attrs, weights)


def _values(tensor: PlanTensor, rng: np.random.Generator) -> np.ndarray:
    if tensor.data is not None:
        return tensor.data.reshape(tensor.dims)
    made = rng.standard_normal(tensor.dims) if tensor.dtype.is_float else np.zeros(tensor.dims)
    return made.astype(tensor.dtype.np)


def _call_tests(module: ModuleType, check: Any, run_step: Any) -> None:
    """Calls every test of a module with other ways to run a kernel."""
    if hasattr(module, "rng"):  # the same numbers whatever ran before
        module.rng = np.random.default_rng(1)  # type: ignore[attr-defined]
    ways = {"check": check, "run_step": run_step}
    saved = {n: getattr(module, n) for n in ways if hasattr(module, n)}
    for name in saved:
        setattr(module, name, ways[name])
    try:
        for name, test in list(vars(module).items()):
            if name.startswith("test_") and not _is_skipped(test):
                for arguments in _calls(test):
                    try:
                        test(**arguments)
                    except (_NotACase, pytest.skip.Exception):
                        continue
    finally:
        for name, value in saved.items():
            setattr(module, name, value)


class _NotACase(Exception):
    pass


def _is_skipped(test: Any) -> bool:
    """By a condition on this machine."""
    marks = getattr(test, "pytestmark", ())
    return any(mark.name == "skipif" and any(mark.args) for mark in marks)


def _calls(test: Any) -> Iterator[dict[str, Any]]:
    """Arguments of every parametrised call; one instruction set stands for all."""
    axes = []
    for mark in getattr(test, "pytestmark", ()):
        if mark.name != "parametrize":
            continue
        names, values = mark.args[:2]
        names = [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)
        values = [None] if names == ["isa"] else [_unpacked(v) for v in values]
        axes.append([dict(zip(names, v if len(names) > 1 else (v,))) for v in values])
    for chosen in itertools.product(*axes):
        yield {k: v for part in chosen for k, v in part.items()}


def _unpacked(value: Any) -> Any:
    """What a `pytest.param` holds."""
    if not isinstance(value, type(pytest.param())):
        return value
    return value.values if len(value.values) > 1 else value.values[0]


def merged(plans: Sequence[Plan]) -> Plan:
    """One plan with the steps of all of them, one after the other in one arena."""
    whole = Plan("cpu")
    for plan in plans:
        first = len(whole.tensors)

        def moved(indices: list[int], first: int = first) -> list[int]:
            return [i if i < 0 else i + first for i in indices]

        for t in plan.tensors:
            alias = None if t.alias_of is None else t.alias_of + first
            whole.tensors.append(replace(t, index=t.index + first, alias_of=alias))
        whole.inputs += moved(plan.inputs)
        whole.outputs += moved(plan.outputs)
        for step in plan.steps:
            ports = {"inputs": moved(step.inputs), "outputs": moved(step.outputs)}
            whole.steps.append(replace(step, index=len(whole.steps), **ports))
    assign_offsets(whole)
    return whole
