"""The tools and builds that tests need, each with what is missing of it here and how to get it."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import pytest

from tests.chromium import find_chromium

ROOT = Path(__file__).parent.parent


def _missing_cpu() -> str | None:
    from lite_engine._native import library_path
    from lite_engine.errors import BackendUnavailableError

    try:
        library_path()
    except BackendUnavailableError as error:
        return str(error)
    return None


def _missing_arm() -> str | None:
    from lite_engine._native import runner_path
    from lite_engine.errors import BackendUnavailableError

    try:
        runner_path("aarch64")
    except BackendUnavailableError as error:
        return str(error)
    if platform.machine() != "aarch64" and not emulator():
        return "no qemu-aarch64; sudo apt-get install qemu-user"
    return None


def missing_wasm() -> str | None:
    from lite_engine.devices import wasm_usability

    state = wasm_usability()
    return None if state.usable else str(state)


def _missing_opencl() -> str | None:
    """Only a kernel that was built and run proves a device usable."""
    try:
        import pyopencl as cl
    except ImportError:
        return "no pyopencl; pip install 'lite-workbench[opencl]'"
    reasons = ["no OpenCL platform; sudo apt-get install pocl-opencl-icd ocl-icd-libopencl1"]
    try:
        for device in (d for p in cl.get_platforms() for d in p.get_devices()):
            try:
                _probe(cl, device)
                return None
            except cl.Error as error:
                reasons = [f"{device.name} builds no kernel: {str(error).splitlines()[0]}"]
    except cl.Error as error:
        reasons.append(str(error).splitlines()[0])
    return "; ".join(reasons)


def _probe(cl, device) -> None:
    context = cl.Context([device])
    source = "kernel void twice(global float *x) { x[get_global_id(0)] *= 2; }"
    kernel = cl.Program(context, source).build().twice
    queue = cl.CommandQueue(context)
    values = np.arange(4, dtype=np.float32)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffer = cl.Buffer(context, flags, hostbuf=values)
    kernel(queue, (4,), None, buffer)
    cl.enqueue_copy(queue, values, buffer)
    if not np.array_equal(values, [0, 2, 4, 6]):
        raise cl.LogicError("the probe kernel gave a wrong result")


def _missing_browser() -> str | None:
    try:
        import playwright  # noqa: F401
    except ImportError:
        return "no playwright; pip install playwright"
    if find_chromium() is None:
        return "no Chromium; sudo apt-get install chromium, or playwright install chromium"
    return None


def _missing_models() -> str | None:
    folder = os.environ.get("LITE_TEST_MODELS")
    if not folder:
        return "LITE_TEST_MODELS is not set to a folder of real models"
    return None if Path(folder).is_dir() else f"LITE_TEST_MODELS={folder} is not a folder"


def simulator() -> str | None:
    """Oclgrind's driver, which checks every memory access of a kernel."""
    folders = ("/usr/lib/oclgrind", "/usr/local/lib/oclgrind", "/usr/lib64/oclgrind")
    libraries = (Path(f) / "liboclgrind-rt-icd.so" for f in folders)
    return next((str(p) for p in libraries if p.is_file()), None)


def _missing_simulator() -> str | None:
    return None if simulator() else "no Oclgrind; sudo apt-get install oclgrind"


def _missing_ssh() -> str | None:
    if not (shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin")):
        return "no sshd; sudo apt-get install openssh-server"
    return None if shutil.which("ssh") else "no ssh; sudo apt-get install openssh-client"


def arm_opencl() -> Path:
    """Where the person who runs the tests has OpenCL for the emulated device; LITE_CACHE_DIR is the
    tests' own."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "lite-workbench" / "arm-opencl"


def _missing_arm_opencl() -> str | None:
    if (arm_opencl() / "ready").is_file():
        return _missing_arm()
    return "no OpenCL for the emulated device; lite devices setup emulated"


def _missing_offline() -> str | None:
    from tests.opencl.offline import missing

    return missing()


def _missing_armv7() -> str | None:
    from lite_engine._native import runner_path
    from lite_engine.errors import BackendUnavailableError

    _sweep_builds()
    try:
        runner_path("armv7")
    except BackendUnavailableError as error:
        return str(error)
    return None if emulator("arm") else "no qemu-arm; sudo apt-get install qemu-user"


def _sweep_builds() -> None:
    """Waits for scripts/sweep_builds.sh, which `make test-sweeps` runs beside the tests: an earlier
    build would be of other sources."""
    with suppress(ImportError, FileNotFoundError):  # Windows, or nothing runs
        import fcntl

        with (ROOT / "build" / ".sweeps").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)


def _missing_sanitized(variant: str, *programs: str) -> str | None:
    _sweep_builds()
    return _missing_build(variant, *programs)


def _missing_build(variant: str, *programs: str) -> str | None:
    """What lacks of `scripts/native.sh VARIANT`, whose programs stay in build/."""
    missing = [name for name in programs if not (ROOT / "build" / variant / name).is_file()]
    return f"no build/{variant}/{missing[0]}; scripts/native.sh {variant}" if missing else None


def missing_wine() -> str | None:
    """Windows' runner, built here with zig, in Wine."""
    if shutil.which("wine") is None:
        return "no Wine; sudo apt-get install --no-install-recommends wine wine64"
    return _missing_build("x86_64-windows-gnu", "lite_run.exe")


TOOLS: dict[str, Callable[[], str | None]] = {
    "cpu": lru_cache(_missing_cpu),
    "arm": lru_cache(_missing_arm),
    "armv7": lru_cache(_missing_armv7),
    "wasm": lru_cache(missing_wasm),
    "wine": missing_wine,
    "arm_opencl": lru_cache(_missing_arm_opencl),
    "opencl": lru_cache(_missing_opencl),
    "simulator": lru_cache(_missing_simulator),
    "offline": lru_cache(_missing_offline),
    "browser": lru_cache(_missing_browser),
    "models": lru_cache(_missing_models),
    "ssh": lru_cache(_missing_ssh),
    "asan": partial(_missing_sanitized, "asan", "liblite_runtime.so", "lite_fuzz", "plan_run"),
    "tsan": partial(_missing_sanitized, "tsan", "lite_run"),
    "fuzzer": partial(_missing_sanitized, "fuzzer", "fuzz_program", "fuzz_file", "fuzz_opencl"),
}


def emulator(arch: str = "aarch64") -> str | None:
    return shutil.which(f"qemu-{arch}") or shutil.which(f"qemu-{arch}-static")


def required() -> set[str]:
    text = os.environ.get("LITE_TEST_REQUIRE", "")
    return {name.strip() for name in text.split(",") if name.strip()}


def need(name: str) -> None:
    """Skips the running test when a tool is missing; fails it when the tool is required."""
    reason = TOOLS[name]()
    if reason and name in required():
        pytest.fail(f"{name} is required: {reason}", pytrace=False)
    if reason:
        pytest.skip(f"{name}: {reason}")
