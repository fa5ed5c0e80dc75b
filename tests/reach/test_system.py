"""What differs between systems is asked in one module, and Linux's answers are those of Linux."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx.parser
import pytest
from lite_engine import files, optimize, parts, system
from lite_engine._native import runner_path
from lite_engine.importers.onnx import read_bytes
from lite_engine.runtime import host_target

ROOT = Path(__file__).parents[2]
PACKAGES = ("engine/lite_engine", "engine/lite_messages", "widgets/lite_widgets",
            "workbench/lite_workbench")  # fmt: skip
#: What not every system has, or has under another name.
FOREIGN = re.compile(
    r"\bos\.(fork|kill|killpg|getuid|geteuid|setsid|nice|sched_\w+|fchmod|mkfifo|uname)\b|\bos\.name\b"
    r"|\bsys\.platform\b|\bimport (fcntl|resource|pwd|grp|termios|pty|msvcrt|winreg)\b"
    r"|\bsignal\.(Signals|SIG(?!INT\b)\w+)|preexec_fn|start_new_session|[\"']/proc/(self|cpuinfo)"
    r"|[\"']/tmp\b|XDG_|LOCALAPPDATA|\bos\.O_(DIRECTORY|NOFOLLOW)\b"
)


def test_nobody_else_asks_for_the_system():
    found = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if path.name != "system.py":
                lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
                found += [f"{path.relative_to(ROOT)}:{n}: {x.strip()}" for n, x in lines
                          if FOREIGN.search(x)]  # fmt: skip
    assert found == [], "lite_engine/system.py is the place for it"


@pytest.mark.parametrize(
    "line",
    ["os.fork()", "import fcntl", "if sys.platform == 'x':", 'open("/proc/self/maps")',
     "signal.SIGKILL", "len(os.sched_getaffinity(0))", "Popen(x, start_new_session=True)"],
)  # fmt: skip
def test_a_use_is_found(line):
    assert FOREIGN.search(line)


def test_every_module_loads_without_what_windows_lacks():
    """A Python without the modules and functions of POSIX imports the engine, plans and runs."""
    code = """
import sys, os
import random, subprocess, numpy, PIL.Image, rich.console  # not ours: they know this system
for name in ("fcntl", "resource", "pwd", "grp", "termios"): sys.modules[name] = None
for name in ("fchmod", "sched_getaffinity", "geteuid", "getuid", "register_at_fork", "O_NOFOLLOW",
             "O_DIRECTORY"):
    if hasattr(os, name): delattr(os, name)
from lite_engine import system
system.WINDOWS, system.LINUX = True, False
from pathlib import Path
from lite_engine import files, settings
folder = Path(sys.argv[1])
files.write_file(folder / "a.txt", "one")
files.write_file(folder / "a.txt", "two")
with files.filling(folder / "whole") as part:
    (part / "b.txt").write_text("three")
assert (folder / "a.txt").read_text() == "two" and (folder / "whole" / "b.txt").exists()
assert settings.threads() == os.cpu_count() and not system.is_root()
assert sorted(p.name for p in folder.iterdir()) == ["a.txt", "whole"]
import lite_workbench.commands as commands
for verb in commands.available(): commands.get_command(verb)
"""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", code, folder], capture_output=True, text=True, timeout=120
        )
    assert done.returncode == 0, done.stderr


def test_old_parts_go_where_locks_do_not_tell(tmp_path, monkeypatch):
    monkeypatch.setattr(system, "WINDOWS", True)
    old, new = (tmp_path / f".lite-{digit * 16}.part" for digit in "ab")
    old.mkdir()
    new.write_bytes(b"")
    os.utime(old, (0, 0))
    files.write_file(tmp_path / "x", b"1")
    assert not old.exists() and new.exists()


def test_the_name_of_a_crash(monkeypatch):
    assert system.crash_name(-signal.SIGSEGV) == "SIGSEGV"
    assert system.crash_name(1) is None and system.crash_name(-9999) is None
    monkeypatch.setattr(system, "WINDOWS", True)
    assert system.crash_name(0xC0000005) == system.crash_name(-1073741819) == "SIGSEGV"
    assert system.crash_name(1) is None


@pytest.mark.skipif(not system.LINUX, reason="reads what Linux lists")
def test_linux_answers():
    allowed, limit = len(os.sched_getaffinity(0)), system.container_limit()
    assert system.processors() == (allowed if limit is None else min(allowed, limit))
    assert system.peak_rss_bytes() > 10e6
    assert any("libc" in path for path in system.mapped_files())
    assert system.first_line("/proc/none") is None and system.text_of("/proc/none") == ""


@pytest.mark.parametrize(
    ("groups", "files", "limit"),
    [
        ("0::/", {"cpu.max": "250000 100000"}, 2),
        ("0::/", {"cpu.max": "50000 100000"}, 1),
        ("0::/", {"cpu.max": "max 100000"}, None),
        ("0::/", {}, None),
        ("0::/a/b", {"a/b/cpu.max": "max 100000", "a/cpu.max": "300000 100000"}, 3),
        ("0::/a/b", {"a/b/cpu.max": "800000 100000", "a/cpu.max": "300000 100000"}, 3),
        # the host's path, which the container does not see
        ("0::/docker/1f", {"cpu.max": "400000 100000"}, 4),
        ("5:memory:/\n4:cpu,cpuacct:/x", {"cpu,cpuacct/x/cpu.cfs_quota_us": "200000",
         "cpu,cpuacct/x/cpu.cfs_period_us": "100000"}, 2),
        ("1:cpu:/\n0::/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ("nonsense", {"cpu.max": "a b c"}, None),
    ],
)  # fmt: skip
def test_the_limit_of_a_container(tmp_path, groups, files, limit):
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    assert system.container_limit(groups, tmp_path) == limit


@pytest.fixture
def cgroup():
    """Starts commands in a cgroup of its own with one processor's worth of time."""
    folder = next((p for p in map(Path, ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup"))
                   if (p / "cgroup.procs").exists()), None)  # fmt: skip
    if folder is None:
        pytest.skip("no cgroups are mounted")
    group = folder / f"lite-{os.getpid()}"
    try:
        group.mkdir()
        if (group / "cpu.max").exists():
            (group / "cpu.max").write_text("100000 100000")
        else:
            (group / "cpu.cfs_quota_us").write_text("100000")
    except OSError as error:
        with contextlib.suppress(OSError):
            group.rmdir()
        pytest.skip(f"no cgroup with a limit can be made here ({error})")
    yield lambda *command: subprocess.run(
        ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', group, *command],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    group.rmdir()


@pytest.mark.skipif(not system.LINUX, reason="Linux's cgroups")
def test_threads_in_a_container(cgroup, tmp_path, monkeypatch):
    """Python and the runner, neither of which is told a number, take what the time is worth."""
    monkeypatch.delenv("LITE_THREADS", raising=False)
    ask = "from lite_engine import settings; print(settings.threads())"
    assert cgroup(sys.executable, "-c", ask).strip() == "1"
    graph = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]>g (float[1,4] x) => (float[1,4] y) { y = Relu(x) }'
    )
    model, report = tmp_path / "m.lite", tmp_path / "p.json"
    optimize(read_bytes(graph.SerializeToString()), targets=[host_target()]).save(model)
    cgroup(runner_path(), model, "--profile", report)
    assert json.loads(report.read_text())["threads"] == 1


def test_the_cache_folder(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    home = Path.home()
    for windows, macos, expected in (
        (False, False, home / ".cache"),
        (False, True, home / "Library" / "Caches"),
        (True, False, Path("C:/local")),
    ):
        monkeypatch.setattr(system, "WINDOWS", windows)
        monkeypatch.setattr(system, "MACOS", macos)
        monkeypatch.setenv("LOCALAPPDATA", "C:/local")
        assert system.cache_home() == expected
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert system.cache_home() == Path("/elsewhere")


def test_a_lock_holds(tmp_path):
    with files.locked(tmp_path / "x"):
        number = os.open(tmp_path / "x.lock", os.O_RDONLY)
        try:
            assert not system.try_lock(number)
        finally:
            os.close(number)
    assert parts.new_part(tmp_path)[0].exists()
