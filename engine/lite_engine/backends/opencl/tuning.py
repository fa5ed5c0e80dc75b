"""Which way was fastest: measured once on a device, kept in the cache folder, read ever after.

One JSON file per device and driver: `{"conv_f32_m196_n256_k2304…": "64x64_4x4_k16_p8"}`. Without
Python `lite_run --tune` writes and reads the same file (native/src/opencl/tuning.cc), in the cache
folder or beside the model. A size that is not in it takes the first of its ways (the best estimate)
until it is measured.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from lite_messages import tr

from ...documents import parse
from ...errors import LiteError, ModelFormatError
from ...files import write_file
from .. import Measured

_log = logging.getLogger(__name__)
Way = TypeVar("Way")

#: Ways measured for one size, by effort.
EFFORTS = {"none": 0, "rapid": 4, "normal": 10, "exhaustive": 1000}


@dataclass
class Tuning:
    """`table` maps sizes to the text of their fastest way."""

    path: Path
    table: dict[str, str] = field(default_factory=dict)
    #: Every size that was asked for: what a model's layers need of the table.
    sizes: set[str] = field(default_factory=set)
    #: What was measured since `Tunable.measuring` began.
    measured: list[Measured] = field(default_factory=list)

    @classmethod
    def of_device(cls, folder: Path, *facts: str) -> Tuning:
        """The table of a device and driver."""
        name = hashlib.blake2b("\0".join(facts).encode(), digest_size=8).hexdigest()
        return cls.load(folder / f"tuning-{name}.json")

    @classmethod
    def load(cls, path: Path) -> Tuning:
        """A missing file is an empty table, and a damaged one, which is told."""
        try:
            if path.is_file():
                ways = parse(path.read_bytes(), tr("tuning table")).fields()
                return cls(path, {size: way.text() for size, way in ways.items()})
        except (OSError, ModelFormatError) as error:
            _log.warning("%s is ignored (%s); measure again with `lite tune`", path, error)
        return cls(path)

    def pick(self, size: str, ways: Sequence[Way]) -> Way:
        """The way to take for a size; ways are told apart by their text."""
        self.sizes.add(size)
        wanted = self.table.get(size)
        return next((w for w in ways if str(w) == wanted), ways[0])

    @property
    def key(self) -> str:
        """Names the device and driver, in a model's `tuning` after "opencl/"."""
        return self.path.stem.removeprefix("tuning-")

    def learn(self, table: Mapping[str, str]) -> None:
        """Takes what a model file brings; what was measured here comes first."""
        self.table = {**table, **self.table}

    def measure(
        self, effort: str, size: str, ways: Sequence[str], seconds: Callable[[str], float]
    ) -> dict[str, float]:
        """Measures the ways of a size, the most promising first; `seconds` builds and times one,
        infinite where it fails.

        What each took; nothing when there is no choice or it is known already.
        """
        if size in self.table or len(ways) < 2:
            return {}
        taken = {way: seconds(way) for way in ways[: EFFORTS[effort]]}
        best = min(taken, key=taken.__getitem__)
        if taken[best] < float("inf"):
            self.table[size] = best
        return taken

    def save(self) -> None:
        """Keeps the table; a full or read-only disk only costs measuring again."""
        with contextlib.suppress(OSError, LiteError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_file(self.path, json.dumps(self.table, indent=1, sort_keys=True))
