"""ImageDecoder: the bytes of an image file as a tensor, decoded by Pillow."""

from __future__ import annotations

import numpy as np

from ..errors import ShapeError, UsageError
from ..images import IMAGE_FORMATS, in_8_bits, open_image
from ..ir import DType, TypeInfo
from ._core import define_op
from ._helpers import check_word

image_decoder = define_op(
    "ImageDecoder", inputs="data", attrs={"pixel_format": "RGB"}, source="ONNX ImageDecoder-20"
)
image_decoder.infer(
    lambda data, *, pixel_format: TypeInfo(
        DType.U8, (None, None, 1 if pixel_format == "Grayscale" else 3)
    )
)


@image_decoder.reference
def _(data: np.ndarray, *, pixel_format: str) -> np.ndarray:
    """data (bytes,) u8 → (H, W, C) u8; C is 3, or 1 for Grayscale. Raises ShapeError for bytes that
    are not an image."""
    check_word("pixel_format", pixel_format, "RGB", "BGR", "Grayscale")
    try:
        # the operator's definition knows no orientation: pixels come as the file stores them
        image = open_image(
            data.tobytes(), formats=(*IMAGE_FORMATS, "TIFF", "JPEG2000"), as_stored=True
        )
    except UsageError as error:
        raise ShapeError(error) from None
    pixels = np.asarray(in_8_bits(image).convert("L" if pixel_format == "Grayscale" else "RGB"))
    if pixel_format == "Grayscale":
        return pixels[:, :, None]
    return np.ascontiguousarray(pixels[:, :, ::-1]) if pixel_format == "BGR" else pixels
