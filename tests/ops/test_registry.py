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
def test_native_kernels_exist() -> None:
    from lite_engine.backends.cpu.native import kernel_names

    missing = {str(k) for k in all_kernels("cpu") if k.name not in kernel_names()}
    assert not missing, "registered in ops/ but not in the native library"
