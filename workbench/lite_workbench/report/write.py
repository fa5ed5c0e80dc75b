"""Writes the report of one or more Sessions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from lite_engine import __version__
from lite_engine.files import write_file
from lite_messages import tr

from ..state import SessionState
from .page import Section, page
from .sections import environment_section, sections


def write_report(sessions: Sequence[SessionState], path: str | Path) -> Path:
    """One HTML file for these sessions. Raises LiteError when it cannot be written."""
    parts: list[Section] = []
    for number, session in enumerate(sessions):
        prefix = f"m{number}-" if number else ""
        made = sections(session, prefix)
        if len(sessions) > 1:
            for part in made:
                part.title = f"{session.stem}: {part.title}"
        parts += made
    return write_page(", ".join(s.path.name for s in sessions), parts, path)


def write_page(title: str, parts: Sequence[Section], path: str | Path) -> Path:
    """One HTML file of these sections and the machine. Raises LiteError."""
    when = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    text = page(
        title,
        tr("Lite Workbench {version__} · {when}", version__=__version__, when=when),
        [*parts, environment_section()],
    )
    return write_file(path, text)
