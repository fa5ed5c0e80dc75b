"""Libraries that cannot be opened, each for another reason: real files, the real loader."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from lite_engine.backends.opencl import opening
from lite_engine.backends.opencl.opening import open_all

from tests.opencl.drivers import shared_object

GOOD = "int clGetPlatformIDs(unsigned n, void *p, unsigned *c) { if (c) *c = 1; return 0; }"


def opened(path: Path | str) -> opening.Opening:
    return open_all([str(path)])[str(path)]


def test_a_good_library_and_one_without_platforms(tmp_path: Path) -> None:
    assert opened(shared_object(tmp_path / "good.so", GOOD)).kind == "opened"
    empty = shared_object(tmp_path / "empty.so", GOOD.replace("*c = 1", "*c = 0"))
    assert opened(empty).kind == "no_platform" and "pocl-opencl-icd" in opened(empty).fix


@pytest.mark.parametrize("name", ["libno-such-opencl.so.1", "/no/such/libOpenCL.so"])
def test_a_missing_file(name: str) -> None:
    assert opened(name).kind == "missing"


def test_a_missing_dependency_is_named(tmp_path: Path) -> None:
    needed = shared_object(tmp_path / "libneeded-here.so", "int needed(void) { return 1; }")
    source = GOOD + "int needed(void); int use(void) { return needed(); }"
    library = shared_object(
        tmp_path / "driver.so", source, f"-L{tmp_path}", "-lneeded-here", "-Wl,--no-as-needed"
    )
    needed.unlink()
    found = opened(library)
    assert found.kind == "dependency" and "needs libneeded-here.so" in found.reason
    assert "libneeded-here.so" in found.fix


def test_another_architecture(tmp_path: Path) -> None:
    compiler = shutil.which("aarch64-linux-gnu-gcc") or shutil.which("aarch64-linux-gnu-g++")
    if compiler is None or os.uname().machine == "aarch64":
        pytest.skip("no cross compiler for another machine; apt-get install g++-aarch64-linux-gnu")
    source, library = tmp_path / "a.c", tmp_path / "libarm.so"
    source.write_text(GOOD)
    command = [compiler, "-x", "c", "-shared", "-fPIC", "-nostdlib", "-o", library, source]
    subprocess.run(command, check=True, timeout=60)
    found = opened(library)
    assert found.kind == "architecture" and "for AArch64" in found.reason


def test_a_library_that_crashes_does_not_hide_the_others(tmp_path: Path) -> None:
    crash = "#include <stdlib.h>\n__attribute__((constructor)) static void go(void) { abort(); }"
    bad = shared_object(tmp_path / "crash.so", crash)
    good = shared_object(tmp_path / "good.so", GOOD)
    found = open_all([str(bad), str(good), "/no/such.so"])
    assert [found[str(p)].kind for p in (bad, good, "/no/such.so")] == [
        "crashed", "opened", "missing",
    ]  # fmt: skip
    assert "SIGABRT" in found[str(bad)].reason


def test_a_library_that_hangs_does_not_hide_the_others(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(opening, "TIMEOUT_S", 3)
    wait = "#include <unistd.h>\n__attribute__((constructor)) static void go(void) { sleep(60); }"
    bad = shared_object(tmp_path / "hang.so", wait)
    good = shared_object(tmp_path / "good.so", GOOD)
    found = open_all([str(bad), str(good)])
    assert [found[str(p)].kind for p in (bad, good)] == ["hung", "opened"]


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"text that is no library" * 9])
def test_a_damaged_file(content: bytes, tmp_path: Path) -> None:
    library = tmp_path / "damaged.so"
    library.write_bytes(content)
    assert opened(library).kind == "damaged"


def test_not_opencl() -> None:
    found = opened("libm.so.6")
    assert found.kind == "not_opencl" and "libmali.so" in found.fix


def test_what_the_loader_says_of_a_file_without_permission(tmp_path: Path) -> None:
    """glibc's words, for those who may read every file."""
    library = shared_object(tmp_path / "a b.so", GOOD)
    found = opening._refused(
        str(library), f"{library}: cannot open shared object file: Permission denied"
    )
    assert found.kind == "permission" and found.fix == f"sudo chmod a+rx '{library}'"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_no_permission(tmp_path: Path) -> None:
    library = shared_object(tmp_path / "closed.so", GOOD)
    library.chmod(0)
    found = opened(library)
    assert found.kind == "permission" and found.fix.startswith("sudo chmod")


def test_the_loader_names_a_broken_library_earlier_on_the_path(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "libOpenCL.so.1").write_bytes(b"not a library")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    found = opened("libOpenCL.so.1")
    assert found.kind == "damaged" and str(tmp_path) in found.reason
