"""Where a pipeline's time goes: stages, and the layers of the models inside them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from lite_messages import tr

from ..errors import UsageError
from ..profile import Profile
from ..profile import profile as profile_layers

if TYPE_CHECKING:
    from ..runtime import Predictor
    from .pipeline import Pipeline, Run


@dataclass
class StageProfile:
    """Medians in ms. `pictures` went through it; of a model, `parts` are preparing, running and
    reading, and `layers` is its profile on the first of its inputs, None where none reached it."""

    name: str
    pictures: int
    ms: float
    share: float
    parts: dict[str, float] = field(default_factory=dict)
    layers: Profile | None = None

    def to_dict(self) -> dict[str, Any]:
        made = {k: v for k, v in vars(self).items() if k != "layers"}
        return {**made, "layers": self.layers.to_dict() if self.layers else None}


@dataclass
class PipelineProfile:
    """`total_ms` is the median of the whole, `decode_ms` of reading the file; shares are of the
    total."""

    pipeline: str
    backend: str
    runs: int
    total_ms: float
    decode_ms: float
    stages: list[StageProfile]

    @property
    def slowest(self) -> StageProfile:
        return max(self.stages, key=lambda stage: stage.ms)

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "stages": [stage.to_dict() for stage in self.stages]}

    def __repr__(self) -> str:
        return f"<PipelineProfile {self.pipeline}: {self.total_ms:.1f} ms>"


def profile(
    pipeline: Pipeline,
    image: str | Path | bytes,
    backend: str | Mapping[str, str] = "auto",
    *,
    runs: int = 10,
    layers: bool = True,
    progress: Callable[[int, int], None] = lambda done, total: None,
    **options: Any,
) -> PipelineProfile:
    """Runs the whole pipeline `runs` times after one to warm up, then, unless `layers` is False,
    profiles each model by itself on the first input that reached it. `progress(done, total)` may
    raise to cancel; `options` are those of `Predictor`. Raises what running raises, UsageError
    without runs."""
    if runs < 1:
        raise UsageError(tr("runs must be at least 1, got {runs}", runs=runs))
    data = image if isinstance(image, bytes) else Path(image)
    predictors = pipeline.predictors(backend, **options)
    inputs: dict[int, np.ndarray] = {}
    watched = [_watched(pipeline.runner_of(p), inputs, i) for i, p in enumerate(predictors)]
    steps = 1 + runs + (len(predictors) if layers else 0)
    pipeline.answer_with(watched, data)
    native, found = pipeline.native([pipeline.runner_of(p) for p in predictors]), []
    content = data if isinstance(data, bytes) else data.read_bytes()
    for done in range(runs):
        progress(1 + done, steps)
        found.append(native.answer_of(content, times=True)["times"])
    made = _medians(pipeline, found)
    made.backend = ", ".join(dict.fromkeys(p.backend for p in predictors))
    names = [part.name for part in pipeline.parts]
    for i, predictor in enumerate(predictors if layers else ()):
        progress(1 + runs + i, steps)
        if i in inputs:
            stage = next(s for s in made.stages if s.name == names[i])
            stage.layers = _layers(predictor, pipeline.shaped(predictor, inputs[i]), runs)
    progress(steps, steps)
    return made


def _watched(run: Run, inputs: dict[int, np.ndarray], index: int) -> Run:
    def watched(array: np.ndarray) -> Any:
        inputs.setdefault(index, array)
        return run(array)

    return watched


def _layers(predictor: Predictor, array: np.ndarray, runs: int) -> Profile:
    return profile_layers(predictor, {predictor.input_names[0]: array}, runs=runs, roof=False)


def _medians(pipeline: Pipeline, found: list[dict[str, Any]]) -> PipelineProfile:
    total = statistics.median(times["total_ms"] for times in found)
    decode = statistics.median(times["decode_ms"] for times in found)
    stages = []
    for i, first in enumerate(found[0]["stages"]):
        every = [times["stages"][i] for times in found]
        ms = statistics.median(s["ms"] for s in every)
        parts = {
            key.removesuffix("_ms"): statistics.median(s[key] for s in every)
            for key in ("prepare_ms", "model_ms", "read_ms") if key in first
        }  # fmt: skip
        share = ms / total if total else 0.0
        stages.append(StageProfile(first["name"], first["pictures"], ms, share, parts))
    return PipelineProfile(pipeline.name, "", len(found), total, decode, stages)
