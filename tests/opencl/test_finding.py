"""Machines without OpenCL, or with a broken one: the cause is named, and the CPU takes over."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.small_models import classifier


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


#: A driver with one platform and no device; every other entry of its table refuses too.
EMPTY_DRIVER = r"""
#include <string.h>
typedef int (*entry)(void);
static int refuse(void) { return -1; } /* CL_DEVICE_NOT_FOUND */
static int info(void *platform, unsigned what, size_t room, void *value, size_t *needed) {
  const char *text = what == 0x0904 ? "cl_khr_icd" : what == 0x0901 ? "OpenCL 1.2 " : "EMPTY";
  if (value && room > strlen(text)) strcpy((char *)value, text);
  if (needed) *needed = strlen(text) + 1;
  return 0;
}
static entry table[256];
static struct { entry *table; } platform = {table};
int clIcdGetPlatformIDsKHR(unsigned room, void **platforms, unsigned *count) {
  for (int i = 0; i < 256; ++i) table[i] = refuse;
  table[1] = (entry)info;
  if (room && platforms) platforms[0] = &platform;
  if (count) *count = 1;
  return 0;
}
int clGetPlatformIDs(unsigned room, void **platforms, unsigned *count) {
  return clIcdGetPlatformIDsKHR(room, platforms, count);
}
int clGetPlatformInfo(void *p, unsigned what, size_t room, void *value, size_t *needed) {
  return info(p, what, room, value, needed);
}
int clGetDeviceIDs(void) { return -1; }
void *clGetExtensionFunctionAddress(const char *name) {
  return strcmp(name, "clIcdGetPlatformIDsKHR") ? 0 : (void *)clIcdGetPlatformIDsKHR;
}
"""


def empty_driver(folder: Path) -> Path:
    compiler = next((c for c in ("cc", "gcc", "clang") if shutil.which(c)), None)
    if compiler is None:
        pytest.skip("no C compiler")
    source, library = folder / "empty.c", folder / "libempty.so"
    source.write_text(EMPTY_DRIVER)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-w", "-o", library, source], check=True, timeout=60
    )
    return library


def broken(kind: str, folder: Path) -> dict[str, str]:
    """Variables of a machine whose OpenCL is broken in that way."""
    icds = folder / "icds"
    icds.mkdir()
    if kind == "broken driver":
        library = folder / "libbroken.so"
        library.write_bytes(b"\x7fELF not a library at all")
        (icds / "broken.icd").write_text(f"{library}\n")
    if kind == "no device":
        (icds / "empty.icd").write_text(f"{empty_driver(folder)}\n")
    if kind == "not OpenCL":
        return {"LITE_OPENCL_LIBRARY": "libm.so.6", "OCL_ICD_VENDORS": str(icds)}
    return {"OCL_ICD_VENDORS": str(icds)}


KINDS = {
    "no driver": "platform",
    "broken driver": "libbroken.so",
    "not OpenCL": "libm.so.6",
    "no device": "no device",
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
@pytest.mark.parametrize("kind", ["no driver", "broken driver", "no device"])
def test_auto_runs_on_the_cpu_and_says_so(kind: str, tmp_path, root: Path, model: Path) -> None:
    done = lite(["run", str(model), "-v"], root, **broken(kind, tmp_path))
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert KINDS[kind] in said and "runs on x86" in said
