"""A session as one file, `x.liteproject`: a zip of the model, its versions (`.lite`), the input,
the profiles and the comparisons, with `project.json` that says what is what.

An archive from elsewhere is not trusted: names, number and sizes are checked before anything is
inflated, and each file inside is read by the reader of its format.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from lite_engine import settings
from lite_engine.arrays import read_arrays
from lite_engine.compare.comparison import Comparison
from lite_engine.documents import Part, parse
from lite_engine.errors import LiteError, ModelFormatError
from lite_engine.files import filling, make_folder, sha256, writing
from lite_engine.model_file import Model, open_model
from lite_engine.profile import Profile
from lite_engine.system import LZMAError
from lite_messages import tr

from ._state import SessionState

SUFFIX = ".liteproject"
#: What a session keeps by itself is not larger than this; sessions of so many models are kept.
KEPT_BYTES, MOST_KEPT = 64 << 20, 20
MOST_FILES, MOST_BYTES, MOST_JSON = 256, 2 << 30, 256 << 20
#: Formats of one file; a model of several is stored as its base version.
_ALONE = (".onnx", ".tflite", ".nb", ".lite")
_NAME = re.compile(
    r"project\.json|input\.npz|image\.png|(versions|profiles|comparisons|model)/\w[\w. +-]*"
)


@dataclass
class Measured:
    """A profile or comparison in the archive: which file, of what (a backend, or the two sides),
    of which version, and when (seconds since 1970)."""

    file: str
    of: list[str]
    version: str
    at: float


@dataclass
class Project:
    """`project.json`. `model` is the file that the session opens; versions are name → file.
    `path` is where the model lies, in what a session keeps on its own machine."""

    model: str
    name: str
    base: str
    version: str
    shapes: dict[str, list[int]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    targets: list[str] = field(default_factory=list)
    precision: dict[str, str] = field(default_factory=dict)
    int8_targets: list[str] = field(default_factory=list)
    backends: dict[str, str] = field(default_factory=dict)
    precisions: dict[str, str] = field(default_factory=dict)
    custom_base: str = ""
    faults: dict[str, dict[str, str]] = field(default_factory=dict)
    selected: list[str] = field(default_factory=list)
    code: list[str] = field(default_factory=list)
    profiles: list[Measured] = field(default_factory=list)
    comparisons: list[Measured] = field(default_factory=list)
    notes: str = ""
    path: str = ""
    format: int = 1


# ---- writing


def save(state: SessionState, path: str | Path, notes: str = "", *, here: str = "") -> Path:
    """Writes the archive; `here` is the model's path where it stays here. Raises LiteError."""
    target = Path(path).with_suffix(SUFFIX)
    with state.busy, tempfile.TemporaryDirectory() as folder, writing(target) as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            made = replace(_describe(state, notes), path=here)
            for name, inside in made.versions.items():
                archive.write(state.versions[name].save(Path(folder) / "version.lite"), inside)
            if made.model not in made.versions.values():
                archive.write(state.path, made.model)
            for one, profile in zip(made.profiles, state.profiles.values(), strict=True):
                archive.writestr(one.file, _json(profile.to_dict()))
            for two, compared in zip(made.comparisons, state.comparisons.values(), strict=True):
                archive.writestr(two.file, _json(compared.to_dict()))
            if state.feeds is not None:
                with archive.open("input.npz", "w", force_zip64=True) as inner:
                    np.savez(inner, **cast("dict[str, Any]", state.feeds))
            if state.image:
                archive.writestr("image.png", state.image)
            archive.writestr("project.json", _json(asdict(made)))
    return target


def _describe(state: SessionState, notes: str) -> Project:
    versions = {name: f"versions/{i}.lite" for i, name in enumerate(state.versions)}
    if state.path.suffix in _ALONE and state.path.is_file():
        model = f"model/{_plain(state.path.name)}"
    else:
        model = versions[state.base]
    return Project(
        model, state.path.name, state.base, state.version, {k: list(v) for k, v in
        state.shapes.items()}, versions, list(state.targets), dict(state.precision),
        list(state.int8_targets), dict(state.overrides.backends), dict(state.overrides.precisions),
        state.overrides.base, state.faults, state.selected, list(state.code),
        [Measured(f"profiles/{i}.json", [backend], state.profiled[backend][0],
                  state.measured_at.get(("profile", backend), 0.0))
         for i, backend in enumerate(state.profiles)],
        [Measured(f"comparisons/{i}.json", list(pair),
                  state.compared_of.get(pair, (state.version, ""))[0],
                  state.measured_at.get(("comparison", pair), 0.0))
         for i, pair in enumerate(state.comparisons)],
        notes,
    )  # fmt: skip


def _plain(name: str) -> str:
    return re.sub(r"[^\w.+-]", "_", name).lstrip(".-+_") or "model"


def _json(data: Any) -> str:
    return json.dumps(data, default=lambda x: x.tolist(), ensure_ascii=False)


# ---- reading


def is_project(path: Path) -> bool:
    return path.suffix == SUFFIX and path.is_file()


#: What zipfile raises for an archive that is cut off, damaged, encrypted or of another kind.
_DAMAGED = (zipfile.BadZipFile, NotImplementedError, EOFError, RuntimeError, OSError, ValueError,
            zlib.error, LZMAError)  # fmt: skip


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    try:
        yield
    except _DAMAGED as error:
        raise ModelFormatError(
            tr("not a project that can be read ({error})", error=error), where=path
        ) from None


def unpack(path: Path) -> tuple[Path, Project]:
    """The archive's files in a folder of the cache, named by its content, and what they are.

    Raises ModelFormatError for names, sizes or a description that `save` did not write."""
    folder = settings.cache_dir() / "projects" / sha256(path)[:16]
    with _damage(path):
        archive = zipfile.ZipFile(path)
    with archive:
        names = _checked(archive, path)
        with _damage(path):
            description = archive.read("project.json")
        made = _read(description, names)
        with filling(folder) as part:
            for name in names:
                (part / name).parent.mkdir(parents=True, exist_ok=True)
                with (part / name).open("wb") as to:
                    for block in _blocks(archive, name, path):
                        to.write(block)
    return folder, made


def _blocks(archive: zipfile.ZipFile, name: str, path: Path) -> Iterator[bytes]:
    """A file of the archive. Raises ModelFormatError where it is damaged."""
    with _damage(path), archive.open(name) as source:
        while block := source.read(1 << 20):
            yield block


def _checked(archive: zipfile.ZipFile, path: Path) -> list[str]:
    members = archive.infolist()
    names = [member.filename for member in members]
    strange = next((n for n in names if not _NAME.fullmatch(n)), None)
    if strange is not None or len(set(names)) < len(names):
        raise ModelFormatError(
            tr("not a project: it must not hold {name!r}", name=strange or names[0]), where=path
        )
    if "project.json" not in names or len(names) > MOST_FILES:
        raise ModelFormatError(tr("not a project: it lacks project.json"), where=path)
    large = sum(member.file_size for member in members) > MOST_BYTES
    if large or any(m.file_size > MOST_JSON for m in members if m.filename.endswith(".json")):
        fix = tr("at most {size} GiB can be opened", size=MOST_BYTES >> 30)
        raise ModelFormatError(tr("the project is too large"), where=path, fix=fix)
    return names


def _read(data: bytes, names: list[str]) -> Project:
    document = parse(data, "project")
    if document["format"].integer() != 1:
        raise ModelFormatError(
            tr("this project was written by a newer version"),
            where="project.format",
            fix=tr("update lite-workbench"),
        )
    made = document.into(Project)
    for name in (made.model, *made.versions.values(),
                 *(x.file for x in (*made.profiles, *made.comparisons))):  # fmt: skip
        if name not in names:
            raise ModelFormatError(tr("{name!r} is not in the archive", name=name), where="project")
    if made.version not in (*made.versions, made.base):
        raise ModelFormatError(
            tr("there is no version {version!r}", version=made.version), where="project.version"
        )
    if any(len(x.of) != n for n, all_ in ((1, made.profiles), (2, made.comparisons))
           for x in all_):  # fmt: skip
        raise ModelFormatError(tr("a profile is of one backend, a comparison of two sides"),
                               where="project")  # fmt: skip
    return made


def fill(state: SessionState, folder: Path, made: Project) -> None:
    """What the archive holds, into a session of its model. Raises LiteError."""
    for name, inside in made.versions.items():
        state.versions[name] = model = open_model(folder / inside)
        model.path = state.path
    state.version, state.targets, state.precision = made.version, made.targets, made.precision
    state.int8_targets, state.faults = made.int8_targets, made.faults
    held = state.overrides
    held.backends, held.precisions, held.base = made.backends, made.precisions, made.custom_base
    if (folder / "input.npz").is_file():
        state.feeds = read_arrays(folder / "input.npz")
    image = folder / "image.png"
    state.image = image.read_bytes() if image.is_file() else b""
    state.input_name = tr("saved input") if state.feeds is not None else ""
    for one in made.profiles:
        _add_profile(state, one, Profile.from_dict(_part(folder / one.file).value))
    for two in made.comparisons:
        pair = two.of[0], two.of[1]
        state.comparisons[pair] = _part(folder / two.file).into(Comparison)
        state.measured_at["comparison", pair] = two.at
        state.compared_of[pair] = two.version, ""
    state.code, state.notes = made.code, made.notes
    state.selected = made.selected


def _add_profile(state: SessionState, one: Measured, profile: Profile) -> None:
    """A profile of a backend that is not here is kept in the history only."""
    from .predictors import predictor

    (backend,) = one.of
    state.history.append(profile)
    try:
        used = predictor(state, backend, one.version)
    except LiteError:
        return
    state.profiles[backend] = profile
    state.profiled[backend] = one.version, used
    state.measured_at["profile", backend] = one.at


def _part(path: Path) -> Part:
    return parse(path.read_bytes(), path.stem)


# ---- kept by itself


def kept_at(path: Path) -> Path:
    """Where the session of a model keeps itself."""
    name = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]
    return settings.cache_dir() / "sessions" / f"{name}{SUFFIX}"


def keep(state: SessionState) -> Path | None:
    """Keeps the session for `lw.restore`; None when it is too large for that."""
    weights = sum(_bytes(model) for model in state.versions.values())
    if weights > KEPT_BYTES or not state.versions:
        return None
    target = kept_at(state.path)
    make_folder(target.parent)
    made = save(state, target, state.notes, here=str(state.path.resolve()))
    with contextlib.suppress(OSError):  # what cannot be removed now, another time
        for old in _kept()[MOST_KEPT:]:
            old.unlink(missing_ok=True)
    return made


def _kept() -> list[Path]:
    """The newest first."""
    found = (settings.cache_dir() / "sessions").glob(f"*{SUFFIX}")
    return sorted(found, key=lambda p: p.stat().st_mtime, reverse=True)


def _bytes(model: Model) -> int:
    return sum(v.const.nbytes for v in model.graph.constants() if v.const is not None)


def newest_kept(path: str | Path | None = None) -> Path | None:
    """The kept session of a model, or the one that was kept last."""
    if path is not None:
        one = kept_at(Path(path))
        return one if one.is_file() else None
    return next(iter(_kept()), None)
