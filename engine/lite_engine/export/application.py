"""Writes a folder with a whole application: a pipeline, the runtime, and programs that use them."""

from __future__ import annotations

from pathlib import Path

from .._native import header_path, library_path, runner_path
from ..files import filling
from ..pipeline import Pipeline
from .exporter import ARCHITECTURES, Exported, check_target, copy, sizes_of, write_templates

#: Template → place in the folder.
_FILES = {
    "app.cpp": "app/app.cpp",
    "app.py": "app/app.py",
    "app_CMakeLists.txt": "CMakeLists.txt",
    "app_README.md": "README.md",  # last: it lists the others with their sizes
}


def export_application(pipeline: Pipeline, folder: Path, target: str = "arm") -> Exported:
    """Fills `folder` (made when missing, files of an earlier export replaced), whole or not at all.

    Raises UsageError for an unknown target, TargetMismatchError when a model has no program for it,
    BackendUnavailableError when its runner was not built, LiteError when writing fails.
    """
    for part in pipeline.parts:
        check_target(part.model, target)
    arch = ARCHITECTURES[target]
    with filling(folder) as into:
        made = pipeline.save(into / f"{pipeline.name}.lite", [target])
        copy(runner_path(arch), into / "bin" / "lite_run", executable=True)
        copy(library_path(arch), into / "lib" / "liblite_runtime.so")
        copy(header_path(), into / "include" / "lite_runtime.h")
        marks = {"@MODEL@": made.name, "@NAME@": pipeline.name, "@TARGET@": target, "@ARCH@": arch}
        write_templates(into, _FILES, marks)
        exported = Exported(folder, target, sizes_of(into))
    return exported
