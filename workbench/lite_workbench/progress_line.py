"""Progress of long work as one line of a terminal, wiped when the work ends."""

from __future__ import annotations

from typing import TextIO

from lite_messages import tr


class ProgressLine:
    """A listener of `lite_engine.progress`; silent where the stream is no terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._terminal = stream.isatty()  # asked once: a large model's layers each tell something
        self._shown = False

    def __call__(self, what: str, done: int, total: int) -> None:
        if done >= total:
            self.wipe()
        elif self._terminal:
            self._shown = True
            print(
                "\r"
                + tr("{what}: {done} of {total}", what=what, done=done, total=total)
                + "\x1b[K",
                end="",
                file=self._stream,
                flush=True,
            )

    def wipe(self) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=self._stream, flush=True)
        self._shown = False
