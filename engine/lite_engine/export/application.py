"""Writes a folder with a whole application: a pipeline, the runtime, and programs that use them."""

from __future__ import annotations

from pathlib import Path

from .._native import header_path, library_path, runner_path, web_module_path
from ..files import filling
from ..pipeline import Pipeline
from . import web
from .exporter import (
    ARCHITECTURES,
    Exported,
    check_programs,
    check_target,
    copy,
    keep_changed,
    sizes_of,
    write_templates,
)
from .trim import Trimmed, trim

#: Template → place in the folder.
_FILES = {
    "app.cpp": "app/app.cpp",
    "app.py": "app/app.py",
    "app_CMakeLists.txt": "CMakeLists.txt",
    "app_README.md": "README.md",  # last: it lists the others with their sizes
}


def export_application(
    pipeline: Pipeline, folder: Path, target: str = "arm", *, trimmed: bool = False
) -> Exported:
    """Fills `folder` (made when missing, files of an earlier export replaced, what a person changed
    kept as `.old`), whole or not at all, for a CPU target or "web"; `trimmed` builds a runtime with
    the kernels of these models.

    Raises UsageError for an unknown target, TargetMismatchError when a model has no program for it,
    BackendUnavailableError when its runner was not built, LiteError when writing fails.
    """
    for part in pipeline.parts:
        check_target(part.model, target)
    models = [model for part in pipeline.parts for model in part.sized()]
    cut = trim(models, target, pipelines=True) if trimmed else None
    with filling(folder) as into:
        fill = _fill_web if target == web.TARGET else _fill
        fill(pipeline, into, target, cut)
        keep_changed(folder, into)
        exported = Exported(folder, target, sizes_of(into), cut.kernels if cut else [])
    return exported


def runtime_bytes(target: str) -> int:
    """Of the runner and the library of an application, or of a page's module. Raises
    BackendUnavailableError when they were not built."""
    if target == web.TARGET:
        return web_module_path().stat().st_size
    arch = ARCHITECTURES[target]
    return runner_path(arch).stat().st_size + library_path(arch).stat().st_size


def _fill(pipeline: Pipeline, into: Path, target: str, cut: Trimmed | None) -> None:
    arch = ARCHITECTURES[target]
    made = pipeline.save(into / f"{pipeline.name}.lite", [target])
    _check(made, target)
    copy(cut.runner if cut else runner_path(arch), into / "bin" / "lite_run", executable=True)
    copy(cut.library if cut else library_path(arch), into / "lib" / "liblite_runtime.so")
    copy(header_path(), into / "include" / "lite_runtime.h")
    marks = {"@MODEL@": made.name, "@NAME@": pipeline.name, "@TARGET@": target, "@ARCH@": arch}
    write_templates(into, _FILES, marks)


def _fill_web(pipeline: Pipeline, into: Path, target: str, cut: Trimmed | None) -> None:
    made = web.fill_pipeline(pipeline, into, cut.module if cut else None)
    _check(made, target)
    marks = {"@MODEL@": made.name, "@NAME@": pipeline.name}
    write_templates(into, {web.PIPELINE_README: "README.md"}, marks)


def _check(made: Path, target: str) -> None:
    """Raises TargetMismatchError."""
    check_programs((part.model for part in Pipeline.open(made).parts), target)
