"""Warnings of a verb, as lines for a person."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from lite_engine.errors import LiteWarning
from lite_engine.terminal import one_line
from lite_messages import tr

_log = logging.getLogger("lite_engine")


@contextmanager
def warnings_as_lines(stream: TextIO) -> Iterator[None]:
    """Our own warnings become `warning: …` lines on the stream. Those of libraries (NumPy of an
    overflow, Pillow of an image) name their source files and nothing that a user of the command
    could do: they go to the debug log."""

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, LiteWarning):
            print(tr("warning: {warning}", warning=one_line(str(message))), file=stream)
        else:
            _log.debug("%s: %s", category.__name__, message)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
