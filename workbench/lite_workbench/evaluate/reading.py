"""Files of a data set, which may come from a stranger: sizes are bounded, and what they name lies
in their folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath

from lite_engine.errors import LiteError, UsageError, reason_of
from lite_engine.images import is_image
from lite_messages import tr

#: Annotations of COCO's 118,287 training images take 450 MB, those of a validation set 20 MB.
MAX_BYTES = 256 << 20
#: What a sample's input may be.
SUFFIXES = (".npy", ".npz", ".wav")


class UnreadableSource(LiteError):
    """The input of a sample cannot be read; the sample is left out."""


def read_text(path: Path) -> str:
    """A whole file of UTF-8 text. Raises UsageError."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise UsageError(
                tr(
                    "expected at most {max_bytes} MiB of annotations, found {size} MiB",
                    max_bytes=MAX_BYTES >> 20,
                    size=size >> 20,
                ),
                where=path,
                fix=tr("split the data set"),
            )
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            tr("not readable as UTF-8 text ({reason})", reason=reason_of(error)), where=path
        ) from None


def lines(path: Path) -> Iterator[tuple[str, str]]:
    """(place, line) of each line that is neither empty nor a comment."""
    # not str.splitlines: whatever else it splits at may be in a text or a name
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if line.strip() and not line.startswith("#"):
            yield f"{path}:{number}", line


def inside(folder: Path, name: str, where: object) -> Path:
    """The path of a file that an annotation names. Raises UsageError for one outside `folder`."""
    posix, windows = PurePosixPath(name), PureWindowsPath(name)
    absolute = posix.is_absolute() or windows.drive or windows.root
    if "\0" in name or not name.strip() or absolute or ".." in windows.parts:
        raise UsageError(
            tr("{name!r} is outside of {folder}", name=name, folder=folder), where=where,
            fix=tr("name files relative to the folder of the images, without `..`"),
        )  # fmt: skip
    return folder / name


def is_input(path: Path) -> bool:
    """Can a sample be made of this file, by its name?"""
    return not path.name.startswith(".") and (is_image(path) or path.suffix.lower() in SUFFIXES)


def inputs_in(folder: Path) -> list[Path]:
    """The input files below a folder, sorted."""
    return sorted(p for p in folder.rglob("*") if is_input(p) and p.is_file())
