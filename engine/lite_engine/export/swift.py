"""Writes a Swift package: the runtime, and a pipeline or a model that runs on images, for apps on
iOS and macOS and for programs on Linux."""

from __future__ import annotations

from pathlib import Path

from ..files import filling
from ..pipeline import Pipeline
from .android import plain_name
from .exporter import Exported, check_target, sizes_of, write_templates
from .sources import check_sources, copy_sources, told

TARGET = "arm"
#: What models without targets are converted for: PCs with Linux run the package, too.
_BOTH = (TARGET, "x86")
_RUNTIME = "Runtime"
#: Template → place in the package.
_FILES = {
    "swift/Package.swift": "Package.swift",
    "swift/build.sh": "build.sh",
    "swift/CMakeLists.txt": f"{_RUNTIME}/CMakeLists.txt",
    "swift/apple.modulemap": f"{_RUNTIME}/apple.modulemap",
    "swift/linux.modulemap": "Sources/CLite/module.modulemap",
    "swift/LiteApp.swift": "Sources/Lite/LiteApp.swift",
    "swift/LiteModel.swift": "Sources/Lite/LiteModel.swift",
    "swift/LiteError.swift": "Sources/Lite/LiteError.swift",
    "swift/main.swift": "Sources/sample/main.swift",
    "swift/README.md": "README.md",
}


def export_swift(pipeline: Pipeline, folder: Path) -> Exported:
    """Fills `folder` (made when missing, files of an earlier export replaced), whole or not at all,
    with the programs that the models have; those without any get CPU programs for arm and x86.

    Raises TargetMismatchError when a model has no program for arm, BackendUnavailableError without
    the runtime's sources, LiteError when writing fails.
    """
    for part in pipeline.parts:
        check_target(part.model, TARGET)
    check_sources("--swift")
    with filling(folder) as into:
        resources = into / "Sources/Lite/Resources"
        resources.mkdir(parents=True)
        pipeline.save(resources / "model.lite", _BOTH)
        copy_sources(into / _RUNTIME)
        write_templates(into, _FILES, {"@NAME@": plain_name(pipeline)})
        (into / "build.sh").chmod(0o755)
        exported = Exported(folder, "swift", told(sizes_of(into), _RUNTIME))
    return exported
