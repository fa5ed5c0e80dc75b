"""The trade-off curve as a JSON file: written after every point, continued where it stopped.

    {"options": …, "ranges": …, "ranking": [layer, …], "points": [{…, "options": …}, …]}

Each point carries all options of its quantisation (`Options.from_dict` repeats it).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..files import write_file


class Curve:
    """Without a path it is only kept in memory."""

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = None if path is None else Path(path)
        self.data: dict[str, Any] = {"points": []}
        if self.path is not None and self.path.exists():
            self.data = read_curve(self.path)

    @property
    def points(self) -> list[dict[str, Any]]:
        points: list[dict[str, Any]] = self.data["points"]
        return points

    def begin(self, options: dict[str, Any], ranges: dict[str, Any]) -> None:
        """Raises UsageError when the file holds the curve of something else."""
        header = json.loads(json.dumps({"options": options, "ranges": ranges}))
        if self.points and any(self.data.get(key) != value for key, value in header.items()):
            raise UsageError(
                f"{self.path} is the curve of another model, other samples or options; "
                "name another file or remove it"
            )
        self.data.update(header)

    def save(self) -> None:
        if self.path is not None:
            write_file(self.path, json.dumps(self.data, indent=1) + "\n")


def read_curve(path: Path) -> dict[str, Any]:
    """Raises UsageError when the file is no curve."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(data["points"], list):
            return dict(data)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path}: not a trade-off curve ({error})") from None
    raise UsageError(f"{path}: not a trade-off curve")
