"""What a person gives as input → feeds, and the picture to show."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from lite_engine.errors import ShapeError, UsageError, reason_of
from lite_engine.files import exists, write_file
from lite_messages import tr

if TYPE_CHECKING:
    from lite_engine.ir import Graph, Shape, Value
    from lite_engine.model_file import Model

#: What is said of a picture where the model does not say how it wants it.
GUESSED = tr("the model does not say how its images were prepared: pixels were scaled to 0…1")
#: The same on the command line.
GUESSED_OPTION = tr(
    "{guessed}; to choose another recipe, pass --preprocess imagenet, pm1 or raw to "
    "`lite convert` or `lite run`",
    guessed=GUESSED,
)


def takes_images(graph: Graph) -> bool:
    """Could one of its inputs be an image?"""
    return any(may_be_image(value.shape) for value in graph.inputs)


def may_be_image(shape: Shape | None) -> bool:
    """Could an input of this shape be an image, a batch of planes?"""
    return len(shape or ()) == 4


def is_guessed(model: Model) -> bool:
    """Does it take floats made of pixels, without a word about how?"""
    dtype = model.graph.inputs[0].dtype if model.graph.inputs else None
    return not is_prepared(model.metadata) and dtype is not None and dtype.is_float


def is_prepared(metadata: Mapping[str, Any]) -> bool:
    """Does it say how pixels become numbers? What cannot be read says nothing."""
    from lite_engine.preprocess import Preprocess

    try:
        return Preprocess.of(metadata).mean is not None
    except UsageError:
        return False


def feeds_of(
    model: Model, source: Any, *, seed: int = 0, tokenizer: str | Path | None = None
) -> tuple[dict[str, np.ndarray], bytes]:
    """(feeds, PNG bytes of the picture or b""). `source`: path, image bytes, (H,W,C) array, feeds
    (arrays, files, or None), a text for the `tokenizer`, or None for random numbers of this `seed`.
    Raises UsageError, ShapeError."""
    from lite_engine.images import is_image, open_image
    from lite_engine.runtime.inputs import image_feed, random_feeds, read_feeds

    if source is None:
        return random_feeds(model, seed), b""
    if isinstance(source, Mapping):
        return _each(model, source, seed)
    if tokenizer is not None:
        return _text(model, source, tokenizer), b""
    if isinstance(source, (str, Path)):
        picture = png(open_image(source)) if _is_picture(source, is_image) else b""
        return read_feeds(model, [source]), picture
    value = model.graph.inputs[0]
    if isinstance(source, (bytes, bytearray, memoryview)):
        source, pixels = np.asarray(open_image(bytes(source)).convert("RGB")), True
    else:
        pixels = isinstance(source, np.ndarray) and _are_pixels(model, value, source)
    if pixels:
        return {value.name: image_feed(model, value, source)}, png(source)
    if isinstance(source, np.ndarray):
        return {value.name: _batched(value, source)}, b""
    raise UsageError(
        tr("an input of type {kind} cannot be used", kind=type(source).__name__),
        fix=tr("give a file, image or array"),
    )


def _each(
    model: Model, sources: Mapping[str, Any], seed: int
) -> tuple[dict[str, np.ndarray], bytes]:
    """Input by input: an array, a file, or None for random numbers; and the first picture."""
    from lite_engine.images import is_image, open_image
    from lite_engine.runtime.feeds import as_type, check_names
    from lite_engine.runtime.inputs import random_feeds, read_feeds

    check_names(model.graph.inputs, sources)
    files = {n: s for n, s in sources.items() if isinstance(s, (str, Path))}
    noise = random_feeds(model, seed) if any(s is None for s in sources.values()) else {}
    inputs = {value.name: value for value in model.graph.inputs}
    feeds = {
        name: read_feeds(model, [f"{name}={source}"])[name]
        if name in files
        else noise[name]
        if source is None
        else _batched(inputs[name], as_type(inputs[name], source))
        for name, source in sources.items()
    }
    images = [path for path in files.values() if is_image(path)]
    return feeds, png(open_image(images[0])) if images else b""


def _text(model: Model, source: Any, tokenizer: str | Path) -> dict[str, np.ndarray]:
    """Numbers of a text, which is given itself or as a .txt file."""
    from lite_engine.runtime.texts import Tokenizer, text_feeds

    text = str(source)
    if text.endswith(".txt"):
        try:
            text = Path(text).read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                tr("the text cannot be read ({reason})", reason=reason_of(error)), where=source
            ) from None
    return text_feeds(model.graph, text, Tokenizer.open(tokenizer))


def read_source(model: Model, source: Any) -> tuple[dict[str, np.ndarray], tuple[int, int] | None]:
    """(feeds, (width, height) of the image or None). `source`: a path, an (H,W[,C]) uint8 image, an
    array of the first input, or feeds. Raises UsageError, ShapeError."""
    from lite_engine.images import is_image, open_image
    from lite_engine.runtime.feeds import as_array
    from lite_engine.runtime.inputs import image_feed, read_feeds

    if isinstance(source, Mapping):
        known = {v.name: v for v in model.graph.inputs}
        return {
            name: _batched(known[name], _array(known[name], given))
            if name in known
            else np.asarray(given)  # the run says that there is no such input
            for name, given in source.items()
        }, None
    value = model.graph.inputs[0]
    if isinstance(source, (str, Path)):
        if not is_image(source):
            return read_feeds(model, [source]), None
        if not Path(source).exists():
            raise UsageError(tr("no such file"), where=source)
        array, pixels = np.asarray(open_image(source).convert("RGB")), True
    else:
        array = as_array(value, source)
        pixels = _are_pixels(model, value, array)
        array = array if pixels else _array(value, source)
    if pixels:
        return {value.name: image_feed(model, value, array)}, (array.shape[1], array.shape[0])
    return {value.name: _batched(value, array)}, None


def _array(value: Value, given: Any) -> np.ndarray:
    """An array as it is; numbers of Python in the input's type. Raises ShapeError."""
    from lite_engine.runtime.feeds import NUMBERS, as_array, as_type

    return as_type(value, given) if isinstance(given, NUMBERS) else as_array(value, given)


def _batched(value: Value, array: np.ndarray) -> np.ndarray:
    """A sample of a data set, without the axis of the batch, as a batch of one."""
    shape = value.shape
    return array[None] if shape is not None and array.ndim + 1 == len(shape) else array


def _are_pixels(model: Model, value: Value, array: np.ndarray) -> bool:
    """Does preprocessing make the input of this array? Not where it is the input already. Raises
    ShapeError for bytes that are neither."""
    if array.dtype != np.uint8 or array.ndim not in (2, 3) or _is_input(model, value, array):
        return False
    if is_picture(array):
        return True
    raise ShapeError(
        tr("a uint8 array of shape {shape} is neither input {name} ({type}) nor an image",
           shape=array.shape, name=value.name, type=value.type),
        fix=tr("give pixels as (height, width, channels), or numbers of the input's type"),
    )  # fmt: skip


def _is_input(model: Model, value: Value, array: np.ndarray) -> bool:
    """Has it the input's type and shape, with or without the batch? An image whose channels come
    last has, too: it is prepared as any other."""
    from lite_engine.ir import DType, fits
    from lite_engine.preprocess import Preprocess

    dims = value.shape or ()
    if value.dtype is not DType.U8 or not fits(dims, _batched(value, array).shape):
        return False
    try:
        return Preprocess.of(model.metadata).fitted(dims).layout != "nhwc"
    except (UsageError, ShapeError):
        return True  # no image is its input


def is_picture(source: Any) -> bool:
    """Is it an image, by name or as uint8 pixels: (H,W) or (H,W,C) of at most four channels?"""
    from lite_engine.images import is_image

    if isinstance(source, np.ndarray):
        shaped = source.ndim == 2 or (source.ndim == 3 and source.shape[2] <= 4)
        return source.dtype == np.uint8 and shaped and source.size > 0
    return isinstance(source, (str, Path)) and is_image(source)


def size_of(image: bytes | None) -> tuple[int, int] | None:
    """(width, height) of a picture that `feeds_of` gave, if any."""
    from lite_engine.images import open_image

    return open_image(image).size if image else None


def as_code(source: Any) -> str:
    """How a source is written in code: a path as itself, data as a name."""
    return repr(str(source)) if isinstance(source, (str, Path)) else "images"


def _is_picture(source: str | Path, is_image: Callable[[str | Path], bool]) -> bool:
    if not exists(source):
        raise UsageError(tr("no such file"), where=source)
    return bool(is_image(source))


def save_upload(name: str, data: bytes, folder: str | Path = ".") -> Path:
    """Keeps a file that the page sent, under its own name; an existing other file is not touched,
    the new one gets a number. Raises UsageError for a name that is none."""
    base = Path(name.replace("\\", "/")).name
    if base in ("", ".", "..") or "\0" in base:
        raise UsageError(tr("{name!r} is not a file name", name=name))
    for path in _numbered(Path(folder) / base):
        if not path.exists():
            return write_file(path, data)
        if path.is_file() and path.read_bytes() == data:
            return path
    raise AssertionError("unreachable")


def free_path(name: str) -> Path:
    """A file that does not exist yet, in the current folder: `name`, or it with a number."""
    return next(path for path in _numbered(Path(name)) if not path.exists())


def _numbered(path: Path) -> Iterator[Path]:
    """Raises UsageError after a thousand."""
    yield path
    for number in range(2, 1000):
        yield path.with_name(f"{path.stem}-{number}{path.suffix}")
    raise UsageError(tr("1,000 files with this name exist already"), where=path.name)


def png(picture: Any) -> bytes:
    """A PIL image or (H,W[,C]) uint8 array as PNG bytes."""
    from PIL import Image

    if isinstance(picture, np.ndarray):
        squeezed = picture[..., 0] if picture.ndim == 3 and picture.shape[2] == 1 else picture
        picture = Image.fromarray(squeezed)
    out = io.BytesIO()
    picture.convert("RGB").save(out, "PNG")
    return out.getvalue()
