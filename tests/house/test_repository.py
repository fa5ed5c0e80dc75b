"""The house's own promises: required tools, versions, entry points, import floors, Binder files."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys

import pytest
from lite_engine import __version__ as version

from tests.conftest import SWEEPS


def test_required_tools_are_here(required_tools, require):
    for tool in sorted(required_tools - {*SWEEPS}):
        require(tool)


@pytest.mark.sweep
def test_required_builds_are_here(required_tools, require):
    for tool in sorted(required_tools & {*SWEEPS}):
        require(tool)


def test_version_is_the_same_everywhere(root):
    assert importlib.metadata.version("lite-workbench") == version
    changelog = (root / "CHANGELOG.md").read_text()
    assert re.search(r"^## \[?([0-9.]+)", changelog, re.M).group(1) == version


def test_top_level_is_the_house(source_files):
    """A new folder or file at the top needs a line in ARCHITECTURE.md or docs, and here."""
    known = {"engine", "widgets", "workbench", "notebooks", "tests", "binder", "docs",
             "benchmarks", "scripts", ".ci", ".github"}  # fmt: skip
    folders = {name.split("/")[0] for name in source_files if "/" in name}
    assert folders <= known
    files = {name for name in source_files if "/" not in name}
    assert files <= {
        ".gitignore", "ARCHITECTURE.md", "CHANGELOG.md", "CITATION.cff", "CODE_OF_CONDUCT.md",
        "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "README.zh-CN.md", "SECURITY.md",
        "mkdocs.yml", "pyproject.toml",
    }  # fmt: skip


def test_importing_the_packages_needs_no_framework():
    """Importing must work with the base dependencies only."""
    code = (
        "import sys, lite_engine, lite_workbench\n"
        "heavy = {'onnx', 'onnxruntime', 'torch', 'tensorflow', 'paddle', 'pandas', 'plotly',"
        " 'jupyterlab', 'pyopencl', 'google.protobuf'}\n"
        "print(' '.join(sorted(heavy & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_image_is_made_from_what_binder_reads(root):
    """Its Python is Debian's, and the packages of requirements.txt are pyproject.toml's."""
    recipe = (root / "scripts" / "packaging" / "Dockerfile").read_text()
    names = {p.name for p in (root / "binder").iterdir()} - {"runtime.txt", "requirements.txt"}
    assert {name for name in names if f"binder/{name}" in recipe} == names
    wanted = (root / "binder" / "requirements.txt").read_text()
    (extras,) = re.findall(r"^\.\[(.*)\]$", wanted, re.M)
    assert all(f'"{extra}"' in recipe for extra in extras.split(","))


def test_a_dry_run_runs_nothing(root, tmp_path):
    """`make -n` only prints, for every target. A line with $(MAKE) would be run even then."""
    makefile = (root / "Makefile").read_text()
    shutil.copy(root / "Makefile", tmp_path)
    ran = tmp_path / "ran"
    for name in ("pytest", "ruff", "lint-imports", "mypy", "python", "lite"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {name} >> {ran}\n")
        (tmp_path / name).chmod(0o755)
    path = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    targets = re.findall(r"^([a-z-]+):.*##", makefile, re.M)
    assert "test" in targets
    done = subprocess.run(
        ["make", "-n", *targets], cwd=tmp_path, env=path, capture_output=True, text=True
    )
    assert done.returncode == 0 and "pytest --all" in done.stdout, done.stderr
    assert not ran.exists(), ran.read_text()
