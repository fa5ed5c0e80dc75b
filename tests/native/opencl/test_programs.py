"""Programs and their cache, which Python shares: damage, full disks, drivers that break."""

from __future__ import annotations

import hashlib
import json
import random
import resource
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from lite_engine.backends.opencl import discover
from lite_engine.backends.opencl.binary_cache import packed

from tests.opencl import tiny
from tests.opencl.cached_programs import in_a_process
from tests.opencl.drivers import faulty_driver

KEY, BINARY = b"platform\0device\0options\0digest", bytes(range(256)) * 3


def programs(ask, folder: Path, count: int, runner: Any = "-", **variables: str) -> dict[str, Any]:
    """With binaries of PoCL's programs, which it keeps itself unless it is told not to."""
    variables = {"POCL_KERNEL_CACHE": "0", **variables}
    return json.loads(ask("programs", folder, count, runner, **variables).stdout)


@pytest.mark.parametrize("size", [0, 1, 127, 128, 129, 255, 256, 257, 5000])
def test_blake2b(ask, size: int) -> None:
    data = random.Random(size).randbytes(size)
    for digest_bytes in (16, 32, 64):
        wanted = hashlib.blake2b(data, digest_size=digest_bytes).hexdigest()
        assert ask("blake2b", digest_bytes, given=data).stdout.strip() == wanted


def test_damaged_entries_are_told(ask, tmp_path: Path) -> None:
    entry, file = packed(KEY, BINARY), tmp_path / "entry.bin"
    file.write_bytes(entry)
    assert ask("unpack", file).stdout.strip() == "intact"
    rng = random.Random(7)
    cases = [entry[:n] for n in (0, 1, 55, 56, 60, len(entry) - 1)] + [entry + b"x"]
    for at in [*range(0, 56, 3), *(rng.randrange(56, len(entry)) for _ in range(8))]:
        data = bytearray(entry)
        data[at] ^= 1 << rng.randrange(8)
        cases.append(bytes(data))
    # Sizes whose sum wraps around.
    cases.append(entry[:16] + (2**64 - 8).to_bytes(8, "little") + entry[24:])
    for case in cases:
        file.write_bytes(case)
        assert ask("unpack", file).stdout.strip() != "intact", case[:64]
    assert ask("unpack", tmp_path).stdout.strip() == "not a regular file"
    assert ask("unpack", tmp_path / "absent").stdout.strip() == "no file"


@pytest.mark.slow
@pytest.mark.opencl
def test_python_and_the_runtime_share_one_cache(ask, base_tool: Path, tmp_path: Path) -> None:
    first = programs(ask, tmp_path, 2, base_tool)
    assert (first["right"], first["compiled"], first["warning"]) == (2, 2, "")
    assert "cannot build unary.cl: " in first["refused"] and "error: " in first["refused"]
    assert in_a_process(tmp_path, 3)[0] == {"right": 3, "compiled": 1}
    (verdict,) = (tmp_path / "opencl").glob("driver-*.json")
    assert json.loads(verdict.read_text())["loads"] is True
    assert programs(ask, tmp_path, 4, base_tool)["compiled"] == 1
    assert programs(ask, tmp_path, 4, base_tool)["compiled"] == 0


@pytest.mark.opencl
def test_a_driver_that_keeps_its_kernels_is_not_asked_for_binaries(ask, tmp_path: Path) -> None:
    """PoCL does, unless it is told not to; the binaries of other drivers are found the second
    time."""
    keeps = "Portable Computing Language" in tiny.device().report.platform
    for compiled in (2, 2 if keeps else 0):
        out = programs(ask, tmp_path, 2, POCL_KERNEL_CACHE="1")
        assert (out["right"], out["compiled"], out["warning"]) == (2, compiled, "")
    assert bool(list(tmp_path.rglob("*.bin"))) is not keeps


@pytest.mark.hours
@pytest.mark.opencl
@pytest.mark.parametrize("runner", [True, False])
def test_the_verdict_on_a_driver_is_shared_too(ask, base_tool, tmp_path, runner: bool) -> None:
    program = base_tool if runner else "-"
    programs(ask, tmp_path, 1, program)
    assert programs(ask, tmp_path, 1, program)["compiled"] == 0
    (verdict,) = (tmp_path / "opencl").glob("driver-*.json")
    own = verdict.read_text()
    verdict.unlink()
    in_a_process(tmp_path, 1)
    assert verdict.read_text() == own
    verdict.write_text(own.replace("true", "false"))
    assert programs(ask, tmp_path, 1, program)["compiled"] == 1
    verdict.write_text(own[: len(own) // 2])  # damaged: tried again
    assert programs(ask, tmp_path, 1, program)["compiled"] == 0


@pytest.mark.hours
@pytest.mark.opencl
def test_damaged_entries_are_built_again(ask, tmp_path: Path) -> None:
    programs(ask, tmp_path, 3)
    files = sorted((tmp_path / "opencl").glob("*.bin"))
    data = bytearray(files[0].read_bytes())
    data[len(data) // 2] ^= 4
    files[0].write_bytes(data)
    files[1].write_bytes(files[1].read_bytes()[:1000])
    files[2].write_bytes(b"")
    again = programs(ask, tmp_path, 3)
    assert (again["right"], again["compiled"]) == (3, 3)
    assert "damaged compiled kernels are built again" in again["warning"]
    assert programs(ask, tmp_path, 3)["compiled"] == 0
    a, b = files[0].read_bytes(), files[1].read_bytes()
    files[0].write_bytes(b)  # intact, of another program
    files[1].write_bytes(a)
    swapped = programs(ask, tmp_path, 3)
    assert (swapped["right"], swapped["compiled"]) == (3, 2)


@pytest.mark.opencl
def test_a_folder_that_takes_no_file(ask, base_tool: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    out = programs(ask, tmp_path / "file", 2)
    assert (out["right"], out["compiled"]) == (2, 2)
    assert out["warning"].count("cannot be kept there") == 1


def test_a_full_disk(base_tool: Path, tmp_path: Path) -> None:
    """A limit on the size of files stands for it."""

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    command = [str(base_tool), "store", str(tmp_path / "a" / "b"), "30000"]
    done = subprocess.run(command, preexec_fn=limited, capture_output=True, text=True, timeout=60)
    assert "cannot be kept there (File too large)" in done.stdout
    assert not list((tmp_path / "a" / "b").iterdir())  # nothing half written stays
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout == "\n" and len(list((tmp_path / "a" / "b").iterdir())) == 1


@pytest.mark.slow
@pytest.mark.opencl
def test_a_driver_that_breaks_on_loading_is_found_in_another_process(
    ask, base_tool: Path, tmp_path: Path
) -> None:
    own = next(a for a in discover.attempts() if a.good and a.found_by.endswith(".icd"))
    driver = faulty_driver(tmp_path / "libfaulty.so", own.candidate, "abort()")
    variables = {"OCL_ICD_VENDORS": str(driver)}
    folder = tmp_path / "cache"
    assert programs(ask, folder, 2, base_tool, **variables)["compiled"] == 2
    second = programs(ask, folder, 2, base_tool, **variables)
    assert (second["right"], second["compiled"]) == (2, 2)
    assert "crashed (SIGABRT) when it loaded" in second["warning"]
    third = programs(ask, folder, 2, base_tool, **variables)
    assert (third["right"], third["compiled"], third["warning"]) == (2, 2, "")


@pytest.mark.hours
@pytest.mark.opencl
def test_without_a_runner_a_driver_breaks_once(ask, tmp_path: Path) -> None:
    own = next(a for a in discover.attempts() if a.good and a.found_by.endswith(".icd"))
    driver = faulty_driver(tmp_path / "libfaulty.so", own.candidate, "abort()")
    variables = {"OCL_ICD_VENDORS": str(driver)}
    folder = tmp_path / "cache"
    programs(ask, folder, 2, **variables)
    ask("programs", folder, 2, "-", status=-signal.SIGABRT, POCL_KERNEL_CACHE="0", **variables)
    after = programs(ask, folder, 2, **variables)
    assert (after["right"], after["compiled"]) == (2, 2)


@pytest.mark.opencl
def test_a_device_that_is_named(ask, tmp_path: Path) -> None:
    done = ask("programs", tmp_path, 1, "-", LITE_OPENCL_DEVICE="no such", status=1)
    assert "device no such is not one of: 0 " in done.stdout
    assert programs(ask, tmp_path, 1, LITE_OPENCL_DEVICE="0")["right"] == 1


def test_a_library_that_is_named_is_not_replaced(ask, tmp_path: Path) -> None:
    done = ask("programs", tmp_path, 1, "-", LITE_OPENCL_LIBRARY="libm.so.6", status=1)
    assert "libm.so.6 (LITE_OPENCL_LIBRARY): not an OpenCL library" in done.stdout
    done = ask("programs", tmp_path, 1, "-", LITE_OPENCL_LIBRARY="/no/such.so", status=1)
    assert "/no/such.so (LITE_OPENCL_LIBRARY): no such library" in done.stdout
