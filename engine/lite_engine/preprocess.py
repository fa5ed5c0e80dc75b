"""Images → model inputs, by the few numbers that travel with a model.

`{"mean": [..], "std": [..], "colour": "rgb|bgr|grey", "layout": "nchw|nhwc", "size": [h, w],
"fit": "stretch|crop|letterbox", "crop": 0.875, "pad": 114}`: resize (bilinear), cut or pad to the
size, reorder the channels, x = (pixel − mean) / std with pixels in 0..255. What is not said is the
input's own; numbers that are not said scale pixels to 0..1. Short forms: `imagenet,crop`,
`pm1,bgr`, `mean=104/117/123,bgr`, `unit,letterbox`, `mean=127,std=128,size=240x320`.

How a picture of another shape meets the size, all sides in whole pixels:
stretch    both sides become the size.
crop       the picture is resized to cover size / crop (floored), its longer side floored, and the
           centre cut out: torchvision's Resize(256) and CenterCrop(224) are 224/256 = 0.875, which
           timm calls crop_pct.
height     a line of text: the height is met, the width follows (rounded up) as far as the size's,
           and what is left of it on the right is zero after the normalisation (PaddleOCR).
letterbox  the picture is resized to lie within the size (rounded) and centred on grey of value
           `pad`; of an odd number of padded rows or columns the first side has the smaller half
           (Ultralytics' LetterBox).
"""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from lite_messages import tr

from .errors import ShapeError, UsageError
from .images import open_image
from .preprocess_fields import READ, not_valid

COLOURS = ("rgb", "bgr", "grey")
LAYOUTS = ("nchw", "nhwc")
FITS = ("stretch", "crop", "letterbox", "height")
#: short names: what most models were trained with
PRESETS: dict[str, dict[str, Any]] = {
    "imagenet": {"mean": (123.675, 116.28, 103.53), "std": (58.395, 57.12, 57.375)},
    "pm1": {"mean": (127.5,), "std": (127.5,)},  # −1 … 1
    "unit": {"mean": (0.0,), "std": (255.0,)},  # 0 … 1
    "raw": {"mean": (0.0,), "std": (1.0,)},  # 0 … 255
}
#: 224 of 256, what most classifiers of ImageNet were tested with
USUAL_CROP = 0.875
#: Ultralytics' grey
USUAL_PAD = 114
#: a share below this cuts out a spot; it is rather a number of pixels, or damage
LEAST_CROP = 0.1
#: of an input, and of a picture before the cut: what a sane model stays far below
MAX_PIXELS = 1 << 26
#: magnitude of a mean; that of a std lies between its inverse and it
MAX_NUMBER = 1e6
#: a word on these leaves the model's own numbers and colour as they are
_GEOMETRY = {"layout", "size", "fit", "crop", "pad"}


class Placement(NamedTuple):
    """Where a picture lies in an input of `size`: resized to `scaled`, its corner at `offset`,
    which is negative where it was cut. All are (x, y) in the input's pixels."""

    size: tuple[int, int]
    scaled: tuple[int, int]
    offset: tuple[int, int]

    @property
    def whole(self) -> bool:
        """Is all of the picture in the input?"""
        return min(self.offset) >= 0

    def to_picture(self, boxes: Any) -> np.ndarray:
        """(…,4) boxes x0, y0, x1, y1 in parts of the input → in parts of the picture, 0…1."""
        at = np.asarray(boxes, np.float64) * (self.size * 2)
        return np.clip((at - self.offset * 2) / (self.scaled * 2), 0, 1)

    def part_of(self, grid: np.ndarray) -> np.ndarray:
        """What lies over the picture, not its padding, of (H,W) that spans the input."""
        cuts = []
        for axis, length in zip((1, 0), grid.shape, strict=True):
            whole, start = self.size[axis], max(self.offset[axis], 0)
            end = min(self.offset[axis] + self.scaled[axis], whole)
            low = min(round(start * length / whole), length - 1)
            cuts.append(slice(low, max(round(end * length / whole), low + 1)))
        return grid[tuple(cuts)]


@dataclass(frozen=True)
class Preprocess:
    """One image input. None is not said, until `fitted` to an input; `mean` and `std` may stay so.

    mean, std  one number, or one per channel, in the channels' order. None: pixels become 0…1.
    colour, layout, size   as COLOURS, LAYOUTS, (height, width). A picture of an input whose size
               is not known keeps its own.
    fit        as FITS; `crop` is the share that is cut out, `pad` the value of the padding.
    """

    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    colour: str | None = None
    layout: str | None = None
    size: tuple[int, int] | None = None
    fit: str = "stretch"
    crop: float = USUAL_CROP
    pad: int = USUAL_PAD

    def __post_init__(self) -> None:
        for name, known in (("colour", COLOURS), ("layout", LAYOUTS), ("fit", FITS)):
            value = getattr(self, name)
            if value not in known and (value is not None or name == "fit"):
                raise not_valid(name, value, tr("one of {known}", known=", ".join(known)))
        counts = {None: (1, 3), "grey": (1,)}.get(self.colour, (1, 3))
        for name, least in (("mean", 0.0), ("std", 1 / MAX_NUMBER)):
            numbers = getattr(self, name)
            if numbers is None:
                continue
            if not all(least <= abs(v) <= MAX_NUMBER for v in numbers):  # nor for NaN
                raise not_valid(
                    name,
                    numbers,
                    tr(
                        "numbers of magnitude {least:g} to {max_number:g}",
                        least=least,
                        max_number=MAX_NUMBER,
                    ),
                )
            if len(numbers) not in counts:
                raise not_valid(
                    name, numbers, tr("one number") + tr(", or one per channel") * (len(counts) > 1)
                )
        if self.size is not None:
            height, width = self.size
            if min(height, width) < 1 or height * width > MAX_PIXELS:
                raise not_valid(
                    "size",
                    self.size,
                    tr("height and width of 1 to {max_pixels} pixels", max_pixels=MAX_PIXELS),
                )
        if not LEAST_CROP <= self.crop <= 1:
            raise not_valid(
                "crop",
                self.crop,
                tr("a share of {least_crop:g} to 1, like 224/256", least_crop=LEAST_CROP),
            )
        if not 0 <= self.pad <= 255:
            raise not_valid("pad", self.pad, tr("a pixel of 0 to 255"))

    @staticmethod
    def from_dict(data: Any) -> Preprocess:
        """`crop` and `pad` say their fit. Raises UsageError for an unknown key or a wrong value,
        whatever it is: `data` may be of a model file."""
        if not isinstance(data, Mapping):
            raise UsageError(
                tr(
                    "preprocessing {data} is not a mapping of {read}",
                    data=reprlib.repr(data),
                    read=", ".join(READ),
                )
            )
        values: dict[str, Any] = {}
        for key, value in data.items():
            if key not in READ:
                raise UsageError(
                    tr("preprocessing has no {key}", key=reprlib.repr(key)),
                    fix=tr("it has {read}", read=", ".join(READ)),
                )
            if value is None:
                continue
            read, wanted = READ[key]
            try:
                values[key] = read(value)
            except (TypeError, ValueError, OverflowError):
                raise not_valid(key, value, wanted) from None
        for key, fit in (("crop", "crop"), ("pad", "letterbox")):
            if key in values and values.setdefault("fit", fit) != fit:
                raise UsageError(
                    tr(
                        "preprocessing: {key} is for {fit}, not {values!r}",
                        key=key,
                        fit=fit,
                        values=values["fit"],
                    )
                )
        if "mean" in values or "std" in values:
            values = {**PRESETS["raw"], **values}
        return Preprocess(**values)

    @staticmethod
    def of(metadata: Mapping[str, Any]) -> Preprocess:
        """What a model's metadata says, perhaps nothing. Raises UsageError."""
        return Preprocess.from_dict(metadata.get("preprocess") or {})

    @staticmethod
    def parse(text: str, known: Any = None) -> Preprocess:
        """JSON, or the short form. Where it says only size, layout and fit, the rest is `known`,
        the model's own `metadata["preprocess"]`. Raises UsageError."""
        try:
            said = json.loads(text) if text.lstrip().startswith("{") else _short(text)
        except (ValueError, ZeroDivisionError, RecursionError) as error:
            raise UsageError(
                tr(
                    "preprocessing {text!r} is neither JSON nor like imagenet,crop, "
                    "pm1,bgr or mean=127,std=128,size=240x320 ({error})",
                    text=text,
                    error=error,
                )
            ) from None
        made = Preprocess.from_dict(said)
        if not known or not said.keys() <= _GEOMETRY:
            return made
        fit = {"fit", "crop", "pad"} if said.keys() & {"fit", "crop", "pad"} else set()
        changed = {name: getattr(made, name) for name in (said.keys() & {"size", "layout"}) | fit}
        return replace(Preprocess.from_dict(known), **changed)

    def fitted(self, shape: Sequence[Any]) -> Preprocess:
        """With colour, layout and size of an input where none is given. Raises ShapeError."""
        layout, size = self.layout, self.size
        if layout is None or size is None:
            layout, own = _image_input(shape, layout)
            size = size or own
        channels = shape[1 if layout == "nchw" else 3] if len(shape) == 4 else 3
        colour = self.colour or ("grey" if channels == 1 else "rgb")
        return replace(self, colour=colour, layout=layout, size=size)

    def to_dict(self) -> dict[str, Any]:
        """What is said, and no more."""
        idle = {"stretch": ("fit", "crop", "pad"), "height": ("crop", "pad"), "crop": ("pad",)}
        said = {k: v for k, v in asdict(self).items() if v is not None}
        return {k: v for k, v in said.items() if k not in idle.get(self.fit, ("crop",))}

    @property
    def scaling(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """(mean, std) that pixels become numbers by, also where they are not said."""
        return self.mean or PRESETS["unit"]["mean"], self.std or PRESETS["unit"]["std"]

    @property
    def fit_word(self) -> str:
        """`fit` in the short form, with its number where that is not the usual one."""
        number = {"crop": (self.crop, USUAL_CROP), "letterbox": (self.pad, USUAL_PAD)}
        value, usual = number.get(self.fit, (0, 0))
        return self.fit if value == usual else f"{self.fit}={value!r}"

    def apply(self, image: str | Path | np.ndarray) -> np.ndarray:
        """An image file or (H,W,C) uint8 RGB array → float32 with a batch axis of 1."""
        pixels = self.pixels(image).astype(np.float32)
        mean, std = self.scaling
        x = (pixels - np.array(mean, np.float32)) / np.array(std, np.float32)
        if self.fit == "height":
            seen = image.shape[1::-1] if isinstance(image, np.ndarray) else open_image(image).size
            x[:, self.placed(seen).scaled[0] :] = 0
        x = x if self.layout == "nhwc" else x.transpose(2, 0, 1)
        return np.ascontiguousarray(x[None], np.float32)

    def pixels(self, image: str | Path | np.ndarray) -> np.ndarray:
        """(H,W,C) uint8 in the model's size and channel order."""
        from PIL import Image

        if isinstance(image, np.ndarray):
            picture = Image.fromarray(image[..., 0] if image.shape[2:] == (1,) else image)
        else:
            picture = open_image(image)
        picture = picture.convert("L" if self.colour == "grey" else "RGB")
        size, scaled, offset = self.placed(picture.size)
        if picture.size != scaled:
            picture = picture.resize(scaled, Image.Resampling.BILINEAR)
        if scaled != size:
            canvas = Image.new(picture.mode, size, (self.pad,) * len(picture.getbands()))
            canvas.paste(picture, offset)
            picture = canvas
        array = np.asarray(picture)
        array = array[..., None] if array.ndim == 2 else array
        return array[..., ::-1] if self.colour == "bgr" else array

    def placed(self, picture: tuple[int, int]) -> Placement:
        """Where a picture of (width, height) pixels lies in the input. Raises UsageError."""
        if self.size is None and self.fit != "stretch":
            raise UsageError(tr("{fit} needs a size, like {fit},size=224x224", fit=self.fit))
        if self.size is None or self.fit == "stretch":
            size = picture if self.size is None else (self.size[1], self.size[0])
            return Placement(size, size, (0, 0))
        (width, height), (h, w) = picture, self.size
        if self.fit == "height":
            return Placement((w, h), (min(max(math.ceil(h * width / height), 1), w), h), (0, 0))
        if self.fit == "letterbox":
            ratio = min(h / height, w / width)
            scaled = max(round(width * ratio), 1), max(round(height * ratio), 1)
            left, top = (round((a - b) / 2 - 0.1) for a, b in zip((w, h), scaled, strict=True))
            return Placement((w, h), scaled, (left, top))
        # rounding of a share that is no binary fraction must not cost a pixel: 224 / (224/232)
        rows, columns = (math.floor(n / self.crop + 1e-6) for n in (h, w))
        if rows * width >= columns * height:
            scaled = rows * width // height, rows
        else:
            scaled = columns, columns * height // width
        if scaled[0] * scaled[1] > MAX_PIXELS:
            raise UsageError(
                tr(
                    "an image of {width}x{height} is too narrow for a center crop of {w}x{h}",
                    width=width,
                    height=height,
                    w=w,
                    h=h,
                ),
                fix=tr("use letterbox"),
            )
        left, top = (-round((b - a) / 2) for a, b in zip((w, h), scaled, strict=True))
        return Placement((w, h), scaled, (left, top))


def _short(text: str) -> dict[str, Any]:
    """`NAME[,colour][,fit][,key=value…]`; numbers of a list are separated by slashes."""
    out: dict[str, Any] = {}
    for word in (w.strip() for w in text.split(",") if w.strip()):
        key, sign, value = word.partition("=")
        if word in PRESETS:
            out.update(PRESETS[word])
        elif word in COLOURS:
            out["colour"] = word
        elif word in LAYOUTS:
            out["layout"] = word
        elif word in FITS:
            out["fit"] = word
        elif sign and key in ("mean", "std"):
            out[key] = [float(v) for v in value.split("/")]
        elif sign and key == "size":
            out["size"] = [int(v) for v in value.split("x")]
        elif sign and key == "crop":
            part, _, whole = value.partition("/")
            out |= {"fit": "crop", "crop": float(part) / float(whole or 1)}
        elif sign and key == "letterbox":
            out |= {"fit": "letterbox", "pad": int(value)}
        else:
            own = ("mean=", "std=", "size=", "crop=", "letterbox=")
            known = ", ".join([*PRESETS, *COLOURS, *FITS, *own])
            raise UsageError(
                tr("preprocessing {word!r} is not one of {known}", word=word, known=known)
            )
    return out


def _image_input(shape: Sequence[Any], layout: str | None) -> tuple[str, tuple[int, int] | None]:
    """(layout, size or None where it is open) of an input. Raises ShapeError."""
    if len(shape) != 4:
        raise ShapeError(
            tr("an input of rank {count} is not an image", count=len(shape)),
            fix=tr("give a .npy file"),
        )
    if layout is None:
        nchw = shape[1] in (1, 3) and shape[3] not in (1, 3)
        layout = "nchw" if nchw else "nhwc"
    height, width, channels = (
        (*shape[2:], shape[1]) if layout == "nchw" else (*shape[1:3], shape[3])
    )
    if channels not in (1, 3):
        raise ShapeError(
            tr("an input with {channels} channels is not an image", channels=channels),
            fix=tr("give a .npy file"),
        )
    size = (height, width) if isinstance(height, int) and isinstance(width, int) else None
    return layout, size
