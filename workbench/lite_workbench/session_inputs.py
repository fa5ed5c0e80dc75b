"""What a Session is told about its input: values, how images become it, names of classes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ._old_names import OldNames
from .state import feeds, versions

if TYPE_CHECKING:
    from .recipes import RecipeAnswer


class SessionInputs(OldNames):
    """A Session's input."""

    def prepare(self, how: str) -> None:
        """How an image becomes the input: what `--preprocess` takes, like "imagenet,crop" or
        "mean=127,std=128"; "letterbox" alone leaves the model's numbers. Every version keeps it, in
        its file too. Raises UsageError."""
        versions.prepare(self, how)

    def recipes(self, image: Any, backend: str = "auto") -> list[RecipeAnswer]:
        """What the model would answer to an image with each usual preprocessing, for a model that
        does not say its own. Raises LiteError."""
        return feeds.recipes(self, image, backend)

    def set_input(
        self,
        source: Any = None,
        *,
        seed: int = 0,
        sample: int | None = None,
        tokenizer: str | Path | None = None,
    ) -> dict[str, np.ndarray]:
        """What runs, profiles and comparisons take from now on. `source` is an image (path, bytes,
        array), a .npy, .npz, .csv or .wav file, or {input: array, file, or None}; None is random
        numbers of this `seed`. With a `tokenizer` (vocab.txt, tokenizer.json) it is a text or a
        .txt file, with `sample` a data set of which this sample is taken. Raises LiteError."""
        return feeds.set_input(self, source, seed, sample, tokenizer)

    def set_labels(self, labels: str | Path | Sequence[str]) -> list[str]:
        """The names of the classes: a list, or a file with one per line. Every version keeps them,
        in its file too. Raises UsageError."""
        return feeds.set_labels(self, labels)
