"""Where the file does not say how images become numbers: what each usual preprocessing answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lite_messages import tr
from lite_widgets import DataTable, Notice

from ..first_look import first_look
from ..inputs import is_guessed
from ._base import stack
from ._picture import choices, chosen

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..recipes import RecipeAnswer
    from ._base import Step

GUESSED = tr(
    "the model does not define its image preprocessing: pixels were scaled to "
    "0…1; change it with Pixels above, or with session.prepare"
)
UNKNOWN = tr("**The file does not define its image preprocessing.**")
CHOOSE = tr(
    "Pixels are scaled to 0…1. If the model was trained with another preprocessing, its results "
    "are wrong: choose it with Pixels above."
)
#: In steps without that choice.
COMPARE = tr(
    "Pixels are scaled to 0…1. If the model was trained with another preprocessing, its results "
    "are wrong: compare preprocessings, and use the one that gives the right answer."
)


class RecipesPanel:
    """What a step says of an unknown preprocessing, before it answers: a notice, and a table of one
    image prepared in each way; a click keeps one in every version, and calls `again`.

    `image()` is what the step would run now: with it, the notice offers the table. A step with
    `only_images` says nothing while there is none.
    """

    def __init__(
        self,
        step: Step,
        again: Callable[[], object] | None = None,
        image: Callable[[], Any] = lambda: None,
        *,
        detail: str = CHOOSE,
        only_images: bool = False,
    ) -> None:
        self._step, self._again, self._image = step, again, image
        self._only_images = only_images
        self.notice = Notice(kind="warn", what=UNKNOWN, detail=detail)
        self.table = DataTable(title=tr("With each usual preprocessing"), note=GUESSED)
        self.view = stack(self.notice, self.table)
        self.table.layout.display = "none"
        step.on(self.table, "use", lambda payload: self._use(payload["how"]))
        step.on(self.notice, "recipes", lambda _: self._offer())
        step.follow("prepared", lambda _: self.refresh())
        self.refresh()

    def _offer(self) -> None:
        image, step = self._image(), self._step

        def work() -> None:
            if not self.look(image):
                step.on_main(lambda: step.tell("warn", tr("there is no image that can be read")))

        step.start(tr("Comparing preprocessings"), work)

    def look(
        self, source: Any, backend: str = "auto", images: str | Path | None = None
    ) -> bool:  # fmt: skip
        """Runs an image, or the first one of a folder or data set, in each way, in the work of a
        job. False for anything else, and for a model that says how: they need no table."""
        session = self._step.session
        if source is None or not is_guessed(session.model):
            return False
        used = session.predictor(backend)
        made = first_look(used.model, source, images=images, predictor=used)
        if made is not None:
            self._step.on_main(lambda: self._list(made.recipes))
        return made is not None

    def refresh(self) -> None:
        """The notice while nothing is known and nothing shown; nothing once there is no choice."""
        session = self._step.session
        image = self._image()
        unknown = bool(choices(session)) and is_guessed(session.model)
        unknown = unknown and not (self._only_images and image is None)
        if not unknown:
            self.table.layout.display = "none"
        listed = self.table.layout.display is None
        self.notice.layout.display = None if unknown and not listed else "none"
        something = listed or self.notice.layout.display is None
        self.view.layout.display = None if something else "none"
        offer = [["recipes", tr("Compare preprocessings"), False]] if image is not None else []
        if self.notice.actions != offer:
            self.notice.actions = offer

    def _list(self, made: list[RecipeAnswer]) -> None:
        heads = {"meaning": tr("Pixels"), "text": tr("result"), "score": tr("score"), "why": "",
                 "use": ""}  # fmt: skip
        likely, keep = tr("the file suggests it"), tr("Keep")  # keeping it is choosing it, too
        now = chosen(self._step.session)["pixels"]
        with self.table.hold_sync():
            self.table.columns = [
                {"id": i, "head": head, "kind": "action" if i == "use" else "text"}
                for i, head in heads.items()
            ]
            self.table.rows = [
                {"meaning": r.meaning, "text": r.text, "why": likely if r.likely else "",
                 "score": "" if r.score is None else f"{r.score:.3f}",
                 "use": ["use", keep if r.preprocess == now else tr("Use"), {"how": r.preprocess}]}
                for r in made
            ]  # fmt: skip
        self.table.layout.display = None
        self.refresh()

    def _use(self, how: str) -> None:
        self._step.session.prepare(how)
        if self._again is not None:
            self._again()
