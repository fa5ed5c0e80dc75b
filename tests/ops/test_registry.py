"""What every operator of the registry must have; the registry is the list."""

from __future__ import annotations

import inspect

import pytest
from lite_engine.ops import OpDef, all_kernels, all_ops

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


@pytest.mark.cpu
@pytest.mark.arm
def test_native_kernels_exist() -> None:
    """Each in this machine's library or, kernels of halves, in AArch64's, where its name stands."""
    from lite_engine._native import library_path
    from lite_engine.backends.cpu.native import kernel_names

    arm = library_path("aarch64").read_bytes()
    missing = {k for k in all_kernels("cpu") if k.name not in kernel_names()}
    assert {k.name[:4] for k in missing} <= {"f16_"}, "registered in ops/ but not in the library"
    assert all(f"{k.name}\0".encode() in arm for k in missing)
