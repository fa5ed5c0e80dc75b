"""What other packages add: their entry points, found without importing them.

A distribution names what it brings in its metadata, `lite_engine.backends` for backends and
`lite_engine.passes` for passes; `register` adds one for this process, and `python_file` runs a file
that a person names. Nothing that a model file says is looked up here.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from lite_messages import tr

from .errors import LiteError, UsageError

BACKENDS, PASSES = "lite_engine.backends", "lite_engine.passes"


@dataclass(frozen=True)
class Extension:
    """One of them. `value` is `module:object` for one that is installed, "" for one that this
    process registered; `origin` names the distribution and its version."""

    name: str
    value: str
    origin: str
    load: Callable[[], Any]


_registered: dict[str, dict[str, Extension]] = {BACKENDS: {}, PASSES: {}}


def register(group: str, name: str, made: Any) -> None:
    """Adds one for this process, before those that are installed."""
    _registered[group][name] = Extension(name, "", tr("this process"), lambda: made)


def unregister(group: str, name: str) -> None:
    _registered[group].pop(name, None)


def found(group: str) -> dict[str, Extension]:
    """By name, those of this process first."""
    return {**_installed(group), **_registered[group]}


@cache
def _installed(group: str) -> dict[str, Extension]:
    from importlib.metadata import (
        entry_points,
    )  # with the modules of e-mail: most verbs need neither

    return {
        entry.name: Extension(
            entry.name,
            entry.value,
            f"{entry.dist.name} {entry.dist.version}" if entry.dist else "",
            entry.load,
        )
        for entry in entry_points(group=group)
    }


def python_file(path: Path) -> ModuleType:
    """A Python file that somebody named, executed as a module of its own. Raises UsageError, and
    LiteError as the file raises it."""
    spec = importlib.util.spec_from_file_location(f"lite_file_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise UsageError(tr("no such Python file"), where=path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except LiteError:
        raise
    except Exception as error:
        raise UsageError(
            tr("cannot be loaded ({kind}: {error})", kind=type(error).__name__, error=error),
            where=path,
        ) from error
    return module
