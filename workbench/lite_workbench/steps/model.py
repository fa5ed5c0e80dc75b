"""Model: what is in the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lite_engine.errors import LiteError
from lite_messages import tr, trn
from lite_widgets import DataTable, DropZone, FactsCard, GraphView, NetronView, Tabbed, columns

from .. import views
from ..inputs import free_path, save_upload
from ..session import Session
from ..state.inside import FILE
from ._base import Step, button
from ._inside import InsidePanel

#: Larger files are not sent to the page for netron.
NETRON_BYTES = 48 << 20
NETRON_SUFFIXES = (".onnx", ".tflite", ".pdmodel", ".pb", ".caffemodel", ".prototxt")
SUFFIXES = ".onnx,.tflite,.pdmodel,.pb,.caffemodel,.nb,.lite"


class ModelStep(Step):
    """Inputs, outputs, sizes, and the graph as it is in the file. Dropping another model file
    saves it here and calls `opened(path)`."""

    name = "Model"
    title = tr("What is in the file?")

    def __init__(
        self,
        session: Session,
        *,
        opened: Callable[[Path], None] | None = None,
        go: Callable[[str], None] | None = None,
    ) -> None:
        self.opened = opened
        super().__init__(session, go=go)

    def build(self) -> None:
        info = self.session.info
        self.on(self.header, "next", lambda _: self.go("Check"))
        self.on(self.header, "extract", lambda _: self._extract())
        self.follow("selected", lambda _: self._offer())
        self._offer()
        facts = views.facts_data(info)
        if (folder := self.session.path.parent) != Path():
            facts["facts"].append([tr("Folder"), str(folder)])
        self.facts = FactsCard(**facts)
        self.drop = DropZone(label=tr("Drop or choose another model…"), accept=SUFFIXES)
        self.drop.on_file(lambda name, data: self.guard(lambda: self._arrived(name, data)))
        self.graph = GraphView(graph=views.graph_data(self.session.graph), height=470)
        self.netron = NetronView(name=self.session.path.name, height=420)
        self.structure = DataTable(**views.structure_data(self.session), height=420)
        self.inside = InsidePanel(self, lambda: (FILE,), open=False)
        tabs = {tr("Facts"): self.facts, tr("Structure"): self.structure,
                tr("Values"): self.inside.view, tr("File in Netron"): self.netron}  # fmt: skip
        self.tabs = Tabbed(tabs, height=470)
        self.tabs.bar.observe(
            lambda change: self.guard(lambda: self._tab_opened(change)), names=["current"]
        )
        self.link(self.graph, self.netron, self.inside.view)
        self.show(columns(self.graph, self.tabs, kind="graph"), self.drop)

    def _offer(self) -> None:
        """With layers selected, the part of the network that they are can become a file."""
        extract = [button("extract", tr("Extract as a model"))] if self.session.selected else []
        self.header.buttons = [*extract, button("next", tr("Check"), primary=True)]

    def _extract(self) -> None:
        """Writes it into the current folder, where no file has the name."""
        made = self.session.extract(free_path(f"{self.session.path.stem}-part.onnx"))
        count = len(self.session.selected)
        self.tell(
            "done",
            trn("**Wrote {n} layer**", "**Wrote {n} layers**", count),
            detail=tr("This part of the model was saved as {file}.", file=made.name),
            where=str(made),
        )

    def _tab_opened(self, change: dict[str, Any]) -> None:
        """The file goes to netron when somebody wants to see it."""
        self.inside.opened(change["new"] == tr("Values"))
        path = self.session.path
        if change["new"] != tr("File in Netron") or self.netron.model:
            return
        if path.suffix not in NETRON_SUFFIXES or path.stat().st_size > NETRON_BYTES:
            text = tr(
                "Netron opens {netron_suffixes} up to {netron_bytes} MB here.",
                netron_suffixes=", ".join(NETRON_SUFFIXES),
                netron_bytes=NETRON_BYTES >> 20,
            )
            self.netron.status = {
                "kind": "empty",
                "title": tr("Netron cannot open this file"),
                "text": text,
            }
            return
        self.netron.model = path.read_bytes()

    def _arrived(self, name: str, data: bytes) -> None:
        path = save_upload(name, data)
        if self.opened is not None:
            try:
                self.opened(path)
            except LiteError as error:
                self.tell_error(error)
