"""Compiled graphs of plug-ins in the cache folder. A file that cannot be read or written is a graph
that is compiled again."""

from __future__ import annotations

import logging
from pathlib import Path

from ... import settings
from ...errors import LiteError
from ...files import write_file

_log = logging.getLogger(__name__)


def folder() -> Path:
    return settings.cache_dir() / "plugins"


def read(key: str) -> bytes | None:
    try:
        return (folder() / key).read_bytes()
    except OSError:
        return None


def write(key: str, blob: bytes) -> None:
    try:
        folder().mkdir(parents=True, exist_ok=True)
        write_file(folder() / key, blob)
    except (OSError, LiteError) as error:
        _log.info("cannot keep %s: %s", key, error)


def forget(key: str) -> None:
    (folder() / key).unlink(missing_ok=True)
