"""Files are written whole or not at all, whoever shares the folder."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest
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
