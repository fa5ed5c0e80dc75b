"""Files are written whole or not at all, whoever shares the folder."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest
from lite_engine import system
from lite_engine.errors import LiteError
from lite_engine.files import filling, write_file, writing


def test_what_is_replaced_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "model.lite"
    write_file(path, "old")
    path.chmod(0o640)
    write_file(path, "new")
    assert path.read_text() == "new" and path.stat().st_mode & 0o777 == 0o640


def test_a_new_file_has_the_mode_of_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        path = write_file(tmp_path / "model.lite", b"")
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("planted", ["link", "file"])
def test_a_part_that_is_there_is_not_written(planted: str, tmp_path: Path, monkeypatch) -> None:
    """Even if the name could be guessed: a link is not followed, another's part not taken."""
    monkeypatch.setattr(secrets, "token_hex", lambda _: "guessed")
    victim, part = tmp_path / "victim", tmp_path / ".lite-guessed.part"
    victim.write_text("untouched")
    part.symlink_to(victim) if planted == "link" else part.write_text("another's")
    with pytest.raises(LiteError, match="cannot be written"):
        write_file(tmp_path / "model.lite", "new")
    assert victim.read_text() == "untouched" and not (tmp_path / "model.lite").exists()
    assert part.is_symlink() or part.read_text() == "another's"


@pytest.mark.parametrize("kind", ["file", "folder"])
@pytest.mark.parametrize("removed", [True, False], ids=["removed", "about to be"])
def test_a_part_that_another_takes_for_stale_is_not_used(
    kind: str, removed: bool, tmp_path: Path, monkeypatch
) -> None:
    """Between the making of a part and its lock another process may lock it, to remove it."""
    lock, sweeper = system.try_lock, []

    def second(number: int) -> bool | None:
        if not sweeper:
            (part,) = tmp_path.glob(".lite-*.part")
            sweeper.append((part, os.open(part, os.O_RDONLY)))
            assert lock(sweeper[0][1])
            if removed:
                part.rmdir() if part.is_dir() else part.unlink()
        return lock(number)

    monkeypatch.setattr(system, "try_lock", second)
    if kind == "file":
        write_file(tmp_path / "m", "new")
    else:
        with filling(tmp_path / "m") as into:
            (into / "inner").write_text("new")
    (part, number) = sweeper[0]
    assert not part.exists() if removed else part.exists()
    assert (tmp_path / "m").is_dir() if kind == "folder" else (tmp_path / "m").read_text() == "new"
    os.close(number)


STALE = f".lite-{0:016x}.part"


def test_what_killed_processes_left_is_removed(tmp_path: Path) -> None:
    """A part that nobody holds a lock of: a file, a folder; what is held or only named so stays."""
    (tmp_path / STALE).write_text("half")
    folder = tmp_path / STALE.replace("0.", "1.")
    folder.mkdir()
    (folder / "inner").write_text("half")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("untouched")
    link = tmp_path / STALE.replace("0.", "2.")
    link.symlink_to(elsewhere)
    with writing(tmp_path / "a") as file, filling(tmp_path / "new") as part:
        file.write(b"new")
        write_file(part / "inner", "new")
        write_file(tmp_path / "b", "another writer sweeps while the first one writes")
    names = {p.name for p in tmp_path.iterdir()}
    assert names == {"a", "b", "new", "elsewhere", link.name}
    assert elsewhere.read_text() == "untouched" and (tmp_path / "new" / "inner").exists()


def test_a_file_of_a_folder_is_named_as_the_person_did(tmp_path: Path) -> None:
    with pytest.raises(LiteError) as raised, filling(tmp_path / "out") as part:
        write_file(part / "missing" / "m.lite", "")
    assert raised.value.where == str(tmp_path / "out" / "missing" / "m.lite")


def test_a_block_that_fails_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "model.lite"
    path.write_text("old")
    for block in (writing(path), filling(tmp_path)):
        with pytest.raises(RuntimeError), block:
            raise RuntimeError
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_a_pipe_is_written_in_place(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_file(pipe, "through")
        assert os.read(reader, 99) == b"through" and pipe.is_fifo()
    finally:
        os.close(reader)
