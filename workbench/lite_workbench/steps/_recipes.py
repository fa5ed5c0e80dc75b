"""Where the file does not say how images become numbers: what each usual preprocessing answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lite_messages import tr
from lite_widgets import DataTable

from ..inputs import is_guessed, is_picture
from ..recipes import RecipeAnswer, recipe_answers

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._base import Step

GUESSED = tr(
    "the model does not define its image preprocessing: pixels were scaled to "
    "0…1; change it with Pixels above, or with session.prepare"
)


class RecipesPanel:
    """A table before the answers of a step: one image, prepared in each way; a click keeps one in
    every version, and calls `again`."""

    def __init__(self, step: Step, again: Callable[[], object] | None = None) -> None:
        self._step, self._again = step, again
        self.table = DataTable(title=tr("With each usual preprocessing"), note=GUESSED)
        self.table.layout.display = "none"
        step.on(self.table, "use", lambda payload: self._use(payload["how"]))
        step.follow("prepared", lambda _: self.refresh())

    def look(self, source: Any, backend: str = "auto") -> None:
        """Runs an image in each way, in the work of a job; anything else, or a model that says how,
        needs no table. A folder stands for its first image."""
        session = self._step.session
        if isinstance(source, (str, Path)) and Path(source).is_dir():
            source = next(filter(is_picture, sorted(Path(source).iterdir())), None)
        if not is_picture(source) or not is_guessed(session.model):
            return
        used = session.predictor(backend)
        made = recipe_answers(used.model, used, source)
        self._step.on_main(lambda: self._list(made))

    def refresh(self) -> None:
        """Once it is known there is nothing to choose."""
        if not is_guessed(self._step.session.model):
            self.table.layout.display = "none"

    def _list(self, made: list[RecipeAnswer]) -> None:
        heads = {"meaning": tr("Pixels"), "text": tr("result"), "score": tr("score"), "why": "",
                 "use": ""}  # fmt: skip
        likely = tr("the file suggests it")
        with self.table.hold_sync():
            self.table.columns = [
                {"id": i, "head": head, "kind": "action" if i == "use" else "text"}
                for i, head in heads.items()
            ]
            self.table.rows = [
                {"meaning": r.meaning, "text": r.text, "why": likely if r.likely else "",
                 "score": "" if r.score is None else f"{r.score:.3f}",
                 "use": ["use", tr("Use"), {"how": r.preprocess}]}
                for r in made
            ]  # fmt: skip
        self.table.layout.display = None

    def _use(self, how: str) -> None:
        self._step.session.prepare(how)
        if self._again is not None:
            self._again()
