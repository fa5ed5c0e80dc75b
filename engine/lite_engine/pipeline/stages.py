"""A pipeline as somebody writes it: a list of stages, in Python, JSON or YAML."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lite_messages import tr

from ..adapter import Adapter
from ..arrays import read_array
from ..errors import LiteError, ShapeError, UsageError, reason_of
from ..ir import Graph, Value
from ..lines import read_bounded, read_labels
from ..model_file import Model, open_model, with_shapes
from ..model_file.native_stage import INPUTS, quant_of
from ..preprocess import Preprocess
from .front_end import split_front_end
from .widths import for_widths, of_width, read_widths, width_axis

#: What a model's stage may say beside `model`.
MODEL_KEYS = ("name", "preprocess", "open_size", "widths", "open_widths", "batch", "features",
              "labels", "read")  # fmt: skip
#: Stages between models, with what they may say.
STEPS = {"crop": ("grow", "limit"), "turn": ("model", "label", "above")}
#: Of a document; an alias of YAML costs nothing in its text, and may stand for a million values.
_MOST_VALUES = 100_000


@dataclass(frozen=True)
class Part:
    """A model of a pipeline, and how it is used: `read` is its adapter, with what
    docs/pipelines.md lists."""

    name: str
    model: Model
    preprocess: Preprocess
    labels: tuple[str, ...] = ()
    read: Mapping[str, Any] = field(default_factory=dict)
    #: Of a model that hears (front_end.py); `preprocess` is then idle.
    features: Mapping[str, Any] | None = None
    #: Of lines, the narrowest first: `model` leaves its width open; empty where it has one.
    widths: tuple[int, ...] = ()

    def to_dict(self, section: str) -> dict[str, Any]:
        """As the native runtime reads it. Raises UsageError, ShapeError."""
        image = self._input()
        prepared: dict[str, Any] = {"features": self.features}
        if self.features is None:
            prepared = {"preprocess": self._fitted(image).to_dict()}
        if self.widths:
            prepared["widths"] = list(self.widths)
        return {
            "name": self.name,
            "section": section,
            "input": {"dtype": INPUTS[image.type.dtype], **quant_of(image.quant), **self._batch()},
            "outputs": [quant_of(value.quant) for value in self.model.graph.outputs],
            **prepared,
            "labels": list(self.labels),
            "read": dict(self.read),
        }

    def _batch(self) -> dict[str, int]:
        """How many images it takes at once, where that is more than one."""
        count = self.input_dims[0] if self.input_dims else 1
        return {"batch": count} if self.features is None and count > 1 else {}

    @property
    def input_dims(self) -> tuple[int, ...]:
        """Of the only input, which has a fixed size, or its widest one."""
        return tuple(d for d in self._dims_of(self._input()) if isinstance(d, int))

    def _dims_of(self, image: Value) -> tuple[Any, ...]:
        dims = tuple(image.shape or ())
        if not self.widths or len(dims) != 4:
            return dims
        axis = width_axis(self.preprocess.layout, dims)
        return (*dims[:axis], self.widths[-1], *dims[axis + 1 :])

    def sized(self) -> list[Model]:
        """The model for each of the `widths`, or as it is. Raises ShapeError."""
        if not self.widths:
            return [self.model]
        axis = width_axis(self.preprocess.layout, tuple(self.model.graph.inputs[0].shape or ()))
        return [of_width(self.model, axis, width) for width in self.widths]

    def _fitted(self, image: Value) -> Preprocess:
        """Raises ShapeError for a size that is not the input's."""
        made = self.preprocess.fitted(self._dims_of(image))
        assert made.size is not None
        height, width = made.size
        channels = 1 if made.colour == "grey" else 3
        want = (channels, height, width) if made.layout == "nchw" else (height, width, channels)
        if self.input_dims[1:] != want:
            raise ShapeError(
                tr("its input is {value}, `preprocess` makes {want}", value=image.type, want=want),
                where=self.name,
            )
        return made

    def _input(self) -> Value:
        inputs = self.model.graph.inputs
        if len(inputs) != 1 or inputs[0].type.dtype not in INPUTS:
            raise UsageError(
                tr("a model of a pipeline must have one input, of float32, int8 or uint8"),
                where=self.name,
            )
        shape = self._dims_of(inputs[0])
        if not shape or not all(isinstance(d, int) for d in shape):
            raise UsageError(
                tr("its input {value} has no fixed size", value=inputs[0].type),
                where=self.name,
                fix=tr("add its size to `preprocess`, or convert it with --shape"),
            )
        return inputs[0]


def read_stages(
    stages: Sequence[Mapping[str, Any]], folder: Path
) -> tuple[list[Part], list[dict[str, Any]]]:
    """The models and the stages that use them, as the native runtime reads them. Files are relative
    to `folder`. Raises UsageError and what opening a model raises."""
    parts: dict[str, Part] = {}
    made: list[dict[str, Any]] = []
    for index, stage in enumerate(stages):
        where = tr("stage {number}", number=index + 1)
        if not isinstance(stage, Mapping):
            raise UsageError(tr("a stage is a mapping"), where=where)
        known = next((k for k in ("model", *STEPS) if k in stage), None)
        if known is None:
            raise UsageError(
                tr("a stage is one of {known}", known=", ".join(("model", *STEPS))), where=where
            )
        if known == "model":
            _known_keys(stage, ("model", *MODEL_KEYS), where)
            part = _part(stage, folder)
            if part.name in parts:
                raise UsageError(tr("two models are called {name!r}", name=part.name), where=where)
            parts[part.name] = part
            made.append({"model": part.name})
        else:
            said = stage[known] or {}
            _known_keys(stage, (known,), where)
            _known_keys(said, STEPS[known], where)
            made.append({known: dict(said)})
    return list(parts.values()), made


def _known_keys(given: Any, known: Sequence[str], where: str) -> None:
    if not isinstance(given, Mapping):
        raise UsageError(tr("expected a mapping of {known}", known=", ".join(known)), where=where)
    for key in given:
        if key not in known:
            raise UsageError(
                tr("a stage has no {key!r}", key=key),
                where=where,
                fix=tr("it has {known}", known=", ".join(known)),
            )


def _part(stage: Mapping[str, Any], folder: Path) -> Part:
    given = stage["model"]
    if not isinstance(given, (str, Path, Model, Graph)):
        raise UsageError(tr("`model` is a file"), where="model")
    model = open_model(folder / given if isinstance(given, (str, Path)) else given)
    features = stage.get("features")
    if features is not None and not isinstance(features, Mapping):
        raise UsageError(tr("`features` is a mapping"), where=str(given))
    if heard := split_front_end(model):
        model, own = heard
        features = {**own, **(features or {})}
    name = str(stage.get("name") or (Path(given).stem if isinstance(given, (str, Path)) else ""))
    how = stage.get("preprocess", model.metadata.get("preprocess") or {})
    labels = stage.get("labels", model.metadata.get("labels", ()))
    if not isinstance(labels, (str, Path, Sequence)):
        raise UsageError(tr("`labels` is a list, or a file with a line for each"), where=str(given))
    if isinstance(how, str):
        preprocess = Preprocess.parse(how, model.metadata.get("preprocess"))
    else:
        preprocess = Preprocess.from_dict(how)
    model, preprocess, widths = _sized(model, preprocess, stage)
    words = read_labels(folder / labels) if isinstance(labels, (str, Path)) else map(str, labels)
    return Part(
        name or model.name,
        model,
        preprocess,
        tuple(words),
        _read(model, stage.get("read") or {}, folder),
        features,
        widths,
    )


def _sized(
    model: Model, preprocess: Preprocess, stage: Mapping[str, Any]
) -> tuple[Model, Preprocess, tuple[int, ...]]:
    """The model with the stage's size and batch where it leaves them open, or with an open width
    and the `widths` that it gets. Raises UsageError."""
    inputs = model.graph.inputs
    dims = tuple(inputs[0].shape or ()) if len(inputs) == 1 else ()
    widths = read_widths(stage.get("widths"))
    axis = width_axis(preprocess.layout, dims) if len(dims) == 4 else None
    if not widths and axis is not None and not isinstance(dims[axis], int) and not preprocess.size:
        widths = read_widths(stage.get("open_widths"))
    if widths and axis is None:
        raise UsageError(tr("`widths` are for a model with one image"), where=model.name)
    if widths and preprocess.fit != "height":
        raise UsageError(tr("`widths` need the resize mode height"), where=model.name)
    model = _of_one_size(model, preprocess, stage.get("open_size"), _batch_of(stage), widths)
    if not widths or axis is None:
        return model, preprocess, ()
    return for_widths(model, axis, widths), replace(preprocess, size=None), widths


def _read(model: Model, said: Any, folder: Path) -> dict[str, Any]:
    """The model's adapter with what the stage says; a `gallery` may be a .npy file of (N,D).
    Raises UsageError."""
    if not isinstance(said, Mapping):
        said = Adapter.parse(str(said)).to_dict()
    read = Adapter.of({"adapter": {**Adapter.of(model.metadata).options(), **said}}).to_dict()
    if isinstance(read.get("gallery"), (str, Path)):
        vectors = read_array(folder / read["gallery"])
        if vectors.ndim != 2 or vectors.dtype.kind != "f":
            raise UsageError(tr("a gallery is an array of floats (N,D)"), where=read["gallery"])
        read["gallery"] = vectors.astype(float).tolist()
    return read


def _batch_of(stage: Mapping[str, Any]) -> int:
    """Raises UsageError."""
    count = stage.get("batch", 1)
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= 256:
        raise UsageError(tr("`batch` must be between 1 and 256, got {value!r}", value=count))
    return count


def _of_one_size(
    model: Model,
    preprocess: Preprocess,
    size: Any = None,
    batch: int = 1,
    widths: tuple[int, ...] = (),
) -> Model:
    """With this batch where that is open; where height and width are, with the preprocessing's
    or else with this `size`. With `widths` the width stays open. Raises UsageError."""
    size = preprocess.size or (Preprocess.from_dict({"size": size}).size if size else None)
    inputs = model.graph.inputs
    shape = inputs[0].shape if len(inputs) == 1 else None
    if shape is not None and batch > 1 and isinstance(shape[0], int) and shape[0] != batch:
        raise UsageError(
            tr("its batch is {own}, not {batch}", own=shape[0], batch=batch),
            fix=tr("make another one with lite edit --batch {batch}", batch=batch),
        )
    if shape is None or all(isinstance(d, int) for d in shape):
        return model
    dims = list(shape)
    dims[0] = dims[0] if isinstance(dims[0], int) else batch
    if len(dims) == 4 and size is not None:
        layout = preprocess.layout or ("nhwc" if dims[3] in (1, 3) else "nchw")
        axes = (2, 3) if layout == "nchw" else (1, 2)
        for axis, length in zip(axes, size, strict=True):
            stays = isinstance(dims[axis], int) or (widths and axis == axes[1])
            dims[axis] = dims[axis] if stays else length
    if sum(not isinstance(d, int) for d in dims) > bool(widths):
        return model
    return with_shapes(model, {inputs[0].name: tuple(dims)})


def read_document(path: Path) -> dict[str, Any]:
    """A pipeline's JSON or YAML file. Raises LiteError."""
    try:
        text = read_bounded(path).decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise UsageError(
            tr("cannot be read ({reason})", reason=reason_of(error)), where=path
        ) from None
    try:
        document = json.loads(text) if path.suffix == ".json" else _yaml(text)
        _check_plain(document)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            tr("not a pipeline that can be read ({error})", error=error), where=path
        ) from None
    if not isinstance(document, dict) or not isinstance(document.get("stages"), list):
        raise UsageError(tr("a pipeline is a mapping with `stages`, a list"), where=path)
    _known_keys(document, ("name", "stages"), str(path))
    return document


def _yaml(text: str) -> Any:
    """Raises ValueError for text that is not YAML, LiteError without PyYAML."""
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError:
        raise LiteError(
            tr("pipelines in YAML need PyYAML"),
            fix=tr("write them in JSON, or install it"),
            command="pip install pyyaml",
        ) from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None
    except (AttributeError, LookupError, OverflowError, TypeError) as error:
        # what PyYAML's readers of !!timestamp, !!bool and !!int raise for other words
        raise ValueError(tr("a value does not fit its tag: {error}", error=error)) from None


def _check_plain(document: Any) -> None:
    """Raises ValueError for what JSON does not have, and for a document that goes on and on: an
    alias of YAML may stand for all that is around it."""
    waiting, count = [document], 0
    while waiting:
        value = waiting.pop()
        count += 1
        if count > _MOST_VALUES:
            raise ValueError(tr("larger or nested deeper than any pipeline"))
        if isinstance(value, dict):
            waiting += [part for pair in value.items() for part in pair]
        elif isinstance(value, list):
            waiting += value
        elif value is not None and not isinstance(value, (str, int, float)):
            shown = f"{value!s:.40}"
            raise ValueError(tr("{shown} is not a string or number; put it in quotes", shown=shown))
