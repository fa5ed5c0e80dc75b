"""A kernel that fails costs one way to compute a layer, or the layer where a list says so."""

from __future__ import annotations

from functools import lru_cache

import pytest
from lite_engine.backends.opencl.cases import cases
from lite_engine.backends.opencl.profile import PROFILES
from lite_engine.backends.opencl.registry import BUILDERS
from lite_engine.backends.opencl.ways import family_of
from lite_engine.ir import Graph
from lite_engine.plan import make_plan

from tests.opencl import tiny
from tests.opencl.ways import every_way

#: Why the CPU runs a layer when its kernel fails → the kernels for which it does.
ON_THE_CPU = {
    "a work-item computes single numbers with plain arithmetic: a compiler that breaks this breaks "
    "a second kernel just as well": [
        "unary", "binary", "judge", "cast", "batch_norm", "resize", "pool",
    ],
    "only moves elements": [
        "copy_relayout", "copy_concat", "copy_split", "copy_slice", "copy_pad", "copy_expand",
        "copy_gather", "copy_tile", "gather_elements", "gather_nd", "where",
    ],
    "a small share of every network's time, which the CPU needs about as long for": [
        "reduce", "arg", "softmax", "layer_norm", "lp_norm", "instance_norm",
        "group_norm", "turn_pairs", "grid_sample",
    ],
    "8-bit integers: the CPU has a kernel for each of them, with the same bits": [
        "i8_binary", "i8_concat", "i8_conv2d", "i8_conv2d_depthwise", "i8_conv2d_grouped",
        "i8_deconv2d", "i8_gemm", "i8_pool", "i8_resize", "i8_softmax",
        "i8_table", "quantize", "i8_fixed", "i8_batch_matmul", "i8_resize_linear",
    ],
    "4-bit weights: the CPU has a kernel that reads them as they are": ["matmul_nbits"],
    "a CPU device has one way for it, and the CPU a kernel that keeps keys in its cache": [
        "attention",
    ],
    "its product has two ways, but what walks the sequence has one": ["lstm", "gru", "rnn"],
}  # fmt: skip
ALONE = {kernel for kernels in ON_THE_CPU.values() for kernel in kernels}
#: Of a kernel → the ways that need nothing of its faster ones, on CPU devices and on GPUs.
LAST = {
    "conv2d": (("simple",), ("direct",)), "conv2d_depthwise": (("simple",), ("simple",)),
    "conv2d_grouped": (("simple", "direct"), ("simple", "direct")),
    "deconv2d": (("phases", "direct"), ("phases", "direct")),
    "gemm": (("simple",), ("direct",)), "matmul": (("simple",), ("direct",)),
}  # fmt: skip


@lru_cache(1)
def needed_by_all() -> dict[str, set[tuple[str, str]]]:
    """By kernel: the kernel functions that every way needs, of any case on any kind of device."""
    found: dict[str, set[tuple[str, str]]] = {kernel: set() for kernel in BUILDERS}
    for kernel, graphs in cases().items():
        for graph in graphs:
            for precision in ("fp32", "fp16"):
                plan = make_plan(graph, "opencl", precision=precision)
                for step in (s for s in plan.steps if s.kernel == kernel):
                    for profile in PROFILES.values():
                        ways = every_way(step, plan, profile, family_of)
                        used = [{(x.file, x.kernel) for x in made} for made in ways.values()]
                        found[kernel] |= set.intersection(*used)
    return found


@pytest.mark.parametrize("kernel", sorted(set(BUILDERS) - ALONE))
def test_no_kernel_is_needed_by_every_way(kernel: str) -> None:
    assert not needed_by_all()[kernel]


@pytest.mark.parametrize("kernel", sorted(ALONE))
def test_the_list_of_layers_left_to_the_cpu_is_true(kernel: str) -> None:
    assert needed_by_all()[kernel]


@pytest.mark.opencl
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("kernel", LAST)
def test_the_last_way_has_the_references_numbers(kernel: str, precision: str) -> None:
    profile = tiny.device().profile
    for way in LAST[kernel][profile.local_tiles]:

        def offers(graph: Graph, way: str = way) -> bool:
            plan = make_plan(graph, "opencl", precision=precision)
            (step,) = (s for s in plan.steps if s.kernel == kernel)
            return way in every_way(step, plan, profile)

        graphs = [graph for graph in cases()[kernel] if offers(graph)]
        assert len(graphs) > 1
        for graph in graphs:
            tiny.check(graph, precision=precision, way=way)
