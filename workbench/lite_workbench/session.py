"""Session: one model and everything that was done with it. Observable, with no UI in it.

Changes are told as ``(what, value)``: "versions", "targets", "prepared", "input", "run", "profile",
"tuned", "comparison", "evaluation", "sweep", "quantization", "overrides", "selected", "job",
"code", "exported", "error".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from lite_engine.display import answer_html
from lite_engine.errors import LiteError
from lite_messages import tr, trn

from ._old_names import OldNames
from .answers import Answer, Run, answer_of
from .changes import Change, measure_change
from .inputs import as_code, feeds_of, is_prepared, size_of
from .jobs import Job
from .names import INT8, MIXED, with_ending
from .state import comparisons, lite_file, overrides, undo, versions
from .state.boards import Boards
from .state.keeping import Keeping
from .state.predictors import predictor

if TYPE_CHECKING:
    import pandas as pd
    from lite_engine.backends import Measured
    from lite_engine.compare.comparison import Comparison
    from lite_engine.doctor import Examination
    from lite_engine.doctor.field_report import Adopted
    from lite_engine.export import Exported
    from lite_engine.model_file import Model
    from lite_engine.plan import Plan
    from lite_engine.profile import Profile
    from lite_engine.profile.advice import Advice
    from lite_engine.runtime import Predictor

    from .evaluate import Evaluation
    from .quantizing import Quantization
    from .recipes import RecipeAnswer
    from .recommend import Recommendation
    from .state._state import Pair
    from .sweep import Sweep


class Session(OldNames, Keeping):
    """``session = lw.open("model.onnx")``; every method blocks, `start` runs one in the background.

    What it holds is described at `SessionState`. `boards` are devices besides this machine: add,
    check, use.
    """

    def __init__(
        self, path: str | Path, *, shapes: Mapping[str, Sequence[int]] | None = None
    ) -> None:
        from lite_engine.runtime.support import model_info

        fixed = {name: tuple(dims) for name, dims in (shapes or {}).items()}
        made = lite_file.open_file(Path(path), fixed)
        super().__init__(
            Path(path), made.graph, model_info(made.graph, Path(path).name), made.base,
            is_prepared(made.versions.get(made.base, made.graph).metadata), fixed, made.versions,
            targets=made.targets, precision=made.precision, int8_targets=made.int8_targets,
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

    # ---- long work

    def start(self, title: str, work: Callable[[], object], about: str = "") -> Job:
        """Queues `work` for another thread, told as "job"; `about` is the step that waits."""
        return self.work.start(title, work, about)

    @property
    def job(self) -> Job | None:
        """The work that runs, or ran last."""
        return self.work.job

    @property
    def jobs(self) -> list[Job]:
        """The work that runs, then what waits for it, in this order."""
        return self.work.jobs

    def progress(self, done: int, total: int) -> None:
        """Long methods report here; raises Cancelled when the job was cancelled."""
        self.work.progress(done, total)

    # ---- targets and versions

    def examine(self) -> Examination:
        """What this machine has: `lite doctor`."""
        from lite_engine.doctor import examine

        self.remember("session.examine()")
        return examine()

    def convert(
        self,
        targets: Sequence[str] | str = versions.ALL_TARGETS,
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
    ) -> Quantization:
        """The int8 version (mixed when layers are kept in float) from at most `limit` calibration
        samples: a folder, an .npz, arrays or feeds. Raises CalibrationError."""
        from .quantizing import quantize

        with self.busy, undo.recorded(self):
            made, model = quantize(self.base_model, images, method, keep_float, limit, self.work)
            self.quantization = made
            versions.keep(self, MIXED if keep_float else INT8, model)
            kept = f", keep_float={list(keep_float)!r}" if keep_float else ""
            most = f", limit={limit}" if limit else ""
            self.remember(f"session.quantize({as_code(images)}, method={method!r}{kept}{most})")
        return made

    def explore(self) -> Quantization:
        """Which layers lose accuracy in int8, and measured versions that keep the worst in float.
        Raises UsageError before `quantize`."""
        from .quantizing import explore

        with self.busy:
            made = explore(self.quantization, self.base_model, self.threads, self.work)
        self.remember("session.explore()")
        self.notify("quantization", made)
        return made

    # ---- input

    def prepare(self, how: str) -> None:
        """How an image becomes the input: what `--preprocess` takes, like "imagenet,crop" or
        "mean=127,std=128"; "letterbox" alone leaves the model's numbers. Every version keeps it, in
        its file too. Raises UsageError."""
        versions.prepare(self, how)

    def recipes(self, image: Any, backend: str = "auto") -> list[RecipeAnswer]:
        """What the model would answer to an image with each usual preprocessing, for a model that
        does not say its own. Raises LiteError."""
        from .recipes import recipe_answers

        with self.busy:
            used = self.predictor(backend)
            made = recipe_answers(used.model, used, image)
        self.remember(f"session.recipes({as_code(image)})")
        return made

    def set_input(self, source: Any = None) -> dict[str, np.ndarray]:
        """An image (path, bytes, array), a .npy or .npz, a feed; None: random numbers."""
        self.feeds, self.image = feeds_of(self.model, source)
        self.notify("input", source)
        return self.feeds

    def _input(self, source: Any = None) -> dict[str, np.ndarray]:
        if source is None and self.feeds is not None:
            return self.feeds
        return self.set_input(source)

    # ---- running, measuring, comparing

    def predictor(
        self, backend: str = "auto", version: str | None = None, *, planted: bool = True
    ) -> Predictor:
        """A Predictor of a version with the session's overrides and (unless `planted` is False)
        planted faults; kept."""
        return predictor(self, backend, version, planted=planted)

    def run(self, image: Any = None, backend: str = "auto", version: str | None = None) -> Run:
        """One inference. `image` may be an image, a file, a feed; None keeps the last input."""
        with self.busy:
            feeds = self._input(image)
            used = self.predictor(backend, version)
            used.run(feeds)  # the first run plans and packs
            began = time.perf_counter()
            outputs = used.run(feeds)
            ms = (time.perf_counter() - began) * 1e3
            said = answer_of(used.model, feeds, outputs, picture=size_of(self.image))
            name = version or self.version
            shares = used.shares({n: x.shape for n, x in feeds.items()})
            made = Run(used.backend, used.display_precision, name, outputs, said, ms, shares)
            self.runs[used.backend] = made
            self.measured("run", used.backend)
        given = f"{as_code(image)}, " if image is not None else ""
        self.remember(f"session.run({given}backend={used.backend!r})")
        self.notify("run", made)
        return made

    def profile(self, backend: str = "auto", runs: int = 20, image: Any = None) -> Profile:
        """Where the time goes, layer by layer; kept for `lite runs`, with its `advice`."""
        from lite_engine.history import History
        from lite_engine.profile import profile

        with self.busy:
            used = self.predictor(backend)
            feeds = self._input(image)
            made = profile(used, feeds, runs=runs, progress=self.progress)
            plan = used.plan({n: x.shape for n, x in feeds.items()})
            self.advice[used.backend] = self.advise(made, plan)
            History().add(made, str(self.path))
            self.profiles.pop(used.backend, None)  # the newest is last
            self.profiles[used.backend] = made
            self.profiled[used.backend] = self.version, used
            self.history.append(made)
            self.measured("profile", used.backend)
        self.remember(f"profile = session.profile(backend={used.backend!r}, runs={runs})")
        self.notify("profile", made)
        return made

    def tune(self, effort: str = "normal") -> list[Measured]:
        """Measures the variants of each layer on this machine's OpenCL device and takes the fastest
        from now on: `lite tune`. `effort` is rapid, normal or exhaustive; the layers measured now
        are returned. Raises UsageError, BackendUnavailableError."""
        from lite_engine.runtime.tune import tune

        with self.busy:
            made = tune(self.predictor("opencl"), effort).measured
        self.remember(f"session.tune({effort!r})")
        self.notify("tuned", made)
        return made

    def import_tuning(self, report: str | Path) -> Adopted:
        """What a field report of the same device and driver says of its variants, like `lite tune
        --import`. Raises TargetMismatchError, ModelFormatError, BackendUnavailableError."""
        from lite_engine import doctor

        with self.busy:
            made = doctor.adopt(doctor.read(Path(report)))
            self.predictors.clear()
        self.remember(f"session.import_tuning({str(report)!r})")
        self.notify("tuned", made)
        return made

    def advise(self, profile: Profile, plan: Plan) -> list[Advice]:
        """What could be faster, with the commands that try it."""
        from lite_engine.profile.advice import advise, shape_options

        given = shape_options(self.shapes)
        made = self.model.metadata.get("quantized_by", "")
        return advise(profile, plan, self.model.journal, self.path, reading=given, made=made)

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
        from lite_engine.compare import Side, compare

        with self.busy:
            feeds = self._input(image)
            used = comparisons.current_sides(self, (a, b))
            one, two = (Side(used[name], name) for name in (a, b))
            made = compare(
                one, two, feeds, tolerance=tolerance, isolated=isolated, layers=layers,
                until=until, detail=detail, progress=self.progress,
            )  # fmt: skip
            self.comparisons.pop((a, b), None)  # the newest is last
            self.comparisons[a, b] = made
            self.compared[a, b] = used
            self.measured("comparison", (a, b))
        self.remember(f"diff = session.compare({a!r}, {b!r})")
        self.notify("comparison", made)
        return made

    def evaluate(
        self,
        data: Any,
        sides: Sequence[str] = ("auto",),
        limit: int | None = None,
        *,
        task: str | None = None,
        images: str | Path | None = None,
        labels: Sequence[str] | None = None,
        workers: int | None = None,
        scheduler: str | None = None,
        client: Any = None,
    ) -> Evaluation:
        """Task metrics with intervals on labelled data: a path (docs/evaluate.md shows the
        layouts), a `Dataset`, or (images, labels). `sides` are named as in `compare`; the first is
        the one that others are compared with. With `workers` processes here, the Dask `scheduler`
        at an address or a `client` the samples run in shards, with the same result. Raises
        UsageError."""
        from .cluster import Cluster
        from .state.evaluations import evaluate

        cluster = Cluster(workers, scheduler, client)
        return evaluate(self, data, sides, limit, cluster, task=task, images=images, labels=labels)

    def sweep(
        self,
        backends: Sequence[str] = ("auto",),
        precisions: Sequence[str] = ("auto",),
        threads: Sequence[int] = (1,),
        batches: Sequence[int] = (1,),
        streams: Sequence[int] = (1,),
        *,
        data: Any = None,
        max_ms: float | None = None,
        rounds: int = 7,
        resume: str | Path | None = None,
    ) -> Sweep:
        """Latency, throughput, memory and (with labelled `data`) accuracy of the chosen version for
        every combination; `front` of the result are those that no other one beats. Raises
        UsageError."""
        from .state.evaluations import sweep

        given = {"backends": backends, "precisions": precisions, "threads": threads,
                 "batches": batches, "streams": streams}  # fmt: skip
        return sweep(self, given, data, max_ms=max_ms, rounds=rounds, resume=resume)

    def recommend(self, data: Any, max_drop: float, **options: Any) -> Recommendation:
        """The fastest version within the budgets, measured: `max_drop` of the metric (0.005 are
        half a point), and of the `options` of `recommend.recommend` `max_ms`, `max_mb`, `backends`,
        `threads`, and `output`, the file to write. Raises UsageError, LiteError."""
        from .state.evaluations import recommend

        return recommend(self, data, max_drop, **options)

    def values(
        self,
        side: str,
        layer: str,
        alone_after: str | None = None,
        pair: Pair | None = None,
        outputs: Collection[str] = (),
    ) -> np.ndarray:
        """A layer's output on one side; `alone_after` names the side that feeds it (isolated).
        `pair` is the comparison that the sides belong to (default: the chosen version). Of a layer
        with several outputs it is the first, or the first that is in `outputs`."""
        feeds = self._input()
        with self.busy:
            return comparisons.values(self, side, layer, alone_after, pair, feeds, outputs)

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
        names = [layers] if isinstance(layers, str) else layers
        with self.busy, undo.recorded(self):
            overrides.set_layers(self, names, backend, precision)
            args = "".join(
                [f", {backend!r}" if backend or not precision else "",
                 f", precision={precision!r}" if precision else ""]
            )  # fmt: skip
            self.remember(f"session.override({layers!r}{args})")
        self.notify("overrides", dict(self.overrides.backends))

    def try_override(
        self,
        layers: str | Sequence[str],
        target: str | None,
        backend: str,
        runs: int = 15,
        *,
        precision: str | None = None,
    ) -> Change:
        """Changes layers and measures the whole model before and after. Runs of both alternate,
        and planted faults are left out, so that only the change is measured."""
        with self.busy:
            feeds = self._input()
            before = self.predictor(backend, planted=False)
            self.override(layers, target, precision)
            after = self.predictor(backend, planted=False)
            return measure_change(before, after, feeds, runs, self.progress)

    def plant_fault(self, layer: str, kind: str, backend: str = "opencl") -> None:
        """Spoils a layer's output on one backend, to test and to teach. Raises UsageError."""
        from lite_engine.plan.faults import check_kind

        known = check_kind(kind)
        overrides.layer_of(self.model.graph, layer)
        self.faults.setdefault(backend, {})[layer] = known
        self.remember(f"session.plant_fault({layer!r}, {kind!r}, backend={backend!r})")
        self.notify("overrides", dict(self.overrides.backends))

    @property
    def selection(self) -> pd.DataFrame:
        """The selected layers as a DataFrame: the last profile's rows, else what `info` knows."""
        from .state.selection import selected_rows

        return selected_rows(self)

    def extract(self, path: str | Path, layers: Sequence[str] = ()) -> Path:
        """Writes these layers of the file (default: the selected ones) as ONNX. Raises LiteError"""
        from .state.selection import extract

        return extract(self, Path(path), layers)

    # ---- out

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
        """Writes the chosen version with its overrides: a `.lite` file, whose path is returned, or,
        for a `target` ("arm", "x86"), a folder with runner, library and samples (`lite export`),
        returned as Exported. Targets named in `int8` take the int8 version in the same file
        (None: as in the file that was opened). Raises LiteError."""
        if int8 is not None:
            self.int8_targets = list(int8)
        model = lite_file.to_ship(self, self.int8_targets)
        made = (
            model.save(with_ending(path, ".lite"))
            if target is None
            else self._bundle(model, Path(path), target)
        )
        args = f", target={target!r}" if target else ""
        args += f", int8={self.int8_targets!r}" if self.int8_targets else ""
        self.remember(f"session.export({str(path)!r}{args})")
        self.exported = made
        self.notify("exported", made)
        return made

    def _bundle(self, model: Model, folder: Path, target: str) -> Exported:
        from lite_engine.export import export_model

        from .report import write_report

        return export_model(
            model, folder, target,
            more=lambda part: write_report([self], part.folder / "report.html"),
        )  # fmt: skip

    def notebook(self, path: str | Path) -> Path:
        """Writes the session so far as a runnable notebook."""
        from .notebook import write_notebook

        return write_notebook(self.code, path)


__all__ = ["Answer", "LiteError", "Run", "Session"]
