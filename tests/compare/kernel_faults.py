"""Faults inside the kernels: the plan or the kernel's source is wrong, nothing touches the result.

What a plan holds is what every backend packs and executes, so a fault there happens in the kernel's
own run on x86 and AArch64; OpenCL kernels get other source text before they are built.
"""

from __future__ import annotations

import importlib
from dataclasses import replace

import numpy as np
from lite_engine import plan as plans
from lite_engine.backends.opencl import programs, ways
from lite_engine.backends.opencl.tuning import Tuning
from lite_engine.plan import Plan, PlanTensor, Step, make_plan

# These take make_plan by name when they are first imported: the real one, not a spoilt one.
for _module in ("devices.check", "model_file.writer"):
    importlib.import_module(f"lite_engine.{_module}")


def plant_in_plan(monkeypatch, layer: str, kind: str, only: str = "") -> None:
    """Plans of every backend but the reference, or of one `only`, get a wrong layer."""

    def spoilt(graph, backend, *args, **options) -> Plan:
        plan = make_plan(graph, backend, *args, **options)
        if backend == only or (not only and backend != "reference"):
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

_READ_BACK = """#if V == 1
#define READ_BACK(u) (u)[0]
#else
#define READ_BACK(u) PASTE(vload, V)(0, (u))
#endif
"""
_SWAPPED = f"""{_READ_BACK}FV swapped(FV v) {{
  float u[V];
  STFV(u, 0, v);
  const float first = u[0];
  u[0] = u[V - 1];
  u[V - 1] = first;
  return READ_BACK(u);
}}
"""
_THROUGH_HALF = f"""{_READ_BACK}FV through_half(FV v) {{
  float u[V];
  STFV(u, 0, v);
  for (int i = 0; i < V; ++i) {{
    ushort bits;
    vstore_half(u[i] * 3e4f, 0, (half *)&bits);
    u[i] = vload_half(0, (half *)&bits);
  }}
  return READ_BACK(u);
}}
"""
_FOUR = "const float4 v = (float4)(acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]);"
_TWO = "float2 v = (float2)(acc[i][j][h * 2], acc[i][j][h * 2 + 1]);"
_TWO_THROUGH_HALF = """float2 two_through_half(float2 v) {
  ushort2 bits;
  vstore_half2(v * 3e4f, 0, (half *)&bits);
  return vload_half2(0, (half *)&bits);
}
"""
_FOUR_THROUGH_HALF = """float4 four_through_half(float4 v) {
  ushort4 bits;
  vstore_half4(v * 3e4f, 0, (half *)&bits);
  return vload_half4(0, (half *)&bits);
}
"""
#: kind → kernel → (text in front, what is replaced by what). On CPU devices a convolution ends in
#: `conv` or, with Winograd's transforms, in `from_points`; the kernels in front of these
#: (`surround`, `to_points`) are where the borders of the picture are. On GPUs it is `conv_tile`,
#: or `conv_mma` on matrix units, and `conv_sum` where K is split.
_IN_SOURCE: dict[str, dict[str, tuple[str, dict[str, str]]]] = {
    "drop_last_column": {
        "conv": (
            "",
            {
                "if (valid == TM && O - o >= BN) {": "if (ox + TM < OW && O - o >= BN) {",
                "i < valid * NV": "i < min(valid, OW - 1 - ox) * NV",
            },
        ),
        "conv_tile": ("", {"if (m >= M) continue;": "if (m >= M || m % OW == OW - 1) continue;"}),
        "conv_mma": ("", {"if (m >= M || n >= O) continue;":
                          "if (m >= M || n >= O || m % OW == OW - 1) continue;"}),
        "from_points": ("", {"x0 + j >= OW)": "x0 + j >= OW - 1)"}),
        "depthwise": ("", {"&& ox + p < OW)": "&& ox + p < OW - 1)"}),
    },
    "swap_channels": {  # the first and the last of a vector
        "conv": (_SWAPPED, {"STV(y, to, done);": "STV(y, to, swapped(done));"}),
        "conv_tile": ("", {_FOUR: _FOUR.replace("j],", "j + 3],").replace("j + 3]);", "j]);")}),
        "conv_mma": ("", {_TWO: "float2 v = (float2)(acc[i][j][h * 2 + 1], acc[i][j][h * 2]);"}),
        "from_points": (_SWAPPED, {"STV(y, to, done);": "STV(y, to, swapped(done));"}),
        "depthwise": (_SWAPPED, {"to + p * YP, done);": "to + p * YP, swapped(done));"}),
    },
    "overflow_fp16": {
        "conv": (_THROUGH_HALF, {
            "if (with_residual) v += LDV(residual, old);":
                "v = through_half(v);\n  if (with_residual) v += LDV(residual, old);",
            "STFV(u, 0, v);": "v = through_half(v);\n  STFV(u, 0, v);",
        }),
        "conv_tile": (_FOUR_THROUGH_HALF, {
            _FOUR: _FOUR.replace("(float4)(", "four_through_half((float4)(").replace(");", "));"),
        }),
        "conv_mma": (_TWO_THROUGH_HALF, {
            _TWO: _TWO.replace("(float2)(", "two_through_half((float2)(").replace(");", "));"),
        }),
        "from_points": (_THROUGH_HALF, {"s = u[j] + start;": "s = through_half(u[j] + start);"}),
        "depthwise": (_THROUGH_HALF, {"FV v = sum[q][p];": "FV v = through_half(sum[q][p]);"}),
    },
    "forget_bias": {
        "conv": ("", {"first = LDFV(bias, o);": "first = 0;",
                      "second = LDFV(bias, o + V);": "second = 0;"}),
        "conv_tile": ("", {"v + vload4(0, bias + n);": "v;", "u[e] + bias[n + e];": "u[e];"}),
        "conv_mma": ("", {"v += more[j];": ""}),
        "conv_sum": ("", {"float4 v = vload4(0, bias + i % O);": "float4 v = 0;",
                          "float v = bias[i % O];": "float v = 0;"}),
        "from_points": ("", {"start = LDFV(bias, o);": "start = 0;"}),
        "depthwise": ("", {"start = LDFV(bias, c);": "start = 0;"}),
    },
    "read_past_edge": {  # into the rows of the picture before and after
        "surround": ("", {
            "(inside ? before : WP * C); ++i) to[i] = 0;":
                "(inside ? before : WP * C); ++i)\n    to[i] = inside && yy > 0 ? "
                "LD(x, (((row / HP) * H + yy) * W * C - before + i)) : 0;",
            "for (int i = before + width; i < WP * C; ++i) to[i] = 0;":
                "for (int i = before + width; i < WP * C; ++i)\n    to[i] = yy < H - 1 ? "
                "LD(from, (i - before)) : 0;",
        }),
        "conv_tile": ("", {
            f"{y} < KH && yy >= 0 && yy < H && xx >= 0 && xx < W;":
                f"{y} < KH && yy * W + xx >= 0 && yy * W + xx < H * W;" for y in ("k_y", "ky")
        }),
        "conv_mma": ("", {  # above the last row, so that it stays inside the picture
            "column + j * DW >= 0 && column + j * DW < W)":
                "column + j * DW >= 0 && (column + j * DW < W || row + KH * DH < H))",
        }),
        "to_points": ("", {"xx >= 0 && xx < W;": "yy * W + xx >= 0 && yy * W + xx < H * W;"}),
        "depthwise": ("", {"x0 + i >= 0 && x0 + i < W)":
                           "yy * W + x0 + i >= 0 && yy * W + x0 + i < H * W)"}),
    },
}  # fmt: skip


def plant_in_source(monkeypatch, layer: str, kind: str) -> None:
    """The layer's OpenCL kernel is built from other text. Fails when the text is not there.

    The layer runs the first way that its builder offers, whatever was measured here before."""
    launches_of, program_text = ways.launches_of, programs.program_text
    pick = Tuning.pick
    monkeypatch.setattr(
        Tuning, "pick", lambda self, size, ways: pick(Tuning(self.path), size, ways)
    )
    patches, marks = _IN_SOURCE[kind], {}

    def marked(step: Step, plan: Plan, device):
        launches = launches_of(step, plan, device)
        if step.name == layer:
            fitting = [launch for launch in launches if launch.kernel in patches]
            names = [launch.kernel for launch in launches]
            assert fitting, f"{layer} runs {names}: there is no {kind} for any of these"
            mark = f"// planted: {kind} in {fitting[-1].kernel}"  # no option: kernels list theirs
            marks[mark] = fitting[-1].kernel
            fitting[-1].options += f"\n{mark}"
        return launches

    def spoilt(file: str, defines: str = "") -> str:
        text = program_text(file, defines)
        kernel = marks.get(defines.rpartition("\n")[2])
        if kernel is None:
            return text
        before, changes = patches[kernel]
        own = changed = (programs.KERNELS / f"{file}.cl").read_text()
        for old, new in changes.items():
            assert changed.count(old) == 1, f"{file}.cl has changed: {old!r} is not in it once"
            changed = changed.replace(old, new)
        assert own in text
        return text.replace(own, before + changed)

    monkeypatch.setattr(ways, "launches_of", marked)
    monkeypatch.setattr(programs, "program_text", spoilt)
