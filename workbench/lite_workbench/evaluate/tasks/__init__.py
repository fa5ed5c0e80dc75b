"""What is measured for each task, a module each with a `Task`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._base import Task


def task_class(name: str) -> type[Task]:
    found: type[Task] = import_module(f".{name}", __package__).TASK
    return found
