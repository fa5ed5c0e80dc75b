"""DropZone: a file dropped or chosen in the page arrives in Python, in pieces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import traitlets as t
from lite_messages import tr

from .._base import Binary, LiteWidget

_MOST_BYTES = 1 << 30


class DropZone(LiteWidget):
    """A place to drop a file, or to choose one; also lists files to pick.

    label, accept   text of the button, and ".onnx,.tflite" or "image/*".
    choices         [[value, text]] of files that are already there; picking one sets `picked`.
    preview         show a dropped picture.

    `on_file(callback)` is called with (name, bytes) when a file has arrived whole. Files travel in
    pieces of 3 MB, because a Jupyter server drops messages above 10 MB: the page sets `piece`
    ({"name", "size", "offset", "seq"}) and `data`, Python answers with `received`.
    """

    label = t.Unicode(tr("Drop or choose a file…"))
    accept = t.Unicode("")
    choices = t.List(t.List(t.Unicode()))
    picked = t.Unicode("")
    preview = t.Bool(False)
    piece = t.Dict()
    data = Binary()
    received = t.Dict()

    def __init__(self, **kwargs: Any) -> None:
        self._parts: list[bytes] = []
        self._listeners: list[Callable[[str, bytes], None]] = []
        super().__init__(**kwargs)
        self.observe(self._take, names=["piece"])

    def on_file(self, callback: Callable[[str, bytes], None]) -> None:
        """Call ``callback(name, content)`` for each file that arrives whole."""
        self._listeners.append(callback)

    def _take(self, change: dict[str, Any]) -> None:
        piece, data = change["new"], self.data
        if not piece:
            return
        size, offset = int(piece.get("size", -1)), int(piece.get("offset", -1))
        if offset == 0:
            self._parts = []
        have = sum(map(len, self._parts))
        if not 0 <= size <= _MOST_BYTES or offset != have or have + len(data) > size:
            self._parts = []
            self.received = {
                "seq": piece.get("seq"),
                "error": tr("the upload was interrupted; try again"),
            }
            return
        self._parts.append(data)
        have += len(data)
        self.received = {"seq": piece.get("seq"), "offset": have}
        if have == size:
            content, self._parts = b"".join(self._parts), []
            for listener in self._listeners:
                listener(str(piece.get("name", "file")), content)

    def static_html(self) -> str:
        """Return nothing: there is nobody to drop a file to."""
        return ""
