"""What a model's outputs mean: an adapter, which travels with the model like its preprocessing.

`metadata["adapter"]` is `{"kind": "boxes", "threshold": 0.3, "overlap": 0.5}`; what is not said is
found from the shapes of the outputs. Short form: `boxes,threshold=0.3`. The native runtime reads
outputs (native/src/app), for `lite run`, `lite evaluate`, pipelines and applications alike. A
Python function can be an adapter, too: `decode.py:read`, called with the outputs by name, returns
what `answers.of_function` takes. Files hold no code: such an adapter is given anew each time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from lite_messages import tr

from .errors import LiteError, UsageError, check_choice
from .extensions import python_file

KINDS = ("text", "top", "boxes", "mask", "regions", "keypoints", "vector", "image")
#: what else an adapter may say (docs/pipelines.md); the native runtime checks the values
MORE = (
    "top", "softmax", "map_threshold", "box_threshold", "unclip", "decode", "anchors", "strides",
    "bins", "scale_xy", "sigmoid", "center", "pixels", "points", "gallery", "colors", "colours",
    "nms", "sigma", "agnostic",
)  # fmt: skip
#: a box is shown from this score on; `lite run --threshold` changes it
THRESHOLD = 0.4
#: boxes that share more than this (intersection over union) are one
OVERLAP = 0.3


@dataclass(frozen=True)
class Adapter:
    """None is not said; `more` has those of MORE that are. `function(outputs, picture)` reads the
    outputs instead, where there is one; `picture` is the image's (width, height) or None."""

    kind: str | None = None
    threshold: float | None = None
    overlap: float | None = None
    function: Callable[..., Any] | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_choice(tr("adapter"), self.kind, (None, *KINDS))
        for name in ("threshold", "overlap"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, (int, float)) and 0 <= value <= 1):
                raise UsageError(
                    tr(
                        "adapter: {name} {value!r} is not a number from 0 to 1",
                        name=name,
                        value=value,
                    )
                )

    @staticmethod
    def of(metadata: Mapping[str, Any]) -> Adapter:
        """What a model's metadata says, perhaps nothing. Raises UsageError."""
        data = metadata.get("adapter") or {}
        known = ("kind", "threshold", "overlap", *MORE)
        if not isinstance(data, Mapping) or not set(data) <= set(known):
            raise UsageError(
                tr("the model's adapter is not a mapping of {known}", known=", ".join(known))
            )
        own = {k: v for k, v in data.items() if k not in MORE}
        return Adapter(**own, more={k: v for k, v in data.items() if k in MORE})

    @staticmethod
    def parse(text: str) -> Adapter:
        """The short form, or FILE.py:FUNCTION. Raises UsageError."""
        file, _, name = text.rpartition(":")
        if file.endswith(".py"):
            return Adapter(function=_function(Path(file), name))
        said: dict[str, Any] = {}
        for word in (w.strip() for w in text.split(",") if w.strip()):
            key, sign, value = word.partition("=")
            if not sign:
                said["kind"] = word
            elif key in MORE:
                said[key] = _value(value)
            elif key in ("threshold", "overlap"):
                said[key] = _number(key, value)
            else:
                raise UsageError(
                    tr("an adapter has no {key!r}", key=key),
                    fix=tr("it has {known}", known=", ".join(("threshold", "overlap", *MORE))),
                )
        return Adapter.of({"adapter": said})

    def to_dict(self) -> dict[str, Any]:
        """What is said, as the model keeps it. Raises UsageError for a function."""
        if self.function is not None:
            raise UsageError(
                tr("a file holds no code"),
                fix=tr("pass the adapter to `lite run` and `lite evaluate`"),
            )
        return self.options()

    def options(self) -> dict[str, Any]:
        """What is said, as `answers.answer` takes it."""
        own = {"kind": self.kind, "threshold": self.threshold, "overlap": self.overlap}
        return {k: v for k, v in own.items() if v is not None} | dict(self.more)

    def call(self, outputs: Mapping[str, np.ndarray], picture: tuple[int, int] | None) -> Any:
        """What the function returns. Raises LiteError when it fails."""
        assert self.function is not None
        try:
            return self.function(outputs, picture)
        except Exception as error:  # whatever somebody else's function raises
            raise LiteError(
                tr(
                    "the adapter's function failed ({kind}: {error})",
                    kind=type(error).__name__,
                    error=error,
                ),
                fix=tr("it is called with the outputs by name and the image's (width, height)"),
            ) from error


def _number(key: str, value: str) -> float:
    """Raises UsageError."""
    try:
        return float(value)
    except ValueError:
        raise UsageError(
            tr("adapter: {key} {value!r} is not a number", key=key, value=value)
        ) from None


def _value(text: str) -> Any:
    """`8/16/32` is a list, `10/13+30/61` a list of lists, true and false are what they say; numbers
    are numbers, everything else is a word."""
    if "+" in text:
        return [[_value(n) for n in part.split("/")] for part in text.split("+")]
    if "/" in text:
        return [_value(n) for n in text.split("/")]
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _function(path: Path, name: str) -> Callable[..., Any]:
    """A function of a Python file. Raises UsageError."""
    found = getattr(python_file(path), name, None)
    if not callable(found):
        raise UsageError(tr("there is no function {name!r}", name=name), where=path)
    return found  # type: ignore[no-any-return]
