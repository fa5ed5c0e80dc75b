"""NetronView: netron inside the notebook, coloured and linked to the other views."""

from __future__ import annotations

import traitlets as t
from lite_messages import tr

from .._base import Binary, LiteWidget
from .._svg import table


class NetronView(LiteWidget):
    """The original file as netron draws it; selection goes both ways.

    model    bytes of the file; name its file name (netron chooses the reader by it).
    sources  {layer: [names of nodes in the file]}: `selected` are layers; without an entry a
             layer's own name is looked for.
    colours  {node name: "#rrggbb"}: latency or error, made by whoever knows.
    nodes    how many nodes netron found; set by the page.

    Needs the server extension (``jupyter server extension enable
    lite_widgets.netron_view.extension``); where it is missing the view says so, with the fix.
    """

    model = Binary()
    name = t.Unicode("model.onnx")
    sources = t.Dict()
    colours = t.Dict()
    nodes = t.Int(0)
    height = t.Int(480)

    def static_html(self) -> str:
        """Return the name and size of an open file: netron cannot run without a server."""
        if not self.model:
            return ""
        facts = [[tr("Nodes"), self.nodes]] if self.nodes else []
        return (
            table([self.name, tr("{size} bytes", size=len(self.model))], facts)
            + self._static_caption()
        )
