"""Programs in which sub-graphs run on a backend of another package: PLUG sections.

A sub-graph is one step `backend::NAME`; its first input is what the plug-in made of it (a blob),
the others are the sub-graph's. The runner calls the kernel of that operator in the backend's own
shared library (`lite_plugin.h`); where no library is loaded, or a run of it fails, the file's
program for the CPU runs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from lite_messages import tr

from ..backends import get_plugin
from ..backends.cpu.custom import KERNEL
from ..backends.plugins.subgraph import Subgraph
from ..errors import UnsupportedOperatorError, UsageError
from ..ir import DType
from ..passes.fixed_rows import fixed_rows
from ..plan import Plan, PlanTensor, Step, assign_offsets, cut, make_plan
from ..plan.program import WeightTable, encode
from .contents import Contents

#: Bytes before the program: the backend's name, filled up with zeros.
NAME_BYTES = 64


def plugin_program(model: Contents, name: str, table: WeightTable) -> bytes:
    """The PLUG section of a backend. Raises UsageError for one that makes no blobs, and
    BackendUnavailableError for one that cannot be used here."""
    backend = get_plugin(name)
    graph = fixed_rows(model.graph)
    plan = make_plan(graph, "cpu", accelerators=[backend], accelerate=True)
    merged = replace(plan, tensors=list(plan.tensors), steps=[])
    for segment in cut(plan):
        if segment.backend == "cpu":
            merged.steps += [
                replace(
                    step,
                    inputs=[segment.outer[i] if i >= 0 else -1 for i in step.inputs],
                    outputs=[segment.outer[i] if i >= 0 else -1 for i in step.outputs],
                )
                for step in segment.plan.steps
            ]
        elif segment.backend == name:
            subgraph = Subgraph(segment)
            blob = np.frombuffer(backend.blob(subgraph.graph), np.uint8)
            merged.steps.append(_step(merged, name, blob, subgraph, segment.outer))
        else:
            missing = segment.plan.steps[0].op
            raise UnsupportedOperatorError(
                tr("the runner without Python cannot run {missing}", missing=missing)
            )
    if all(step.kernel != KERNEL for step in merged.steps):
        raise UsageError(
            tr("{name} takes no layer of this model: {why}", name=name, why=plan.steps[0].why)
        )
    for index, step in enumerate(merged.steps):
        step.index = index
        step.band = 0
    assign_offsets(merged)
    return name.encode().ljust(NAME_BYTES, b"\0") + encode(merged, table)


def _step(plan: Plan, name: str, blob: np.ndarray, subgraph: Subgraph, outer: list[int]) -> Step:
    """The step of a sub-graph in the whole plan."""
    index, title = len(plan.tensors), f"{name}/blob/{len(plan.steps)}"
    tensor = PlanTensor(index, title, DType.U8, blob.shape, (0,), "weight", data=blob)
    plan.tensors.append(tensor)
    first = subgraph.plan.steps[0]
    sources = tuple(s for step in subgraph.plan.steps for s in step.sources)
    return replace(
        first,
        op=f"backend::{name}",
        kernel=KERNEL,
        backend="cpu",
        inputs=[index, *(outer[i] for i in subgraph.inputs)],
        outputs=[outer[i] for i in subgraph.plan.outputs],
        attrs={},
        sources=sources,
        node=None,
    )
