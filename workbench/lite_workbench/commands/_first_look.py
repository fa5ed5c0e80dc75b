"""What is said of an unknown preprocessing before long work begins."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lite_engine.lines import read_labels
from lite_engine.terminal import screen

from ..first_look import first_look
from ..inputs import is_guessed
from .run import recipe_lines

if TYPE_CHECKING:
    from lite_engine.model_file import Model


def say_first(model: Model, source: Callable[[], Any], args: argparse.Namespace) -> None:
    """Where the model does not say how images become numbers: what each usual preprocessing answers
    to the first image of what `source` gives, on standard error. Raises UsageError for inputs that
    are not there."""
    from lite_engine.adapter import Adapter

    if not is_guessed(model):
        return
    given: dict[str, Any] = vars(args)
    labels, adapter = given.get("labels"), given.get("adapter")
    found = first_look(
        model, source(), images=given.get("images"),
        labels=read_labels(labels) if labels else None,
        adapter=Adapter.parse(adapter) if adapter else None,
    )  # fmt: skip
    if found is not None:
        print(
            screen("\n".join([found.sentence, *recipe_lines(found.recipes), ""])), file=sys.stderr
        )
