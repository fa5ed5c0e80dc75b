"""What a session does so that nothing is lost: undo, saving, keeping itself."""

from __future__ import annotations

from pathlib import Path

from . import project, undo
from ._state import SessionState


class Keeping(SessionState):
    """The methods of `Session` about its own past."""

    def undo(self) -> str:
        """Takes the last conversion, quantization, override or choice of a version back, and
        returns the line of Python that had made it. What was measured stays. Raises UsageError."""
        return undo.undo(self)

    def save(self, path: str | Path, notes: str = "") -> Path:
        """Writes everything but the calibration as one file, `path.liteproject`, which `lw.open`
        opens on any machine. Raises LiteError."""
        made = project.save(self, path, notes)
        self.remember(f"session.save({str(path)!r})")
        return made

    def keep(self) -> Path | None:
        """Keeps the session for `lw.restore`; the Workbench does so after each change. None where
        the versions are too large for that."""
        return project.keep(self)
