"""The OpenCL part of the runtime in a program of its own, under AddressSanitizer."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from lite_engine.backends.opencl.profile import PROFILES, DeviceProfile

from tests.native.opencl.running import run
from tests.opencl import tiny

Tool = Callable[..., subprocess.CompletedProcess[str]]
#: Names the driver that `make test-opencl ICD=…` tests: Python and the tool must see the same one.
DRIVER = "OCL_ICD_VENDORS"
#: What else of this machine's settings the tool must not see.
OURS = ("LITE_", "OCL_")


def typical(own: DeviceProfile) -> DeviceProfile:
    """The most demanding of the devices that files have programs for which this one can take."""
    able = [
        p
        for p in PROFILES.values()
        if p.device_class == own.device_class
        and p.lanes <= own.lanes
        and (p.fp16, p.matrix_units, bool(p.dot)) <= (own.fp16, own.matrix_units, bool(own.dot))
    ]
    return max(able, key=lambda p: (p.lanes, p.fp16, p.matrix_units))


@pytest.fixture(autouse=True)
def python_plans_as_the_file(request: pytest.FixtureRequest, monkeypatch) -> None:
    """For the typical device of a file's program, not for this very card: for other limits sums are
    split in other ways, and have other last bits."""
    if request.node.get_closest_marker("opencl"):
        own = tiny.device()
        monkeypatch.setattr(own, "profile", typical(own.profile))


@pytest.fixture(scope="session")
def base_tool(root: Path) -> Path:
    """base_tool.cc, built once for all workers and runs."""
    if not (shutil.which("cmake") and shutil.which("ninja")):
        pytest.skip("no cmake or ninja; run scripts/setup.sh")
    build = root / "build" / "opencl-base"
    build.mkdir(parents=True, exist_ok=True)
    with (build / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for command in (
            ["cmake", "-S", Path(__file__).parent, "-B", build, "-G", "Ninja"],
            ["cmake", "--build", build, "--parallel", "2"],
        ):
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return build / "base_tool"


@pytest.fixture
def ask(base_tool: Path, tmp_path: Path) -> Tool:
    """`ask("class", …, LITE_OPENCL_LIBRARY=…)`: a call of the tool that must end without a
    complaint of the sanitizers; `status` is the exit status that it must have."""

    def call(
        *arguments: object, status: int = 0, given: bytes = b"", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        env = {k: v for k, v in os.environ.items() if k == DRIVER or not k.startswith(OURS)}
        # Drivers and their compilers keep what they have until the process ends; NVIDIA's maps
        # memory where the sanitizer protects a gap of its shadow.
        options = (
            f"detect_leaks=0:log_path={tmp_path}/asan:handle_segv=0:handle_abort=0"
            ":protect_shadow_gap=0"
        )
        done = subprocess.run(
            [str(base_tool), *map(str, arguments)], input=given, capture_output=True, timeout=120,
            env={**env, "ASAN_OPTIONS": options, **variables},
        )  # fmt: skip
        reports = "".join(p.read_text() for p in tmp_path.glob("asan.*"))
        stdout, stderr = done.stdout.decode(), done.stderr.decode()
        assert not reports and "runtime error" not in stderr, reports + stderr
        assert done.returncode == status, (done.returncode, stdout, stderr)
        return subprocess.CompletedProcess(done.args, done.returncode, stdout, stderr)

    return call


@pytest.fixture(scope="session")
def against() -> Callable[[str, Path, str], str]:
    """`against(source, made, library)`: a library that stands before another one."""

    def build(source: str, made: Path, library: str) -> str:
        named = library if "/" in library else f"-l:{library}"
        command = ["cc", "-shared", "-fPIC", "-o", made, Path(__file__).with_name(source),
                   "-Wl,--no-as-needed", named, "-ldl"]  # fmt: skip
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        assert done.returncode == 0, f"{source} against {library}: {done.stderr}"
        return str(made)

    return build


@pytest.fixture
def failing_driver(tmp_path: Path, against: Callable[[str, Path, str], str]) -> str:
    listed = json.loads(run("--list-devices").stdout)
    opened = [r for r in listed["libraries"] if r["state"] == "opened"]
    # A driver hands its functions out through tables, which nothing can stand before.
    library = min(opened, key=lambda r: r["found_by"] != "loader")["library"]
    return against("failing_driver.c", tmp_path / "libfailing.so", library)
