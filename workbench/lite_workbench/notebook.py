"""Session as a runnable notebook."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lite_engine.files import write_file

from .names import with_ending


def write_notebook(lines: Sequence[str], path: str | Path, title: str = "Session") -> Path:
    """One cell per line, the last name shown. Raises LiteError when it cannot be written."""
    target = with_ending(path, ".ipynb")
    cells = [_cell("markdown", f"# {title}", 0)]
    cells += [_cell("code", text, i + 1) for i, text in enumerate(cells_of(lines))]
    book = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return write_file(target, json.dumps(book, indent=1, ensure_ascii=False) + "\n")


def cells_of(lines: Sequence[str]) -> list[str]:
    """Lines of the walk → cells: imports stay with what follows, assignments show their value."""
    cells: list[str] = []
    for line in lines:
        name, equals, _ = line.partition(" = ")
        shown = f"{line}\n{name}" if equals and name.isidentifier() and name != "session" else line
        if cells and cells[-1].startswith("import ") and "\n" not in cells[-1]:
            cells[-1] += f"\n{shown}"
        else:
            cells.append(shown)
    return cells


def _cell(kind: str, text: str, number: int) -> dict[str, Any]:
    cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": text}
    return {**cell, "execution_count": None, "outputs": []} if kind == "code" else cell
