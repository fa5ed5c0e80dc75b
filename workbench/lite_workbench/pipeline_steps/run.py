"""The Run step of a pipeline: one image, or frames as a stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lite_messages import tr
from lite_widgets import DataTable, Form, ResultCard, Stages

from ..pipelines.tables import answer_items, cards, rates_table, stage_table, table_traits
from ..steps._base import button
from ._step import PipelineStep

MOST_FPS = 1000


class RunStep(PipelineStep):
    """The answer about an image; beneath it, while frames run and after them, what a stream did."""

    name = "Run"
    title = tr("What does it predict for an image?")

    def build(self) -> None:
        self.offer_images()
        self.header.segments = {
            "name": "backend", "label": tr("Backend"), "options": self.backends(),
        }  # fmt: skip
        self.frames = Form(
            title=tr("Stream"), button=tr("Run as a stream"),
            fields=[
                {"name": "frames", "label": tr("Folder of images or Motion-JPEG file"),
                 "hint": "frames/"},
                {"name": "fps", "label": tr("Frames per second, as a camera sends them"),
                 "hint": "30", "optional": True},
            ],
            note=tr("Without a rate every frame is answered; with one the newest wins and late "
                    "ones are dropped."),
        )  # fmt: skip
        self.frames.layout.display = "none"
        self.rates, self.shares, self.frame = DataTable(), DataTable(), ResultCard()
        self.stages, self.times = Stages(title=tr("Stages"), cancellable=False), DataTable()
        self.card = ResultCard()
        self.on(self.header, "run", lambda _: self._run())
        self.on(self.header, "stream", lambda _: self._open_frames(True))
        self.on(self.frames, "close", lambda _: self._open_frames(False))
        self.on(self.frames, "submit", lambda payload: self._stream(payload["values"]))
        self.follow("run", lambda _: self._fill())
        self.follow("stream", lambda _: self._fill_stream())
        self.follow("versions", lambda _: self._fill())
        self.show(self.form, self.frames, self.rates, self.shares, self.frame, self.stages,
                  self.card, self.times)  # fmt: skip
        self._fill()
        self._fill_stream()

    def jobs_changed(self) -> None:
        self.buttons(tr("Run"))

    def buttons(self, what: str) -> None:
        super().buttons(what)
        other, run = self.header.buttons
        stream = button("stream", tr("Run as a stream…"), why_not=self.waits)
        self.header.buttons = [other, stream, run]

    def _run(self) -> None:
        session, image, backend = self.session, self.image, str(self.header.values["backend"])
        self.start(tr("Running {sample}", sample=Path(image).name),
                   lambda: session.run(image, backend))  # fmt: skip

    def _open_frames(self, opened: bool) -> None:
        self.frames.layout.display = None if opened else "none"

    def _stream(self, values: dict[str, str]) -> None:
        self.frames.values = values
        path, given = Path(values["frames"]).expanduser(), values.get("fps", "").strip()
        errors = {} if path.exists() else {"frames": tr("no such file or folder")}
        try:
            fps = float(given) if given else None
        except ValueError:
            errors["fps"] = tr("not a number")
        else:
            if fps is not None and not 0 < fps <= MOST_FPS:
                errors["fps"] = tr("must be above 0 and at most {most}", most=MOST_FPS)
        self.frames.errors = errors
        if errors:
            return
        session, backend = self.session, str(self.header.values["backend"])
        self.start(tr("Streaming {source}", source=path.name),
                   lambda: session.stream(str(path), backend, fps))  # fmt: skip
        self._open_frames(False)

    def _fill(self) -> None:
        session = self.session
        self.stages.stages = cards(session.pipeline)
        for widget in (self.card, self.times):
            widget.layout.display = None if session.answers else "none"
        self.buttons(tr("Run"))
        if not session.answers:
            return
        backend, last = next(reversed(session.answers.items()))
        self._show_answer(self.card, session.pipeline.name, backend, last["answers"], session.drawn)
        self.set(self.times, table_traits(tr("Stages"), *stage_table(last["times"])))

    def _fill_stream(self) -> None:
        made = self.session.streamed
        for widget in (self.rates, self.shares, self.frame):
            widget.layout.display = None if made else "none"
        if made is None:
            return
        self.set(self.rates, {**table_traits(made.headline, *rates_table(made)),
                              "note": made.note})  # fmt: skip
        self.set(self.shares, table_traits(tr("Stages, mean of the frames"),
                                           *stage_table(made.times)))  # fmt: skip
        answers = made.answer["answers"] if made.answer else {}
        title = tr("Frame {number} of {source}", number=made.number, source=made.source)
        self._show_answer(self.frame, title, made.backend, answers, made.drawn)

    @staticmethod
    def _show_answer(
        card: ResultCard, title: str, backend: str, answers: dict[str, Any], drawn: bytes
    ) -> None:
        with card.hold_sync():
            card.kind, card.title, card.backend = "values", title, backend
            card.items = answer_items(answers)
            card.image = drawn
            card.status = {}
