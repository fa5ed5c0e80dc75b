"""The input of a session, which its runs take until another one is set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from lite_engine.lines import read_labels
from lite_engine.runtime.feeds import checked_feeds
from lite_messages import tr

from ..inputs import as_code, feeds_of
from ..recipes import RecipeAnswer, recipe_answers
from ._state import SessionState
from .predictors import predictor
from .versions import model_of


def set_input(
    state: SessionState, source: Any, seed: int = 0, sample: int | None = None,
    tokenizer: str | Path | None = None,
) -> dict[str, np.ndarray]:  # fmt: skip
    """See `Session.set_input`. Raises UsageError, ShapeError."""
    from ..evaluate.formats import sample_of

    given = source if sample is None else sample_of(source, sample)
    made = _keep(state, given, _name(source, seed, sample), seed=seed, tokenizer=tokenizer)
    options = {"seed": seed or None, "sample": sample, "tokenizer": tokenizer and str(tokenizer)}
    said = "".join(f", {k}={v!r}" for k, v in options.items() if v is not None)
    if (code := _as_code(source)) is not None:
        state.remember(f"session.set_input({code}{said})")
    state.notify("input", source)
    return made


def _keep(state: SessionState, source: Any, name: str, **how: Any) -> dict[str, np.ndarray]:
    """Makes this the input, once it is known to fit. Raises UsageError, ShapeError."""
    model = model_of(state)
    feeds, image = feeds_of(model, source, **how)
    made = checked_feeds(model.graph.inputs, feeds)
    state.feeds, state.image, state.input_name = made, image, name
    return made


def _name(source: Any, seed: int, sample: int | None) -> str:
    if source is None:
        return tr("random data") if not seed else tr("random data of seed {seed}", seed=seed)
    if isinstance(source, Mapping):
        return ", ".join(dict.fromkeys(_name(one, seed, None) for one in source.values()))
    if not isinstance(source, (str, Path)):
        return tr("data from Python")
    name = Path(source).name if len(str(source)) < 200 else tr("text")
    return name if sample is None else tr("sample {number} of {name}", number=sample, name=name)


def _as_code(source: Any) -> str | None:
    """A file, random numbers, or one of both for each input, as code; None for data."""
    sources = source if isinstance(source, Mapping) else {"": source}
    if not all(one is None or isinstance(one, (str, Path)) for one in sources.values()):
        return None
    said = {name: "None" if one is None else repr(str(one)) for name, one in sources.items()}
    if not isinstance(source, Mapping):
        return said[""]
    return "{" + ", ".join(f"{name!r}: {one}" for name, one in said.items()) + "}"


def set_labels(state: SessionState, labels: str | Path | Sequence[str]) -> list[str]:
    """See `Session.set_labels`. Raises UsageError."""
    is_file = isinstance(labels, (str, Path))
    made = read_labels(labels) if isinstance(labels, (str, Path)) else list(labels)
    for metadata in (state.graph.metadata, *(m.metadata for m in state.versions.values())):
        metadata["labels"] = made
    state.remember(f"session.set_labels({str(labels)!r})" if is_file else
                   f"session.set_labels({made!r})")  # fmt: skip
    state.notify("labels", made)
    return made


def input_of(state: SessionState, source: Any = None) -> dict[str, np.ndarray]:
    """Sets `source`; None keeps the input, or sets random numbers where there is none yet."""
    if source is None and state.feeds is not None:
        return state.feeds
    made = _keep(state, source, _name(source, 0, None))
    state.notify("input", source)
    return made


def recipes(state: SessionState, image: Any, backend: str) -> list[RecipeAnswer]:
    """See `Session.recipes`. Raises LiteError."""
    with state.busy:
        used = predictor(state, backend)
        made = recipe_answers(used.model, used, image)
    state.remember(f"session.recipes({as_code(image)})")
    return made
