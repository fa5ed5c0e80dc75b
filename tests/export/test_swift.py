"""The exported Swift package: whole, its runtime builds, and its sample answers as Python does."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from lite_engine import optimize
from lite_engine._native import header_path
from lite_engine.errors import TargetMismatchError
from lite_engine.export import export_swift
from lite_engine.pipeline import Pipeline
from lite_engine.runtime import host_target
from lite_workbench.cli import main
from PIL import Image

from tests.export.test_export import run, tool
from tests.small_models import classifier

pytestmark = pytest.mark.cpu


@pytest.fixture(scope="module")
def package(model, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("swift") / "package"
    assert main(["export", str(model), "-o", str(folder), "--swift"]) == 0
    return folder


def test_the_package_is_whole(package, model):
    carried = Pipeline.open(package / "Sources/Lite/Resources/model.lite")
    assert carried.parts[0].model.targets == Pipeline.open(model).parts[0].model.targets
    manifest = (package / "Package.swift").read_text()
    assert 'name: "it_s _a_ _model"' in manifest
    for name in re.findall(r'\.(?:executableT|t)arget\(\s*name: "(\w+)"', manifest):
        assert list((package / "Sources" / name).glob("*.swift")), name
    modules = [package / "Sources/CLite/module.modulemap", package / "Runtime/apple.modulemap"]
    for module in modules:
        (header,) = re.findall(r'header "(.*)"', module.read_text())
        assert Path(header).name == header_path().name
    assert (modules[0].parent / re.findall(r'header "(.*)"', modules[0].read_text())[0]).is_file()
    assert os.access(package / "build.sh", os.X_OK)
    for file in package.glob("**/*.swift"):
        assert not re.search(r"@[A-Z]+@", file.read_text()), file


def test_swift_calls_what_the_header_has(package):
    declared = set(re.findall(r"\b(lite_\w+)", header_path().read_text()))
    for file in (package / "Sources/Lite").glob("*.swift"):
        assert set(re.findall(r"\b(lite_\w+)", file.read_text())) <= declared, file.name


def test_cmake_has_the_library_that_build_sh_names(package, tmp_path):
    (name,) = re.findall(r"--target (\w+)", (package / "build.sh").read_text())
    cmake = tool("cmake")
    run(cmake, "-S", package / "Runtime", "-B", tmp_path, "-DCMAKE_BUILD_TYPE=Release")
    assert name in run(cmake, "--build", tmp_path, "--target", "help")


@pytest.mark.hours
def test_the_sample_answers(package, model, tmp_path):
    """Built by build.sh and Swift's own tools; one line of error for a file that is no image."""
    swift = tool("swift")
    made = Path(shutil.copytree(package, tmp_path / "package"))
    run("sh", made / "build.sh")
    photo, drawn = tmp_path / "photo.png", tmp_path / "drawn.png"
    Image.linear_gradient("L").convert("RGB").save(photo)
    run(swift, "build", "-c", "release", "--package-path", made)
    sample = made / ".build/release/sample"
    env = {**os.environ, "LITE_BACKEND": host_target()}
    done = subprocess.run([sample, photo, drawn], capture_output=True, encoding="utf-8", env=env)
    assert done.returncode == 0, done.stderr
    got = next(iter(json.loads(done.stdout)["answers"].values()))["items"]
    want = next(iter(Pipeline.open(model).run(photo)["answers"].values()))["items"]
    assert [i["label"] for i in got] == [i["label"] for i in want]
    assert [i["score"] for i in got] == pytest.approx([i["score"] for i in want], rel=1e-3)
    assert Image.open(drawn).size == (256, 256)
    done = subprocess.run([sample, made / "README.md"], capture_output=True, encoding="utf-8")
    assert done.returncode == 1 and re.fullmatch(r"error: .*image.*\n", done.stderr)


def test_refusals(model, tmp_path, capsys):
    other = optimize(classifier(), targets=["x86"]).save(tmp_path / "x86.lite")
    with pytest.raises(TargetMismatchError, match="converted for x86, not arm"):
        export_swift(Pipeline.open(other), tmp_path / "a")
    for more in ("--trim", "--android"):
        assert main(["export", str(model), "-o", str(tmp_path / "a"), "--swift", more]) == 2
        assert "--swift" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()
