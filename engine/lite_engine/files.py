"""Files beside a model, never outside its folder; files written so that they are there whole or not
at all."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from lite_messages import tr

from . import system
from .errors import LiteError, ModelFormatError, UsageError, WriteError, reason_of
from .parts import new_part, part_folder, remove_stale_parts

#: What a .lite file begins with, of a model or of a pipeline.
LITE_MAGIC = b"LITE\r\n\x1a\n"


def head(path: Path, count: int = 64) -> bytes:
    """The first bytes of a file, empty when it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(count)
    except OSError:
        return b""


def model_path(given: object) -> Path:
    """The path of a model. Raises UsageError for what is none, like a model that is open already
    in another package or its bytes."""
    if isinstance(given, (str, os.PathLike)):
        return Path(given)
    raise UsageError(
        tr("expected the path of a model, found {kind}", kind=type(given).__name__),
        fix=tr("write it to a file, and give its path"),
    )


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def inside(folder: Path, name: str) -> Path:
    """A path named by a model file. Raises ModelFormatError when it leaves the model's folder."""
    root = folder.resolve()
    path = root if "\0" in name else (root / name).resolve()
    if "\0" in name or not path.is_relative_to(root):
        raise ModelFormatError(
            tr("{name!r} lies outside the model's folder {folder}", name=name, folder=folder)
        )
    return path


def is_file(path: Path) -> bool:
    """False also for a name that no file can have: one that is too long."""
    try:
        return path.is_file()
    except OSError:
        return False


def exists(path: str | Path) -> bool:
    """Whether there is such a file or folder; no, too, for a name that no file can have."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def keep_inputs(out: Path, inputs: Iterable[str | Path], option: str) -> None:
    """Raises UsageError where the file to write is one of the inputs; `option` has named it."""
    if out.exists() and any(Path(x).exists() and out.samefile(x) for x in inputs):
        raise UsageError(
            tr("{out} is an input of this command", out=out),
            fix=tr("choose another place with {option}", option=option),
        )


@contextmanager
def about(path: str | Path | None) -> Iterator[None]:
    """A LiteError that leaves the block names this file (if there is one) before what it says."""
    try:
        yield
    except LiteError as error:
        if path is not None:
            error.within(path)
        raise


@contextmanager
def reading(path: str | Path) -> Iterator[None]:
    """What the block reads belongs to this file: a system's error becomes a ModelFormatError."""
    try:
        yield
    except OSError as error:
        raise ModelFormatError(
            tr("cannot be read ({reason})", reason=reason_of(error)), where=path
        ) from None


def make_folder(folder: Path) -> None:
    """Makes a folder and those above it. Raises WriteError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(
            tr("cannot be written ({reason})", reason=reason_of(error)), where=folder
        ) from None


def copy_tree(source: Path, target: Path) -> None:
    """Copies a folder into another one, which may be there. The first file that cannot be copied
    ends it with its OSError: `shutil.copytree` goes on, and tells of every file on a full disk."""
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.iterdir()):
        if path.is_dir():
            copy_tree(path, target / path.name)
        else:
            shutil.copy(path, target / path.name)


@contextmanager
def writing(path: str | Path) -> Iterator[IO[bytes]]:
    """A binary file that becomes `path` when the block ends: it is written under another name in
    the same folder, reaches the disk, and is then renamed, so that no reader ever sees half of it.

    Links are followed; what is no regular file (a pipe, /dev/stdout) is written in place. A file
    that is replaced keeps its mode. Raises WriteError when it cannot be written. Whatever ends the
    block early, nothing is left behind and a file that was there stays as it was; what a process
    that was killed has left is removed by the next one that writes there.
    """
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                yield file
            return
        remove_stale_parts(target.parent)
        part, number = new_part(target.parent)
        try:
            with os.fdopen(number, "wb") as file:
                if target.exists():
                    system.keep_mode(number, stat.S_IMODE(target.stat().st_mode))
                yield file
                file.flush()
                os.fsync(number)
                if not system.WINDOWS:  # while its lock says that it is in use
                    part.replace(target)
            if system.WINDOWS:  # which renames no open file
                part.replace(target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        system.sync_folder(target.parent)
    except OSError as error:
        raise WriteError(
            tr("cannot be written ({reason})", reason=reason_of(error)), where=path
        ) from None


def write_file(path: str | Path, content: str | bytes) -> Path:
    """Writes a whole file (text as UTF-8) and returns its path. Raises WriteError."""
    with writing(path) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)
    return Path(path)


@contextmanager
def filling(folder: str | Path) -> Iterator[Path]:
    """A folder whose files become those of `folder` when the block ends; what else is there stays.

    Raises WriteError when they cannot be written. Whatever ends the block early, nothing of it is
    left behind and a folder that was there stays as it was.
    """
    target = Path(os.path.realpath(folder))
    was_there = target.is_dir()
    place = target if was_there else target.parent
    try:
        place.mkdir(parents=True, exist_ok=True)
        remove_stale_parts(place)
        with part_folder(place) as part:
            try:
                yield part
            except LiteError as error:  # of a file in the part: the person knows the folder
                error.where = error.where.replace(str(part), str(folder))
                raise
            if was_there:
                for path in [p for p in part.rglob("*") if p.is_file()]:
                    there = target / path.relative_to(part)
                    there.parent.mkdir(parents=True, exist_ok=True)
                    path.replace(there)
            else:
                part.rename(target)
    except OSError as error:
        raise WriteError(
            tr("cannot be written ({reason})", reason=reason_of(error)), where=folder
        ) from None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time in such a block of the same path; the lock file stays.

    Raises WriteError when the lock file cannot be made.
    """
    make_folder(path.parent)
    try:
        file = path.with_name(f"{path.name}.lock").open("ab")
    except OSError as error:
        raise WriteError(
            tr("cannot be written ({reason})", reason=reason_of(error)), where=path.parent
        ) from None
    with file:
        system.lock_waiting(file)  # closing the file gives the lock back
        yield
