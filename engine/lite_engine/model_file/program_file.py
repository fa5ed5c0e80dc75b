"""A plan alone in a `.lite` container: what a runner needs, and nothing for people."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..plan import Plan
from ..plan.program import WeightTable, encode
from ._container import write_container
from .opencl_programs import programs_of
from .precision import CPU_TARGETS, SECTION_WORDS
from .writer import weight_sections


def tensor_file_name(index: int) -> str:
    """The name of a tensor in a program file: safe in commands and as a file name."""
    return f"t{index}"


def write_program_file(
    plan: Plan,
    path: Path,
    targets: tuple[str, ...] = CPU_TARGETS,
    *,
    opencl_class: str = "",
) -> Path:
    """Writes the program of a CPU plan, tensors renamed to `t0`, `t1`, … With `opencl_class` the
    plan may have steps on OpenCL, and its programs are those for devices of that class.

    Raises LiteError when the file cannot be written.
    """
    renamed = replace(
        plan, tensors=[replace(t, name=tensor_file_name(t.index)) for t in plan.tensors]
    )
    table = WeightTable()
    if opencl_class:
        programs = programs_of(renamed, table, opencl_class)
    else:
        program = encode(renamed, table)
        programs = {f"PROG.{SECTION_WORDS[target]}": program for target in targets}
    weights, index = weight_sections(table)
    sections = {"META": [b"{}"], "GRAPH": [b"{}"]}
    sections.update({tag: [data] for tag, data in programs.items()})
    return write_container(path, {**sections, "WINDEX": [index], "WEIGHTS": weights})
