"""Every program text that the builders can make, for any device, without one.

    python -m tests.opencl.texts        how many there are, by device class and kernel file

The builders are asked for each graph below on each device of PROFILES, in fp32 and fp16, and for
each way to compute a layer that they offer, not only the one they would take. Which function is
fused and how large a tile is do not meet in the text: every function is paired with every kind of
way (image, matrix units, Winograd, split depth, plain), every tile with one function.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

from lite_engine.backends.opencl.cases import cases, large
from lite_engine.backends.opencl.cases.graphs import conv, pair, residual, single, some
from lite_engine.backends.opencl.profile import PROFILES, DeviceProfile
from lite_engine.backends.opencl.variants import Variant
from lite_engine.ir import Graph
from lite_engine.ops import get_op
from lite_engine.passes.fuse_activation import FUSABLE
from lite_engine.plan import Plan, Step, make_plan

from tests.opencl.ways import every_way


@dataclass(frozen=True)
class Text:
    """kernels/FILE.cl after `#define` lines, for devices of a class."""

    device_class: str
    cpu: bool
    file: str
    options: str


def all_texts() -> list[Text]:
    """Each text once, in a fixed order."""
    found: dict[Text, None] = {}
    every = [g for found in (cases(), large()) for graphs in found.values() for g in graphs]
    for graph, way in [*((g, str) for g in every), *((g, _kind) for g in fused())]:
        for precision in ("fp32", "fp16"):
            plan = make_plan(graph, "opencl", precision=precision)
            for step in plan.steps:
                if step.backend == "opencl" and step.op != "Copy":
                    for profile in PROFILES.values():
                        found.update(dict.fromkeys(_of_step(step, plan, profile, way)))
    found.update(dict.fromkeys([with_residual(t) for t in found if holds_rows(t)]))
    return list(found)


def holds_rows(text: Text) -> bool:
    """Whether a sum of a split product may join the normalization (joined_rows.py)."""
    return (text.device_class, text.file) == ("nvidia", "norm") and "#define HOLD" in text.options


def with_residual(text: Text) -> Text:
    return replace(text, options=f"{text.options}\n#define RESIDUAL")


def _kind(way: object) -> tuple[bool, ...] | str:
    """What a way has in common with others, its tile's size aside."""
    if isinstance(way, Variant):
        return way.image, way.matrix, way.winograd, way.parts > 1
    return str(way)


def _of_step(
    step: Step, plan: Plan, profile: DeviceProfile, kind: Callable[[object], Hashable]
) -> Iterator[Text]:
    """The texts of a step, of one way of each `kind`."""
    for launch in chain.from_iterable(every_way(step, plan, profile, kind).values()):
        yield Text(profile.device_class, profile.kind == "CPU", launch.file, launch.options)


def fused() -> Iterator[Graph]:
    """Every activation in every operator that takes one, convolutions with a residual too."""
    for name in FUSABLE:
        params = [v for v in get_op(name).attrs.values() if isinstance(v, float)]
        act = {"activation": name, "activation_params": params or ([-1.0, 1.0] * (name == "Clip"))}
        yield from (conv((1, 64, 12, 12), 64, k, **act) for k in (1, 3))
        yield conv((1, 6, 9, 9), 6, 3, 6, **act)
        yield conv((1, 6, 5, 5), 9, 3, 3, **act)
        yield single("Gemm", (9, 12), some(12, 20), some(20), **act)
        yield pair("MatMul", (2, 5, 8), (2, 8, 12), **act)
        yield pair("Add", (2, 3, 4), (2, 3, 4), **act)
        doubling = {"strides": [2, 2], **act}
        yield single("ConvTranspose", (1, 8, 4, 3), some(8, 4, 2, 2), some(4), **doubling)
        yield single("ConvTranspose", (1, 5, 4, 3), some(5, 4, 3, 3), some(4), **act)
        yield from (residual(64, k, **act) for k in (1, 3))


def main() -> None:
    for (device_class, file), count in sorted(
        Counter((t.device_class, t.file) for t in all_texts()).items()
    ):
        print(f"{device_class:8} {file:12} {count:5}")
    print(len(all_texts()), "texts")


if __name__ == "__main__":
    main()
