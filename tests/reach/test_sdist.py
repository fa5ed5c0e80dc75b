"""The sdist is enough: unpacked, it builds in a fresh environment, and its tests pass there."""

from __future__ import annotations

import os
import sys
import tarfile
from pathlib import Path

import pytest

from ..house.test_wheel import run

pytestmark = pytest.mark.hours

#: What these tests import, and what the build needs (the sdist's own build would fetch the same).
NEEDS = (
    "pytest",
    "hypothesis",
    "onnx",
    "onnxruntime",
    "jsonschema",
    "scikit-build-core",
    "cmake",
    "ninja",
)
TESTS = ("tests/ir", "tests/passes", "tests/model_file", "tests/native/runtime/test_runtime.py",
         "tests/reach/test_system.py", "tests/runtime/test_threads.py")  # fmt: skip


def unpacked_sdist(root: Path, folder: Path) -> Path:
    options = ("--sdist", "--no-isolation", "--skip-dependency-check", "--outdir", folder)
    run(sys.executable, "-m", "build", *options, f"-Cbuild-dir={folder}/build", root)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as source:
        source.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def test_it_builds_and_its_tests_pass(root, tmp_path):
    here = unpacked_sdist(root, tmp_path)
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    programs = tmp_path / "venv" / "bin"
    env = {**os.environ, "PATH": f"{programs}:{os.defpath}", "VIRTUAL_ENV": str(tmp_path / "venv")}
    pip = (programs / "python", "-m", "pip", "install", "-q", "-c", "binder/constraints.txt")
    run(*pip, *NEEDS, cwd=here, env=env)
    run(*pip, "--no-build-isolation", "-e", ".", cwd=here, env=env)
    run("scripts/native.sh", "native", cwd=here, env=env, timeout=3600)
    told = run(programs / "python", "-m", "pytest", "-q", *TESTS, cwd=here, env=env, timeout=3600)
    assert " passed" in told and " failed" not in told
