"""A session as one file: what was saved is there again, and an archive of a stranger is checked."""

from __future__ import annotations

import asyncio
import io
import json
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import lite_workbench as lw
import numpy as np
import pytest
from lite_engine import settings
from lite_engine.errors import BackendUnavailableError, LiteError, ModelFormatError, UsageError
from lite_workbench import workbench
from lite_workbench.state import comparisons, project

pytestmark = pytest.mark.cpu


@pytest.fixture(scope="module")
def made(tmp_path_factory: Any) -> tuple[lw.Session, Path]:
    """A session with two versions, an override, a profile, a comparison and an image."""
    folder = tmp_path_factory.mktemp("project")
    session = lw.open(lw.shipped("digits.onnx"))
    session.convert(targets=["x86"])
    session.quantize(lw.shipped("digits_held_back.npz"), limit=8)
    session.use("float")
    session.override("/b3/dw/Conv", "reference")
    session.plant_fault("/b2/dw/Conv", "drop_last_column", backend="reference")
    session.set_input(lw.shipped("digits.png"))
    session.profile("x86", runs=3)
    session.compare("x86", "reference")
    session.selected = ["/b3/dw/Conv"]
    return session, session.save(folder / "digits", notes="for Ada")


def test_everything_is_there_again(made: tuple[lw.Session, Path]) -> None:
    before, path = made
    assert path.name == "digits.liteproject"
    after = lw.open(path)
    assert list(after.versions) == ["float", "int8"] and after.version == "float"
    assert after.targets == before.targets and after.faults == before.faults
    assert after.overrides.backends == {"/b3/dw/Conv": "reference"}
    assert after.selected == before.selected and after.notes == "for Ada"
    assert after.code[: len(before.code) - 1] == before.code[:-1]
    assert after.image == before.image
    assert json.loads(after.profiles["x86"].to_json()) == json.loads(
        before.profiles["x86"].to_json()
    )
    pair = ("x86", "reference")
    one, two = (s.comparisons[pair] for s in (before, after))
    assert one.to_json() == two.to_json() and two.finding == one.finding
    assert repr(one.layers[3]) == repr(replace(two.layers[3], isolated=one.layers[3].isolated))
    assert after.clock("profile", "x86") == before.clock("profile", "x86") != ""
    for name in before.versions:
        one, two = (s.predictor("x86", name, planted=False) for s in (before, after))
        for output, values in one.run(before.feeds).items():
            np.testing.assert_array_equal(values, two.run(after.feeds)[output])


def test_the_workbench_shows_what_was_measured(made: tuple[lw.Session, Path]) -> None:
    bench = lw.Workbench(lw.open(made[1]))
    profile, compare = bench.step("Profile"), bench.step("Compare")
    assert profile.line.profile["total_ms"] == made[0].profiles["x86"].total_ms
    assert compare.strip.comparison["candidate"] == "reference"
    assert not bench.session.jobs, "nothing had to be measured anew"


def test_a_comparison_with_a_device_that_is_not_here_is_shown(
    made: tuple[lw.Session, Path], monkeypatch: Any
) -> None:
    real = comparisons.predictor

    def here(state: Any, backend: str, *more: Any) -> Any:
        if backend == "reference":
            raise BackendUnavailableError("no driver", fix="install one")
        return real(state, backend, *more)

    monkeypatch.setattr(comparisons, "predictor", here)
    session = lw.open(made[1])
    compare = lw.Workbench(session).step("Compare")
    assert compare.strip.comparison["verdict"] == made[0].comparisons["x86", "reference"].verdict
    assert compare.graph.comparison == compare.strip.comparison and compare.graph.graph["nodes"]
    assert compare.notice.kind == "warn" and "no driver" in compare.notice.what
    assert "install one" in compare.notice.detail
    session.selected = ["/b5/Conv"]
    assert compare.notice.kind == "warn" and compare.pane.layout.display == "none"
    assert compare.inside.view.layout.display == "none" and not session.jobs


def test_a_profile_of_a_device_that_is_not_here_stays_in_the_history(
    made: tuple[lw.Session, Path], tmp_path: Path
) -> None:
    def other(data: dict[str, Any]) -> None:
        data["profiles"][0]["of"] = ["abacus"]

    after = lw.open(changed(made[1], tmp_path, other))
    assert after.profiles == {} and len(after.history) == 1


def test_restore_brings_the_last_session_back(tmp_path: Path) -> None:
    with settings.override(LITE_CACHE_DIR=str(tmp_path)):
        with pytest.raises(UsageError, match="no saved session"):
            lw.restore()
        session = lw.open(lw.shipped("digits.onnx"))
        assert session.keep() is None, "nothing to keep yet"
        session.convert(targets=["x86"])
        session.profile("x86", runs=2)
        session.keep()
        for after in (lw.restore(), lw.restore(lw.shipped("digits.onnx"))):
            assert after.profiles["x86"].total_ms == session.profiles["x86"].total_ms
            assert after.path.resolve() == lw.shipped("digits.onnx"), (
                "the file itself, not the kept copy"
            )
        with pytest.raises(UsageError, match="no saved session of other"):
            lw.restore("other.onnx")


def test_what_was_done_before_the_workbench_opened_is_kept(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(workbench, "KEEP_S", 0)
    model = shutil.copy(lw.shipped("digits.onnx"), tmp_path / "early.onnx")
    session = lw.open(model)
    session.convert(targets=["x86"])

    async def opened() -> None:
        bench = lw.Workbench(session)
        while not bench.top.restore:
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(opened(), 60))
    assert lw.restore(model).targets == ["x86"]


def test_what_replaced_the_model_is_not_taken_for_it(tmp_path: Path) -> None:
    with settings.override(LITE_CACHE_DIR=str(tmp_path / "cache")):
        model = tmp_path / "digits.onnx"
        content = lw.shipped("digits.onnx").read_bytes()
        model.write_bytes(content)
        session = lw.open(model)
        session.convert(targets=["x86"])
        session.keep()
        model.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        assert lw.restore(model).path.resolve() != model
        model.unlink()
        assert len(lw.restore(model).graph.nodes) == len(session.graph.nodes)


# ---- archives of strangers


def changed(path: Path, folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """The archive with another project.json."""
    target = folder / "changed.liteproject"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "project.json":
                document = json.loads(data)
                change(document)
                data = json.dumps(document).encode()
            new.writestr(name, data)
    return target


def archive(path: Path, **files: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as made:
        for name, data in files.items():
            made.writestr(name, data)
    return path


@pytest.mark.parametrize("name", ["../evil.lite", "/etc/evil", "versions/../evil", "versions/.evil",
                                  "evil.txt", "versions/a/evil.lite"])  # fmt: skip
def test_no_name_leaves_the_folder(tmp_path: Path, name: str) -> None:
    path = archive(tmp_path / "x.liteproject", **{"project.json": b"{}", name: b"evil"})
    with settings.override(LITE_CACHE_DIR=str(tmp_path / "cache")):
        with pytest.raises(ModelFormatError, match="not a project"):
            lw.open(path)
        assert not list((tmp_path / "cache").rglob("*evil*"))


def test_sizes_are_checked_before_anything_is_inflated(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(project, "MOST_BYTES", 1 << 20)
    path = tmp_path / "bomb.liteproject"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("project.json", b"{}")
        made.writestr("versions/0.lite", bytes(2 << 20))
    with settings.override(LITE_CACHE_DIR=str(tmp_path / "cache")):
        with pytest.raises(ModelFormatError, match="too large"):
            lw.open(path)
        assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    "change",
    [lambda d: d.pop("base"), lambda d: d.update(format=2), lambda d: d.update(versions=[]),
     lambda d: d.update(model="model/absent"), lambda d: d.update(version="int4"),
     lambda d: d["profiles"][0].update(of=[]), lambda d: d.update(shapes={"x": "y"}),
     lambda d: d["comparisons"][0].update(of=["x86"])],
)  # fmt: skip
def test_a_description_is_checked(
    made: tuple[lw.Session, Path], tmp_path: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    with pytest.raises(ModelFormatError):
        lw.open(changed(made[1], tmp_path, change))


def test_a_member_that_cannot_be_inflated_is_damage_of_the_project(
    made: tuple[lw.Session, Path], tmp_path: Path
) -> None:
    """And not of the folder that it is unpacked to."""
    data = bytearray(made[1].read_bytes())
    with zipfile.ZipFile(made[1]) as archive:
        member = next(m for m in archive.infolist() if m.filename.startswith("versions/"))
    at = member.header_offset + 30 + len(member.filename)
    data[at : at + 40] = b"\xff" * 40
    path = tmp_path / "member.liteproject"
    path.write_bytes(data)
    with pytest.raises(ModelFormatError, match=r"member\.liteproject: not a project that can be"):
        lw.open(path)


def test_damaged_archives_are_one_error(made: tuple[lw.Session, Path], tmp_path: Path) -> None:
    whole = made[1].read_bytes()
    rng, path = np.random.default_rng(7), tmp_path / "damaged.liteproject"
    path.write_bytes(b"no zip")
    with pytest.raises(ModelFormatError, match="not a project"):
        lw.open(path)
    for _ in range(12):
        data = bytearray(whole)
        for at in rng.integers(0, len(data), 20):
            data[at] ^= int(rng.integers(1, 256))
        path.write_bytes(bytes(data[: int(rng.integers(len(data) // 2, len(data)))]))
        try:
            lw.open(path)
        except LiteError:
            continue
    assert zipfile.is_zipfile(io.BytesIO(whole))
