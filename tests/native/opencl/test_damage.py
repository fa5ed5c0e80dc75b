"""Damaged OpenCL programs are refused or read within their bytes, under AddressSanitizer."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from lite_engine.backends.opencl.cases.examples import examples
from lite_engine.backends.opencl.cases.graphs import conv
from lite_engine.backends.opencl.native_plan import encode_opencl
from lite_engine.backends.opencl.profile import PROFILES
from lite_engine.backends.opencl.registry import Target
from lite_engine.ir import Graph
from lite_engine.ops import all_kernels
from lite_engine.plan import make_plan
from lite_engine.plan.program import WeightTable

from tests.native.opencl.conftest import Tool
from tests.opencl.texts import all_texts

#: Of each plan; LITE_TEST_DAMAGES gives another number.
COUNT = 2000


def graphs() -> dict[str, Graph]:
    """Every operation on weights and every kind of argument between them."""
    made = {"winograd": conv((1, 16, 12, 12), 16, 3), "pad": examples()["copy_pad"][0]}
    return made | {name: examples()[name][0] for name in ("gemm", "lstm", "reduce")}


@pytest.mark.parametrize("name", graphs())
@pytest.mark.parametrize(
    "profile, precision", [("cpu, 8 lanes", "fp32"), ("gpu", "fp16"), ("adreno", "fp16")]
)
def test_damage(name: str, profile: str, precision: str, base_tool: Path, tmp_path: Path) -> None:
    plan = make_plan(graphs()[name], "opencl", precision=precision)
    table = WeightTable()
    data = encode_opencl(plan, Target(PROFILES[profile]), table)
    (tmp_path / "plan").write_bytes(data)
    blobs = [np.ascontiguousarray(b).tobytes() for b in table.blobs]
    whole = struct.pack("<Q", len(blobs))
    (tmp_path / "weights").write_bytes(
        whole + b"".join(struct.pack("<Q", len(b)) + b for b in blobs)
    )
    done = subprocess.run(
        [str(base_tool.with_name("plan_fuzz")), tmp_path / "plan", tmp_path / "weights",
         str(len(name)), str(int(os.environ.get("LITE_TEST_DAMAGES", COUNT)))],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    words = done.stdout.split()
    # Damage that is always refused would test the header alone.
    assert int(words[0]) > 100 and int(words[2]) > 20, done.stdout


CODE = [
    "#define ACT(x) (y[1]=(x))", "#define ACT(x) barrier(0)", "#define ACT(x) x; y[9] = 1",
    "#define ACT(x) (*p)", "#define LDW(p, i) (p)[i + 9]", "#define A x[1]", '#include "a.h"',
    "#define ACT(x) x++", "#define ACT(x) x /* */", "#pragma unroll", "#define N 0x10",
    "#define OP(p,q) get_global_id(0)", "#define STEP(s,v) s=v", "#define V 4\n#define v 3",
    "#define ACT(x) x\\", "#define E struct", "#define ACT(x) " + "x+" * 300 + "x",
]  # fmt: skip


@pytest.mark.parametrize("line", CODE)
def test_options_are_no_place_for_code(line: str, ask: Tool) -> None:
    assert "option" in ask("defines", line, status=1).stdout


def test_what_builders_write_is_accepted(ask: Tool) -> None:
    """Every function of the registry, and every option of every kind of device."""
    lines = {line for text in all_texts() for line in text.options.split("\n") if line}
    for kernel in all_kernels("opencl"):
        if kernel.code.startswith("#define"):
            lines.update(kernel.code.strip().split("\n"))
        elif kernel.code:
            name = "ACT(x)" if kernel.name == "unary" else "OP(p,q)"
            lines.add(f"#define {name} {kernel.code}")
    ask("defines", "\n".join(sorted(lines)))
