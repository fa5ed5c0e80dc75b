"""What is told of a pipeline as tables: stages with their times, what was found, how two backends
differ."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from lite_messages import tr
from lite_widgets.formats import bytes_text

if TYPE_CHECKING:
    from lite_engine.pipeline import Pipeline, PipelineComparison, PipelineProfile
    from lite_engine.pipeline.stages import Part

    from .quantizing import PipelineQuantization
    from .streaming import Streamed


def stage_table(times: dict[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """Heads and rows: name, images, ms, share of the total, and of a model its three parts in ms,
    per stage."""
    total = times["total_ms"]

    def row(name: str, pictures: Any, ms: float, *parts: float) -> list[Any]:
        share = 100 * ms / total if total else 0.0
        told = [f"{part:.1f}" for part in parts]
        return [name, pictures, f"{ms:.1f}", f"{share:.0f}", *told, *[""] * (3 - len(told))]

    rows = [row(tr("decode"), "", times["decode_ms"])]
    for s in times["stages"]:
        parts = [s[key] for key in ("prepare_ms", "model_ms", "read_ms") if key in s]
        rows.append(row(s["name"], s["pictures"], s["ms"], *parts))
    heads = [tr("stage"), tr("images"), "ms", "%", tr("prepare, ms"), tr("model, ms"),
             tr("read, ms")]  # fmt: skip
    return heads, [*rows, row(tr("total"), "", total)]


def rates_table(made: Streamed) -> tuple[list[str], list[list[Any]]]:
    """Heads and one row: throughput, latency, and how many frames were answered or not."""
    row = [f"{made.per_second:.1f}", f"{made.median_ms:.1f}", f"{made.worst_ms:.1f}",
           made.answered, made.dropped, made.failed]  # fmt: skip
    heads = [tr("frames/s"), tr("median latency, ms"), tr("worst latency, ms"), tr("answered"),
             tr("dropped"), tr("unreadable")]  # fmt: skip
    return heads, [row]


def comparison_table(made: PipelineComparison) -> tuple[list[str], list[list[Any]]]:
    """Heads and rows: each model's error on the same inputs, and what it changes on its own."""
    rows: list[list[Any]] = [
        [s.name, s.calls, f"{s.rel_l2:.2g}", f"{s.max_abs:.2g}", "; ".join(s.effect[:3])]
        for s in made.stages
    ]
    heads = [tr("stage"), tr("calls"), tr("relative error"), tr("largest error"),
             tr("changes on its own")]  # fmt: skip
    return heads, rows


def profile_table(made: PipelineProfile) -> tuple[list[str], list[list[Any]]]:
    """Heads and rows: as `stage_table`, of medians, and each model's slowest layer."""
    times = {
        "total_ms": made.total_ms, "decode_ms": made.decode_ms,
        "stages": [
            {"name": s.name, "pictures": s.pictures, "ms": s.ms,
             **{f"{part}_ms": ms for part, ms in s.parts.items()}}
            for s in made.stages
        ],
    }  # fmt: skip
    heads, rows = stage_table(times)
    slowest = ["", *(_slowest(stage) for stage in made.stages), ""]
    return [*heads, tr("slowest layer")], [
        [*row, told] for row, told in zip(rows, slowest, strict=True)
    ]


def _slowest(stage: Any) -> str:
    if stage.layers is None or not stage.layers.layers:
        return ""
    layer = max(stage.layers.layers, key=lambda row: row.median_ms)
    return tr("{layer}, {ms:.2f} ms", layer=layer.name, ms=layer.median_ms)


def models_table(pipeline: Pipeline) -> tuple[list[str], list[list[Any]]]:
    """Heads and rows: each model's input, outputs, layers, bytes of constants, how its outputs are
    read, labels."""
    rows: list[list[Any]] = []
    for part in pipeline.parts:
        graph = part.model.graph
        outputs = ", ".join(str(value.type) for value in graph.outputs)
        kind = str(part.read.get("kind", tr("by its shapes")))
        labels = str(len(part.labels)) if part.labels else ""
        rows.append([part.name, str(graph.inputs[0].type), outputs, len(graph.nodes),
                     bytes_text(constant_bytes(part)), kind, labels])  # fmt: skip
    heads = [tr("model"), tr("input"), tr("outputs"), tr("layers"), tr("size"), tr("read as"),
             tr("labels")]  # fmt: skip
    return heads, rows


def constant_bytes(part: Part) -> int:
    return sum(v.const.nbytes for v in part.model.graph.constants() if v.const is not None)


def choices_table(made: PipelineQuantization) -> tuple[list[str], list[list[Any]]]:
    """Heads and rows: each stage's type, the metric with it alone in int8, its sizes, why not."""
    rows: list[list[Any]] = [
        [s.name, "int8" if s.int8 else tr("float"), "" if s.alone is None else f"{s.alone:.3f}",
         f"{s.float_bytes / 1e6:.2f}", f"{s.int8_bytes / 1e6:.2f}" if s.int8_bytes else "",
         s.reason]
        for s in made.stages
    ]  # fmt: skip
    heads = [tr("stage"), tr("type"), tr("{metric} alone in int8", metric=made.metric),
             tr("float, MB"), tr("int8, MB"), tr("reason")]  # fmt: skip
    return heads, rows


def table_traits(title: str, heads: list[str], rows: list[list[Any]]) -> dict[str, Any]:
    """As `lite_widgets.DataTable` takes it."""
    return {
        "title": title,
        "columns": [
            {"id": str(i), "head": head, "kind": "number" if _numbers(rows, i) else "text"}
            for i, head in enumerate(heads)
        ],
        "rows": [{str(i): str(cell) for i, cell in enumerate(row)} for row in rows],
    }


def _numbers(rows: list[list[Any]], column: int) -> bool:
    """Are its cells numbers, but for empty ones?"""
    told = [text for row in rows if (text := str(row[column]))]
    return bool(told) and all(re.fullmatch(r"[-+\d.e]+", text) for text in told)


def cards(pipeline: Pipeline) -> list[dict[str, Any]]:
    """Each stage as `lite_widgets.Stages` takes it, with what it took in the last run."""
    last = pipeline.last
    times: dict[str, Any] = last["times"] if last else {"stages": [], "total_ms": 0}
    made = []
    for i, stage in enumerate(pipeline.stages):
        name = stage.get("model") or next(iter(stage))
        card: dict[str, Any] = {"name": name, "state": "todo"}
        if i < len(times["stages"]):
            taken = times["stages"][i]
            share = 100 * taken["ms"] / times["total_ms"] if times["total_ms"] else 0
            card = {"name": name, "state": "done", "detail": f"{taken['ms']:.1f} ms, {share:.0f} %"}
        made.append(card)
    return made


def answer_items(answers: dict[str, Any]) -> list[dict[str, str]]:
    """As `lite_widgets.ResultCard` takes them: what was found, its score and place, the answer."""
    return [
        {"label": what, "shape": " · ".join(t for t in (score, box) if t), "text": text}
        for what, text, score, box in found(answers)
    ]


def found(answers: dict[str, Any], within: str = "") -> list[tuple[str, str, str, str]]:
    """A row for each thing that was found: what found it (those of a crop below it), the answer,
    its score, its place."""
    rows: list[tuple[str, str, str, str]] = []
    for model, answer in answers.items():
        at = within + model
        if answer["kind"] == "text":
            rows.append((at, answer["text"], f"{answer['confidence']:.3f}", ""))
        for number, item in enumerate(answer.get("items", []), 1):
            score = item.get("score", item.get("share"))
            box = ", ".join(f"{v:.0f}" for v in item.get("box", []))
            name = f"{at} {number}" if box else at
            told = "" if score is None else f"{score:.3f}"
            rows.append((name, item.get("label", ""), told, box))
            rows += found(item.get("answers", {}), f"{name} → ")
    return rows
