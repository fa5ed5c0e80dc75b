"""The kernels in which networks of the zoo spend 90 % of their time on an NVIDIA H200.

    python -m tests.opencl.hot      registers, spills and local memory of each, as Markdown

`python -m benchmarks.opencl.hot` measured which layers these are; the builders make their kernels
again as they are now.
"""

from __future__ import annotations

import json
import re
from dataclasses import astuple, dataclass
from functools import lru_cache
from pathlib import Path

from lite_engine import optimize
from lite_engine.backends.opencl.profile import DeviceProfile
from lite_engine.backends.opencl.programs import program_text
from lite_engine.backends.opencl.registry import Target
from lite_engine.backends.opencl.steps import launches_of
from lite_engine.importers.onnx import read_bytes
from lite_engine.plan import make_plan

from benchmarks import zoo
from tests.opencl import offline

_MEASURED = Path(__file__).with_name("hot_layers.json")
_KERNEL = re.compile(r"Compiling entry function '(\w+)'")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(?:.*?(\d+) bytes smem)?")


@dataclass(frozen=True)
class Usage:
    """What a kernel takes of a chip; bytes of the stack are per work-item, `local` per group."""

    kernel: str
    registers: int
    stack: int
    spills: int
    local: int


@lru_cache
def hot_launches(networks: tuple[str, ...] = ()) -> tuple[tuple[str, str, str], ...]:
    """(file, options, kernel) of what hot layers of these networks, or of all, launch."""
    measured = json.loads(_MEASURED.read_text())
    profile = DeviceProfile(
        **{**measured["profile"], "images": tuple(measured["profile"]["images"])}
    )
    found: dict[tuple[str, str, str], None] = {}
    for name in networks or measured["networks"]:
        graph = optimize(read_bytes(zoo.build(name).SerializeToString())).graph
        for precision, layers in measured["networks"][name].items():
            plan = make_plan(graph, "opencl", precision=precision)
            for step in plan.steps:
                if step.name in layers and step.backend == "opencl":
                    for x in launches_of(step, plan, Target(profile)):
                        found[x.file, x.options, x.kernel] = None
    return tuple(found)


def usages(report: str) -> list[Usage]:
    """Every kernel of one program, from what ptxas -v says."""
    parts = _KERNEL.split(report)[1:]
    found = []
    for kernel, text in zip(parts[::2], parts[1::2], strict=True):
        spilt, used = _SPILLS.search(text), _USED.search(text)
        assert spilt and used, text
        stack, stores, loads = map(int, spilt.groups())
        found.append(Usage(kernel, int(used[1]), stack, stores + loads, int(used[2] or 0)))
    return found


def measured_usages(chip: str, networks: tuple[str, ...] = ()) -> dict[tuple[str, str, str], Usage]:
    """Raises AssertionError for a program that does not assemble."""
    launches = hot_launches(networks)
    texts = list(dict.fromkeys(program_text(file, options) for file, options, _ in launches))
    results = offline.many(((t,) for t in texts), lambda t: offline.assemble(t, chip))
    assert not (wrong := [r.error for r in results if r.error]), wrong[0]
    by_text = dict(zip(texts, results, strict=True))
    return {
        (file, options, kernel): next(
            u for u in usages(by_text[program_text(file, options)].report) if u.kernel == kernel
        )
        for file, options, kernel in launches
    }


def main() -> None:
    chip = "sm_90"
    rows: dict[tuple[str, str, str], list[Usage]] = {}
    for (file, options, kernel), usage in measured_usages(chip).items():
        rows.setdefault((file, kernel, "fp16" if "HALF" in options else "fp32"), []).append(usage)
    print(f"{chip}\n\n| file | kernel | storage | programs | registers | stack | spills | local |")
    print("|---|---|---|---|---|---|---|---|")
    for key, found in sorted(rows.items()):
        most = [max(column) for column in zip(*(astuple(u)[1:] for u in found), strict=True)]
        print(f"| {' | '.join(key)} | {len(found)} | {' | '.join(map(str, most))} |")


if __name__ == "__main__":
    main()
