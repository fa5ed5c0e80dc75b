"""Runs launches in buffers of exactly the size that their kernels state, under whatever driver the
environment names; Oclgrind tells of every access beyond one.

    python -m tests.opencl.exact PROFILE PRECISION some|all|tight

`some` takes one launch of each kernel. `tight` gives each argument in turn one element less and
names those of which Oclgrind then says nothing. For any profile but the first, both take only the
kernels that the first one does not have.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from lite_engine.backends.opencl import reach
from lite_engine.backends.opencl.cases import cases
from lite_engine.backends.opencl.launch import Image, Launch, grouped
from lite_engine.backends.opencl.profile import PROFILES
from lite_engine.backends.opencl.programs import program_text
from lite_engine.backends.opencl.registry import Target
from lite_engine.backends.opencl.steps import launches_of
from lite_engine.plan import Plan, make_plan

_FEW_BYTES, _MANY_BYTES = 512, 1 << 20
_FIRST = "cpu, 8 lanes", "fp32"
#: Uses of one kernel that differ in their reach.
_USES = {"BATCHED", "DEPTHWISE", "GROUPED", "MATMUL", "SCATTER", "SPLIT"}


def planned(profile: str, precision: str) -> Iterator[tuple[Launch, Plan]]:
    """The launches of all cases, each way to compute a layer among them."""
    for graphs in cases().values():
        for graph in graphs:
            plan = make_plan(graph, "opencl", precision=precision)
            for step in plan.steps:
                if step.backend != "opencl" or step.op == "Copy":
                    continue
                offered: dict[object, None] = {}

                def first(size: str, ways, /, offered=offered):
                    offered.update(dict.fromkeys(ways))
                    return ways[0]

                made = launches_of(step, plan, Target(PROFILES[profile], first))
                for way in list(offered)[1:]:

                    def this(size: str, ways, /, way=way):
                        return way if way in ways else ways[0]

                    made += launches_of(step, plan, Target(PROFILES[profile], this))
                yield from ((launch, plan) for launch in made)


@lru_cache
def chosen(profile: str, precision: str) -> list[Launch]:
    """For each kernel, and each use of it, the launch that reaches least,
    a few vectors at least."""
    found: dict[tuple[object, ...], tuple[tuple[bool, int], Launch]] = {}
    for launch, _ in planned(profile, precision):
        reached = sum(sizes(launch).values())
        options = frozenset(re.findall(r"#define (\w+)", launch.options)) & _USES
        few = reached < _FEW_BYTES  # then as much as there is
        key, rank = (launch.file, launch.kernel, options), (few, -reached if few else reached)
        if key not in found or rank < found[key][0]:
            found[key] = rank, launch
    return [launch for _, launch in found.values()]


def sizes(launch: Launch) -> dict[int, int]:
    """Argument → bytes that the launch reaches of it."""
    found: dict[int, int] = {}
    for extent in reach.extents(launch):
        if extent.itemsize:
            reached = extent.end * extent.itemsize
            found[extent.argument] = max(found.get(extent.argument, 0), reached)
    return found


@lru_cache
def driver() -> tuple[Any, bool]:
    """A queue, and whether its device has half arithmetic. One context: each begins a log anew."""
    import pyopencl as cl

    queue = cl.CommandQueue(cl.create_some_context(interactive=False))
    return queue, "cl_khr_fp16" in queue.device.extensions


@lru_cache(1)
def built(file: str, options: str) -> Any:
    """The program of the launch at hand, built once for all of its arguments."""
    import pyopencl as cl

    queue, half = driver()
    # What only some devices have, in C: the same elements, read by other instructions.
    in_c = "#define MMA_IN_C\n" * file.endswith("_mma")
    options = in_c + re.sub(r"#define DOT_\w+", "", options)
    if not half:  # the same elements, read by other functions
        options = re.sub("#define HALF_(MATH|TYPES)", "", options)
    # Optimised, its shifts become LLVM's funnel shift, which Oclgrind does not have.
    plain = ["-cl-opt-disable"] * (file == "i8_depthwise_rows")
    return cl.Program(queue.context, program_text(file, options)).build(["-w", *plain])


def run(launch: Launch, short: str = "") -> None:
    import pyopencl as cl

    queue, _ = driver()
    context, program = queue.context, built(launch.file, launch.options)
    parameters, _ = reach.statement(launch.file, launch.kernel)
    items = {e.argument: e.itemsize for e in reach.extents(launch)}
    reached, rng, args = sizes(launch), np.random.default_rng(0), []
    for i, (given, parameter) in enumerate(zip(launch.args, parameters, strict=True)):
        if parameter.kind == "image":
            assert isinstance(given, Image)
            kinds = cl.channel_type
            kind = {"f16": kinds.HALF_FLOAT, "f32": kinds.FLOAT, "u32": kinds.UNSIGNED_INT32}
            form = cl.ImageFormat(cl.channel_order.RGBA, kind[given.dtype.value])
            flags = cl.mem_flags.READ_WRITE
            args.append(cl.create_image(context, flags, form, (given.width, given.height)))
        elif parameter.kind == "buffer":
            size = reached.get(i, 0) - items.get(i, 0) * (parameter.name == short)
            data = rng.integers(0, 3, max(size, 1), np.uint8)
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
            args.append(cl.Buffer(context, flags, hostbuf=data))
        elif isinstance(given, float):
            args.append(np.float32(given))
        else:
            args.append(given if isinstance(given, np.generic) else np.int32(given))
    grid, group = launch.global_size, launch.local_size
    if group is None:
        grid, group = grouped(grid)
    kernel = cl.Kernel(program, launch.kernel)
    kernel.set_args(*args)
    cl.enqueue_nd_range_kernel(queue, kernel, grid, group)
    queue.finish()


def complaints() -> int:
    """Bytes that Oclgrind has written so far."""
    log = Path(os.environ["OCLGRIND_LOG"])
    return log.stat().st_size if log.exists() else 0


def loose(launch: Launch) -> Iterator[str]:
    """Arguments with room for one element more than the kernel reaches."""
    parameters, _ = reach.statement(launch.file, launch.kernel)
    for i in sizes(launch):
        before = complaints()
        run(launch, parameters[i].name)
        if complaints() == before:
            yield parameters[i].name


def main() -> None:
    profile, precision, what = sys.argv[1:]
    every = [x for x, _ in planned(profile, precision) if sum(sizes(x).values()) < _MANY_BYTES]
    launches = every if what == "all" else chosen(profile, precision)
    if what != "all" and (profile, precision) != _FIRST:
        known = {(x.file, x.kernel) for x in chosen(*_FIRST)}
        launches = [x for x in launches if (x.file, x.kernel) not in known]
    for launch in launches:
        print(launch.file, launch.kernel, launch.global_size, launch.options, flush=True)
        if what != "tight":
            run(launch)
            continue
        for name in loose(launch):
            print("LOOSE", launch.kernel, name)


if __name__ == "__main__":
    main()
