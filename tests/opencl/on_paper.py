"""Registers of the kernels in docs/opencl.md's table of phones, in int8 and fp16.

    python -m tests.opencl.on_paper

As `ptxas` assembles their texts for an NVIDIA chip, a stand-in for phones' compilers; images cannot
be assembled there.
"""

from __future__ import annotations

import dataclasses

from lite_engine.backends.opencl.cases.graphs import conv, in_bytes
from lite_engine.backends.opencl.cases.integers import conv as i8_conv
from lite_engine.backends.opencl.launch import Launch
from lite_engine.backends.opencl.profile import PROFILES
from lite_engine.backends.opencl.programs import program_text
from lite_engine.ir import DType, Graph
from lite_engine.plan import make_plan

from tests.opencl.hot import usages
from tests.opencl.offline import assemble
from tests.opencl.ways import every_way

#: With dp4a, as phones have a dot product of four bytes; fp16 is computed as such.
_CHIP = dataclasses.replace(PROFILES["nvidia"], dot="ptx")
_TILES = ("64x64_4x4", "128x64_8x4", "64x64_8x8")


def launches(graph: Graph, precision: str, way: str) -> list[Launch]:
    """Of the way that begins so, "" for the first one."""
    plan = make_plan(graph, "opencl", precision=precision)
    (step,) = (s for s in plan.steps if s.name == "layer")
    ways = every_way(step, plan, _CHIP)
    return next(made for name, made in ways.items() if str(name).startswith(way))


def rows() -> list[tuple[str, str, Launch]]:
    """(kernel, precision, launch) of the table's lines."""
    wide = (1, 128, 56, 56)
    found = []
    for tile in _TILES:
        found.append((tile, "int8", launches(i8_conv(wide, 128, 1), "fp32", tile)))
        found.append((tile, "fp16", launches(conv(wide, 128, 1), "fp16", tile)))
    shifted = i8_conv(wide, 128, 1, weights=DType.U8)
    found.append(("64x64_4x4, zero points", "int8", launches(shifted, "fp32", _TILES[0])))
    found.append(("3x3 depthwise", "int8", launches(i8_conv(wide, 128, 3, 128), "fp32", "")))
    found.append(("3x3 depthwise", "fp16", launches(conv(wide, 128, 3, 128), "fp16", "")))
    apart = {"pads": [2] * 4, "dilations": [2, 2]}  # rows of taps are no neighbours
    spread = i8_conv(wide, 128, 3, 128, **apart)
    found.append(("3x3 depthwise, dilation 2", "int8", launches(spread, "fp32", "")))
    spread = conv(wide, 128, 3, 128, **apart)
    found.append(("3x3 depthwise, dilation 2", "fp16", launches(spread, "fp16", "")))
    one = in_bytes("Gemm", (1, 1024), (1024, 1000), axis=1)
    found.append(("one row, 8-bit weights", "fp16", launches(one, "fp16", "bytes")))
    found.append(("one row, fp16 weights", "fp16", launches(one, "fp16", "few rows")))
    return [(name, precision, made[-1]) for name, precision, made in found]


def main() -> None:
    print("| kernel | | file | options | registers |\n|---|---|---|---|---|")
    for name, precision, launch in rows():
        result = assemble(program_text(launch.file, launch.options))
        used = {u.kernel: u.registers for u in usages(result.report)}
        options = ", ".join(line.removeprefix("#define ") for line in launch.options.splitlines())
        print(f"| {name} | {precision} | {launch.file} | {options} | {used[launch.kernel]} |")


if __name__ == "__main__":
    main()
