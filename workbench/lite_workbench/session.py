"""Session: one model and everything that was done with it. Observable, with no UI in it.

Changes are told as ``(what, value)``: "versions", "targets", "prepared", "labels", "input", "run",
"profile", "tuned", "comparison", "evaluation", "sweep", "quantization", "overrides", "selected",
"job", "code", "exported", "error".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from lite_engine.display import answer_html
from lite_engine.errors import LiteError
from lite_engine.model_file.precision import DEFAULT_TARGETS
from lite_messages import tr, trn

from .answers import Answer, Run
from .changes import Change
from .cluster import Cluster
from .inputs import is_prepared
from .session_inputs import SessionInputs
from .state import (
    architecture,
    comparisons,
    evaluations,
    exports,
    inside,
    int8_version,
    layer_changes,
    lite_file,
    measuring,
    predictors,
    project,
    pruned_version,
    selection,
    undo,
    versions,
)
from .state.boards import Boards

if TYPE_CHECKING:
    import pandas as pd
    from lite_engine.backends import Measured
    from lite_engine.compare.comparison import Comparison
    from lite_engine.compare.many import ComparisonOfInputs
    from lite_engine.doctor import Examination
    from lite_engine.doctor.field_report import Adopted
    from lite_engine.export import Exported
    from lite_engine.model_file import Model
    from lite_engine.plan import Plan
    from lite_engine.profile import Profile
    from lite_engine.profile.advice import Advice
    from lite_engine.runtime import Predictor
    from plotly.graph_objects import FigureWidget

    from .editing import Edited
    from .evaluate import Drop, Evaluation
    from .looking import Look
    from .model_diff import ModelDiff
    from .pruning import Pruning
    from .quantizing import Quantization
    from .recommend import Recommendation
    from .state._state import Pair
    from .sweep import Sweep


class Session(SessionInputs):
    """``session = lw.open("model.onnx")``; every method blocks, `start` runs one in the background.

    What it holds is described at `SessionState`. `boards` are devices besides this machine: add,
    check, use.
    """

    def __init__(
        self, path: str | Path, *, shapes: Mapping[str, Sequence[int]] | None = None
    ) -> None:
        fixed = {name: tuple(dims) for name, dims in (shapes or {}).items()}
        made = lite_file.open_file(path, fixed)
        super().__init__(
            Path(path), made.graph, made.info(Path(path).name), made.base,
            is_prepared(made.versions.get(made.base, made.graph).metadata), fixed, made.versions,
            targets=made.targets, precision=made.precision, int8_targets=made.int8_targets,
            optimized=made.optimized,
        )  # fmt: skip
        self.overrides.backends = made.backends
        self.boards = Boards(self)
        given = f", shapes={fixed!r}" if fixed else ""
        self.code = ["import lite_workbench as lw", f"session = lw.open({str(path)!r}{given})"]

    def _repr_html_(self) -> str:
        made = ", ".join(self.versions)
        versions = trn("{n} version: {names}", "{n} versions: {names}", len(self.versions),
                       names=made)  # fmt: skip
        return answer_html(f"{self.info.headline}; {versions}", *self.info.table())

    def __repr__(self) -> str:
        return f"<Session {self.path.name}: {', '.join(self.versions) or tr('not converted')}>"

    # ---- targets and versions

    def examine(self) -> Examination:
        """What this machine has: `lite doctor`."""
        from lite_engine.doctor import examine

        self.remember("session.examine()")
        return examine()

    def convert(
        self,
        targets: Sequence[str] | str = DEFAULT_TARGETS,
        precision: str | Mapping[str, str] = "fp32",
    ) -> Model:
        """The float version for these targets. Raises LiteError."""
        names = targets.split(",") if isinstance(targets, str) else targets
        with undo.recorded(self):
            return versions.convert(self, names, precision)

    def use(self, version: str) -> None:
        """Chooses the version that runs, is profiled and exported. Raises UsageError."""
        with undo.recorded(self):
            versions.use(self, version)

    @property
    def model(self) -> Model:
        """The chosen version; converts for every target when nothing was converted."""
        return versions.model_of(self)

    @property
    def base_model(self) -> Model:
        """The version that others are made from; converts for every target when there is none."""
        return versions.base_model(self)

    def quantize(
        self,
        images: Any,
        method: str = "mse",
        keep_float: Sequence[str] = (),
        limit: int | None = None,
        *,
        equalize: bool = True,
        force: bool = False,
        **cluster: Any,
    ) -> Quantization:
        """The int8 version (mixed when layers are kept in float) from at most `limit` samples: a
        folder, an .npz, arrays, feeds. `equalize` and `force` are as in `lite quantize`, `cluster`
        as in `evaluate`. Raises CalibrationError."""
        return int8_version.quantize(
            self, images, method, keep_float, limit, Cluster(**cluster),
            equalize=equalize, force=force,
        )  # fmt: skip

    def explore(
        self, backend: str = "auto", data: Any = None, limit: int | None = None
    ) -> Quantization:
        """Which layers lose accuracy in int8, and versions that keep the worst in float, measured
        on `backend`: by the task's metric on at most `limit` samples of labeled `data`, or by
        answers that equal the float model's. Raises UsageError, BackendUnavailableError."""
        return int8_version.explore(self, backend, data, limit)

    def prune(self, images: Any, **options: Any) -> Pruning:
        """The version "pruned", with zeros in weights or fewer channels, checked and timed here.
        `options` are the fields of `lite_engine.prune.PruneOptions`, keep, measure, also and force,
        as `lite prune` has them. Raises UsageError, CalibrationError."""
        return pruned_version.prune(self, images, options)

    # ---- running, measuring, comparing

    def predictor(
        self, backend: str = "auto", version: str | None = None, *, planted: bool = True
    ) -> Predictor:
        """A Predictor of a version with the overrides and (if `planted`) planted faults; kept."""
        return predictors.predictor(self, backend, version, planted=planted)

    def run(self, image: Any = None, backend: str = "auto", version: str | None = None) -> Run:
        """One inference. `image` may be an image, a file, a feed; None keeps the last input."""
        return measuring.run(self, image, backend, version)

    def profile(self, backend: str = "auto", runs: int | None = None, image: Any = None) -> Profile:
        """Where the time goes, layer by layer; kept for `lite runs`, with its `advice`."""
        return measuring.profile(self, backend, runs, image)

    def tune(self, effort: str = "normal", backend: str = "opencl") -> list[Measured]:
        """Measures the variants of each layer on this machine's OpenCL device (`effort` is rapid,
        normal or exhaustive), or with backend "cpu" sparse against dense kernels, takes the fastest
        from now on, and returns what was measured now: `lite tune`.
        Raises UsageError, BackendUnavailableError."""
        return measuring.tune(self, effort, backend)

    def import_tuning(self, report: str | Path) -> Adopted:
        """What a field report of the same device and driver says of its variants, like `lite tune
        --import`. Raises TargetMismatchError, ModelFormatError, BackendUnavailableError."""
        return measuring.import_tuning(self, Path(report))

    def advise(self, profile: Profile, plan: Plan) -> list[Advice]:
        """What could be faster, with the commands that try it."""
        return measuring.advise(self, profile, plan)

    def compare(
        self,
        a: str = "x86",
        b: str = "opencl",
        image: Any = None,
        *,
        tolerance: float | None = None,
        isolated: bool = True,
        layers: Sequence[str] | None = None,
        until: str | None = None,
        detail: Sequence[str] = (),
    ) -> Comparison:
        """Layer by layer: two backends, or two versions ("float", "int8"), or "int8@opencl". The
        options are those of `lite_engine.compare.compare`."""
        return comparisons.compare(
            self, (a, b), image, tolerance=tolerance, isolated=isolated, layers=layers,
            until=until, detail=detail,
        )  # fmt: skip

    def compare_many(
        self, data: Any, a: str = "x86", b: str = "opencl", **options: Any
    ) -> ComparisonOfInputs:
        """`compare` on every input of a folder, `.npz`, list or data set: each layer's typical and
        worst error. `options` are those of `compare` and `evaluate`. Raises UsageError."""
        return comparisons.compare_many(self, data, (a, b), **options)

    def evaluate(
        self,
        data: Any,
        sides: Sequence[str] = ("auto",),
        limit: int | None = None,
        *,
        task: str | None = None,
        images: str | Path | None = None,
        labels: Sequence[str] | None = None,
        **cluster: Any,
    ) -> Evaluation:
        """Task metrics with intervals on labeled data: a path (docs/evaluate.md has the layouts),
        a `Dataset`, or (images, labels). `sides` are named as in `compare`, the baseline first.
        With workers=N processes here (and dashboard=True), scheduler="tls://…" or client=a Dask
        Client the samples run in shards, with the same result. Raises UsageError."""
        return evaluations.evaluate(
            self, data, sides, limit, Cluster(**cluster), task=task, images=images, labels=labels
        )

    def sweep(
        self,
        backends: Sequence[str] = ("auto",),
        precisions: Sequence[str] = ("auto",),
        threads: Sequence[int] = (1,),
        batches: Sequence[int] | None = None,
        streams: Sequence[int] = (1,),
        *,
        data: Any = None,
        limit: int | None = None,
        images: str | Path | None = None,
        max_ms: float | None = None,
        min_rate: float | None = None,
        rounds: int = 7,
        resume: str | Path | None = None,
        **cluster: Any,
    ) -> Sweep:
        """Latency, throughput, memory and (with labeled `data`) accuracy of the chosen version for
        every combination; `front` of the result are those that no other one beats, `best` the
        sweet spot for `max_ms` or `min_rate` (samples per second). `limit`, `images` and `cluster`
        are as in `evaluate`. Raises UsageError."""
        given = {"backends": backends, "precisions": precisions, "threads": threads,
                 "batches": batches, "streams": streams}  # fmt: skip
        return evaluations.sweep(
            self, given, data, limit, images, max_ms=max_ms, min_rate=min_rate, rounds=rounds,
            resume=resume, cluster=Cluster(**cluster),
        )  # fmt: skip

    def recommend(self, data: Any, max_drop: float | Drop, **options: Any) -> Recommendation:
        """The fastest version within the budgets, measured: `max_drop` of the metric (0.005: half a
        point), `options` of `recommend.recommend` and `evaluate`. Raises UsageError, LiteError."""
        return evaluations.recommend(self, data, max_drop, **options)

    def values(
        self, side: str, layer: str, alone_after: str | None = None, pair: Pair | None = None,
        outputs: Sequence[str] = (),
    ) -> np.ndarray:  # fmt: skip
        """A layer's output on one side (its first, or the first that is in `outputs`, which has a
        row's names on both sides); `alone_after` names the side that feeds it (isolated), `pair`
        the comparison that the sides and the input belong to (default: those of now)."""
        return comparisons.values(self, side, layer, alone_after, pair, outputs)

    def look(self, name: str, sides: Sequence[str] | str = "auto", image: Any = None) -> Look:
        """What a tensor holds: the output of a layer, or any value or weight by its name. One side
        or two, named as in `compare`; "file" is the file's own graph. Raises UsageError."""
        return inside.look(self, name, sides, image)

    # ---- changing single layers

    def override(
        self,
        layers: str | Sequence[str],
        backend: str | None = None,
        precision: str | None = None,
    ) -> None:
        """Sets where layers run and in which precision; what is not named goes back to the plan.

        A precision makes the version "custom" from the chosen one, with the calibration of
        `quantize`; `overrides.verdict` says how far its outputs are from the float version's.
        Raises UsageError, CalibrationError.
        """
        layer_changes.override(self, layers, backend, precision)

    def try_override(
        self, layers: str | Sequence[str], target: str | None, backend: str, runs: int = 15, *,
        precision: str | None = None,
    ) -> Change:  # fmt: skip
        """Changes layers and measures the whole model before and after. Runs of both alternate,
        and planted faults are left out, so that only the change is measured."""
        return layer_changes.try_override(self, layers, target, backend, runs, precision)

    def plant_fault(self, layer: str, kind: str, backend: str = "opencl") -> None:
        """Spoils a layer's output on one backend, to test and to teach. Raises UsageError."""
        layer_changes.plant_fault(self, layer, kind, backend)

    def linked_figure(self, kind: str = "latency") -> FigureWidget:
        """A Plotly figure for a cell: "latency", "roofline", "timeline" or "memory" of the last
        profile, "error" of the last comparison. It follows new ones in place, and what is selected
        in it is `selected`, here and in the Workbench. Raises UsageError, LiteError."""
        from .linked_figure import linked_figure

        return linked_figure(self, kind)

    def structure(self) -> pd.DataFrame:
        """One row for each region of the network (stem, stages, neck, head): blocks, layers,
        operators of the file, bytes of weights, what was measured, and the evidence for it."""
        return architecture.table(self)

    @property
    def selection(self) -> pd.DataFrame:
        """The selected layers as a DataFrame: the last profile's rows, else what `info` knows."""
        return selection.selected_rows(self)

    def extract(self, path: str | Path, layers: Sequence[str] = ()) -> Path:
        """Writes these layers of the file (default: the selected ones) as ONNX. Raises LiteError"""
        return selection.extract(self, Path(path), layers)

    def edit(self, path: str | Path, *, opset: int | None = None, **changes: Any) -> Edited:
        """`lite edit` of the file; `changes` are fields of `editing.Edits`. Raises LiteError."""
        return selection.edit(self, Path(path), opset, changes)

    def diff(self, baseline: str | Path, *, optimized: bool = False) -> ModelDiff:
        """What changed from another model file to this one: `lite diff`. Raises LiteError."""
        return selection.diff(self, Path(baseline), optimized)

    # ---- undo, files

    def undo(self) -> str:
        """Takes the last conversion, quantization, override or choice of a version back, and
        returns the line of Python that had made it. What was measured stays. Raises UsageError."""
        return undo.undo(self)

    def save(self, path: str | Path, notes: str = "") -> Path:
        """Writes all but the calibration as `path.liteproject`, for `lw.open`. Raises LiteError."""
        made = project.save(self, path, notes)
        self.remember(f"session.save({str(path)!r})")
        return made

    def keep(self) -> Path | None:
        """Keeps the session for `lw.restore`; the Workbench does so after each change. None where
        the versions are too large for that."""
        return project.keep(self)

    @overload
    def export(
        self, path: str | Path, target: None = None, int8: Sequence[str] | None = None
    ) -> Path: ...

    @overload
    def export(
        self, path: str | Path, target: str, int8: Sequence[str] | None = None
    ) -> Exported: ...

    def export(
        self, path: str | Path, target: str | None = None, int8: Sequence[str] | None = None
    ) -> Path | Exported:
        """Writes the chosen version with its overrides: a `.lite` file, or for a `target` ("arm",
        "x86") a folder with runner, library and samples, as `lite export` does. Targets named in
        `int8` take the int8 version (None: as in the file that was opened). Raises LiteError."""
        from .report import write_report

        if target is None:
            return exports.export_file(self, path, int8)
        return exports.export_folder(
            self, path, target, int8, lambda page: write_report([self], page)
        )

    def notebook(self, path: str | Path) -> Path:
        """Writes the session so far as a runnable notebook."""
        from .notebook import write_notebook

        return write_notebook(self.code, path)


__all__ = ["Answer", "LiteError", "Run", "Session"]
