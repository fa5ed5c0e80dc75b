"""The cases of the kernel tests as data, to run them elsewhere: on AArch64, under damage."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
from lite_engine.plan.memory import assign_offsets
from lite_engine.plan.model import Plan

from . import (
    test_data_kernels,
    test_elementwise,
    test_float_kernels,
    test_quant_kernels,
    test_recurrent,
    test_search_kernels,
)
from .tiny import Case, make_case

MODULES = (
    test_elementwise,
    test_float_kernels,
    test_quant_kernels,
    test_data_kernels,
    test_recurrent,
    test_search_kernels,
)


def collected() -> list[Case]:
    """Every case that those modules hand to `check`, once."""
    return [case for module in MODULES for case in _of(module)]


def _of(module: ModuleType) -> list[Case]:
    found: list[Case] = []

    def record(*args: Any, isas: Any = None, threads: Any = None, **more: Any) -> None:
        found.append(make_case(*args, **more))

    def ignore(*args: Any, **more: Any) -> list[Any]:
        raise _NotACase

    if hasattr(module, "rng"):  # the same numbers whatever ran before
        module.rng = np.random.default_rng(1)  # type: ignore[attr-defined]
    saved = {n: getattr(module, n) for n in ("check", "run_step") if hasattr(module, n)}
    module.check = record  # type: ignore[attr-defined]
    if "run_step" in saved:
        module.run_step = ignore  # type: ignore[attr-defined]
    try:
        for name, test in list(vars(module).items()):
            if name.startswith("test_"):
                for arguments in _calls(test):
                    try:
                        test(**arguments)
                    except _NotACase:
                        continue  # this one runs kernels by itself
    finally:
        for name, value in saved.items():
            setattr(module, name, value)
    return found


class _NotACase(Exception):
    pass


def _calls(test: Any) -> Iterator[dict[str, Any]]:
    """Arguments of every parametrised call; one instruction set stands for all."""
    axes = []
    for mark in getattr(test, "pytestmark", ()):
        names = [n.strip() for n in mark.args[0].split(",")]
        values = [(None,)] if names == ["isa"] else mark.args[1]
        axes.append([dict(zip(names, v if len(names) > 1 else (_single(v),))) for v in values])
    for chosen in itertools.product(*axes):
        yield {k: v for part in chosen for k, v in part.items()}


def _single(value: Any) -> Any:
    return value[0] if value == (None,) else value


def merged(plans: list[Plan]) -> Plan:
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
