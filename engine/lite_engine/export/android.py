"""Writes a Gradle project: an Android app that runs a pipeline or a model on images."""

from __future__ import annotations

import re
from pathlib import Path

from ..files import filling
from ..pipeline import Pipeline
from .exporter import TEMPLATES, Exported, check_target, sizes_of, write_templates
from .sources import check_sources, copy_sources, told

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
    "android/PhotoProvider.kt": f"{_KOTLIN}/PhotoProvider.kt",
    "android/LiteApp.kt": f"{_KOTLIN}/LiteApp.kt",
    "android/CMakeLists.txt": f"{_CPP}/CMakeLists.txt",
    "android/lite_app_jni.c": f"{_CPP}/lite_app_jni.c",
    "android/README.md": "README.md",
}


def export_android(pipeline: Pipeline, folder: Path) -> Exported:
    """Fills `folder` (made when missing, files of an earlier export replaced), whole or not at all.
    CPU programs are those of the target arm, OpenCL programs those that the models have.

    Raises TargetMismatchError when a model has no program for it, BackendUnavailableError without
    the runtime's sources, LiteError when writing fails.
    """
    for part in pipeline.parts:
        check_target(part.model, TARGET)
    check_sources("--android")
    opencl = all("opencl" in part.model.targets for part in pipeline.parts)
    with filling(folder) as into:
        assets = into / "app/src/main/assets"
        assets.mkdir(parents=True)
        pipeline.save(assets / "model.lite", [TARGET])
        copy_sources(into / _CPP)
        no_opencl = "" if opencl else (TEMPLATES / "no_opencl.md").read_text("utf-8")
        marks = {"@NAME@": plain_name(pipeline), "@OPENCL@": no_opencl,
                 "@INPUT@": "audio" if pipeline.hears else "image"}  # fmt: skip
        write_templates(into, _FILES, marks)
        exported = Exported(folder, "android", told(sizes_of(into), _CPP))
    return exported


def plain_name(pipeline: Pipeline) -> str:
    """The name without characters that Gradle, XML or Swift would read as their own."""
    return re.sub(r"[^\w .-]", "_", pipeline.name) or "model"
