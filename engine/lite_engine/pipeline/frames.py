"""Frames for a stream: the files of a folder, or the JPEG files of a Motion-JPEG file."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISREG

from lite_messages import tr

from ..errors import UsageError
from ..mapped import map_file, states
from .stream import Frame, Stream

_BEGIN = re.compile(rb"\xff\xd8")
#: In entropy-coded data: a marker that is no restart and no stuffed byte (ITU T.81, annex B).
_MARKER = re.compile(rb"\xff[^\x00\x01\xd0-\xd8\xff]")
#: Markers without a segment.
_ALONE = {0x00, 0x01, *range(0xD0, 0xD9)}
_FILL, _END, _SCAN = 0xFF, 0xD9, 0xDA


class Frames:
    """The frames of a folder, by name, or of a Motion-JPEG file; each is the bytes of an image, or
    none of a file that cannot be read: its answer is an error. Folders, pipes and devices in it are
    passed over.

    Raises UsageError where there is none, and what reading a Motion-JPEG file raises;
    ModelFormatError where that is overwritten in the meantime.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._files: list[Path] = []
        self._places: list[tuple[int, int]] = []
        if self.path.is_dir():
            self._files = sorted(
                p for p in self.path.iterdir() if not p.name.startswith(".") and _may_be_read(p)
            )
        elif self.path.is_file() and self.path.stat().st_size:
            self._data = map_file(self.path)
            self._places = list(_jpegs(self._data))
        if not len(self):
            raise UsageError(
                tr("there are no frames"), where=self.path,
                fix=tr("pass a folder of images, or a Motion-JPEG file"),
            )  # fmt: skip

    def __len__(self) -> int:
        return len(self._files) or len(self._places)

    def __iter__(self) -> Iterator[bytes]:
        for file in self._files:
            try:
                yield file.read_bytes()
            except OSError:
                yield b""
        for begin, end in self._places:
            for state in states([self._data]):
                state.check()
            yield bytes(self._data[begin:end])


def _may_be_read(path: Path) -> bool:
    """Not what is there and no file: a folder, or a pipe, which might never end. Of what cannot be
    found (a link) reading says so."""
    try:
        return S_ISREG(path.stat().st_mode)
    except OSError:
        return True


def feed(
    stream: Stream, frames: Frames, fps: float | None = None, *, draw_s: float | None = None
) -> Iterator[Frame]:
    """Puts all frames into the stream and gives the answers in their order, the stream closed after
    the last one. Without `fps` every frame is answered; with it they come at this rate and the
    newest wins. With `draw_s` one frame in so many seconds is drawn, and the last one always.
    Raises what ended the stream."""
    began, drawn = time.monotonic(), float("-inf")
    for number, data in enumerate(frames):
        while fps and (left := began + number / fps - time.monotonic()) > 0:
            time.sleep(min(left, 0.05))
            yield from stream.ready()
        now = time.monotonic()
        draw = draw_s is not None and (now - drawn >= draw_s or number + 1 == len(frames))
        drawn = now if draw else drawn
        stream.put(data, drop=fps is not None, draw=draw)
        yield from stream.ready()
    yield from stream.close()


def _jpegs(data: memoryview) -> Iterator[tuple[int, int]]:
    """Where each JPEG file begins and ends; whatever lies between them is passed over, and so is
    one that is cut off."""
    at = 0
    while found := _BEGIN.search(data, at):
        end = _end(data, found.end())
        if end is None:
            return
        yield found.start(), end
        at = end


def _end(data: memoryview, at: int) -> int | None:
    """Where the JPEG file ends whose first segment is at `at`: the markers inside segments (a
    thumbnail's) do not count. None where it is cut off."""
    scan = False
    while at + 1 < len(data):
        if scan:
            found = _MARKER.search(data, at)
            if found is None:
                return None
            at = found.start()
        elif data[at] != 0xFF:
            return at  # damaged: the decoder says so
        marker = data[at + 1]
        if marker == _END:
            return at + 2
        if marker == _FILL:
            at += 1
        elif marker in _ALONE:
            at += 2
        else:
            if at + 3 >= len(data):
                return None
            at += 2 + (data[at + 2] << 8 | data[at + 3])
            scan = marker == _SCAN
    return None
