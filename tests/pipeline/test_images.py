"""Image files: the native decoders give Pillow's bytes, and hostile files one line."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from lite_engine.errors import UsageError
from lite_engine.images import open_image, stored_pixels
from lite_engine.ir import DType, Node, Value
from lite_engine.ops import run_node
from lite_engine.pipeline.native import decode_image
from lite_engine.preprocess import Preprocess
from PIL import Image, ImageOps

pytestmark = pytest.mark.cpu
SIZES = ((1, 1), (2, 3), (3, 2), (17, 5), (37, 29), (64, 48))


def photo(width: int, height: int, seed: int = 0) -> Image.Image:
    """Smooth shades with noise: every coefficient of a JPEG block is in use."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    shades = np.stack([x * 5 + y, 255 - 3 * y, 128 + 60 * np.sin(x / 3)], axis=-1)
    noisy = shades + rng.normal(0, 20, shades.shape)
    return Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8))


def written(image: Image.Image, kind: str, **options) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def pillow(data: bytes) -> np.ndarray:
    return np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB"))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_jpeg_has_the_bytes_that_libjpeg_gives(size) -> None:
    image = photo(*size)
    for subsampling in (0, 1, 2):
        for progressive in (False, True):
            for quality in (25, 95):
                data = written(
                    image, "JPEG", subsampling=subsampling, progressive=progressive, quality=quality
                )
                np.testing.assert_array_equal(decode_image(data), pillow(data))
    for more in (
        written(image.convert("L"), "JPEG"),
        written(image, "JPEG", keep_rgb=True),
        written(image, "JPEG", restart_marker_blocks=1),
    ):
        np.testing.assert_array_equal(decode_image(more), pillow(more))


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("mode", ["RGB", "L", "P", "1", "RGBA", "LA"])
def test_png_has_the_bytes_that_pillow_gives(size, mode: str) -> None:
    data = written(photo(*size).convert(mode), "PNG")
    np.testing.assert_array_equal(decode_image(data), pillow(data))


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_palettes_of_few_bits(bits: int) -> None:
    image = photo(37, 29).quantize(2**bits)
    for kind in ("PNG", "BMP"):
        data = written(image, kind, **({"bits": bits} if kind == "PNG" else {}))
        np.testing.assert_array_equal(decode_image(data), pillow(data))


@pytest.mark.parametrize("mode", ["RGB", "L", "P", "1", "RGBA"])
def test_bmp_has_the_bytes_that_pillow_gives(mode: str) -> None:
    data = written(photo(37, 29).convert(mode), "BMP")
    np.testing.assert_array_equal(decode_image(data), pillow(data))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_a_picture_is_turned_as_its_exif_says(orientation: int, kind: str) -> None:
    exif = Image.Exif()
    exif[0x112] = orientation
    data = written(photo(20, 11), kind, exif=exif)
    np.testing.assert_array_equal(decode_image(data), pillow(data))
    np.testing.assert_array_equal(np.asarray(open_image(data)), pillow(data))
    stored = np.asarray(Image.open(io.BytesIO(data)))
    np.testing.assert_array_equal(np.asarray(open_image(data, as_stored=True)), stored)
    again = open_image(written(open_image(data), kind, quality=100))
    assert again.size == open_image(data).size, "it is not turned twice"


@pytest.mark.parametrize("orientation", [1, 3, 6])
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "BMP"])
def test_pixels_as_they_are_stored(orientation: int, kind: str, tmp_path) -> None:
    """Only of files that would be turned."""
    exif = Image.Exif()
    exif[0x112] = orientation
    path = tmp_path / "photo"
    path.write_bytes(written(photo(20, 11), kind, **({} if kind == "BMP" else {"exif": exif})))
    found = stored_pixels(path)
    if orientation == 1 or kind == "BMP":
        assert found is None
    else:
        np.testing.assert_array_equal(found, np.asarray(Image.open(path)))


@pytest.mark.parametrize(
    "exif", [b"Exif\0\0", b"Exif\0\0MM\0*\xff\xff\xff\xff", b"Exif\0\0nothing", b"\0" * 40]
)
def test_damaged_exif_turns_nothing(exif: bytes, recwarn) -> None:
    want = np.asarray(Image.open(io.BytesIO(written(photo(20, 11), "JPEG"))))
    data = written(photo(20, 11), "JPEG", exif=exif)
    np.testing.assert_array_equal(np.asarray(open_image(data)), want)
    np.testing.assert_array_equal(decode_image(data), want)
    assert not recwarn.list


@pytest.mark.parametrize("orientation", [1, 6])
def test_grey_of_16_bits_has_its_upper_byte(orientation: int) -> None:
    """In Python as natively: Pillow's own conversion is white from 255 on."""
    deep = np.random.default_rng(1).integers(0, 1 << 16, (13, 17)).astype(np.uint16)
    exif = Image.Exif()
    exif[0x112] = orientation
    data = written(Image.fromarray(deep), "PNG", exif=exif)
    want = (deep >> 8).astype(np.uint8)
    want = np.rot90(want, -1) if orientation == 6 else want
    np.testing.assert_array_equal(np.asarray(open_image(data)), want)
    np.testing.assert_array_equal(decode_image(data)[..., 0], want)
    kept = open_image(data, as_stored=True)
    assert kept.mode != "L" and np.array_equal(np.asarray(kept), deep)


def test_a_pgm_of_16_bits_has_its_upper_byte() -> None:
    deep = np.random.default_rng(2).integers(0, 1 << 16, (5, 7)).astype(">u2")
    data = b"P5 7 5 65535\n" + deep.tobytes()
    np.testing.assert_array_equal(np.asarray(open_image(data)), deep >> 8)


@pytest.mark.parametrize("colour", ["grey", "rgb"])
def test_a_turned_file_is_the_input_that_it_shows(colour: str, tmp_path) -> None:
    upright = photo(20, 11).convert("L" if colour == "grey" else "RGB")
    exif = Image.Exif()
    exif[0x112] = 6
    upright.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "a.png", exif=exif)
    upright.save(tmp_path / "b.png")
    how = Preprocess.parse(f"unit,{colour},letterbox,size=16x16,nchw")
    np.testing.assert_array_equal(how.apply(tmp_path / "a.png"), how.apply(tmp_path / "b.png"))


def test_the_operator_decodes_what_is_stored() -> None:
    """ONNX's ImageDecoder knows no orientation."""
    exif = Image.Exif()
    exif[0x112] = 6
    data = written(photo(20, 11), "PNG", exif=exif)
    value = Value("data", DType.U8, (len(data),))
    node = Node("ImageDecoder", [value], [Value("image")], None, name="image")
    (made,) = run_node(node, [np.frombuffer(data, np.uint8)])
    np.testing.assert_array_equal(made, np.asarray(photo(20, 11)))


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width: int, height: int, body: bytes, *, interlaced: int = 0, depth: int = 8) -> bytes:
    head = struct.pack(">IIBBBBB", width, height, depth, 2, 0, 0, interlaced)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def test_an_interlaced_png() -> None:
    """Pillow reads but does not write them: the seven passes are made here."""
    want = np.asarray(photo(13, 9))
    raw = b""
    for x, y, dx, dy in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4),
                         (1, 0, 2, 2), (0, 1, 1, 2)):  # fmt: skip
        for row in want[y::dy, x::dx]:
            raw += b"\0" + row.tobytes() if row.size else b""
    data = png(13, 9, zlib.compress(raw), interlaced=1)
    np.testing.assert_array_equal(pillow(data), want)
    np.testing.assert_array_equal(decode_image(data), want)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "is not a JPEG, PNG or BMP image"),
        (b"GIF89a" + bytes(40), "is not a JPEG, PNG or BMP image"),
        (b"\xff\xd8\xff", "is not a JPEG, PNG or BMP image"),
        (b"\xff\xd8\xff\xd9", "is cut off"),
        (png(1 << 20, 1 << 20, b""), "out of reach"),
        (png(4, 4, zlib.compress(b"")), "is cut off"),
        (png(4, 4, b"nothing packed"), "zlib header"),
        (png(4, 4, zlib.compress(b"\x09" * 60)), "filter"),
        (png(4, 4, zlib.compress(bytes(1 << 20))), "damaged"),
        (b"BM" + bytes(60), "kind that is not read"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_not_an_image_is_one_line(data: bytes, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        decode_image(data)


def test_a_jpeg_of_endless_scans_is_refused() -> None:
    """Each costs a few bytes and goes over the whole image."""
    data = written(photo(640, 480), "JPEG", progressive=True)
    at = data.rindex(b"\xff\xda")
    scan, interval = data[at:-2], b"\xff\xdd\0\4\0\1"
    with pytest.raises(UsageError, match="more scans than an image has"):
        decode_image(data[:at] + interval + scan[:12] * 5000 + data[-2:])
    assert decode_image(data[:at] + interval + scan + data[-2:]).shape == (480, 640, 3)


def test_an_interval_of_a_jpeg_that_ends_early_costs_its_own_blocks() -> None:
    """What comes after the next restart marker is there; colors reach two pixels over its edge."""
    data = written(photo(64, 48), "JPEG", restart_marker_blocks=2)
    first = data.index(b"\xff\xd0")
    cut = decode_image(data[: first - 4] + data[first:])
    np.testing.assert_array_equal(cut[:, 34:], pillow(data)[:, 34:])


def test_a_cmyk_jpeg_says_what_to_do() -> None:
    with pytest.raises(UsageError, match="CMYK image; convert it to RGB"):
        decode_image(written(photo(9, 9).convert("CMYK"), "JPEG"))


@pytest.mark.parametrize("kind", ["JPEG", "progressive", "PNG", "P", "BMP"])
def test_damaged_files_give_a_picture_or_a_line(kind: str) -> None:
    """Every cut and three hundred flipped bytes; whatever comes of it, the process stays."""
    image = photo(19, 14)
    options = {"progressive": True} if kind == "progressive" else {}
    shown = image.convert("P") if kind == "P" else image
    whole = written(shown, {"progressive": "JPEG", "P": "PNG"}.get(kind, kind), **options)
    rng = np.random.default_rng(3)
    damaged = [whole[:n] for n in range(len(whole))]
    for _ in range(300):
        spoilt = bytearray(whole)
        for at in rng.integers(0, len(whole), rng.integers(1, 4)):
            spoilt[at] = rng.integers(0, 256)
        damaged.append(bytes(spoilt))
    refused = 0
    for data in damaged:
        try:
            made = decode_image(data)
        except UsageError as error:
            assert "\n" not in str(error)
            refused += 1
        else:
            assert made.ndim == 3 and made.shape[2] == 3
    assert refused > 20
