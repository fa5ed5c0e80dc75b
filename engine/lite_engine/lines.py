"""Files with a name per line: labels, the letters of an alphabet, the pieces of a vocabulary."""

from __future__ import annotations

from pathlib import Path

from lite_messages import tr

from .errors import UsageError, reason_of

#: Far above the largest dictionary; a pipe or a device has no end.
MOST_BYTES = 4 << 20


def lines_of(data: bytes) -> list[str]:
    """The lines of UTF-8 text, without the byte order mark that some editors write. Only "\\n" and
    "\\r\\n" end a line: whatever else `str.splitlines` splits at may be a letter of an alphabet,
    and every label after it would stand for the wrong class. Raises UnicodeDecodeError."""
    lines = data.decode("utf-8-sig").split("\n")
    if not lines[-1]:  # behind the end of the last line
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def read_bounded(path: Path) -> bytes:
    """Raises OSError, ValueError for more than MOST_BYTES."""
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(tr("larger than {size} MiB", size=MOST_BYTES >> 20))
    return data


def read_labels(path: str | Path) -> list[str]:
    """One label per line. Raises UsageError."""
    try:
        return lines_of(read_bounded(Path(path)))
    except (OSError, ValueError) as error:
        raise UsageError(
            tr("labels cannot be read ({reason})", reason=reason_of(error)), where=path
        ) from None
