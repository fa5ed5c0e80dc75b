"""A model that does not say how images become numbers: what each usual recipe would answer.

Evidence is what the first layers show: a model that subtracts or divides by constants itself takes
raw pixels; Caffe's models were trained on BGR pixels less a mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lite_engine.errors import UsageError
from lite_engine.ops import find_op
from lite_engine.preprocess import Preprocess
from lite_messages import tr

from .answers import answer_of
from .inputs import read_source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lite_engine.adapter import Adapter
    from lite_engine.model_file import Model
    from lite_engine.runtime import Predictor

    from .answers import Answer

#: (--preprocess, what it does to pixels)
RECIPES = (
    ("unit", "0…1"),
    ("pm1", "-1…1"),
    ("imagenet", tr("ImageNet's mean and std")),
    ("mean=104/117/123,bgr", tr("Caffe: BGR less a mean")),
    ("raw", "0…255"),
)


@dataclass
class RecipeAnswer:
    """What the model answers when an image is prepared so. `preprocess` is what `--preprocess`
    takes; `score` is None where the answer has none."""

    preprocess: str
    meaning: str
    text: str
    score: float | None
    likely: bool


def recipe_answers(
    model: Model,
    predictor: Predictor,
    source: Any,
    labels: Sequence[str] | None = None,
    adapter: Adapter | None = None,
) -> list[RecipeAnswer]:
    """One for each of RECIPES that fits the model's input. Raises LiteError."""
    likely = evidence(model)
    own = Preprocess.of(model.metadata).to_dict()
    made = []
    for how, meaning in RECIPES:
        numbers = Preprocess.parse(how).to_dict()
        trial = model.but(metadata={**model.metadata, "preprocess": {**own, **numbers}})
        if not _fits(trial):
            continue  # three means for a grey image
        feeds, picture = read_source(trial, source)
        answer = answer_of(
            trial, feeds, predictor.run(feeds), labels, picture=picture, adapter=adapter
        )
        made.append(RecipeAnswer(how, meaning, answer.text, score_of(answer), how == likely))
    return made


def _fits(model: Model) -> bool:
    """Whether its numbers and color are those of as many channels as the input has."""
    shape = next((v.shape for v in model.graph.inputs if v.shape and len(v.shape) == 4), ())
    try:
        spec = Preprocess.of(model.metadata).fitted(shape)
    except UsageError:
        return False
    grey = bool(shape) and shape[1 if spec.layout == "nchw" else 3] == 1
    return not grey or spec.colour == "grey"


def score_of(answer: Answer) -> float | None:
    """Of the best class or box, or the mean of a line's letters."""
    if answer.kind == "text":
        return answer.confidence
    return answer.items[0].get("score") if answer.items else None


def evidence(model: Model) -> str:
    """The recipe that format and first layers speak for, "" where nothing does."""
    if Path(model.path or "").suffix in (".caffemodel", ".prototxt"):
        return "mean=104/117/123,bgr"
    readers = model.graph.inputs[0].readers if model.graph.inputs else []
    if len(readers) != 1:
        return ""
    first = readers[0]
    folded = {n for e in model.journal.entries if e.rule == "fold-conv-input" for n in e.result}
    others = [v for v in first.inputs if v is not None and v is not model.graph.inputs[0]]
    elementwise = getattr(find_op(first.op), "layout", "") == "elementwise"
    scales = elementwise and others and all(v.is_const for v in others)
    return "raw" if scales or first.name in folded else ""
