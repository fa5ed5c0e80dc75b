"""TensorView: what is in a tensor, channel by channel; two sides and their difference."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np
import traitlets as t
from lite_messages import tr

from .._base import Binary, LiteWidget, Plain
from .._svg import SOFT, Picture, ramp, tail
from .detail import BROKEN, LEVELS, tensor_views

_WIDTH, _GAP = 640, 2


class TensorView(LiteWidget):
    """A thumbnail per channel, the figures and the histogram of a tensor.

    tensor   {"name", "layer", "note", "views": what `tensor_views` returns, one per side and then
             the difference}
    tiles    one byte per value of the thumbnails of all views, in their order: 0…254 from `lows`
             to `highs` of the channel, 255 what is not finite
    tensors  [[name, text]]: what else the layer has; `chosen` is set by the choice of one
    shown    the view on show, by its place
    channel  the one shown large
    colours  "shared": one scale for all channels; "own": each from its lowest to its highest

    `show(arrays, role)` fills tensor and tiles.
    """

    tensor = Plain(need=("name", "views"))
    tiles = Binary()
    tensors: t.List[Any] = t.List()
    chosen = t.Unicode("")
    shown = t.Int(0)
    channel = t.Int(0)
    colours = t.Enum(["shared", "own"], "shared")

    def show(self, name: str, arrays: Any, role: str = "activation", **more: Any) -> None:
        """Show side → array (`tensor_views`); `more` are keys of `tensor`."""
        views, tiles = tensor_views(arrays, role)
        with self.hold_sync():
            self.shown = min(self.shown, len(views) - 1)
            self.channel = min(self.channel, max(len(views[0]["lows"]) - 1, 0))
            self.set_trait("tensor", None)  # never these bytes with another tensor's sizes
            self.tiles = tiles
            self.tensor = {"name": name, **more, "views": views}

    def static_svg(self) -> str | None:
        """Return the thumbnails of the view on show."""
        if not self.tensor:
            return None
        views = self.tensor["views"]
        view = views[self.shown]
        count, (h, w) = len(view["lows"]), view["tile"]
        if not count or not h or not w:
            return None
        start = sum(len(v["lows"]) * v["tile"][0] * v["tile"][1] for v in views[: self.shown])
        values = np.frombuffer(self.tiles, np.uint8)[start : start + count * h * w]
        columns = max(1, min(count, _WIDTH // (w + _GAP)))
        rows = -(-count // columns)
        colour = _palette(view)
        sheet = np.full((rows * (h + _GAP), columns * (w + _GAP), 3), 255, np.uint8)
        for i, tile in enumerate(values.reshape(count, h, w)):
            y, x = i // columns * (h + _GAP), i % columns * (w + _GAP)
            sheet[y : y + h, x : x + w] = colour(tile, view["lows"][i], view["highs"][i])
        scale = _WIDTH / sheet.shape[1]
        high = max(24, min(480, round(sheet.shape[0] * scale)))
        title = " · ".join(
            [tail(self.tensor["name"], 40), view["name"], "×".join(map(str, view["shape"]))]
        )
        picture = Picture(_WIDTH + 8, high + 40, title)
        picture.text(0, 14, title, size=12, bold=True)
        picture.image(0, 22, _WIDTH, high, _png(sheet))
        picture.text(0, high + 36, figures(view), fill=SOFT)
        return str(picture)


def figures(view: dict[str, Any]) -> str:
    """Range, mean and standard deviation in a line."""
    if view["mean"] is None:
        return tr("no finite values")
    return tr("{low:.4g} … {high:.4g}, mean {mean:.4g}, standard deviation {std:.4g}",
              low=view["low"], high=view["high"], mean=view["mean"], std=view["std"])  # fmt: skip


def _palette(view: dict[str, Any]) -> Any:
    """(tile, low, high of its channel) → RGB on the tensor's own scale, as the page draws it."""
    low, high = view["scale"]
    signed = low < 0 < high
    most = max(-low, high)
    stops = [
        tuple(bytes.fromhex(ramp("change" if signed else "rate", i / 255)[1:])) for i in range(256)
    ]
    table = np.array(stops, np.uint8)

    def colour(tile: np.ndarray, least: float, greatest: float) -> np.ndarray:
        value = least + (greatest - least) * tile.astype(np.float64) / LEVELS
        part = (value + most) / (2 * most) if signed else (value - low) / ((high - low) or 1)
        out: np.ndarray = table[np.clip(part * 255, 0, 255).astype(int)]
        out[tile == BROKEN] = 0 if view["not_finite"] else 255
        return out

    return colour


def _png(pixels: np.ndarray) -> str:
    """(H,W,3) uint8 as a data address. Format: W3C, Portable Network Graphics, 3rd edition."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    height, width = pixels.shape[:2]
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    lines = np.pad(pixels.reshape(height, -1), ((0, 0), (1, 0))).tobytes()  # filter 0 per row
    data = (
        b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")
    )
    return "data:image/png;base64," + base64.b64encode(data).decode()
