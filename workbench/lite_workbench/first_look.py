"""What each usual preprocessing would answer to the first image of some inputs, for a model that
does not say its own: shown before long work on all of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lite_engine.errors import LiteError
from lite_engine.runtime import Predictor
from lite_messages import tr

from .compare_inputs import inputs_of
from .evaluate.reading import UnreadableSource
from .evaluate.remote import local
from .inputs import is_guessed, is_picture
from .recipes import RecipeAnswer, recipe_answers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lite_engine.adapter import Adapter
    from lite_engine.model_file import Model

#: Images that are tried until one can be read. The work itself tells of those that cannot.
MOST = 5


@dataclass
class FirstLook:
    """The answers of each preprocessing to the image `name`."""

    name: str
    recipes: list[RecipeAnswer]

    @property
    def sentence(self) -> str:
        return tr(
            "the model does not say how its images were prepared; {name} with each usual "
            "preprocessing:", name=self.name,
        )  # fmt: skip


def first_look(
    model: Model,
    source: Any,
    *,
    images: str | Path | None = None,
    predictor: Predictor | None = None,
    labels: Sequence[str] | None = None,
    adapter: Adapter | None = None,
) -> FirstLook | None:
    """`source` is what `compare_inputs.inputs_of` takes. None for a model that says how, and for
    inputs that are no images. Raises UsageError for inputs that are not there."""
    if not is_guessed(model):
        return None
    for sample in inputs_of(source, model, images=images).samples[:MOST]:
        try:
            with local(sample) as here:
                if not is_picture(here.source):
                    return None
                used = predictor or Predictor(model)
                return FirstLook(
                    sample.name, recipe_answers(model, used, here.source, labels, adapter)
                )
        except (LiteError, UnreadableSource):
            continue  # the work tells of it
    return None
