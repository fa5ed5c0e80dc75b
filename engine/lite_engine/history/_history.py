"""Profiles of the past in one small SQLite file: list, show, tag, compare with today.

Several notebooks may write at once (write-ahead log, a busy timeout). The store is a convenience:
a damaged or unwritable one is set aside or left out, with a warning, and never costs a run.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lite_messages import tr

from .. import settings
from ..documents import Part, parse
from ..errors import LiteError, ModelFormatError, UsageError, reason_of
from ..profile import Profile

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

T = TypeVar("T")
_log = logging.getLogger(__name__)
BUSY_S = 10.0
_LATEST = 1 << 35  # seconds since 1970: what every platform can write as a date
_SCHEMA = """create table if not exists runs (
  id integer primary key, at real not null, tag text not null default '', path text not null,
  model text not null, backend text not null, precision text not null, threads integer not null,
  device text not null, machine text not null, median_ms real not null, profile text not null)"""
#: What was added after the first form of the table, with the values of older rows.
_ADDED = {"kind": "text not null default 'profile'", "metric": "text not null default ''",
          "value": "real not null default 0"}  # fmt: skip
_COLUMNS = ("id, at, tag, path, model, backend, precision, threads, device, machine, median_ms, "
            "kind, metric, value")  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One kept profile, evaluation or sweep (`kind`); `at` is seconds since 1970. An evaluation has
    the `value` of its main `metric` and no time; `median_ms` of a sweep is its least latency."""

    id: int
    at: float
    tag: str
    path: str
    model: str
    backend: str
    precision: str
    threads: int
    device: str
    machine: str
    median_ms: float
    kind: str = "profile"
    metric: str = ""
    value: float = 0.0

    @property
    def when(self) -> str:
        """Local date and time."""
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(self.at))

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "when": self.when}


class History:
    """The store at `path` (default: `runs.sqlite` in the cache folder). Made on first use."""

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = Path(path) if path is not None else settings.cache_dir() / "runs.sqlite"

    # ---- writing

    def add(self, profile: Profile, path: str = "", tag: str = "") -> int | None:
        """Keeps a profile and returns its number, None when it could not be kept. Raises UsageError
        for a tag that is a number."""
        check_tag(tag)
        made = {
            "path": path, "model": profile.model, "backend": profile.backend,
            "precision": profile.precision, "threads": profile.threads, "device": profile.device,
            "machine": str(profile.environment.get("cpu", "")),
            "median_ms": profile.total_ms["median"],
        }  # fmt: skip
        return self._add({**made, "tag": tag}, profile.to_json())

    def add_document(self, kind: str, document: str, **columns: Any) -> int | None:
        """Keeps the JSON of an evaluation or a sweep with what `lite runs` lists of it (`Run`).
        Returns its number, None when it could not be kept."""
        blank = {"tag": "", "path": "", "threads": 1, "device": "local", "machine": "",
                 "median_ms": 0.0}  # fmt: skip
        return self._add({**blank, "kind": kind, **columns}, document)

    def _add(self, columns: dict[str, Any], document: str) -> int | None:
        values = {"at": time.time(), **columns, "profile": document}
        text = f"insert into runs ({','.join(values)}) values ({','.join('?' * len(values))})"

        def work(db: sqlite3.Connection) -> int:
            return int(db.execute(text, tuple(values.values())).lastrowid or 0)

        return self._try(work, None)

    def tag(self, run: int, tag: str) -> None:
        """Raises UsageError when there is no such run, or for a tag that is a number."""
        check_tag(tag)
        self.document(run)

        def work(db: sqlite3.Connection) -> None:
            db.execute("update runs set tag = ? where id = ?", (tag, run))

        self._try(work, None, needed=True)

    # ---- reading

    def list(self, model: str | None = None, limit: int = 50, **wanted: str) -> list[Run]:
        """The newest runs first; of this model, and of the `device`, `metric` or `kind` wanted."""
        chosen = {**({"model": model} if model else {}), **wanted}
        where = "where " + " and ".join(f"{name} = ?" for name in chosen) if chosen else ""
        given = list(chosen.values())
        text = f"select {_COLUMNS} from runs {where} order by id desc limit ?"

        def work(db: sqlite3.Connection) -> list[Run]:
            return [run for row in db.execute(text, [*given, limit]) if (run := self._good(row))]

        return self._try(work, [])

    def figure(self, model: str | None = None, limit: int = 50) -> Figure:
        """A plotly Figure: medians of the newest runs over time. LiteError without plotly."""
        from ..figures import histories

        return histories.runs([run.to_dict() for run in self.list(model, limit)])

    def _good(self, row: Sequence[Any]) -> Run | None:
        """None for a damaged row, with a warning."""
        try:
            return _run(row)
        except ModelFormatError as error:
            _log.warning("history %s: run %s is left out: %s", self.path, row[0], error)
            return None

    def get(self, run: int | str) -> tuple[Run, Profile]:
        """By number, or the newest one with that tag. Raises UsageError when there is none
        or what was kept is damaged, LiteError when the store cannot be used."""
        found, document = self._document(run, self._row(run))
        if found.kind != "profile":
            raise UsageError(
                tr("run {run} is not a profile", run=run), fix=tr("show it"),
                command=f"lite runs show {found.id}",
            )  # fmt: skip
        try:
            return found, Profile.from_dict(document)
        except ModelFormatError as error:
            raise _damaged(run, error) from None

    def _row(self, run: int | str) -> Any:
        number = str(run).isdigit()
        text = f"select {_COLUMNS}, profile from runs where {'id' if number else 'tag'} = ?"

        def work(db: sqlite3.Connection) -> Any:
            given = int(run) if number else run
            return db.execute(text + " order by id desc limit 1", (given,)).fetchone()

        row = self._try(work, None, needed=True)
        if row is None:
            raise UsageError(
                tr("there is no run {run!r}", run=run),
                fix=tr("list the saved runs"),
                command="lite runs list",
            )
        return row

    def document(self, run: int | str) -> tuple[Run, dict[str, Any]]:
        """What was kept of a run of any kind, as plain data. Raises UsageError, LiteError."""
        return self._document(run, self._row(run))

    @staticmethod
    def _document(run: int | str, row: Any) -> tuple[Run, dict[str, Any]]:
        try:
            made = parse(row[-1] if isinstance(row[-1], str) else "", "run").value
            if not isinstance(made, dict):
                raise ModelFormatError(tr("not an object"), where="run")
            return _run(row[:-1]), made
        except ModelFormatError as error:
            raise _damaged(run, error) from None

    # ---- the file

    def _try(
        self, work: Callable[[sqlite3.Connection], T], otherwise: T, *, needed: bool = False
    ) -> T:
        """Runs `work`; a damaged file is set aside and the work tried once more on a new one. Where
        that fails, `otherwise` with a warning, or LiteError for what a person asked for."""
        failure: Exception
        for attempt in (1, 2):
            try:
                with self._open() as db:
                    return work(db)
            except (OSError, sqlite3.OperationalError) as error:
                failure = error
                break
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                # The second: what SQLite says of a damaged schema quotes its bytes.
                failure = error
                if attempt == 1 and not self._set_aside(error):
                    break
        if needed:
            raise LiteError(
                tr("saved runs cannot be used ({reason})", reason=reason_of(failure)),
                where=self.path,
            )
        _log.warning("history %s is left out: %s", self.path, failure)
        return otherwise

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(self.path, timeout=BUSY_S)
        db.text_factory = _text
        try:
            db.execute("pragma journal_mode = wal")
            db.execute(_SCHEMA)
            there = {row[1] for row in db.execute("pragma table_info(runs)")}
            for name, form in _ADDED.items():
                if name not in there:
                    with contextlib.suppress(sqlite3.OperationalError):  # another was faster
                        db.execute(f"alter table runs add column {name} {form}")
            with db:
                yield db
        finally:
            db.close()

    def _set_aside(self, error: Exception) -> bool:
        """Renames a damaged store; its journal files go with it. False when that is refused."""
        stamp = time.strftime("%Y%m%d-%H%M%S")
        try:
            for suffix in ("", "-wal", "-shm"):
                part = self.path.with_name(self.path.name + suffix)
                with contextlib.suppress(FileNotFoundError):  # or another process was faster
                    part.rename(part.with_name(f"{self.path.name}.damaged-{stamp}{suffix}"))
        except OSError as refused:
            _log.warning("history %s is damaged and left out: %s", self.path, refused)
            return False
        _log.warning("history %s was damaged (%s) and is set aside", self.path, error)
        return True


def _text(data: bytes) -> str:
    """A damaged text costs its row, not the list."""
    return data.decode("utf-8", "replace")


def _run(row: Sequence[Any]) -> Run:
    """A row of `_COLUMNS`. Raises ModelFormatError for types that nobody wrote."""
    run = Part(dict(zip(_COLUMNS.split(", "), row)), "row").into(Run)
    if not 0 <= run.at < _LATEST:
        raise ModelFormatError(tr("row.at: {at} is not a valid timestamp", at=run.at))
    return run


def _damaged(run: int | str, error: Exception) -> UsageError:
    return UsageError(
        tr("run {run} can no longer be read ({error})", run=run, error=error),
        fix=tr("save a new one"),
        command="lite profile MODEL",
    )


def check_tag(tag: str) -> str:
    """The tag. Raises UsageError for a number, which would name a run."""
    if tag.isdigit():
        raise UsageError(
            tr("tag {tag!r} is a number, and numbers name runs", tag=tag),
            fix=tr("use a tag with at least one letter"),
        )
    return tag
