"""What the campaign compares: a folder is put back whatever has become of it, and nothing that was
done to its files stays unseen."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .place import Place

FILES = {"m.onnx": b"model", "out/a": b"one", "out/e/b": b"two", "cache/runs.sqlite": b"db"}


@pytest.fixture
def place(tmp_path) -> Place:
    made = Place(tmp_path / "place")
    made.keep(FILES)
    made.restore()
    return made


def rewrite(path: Path) -> None:
    with path.open("r+b") as file:  # as long as before
        file.write(b"ONE")


def truncate(path: Path) -> None:
    path.open("wb").close()


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"x")


def mode(path: Path) -> None:
    path.chmod(0o700)


@pytest.mark.parametrize("change", [rewrite, truncate, append, mode])
def test_a_write_in_place_is_found_and_mended(place, change):
    path = place.folder / "out/a"
    change(path)
    assert place.contents() == {**FILES, "out/a": path.read_bytes()}
    assert place.written_in_place() == ["out/a"]
    place.restore()
    assert place.contents() == FILES and not place.written_in_place()
    assert path.read_bytes() == b"one" and path.stat().st_mode & 0o777 != 0o700


def test_what_is_replaced_removed_or_left_behind_is_seen_and_put_back(place):
    folder = place.folder
    (folder / "new").write_bytes(b"ONE")
    (folder / "new").replace(folder / "out/a")
    (folder / "out/e/b").unlink()
    (folder / "left").write_bytes(b"left")
    (folder / "link").symlink_to("nowhere")
    (folder / ".lite-1.part/deep").mkdir(parents=True)
    (folder / ".lite-1.part/deep/x").write_bytes(b"x")
    append(folder / "cache/runs.sqlite")
    seen = place.contents()
    assert place.untouched() == {"m.onnx"}
    assert not place.written_in_place()  # SQLite's file is no link
    parts = {name for name in seen if ".part" in name}
    assert parts == {".lite-1.part", ".lite-1.part/deep", ".lite-1.part/deep/x"}
    whole = {name: data for name, data in seen.items() if name not in parts}
    changed = {"out/a": b"ONE", "left": b"left", "cache/runs.sqlite": b"dbx"}
    assert whole == {"m.onnx": b"model", **changed}
    for _ in range(2):
        place.restore()
        assert place.contents() == FILES
        assert {path.name for path in folder.iterdir()} == {"cache", "m.onnx", "out"}
        shutil.rmtree(folder)


def test_only_what_was_touched_is_made_again(place):
    def numbers() -> dict[str, int]:
        return {name: (place.folder / name).stat().st_ino for name in FILES}

    before = numbers()
    (place.folder / "out/a").unlink()
    place.restore()
    assert {n for n, inode in numbers().items() if inode == before[n]} >= {
        "m.onnx", "out/a", "out/e/b"}  # fmt: skip
