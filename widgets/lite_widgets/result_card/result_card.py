"""ResultCard: what a model answered on one backend."""

from __future__ import annotations

import base64
from typing import Any

import traitlets as t
from lite_messages import tr

from .._base import Binary, LiteWidget, PlainList
from .._svg import table


class ResultCard(LiteWidget):
    """The answer of one run: characters, classes, boxes on the picture, or plain outputs.

    backend, title, note, aside   of the header ("fp32 · 5.99 ms", "mean confidence 0.98").
    kind     "text": items are characters in order; "top": classes, best first;
             "boxes": rectangles on `image`, dashed where "bad" (the other side lacks it);
             "values": one row per output.
    items    text/top: [{"label", "score", "bad"}]; boxes: the same with "box": [x0, y0, x1, y1]
             in 0…1; values: [{"label", "shape": "1×21×65×65", "text"}]
    image    PNG or JPEG bytes, shown above the answer.
    """

    backend = t.Unicode("x86")
    title = t.Unicode("")
    note = t.Unicode("")
    aside = t.Unicode("")
    kind = t.Enum(["text", "top", "boxes", "values"], "top")
    items = PlainList(need=("label",))
    image = Binary()

    def static_html(self) -> str:
        """Return picture and answer."""
        if said := self._static_status():
            return said
        rows = [[item["label"], _answer(item)] for item in self.items]
        rows = rows or [[tr("Nothing was recognized."), ""]]
        picture = ""
        if self.image:
            kind = "png" if self.image[:4] == b"\x89PNG" else "jpeg"
            source = f"data:image/{kind};base64,{base64.b64encode(self.image).decode()}"
            picture = f'<img alt="input" style="max-width:420px" src="{source}">'
        head = [self.title or self.backend, self.note]
        return picture + table(head, rows) + self._static_caption()


def _answer(item: dict[str, Any]) -> str:
    score = item.get("score")
    return item.get("text") or ("" if score is None else f"{score:.3f}")
