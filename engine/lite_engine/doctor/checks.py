"""What this machine has, what it lacks, and how to fix it."""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
from dataclasses import asdict, dataclass, field
from typing import Any

from lite_messages import tr

from .. import settings
from ..backends import Probed, get_backend, get_plugin
from ..devices import arm_opencl
from ..errors import with_command
from ..profile.environment import environment
from ..runtime import host_target, usability


@dataclass
class Check:
    """One question about the machine. `state` is good, warning or bad; `tried` are attempts."""

    name: str
    state: str
    summary: str
    fix: str = ""
    command: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    tried: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Examination:
    """All checks; `to_dict` is the JSON of `lite doctor`."""

    checks: list[Check]
    backends: dict[str, bool]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def examine() -> Examination:
    """Looks at this machine. Never raises: what fails is a check that says so."""
    plugins = [_plugin(name) for name in settings.backends() if name not in settings.BACKENDS]
    checks = [_cpu(), _opencl(), _emulator(), *plugins, _compilers(), _packages(), _settings()]
    names = [host_target(), "opencl", "reference", *(c.name for c in plugins)]
    if host_target() != "arm":
        names.insert(1, "arm")
    return Examination(checks, {n: usability(n).usable for n in names})


def _cpu() -> Check:
    state = get_backend("cpu").usability()
    facts = environment()
    if not state.usable:
        return Check(tr("CPU engine"), "bad", state.reason, state.fix, state.command, facts)
    summary = tr(
        "{cpu}, {cores} cores: {reason}",
        cpu=facts["cpu"], cores=facts["cores"], reason=state.reason,
    )  # fmt: skip
    return Check(tr("CPU engine"), "good", summary, facts=facts)


def _opencl() -> Check:
    state = usability("opencl")
    backend = get_backend("opencl")
    tried = backend.attempts() if isinstance(backend, Probed) else []
    failed = backend.failed() if isinstance(backend, Probed) and state.usable else []
    check = Check(
        "OpenCL", "good" if state.usable else "bad", state.reason, state.fix, state.command
    )
    if failed:
        check.state = "warning"
        some = (
            tr("1 kernel fails")
            if len(failed) == 1
            else tr("{kernels} kernels fail", kernels=len(failed))
        )
        check.summary += tr("; {some} with this driver; others run instead", some=some)
    check.tried = [t._asdict() for t in (*tried, *failed)]
    return check


def _emulator() -> Check:
    if host_target() == "arm":
        return Check("ARM", "good", tr("this machine is ARM and needs no emulator"))
    state = usability("arm")
    check = Check(
        tr("ARM emulator"),
        "good" if state.usable else "warning",
        state.reason,
        state.fix,
        state.command,
    )
    if state.usable and arm_opencl.is_set_up():
        check.summary += tr("; OpenCL (PoCL) in {folder}", folder=arm_opencl.folder())
    elif state.usable:
        check.summary += tr("; no OpenCL on it")
        check.command = "lite devices setup emulated"
        check.fix = with_command("", check.command)
    return check


def _plugin(name: str) -> Check:
    """A backend of another package, asked in another process."""
    state = usability(name)
    mark = "good" if state.usable else "bad"
    origin = get_plugin(name).origin
    return Check(
        name, mark, f"{state.reason} ({origin})", state.fix, state.command, {"package": origin}
    )


def _compilers() -> Check:
    tools = {
        t: shutil.which(t)
        for t in ("g++", "clang++", "aarch64-linux-gnu-g++", "cmake", "ninja", "adb", "ssh")
    }
    found = [t for t, path in tools.items() if path]
    return Check(
        "Tools",
        "good" if found else "warning",
        ", ".join(found) or tr("none found"),
        "" if found else tr("only needed to build from source, and for boards"),
        facts=dict(tools),
    )


def _packages() -> Check:
    names = (
        "lite-workbench",
        "numpy",
        "pyopencl",
        "jupyterlab",
        "ipywidgets",
        "anywidget",
        "plotly",
        "netron",
        "onnx",
    )
    versions: dict[str, Any] = {"python": platform.python_version()}
    for name in names:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    missing = [n for n in ("jupyterlab", "anywidget", "plotly", "netron") if versions[n] is None]
    command = "pip install 'lite-workbench[lab,opencl]'" if missing else ""
    text = ", ".join(f"{n} {v}" for n, v in versions.items() if v)
    if missing:
        text += tr("; the Workbench also needs {missing}", missing=", ".join(missing))
    fix = with_command("", command)
    return Check("Packages", "warning" if missing else "good", text, fix, command, versions)


def _settings() -> Check:
    wrong = settings.misspelt()
    values = {name: str(s.value()) for name, s in settings.SETTINGS.items()}
    return Check(
        "Settings",
        "warning" if wrong else "good",
        "; ".join(wrong) or tr("all variables are known"),
        facts=values,
    )
