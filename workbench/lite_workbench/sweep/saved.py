"""A sweep under way as a JSON file: written after each round, continued where it stopped."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lite_engine.documents import parse
from lite_engine.errors import LiteError, UsageError, reason_of
from lite_engine.files import write_file
from lite_engine.runtime import strict_json
from lite_messages import tr

from .cells import Cell, Choice


def key_of(path: Path | None, choices: Sequence[Choice], data: str) -> str:
    """What a file of results belongs to: the model's bytes, the choices and the data."""
    digest = hashlib.sha256(repr((choices, data)).encode())
    if path is not None and path.is_file():
        with path.open("rb") as file:
            for block in iter(lambda: file.read(1 << 20), b""):
                digest.update(block)
    return digest.hexdigest()


def load(path: Path, key: str, choices: Sequence[Choice]) -> dict[Choice, Cell]:
    """The finished cells of a file, by what was asked for; none when there is no file. Raises
    UsageError."""
    if not path.exists():
        return {}
    try:
        document = parse(path.read_bytes(), "sweep")
        cells = [part.into(Cell) for part in document["cells"].items()]
        known = document["key"].text()
    except (OSError, LiteError) as error:
        raise UsageError(
            tr("not a saved sweep ({reason})", reason=reason_of(error)), where=path
        ) from None
    if known != key:
        raise UsageError(
            tr("belongs to another model, other choices or other data"), where=path,
            fix=tr("choose another file, or remove this one"),
        )  # fmt: skip
    pairs = zip(choices, cells, strict=False)  # as many as were asked for: the key says so
    return {choice: cell for choice, cell in pairs if cell.status != "waiting"}


def save(path: Path, key: str, cells: Sequence[Any]) -> None:
    """Writes all cells, finished or not, in the order of the choices."""
    write_file(path, strict_json.dumps({"key": key, "cells": cells}, indent=1) + "\n")
