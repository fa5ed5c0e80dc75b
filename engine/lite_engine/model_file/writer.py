"""Model → `.lite`: graphs, weights once, a program per CPU target and kind of OpenCL device."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from lite_messages import tr

from .._version import __version__
from ..backends.cpu.custom import KERNEL, libraries_of
from ..errors import LiteError, UsageError
from ..ir import DType, Graph, to_text
from ..passes.fixed_rows import rows_so_far, specialised_rows
from ..plan import Plan, make_plan
from ..plan.program import WeightTable, encode
from ._container import aligned, container, write_container
from .contents import Contents
from .derived import derive
from .ending import ended, native_ends, with_layers
from .needs import needs_of, to_bytes
from .opencl_programs import (
    KERNEL_TEXT,
    measured_devices,
    opencl_plan,
    opencl_programs,
    shipped,
)
from .plugin_programs import plugin_program
from .precision import CPU_TARGETS, ON_CPU, OR_FP32, PRECISIONS, SECTION_WORDS, computed
from .scales import scales_of
from .web_view import SECTION as WEB_VIEW
from .web_view import web_view


def weight_sections(table: WeightTable) -> tuple[list[bytes | memoryview], bytes]:
    """WEIGHTS as buffers, WINDEX as bytes."""
    buffers: list[bytes | memoryview] = []
    index, at = [], 0
    for blob in table.blobs:
        data = blob.data.cast("B") if blob.size else memoryview(b"")
        index += [at, len(data)]
        buffers += [data, b"\0" * (aligned(len(data)) - len(data))]
        at += aligned(len(data))
    return buffers, np.array(index, "<u8").tobytes()


#: Architecture of a target's shipped libraries; their section is LIB0.x86, LIB1.x86, …
_ARCHES = {"x86": "x86_64", "arm": "aarch64"}


def write_model(
    model: Contents,
    path: Path,
    *,
    ship_kernels: bool = False,
    tunable: bool = False,
    backends: Sequence[str] = (),
    sizes: Sequence[Contents] = (),
) -> Path:
    """Writes the file and returns its path. `sizes` are the same model with inputs of fixed sizes,
    where it leaves them open: the file's own programs are those of the last one, SIZE.0 and so on
    have those of the others. Raises LiteError when it cannot be written, or where `ship_kernels` or
    `backends` ask for what cannot be made here."""
    for graph in model.all_graphs():
        graph.check_files()
    pool = WeightTable()
    graphs = {"GRAPH": _graph(model.graph, pool)}
    tags = {p: f"GRAPH.{i}" for i, p in enumerate(sorted(model.graphs), start=1)}
    graphs |= {tag: _graph(model.graphs[p], pool) for p, tag in tags.items()}
    held = len(pool.blobs)  # what graphs refer to; programs may add more
    *others, own = sizes or (model,)
    made = _programs(own, pool, ship_kernels=ship_kernels, tunable=tunable)
    programs = made.sections
    if ship_kernels and not made.libraries and not any(t.startswith(KERNEL_TEXT) for t in programs):
        raise UsageError(
            tr("no operator of {model} has a kernel in C or OpenCL to ship", model=model.name),
            fix=tr("define one with lite_engine.c_kernel or lite_engine.opencl_kernel"),
        )
    for number, name in enumerate(backends):
        programs[f"PLUG.{number}"] = plugin_program(own, name, pool)
    needs = to_bytes(needs_of(model.targets))
    for number, other in enumerate(others):
        sized = _programs(other, pool, ship_kernels=False, tunable=tunable)
        made.notes = {**sized.notes, **made.notes}
        parts = {"NEEDS": [needs], **{tag: [data] for tag, data in sized.sections.items()}}
        programs[f"SIZE.{number}"] = b"".join(container(parts))
    meta = {
        "name": model.name,
        "engine": __version__,
        "targets": model.targets,
        "precisions": model.precisions,
        "graphs": tags,
        "tuning": model.tuning,
        "overrides": model.overrides,
        "notes": made.notes,
        **({"padded": True} if made.padded else {}),
        "metadata": _plain(model.metadata),
        "journal": model.journal.to_dict(),
    }
    derived = b"".join(derive(g, pool, held) for g in model.all_graphs())
    weights, index = weight_sections(pool)
    return write_container(
        path,
        {
            "NEEDS": [needs],
            "META": [_json(meta)],
            **({"TUNED": [_json(measured)]} if (measured := measured_devices(model)) else {}),
            **{tag: [data] for tag, data in graphs.items()},
            **{tag: [data] for tag, data in programs.items()},
            **({"WDERIVE": [derived]} if derived else {}),
            **{tag: [data] for tag, data in made.libraries.items()},
            "WINDEX": [index],
            "WEIGHTS": weights,
        },
        compressed=("META", *graphs),
    )


@dataclass
class _Programs:
    """By section; `notes` says of a target why it has none."""

    sections: dict[str, bytes] = field(default_factory=dict)
    libraries: dict[str, bytes] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    padded: bool = False


def _programs(
    model: Contents, pool: WeightTable, *, ship_kernels: bool, tunable: bool
) -> _Programs:
    """Those of all targets. Raises LiteError where `ship_kernels` asks for what is not here."""
    made = _Programs()
    known: dict[str, Plan] = {}  # x86 and AArch64 mostly have the same plan
    for target in model.targets:
        if target == "opencl":
            try:
                plan = opencl_plan(model)
                if _python_only(plan):
                    made.notes[target] = _python_note(model, target)
                    continue
                made.sections |= opencl_programs(
                    model, plan, pool, ship_kernels=ship_kernels, tunable=tunable
                )
            except LiteError as error:
                made.notes[target] = tr("no program for lite_run: {error}", error=error)
        elif target in CPU_TARGETS:
            try:
                plans = cpu_plans(model, target, known)
                if _python_only(plans[f"PROG.{SECTION_WORDS[target]}"]):
                    made.notes[target] = _python_note(model, target)
                    continue
            except LiteError as error:
                made.notes[target] = tr("no program for lite_run: {error}", error=error)
                continue
            made.sections |= {tag: encode(plan, pool) for tag, plan in plans.items()}
            if target == "wasm":
                made.sections[WEB_VIEW] = web_view(model, plans[f"PROG.{SECTION_WORDS[target]}"])
            if ship_kernels and target in _ARCHES:
                made.libraries |= _libraries(plans, target)
            made.padded |= any(s.attrs.get("padded") for p in plans.values() for s in p.steps)
    return made


def _libraries(plans: Mapping[str, Plan], target: str) -> dict[str, bytes]:
    """The libraries of a target's custom operators by section. Raises UsageError."""
    ops = {s.op: None for plan in plans.values() for s in plan.steps if s.kernel == KERNEL}
    return shipped(libraries_of(ops, _ARCHES[target]), f"LIB{{i}}.{target}")


def cpu_plans(
    model: Contents, target: str, known: dict[str, Plan] | None = None
) -> dict[str, Plan]:
    """The plans of a CPU target by the section that holds their program: PROG runs on every CPU
    that meets the file's needs; HALF, where something is in half precision, on those with its
    arithmetic. `known` are plans of other targets by what they were made from; further ones go in.
    """
    precision, words = model.precision(target), model.overrides.get(target, {})
    features: dict[str, tuple[str, ...] | None] = {"PROG": ()}
    if any((target, word) in OR_FP32 for word in (precision, *words.values())):
        features["HALF"] = None
    plans, known = {}, {} if known is None else known
    for section, have in features.items():
        written, how = computed(target, precision), _how(model, target, have)
        key = repr((written, how))
        if key not in known:
            fixed = specialised_rows(model.graph_in(written))
            known[key] = make_plan(fixed, "cpu", specialised=True, **how)
        plans[f"{section}.{SECTION_WORDS[target]}"] = known[key]
    return plans


def _graph(graph: Graph, pool: WeightTable) -> bytes:
    """A GRAPH section; its weights go into the pool, each once in the whole file."""
    arrays: list[np.ndarray] = []
    text = to_text(graph, arrays)
    table = [
        {"dtype": str(DType.of(a)), "shape": list(a.shape), "weight": pool.add(a)} for a in arrays
    ]
    metadata = {**graph.metadata, **scales_of(graph)}
    return _json({"text": text, "arrays": table, "metadata": _plain(metadata)})


def _how(model: Contents, target: str, have: tuple[str, ...] | None) -> dict[str, Any]:
    """Of a plan for a CPU with those features (None: all)."""
    words = model.overrides.get(target, {})
    return {
        "precision": computed(target, model.precision(target), have),
        "tuning": model.tuning.get(target),
        "overrides": {n: computed(target, w, have) if w in PRECISIONS else w
                      for n, w in words.items()},
    }  # fmt: skip


def _python_note(model: Contents, target: str) -> str:
    """Which layers keep a target from a program, and where the model can end before them."""
    graph = with_layers(model.graph_in(computed(target, model.precision(target))))

    def missing_in(graph: Graph) -> dict[str, set[str]]:
        rows, refused = rows_so_far(graph)
        how = _how(model, target, ())
        how["overrides"] |= dict.fromkeys(refused, "reference")
        return _python_only(make_plan(rows, ON_CPU.get(target, target), specialised=True, **how))

    missing = missing_in(graph)
    note = tr(
        "no program for lite_run: it cannot run {missing} without Python",
        missing=", ".join(sorted(missing)),
    )
    layers = set[str]().union(*missing.values())
    ends = native_ends(graph, layers)
    # Beside sizes that are open an If is written out; without those that are cut off it may stay.
    while ends and (more := set[str]().union(*missing_in(ended(graph, ends)).values()) - layers):
        layers |= more
        ends = native_ends(graph, layers)
    if ends:
        note += tr("; `lite convert --outputs {ends}` ends before that", ends=",".join(ends))
    return note


def _python_only(plan: Plan) -> dict[str, set[str]]:
    """Operators that only the NumPy reference runs, and layers that were put elsewhere by hand,
    with the sources of their steps."""
    here = {"cpu", plan.backend}
    found: dict[str, set[str]] = {}
    for s in plan.steps:
        if s.backend not in here and s.op != "Copy":
            word = s.op if s.backend == "reference" else f"{s.name} on {s.backend}"
            found.setdefault(word, set()).update(s.sources)
    return found


def _plain(value: Any) -> Any:
    """Metadata as JSON types; what JSON cannot hold becomes text."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
