"""What a person wrote in a folder outlives an export to it."""

from __future__ import annotations

from pathlib import Path

import lite_workbench as lw
import pytest
from lite_engine import optimize
from lite_engine.export import export_application, export_model
from lite_engine.pipeline import Pipeline
from lite_engine.runtime import host_target

from tests.small_models import classifier

pytestmark = pytest.mark.cpu


def _kept(folder: Path) -> dict[str, str]:
    return {
        str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if ".old" in p.name
    }


def test_a_folder_with_files_of_its_own(tmp_path: Path) -> None:
    model = optimize(classifier(), targets=[host_target()])
    (tmp_path / "README.md").write_text("my project")
    (tmp_path / "CMakeLists.txt").write_text("my build")
    made = export_model(model, tmp_path, host_target())
    assert _kept(tmp_path) == {"README.md.old": "my project", "CMakeLists.txt.old": "my build"}
    assert {"README.md.old", "CMakeLists.txt.old"} <= made.sizes.keys(), "the command lists them"
    assert "lite_run" in (tmp_path / "README.md").read_text()

    before = _kept(tmp_path)
    export_model(model, tmp_path, host_target(), more=lambda m: (m.folder / "x").write_text("x"))
    assert _kept(tmp_path) == before, "the export's own files are no person's"

    (tmp_path / "CMakeLists.txt").write_text("my second build")
    export_model(model, tmp_path, host_target())
    assert _kept(tmp_path) == {**before, "CMakeLists.txt.old1": "my second build"}


def test_the_program_that_grew_from_an_application(tmp_path: Path) -> None:
    """docs/pipelines.md: "`app/app.cpp` is where your own program begins"."""
    pipeline = Pipeline.open(lw.shipped("ocr.onnx"))
    export_application(pipeline, tmp_path, host_target())
    assert _kept(tmp_path) == {}
    program = tmp_path / "app" / "app.cpp"
    template = program.read_text()
    program.write_text("int main() { return mine(); }")
    made = export_application(pipeline, tmp_path, host_target())
    assert program.read_text() == template
    assert _kept(tmp_path) == {"app/app.cpp.old": "int main() { return mine(); }"}
    assert "app/app.cpp.old" in made.sizes
