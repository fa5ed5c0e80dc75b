"""Machines without OpenCL, or with a broken one: the cause is named, and the CPU takes over."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.small_models import classifier

CODE = """
import sys
from lite_engine.backends.opencl import discover
found = [(a.candidate, a.found_by, a.reason) for a in discover.attempts()]
print(found)
print(*discover.why_not(), sep=" | ")
"""


def lite(args: list[str], root: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("LITE_OPENCL", "OCL_"))}
    return subprocess.run(
        [sys.executable, "-m", "lite_workbench.cli", *args],
        env={**env, **variables}, cwd=root, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    from lite_engine.model_file import Model

    path = tmp_path_factory.mktemp("finding") / "classifier.lite"
    Model(classifier(), targets=["opencl", "x86"]).save(path)
    return path


def broken(kind: str, folder: Path) -> dict[str, str]:
    """Variables of a machine whose OpenCL is broken in that way."""
    icds = folder / "icds"
    icds.mkdir()
    if kind == "broken driver":
        library = folder / "libbroken.so"
        library.write_bytes(b"\x7fELF not a library at all")
        (icds / "broken.icd").write_text(f"{library}\n")
    if kind == "not OpenCL":
        return {"LITE_OPENCL_LIBRARY": "libm.so.6", "OCL_ICD_VENDORS": str(icds)}
    return {"OCL_ICD_VENDORS": str(icds)}


KINDS = {
    "no driver": "platform",
    "broken driver": "libbroken.so",
    "not OpenCL": "libm.so.6",
}


@pytest.mark.parametrize("kind", KINDS)
def test_doctor_names_cause_and_fix(kind: str, tmp_path: Path, root: Path) -> None:
    done = lite(["doctor", "--backend", "opencl"], root, **broken(kind, tmp_path))
    assert done.returncode == 1, done.stdout + done.stderr
    said = done.stdout + done.stderr
    assert KINDS[kind] in said and "Traceback" not in said
    assert any(word in said for word in ("install", "unset", "LITE_OPENCL_LIBRARY")), said


@pytest.mark.parametrize("kind", KINDS)
def test_forced_backend_fails_in_one_line(
    kind: str, tmp_path: Path, root: Path, model: Path
) -> None:
    done = lite(["run", str(model), "--backend", "opencl"], root, **broken(kind, tmp_path))
    assert done.returncode != 0
    lines = [x for x in done.stderr.splitlines() if x.strip()]
    assert len(lines) == 1 and KINDS[kind] in lines[0], done.stderr


@pytest.mark.cpu
@pytest.mark.parametrize("kind", ["no driver", "broken driver"])
def test_auto_runs_on_the_cpu_and_says_so(kind: str, tmp_path, root: Path, model: Path) -> None:
    done = lite(["run", str(model), "-v"], root, **broken(kind, tmp_path))
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert KINDS[kind] in said and "runs on x86" in said
