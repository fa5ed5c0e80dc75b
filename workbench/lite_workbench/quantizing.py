"""Quantisation for a Session: calibration on the fast backend, versions that were measured."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from lite_engine.arrays import array_shapes, read_arrays
from lite_engine.display import Displayed
from lite_engine.errors import UsageError
from lite_engine.ir import Graph
from lite_engine.model_file import TRAVELLING, Model, optimize
from lite_engine.model_file.precision import ON_CPU, is_quantised
from lite_engine.ops import specialise
from lite_engine.profile.measured import median_interval
from lite_engine.quantize import (
    Options,
    Quantized,
    Scheme,
    Verdict,
    quantize_static,
    sensitivity,
)
from lite_engine.quantize import quantize as calibrate
from lite_engine.quantize.calibrate import Calibrator
from lite_engine.quantize.samples import are_samples
from lite_engine.runtime import Predictor
from lite_engine.runtime.inputs import random_feeds
from lite_engine.runtime.shares import sentence
from lite_messages import tr, trn

from .answers import answer_of
from .jobs import Work

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

#: How many layers, worst first, each measured version keeps in float.
KEPT = (0, 1, 2, 4, 8)
TIMED_RUNS = 15
#: What a version is that has nothing to quantize.
NOTHING = tr("No layer runs in int8")
#: A version that is timed runs at least this long, several times if need be: one run of a small
#: model is as short as what disturbs it.
TIMED_MS = 2.0
#: What models answer to labeled data: (name of the metric, percent for each model, samples).
Judge = Callable[[Sequence[Model]], tuple[str, list[float], int]]


class Measured(NamedTuple):
    """What a version says to each sample, the median ms of one run and the half width of its 95 %
    interval; `ran`: which layers ran where, if some ran on another backend than asked for."""

    said: list[str]
    latency_ms: float
    interval_ms: float | None
    ran: str


class FastRun:
    """`lite_engine.quantize`'s Run on a Predictor; keeps the last few graphs planned. `before` is
    called before each run, and may end the work by what it raises."""

    def __init__(self, backend: str = "auto", before: Callable[[], None] = lambda: None) -> None:
        self.backend, self.before = backend, before
        self._kept: list[tuple[Graph, Predictor]] = []
        #: Of the last graph, sizes and names: samples mostly have the same.
        self._constants: tuple[Graph, Any, dict[str, np.ndarray]] | None = None

    def __call__(
        self, graph: Graph, feeds: Mapping[str, np.ndarray], taps: Sequence[str] = ()
    ) -> dict[str, np.ndarray]:
        """With the values of `taps` that a run at these sizes makes, and those that are constants
        then."""
        self.before()
        predictor, sizes = self.predictor(graph), {k: np.shape(x) for k, x in feeds.items()}
        made = predictor.plan(sizes).tensor_of if taps else ()
        rest = [name for name in taps if name not in made]
        found = predictor.run(feeds, taps=[name for name in taps if name in made])
        return {**found, **self._constant(graph, sizes, rest)} if rest else found

    def _constant(
        self, graph: Graph, sizes: Mapping[str, tuple[int, ...]], names: Sequence[str]
    ) -> dict[str, np.ndarray]:
        """Those of these values that follow from the sizes; a plan leaves out what made them."""
        key = sizes, names
        if self._constants is None or self._constants[0] is not graph or self._constants[1] != key:
            asked = graph.copy()
            wanted = set(names)
            known = {v.name: v for v in asked.values() if v.name in wanted}
            asked.outputs = list(known.values())
            asked.remove_unread()
            fixed = zip(known, specialise(asked, sizes).outputs, strict=True)
            arrays = {name: v.const for name, v in fixed if v.const is not None}
            self._constants = graph, key, arrays
        return self._constants[2]

    def predictor(self, graph: Graph) -> Predictor:
        for known, predictor in self._kept:
            if known is graph:
                return predictor
        made = Predictor(Model(graph), self.backend)
        self._kept = [*self._kept[-3:], (graph, made)]
        return made


class LatencyOn:
    """`lite_engine.quantize`'s Latency on a backend of this machine: the least of some runs on
    random inputs, copies to and from a device among them. Raises BackendUnavailableError."""

    def __init__(self, parent: Model, backend: str, threads: int | None = None) -> None:
        self.parent, self.backend, self.threads = parent, backend, threads
        self.feeds = random_feeds(Predictor(parent, backend, threads=threads).model)

    def __call__(self, graph: Graph) -> float:
        model = model_from(graph, self.parent)
        predictor = Predictor(model, self.backend, threads=self.threads)
        predictor.run(self.feeds)  # plans, and builds a device's programs
        return min(_ms(predictor, self.feeds) for _ in range(TIMED_RUNS))


@dataclass(repr=False)
class Quantization(Displayed):
    """A calibrated model: `layers` worst first (relative error of the outputs when only this
    layer is int8, in %), and the measured `points` of `trade_off`. Their accuracy is `metric` on
    `judged` labeled samples, or without them the share of the same results as the float model's.
    `source` is the file that calibrated, if it was one."""

    made: Quantized
    method: str
    kept: list[str]
    layers: list[dict[str, Any]] = field(default_factory=list)
    points: list[dict[str, Any]] = field(default_factory=list)
    float_point: dict[str, Any] = field(default_factory=dict)
    metric: str = ""
    judged: int = 0
    source: str = ""

    @property
    def accuracy_name(self) -> str:
        return self.metric or tr("same result as float")

    @property
    def verdict(self) -> Verdict:
        """How far the outputs are from the float parent's."""
        return self.made.finished().verdict

    def to_dict(self) -> dict[str, Any]:
        rest = {"layers": self.layers, "points": self.points, "float": self.float_point,
                "metric": self.metric, "judged": self.judged}  # fmt: skip
        return {**self.made.to_dict(), "kept": self.kept, **rest}

    @property
    def headline(self) -> str:
        quality = tr("{sqnr_db:.1f} dB against the float model", sqnr_db=self.verdict.sqnr_db)
        return trn(
            "{method}, {n} layer in float: {quality}", "{method}, {n} layers in float: {quality}",
            len(self.kept), method=self.method, quality=quality,
        )  # fmt: skip

    def table(self) -> tuple[list[str], list[list[Any]]]:
        """The measured versions; before `explore` there are none."""
        heads = [tr("layers in float"), f"{self.accuracy_name}, %", "ms", tr("bytes")]
        points = [{**self.float_point, "kept": "all"}] if self.points else []
        return heads, [
            [p["kept"] if p["kept"] == "all" else len(p["kept"]), p["accuracy"], p["latency_ms"],
             p["bytes"]]
            for p in [*points, *self.points]
        ]  # fmt: skip

    def figure(self, kind: str = "trade_off", layer: str | None = None) -> Figure:
        """A plotly Figure: "trade_off" or "sensitivity" (after `explore`), or "ranges" of a layer
        (default: the first that was calibrated). Raises UsageError, LiteError without plotly."""
        from .figures import quantization_figure

        return quantization_figure(self, kind, layer)


def quantize(
    parent: Model,
    images: Any,
    method: str,
    keep: Sequence[str],
    limit: int | None,
    work: Work,
    calibrator: Calibrator | None = None,
    *,
    equalize: bool = True,
    force: bool = False,
) -> tuple[Quantization, Model]:
    """The int8 version of a float Model that keeps some layers in float. `work` is told how far it
    is; a `calibrator` makes the statistics elsewhere; with `force` a version is kept that fails
    its check. Raises CalibrationError."""
    scheme = Scheme(keep_float=frozenset(keep))
    options = Options(method=method, scheme=scheme, limit=limit, equalize=equalize)
    graph = float_graph(parent)
    made = calibrate(
        graph, calibration(graph, images), options, run=FastRun(before=work.heed),
        progress=work.progress, calibrated=lambda _: work.progress(0, 0),
        calibrator=calibrator, force=force,
    )  # fmt: skip
    source = str(images) if isinstance(images, (str, Path)) else ""
    own = Quantization(made, method, list(keep), source=source)
    return own, model_from(made.finished().graph, parent)


def float_graph(model: Model) -> Graph:
    """A model's graph, told how the model wants its images: calibration reads it there."""
    return model.described_graph()


def model_from(graph: Graph, parent: Model) -> Model:
    """A quantized graph as a Model for the parent's targets, with its labels."""
    meta = {k: v for k, v in parent.metadata.items() if k in TRAVELLING}
    model = optimize(
        graph, targets=parent.targets, precision=dict(parent.precisions), metadata=meta
    )
    model.path = parent.path
    return model


def same_answers(
    models: Sequence[Model],
    feeds: Sequence[Mapping[str, np.ndarray]],
    labels: Sequence[str] | None = None,
) -> float | None:
    """The share of the feeds to which all models answer with the same text: a class, a line, what
    was found. None where their outputs are plain values."""
    said = []
    for model in models:
        predictor = Predictor(model)
        said.append([answer_of(model, feed, predictor.run(feed), labels) for feed in feeds])
    if not feeds or any(answer.kind == "values" for own in said for answer in own):
        return None
    return float(np.mean([len({a.text for a in row}) == 1 for row in zip(*said, strict=True)]))


def calibrated(model: Model, samples: Any) -> Model:
    """The int8 version of a float Model with the usual options, checked against it.

    Raises CalibrationError."""
    graph = float_graph(model)
    made = calibrate(graph, calibration(graph, samples), Options(), run=FastRun())
    return model_from(made.finished().graph, model)


def calibration(graph: Graph, images: Any) -> Any:
    """Samples as the quantizer reads them. An `.npz` or array of uint8 images goes through the
    model's own preprocessing."""
    if isinstance(images, (str, Path)) and Path(images).suffix == ".npz":
        pictures = None
        if len(array_shapes(images).get("images", ())) in (3, 4):
            pictures = read_arrays(images)["images"]
        images = str(images) if pictures is None or pictures.dtype != np.uint8 else pictures
    if isinstance(images, np.ndarray) and images.dtype == np.uint8 and images.ndim in (3, 4):
        return [_coloured(x) for x in images]
    return images


def fits(graph: Graph, path: Path) -> bool:
    """Can the arrays of an `.npz` be samples for a model? Those called like its inputs have their
    shapes, with any number of samples; "images" are any that a model of pictures prepares. Only
    headers are read."""
    try:
        shapes = array_shapes(path)
    except UsageError:
        return False
    if "images" in shapes and any(len(v.shape or ()) == 4 for v in graph.inputs):
        return True
    names = [v.name for v in graph.inputs]
    if len(names) == len(shapes) == 1:
        names = list(shapes)
    return all(
        name in shapes and (value.shape is None or are_samples(value.shape, shapes[name]))
        for name, value in zip(names, graph.inputs, strict=True)
    )


def labeled(samples: str) -> bool:
    """Are these samples an `.npz` that holds a label for each? Only headers are read."""
    from .evaluate.formats.arrays import has_labels

    return samples.endswith(".npz") and has_labels(Path(samples))


def _coloured(picture: np.ndarray) -> np.ndarray:
    """(H,W) → (H,W,3): preprocessing takes it from there."""
    return np.repeat(picture[..., None], 3, axis=2) if picture.ndim == 2 else picture


def explore(
    quantization: Quantization | None,
    parent: Model,
    threads: int | None,
    work: Work,
    kept: Sequence[int] = KEPT,
    backend: str = "auto",
    judge: Judge | None = None,
) -> Quantization:
    """Which layers lose accuracy, and versions that keep the worst in float: accuracy (what `judge`
    says, or answers that equal the float model's on the held-out samples), latency and size, all
    measured here, on `backend`.

    Fills `quantization` and returns it. Raises UsageError for None, BackendUnavailableError.
    """
    if quantization is None:
        raise UsageError(
            tr("the model is not quantized yet"), fix=tr("call session.quantize(images) first")
        )
    made, ranges = quantization.made, quantization.made.finished().ranges
    scheme = replace(made.options.scheme, keep_float=frozenset())
    feeds = made.held[:4]
    ranking = sensitivity(
        made.parent, ranges, scheme, feeds, run=FastRun(before=work.heed),
        biases=made.biases, progress=work.progress,
    )  # fmt: skip
    quantization.layers = [
        {"name": row["name"], "cost": 100 * 10 ** (-row["output_sqnr_db"] / 20)} for row in ranking
    ]
    versions = []
    for number, count in enumerate(k for k in kept if k <= len(ranking)):
        work.progress(number, len(kept))
        names = [row["name"] for row in ranking[:count]]
        own = replace(scheme, keep_float=frozenset(names))
        graph = quantize_static(
            made.parent, ranges, own, rounding=made.round_with, biases=made.biases
        )
        versions.append((names, model_from(graph, parent)))
    work.progress(0, 0)  # measuring is not counted
    models = [parent, *(model for _, model in versions)]
    times = measured(models, made.held, threads, backend)
    same = [[a == b for a, b in zip(times[0].said, own.said, strict=True)] for own in times]
    name, accuracies, judged = "", [100 * float(np.mean(own)) for own in same], 0
    if judge is not None:
        name, accuracies, judged = judge(models)
    quantization.metric, quantization.judged = name, judged
    quantization.float_point = {
        "accuracy": accuracies[0], "latency_ms": times[0].latency_ms,
        "bytes": weight_bytes(parent), "ran": times[0].ran,
    }  # fmt: skip
    quantization.points = [
        {"method": quantization.method, "kept": names, "latency_ms": own.latency_ms,
         "latency_ci_ms": own.interval_ms, "bytes": weight_bytes(model), "accuracy": accuracy,
         "ran": own.ran, **_nothing(model)}
        for (names, model), own, accuracy in zip(versions, times[1:], accuracies[1:], strict=True)
    ]  # fmt: skip
    return quantization


def measured(
    models: Sequence[Model],
    feeds: Sequence[Mapping[str, np.ndarray]],
    threads: int | None,
    backend: str,
) -> list[Measured]:
    """Of each model. They run in turns, so that whatever else the machine does slows all of them
    alike."""
    predictors = [Predictor(model, backend, threads=threads) for model in models]
    said = [
        [answer_of(model, feed, predictor.run(feed)).text for feed in feeds]
        for model, predictor in zip(models, predictors, strict=True)
    ]
    repeats = [math.ceil(TIMED_MS / max(_ms(p, feeds[0]), 1e-3)) for p in predictors]
    times: list[list[float]] = [[] for _ in models]
    for _ in range(TIMED_RUNS):
        for own, predictor, runs in zip(times, predictors, repeats, strict=True):
            own.append(float(np.median([_ms(predictor, feeds[0]) for _ in range(runs)])))
    shapes = {name: x.shape for name, x in feeds[0].items()}
    return [
        Measured(text, float(np.median(own)), median_interval(np.array(own)),
                 _elsewhere(predictor, shapes))
        for text, own, predictor in zip(said, times, predictors, strict=True)
    ]  # fmt: skip


def _elsewhere(predictor: Predictor, shapes: Mapping[str, tuple[int, ...]]) -> str:
    """Which layers ran where; empty where all ran on the predictor's own backend."""
    found = predictor.shares(shapes)
    alone = found.keys() <= {ON_CPU.get(predictor.backend, predictor.backend)}
    return "" if alone else sentence(found, predictor.backend, idle=predictor.idle_layers(shapes))


def _ms(predictor: Predictor, feed: Mapping[str, np.ndarray]) -> float:
    began = time.perf_counter()
    predictor.run(feed)
    return (time.perf_counter() - began) * 1e3


def _nothing(model: Model) -> dict[str, str]:
    return {} if is_quantised(model.graph) else {"label": NOTHING}


def weight_bytes(model: Model) -> int:
    """Bytes of the weights as they are stored."""
    return sum(v.const.nbytes for v in model.graph.constants() if v.const is not None)
