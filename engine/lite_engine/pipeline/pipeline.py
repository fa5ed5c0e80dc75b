"""Pipeline: models and steps as one object and one file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from lite_messages import tr

from ..devices import find_device
from ..errors import LiteError, UsageError, reason_of
from ..model_file import Model
from ..model_file.native_stage import FORMAT
from ..runtime import Predictor
from .bundle import is_bundle, read_bundle, sections_of, write_bundle
from .families import stages_of
from .native import NativePipeline
from .stages import Part, read_document, read_stages

#: What runs one model: its prepared input → its outputs, in order.
Run = Callable[[np.ndarray], Sequence[np.ndarray]]


class Pipeline:
    """From a photo to an answer.

    `stages` is a list of mappings: `{"model": FILE or Model, "name": …, "preprocess": …, "labels":
    …, "read": …}` looks at every picture under work; `{"crop": {"grow": 0.1}}` cuts out what the
    model before it found, which are the pictures from there on; `{"turn": {"model": …, "label":
    "180", "above": 0.9}}` turns those by half a turn of which that model said so. What a model's
    stage does not say is what travels with the model. docs/pipelines.md has it all.
    Raises UsageError, and what opening a model raises.
    """

    def __init__(
        self, stages: Sequence[Mapping[str, Any]], name: str = "pipeline", folder: Path = Path()
    ) -> None:
        self.name = name
        self.parts, self.stages = read_stages(stages, folder)
        self._check()

    def _check(self) -> None:
        """Raises UsageError for what the native runtime refuses."""
        self._running: tuple[tuple[Any, ...], NativePipeline] | None = None
        NativePipeline(self._document(), lambda *_: ())

    @classmethod
    def open(cls, path: str | Path) -> Pipeline:
        """A pipeline's .yaml, .json or .lite file; any other model file is a pipeline of one model.
        Raises LiteError."""
        path = Path(path)
        try:
            return cls._opened(path)
        except LiteError as error:
            raise error.within(path) from None

    @classmethod
    def _opened(cls, path: Path) -> Pipeline:
        """Raises LiteError."""
        if path.suffix in (".yaml", ".yml", ".json"):
            document = read_document(path)
            name = str(document.get("name") or path.stem)
            return cls(document["stages"], name, path.parent)
        if not is_bundle(path):
            return cls([{"model": path}], path.stem)
        made = cls.__new__(cls)
        document, made.parts = read_bundle(path)
        made.name, made.stages = str(document.get("name", path.stem)), document["stages"]
        made._check()
        return made

    @classmethod
    def of_family(cls, family: str, models: Sequence[Any], labels: Any = None) -> Pipeline:
        """A ready pipeline (families.py) with these models; `labels`, a file or a list, are those
        of the last one. Raises UsageError, and what opening a model raises."""
        return cls(stages_of(family, models, labels), family)

    @property
    def models(self) -> dict[str, Part]:
        return {part.name: part for part in self.parts}

    @property
    def hears(self) -> bool:
        """Sounds come in, not images."""
        return any(part.features is not None for part in self.parts)

    def to_dict(self) -> dict[str, Any]:
        """As the native runtime reads it."""
        return {
            "format": FORMAT,
            "name": self.name,
            "input": "sound" if self.hears else "image",
            "models": [
                p.to_dict(t) for p, t in zip(self.parts, sections_of(self.parts), strict=True)
            ],
            "stages": self.stages,
        }

    def _document(self) -> bytes:
        return json.dumps(self.to_dict()).encode()

    def but(
        self, models: Mapping[str, Model] | None = None, name: str | None = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> Pipeline:  # fmt: skip
        """The same stages with other models in place of those of these names; `defaults` hold where
        an adapter does not say them. Raises UsageError."""
        given, said = models or {}, defaults or {}
        made = Pipeline.__new__(Pipeline)
        made.name, made.stages = name or self.name, self.stages
        made.parts = [
            replace(p, model=given.get(p.name, p.model), read={**said, **p.read})
            for p in self.parts
        ]
        made._check()
        return made

    def save(self, path: str | Path, targets: Sequence[str] = ()) -> Path:
        """Writes a `.lite` file with each model once; models without targets are converted for
        `targets`. Raises LiteError."""
        open_ones = {id(p.model) for p in self.parts if not p.model.targets} if targets else set()
        return write_bundle(Path(path), self.to_dict(), self._with_targets(targets, open_ones))

    def for_targets(self, targets: Sequence[str]) -> Pipeline:
        """The same stages with all models for these targets, whichever they had."""
        made = Pipeline.__new__(Pipeline)
        made.name, made.stages = self.name, self.stages
        made.parts = self._with_targets(targets, {id(p.model) for p in self.parts})
        made._check()
        return made

    def _with_targets(self, targets: Sequence[str], models: Set[int]) -> list[Part]:
        """The parts with these models (by identity) for the targets; what was one stays one."""
        made: dict[int, Model] = {}
        for part in self.parts:
            if id(part.model) in models and id(part.model) not in made:
                made[id(part.model)] = part.model.but(targets=list(targets))
        return [replace(p, model=made.get(id(p.model), p.model)) for p in self.parts]

    def run(
        self,
        image: str | Path | bytes,
        backend: str | Mapping[str, str] = "auto",
        *,
        times: bool = False,
        **options: Any,
    ) -> dict[str, Any]:
        """The answer about an image or WAV file (or its bytes), as docs/pipelines.md describes it;
        with `times` also what each stage took. `backend` is one for all models, or one for each by
        its name (the others' is "auto"); `options` are those of `Predictor`. Raises UsageError for
        a file that cannot be read, and what running a model raises."""
        named = backend if isinstance(backend, str) else tuple(sorted(backend.items()))
        key = (named, *sorted(options.items()))
        if self._running is None or self._running[0] != key:
            self._running = key, self.native(self.runners(backend, **options))
        return _answer(self._running[1], image, times=times)

    def runners(self, backend: str | Mapping[str, str] = "auto", **options: Any) -> list[Run]:
        """What runs each model: its prepared input → its outputs, in order. A backend may name a
        device, `arm@emulated`. Raises what `Predictor` raises."""
        return [self.runner_of(p) for p in self.predictors(backend, **options)]

    def predictors(
        self, backend: str | Mapping[str, str] = "auto", **options: Any
    ) -> list[Predictor]:
        """One for each model, in their order. Raises what `Predictor` raises."""
        if isinstance(backend, Mapping):
            for name in backend:
                if name not in self.models:
                    raise UsageError(
                        tr("the pipeline has no model {name!r}", name=name),
                        fix=tr("it has {known}", known=", ".join(self.models)),
                    )
        names = [
            backend if isinstance(backend, str) else backend.get(part.name, "auto")
            for part in self.parts
        ]
        made = []
        for part, named in zip(self.parts, names, strict=True):
            name, _, device = named.partition("@")
            where = {"device": find_device(device)} if device else {}
            made.append(Predictor(part.model, name, **{**options, **where}))
        return made

    def runner_of(self, predictor: Predictor) -> Run:
        """What `predictor` makes of a prepared input."""

        def run(array: np.ndarray) -> list[np.ndarray]:
            outputs = predictor.run({predictor.input_names[0]: self.shaped(predictor, array)})
            return [outputs[name] for name in predictor.output_names]

        return run

    def shaped(self, predictor: Predictor, array: np.ndarray) -> np.ndarray:
        """A prepared input as the model has it: features may have more or fewer dims of 1."""
        if not self.hears:
            return array
        shape = predictor.model.graph.inputs[0].shape or ()
        return array.reshape([d if isinstance(d, int) else 1 for d in shape])

    def native(self, runners: Sequence[Run]) -> NativePipeline:
        """Of its own, for one thread at a time, with what runs each model."""
        return NativePipeline(self._document(), lambda index, array: runners[index](array))

    def answer_with(self, runners: Sequence[Run], image: str | Path | bytes) -> dict[str, Any]:
        """`run`, with what runs each model."""
        return _answer(self.native(runners), image)

    @property
    def last(self) -> dict[str, Any] | None:
        """The answer of the last `run`, with the stages' times; None before it."""
        if self._running is None:
            return None
        answer: dict[str, Any] = json.loads(self._running[1].answer(times=True))
        return answer

    def drawn(self) -> bytes:
        """The last image with the answer on it, as a PNG file. Raises UsageError before a run."""
        if self._running is None:
            raise UsageError(tr("the pipeline has not run yet"), fix=tr("call run first"))
        return self._running[1].drawn()

    def __repr__(self) -> str:
        said = " → ".join(s.get("model") or next(iter(s)) for s in self.stages)
        return f"<Pipeline {self.name}: {said}>"


def _answer(
    native: NativePipeline, image: str | Path | bytes, *, times: bool = False
) -> dict[str, Any]:
    """Raises UsageError, and what running a model raises."""
    try:
        return native.answer_of(
            image if isinstance(image, bytes) else _bytes(Path(image)), times=times
        )
    except UsageError as error:
        raise error if isinstance(image, bytes) else error.within(image) from None


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(
            tr("cannot be read ({reason})", reason=reason_of(error)), where=path
        ) from None
