"""Images → model inputs, by the few numbers that travel with a model.

`{"mean": [..], "std": [..], "colour": "rgb|bgr|grey", "layout": "nchw|nhwc", "size": [h, w]}`:
resize (bilinear), reorder the channels, x = (pixel − mean) / std with pixels in 0..255. Layout and
size that are not given are the input's own. Short forms: `imagenet`, `pm1,bgr`,
`mean=104/117/123,bgr`, `mean=127,std=128,size=240x320`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .errors import ShapeError, UsageError

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".ppm", ".pgm")
COLOURS = ("rgb", "bgr", "grey")
#: short names: what most models were trained with
PRESETS: dict[str, dict[str, Any]] = {
    "imagenet": {"mean": (123.675, 116.28, 103.53), "std": (58.395, 57.12, 57.375)},
    "pm1": {"mean": (127.5,), "std": (127.5,)},  # −1 … 1
    "unit": {"mean": (0.0,), "std": (255.0,)},  # 0 … 1
    "raw": {"mean": (0.0,), "std": (1.0,)},  # 0 … 255
}


@dataclass(frozen=True)
class Preprocess:
    """One image input. `size` is (height, width); None keeps the image's own. `layout` None is
    nchw until `fitted` to an input."""

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    colour: str = "rgb"
    layout: str | None = None
    size: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.colour not in COLOURS:
            raise UsageError(f"colour {self.colour!r} is not one of {', '.join(COLOURS)}")
        if self.layout not in (None, "nchw", "nhwc"):
            raise UsageError(f"layout {self.layout!r} is not nchw or nhwc")
        if any(s == 0 for s in self.std):
            raise UsageError("std has a zero")

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Preprocess:
        """Raises UsageError for an unknown key or a wrong value."""
        unknown = set(data) - {"mean", "std", "colour", "layout", "size"}
        if unknown:
            raise UsageError(f"preprocess has no {sorted(unknown)[0]!r}")
        values: dict[str, Any] = dict(data)
        for key in ("mean", "std"):
            if key in values:
                values[key] = tuple(float(v) for v in np.atleast_1d(values[key]))
        if values.get("size") is not None:
            height, width = values["size"]
            values["size"] = (int(height), int(width))
        return Preprocess(**values)

    @staticmethod
    def parse(text: str) -> Preprocess:
        """JSON, or the short form. Raises UsageError."""
        try:
            if text.lstrip().startswith("{"):
                return Preprocess.from_dict(json.loads(text))
            return Preprocess.from_dict(_short(text))
        except (TypeError, ValueError) as error:
            raise UsageError(
                f"pre-processing {text!r} is neither JSON nor like imagenet, pm1,bgr or "
                f"mean=127,std=128,size=240x320 ({error})"
            ) from None

    def fitted(self, shape: Sequence[Any]) -> Preprocess:
        """With the layout and size of an input where none is given. Raises ShapeError."""
        if self.layout is not None and self.size is not None:
            return self
        auto = guess(shape)
        return replace(self, layout=self.layout or auto.layout, size=self.size or auto.size)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def apply(self, image: str | Path | np.ndarray) -> np.ndarray:
        """An image file or (H,W,C) uint8 RGB array → float32 with a batch axis of 1."""
        pixels = self.pixels(image).astype(np.float32)
        x = (pixels - np.array(self.mean, np.float32)) / np.array(self.std, np.float32)
        x = x if self.layout == "nhwc" else x.transpose(2, 0, 1)
        return np.ascontiguousarray(x[None], np.float32)

    def pixels(self, image: str | Path | np.ndarray) -> np.ndarray:
        """(H,W,C) uint8 in the model's size and channel order."""
        from PIL import Image

        picture = Image.fromarray(image) if isinstance(image, np.ndarray) else open_image(image)
        picture = picture.convert("L" if self.colour == "grey" else "RGB")
        if self.size is not None and picture.size != (self.size[1], self.size[0]):
            picture = picture.resize((self.size[1], self.size[0]), Image.Resampling.BILINEAR)
        array = np.asarray(picture)
        array = array[..., None] if array.ndim == 2 else array
        return array[..., ::-1] if self.colour == "bgr" else array


def _short(text: str) -> dict[str, Any]:
    """`NAME[,colour][,key=value…]`; numbers of a list are separated by slashes."""
    out: dict[str, Any] = {}
    for word in (w.strip() for w in text.split(",") if w.strip()):
        key, sign, value = word.partition("=")
        if word in PRESETS:
            out.update(PRESETS[word])
        elif word in COLOURS:
            out["colour"] = word
        elif word in ("nchw", "nhwc"):
            out["layout"] = word
        elif sign and key in ("mean", "std"):
            out[key] = [float(v) for v in value.split("/")]
        elif sign and key == "size":
            out["size"] = [int(v) for v in value.split("x")]
        else:
            known = ", ".join([*PRESETS, *COLOURS, "mean=", "std=", "size="])
            raise UsageError(f"pre-processing {word!r} is not one of {known}")
    return out


def open_image(source: str | Path | bytes, name: str = "") -> Any:
    """A PIL image of a file, or of a file's bytes. Raises UsageError, naming the file (or `name`),
    when it is not an image."""
    import io

    from PIL import Image, UnidentifiedImageError

    data = io.BytesIO(source) if isinstance(source, bytes) else source
    try:
        picture = Image.open(data)
        picture.load()
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        given = name or ("these bytes" if isinstance(source, bytes) else source)
        # PIL's own words for it name the object that it read
        known = isinstance(error, UnidentifiedImageError)
        why = "of no known kind, or damaged" if known else error
        raise UsageError(f"{given}: not an image that can be read ({why})") from None
    return picture


def is_image(path: str | Path) -> bool:
    return Path(path).suffix.lower() in IMAGE_SUFFIXES


def guess(shape: Sequence[Any]) -> Preprocess:
    """Size, layout and colour from an input shape; pixels scaled to 0..1. Raises ShapeError."""
    if len(shape) != 4:
        raise ShapeError(f"an input of rank {len(shape)} is not an image; give a .npy file")
    nchw = shape[1] in (1, 3) and shape[3] not in (1, 3)
    height, width, channels = (*shape[2:], shape[1]) if nchw else (*shape[1:3], shape[3])
    if channels not in (1, 3):
        raise ShapeError(f"an input with {channels} channels is not an image; give a .npy file")
    size = (height, width) if isinstance(height, int) and isinstance(width, int) else None
    return Preprocess(
        (0.0,), (255.0,), "rgb" if channels == 3 else "grey", "nchw" if nchw else "nhwc", size
    )
