"""What a page without Python shows of PROG.web: its steps and their work, and the pipeline that
the model is by itself."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ..plan import Plan
from .contents import Contents
from .native_stage import pipeline_of_one

SECTION = "VIEW.web"
VERSION = 2


def web_view(model: Contents, plan: Plan) -> bytes:
    """The section's JSON, which docs/lite_format.md describes."""
    view = {
        "version": VERSION,
        "name": model.name,
        "precision": plan.precision,
        "pipeline": pipeline_of_one(model),
        "steps": _steps(plan),
    }
    return json.dumps(view, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


def _steps(plan: Plan) -> list[dict[str, Any]]:
    """A row per step, in the program's order; `inputs` are names of steps and of model inputs."""
    writers = {i: plan.tensors[i].name for i in plan.inputs}
    rows: list[dict[str, Any]] = []
    times: Counter[str] = Counter()
    for step in plan.steps:
        times[step.name] += 1
        own = step.name if times[step.name] == 1 else f"{step.name} ({times[step.name]})"
        read = [i for i in step.inputs if i >= 0]
        before = [name for i in read for name in _from(plan, i, writers)]
        roots = {plan.root(i).index: plan.root(i) for i in read}
        scope, slash, _ = step.name.strip("/").partition("/")
        rows.append(
            {
                "name": own,
                "op": step.op,
                "block": scope if slash else "",
                "sources": list(step.sources),
                "inputs": list(dict.fromkeys(before)),
                "values": [plan.tensors[i].name for i in step.outputs if i >= 0],
                "input_shapes": [plan.tensors[i].known_shape for i in read],
                "output_shapes": [plan.tensors[i].known_shape for i in step.outputs if i >= 0],
                "dtype": str(plan.tensors[step.outputs[0]].dtype),
                "macs": step.macs,
                "flops": step.flops,
                "bytes": step.bytes,
                "weight_bytes": sum(t.nbytes for t in roots.values() if t.role == "weight"),
                "overhead": step.node is None,
                "why": step.why,
            }
        )
        writers |= {i: own for i in step.outputs if i >= 0}
    return rows


def _from(plan: Plan, index: int, writers: Mapping[int, str]) -> list[str]:
    """Who wrote a tensor: it, what it is a view of, or the pieces of a buffer that it is whole."""
    at: int | None = index
    while at is not None and at not in writers:
        at = plan.tensors[at].alias_of
    if at is not None:
        return [writers[at]]
    root = plan.root(index).index
    return [name for i, name in writers.items() if plan.root(i).index == root]
