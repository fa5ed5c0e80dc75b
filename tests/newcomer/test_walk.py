"""CONTRIBUTING's recipe, followed to the letter in a copy of the repository.

`files/` holds what a newcomer writes for an operator that the project does not have, with kernels
of its own on CPUs and OpenCL. A fifth file, an importer, gets one line.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from lite_engine.ops import find_op

OPERATOR = "PairwiseDistance"
FILES = Path(__file__).parent / "files"
IMPORTER, ROW = "engine/lite_engine/importers/onnx/vendor.py", '    "BiasGelu",\n'
#: As many as a newcomer may have to touch.
MOST_FILES = 5
#: The copy's packages before those of an editable installation.
FIRST = """
import sys
sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in type(f).__module__]
"""


def run(folder: Path, *command: str) -> str:
    paths = [folder, *(folder / part for part in ("engine", "widgets", "workbench"))]
    variables = {
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "LITE_CACHE_DIR": str(folder / "cache"),
    }
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True,
        timeout=3000,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def copy(root: Path, source_files: list[str], tmp_path_factory) -> Path:
    """The repository's files with the operator in it, built for this machine and AArch64."""
    folder = tmp_path_factory.mktemp("newcomer")
    for name in source_files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, folder / name)
        shutil.copymode(root / name, folder / name)
    shutil.copytree(FILES, folder, dirs_exist_ok=True)
    text = (folder / IMPORTER).read_text()
    assert text.count(ROW) == 1
    (folder / IMPORTER).write_text(text.replace(ROW, f'{ROW}    "{OPERATOR}",\n'))
    (folder / "sitecustomize.py").write_text(FIRST)
    for variant in ("native", "aarch64"):
        run(folder, "scripts/native.sh", variant)
    return folder


def test_five_files_are_enough() -> None:
    assert find_op(OPERATOR) is None, "choose an operator for files/ that the project does not have"
    assert len([p for p in FILES.rglob("*") if p.is_file()]) + 1 <= MOST_FILES


@pytest.mark.slow
@pytest.mark.arm
@pytest.mark.opencl
def test_one_command_runs_its_kernels_everywhere(copy: Path) -> None:
    rows = run(copy, sys.executable, "-m", "lite_engine.testing", OPERATOR).splitlines()
    places = [" ".join(row.split()[1:-4]) for row in rows]
    assert {"emulated ARM", "opencl"} < set(places) and len(places) > 2
    for row in rows:
        agreed, total = (int(row.split()[i]) for i in (-4, -2))
        assert agreed == total > 5, row


@pytest.mark.slow
@pytest.mark.arm
@pytest.mark.opencl
@pytest.mark.offline
def test_the_projects_own_tests_take_it_in(copy: Path) -> None:
    """Its registration, each list of kernels, the source for every OpenCL compiler."""
    tests = ["tests/ops/test_pairwise_distance.py", "tests/ops/test_registry.py",
             "tests/opencl/test_kernels.py::test_every_kernel_of_the_registry_has_a_case",
             "tests/opencl/test_reach.py::test_every_kernel_states_its_reach",
             "tests/house/test_operator_lists.py"]  # fmt: skip
    said = run(copy, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
    assert " passed" in said and "failed" not in said
