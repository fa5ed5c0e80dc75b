"""The trade-off curve as a JSON file: written after every point, continued where it stopped.

    {"options": …, "ranges": …, "ranking": [layer, …], "points": [{…, "options": …}, …]}

Each point carries all options of its quantisation (`Options.from_dict` repeats it).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lite_messages import tr

from ..documents import Part, parse
from ..errors import LiteError, UsageError, reason_of
from ..files import write_file
from .scheme import Scheme


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
                tr(
                    "{path} belongs to another model, other samples or other options",
                    path=self.path,
                ),
                fix=tr("choose another file, or remove this one"),
            )
        self.data.update(header)

    def save(self) -> None:
        if self.path is not None:
            write_file(self.path, json.dumps(self.data, indent=1) + "\n")


def read_curve(path: Path) -> dict[str, Any]:
    """Raises UsageError when the file is no curve."""
    try:
        document = parse(path.read_bytes(), "curve")
        for point in document["points"].items():
            _check(point)
    except (OSError, LiteError) as error:
        raise UsageError(
            tr("not a trade-off curve ({reason})", reason=reason_of(error)), where=path
        ) from None
    return dict(document.value)


def _check(point: Part) -> None:
    """Raises ModelFormatError for a point that the search did not write."""
    point["scheme"].into(Scheme)
    point["options"].fields()
    for name in ("sqnr_db", "cost", "size_bytes"):
        point[name].number()
    point["float_layers"].integer()
    top1 = point.get("top1_agreement")
    if top1 is None:
        point.value["top1_agreement"] = None  # asked for by every reader
    else:
        top1.number()
