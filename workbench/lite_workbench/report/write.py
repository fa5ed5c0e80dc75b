"""Writes the report of one or more Sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from lite_engine import __version__
from lite_engine.files import write_file
from lite_messages import tr

from ..state import SessionState
from .live import live_section, report_config
from .page import Section, page
from .sections import environment_section, sections


def write_report(sessions: Sequence[SessionState], path: str | Path, *, live: bool = False) -> Path:
    """One HTML file for these sessions; `live` puts the models and the runtime into it, so that its
    reader runs them in the browser. Raises LiteError when it cannot be written, or a model cannot
    run there."""
    config = report_config(sessions) if live else None
    parts: list[Section] = []
    for number, session in enumerate(sessions):
        prefix = f"m{number}-" if number else ""
        made = sections(session, prefix)
        if len(sessions) > 1:
            for part in made:
                part.title = f"{session.stem}: {part.title}"
        parts += made
    if live:
        parts.append(live_section(tr("Times and answers of the browser that shows this page.")))
    return write_page(", ".join(s.path.name for s in sessions), parts, path, config)


def write_page(
    title: str, parts: Sequence[Section], path: str | Path, live: Mapping[str, Any] | None = None
) -> Path:
    """One HTML file of these sections and the machine. Raises LiteError."""
    when = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    text = page(
        title,
        tr("Lite Workbench {version__} · {when}", version__=__version__, when=when),
        [*parts, environment_section()],
        live,
    )
    return write_file(path, text)
