"""Faults inside the kernels: the plan or the kernel's source is wrong, nothing touches the result.

What a plan holds is what every backend packs and executes, so a fault there happens in the kernel's
own run on x86 and AArch64; OpenCL kernels get other source text before they are built.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from lite_engine import plan as plans
from lite_engine.backends.opencl import device as devices
from lite_engine.backends.opencl import executable
from lite_engine.plan import Plan, PlanTensor, Step, make_plan


def plant_in_plan(monkeypatch, layer: str, kind: str) -> None:
    """Plans of every backend but the reference get a wrong layer."""

    def spoilt(graph, backend, *args, **options) -> Plan:
        plan = make_plan(graph, backend, *args, **options)
        if backend != "reference":
            for step in plan.steps:
                if step.name == layer:
                    _IN_PLAN[kind](plan, step)
        return plan

    monkeypatch.setattr(plans, "make_plan", spoilt)


def _constant(plan: Plan, step: Step, index: int, change) -> None:
    """Another constant for this step alone."""
    old = plan.tensors[step.inputs[index]]
    data = np.ascontiguousarray(change(np.array(old.data)))
    new = PlanTensor(len(plan.tensors), f"{old.name}:spoilt", old.dtype, old.dims, old.layout,
                     "weight", data=data, space=old.space)  # fmt: skip
    plan.tensors.append(new)
    step.inputs[index] = new.index


def _swapped(w: np.ndarray) -> np.ndarray:
    w[[0, -1]] = w[[-1, 0]]
    return w


def _swap_channels(plan: Plan, step: Step) -> None:
    """Filters packed in another order."""
    for index in (1, 2):
        _constant(plan, step, index, _swapped)


def _half(w: np.ndarray) -> np.ndarray:
    """Weights kept in half precision that they do not fit into."""
    with np.errstate(over="ignore"):
        return (w * np.float32(1e6)).astype(np.float16).astype(np.float32)


def _drop_last_column(plan: Plan, step: Step) -> None:
    """The loop over columns ends one early: the last column of y is only a border to it."""
    y = plan.tensors[step.outputs[0]]
    dims = (*y.dims[:2], y.dims[2] - 1, y.dims[3])
    narrow = replace(y, index=len(plan.tensors), dims=dims, halo=(0, 0, 0, 1))
    plan.tensors.append(narrow)
    y.alias_of = step.outputs[0] = narrow.index
    _shift_pads(step, 0, -(step.attrs.get("strides") or [1, 1])[1])


def _read_past_edge(plan: Plan, step: Step) -> None:
    """Columns are read one further to the right, past the edge at the end."""
    _shift_pads(step, -1, 1)


def _shift_pads(step: Step, left: int, right: int) -> None:
    top, start, bottom, end = step.attrs["pads"]
    step.attrs = {**step.attrs, "pads": [top, start + left, bottom, end + right]}


_IN_PLAN = {
    "drop_last_column": _drop_last_column,
    "swap_channels": _swap_channels,
    "overflow_fp16": lambda plan, step: _constant(plan, step, 1, _half),
    "forget_bias": lambda plan, step: _constant(plan, step, 2, np.zeros_like),
    "read_past_edge": _read_past_edge,
}

_OTHER_CHANNEL = "#define SWAP(c, n) ((c) == 0 ? (n) - 1 : (c) == (n) - 1 ? 0 : (c))\n"
_THROUGH_HALF = """float through_half(float v) {
  ushort bits;
  vstore_half(v * 3e4f, 0, (half *)&bits);
  return vload_half(0, (half *)&bits);
}
"""
#: kind → source file → (text in front, [what is replaced, by what])
_IN_SOURCE = {
    "drop_last_column": {
        "conv": ("", ["m0 + t < M; ++t) {",
                      "m0 + t < M; ++t) { if ((m0 + t) % OW == OW - 1) continue;"]),
        "depthwise": ("", ["m >= M) return;", "m >= M || m % OW == OW - 1) return;"]),
    },
    "swap_channels": {
        "conv": (_OTHER_CHANNEL, ["ST(y, to + k,", "ST(y, (m0 + t) * O + SWAP(o + k, O),"]),
        "depthwise": (_OTHER_CHANNEL, ["ST(y, m * C + c,", "ST(y, m * C + SWAP(c, C),"]),
    },
    "overflow_fp16": {
        "conv": (_THROUGH_HALF, ["float u = v[k];", "float u = through_half(v[k]);"]),
        "depthwise": (_THROUGH_HALF, ["ACT(s)", "ACT(through_half(s))"]),
    },
    "forget_bias": {
        "conv": ("", ["start = LOADF(bias, block * V);", "start = 0;"]),
        "depthwise": ("", ["float s = bias[c];", "float s = 0;"]),
    },
    "read_past_edge": {  # into the next row of the picture
        "conv": ("", ["xx >= 0 && xx < W;", "yy * W + xx >= 0 && yy * W + xx < H * W;"]),
        "depthwise": ("", ["xx < 0 || xx >= W", "yy * W + xx < 0 || yy * W + xx >= H * W"]),
    },
}  # fmt: skip


def plant_in_source(monkeypatch, layer: str, kind: str) -> None:
    """The layer's OpenCL kernel is built from other text. Fails when the text is not there."""
    launches_of, build = executable.launches_of, devices.Device._build

    def marked(step: Step, plan: Plan, device):
        launches = launches_of(step, plan, device)
        for launch in launches if step.name == layer else ():
            launch.options += f"\n#define PLANTED_{kind}"
        return launches

    def spoilt(device, file: str, defines: str):
        if f"PLANTED_{kind}" not in defines:
            return build(device, file, defines)
        before, (old, new) = _IN_SOURCE[kind][file]
        text = (devices.KERNELS / f"{file}.cl").read_text()
        assert old in text, f"{file}.cl has changed: {old!r} is not in it"
        source = "\n".join([defines, (devices.KERNELS / "common.h").read_text(), before,
                            text.replace(old, new)])  # fmt: skip
        program = device.cl.Program(device.context, source)
        return program.build(list(devices.BUILD_OPTIONS), cache_dir=False)

    monkeypatch.setattr(executable, "launches_of", marked)
    monkeypatch.setattr(devices.Device, "_build", spoilt)
