"""Model: what is in the file."""

from __future__ import annotations

from typing import Any

from lite_widgets import DropZone, FactsCard, GraphView, columns

from .. import views
from ..inputs import save_upload
from ._base import Step, button

SUFFIXES = ".onnx,.tflite,.pdmodel,.pb,.caffemodel,.nb,.lite"


class ModelStep(Step):
    """Inputs, outputs, sizes, and the graph as it is in the file. Dropping another model file
    saves it here and calls `opened(path)`."""

    name = "Model"
    title = "What is in the file?"

    def __init__(self, session: Any, *, opened: Any = None, **kwargs: Any) -> None:
        self.opened = opened
        super().__init__(session, **kwargs)

    def build(self) -> None:
        info = self.session.info
        self.header.buttons = [button("next", "Check", primary=True)]
        self.on(self.header, "next", lambda _: self.go("Check"))
        ports = [[f"Input {p['name']}", f"{p['dtype']} {p['text']}"] for p in info.inputs]
        ports += [[f"Output {p['name']}", f"{p['dtype']} {p['text']}"] for p in info.outputs]
        self.facts = FactsCard(
            title=info.name,
            big=[
                ["layers", str(len(info.layers)), "", "as in the file"],
                ["parameters", *_split(views.number(info.params)), ""],
                ["work", *_split(views.number(info.macs or 0)), "multiply-adds"],
            ],
            facts=[["Format", info.format], *ports, ["Folder", str(self.session.path.parent)]],
        )
        self.drop = DropZone(label="Drop or choose another model…", accept=SUFFIXES)
        self.drop.on_file(lambda name, data: self.guard(lambda: self._arrived(name, data)))
        self.graph = GraphView(graph=views.graph_data(self.session.graph), height=420)
        self.link(self.graph)
        self.show(columns(self.graph, self.facts, kind="graph"), self.drop)

    def _arrived(self, name: str, data: bytes) -> None:
        path = save_upload(name, data)
        if self.opened is not None:
            self.opened(path)


def _split(text: str) -> list[str]:
    value, _, unit = text.partition(" ")
    return [value, unit]
