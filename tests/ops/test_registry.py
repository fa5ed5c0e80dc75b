"""What every operator of the registry must have; the registry is the list."""

from __future__ import annotations

import inspect
import subprocess

import pytest
from lite_engine.ops import OpDef, all_kernels, all_ops, get_op, op_names

CONTROL_FLOW = ("If", "Loop", "Scan")


@pytest.mark.parametrize("op", all_ops(), ids=lambda op: op.name)
def test_is_complete(op: OpDef) -> None:
    assert op._infer is not None, "no shape inference"
    assert op._reference is not None or op.name in CONTROL_FLOW, "no reference"
    assert op.source, "does not say where its meaning is written down"


@pytest.mark.parametrize("op", all_ops(), ids=lambda op: op.name)
def test_names_what_it_has(op: OpDef) -> None:
    inputs = {op.input_name(i) for i in range(len(op.inputs))}
    assert set(op.attr_inputs) <= inputs
    assert set(op.axis_attrs) | set(op.per_axis_attrs) <= inputs | set(op.attrs)
    if op.layout != "axis":
        return
    axes = [a for a in op.attrs if a in ("axis", "axes")]
    assert set(axes) <= set(op.axis_attrs), "an axis that a change of layout would not remap"


@pytest.mark.parametrize("op", all_ops(), ids=lambda op: op.name)
def test_signatures_take_every_attribute(op: OpDef) -> None:
    for fn in (op._infer, op._reference, op._cost):
        if fn is None:
            continue
        parameters = inspect.signature(fn).parameters.values()
        if any(p.kind is p.VAR_KEYWORD for p in parameters):
            continue
        keywords = {p.name for p in parameters if p.kind is not p.POSITIONAL_ONLY}
        assert set(op.attrs) <= keywords, f"{fn} does not take {set(op.attrs) - keywords}"


#: Steps that the planner inserts: they are no operators of a graph.
PLANNED = {("Relayout", "copy_relayout"): "puts a value into another memory order"}


def registered(backend: str) -> set[tuple[str, str]]:
    return {(k.op, k.name) for k in all_kernels(backend)} | set(PLANNED)


@pytest.mark.cpu
@pytest.mark.arm
def test_native_kernels_are_the_registered_ones(qemu: list[str]) -> None:
    """The tables of this machine's library and of AArch64's, which also has kernels of fp16."""
    from lite_engine._native import runner_path
    from lite_engine.backends.cpu.native import kernels

    command = [*qemu, str(runner_path("aarch64")), "--kernels"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [line.split() for line in listed.stdout.splitlines()]
    of_arm = {(op, name) for _, name, *ops in rows for op in ops}
    known = registered("cpu")
    assert kernels() | of_arm == known
    assert {name[:4] for _, name in known - kernels()} == {"f16_"}
    assert {op for op, _ in known - kernels()} <= {op for op, _ in kernels()}


def test_opencl_builders_are_the_registered_ones() -> None:
    from lite_engine.backends.opencl.steps import kernels

    assert kernels() == registered("opencl")


def test_fused_activations_run_everywhere() -> None:
    """What may be fused has float kernels of its own, which hold the same functions."""
    for name in op_names(lambda op: op.fusable):
        assert {"f32_unary", "unary"} <= {k.name for k in get_op(name).kernels}
