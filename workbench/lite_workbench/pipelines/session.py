"""PipelineSession: what `lw.open` makes of a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lite_engine.errors import UsageError
from lite_engine.pipeline import Pipeline, PipelineComparison, PipelineProfile
from lite_engine.pipeline import compare as compare_backends
from lite_engine.pipeline import profile as profile_stages
from lite_messages import tr

from .._working import Working
from ..inputs import as_code

if TYPE_CHECKING:
    from lite_engine.export import Exported

    from ..evaluate import Drop, Evaluation
    from .quantizing import PipelineQuantization
    from .streaming import Streamed


class PipelineSession(Working):
    """``session = lw.open("ocr.yaml")``; every method blocks, `start` runs one in the background.

    versions       name → Pipeline: "float", and "int8" after `quantize`; `version` is the chosen
    image          the file that ran last
    answers        backend → the last answer, with the stages' times
    streamed       the last Streamed, also while it runs; None before `stream`
    profiles       backend → PipelineProfile
    comparisons    (baseline, candidate) → PipelineComparison
    evaluations    every one, oldest first
    quantization   what `quantize` found; None before it
    code           the session so far, one line of Python each
    """

    def __init__(self, pipeline: Pipeline | str | Path) -> None:
        super().__init__()
        opened = isinstance(pipeline, Pipeline)
        made = pipeline if isinstance(pipeline, Pipeline) else Pipeline.open(pipeline)
        self.path = Path(made.name if isinstance(pipeline, Pipeline) else pipeline)
        self.versions: dict[str, Pipeline] = {"float": made}
        self.version = "float"
        self.image: Path | None = None
        self.answers: dict[str, dict[str, Any]] = {}
        self.drawn: bytes = b""
        self.streamed: Streamed | None = None
        self.profiles: dict[str, PipelineProfile] = {}
        self.comparisons: dict[tuple[str, str], PipelineComparison] = {}
        self.evaluations: list[Evaluation] = []
        self.quantization: PipelineQuantization | None = None
        self.exported: Exported | None = None
        self.selected: list[str] = []
        self.undoable: list[Any] = []
        given = "pipeline" if opened else repr(str(pipeline))
        self.code = ["import lite_workbench as lw", f"session = lw.open({given})"]

    # ---- as a step of the Workbench needs it

    @property
    def pipeline(self) -> Pipeline:
        """The chosen version."""
        return self.versions[self.version]

    def keep(self) -> None:
        """A pipeline's session is not kept: its file says everything."""

    def undo(self) -> str:
        """Raises UsageError: nothing here changes the pipeline that was opened."""
        raise UsageError(tr("there is nothing to undo"))

    def use(self, version: str) -> None:
        """Chooses the version that runs, is profiled and exported. Raises UsageError."""
        if version not in self.versions:
            raise UsageError(
                tr("there is no version {version!r}", version=version),
                fix=tr("it has {known}", known=", ".join(self.versions)),
            )
        self.version = version
        self.remember(f"session.use({version!r})")
        self.notify("versions", version)

    # ---- running, measuring, comparing

    def run(self, image: str | Path | None = None, backend: str = "auto") -> dict[str, Any]:
        """The answer about an image or WAV file (None: the last one), with the stages' times.
        Raises UsageError, and what running a model raises."""
        file = self._file(image)
        pipeline = self.pipeline
        made = pipeline.run(file, backend, times=True)
        self.answers.pop(backend, None)
        self.answers[backend] = made
        self.drawn = b"" if pipeline.hears else pipeline.drawn()
        self.remember(f"answer = session.run({_given(image)}backend={backend!r})")
        self.notify("run", made)
        return made

    def stream(
        self, frames: str | Path, backend: str = "auto", fps: float | None = None
    ) -> Streamed:
        """The images of a folder, or a Motion-JPEG file, as frames of a video: rates, latency and
        what each stage takes. Without `fps` every frame is answered; with it they come at this rate
        and the newest wins. What there was when it is cancelled stays. Raises UsageError, and what
        running a model raises."""
        from .streaming import stream_frames

        made = stream_frames(
            self.pipeline, frames, backend, fps, version=self.version,
            told=self._tell_stream, progress=self.progress,
        )  # fmt: skip
        given = f", fps={fps!r}" if fps is not None else ""
        self.remember(f"streamed = session.stream({str(frames)!r}, backend={backend!r}{given})")
        return made

    def _tell_stream(self, made: Streamed) -> None:
        self.streamed = made
        self.notify("stream", made)

    def profile(
        self, image: str | Path | None = None, backend: str = "auto", runs: int = 10
    ) -> PipelineProfile:
        """What each stage takes, and each layer of the models inside."""
        made = profile_stages(
            self.pipeline, self._file(image), backend, runs=runs, progress=self.progress
        )
        self.profiles.pop(backend, None)
        self.profiles[backend] = made
        self.remember(f"profile = session.profile({_given(image)}backend={backend!r}, runs={runs})")
        self.notify("profile", made)
        return made

    def compare(
        self, a: str = "x86", b: str = "opencl", image: str | Path | None = None
    ) -> PipelineComparison:
        """Which stage differs between two backends, and what that does to the answer."""
        made = compare_backends(self.pipeline, self._file(image), a, b)
        self.comparisons.pop((a, b), None)
        self.comparisons[a, b] = made
        given = f", {str(image)!r}" if image is not None else ""
        self.remember(f"comparison = session.compare({a!r}, {b!r}{given})")
        self.notify("comparison", made)
        return made

    def evaluate(
        self, data: Any, sides: Sequence[str] = ("auto",), limit: int | None = None, *,
        task: str | None = None, images: str | Path | None = None,
    ) -> Evaluation:  # fmt: skip
        """Task metrics of the final answer on labeled data: docs/evaluate.md. `sides` are versions
        or backends, or both as "int8@opencl". Raises UsageError."""
        from ..evaluate import PipelineSide, evaluate, read_dataset
        from ..saved_runs import keep_evaluation

        dataset = read_dataset(data, task=task, images=images)
        used = []
        for name in sides:
            head, _, tail = name.partition("@")
            version = head if head in self.versions else self.version
            backend = tail if head in self.versions else name
            used.append(PipelineSide(name, self.versions[version], backend or "auto", version))
        made = evaluate(used, dataset, limit=limit, progress=self.progress)
        self.evaluations.append(made)
        keep_evaluation(made, self.path)
        more = {"limit": limit, "task": task, "images": None if images is None else str(images)}
        words = [f", {name}={value!r}" for name, value in more.items() if value is not None]
        self.remember(
            f"evaluation = session.evaluate({as_code(data)}, {list(sides)!r}{''.join(words)})"
        )
        self.notify("evaluation", made)
        return made

    def quantize(
        self, images: Any, data: Any = None, max_drop: float | Drop = 0.01,
        limit: int | None = None, *, task: str | None = None,
    ) -> PipelineQuantization:  # fmt: skip
        """The version "int8": stages in int8 as far as the metric of the whole loses no more than
        `max_drop` (0.01: one point). `data` is labeled and judges; without it, the share of
        answers that stay the same does. Raises UsageError, LiteError."""
        from ..evaluate import Drop, read_dataset
        from .quantizing import quantize_stages

        judged = None if data is None else read_dataset(data, task=task)
        max_drop = max_drop.of(judged) if isinstance(max_drop, Drop) else max_drop
        made = quantize_stages(
            self.versions["float"], images, judged, max_drop=max_drop, limit=limit,
            progress=self.progress,
        )  # fmt: skip
        self.quantization = made
        self.versions["int8"] = made.pipeline
        more = [as_code(data)] if data is not None else []
        more += [f"max_drop={max_drop!r}"]
        more += [f"limit={limit}"] if limit else []
        more += [f"task={task!r}"] if task else []
        self.remember(f"quantization = session.quantize({as_code(images)}, {', '.join(more)})")
        self.notify("quantization", made)
        self.notify("versions", "int8")
        return made

    # ---- files

    def save(self, path: str | Path, targets: Sequence[str] = ("x86", "arm")) -> Path:
        """Writes the chosen version with each model once. Raises LiteError."""
        made = self.pipeline.save(path, targets)
        self.remember(f"session.save({str(path)!r}, {list(targets)!r})")
        return made

    def export(self, path: str | Path, target: str = "arm") -> Exported:
        """A folder with a whole application for a device: `lite export --app`. Raises LiteError."""
        from lite_engine.export.application import export_application

        made = export_application(self.pipeline, Path(path), target)
        self.exported = made
        self.remember(f"session.export({str(path)!r}, {target!r})")
        self.notify("exported", made)
        return made

    def notebook(self, path: str | Path) -> Path:
        """The session so far as a notebook. Raises LiteError."""
        from ..notebook import write_notebook

        return write_notebook(self.code, path, self.path.name)

    def _file(self, image: str | Path | None) -> Path:
        """Raises UsageError."""
        if image is not None:
            self.image = Path(image)
        if self.image is None:
            raise UsageError(tr("there is no image yet"), fix=tr("pass one, like 'photo.jpg'"))
        return self.image

    def __repr__(self) -> str:
        return f"<PipelineSession {self.path.name}: {', '.join(self.versions)}>"


def _given(image: str | Path | None) -> str:
    return f"{str(image)!r}, " if image is not None else ""
