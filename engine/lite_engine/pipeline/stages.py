"""A pipeline as somebody writes it: a list of stages, in Python, JSON or YAML."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from lite_messages import tr

from ..adapter import Adapter
from ..arrays import read_array
from ..errors import LiteError, ShapeError, UsageError, reason_of
from ..ir import DType, Graph, QuantParams, Value
from ..model_file import Model, open_model, with_shapes
from ..preprocess import Preprocess
from .front_end import split_front_end

#: What a model's stage may say beside `model`.
MODEL_KEYS = ("name", "preprocess", "open_size", "batch", "features", "labels", "read")
#: Stages between models, with what they may say.
STEPS = {"crop": ("grow", "limit"), "turn": ("model", "label", "above")}
#: Of a document; an alias of YAML costs nothing in its text, and may stand for a million values.
_MOST_BYTES, _MOST_VALUES = 4 << 20, 100_000
#: Types that a model's input may have.
_INPUTS = {DType.F32: "f32", DType.I8: "i8", DType.U8: "u8"}


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

    def to_dict(self, section: str) -> dict[str, Any]:
        """As the native runtime reads it. Raises UsageError, ShapeError."""
        image = self._input()
        prepared: dict[str, Any] = {"features": self.features}
        if self.features is None:
            prepared = {"preprocess": self._fitted(image).to_dict()}
        return {
            "name": self.name,
            "section": section,
            "input": {"dtype": _INPUTS[image.type.dtype], **_quant(image.quant), **self._batch()},
            "outputs": [_quant(value.quant) for value in self.model.graph.outputs],
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
        """Of the only input, which has a fixed size."""
        return tuple(d for d in self._input().shape or () if isinstance(d, int))

    def _fitted(self, image: Value) -> Preprocess:
        """Raises ShapeError for a size that is not the input's."""
        made = self.preprocess.fitted(image.shape or ())
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
        if len(inputs) != 1 or inputs[0].type.dtype not in _INPUTS:
            raise UsageError(
                tr("a pipeline's model has one input of float32, int8 or uint8"), where=self.name
            )
        shape = inputs[0].shape or ()
        if not shape or not all(isinstance(d, int) for d in shape):
            raise UsageError(
                tr("its input {value} has no fixed size", value=inputs[0].type),
                where=self.name,
                fix=tr("add its size to `preprocess`, or convert it with --shape"),
            )
        return inputs[0]


def _quant(quant: QuantParams | None) -> dict[str, Any]:
    if quant is None or np.size(quant.scale) != 1:
        return {}
    return {"scale": float(quant.scale), "zero_point": int(quant.zero_point)}


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
    return Part(
        name or model.name,
        _of_one_size(model, preprocess, stage.get("open_size"), _batch_of(stage)),
        preprocess,
        tuple(_labels(folder / labels) if isinstance(labels, (str, Path)) else map(str, labels)),
        _read(model, stage.get("read") or {}, folder),
        features,
    )


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


def _of_one_size(model: Model, preprocess: Preprocess, size: Any = None, batch: int = 1) -> Model:
    """With this batch where that is open; where height and width are, with the preprocessing's
    or else with this `size`. Raises UsageError."""
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
            dims[axis] = dims[axis] if isinstance(dims[axis], int) else length
    if not all(isinstance(d, int) for d in dims):
        return model
    return with_shapes(model, {inputs[0].name: tuple(dims)})


def _labels(path: Path) -> list[str]:
    try:
        return _text_of(path).splitlines()
    except (OSError, ValueError) as error:
        raise UsageError(
            tr("labels cannot be read ({reason})", reason=reason_of(error)), where=path
        ) from None


def _text_of(path: Path) -> str:
    """Raises OSError, ValueError."""
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)  # of a pipe or a device, too
    if len(data) > _MOST_BYTES:
        raise ValueError(tr("larger than {size} MiB", size=_MOST_BYTES >> 20))
    return data.decode()


def read_document(path: Path) -> dict[str, Any]:
    """A pipeline's JSON or YAML file. Raises LiteError."""
    try:
        text = _text_of(path)
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
            raise ValueError(tr("{shown} is not a text or number; put it in quotes", shown=shown))
