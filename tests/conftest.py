"""What every test shares: the tools a test needs, and what is missing here.

Markers name tools and builds (`opencl`, `arm`, `browser`, `models`, `asan`). Without its tool, a
test is skipped with the reason and the fix; a tool named in LITE_TEST_REQUIRE ("opencl,arm,asan")
turns that skip into a failure. Plain `pytest` leaves out `slow` and `browser`, which `--all` runs
too, and the sweeps, which `--sweeps` runs alone. Any `-m`, or a test named with `::`, runs what it
names.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scripts.bundle import BundleError, bundle
from tests import numbers, unoptimized
from tests.chromium import open_chromium
from tests.tools import ROOT, TOOLS, emulator, need, required

LEFT_OUT = ("slow", "browser")
#: The same once more, in minutes: another build, a simulator, every real model.
SWEEPS = ("sweep", "asan", "tsan", "fuzzer", "armv7")
#: Sweeps of hours: only with -m hours, or by name.
HOURS = "hours"
#: What takes longest runs first, so that no worker is left alone with it at the end.
LONGEST = (
    "tests/newcomer/", "tests/house/test_wheel.py",
    "tests/native/opencl/test_layers_arm.py", "tests/devices/test_opencl_there.py",
    "tests/plugins/test_operators_option.py", "tests/opencl/test_check.py", "tests/ui/",
    "tests/notebooks/", "tests/opencl/test_offline.py", "tests/house/test_pages_run.py",
    "tests/opencl/test_reach.py", "tests/opencl/test_simulator.py",
    "tests/web/", "tests/opencl/", "tests/native/runtime/test_sanitizers.py",
    "tests/native/runtime/test_fuzz.py", "tests/fuzz/",  # they wait for their build
)  # fmt: skip


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="run slow and browser tests too")
    parser.addoption("--sweeps", action="store_true", help="run only the sweeps of minutes")


def _check_import() -> None:
    """What is tested is this checkout: an editable install may lead to another one."""
    spec = importlib.util.find_spec("lite_engine")
    found = Path((spec and spec.origin) or "").resolve()
    if ROOT.resolve() not in found.parents:
        raise pytest.UsageError(
            f"lite_engine is imported from {found.parent}, not from this checkout; run "
            f"`{sys.executable} -m pip install --no-build-isolation -e .` here"
        )


def pytest_configure(config):
    _check_import()
    for plugin in (numbers, unoptimized):
        config.pluginmanager.register(plugin, plugin.__name__)
    unknown = required() - set(TOOLS)
    if unknown:
        known = ", ".join(TOOLS)
        raise pytest.UsageError(f"LITE_TEST_REQUIRE names {sorted(unknown)[0]!r}; known: {known}")
    # A person's own settings must not change what the tests see.
    for name in list(os.environ):
        if name.startswith("LITE_") and not name.startswith("LITE_TEST_"):
            del os.environ[name]
    os.environ["LITE_CACHE_DIR"] = tempfile.mkdtemp(prefix="lite-tests-")
    if not hasattr(config, "workerinput"):
        _bundle_widgets(config)


def _bundle_widgets(config):
    """A test of a widget sees the JavaScript as it is now, without a `make` before."""
    try:
        bundle()
    except BundleError as error:
        config.issue_config_time_warning(pytest.PytestConfigWarning(str(error)), 2)


def pytest_unconfigure(config):
    shutil.rmtree(os.environ.pop("LITE_CACHE_DIR", ""), ignore_errors=True)


def pytest_collection_modifyitems(config, items):
    named = any("::" in str(arg) for arg in config.args)
    if config.option.markexpr or named:
        return
    if config.option.sweeps:
        left_out = {i for i in items if marked(i, (HOURS,)) or not marked(i, SWEEPS)}
    else:
        names = (HOURS, *SWEEPS) if config.option.all else (HOURS, *SWEEPS, *LEFT_OUT)
        left_out = {i for i in items if marked(i, names)}
    if left_out:
        config.hook.pytest_deselected(items=[i for i in items if i in left_out])
        items[:] = [i for i in items if i not in left_out]
    items.sort(key=_turn)


def pytest_collection_finish(session):
    """Thousands of items stay to the end: the garbage collector, which took a tenth of the time,
    need not look at them again, and looks less often at the rest."""
    gc.freeze()
    gc.set_threshold(10_000)


def marked(item, names: Iterable[str]) -> bool:
    return any(item.get_closest_marker(name) for name in names)


def _turn(item) -> int:
    """Where the item's file stands in LONGEST. Sorting by it leaves files and folders together."""
    places = (n for n, start in enumerate(LONGEST) if item.nodeid.startswith(start))
    return next(places, len(LONGEST))


def pytest_runtest_setup(item):
    for name in TOOLS:
        if item.get_closest_marker(name):
            need(name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A test that skips itself although its tool is required fails, unless another is missing."""
    report = yield
    names = [n for n in required() if item.get_closest_marker(n)]
    if names and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        others = [n for n in TOOLS if n not in names and item.get_closest_marker(n)]
        if any(str(reason).startswith(f"Skipped: {n}: ") for n in others):
            return report
        report.outcome = "failed"
        report.longrepr = f"{', '.join(names)} is required, but the test skipped itself: {reason}"
    return report


def pytest_terminal_summary(terminalreporter):
    """Lines that tests record as the property "summary": a worker's prints are not seen."""
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.getreports(kind)]
    for key, line in (p for r in reports if r.when == "call" for p in r.user_properties):
        if key == "summary":
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def source_files(root: Path) -> list[str]:
    """What git keeps or would add, as paths from the root; not known in an unpacked sdist."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=root,
        capture_output=True,
        text=True,
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [name for name in listed.stdout.split("\0") if name and (root / name).is_file()]


@pytest.fixture(scope="session")
def required_tools() -> set[str]:
    """The tools that LITE_TEST_REQUIRE names."""
    return required()


@pytest.fixture
def require() -> Callable[[str], None]:
    """`require("opencl")`: for a test that needs a tool in some of its cases only."""
    return need


@pytest.fixture
def models_dir() -> Path:
    """Folder of real models (LITE_TEST_MODELS); the test is skipped without it."""
    need("models")
    return Path(os.environ["LITE_TEST_MODELS"])


@pytest.fixture
def qemu() -> list[str]:
    """Command prefix that runs an AArch64 executable here; empty on an AArch64 machine."""
    need("arm")
    return [] if platform.machine() == "aarch64" else [str(emulator())]


# One test module at a time: a second playwright, or nbclient, cannot start while one is open.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A headless Chromium."""
    need("browser")
    with open_chromium() as browser:
        yield browser


@pytest.fixture(scope="module", autouse=True)
def _own_operators() -> Iterator[None]:
    """A module's custom operators, and their kernels, are gone when it ends: in one process the
    next module may ask what the registry holds."""
    from lite_engine.ops._core import _REGISTRY
    from lite_engine.ops._custom import _custom

    before = {name: (_REGISTRY[name], list(_REGISTRY[name].kernels)) for name in _custom}
    yield
    for name in _custom - set(before):
        _custom.remove(name)
        del _REGISTRY[name]
    for name, (op, kernels) in before.items():
        _REGISTRY[name] = op
        op.kernels[:] = kernels


@pytest.fixture
def rng(request) -> np.random.Generator:
    """Random numbers that depend on nothing but the test's name."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))
