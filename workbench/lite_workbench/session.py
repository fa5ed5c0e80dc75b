"""Session: one model and everything that was done with it. Observable, with no UI in it.

Changes are told as ``(what, value)``: "versions", "targets", "prepared", "input", "run", "profile",
"comparison", "overrides", "selected", "job", "code", "error".
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from lite_engine.errors import LiteError, UsageError
from lite_engine.preprocess import Preprocess

from ._observe import Observable
from .answers import Answer, Run
from .boards import Boards
from .by_hand import ByHand, from_file, layer_of, to_ship
from .changes import Change, measure_change
from .inputs import as_code, feeds_of, is_prepared, size_of
from .jobs import Job, Work
from .names import FLOAT, GIVEN, INT8, MIXED, stem_of, with_ending
from .predictors import Predictors
from .sides import Sides


class Session(Observable):
    """``session = lw.open("model.onnx")``; every method blocks, `start` runs one in the background.

    path       the file; `graph` as read, `info` what `lite info` says about it.
    pixels_known   does the file itself say how pixels become numbers?
    versions   name → Model: "float" (`base`; "as given" where the file holds integers) after
               `convert`, "int8" or "mixed" after `quantize`, "custom" after the precision of a
               layer was set by hand.
    version    the chosen one. targets, precision: what was converted for.
    runs, profiles (by backend), comparisons (by pair), advice (by backend): the last of
               each; history: all profiles, which `lite runs` also keeps.
    by_hand    layers set by hand with `override`: overrides, precisions.
    faults     {backend: {layer: kind}}, planted for lessons.
    int8_targets   that are int8 in an exported file while the others take the chosen version.
    boards     devices besides this machine: add, check, use.
    selected   names of layers; `selection` is the DataFrame of their rows.
    code       the walk so far, one line of Python each.
    """

    def __init__(self, path: str | Path, *, shapes: Mapping[str, Any] | None = None) -> None:
        from lite_engine.importers import load
        from lite_engine.model_file import is_lite, read_model, with_shapes
        from lite_engine.model_file.precision import is_quantised
        from lite_engine.runtime.support import model_info

        super().__init__()
        self.path = Path(path)
        self.shapes = dict(shapes or {})
        self.versions: dict[str, Any] = {}
        self.by_hand = ByHand(self)
        self.int8_targets: list[str] = []
        self.precision: dict[str, str] = {}
        self.targets: list[str] = []
        if is_lite(self.path):
            model = with_shapes(read_model(self.path), self.shapes)
            self.versions, self.by_hand.overrides, self.int8_targets = from_file(model)
            self.graph, self.targets = model.graph, list(model.targets)
            self.precision = dict(model.precisions)
        else:
            self.graph = load(self.path, shapes=self.shapes)
        #: the version that `convert` makes
        self.base = GIVEN if is_quantised(self.graph) else FLOAT
        self.version = self.base
        self.info = model_info(self.graph, self.path.name)
        self.pixels_known = is_prepared(self.metadata)
        self.feeds: dict[str, np.ndarray] | None = None
        self.image: Any = None
        self.runs: dict[str, Run] = {}
        self.profiles: dict[str, Any] = {}
        self._profiled: dict[str, tuple[str, Any]] = {}
        self.advice: dict[str, list[Any]] = {}
        self.comparisons: dict[tuple[str, str], Any] = {}
        self.quantization: Any = None
        self.exported: Any = None
        self.history: list[Any] = []
        self.boards = Boards(self)
        self.faults: dict[str, dict[str, str]] = {}
        self.threads: int | None = None
        self._selected: list[str] = []
        self._predictors = Predictors(self)
        self._sides = Sides(self)
        self._busy = threading.RLock()
        self._work = Work(self._told)
        fixed = f", shapes={self.shapes!r}" if self.shapes else ""
        self.code = ["import lite_workbench as lw", f"session = lw.open({str(path)!r}{fixed})"]

    @property
    def stem(self) -> str:
        """What files made from this model are called, without a suffix."""
        return stem_of(self.path)

    def __repr__(self) -> str:
        return f"<Session {self.path.name}: {', '.join(self.versions) or 'not converted'}>"

    # ---- long work

    def start(self, title: str, work: Callable[[], Any]) -> Job:
        """Runs `work` on another thread, its progress and errors told as "job".

        Raises UsageError while something else runs.
        """
        return self._work.start(title, work)

    @property
    def job(self) -> Job | None:
        """The work that runs, or ran last."""
        return self._work.job

    def progress(self, done: int, total: int) -> None:
        """Long methods report here; raises Cancelled when the job was cancelled."""
        self._work.progress(done, total)

    def heed(self) -> None:
        """Long methods ask here where they cannot count; raises Cancelled like `progress`."""
        self._work.heed()

    def _told(self, job: Job) -> None:
        self.notify("job", job)
        if job.state == "failed":
            self.notify("error", job.error)

    def remember(self, line: str) -> None:
        """Adds a line to the code of the walk; the same twice in a row is written once."""
        if self.code[-1] != line:
            self.code.append(line)
            self.notify("code", line)

    # ---- targets and conversion

    def examine(self) -> Any:
        """What this machine has: `lite doctor`."""
        from lite_engine.doctor import examine

        self.remember("session.examine()")
        return examine()

    def convert(
        self, targets: Sequence[str] | str = ("x86", "arm", "opencl"), precision: Any = "fp32"
    ) -> Any:
        """The float version for these targets. Raises LiteError."""
        from lite_engine.model_file import optimize

        names = targets.split(",") if isinstance(targets, str) else list(targets)
        with self._busy:
            model = optimize(self.graph, targets=names, precision=precision)
            model.path = self.path
            self.targets, self.precision = list(model.targets), dict(model.precisions)
            self.set_version(self.base, model)
        suffix = "" if precision == "fp32" else f", precision={precision!r}"
        self.remember(f"session.convert(targets={names!r}{suffix})")
        return model

    def set_version(self, name: str, model: Any) -> None:
        """Keeps a version under its name and chooses it."""
        self.versions[name] = model
        self.version = name
        self.forget_predictors()
        self.notify("versions", name)

    def drop_version(self, name: str, instead: str) -> None:
        """Forgets a version and chooses another."""
        del self.versions[name]
        self.set_version(instead, self.versions[instead])

    def forget_predictors(self) -> None:
        """What runs next is planned again."""
        self._predictors.forget()

    @property
    def metadata(self) -> Any:
        """What travels with the model: how pictures are prepared, labels."""
        return self.versions.get(self.base, self.graph).metadata

    @property
    def is_base(self) -> bool:
        """Is the chosen version the file's, neither quantised nor set by hand here?"""
        return self.version == self.base

    def use(self, version: str) -> None:
        """Chooses the version that runs, profiles and is exported. Raises UsageError."""
        if version not in self.versions:
            raise UsageError(
                f"no version {version!r}", fix=f"there are: {', '.join(self.versions)}"
            )
        self.version = version
        self.remember(f"session.use({version!r})")
        self.notify("versions", version)

    @property
    def model(self) -> Any:
        """The chosen version; converts for every target when nothing was converted."""
        if self.version not in self.versions:
            self.convert()
        return self.versions[self.version]

    @property
    def base_model(self) -> Any:
        """The version that others are made from; converts for every target when there is none."""
        if self.base not in self.versions:
            self.convert()
        return self.versions[self.base]

    def quantize(
        self,
        images: Any,
        method: str = "mse",
        keep_float: Sequence[str] = (),
        limit: int | None = None,
    ) -> Any:
        """The int8 version (mixed when layers are kept in float) from at most `limit` calibration
        samples: a folder, an .npz, arrays or feeds. Raises CalibrationError."""
        from .quantizing import quantize

        with self._busy:
            self.base_model  # noqa: B018  quantizing starts from it
            made, model = quantize(self, images, method, keep_float, limit)
            self.quantization = made
            self.set_version(MIXED if keep_float else INT8, model)
        kept = f", keep_float={list(keep_float)!r}" if keep_float else ""
        most = f", limit={limit}" if limit else ""
        self.remember(f"session.quantize({as_code(images)}, method={method!r}{kept}{most})")
        return made

    def explore(self) -> Any:
        """Which layers mind int8, and measured versions that keep the worst in float."""
        from .quantizing import explore

        with self._busy:
            made = explore(self)
        self.remember("session.explore()")
        self.notify("quantization", made)
        return made

    # ---- input

    def prepare(self, how: str) -> None:
        """How a picture becomes the input: what `--preprocess` takes, like "imagenet,crop" or
        "mean=127,std=128"; "letterbox" alone leaves the model's numbers. Every version keeps it, in
        its file too. Raises UsageError."""
        made = Preprocess.parse(how, self.metadata.get("preprocess")).to_dict()
        for model in (self.graph, *self.versions.values()):
            model.metadata["preprocess"] = made
        self.feeds, self.image = None, None
        self.remember(f"session.prepare({how!r})")
        self.notify("prepared", made)

    def set_input(self, source: Any = None) -> dict[str, np.ndarray]:
        """An image (path, bytes, array), a .npy or .npz, a feed; None: random numbers."""
        self.feeds, self.image = feeds_of(self.model, source)
        self.notify("input", source)
        return self.feeds

    def _input(self, source: Any) -> dict[str, np.ndarray]:
        if source is not None or self.feeds is None:
            self.set_input(source)
        assert self.feeds is not None
        return self.feeds

    # ---- running, measuring, comparing

    def predictor(
        self, backend: str = "auto", version: str | None = None, *, planted: bool = True
    ) -> Any:
        """A Predictor of a version with the session's overrides and (unless `planted` is False)
        planted faults; kept."""
        return self._predictors.get(backend, version, planted=planted)

    def run(self, image: Any = None, backend: str = "auto", version: str | None = None) -> Run:
        """One inference. `image` may be a picture, a file, a feed; None keeps the last input."""
        import time

        from .answers import answer_of

        with self._busy:
            feeds = self._input(image)
            predictor = self.predictor(backend, version)
            predictor.run(feeds)  # the first run plans and packs
            began = time.perf_counter()
            outputs = predictor.run(feeds)
            ms = (time.perf_counter() - began) * 1e3
            said = answer_of(predictor.model, feeds, outputs, picture=size_of(self.image))
            used = version or self.version
            made = Run(predictor.backend, predictor.told_precision, used, outputs, said, ms)
            self.runs[predictor.backend] = made
        self._remember_call("run", image, predictor.backend)
        self.notify("run", made)
        return made

    def profile(self, backend: str = "auto", runs: int = 20, image: Any = None) -> Any:
        """Where the time goes, layer by layer; kept for `lite runs`, with its `advice`."""
        from lite_engine.history import History
        from lite_engine.profile import profile

        with self._busy:
            predictor = self.predictor(backend)
            feeds = self._input(image)
            made = profile(predictor, feeds, runs=runs, progress=self.progress)
            plan = predictor.plan({n: x.shape for n, x in feeds.items()})
            self.advice[predictor.backend] = self.advise(made, plan)
            History().add(made, str(self.path))
            self.profiles.pop(predictor.backend, None)  # the newest is last
            self.profiles[predictor.backend] = made
            self._profiled[predictor.backend] = self.version, predictor
            self.history.append(made)
        self.remember(f"profile = session.profile(backend={predictor.backend!r}, runs={runs})")
        self.notify("profile", made)
        return made

    def profiled(self, backend: str) -> tuple[str, Any]:
        """The version and the Predictor that the backend's profile is of, though another version
        may be chosen by now. Raises KeyError for a backend that was not profiled."""
        return self._profiled[backend]

    def advise(self, profile: Any, plan: Any) -> list[Any]:
        """What could be faster, with the commands that try it."""
        from lite_engine.profile.advice import advise, shape_options

        given = shape_options(self.shapes)
        made = self.model.metadata.get("quantized_by", "")
        return advise(profile, plan, self.model.journal, self.path, reading=given, made=made)

    def compare(self, a: str = "x86", b: str = "opencl", image: Any = None, **options: Any) -> Any:
        """Layer by layer: two backends, or two versions ("float", "int8"), or "int8@opencl"."""
        from lite_engine.compare import Side, compare

        with self._busy:
            feeds = self._input(image)
            used = self._sides.made((a, b))
            sides = [Side(used[name], name) for name in (a, b)]
            made = compare(*sides, feeds, progress=self.progress, **options)
            self.comparisons.pop((a, b), None)  # the newest is last
            self.comparisons[a, b] = made
            self._sides.keep((a, b), used)
        self.remember(f"diff = session.compare({a!r}, {b!r})")
        self.notify("comparison", made)
        return made

    def sides(self, pair: tuple[str, str]) -> dict[str, Any]:
        """Side → Predictor of the pair's comparison, though the version is another by now."""
        return self._sides.used(pair)

    def side_precisions(self, pair: tuple[str, str]) -> tuple[str, str]:
        """What each side of a comparison computes in: "int8" for a quantised version."""
        return self._sides.precisions(pair)

    def values(
        self,
        side: str,
        layer: str,
        alone_after: str | None = None,
        pair: tuple[str, str] | None = None,
        outputs: Collection[str] = (),
    ) -> np.ndarray:
        """A layer's output on one side; `alone_after` names the side that feeds it (isolated).
        `pair` is the comparison that the sides belong to (default: the chosen version). Of a layer
        with several outputs it is the first, or the first that is in `outputs`."""
        feeds = self._input(None)
        with self._busy:
            return self._sides.values(layer, side, alone_after, pair, feeds, outputs)

    # ---- changing single layers

    def override(
        self,
        layers: str | Sequence[str],
        backend: str | None = None,
        precision: str | None = None,
    ) -> None:
        """Sets where layers run and in which precision; what is not named goes back to the plan.

        A precision makes the version "custom" from the chosen one, with the calibration of
        `quantize`. Raises UsageError, CalibrationError.
        """
        with self._busy:
            self.by_hand.set([layers] if isinstance(layers, str) else layers, backend, precision)
        args = "".join(
            [f", {backend!r}" if backend or not precision else "",
             f", precision={precision!r}" if precision else ""]
        )  # fmt: skip
        self.remember(f"session.override({layers!r}{args})")
        self._tell_overrides()

    def _tell_overrides(self) -> None:
        self.notify("overrides", dict(self.by_hand.overrides))

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
        with self._busy:
            feeds = self._input(None)
            before = self.predictor(backend, planted=False)
            self.override(layers, target, precision)
            after = self.predictor(backend, planted=False)
            return measure_change(before, after, feeds, runs, self.progress)

    def plant_fault(self, layer: str, kind: str, backend: str = "opencl") -> None:
        """Spoils a layer's output on one backend, to test and to teach. Raises UsageError."""
        from lite_engine.plan.faults import check_kind

        known = check_kind(kind)
        layer_of(self.model.graph, layer)
        self.faults.setdefault(backend, {})[layer] = known
        self.remember(f"session.plant_fault({layer!r}, {kind!r}, backend={backend!r})")
        self._tell_overrides()

    # ---- selection

    @property
    def selected(self) -> list[str]:
        return list(self._selected)

    @selected.setter
    def selected(self, layers: str | Sequence[str]) -> None:
        names = [layers] if isinstance(layers, str) else list(layers)
        if names != self._selected:
            self._selected = names
            self.notify("selected", names)

    @property
    def selection(self) -> Any:
        """The selected layers as a DataFrame: the last profile's rows, else what `info` knows."""
        import pandas as pd

        profile = next(reversed(self.profiles.values()), None)
        rows = profile.to_dataframe() if profile else pd.DataFrame([vars(x) for x in self._layers])
        return rows[rows["name"].isin(self._selected)].reset_index(drop=True)

    @property
    def _layers(self) -> list[Any]:
        from lite_engine.runtime.support import model_info

        return model_info(self.model.graph, self.path.name).layers

    # ---- out

    def export(
        self,
        path: str | Path,
        target: str | None = None,
        int8: Sequence[str] | None = None,
    ) -> Any:
        """Writes the chosen version with its overrides: a `.lite` file, whose path is returned, or,
        for a `target` ("arm", "x86"), a folder with runner, library and samples (`lite export`),
        returned as Exported. Targets named in `int8` take the int8 version in the same file
        (None: as in the file that was opened). Raises LiteError."""
        if int8 is not None:
            self.int8_targets = list(int8)
        model = to_ship(self, self.int8_targets)
        if target is None:
            made: Any = model.save(with_ending(path, ".lite"))
        else:
            from lite_engine.export import export_model

            from .report import write_report

            made = export_model(
                model, Path(path), target,
                more=lambda part: write_report([self], part.folder / "report.html"),
            )  # fmt: skip
        args = f", target={target!r}" if target else ""
        args += f", int8={self.int8_targets!r}" if self.int8_targets else ""
        self.remember(f"session.export({str(path)!r}{args})")
        self.exported = made
        self.notify("exported", made)
        return made

    def notebook(self, path: str | Path) -> Path:
        """Writes the walk so far as a runnable notebook."""
        from .notebook import write_notebook

        return write_notebook(self.code, path)

    def _remember_call(self, verb: str, image: Any, backend: str) -> None:
        given = f"{as_code(image)}, " if image is not None else ""
        self.remember(f"session.{verb}({given}backend={backend!r})")


def open_session(path: str | Path, **options: Any) -> Session:
    """Opens a model of any format. Raises LiteError."""
    return Session(path, **options)


__all__ = ["Answer", "LiteError", "Run", "Session", "open_session"]
