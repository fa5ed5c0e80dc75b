"""Where two backends differ in a pipeline: which stage, and what that does to the answer.

Each call of a model on the baseline is repeated on the candidate with the same input, so that a
stage's error is its own. Then the whole pipeline runs on the candidate, and once more for each
stage that differs, with that stage alone on the candidate.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from lite_messages import tr

if TYPE_CHECKING:
    from .pipeline import Pipeline

#: Boxes may differ by so many pixels.
PIXELS = 1.0
Run = Callable[[np.ndarray], Sequence[np.ndarray]]


@dataclass
class StageComparison:
    """One model. `rel_l2` is |candidate − baseline| / |baseline| of its outputs for the same input,
    the worst of its calls; `effect` what changes in the answer when this stage alone runs on the
    candidate."""

    name: str
    calls: int = 0
    rel_l2: float = 0.0
    max_abs: float = 0.0
    effect: list[str] = field(default_factory=list)


@dataclass
class PipelineComparison:
    """`answers` are the baseline's and the candidate's; `changes` how they differ, a line each."""

    pipeline: str
    baseline: str
    candidate: str
    stages: list[StageComparison]
    answers: tuple[dict[str, Any], dict[str, Any]]
    changes: list[str]

    @property
    def first(self) -> StageComparison | None:
        """The first stage that changes the answer by itself."""
        return next((stage for stage in self.stages if stage.effect), None)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __repr__(self) -> str:
        said = tr("same answer") if not self.changes else "; ".join(self.changes[:3])
        return f"<{self.pipeline}: {self.baseline} / {self.candidate}: {said}>"


def compare(
    pipeline: Pipeline, image: str | Path | bytes, baseline: str, candidate: str, **options: Any
) -> PipelineComparison:
    """`pipeline` about one image or sound on two backends, each `x86`, `opencl`, … or a backend on
    a device, `arm@emulated`. Raises what running raises."""
    sides = [pipeline.runners(name, **options) for name in (baseline, candidate)]
    stages = [StageComparison(part.name) for part in pipeline.parts]

    def both(index: int) -> Run:
        def run(array: np.ndarray) -> Sequence[np.ndarray]:
            wanted = sides[0][index](array)
            _add(stages[index], wanted, sides[1][index](array))
            return wanted

        return run

    count = range(len(stages))
    first = pipeline.answer_with([both(i) for i in count], image)
    second = pipeline.answer_with(sides[1], image)
    changes = answer_changes(first, second)
    for i in count:
        if changes and stages[i].max_abs > 0:
            mixed = [sides[i == k][k] for k in count]
            stages[i].effect = answer_changes(first, pipeline.answer_with(mixed, image))
    return PipelineComparison(pipeline.name, baseline, candidate, stages, (first, second), changes)


def _add(stage: StageComparison, wanted: Sequence[np.ndarray], got: Sequence[np.ndarray]) -> None:
    """Counts one call's difference."""
    stage.calls += 1
    for a, b in zip(wanted, got, strict=True):
        if a.shape != b.shape or not a.size:
            stage.rel_l2 = stage.max_abs = float("inf") if a.shape != b.shape else 0.0
            continue
        a, b = a.astype(np.float64), b.astype(np.float64)
        difference = np.linalg.norm(b - a)
        length = np.linalg.norm(a)
        far = difference / length if length else float(difference > 0)
        stage.rel_l2 = max(stage.rel_l2, float(np.nan_to_num(far, nan=np.inf)))
        most = np.nan_to_num(np.abs(b - a), nan=np.inf).max()
        stage.max_abs = max(stage.max_abs, float(most))


def answer_changes(
    a: Mapping[str, Any], b: Mapping[str, Any], pixels: float = PIXELS, where: str = ""
) -> list[str]:
    """How the answers `b` differ from `a`, as a line each: texts, classes, counts, and boxes that
    moved by more than `pixels`. Scores may differ."""
    found: list[str] = []
    for name, before in a["answers"].items():
        place, after = f"{where}{name}", b["answers"].get(name)
        if after is None or before["kind"] != after["kind"]:
            found.append(tr("{place}: no {kind}", place=place, kind=before["kind"]))
            continue
        if before.get("text") != after.get("text"):
            texts = (json.dumps(x.get("text"), ensure_ascii=False) for x in (before, after))
            found.append(tr("{place}: {changed}", place=place, changed=" → ".join(texts)))
        if before["kind"] == "mask":
            continue  # shares of classes are scores
        items, others = before.get("items", []), after.get("items", [])
        if before["kind"] == "top":  # the first one is the answer
            items, others = items[:1], others[:1]
        if len(items) != len(others):
            counts = f"{len(items)} → {len(others)}"
            found.append(tr("{place}: {counts} found", place=place, counts=counts))
        for number, (x, y) in enumerate(zip(items, others, strict=False), 1):
            found += _item_changes(x, y, pixels, f"{place} {number}")
    return found


def _item_changes(x: Mapping[str, Any], y: Mapping[str, Any], pixels: float, at: str) -> list[str]:
    found: list[str] = []
    if x.get("label") != y.get("label"):
        found.append(
            tr("{place}: {changed}", place=at, changed=f"{x.get('label')} → {y.get('label')}")
        )
    places = [np.array([*i.get("box", []), *i.get("corners", [])]) for i in (x, y)]
    if places[0].shape == places[1].shape and places[0].size:
        moved = float(np.abs(places[0] - places[1]).max())
        if moved > pixels:
            found.append(tr("{place}: moved by {moved:.1f} pixels", place=at, moved=moved))
    if "answers" in x:
        inner = {"answers": y.get("answers", {})}
        found += answer_changes({"answers": x["answers"]}, inner, pixels, f"{at} ")
    return found
