"""Where the file does not say how images become numbers: what each usual preprocessing answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lite_messages import tr
from lite_widgets import DataTable, Notice

from ..inputs import is_guessed, is_picture
from ..recipes import RecipeAnswer, recipe_answers
from ._base import stack
from ._picture import choices

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._base import Step

GUESSED = tr(
    "the model does not define its image preprocessing: pixels were scaled to "
    "0…1; change it with Pixels above, or with session.prepare"
)
UNKNOWN = tr("**The file does not say how images become numbers.**")
CHOOSE = tr(
    "Pixels are scaled to 0…1. If the model was trained with another preprocessing, its results "
    "are wrong: choose it with Pixels above."
)


class RecipesPanel:
    """What a step says of an unknown preprocessing, before it answers: a notice, and a table of one
    image prepared in each way; a click keeps one in every version, and calls `again`.

    `image()` is what the step would run now: with it, the notice offers the table.
    """

    def __init__(
        self,
        step: Step,
        again: Callable[[], object] | None = None,
        image: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._step, self._again, self._image = step, again, image
        self.notice = Notice(kind="warn", what=UNKNOWN, detail=CHOOSE)
        self.table = DataTable(title=tr("With each usual preprocessing"), note=GUESSED)
        self.view = stack(self.notice, self.table)
        self.table.layout.display = "none"
        step.on(self.table, "use", lambda payload: self._use(payload["how"]))
        step.on(self.notice, "recipes", lambda _: self._offer())
        step.follow("prepared", lambda _: self.refresh())
        self.refresh()

    def _offer(self) -> None:
        image = self._image()
        if image is not None:
            self._step.start(tr("Comparing preprocessings"), lambda: self.look(image))

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
        """The notice while nothing is known and nothing shown; nothing once there is no choice."""
        session = self._step.session
        unknown = bool(choices(session)) and is_guessed(session.model)
        if not unknown:
            self.table.layout.display = "none"
        listed = self.table.layout.display is None
        self.notice.layout.display = None if unknown and not listed else "none"
        offer = [["recipes", tr("Compare preprocessings"), False]] if self._image() else []
        if self.notice.actions != offer:
            self.notice.actions = offer

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
        self.refresh()

    def _use(self, how: str) -> None:
        self._step.session.prepare(how)
        if self._again is not None:
            self._again()
