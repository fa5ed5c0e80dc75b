"""int8 for a pipeline, stage by stage, as far as one budget of the whole answer allows.

Every model is calibrated with the inputs that reach it in the float pipeline. Each is then judged
in int8 by itself, and the stages that lose least are put together as long as the metric of the
whole stays within the budget.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from lite_engine.errors import CalibrationError, UsageError
from lite_engine.images import is_image
from lite_engine.model_file import Model
from lite_engine.pipeline import Pipeline, answer_changes
from lite_messages import tr

from ..evaluate import Dataset, PipelineSide, evaluate
from ..quantizing import calibrated

#: Calibration inputs of one model.
MOST_INPUTS = 100
#: Boxes may move by this share of the image's longer side before an answer counts as another one.
MOVED = 0.02


@dataclass
class StageChoice:
    """One model. `alone` is the metric with this stage alone in int8, None where it was not
    judged; bytes are those of the constants; `reason` says why it stays in float."""

    name: str
    int8: bool = False
    alone: float | None = None
    float_bytes: int = 0
    int8_bytes: int = 0
    reason: str = ""


@dataclass
class PipelineQuantization:
    """`float_value` and `value` are the metric of the float pipeline and of the chosen one."""

    pipeline: Pipeline
    metric: str
    float_value: float
    value: float
    max_drop: float
    samples: int
    stages: list[StageChoice] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        own = {k: v for k, v in vars(self).items() if k not in ("pipeline", "stages")}
        return {**own, "stages": [asdict(stage) for stage in self.stages]}

    @property
    def headline(self) -> str:
        count = sum(stage.int8 for stage in self.stages)
        return tr(
            "{count} of {stages} stages in int8: {metric} {before:.3f} → {after:.3f}",
            count=count, stages=len(self.stages), metric=self.metric, before=self.float_value,
            after=self.value,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"<{self.pipeline.name}: {self.headline}>"


#: What judges a pipeline: (name, value), higher is better.
Judged = Callable[[Pipeline], tuple[str, float]]


def quantize_stages(
    pipeline: Pipeline,
    images: str | Path | Sequence[Any],
    data: Dataset | None = None,
    *,
    max_drop: float = 0.01,
    limit: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> PipelineQuantization:
    """`images` calibrate: a folder or files. `data` is labeled and judges by its task's metric;
    without it, the share of images about which the answer stays the same (of every fifth image,
    which then does not calibrate, when there are ten or more). Raises UsageError without images,
    LiteError when a model cannot run."""
    files = _files(images, limit)
    judging = files[::5] if data is None and len(files) >= 10 else files
    calibrating = [f for f in files if f not in judging] or files
    judged = _by_data(data) if data is not None else _by_answers(pipeline, judging)
    steps, done = len(calibrating) + 3 * len(pipeline.parts) + 1, 0

    def told() -> None:
        nonlocal done
        done += 1
        progress(min(done, steps), steps)

    inputs = _inputs(pipeline, calibrating, told)
    metric, before = judged(pipeline)
    told()
    made: dict[str, Model] = {}
    stages = []
    for part in pipeline.parts:
        stage = StageChoice(part.name, float_bytes=_bytes(part.model))
        stages.append(stage)
        try:
            made[part.name] = calibrated(part.model, inputs.get(part.name, []))
        except CalibrationError as error:
            stage.reason = error.what
            told()
            told()
            continue
        told()
        stage.int8_bytes = _bytes(made[part.name])
        stage.alone = judged(pipeline.but({part.name: made[part.name]}))[1]
        told()
    chosen: dict[str, Model] = {}
    value = before
    for stage in sorted(stages, key=lambda s: -(s.alone if s.alone is not None else -1.0)):
        told()
        if stage.alone is None:
            continue
        tried = {**chosen, stage.name: made[stage.name]}
        reached = judged(pipeline.but(tried))[1] if chosen else stage.alone
        if before - reached <= max_drop + 1e-12:
            chosen, value, stage.int8 = tried, reached, True
        else:
            stage.reason = tr("{metric} would fall to {value:.3f}", metric=metric, value=reached)
    progress(steps, steps)
    count = len(data) if data is not None else len(judging)
    named = pipeline.but(chosen, f"{pipeline.name}_int8" if chosen else None)
    return PipelineQuantization(named, metric, before, value, max_drop, count, stages)


def _files(images: str | Path | Sequence[Any], limit: int | None) -> list[Path]:
    """Raises UsageError."""
    if isinstance(images, (str, Path)):
        folder = Path(images)
        found = sorted(
            p for p in folder.rglob("*")
            if p.is_file() and (is_image(p) or p.suffix.lower() == ".wav")
        ) if folder.is_dir() else [folder]  # fmt: skip
    else:
        found = [Path(p) for p in images]
    if not found:
        raise UsageError(tr("there are no images"), where=str(images))
    return found[:limit]


def _inputs(
    pipeline: Pipeline, files: Sequence[Path], told: Callable[[], None]
) -> dict[str, list[dict[str, np.ndarray]]]:
    """Model → the inputs that reach it. Raises LiteError."""
    predictors = pipeline.predictors()
    found: dict[str, list[dict[str, np.ndarray]]] = {part.name: [] for part in pipeline.parts}

    def watched(index: int) -> Callable[[np.ndarray], Any]:
        run, predictor = pipeline.runner_of(predictors[index]), predictors[index]
        kept = found[pipeline.parts[index].name]

        def one(array: np.ndarray) -> Any:
            if len(kept) < MOST_INPUTS:
                kept.append({predictor.input_names[0]: pipeline.shaped(predictor, array).copy()})
            return run(array)

        return one

    runners = [watched(i) for i in range(len(predictors))]
    for file in files:
        pipeline.answer_with(runners, file)
        told()
    return found


def _by_data(data: Dataset) -> Judged:
    def judged(pipeline: Pipeline) -> tuple[str, float]:
        main = evaluate([PipelineSide("pipeline", pipeline)], data).sides[0].main
        return main.name, main.value if main.higher_is_better else -main.value

    return judged


def _by_answers(pipeline: Pipeline, files: Sequence[Path]) -> Judged:
    """The share of images about which a pipeline says what the float one says."""
    before = [pipeline.run(file) for file in files]

    def same(made: Pipeline, file: Path, wanted: dict[str, Any]) -> bool:
        image = wanted.get("image") or {"width": 0, "height": 0}
        pixels = max(MOVED * max(image["width"], image["height"]), 1.0)
        return not answer_changes(wanted, made.run(file), pixels)

    def judged(made: Pipeline) -> tuple[str, float]:
        right = [same(made, f, w) for f, w in zip(files, before, strict=True)]
        return tr("same answers"), float(np.mean(right))

    return judged


def _bytes(model: Model) -> int:
    return sum(v.const.nbytes for v in model.graph.constants() if v.const is not None)
