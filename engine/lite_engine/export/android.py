"""Writes a Gradle project: an Android app that runs a pipeline or a model on images."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from lite_messages import tr

from ..errors import BackendUnavailableError
from ..files import filling
from ..pipeline import Pipeline
from .exporter import TEMPLATES, Exported, check_target, sizes_of, write_templates
from .trim import SOURCES

TARGET = "arm"
_CPP = "app/src/main/cpp"
_KOTLIN = "app/src/main/kotlin/lite/app"
#: Template → place in the project.
_FILES = {
    "android/settings.gradle.kts": "settings.gradle.kts",
    "android/build.gradle.kts": "build.gradle.kts",
    "android/app.gradle.kts": "app/build.gradle.kts",
    "android/AndroidManifest.xml": "app/src/main/AndroidManifest.xml",
    "android/MainActivity.kt": f"{_KOTLIN}/MainActivity.kt",
    "android/LiteApp.kt": f"{_KOTLIN}/LiteApp.kt",
    "android/CMakeLists.txt": f"{_CPP}/CMakeLists.txt",
    "android/lite_app_jni.c": f"{_CPP}/lite_app_jni.c",
    "android/README.md": "README.md",
}
#: Where the sources lie.
_SOURCE_FOLDERS = (f"{_CPP}/native", f"{_CPP}/lite_engine")
#: What CMake needs of the runtime's sources, and of the files beside them that it builds in.
_SOURCES = ("CMakeLists.txt", "cmake", "include", "src")
_BESIDE = ("_version.py", "backends/opencl/places.txt", "backends/opencl/kernels")


def export_android(pipeline: Pipeline, folder: Path) -> Exported:
    """Fills `folder` (made when missing, files of an earlier export replaced), whole or not at all.
    CPU programs are those of the target arm, OpenCL programs those that the models have.

    Raises TargetMismatchError when a model has no program for it, BackendUnavailableError without
    the runtime's sources, LiteError when writing fails.
    """
    for part in pipeline.parts:
        check_target(part.model, TARGET)
    if not (SOURCES / "CMakeLists.txt").is_file():
        raise BackendUnavailableError(
            tr("--android writes the runtime's sources, which a wheel does not carry"),
            fix=tr("use a source checkout"),
        )
    opencl = all("opencl" in part.model.targets for part in pipeline.parts)
    with filling(folder) as into:
        assets = into / "app/src/main/assets"
        assets.mkdir(parents=True)
        pipeline.save(assets / "model.lite", [TARGET])
        _copy_sources(into / _CPP)
        # Gradle and XML would read other characters as their own.
        name = re.sub(r"[^\w .-]", "_", pipeline.name) or "model"
        told = "" if opencl else (TEMPLATES / "no_opencl.md").read_text("utf-8")
        write_templates(into, _FILES, {"@NAME@": name, "@OPENCL@": told})
        exported = Exported(folder, "android", _told(sizes_of(into)))
    return exported


def _told(sizes: dict[str, int]) -> dict[str, int]:
    """The sources, counted by folder: a list of hundreds of files helps no one."""
    told: dict[str, int] = {}
    for file, size in sizes.items():
        folder = next((f for f in _SOURCE_FOLDERS if file.startswith(f"{f}/")), file)
        told[folder] = told.get(folder, 0) + size
    return told


def _copy_sources(cpp: Path) -> None:
    """In the places that the runtime's CMake files know them by."""
    engine = SOURCES.parent / "lite_engine"
    pairs = [(SOURCES / name, cpp / "native" / name) for name in _SOURCES]
    pairs += [(engine / name, cpp / "lite_engine" / name) for name in _BESIDE]
    for source, target in pairs:
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copyfile(source, target)
