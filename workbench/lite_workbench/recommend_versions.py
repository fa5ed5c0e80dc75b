"""The versions among which `recommend` chooses: precisions, int8 by each method with and without
layers in float, weights alone in integers, fewer channels and zeros in weights. Each is a `.lite`
file in a folder, so that an interrupted search continues where it stopped."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from lite_engine.errors import LiteError, UsageError, WriteError
from lite_engine.files import make_folder, write_file
from lite_engine.model_file import open_model, retarget
from lite_engine.prune import PruneOptions
from lite_engine.quantize import Calibration, Options, quantize_weights, quantize_weights_int4
from lite_engine.quantize import quantize as calibrate
from lite_messages import tr

from .budget import WithinBudget, split
from .pruning import prune
from .quantizing import FastRun, float_graph, model_from

if TYPE_CHECKING:
    from lite_engine.model_file import Model

    from .evaluate import Dataset

#: Methods of calibration that are tried, by the names that `lite quantize --method` takes.
METHODS = ("auto", "minmax", "kl", "mse")
#: Kinds of versions besides those in float.
KINDS = ("weights", "int8", "pruned")
#: The versions that are pruned, as far as the budget of the metric allows.
PRUNED = {
    "fewer channels": PruneOptions(channels=0.2),
    "zeros in weights": PruneOptions(sparsity=0.8),
}


@dataclass
class Version:
    """A way to store the model; `precision` is what a sweep asks for."""

    name: str
    model: Model
    precision: str

    def on(self, target: str) -> Model:
        """The model with the program for one target: what is recommended for it."""
        return retarget(self.model, targets=[target])

    def bytes_on(self, target: str) -> int:
        """The size of that file. Raises WriteError."""
        if self.model.path and self.model.targets == [target]:
            return self.model.path.stat().st_size
        with TemporaryDirectory() as passing:
            return self.on(target).save(Path(passing) / "size.lite").stat().st_size


class Kept:
    """The folder of the versions, which have programs for `targets`. Raises UsageError for one that
    belongs to another search, WriteError for one that cannot be written."""

    def __init__(self, folder: Path, key: str, targets: Sequence[str]) -> None:
        self.folder, self.targets, marker = folder, targets, folder / "key.txt"
        if marker.exists() and marker.read_text() != key:
            raise UsageError(
                tr("belongs to another model, other budgets, other backends or other data"),
                where=folder, fix=tr("choose another folder, or remove this one"),
            )  # fmt: skip
        make_folder(folder)
        write_file(marker, key)

    def known(self, name: str) -> Path | None:
        path = self.folder / f"{_slug(name)}.lite"
        return path if path.exists() else None

    def version(self, name: str, precision: str, make: Callable[[], Model]) -> Version:
        """From its file, or made and written. Raises LiteError."""
        path = self.known(name)
        if path is None:
            made = retarget(make(), targets=self.targets)
            made.path = made.save(self.folder / f"{_slug(name)}.lite")
        else:
            made = open_model(path)
        return Version(name, made, precision)

    def cells(self, name: str) -> Path:
        """Where the measurements of a version are kept."""
        return self.folder / f"{_slug(name)}.json"


def _slug(name: str) -> str:
    return name.replace(" ", "-")


def versions(
    model: Model,
    data: Dataset,
    max_drop: float,
    labels: Sequence[str] | None,
    kept: Kept,
    notes: list[str],
    kinds: Collection[str] = KINDS,
) -> Iterator[Version]:
    """One after another, the float ones first; why one could not be made goes to `notes`. Raises
    WriteError where the folder cannot be written: the search can be continued."""
    makers: list[tuple[str, str, Callable[[], Model]]] = [
        (p, p, lambda p=p: retarget(model, targets=kept.targets, precision=p))  # type: ignore[misc]
        for p in ("fp32", "fp16", "bf16")
    ]
    if "weights" in kinds:
        makers += [
            ("int8 weights", "auto", lambda: _weights_only(model, 8)),
            ("int4 weights", "auto", lambda: _weights_only(model, 4)),
        ]
    for name, precision, make in makers:
        try:
            yield kept.version(name, precision, make)
        except WriteError:
            raise
        except LiteError as error:
            notes.append(f"{name}: {error}")
    search = _Search(model, data, max_drop, labels, kept)
    for method in METHODS if "int8" in kinds else ():
        try:
            yield from search.versions(method)
        except WriteError:
            raise
        except LiteError as error:
            notes.append(f"int8 {method}: {error}")
    for name, options in PRUNED.items() if "pruned" in kinds else ():
        try:
            yield kept.version(name, "auto", lambda how=options: search.pruned(how))  # type: ignore[misc]
        except WriteError:
            raise
        except LiteError as error:
            notes.append(f"{name}: {error}")


def _weights_only(model: Model, bits: int) -> Model:
    """Raises CalibrationError, LiteError when no layer is large enough."""
    graph = float_graph(model)
    if bits == 4:
        return model_from(quantize_weights_int4(graph, run=FastRun(), force=True).graph, model)
    made = quantize_weights(graph, bits)
    if not any(node.op == "DequantizeLinear" for node in made.nodes):
        raise LiteError(tr("no layer has float weights that can be stored as integers"))
    return model_from(made, model)


class _Search:
    """int8 versions by one method after another; one calibration and one run of the float model
    serve all."""

    def __init__(
        self, model: Model, data: Dataset, max_drop: float, labels: Sequence[str] | None, kept: Kept
    ) -> None:
        self.model, self.kept = model, kept
        calibrating, judging = split(data, None)
        self.budget = WithinBudget(
            model, judging, max_drop, calibrating=calibrating, labels=labels,
            float_budget=math.inf,  # every candidate is timed
        )  # fmt: skip
        self.calibration: Calibration | None = None

    def pruned(self, options: PruneOptions) -> Model:
        """Within the budget of the metric, or as near as it comes; layers are not timed one by one,
        as the whole version is. Raises CalibrationError where nothing is left to prune."""
        return prune(
            self.model, self.budget.calibrating, options, measure=False, within=self.budget
        )[1]  # fmt: skip

    def versions(self, method: str) -> Iterator[Version]:
        """All layers in int8, and, where that exceeds the budget of the metric, the mix with the
        fewest layers in float. Raises CalibrationError."""
        plain, mixed = f"int8 {method}", f"int8 {method} mixed"
        searched = self.kept.folder / f"{_slug(plain)}.done"
        if searched.exists() and self.kept.known(plain):
            for name in filter(self.kept.known, (plain, mixed)):
                yield self.kept.version(name, "auto", lambda: self.model)
            return
        quantized = calibrate(
            float_graph(self.model), self.budget.calibrating, Options(method=method),
            run=FastRun(), force=True, resume=self.calibration,
        )  # fmt: skip
        self.calibration = quantized.calibration
        graph = quantized.finished().graph
        yield self.kept.version(plain, "auto", lambda: model_from(graph, self.model))
        self.budget.search(quantized)
        if quantized.options.scheme.keep_float:
            finished = quantized.finished().graph
            yield self.kept.version(mixed, "auto", lambda: model_from(finished, self.model))
        write_file(searched, "")
