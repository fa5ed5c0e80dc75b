"""What the steps of a pipeline share: backends, and a file to run on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lite_engine.errors import UsageError
from lite_engine.images import is_image
from lite_engine.runtime import host_target, usability
from lite_messages import tr
from lite_widgets import DataTable, Form

from ..pipelines.session import PipelineSession
from ..steps._base import Step, button

#: Images beside the pipeline that are offered.
MOST_IMAGES = 30
_NONE = ""


class PipelineStep(Step):
    """What the steps share: backends, and a file to run on."""

    session: PipelineSession  # type: ignore[assignment]

    def __init__(
        self, session: PipelineSession, *, go: Callable[[str], None] | None = None
    ) -> None:
        super().__init__(session, go=go)  # type: ignore[arg-type]

    def backends(self) -> list[list[str]]:
        """[[value, text, dot]] of those that work here."""
        texts = {"opencl": "OpenCL"}
        usable = [b for b in (host_target(), "opencl", "reference") if usability(b).usable]
        return [[name, texts.get(name, name), name] for name in usable]

    def images(self) -> list[list[str]]:
        """Images and sounds beside the pipeline and in the working folder, what ran last first."""
        last = [self.session.image] if self.session.image else []
        hears = self.session.pipeline.hears
        for folder in {p.resolve(): p for p in (self.session.path.parent, Path())}.values():
            if folder.is_dir():
                last += [p for p in sorted(folder.iterdir())
                         if (p.suffix.lower() == ".wav" if hears else is_image(p))]  # fmt: skip
        seen = dict.fromkeys(last[:MOST_IMAGES])
        return [[str(p), p.name] for p in seen]

    def offer_images(self) -> None:
        """A select of images, and a form for another one."""
        self.form = Form(
            title=tr("Image or sound"), button=tr("Use"),
            fields=[{"name": "image", "label": tr("File"), "hint": "photo.jpg"}],
        )  # fmt: skip
        self.form.layout.display = "none"
        options = self.images()
        self.header.selects = [{"name": "image", "label": tr("Image"), "options": options}]
        first = options[0][0] if options else _NONE
        self.header.values = {"backend": self.backends()[0][0], "image": first}
        self.on(self.header, "other", lambda _: self._open_form(True))
        self.on(self.form, "close", lambda _: self._open_form(False))
        self.on(self.form, "submit", lambda payload: self._use(payload["values"]))

    def _open_form(self, opened: bool) -> None:
        self.form.layout.display = None if opened else "none"

    def _use(self, values: dict[str, str]) -> None:
        path = Path(values["image"]).expanduser()
        if not path.is_file():
            self.form.values, self.form.errors = values, {"image": tr("no such file or folder")}
            return
        self.form.errors = {}
        self.session.image = path
        self.header.selects = [{"name": "image", "label": tr("Image"), "options": self.images()}]
        self.header.values = {**self.header.values, "image": str(path)}
        self._open_form(False)

    @property
    def image(self) -> str:
        """Raises UsageError."""
        chosen = str(self.header.values.get("image") or "")
        if not chosen:
            raise UsageError(tr("no image is chosen"), fix=tr("choose one with Other file…, above"))
        return chosen

    def buttons(self, what: str) -> None:
        self.header.buttons = [
            button("other", tr("Other file…")),
            button("run", what, primary=True, why_not=self.waits),
        ]

    @staticmethod
    def set(table: DataTable, traits: dict[str, Any]) -> None:
        with table.hold_sync():
            table.status = {}
            for name, value in traits.items():
                setattr(table, name, value)
