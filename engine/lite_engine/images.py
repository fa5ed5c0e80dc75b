"""Image files → PIL images, as a person sees them and as the native decoders read them: turned as
their EXIF orientation says, with 8 bits a channel."""

from __future__ import annotations

import io
import struct
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from lite_messages import tr

from .errors import UsageError, reason_of

#: What PIL may decode. Its other plug-ins run programs (Ghostscript for EPS) or read other files.
IMAGE_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "PPM")
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".ppm", ".pgm")
_ORIENTATION = 0x112
#: EXIF's orientation → the name of PIL's operation that turns the picture upright
_UPRIGHT = {
    2: "FLIP_LEFT_RIGHT", 3: "ROTATE_180", 4: "FLIP_TOP_BOTTOM", 5: "TRANSPOSE", 6: "ROTATE_270",
    7: "TRANSVERSE", 8: "ROTATE_90",
}  # fmt: skip


def is_image(path: str | Path) -> bool:
    return Path(path).suffix.lower() in IMAGE_SUFFIXES


def open_image(
    source: str | Path | bytes,
    name: str = "",
    formats: Sequence[str] = IMAGE_FORMATS,
    *,
    as_stored: bool = False,
) -> Any:
    """A PIL image of a file, or of a file's bytes; `as_stored`: neither turned nor brought to 8
    bits. Raises UsageError, naming the file (or `name`), when it is not an image."""
    data = io.BytesIO(source) if isinstance(source, bytes) else source
    with _told(name or (tr("these bytes") if isinstance(source, bytes) else source)):
        picture = _opened(data, formats)
        picture.load()
        # PIL leaves the transparency of a palette out of RGB, with a warning where it is bytes.
        picture.info.pop("transparency", None)
        return picture if as_stored else _upright(picture)


def stored_pixels(path: str | Path) -> np.ndarray | None:
    """(H,W,3) uint8 of a file that EXIF turns, before it is turned; None for any other file, which
    is decoded only if it must be. Raises UsageError."""
    with _told(path):
        picture = _opened(path, IMAGE_FORMATS)
        if picture.format != "PNG" and "exif" not in picture.info:  # a PNG may have it at its end
            return None
        picture.load()
        picture.info.pop("transparency", None)
        return np.asarray(in_8_bits(picture).convert("RGB")) if _turn_of(picture) else None


def in_8_bits(picture: Any) -> Any:
    """Grey of 16 bits by its upper byte, which PIL would clip at 255; any other picture as it
    is."""
    from PIL import Image

    deep = picture.mode.startswith("I;16")
    # as a PGM is opened, and a PNG by older versions of PIL; neither has 32 bits
    deep = deep or (picture.mode == "I" and picture.format in ("PNG", "PPM"))
    return Image.fromarray((np.asarray(picture) >> 8).astype(np.uint8)) if deep else picture


def _upright(picture: Any) -> Any:
    """As a person sees it, with 8 bits a channel."""
    from PIL import Image

    turn, picture = _turn_of(picture), in_8_bits(picture)
    if turn:
        picture = picture.transpose(Image.Transpose[turn])
        picture.info.pop("exif", None)  # or what writes it would have it turned again
    return picture


def _turn_of(picture: Any) -> str:
    """The name of the operation that turns it upright; "" where it is, or EXIF is damaged."""
    from PIL import Image

    exif = Image.Exif()
    try:
        exif.load(picture.info.get("exif", b""))
        return _UPRIGHT.get(exif.get(_ORIENTATION, 1), "")
    except Exception:  # noqa: BLE001  a stranger's bytes, which do not change the pixels
        return ""


def _opened(data: Any, formats: Sequence[str]) -> Any:
    from PIL import Image

    return Image.open(data, formats=list(formats))


@contextmanager
def _told(given: object) -> Iterator[None]:
    """Whatever PIL raises of an image as one UsageError."""
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            # PIL only warns of an image that could fill the memory; what else it warns of (a
            # damaged EXIF block, an APNG that is none) does not change the pixels.
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            yield
    except (
        OSError, ValueError, SyntaxError, struct.error,
        Image.DecompressionBombError, Image.DecompressionBombWarning,
    ) as error:  # fmt: skip
        # PIL's own words for it name the object that it read
        known = isinstance(error, UnidentifiedImageError)
        why = tr("its format is unknown, or it is damaged") if known else reason_of(error)
        raise UsageError(
            tr("not an image that can be read ({why})", why=why), where=given
        ) from None
