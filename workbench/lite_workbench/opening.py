"""Opening: a model of any format, a project, or what was kept before the kernel restarted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lite_engine.errors import UsageError
from lite_engine.files import about, model_path, reading
from lite_messages import tr

from .session import Session
from .state import project

if TYPE_CHECKING:
    from lite_engine.pipeline import Pipeline

    from .pipelines.session import PipelineSession


def open_session(path: str | Path, *, shapes: Mapping[str, Sequence[int]] | None = None) -> Session:
    """Opens a model of any format, or a `.liteproject`. Raises LiteError."""
    if project.is_project(Path(path)):
        return _open_project(Path(path))
    return Session(path, shapes=shapes)


def open_any(
    path: str | Path | Pipeline, *, shapes: Mapping[str, Sequence[int]] | None = None
) -> Session | PipelineSession:
    """Opens a model of any format, a `.liteproject`, or a pipeline: its .yaml, .json or .lite file,
    or one that was made in Python. Raises LiteError."""
    from lite_engine.pipeline import Pipeline, is_pipeline

    from .pipelines.session import PipelineSession

    if isinstance(path, Pipeline) or is_pipeline(model_path(path)):
        return PipelineSession(path)
    return open_session(path, shapes=shapes)


def open_pipeline(path: str | Path | Sequence[Mapping[str, Any]]) -> Pipeline:
    """Opens a pipeline's .yaml, .json or .lite file, or any model as a pipeline of its own; or
    makes one of its stages, as a file lists them. Raises LiteError."""
    from lite_engine.pipeline import Pipeline

    return Pipeline.open(path) if isinstance(path, (str, Path)) else Pipeline(path)


def restore(path: str | Path | None = None) -> Session:
    """The session that was open last, or the last one of a model: versions, overrides, profiles,
    comparisons, input and selection. Calibrations are not kept. Raises UsageError when there is
    none."""
    found = project.newest_kept(path)
    if found is None:
        raise UsageError(
            tr("there is no saved session of {path}", path=path)
            if path
            else tr("there is no saved session"),
            fix=tr("open the model with lw.open"),
        )
    return _open_project(found, kept_here=True)


def _open_project(path: Path, *, kept_here: bool = False) -> Session:
    with about(path), reading(path):
        folder, made = project.unpack(path)
        shapes = {name: tuple(shape) for name, shape in made.shapes.items()}
        packed = folder / made.model
        session = Session(_beside(packed, made.path) if kept_here else packed, shapes=shapes)
        project.fill(session, folder, made)
    return session


def _beside(packed: Path, where: str) -> Path:
    """The model's file where it was, if it is there unchanged: what lies beside it is found again
    and the session is kept under the same name. Otherwise the copy that was kept."""
    there = Path(where)
    if not where or not there.is_file() or there.stat().st_size != packed.stat().st_size:
        return packed
    if there.read_bytes() != packed.read_bytes():
        return packed
    here = Path.cwd()
    return there.relative_to(here) if there.is_relative_to(here) else there
