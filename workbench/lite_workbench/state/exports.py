"""What leaves a session: a `.lite` file, or the folder for a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from lite_engine.model_file import Model, read_model

from ..names import with_ending
from . import lite_file
from ._state import SessionState

if TYPE_CHECKING:
    from lite_engine.export import Exported


def export_file(state: SessionState, path: str | Path, int8: Sequence[str] | None) -> Path:
    """The chosen version as a `.lite` file. Raises LiteError."""
    made = _model(state, int8).save(with_ending(path, ".lite"))
    _keep(state, made, f"{str(path)!r}")
    return made


def export_folder(
    state: SessionState,
    path: str | Path,
    target: str,
    int8: Sequence[str] | None,
    write_report: Callable[[Path], object],
) -> Exported:
    """The folder for a device of that target, with the page that `write_report` writes. Raises
    LiteError."""
    from lite_engine.export import export_model

    made = export_model(
        _model(state, int8), Path(path), target,
        more=lambda part: write_report(part.folder / "report.html"),
    )  # fmt: skip
    _keep(state, made, f"{str(path)!r}, target={target!r}")
    return made


def written(state: SessionState) -> tuple[int, Model]:
    """Bytes of the file that an export writes, and the model as it holds it, which says why a
    target has no program. Raises LiteError."""
    with TemporaryDirectory() as folder:
        path = _model(state, None).save(Path(folder) / f"{state.path.stem}.lite")
        return path.stat().st_size, read_model(path)


def _model(state: SessionState, int8: Sequence[str] | None) -> Model:
    if int8 is not None:
        state.int8_targets = list(int8)
    return lite_file.to_ship(state, state.int8_targets)


def _keep(state: SessionState, made: Path | Exported, given: str) -> None:
    more = f", int8={state.int8_targets!r}" if state.int8_targets else ""
    state.remember(f"session.export({given}{more})")
    state.exported = made
    state.notify("exported", made)
