"""A pipeline as a side: what is judged is the answer at its end, not one model's outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from lite_engine.adapter import Adapter
from lite_engine.errors import UsageError
from lite_engine.pipeline import Pipeline
from lite_messages import tr

from ..answers import Answer, listed
from ..inputs import png
from .reading import UnreadableSource
from .side import Read

#: Kinds whose items are places.
_PLACES = ("boxes", "regions", "keypoints")


class PipelineSide:
    """A pipeline on a backend, or on one for each model. `options` are those of `Predictor`."""

    guessed = False

    def __init__(
        self, name: str, pipeline: Pipeline, backend: str | Mapping[str, str] = "auto",
        version: str = "float", **options: Any,
    ) -> None:  # fmt: skip
        self.name, self.pipeline, self.version = name, pipeline, version
        self._predictors = pipeline.predictors(backend, **options)
        self._native: tuple[float | None, Any] | None = None

    @property
    def title(self) -> str:
        return self.pipeline.name

    @property
    def backend(self) -> str:
        return ", ".join(dict.fromkeys(p.backend for p in self._predictors))

    @property
    def precision(self) -> str:
        return ", ".join(dict.fromkeys(p.display_precision for p in self._predictors))

    @property
    def labels(self) -> list[str]:
        """Of the first model that finds things, else of the last one with labels."""
        cuts = any("crop" in stage for stage in self.pipeline.stages)
        with_labels = [list(part.labels) for part in self.pipeline.parts if part.labels]
        return (with_labels[0] if cuts else with_labels[-1]) if with_labels else []

    @property
    def classes(self) -> int | None:
        """How many classes the answer about the whole image has, where labels say so."""
        cuts = any("crop" in stage for stage in self.pipeline.stages)
        return None if cuts else len(self.labels) or None

    def read(
        self, source: Any, labels: Sequence[str], adapter: Adapter | None,
        options: Mapping[str, Any],
    ) -> Read:  # fmt: skip
        """As `Side.read`. Raises LiteError, UnreadableSource."""
        if adapter is not None:
            raise UsageError(tr("the models of a pipeline have their own adapters"))
        try:
            made = self._running(options.get("threshold")).answer_of(_bytes(source))
        except UsageError as error:
            named = isinstance(source, (str, Path))
            raise UnreadableSource(str(error.within(source) if named else error)) from None
        image = made.get("image")
        picture = (image["width"], image["height"]) if image else None
        return _read(made["answers"], str(options.get("kind", "")), picture)

    def _running(self, threshold: float | None) -> Any:
        """Detectors are judged by unsure boxes, too, unless later models work on what they find."""
        if any("crop" in stage for stage in self.pipeline.stages):
            threshold = None
        if self._native is None or self._native[0] != threshold:
            used = self.pipeline
            if threshold is not None:
                used = used.but(defaults={"threshold": threshold})
            runners = [used.runner_of(p) for p in self._predictors]
            self._native = threshold, used.native(runners)
        return self._native[1]


def _bytes(source: Any) -> bytes:
    """Raises UnreadableSource."""
    if isinstance(source, (str, Path)):
        try:
            return Path(source).read_bytes()
        except OSError as error:
            raise UnreadableSource(f"{source}: {error.strerror}") from None
    if isinstance(source, np.ndarray) and source.dtype == np.uint8 and source.ndim in (2, 3):
        return png(source)
    raise UnreadableSource(tr("a pipeline takes images and sounds"))


def _walk(answers: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every answer, and after it those about what it found."""
    for answer in answers.values():
        yield answer
        for item in answer.get("items", ()):
            yield from _walk(item.get("answers", {}))


def _read(answers: Mapping[str, Any], kind: str, picture: tuple[int, int] | None) -> Read:
    """The answer of this kind: classes are the last model's about the whole image, lines of text
    are joined, of places the first ones count."""
    every = list(_walk(answers))
    found = [a for a in every if a["kind"] == kind]
    nowhere = kind == "text" and any(a["kind"] in _PLACES for a in answers.values())
    if not found and not nowhere:  # another task, or outputs that hold NaN
        return Read(Answer("values", ""), picture, all(a["kind"] != "values" for a in every))
    if kind == "text":
        items = [{"label": a["text"], "score": a["confidence"]} for a in found]
        return Read(Answer("text", " ".join(a["text"] for a in found), items), picture, True)
    if kind not in _PLACES or picture is None:
        last = [a for a in answers.values() if a["kind"] == kind][-1:] or found[:1]
        items = list(last[0].get("items", []))
        return Read(Answer(kind, str(items[0]["label"]) if items else "", items), picture, True)
    items = [_item(item, picture) for item in found[0]["items"]]
    return Read(Answer("boxes", listed([i["label"] for i in items]), items), picture, True)


def _item(item: Mapping[str, Any], picture: tuple[int, int]) -> dict[str, Any]:
    """Places in parts of the picture; `text` is what was read there."""
    size = np.array([*picture, *picture], np.float64)
    made = {"label": item.get("label", ""), "score": item["score"],
            "box": (np.array(item["box"]) / size).tolist()}  # fmt: skip
    if "index" in item:
        made["index"] = item["index"]
    if "mask" in item:
        made["mask"] = item["mask"]
    if "keypoints" in item:
        made["keypoints"] = [[x / picture[0], y / picture[1], s] for x, y, s in item["keypoints"]]
    if "answers" in item:
        texts = [a["text"] for a in _walk(item["answers"]) if a["kind"] == "text"]
        made["text"] = " ".join(texts)
    return made
