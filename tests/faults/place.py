"""The folder in which a verb runs. Before each case it is put back at the cost of what the case
before has changed: its files are hard links to a copy beside it, which verbs replace by renaming
others over them. A verb that writes into a file in place changes the copy, and is found so."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

#: SQLite writes into its files, and keeps them whole with journals of its own.
IN_PLACE = "cache/runs.sqlite"


class State(NamedTuple):
    """Of a file that nobody touches."""

    inode: int
    size: int
    mtime_ns: int
    mode: int


class Place:
    def __init__(self, folder: Path) -> None:
        self.folder, self._copy = folder, folder.with_name(f"before-{folder.name}")
        self.before: dict[str, bytes] = {}
        self._copies: dict[str, tuple[Path, State]] = {}
        self._folders = {"out": folder / "out"}
        # older than any write of a case: the clock of a file system takes steps of milliseconds
        self._written_ns = time.time_ns() - 60 * 10**9

    def keep(self, files: dict[str, bytes]) -> None:
        """What `restore` gives, beside a folder `out`."""
        shutil.rmtree(self._copy, ignore_errors=True)
        self.before, self._copies = dict(files), {}
        names = {str(p) for name in files for p in Path(name).parents} | {"out"}
        self._folders = {name: self.folder / name for name in names}
        for name in files:
            self._keep(name)

    def _keep(self, name: str) -> None:
        path = self._copy / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(self.before[name])
        os.utime(path, ns=(self._written_ns, self._written_ns))
        self._copies[name] = path, _state(path.stat())

    def written_in_place(self) -> list[str]:
        """The files whose own bytes, times or modes a verb has changed; they are mended."""
        found = [n for n, (path, state) in self._copies.items() if _state(path.stat()) != state]
        for name in found:
            self._keep(name)
        return found

    def untouched(self) -> set[str]:
        """The files that nobody has replaced or changed since `restore`."""
        return {name for name, entry in _walk(self.folder) if self._is_kept(name, entry)}

    def restore(self) -> None:
        self.written_in_place()
        there = set()
        for name, entry in _walk(self.folder):
            if self._is_kept(name, entry):
                there.add(name)
            elif not entry.is_dir(follow_symlinks=False):
                Path(entry).unlink()
            elif name not in self._folders:
                shutil.rmtree(entry)
        for path in self._folders.values():
            path.mkdir(parents=True, exist_ok=True)
        for name in self.before.keys() - there:
            path = self.folder / name
            if name.startswith(IN_PLACE):
                path.write_bytes(self.before[name])
            else:
                path.hardlink_to(self._copies[name][0])

    def contents(self) -> dict[str, bytes]:
        """Its files by name; those that are not finished, and folders of such, have no bytes."""
        made = {}
        for name, entry in _walk(self.folder):
            if ".part" in name:
                made[name] = b""
            elif self._is_kept(name, entry):
                made[name] = self.before[name]
            elif entry.is_file():
                made[name] = Path(entry).read_bytes()
        return made

    def _is_kept(self, name: str, entry: os.DirEntry[str]) -> bool:
        """Whether it is one of `before`, and nobody has touched it."""
        known = self._copies.get(name)
        return known is not None and entry.is_file() and _state(entry.stat()) == known[1]


def _state(stat: os.stat_result) -> State:
    return State(stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_mode)


def _walk(folder: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """All that is below a folder, a folder before what it holds: it may be removed then."""
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        try:
            with os.scandir(f"{folder}/{inside}") as entries:
                found = list(entries)
        except FileNotFoundError:
            continue
        for entry in found:
            name = f"{inside}/{entry.name}" if inside else entry.name
            yield name, entry
            if entry.is_dir(follow_symlinks=False):
                waiting.append(name)
