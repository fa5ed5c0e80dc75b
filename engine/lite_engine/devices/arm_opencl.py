"""OpenCL for the emulated ARM device: PoCL for AArch64 in a folder of its own.

The distribution's package tools fetch the packages of the other architecture and unpack them; no
rights are needed and nothing outside the folder changes. Under the emulator the runner finds PoCL
there. PoCL links every kernel with `ld` from PATH; an emulated program can only start programs of
this machine, so that is the cross linker.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from lite_messages import tr, trn

from .. import settings
from .._native import host_arch
from ..errors import DeviceError
from ..files import locked, write_file

HINT = tr(
    "the emulated device has no OpenCL yet: `lite devices setup emulated` fetches PoCL for AArch64"
)
PACKAGE = "pocl-opencl-icd"
LINKER = "aarch64-linux-gnu-ld"
_TOOLS = ("apt-get", "apt-cache", "dpkg")
#: Packages that PoCL's own depend on and that running it does not need: compilers of other
#: languages, sanitizers, tools of the wrong architecture, what sets up a whole system.
_NOT_NEEDED = re.compile(
    r"debconf|dpkg|perl|init|systemd|tzdata|^clang|^libclang1|^llvm|^binutils|^lib(bin|ct|op)\w*\d|^libgprof|"
    r"san\d|^libstdc\+\+-|^libobjc|^libgc1|^linux-|^rpcsvc|^libc-|^lib(tirpc|nsl|crypt)-dev|^libitm"
)
_APT = """\
Dir::State "{root}/apt/state";
Dir::Cache "{root}/apt/cache";
Dir::State::status "{root}/apt/status";
APT::Architecture "arm64";
APT::Architectures {{ "arm64"; }};
"""
#: What only people read and what only whole systems use.
_TRIMMED = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/lintian", "usr/bin",
            "usr/lib/aarch64-linux-gnu/gconv", "usr/sbin", "bin", "sbin")  # fmt: skip


def folder() -> Path:
    return Path(settings.cache_dir()) / "arm-opencl"


def is_set_up() -> bool:
    """True on an AArch64 machine, whose own OpenCL serves."""
    return host_arch() == "aarch64" or (folder() / "ready").is_file()


def arguments() -> list[str]:
    """Arguments of the emulator under which the runner finds PoCL; none where it is not set up.

    Raises DeviceError when the linker that PoCL needs has gone.
    """
    if host_arch() == "aarch64" or not is_set_up():
        return []
    _linker()
    root = folder()
    lib = "/lib/aarch64-linux-gnu:/usr/lib/aarch64-linux-gnu"
    variables = {
        "LD_LIBRARY_PATH": lib,
        "PATH": f"{root}/bin:/usr/bin:/bin",
        "POCL_CACHE_DIR": f"{root}/kernels",
        "OCL_ICD_VENDORS": f"{root}/icds",
    }
    pairs = [word for name, value in variables.items() for word in ("-E", f"{name}={value}")]
    return ["-L", f"{root}/sysroot", *pairs]


def set_up(tell: Callable[[str], None]) -> str:
    """Fetches and unpacks PoCL, some 80 MB; what is there already is left alone. `tell` hears what
    is being done. Returns what was done. Raises DeviceError with what is missing."""
    if host_arch() == "aarch64":
        return tr("this machine is AArch64: its own OpenCL is used")
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        raise DeviceError(
            tr(
                "no {missing} here: PoCL for AArch64 can only be fetched on Debian "
                "and its derivatives",
                missing=missing[0],
            ),
            where="emulated",
        )
    _linker()
    root = folder()
    if "," in str(root):  # the emulator would end a variable there
        raise DeviceError(tr("{root} must not contain a comma", root=root), where="emulated")
    with locked(root):
        if is_set_up():
            return tr("{root} is set up", root=root)
        shutil.rmtree(root, ignore_errors=True)
        for name in (
            "apt/state/lists/partial",
            "apt/cache/archives/partial",
            "debs",
            "icds",
            "bin",
        ):
            (root / name).mkdir(parents=True)
        _unpack(root, _fetch(root, tell), tell)
        _write_tools(root)
        write_file(root / "ready", "")
    return tr("{root} is set up", root=root)


def _linker() -> str:
    found = shutil.which(LINKER)
    if found is None:
        raise DeviceError(
            tr("no {linker}, which PoCL needs to link kernels", linker=LINKER), where="emulated",
            command="sudo apt-get install binutils-aarch64-linux-gnu",
        )  # fmt: skip
    return found


def _fetch(root: Path, tell: Callable[[str], None]) -> list[Path]:
    write_file(root / "apt" / "apt.conf", _APT.format(root=root))
    write_file(root / "apt" / "status", "")
    tell(tr("reading the package lists of AArch64"))
    _apt(root, "apt-get", "-q", "update")
    kinds = "recommends suggests conflicts breaks replaces enhances".split()
    depends = ["apt-cache", "depends", "--recurse", *(f"--no-{kind}" for kind in kinds), PACKAGE]
    names = {x.strip() for x in _apt(root, *depends).splitlines() if re.match("[a-z]", x)}
    names = {x for x in names if not _NOT_NEEDED.search(x)}
    if PACKAGE not in names:
        raise DeviceError(
            tr(
                "the package sources of this machine have no {package} for AArch64", package=PACKAGE
            ),
            where="emulated",
            fix=tr("add a source of arm64 packages of this distribution, or use a board"),
        )
    tell(trn("fetching {n} package", "fetching {n} packages", len(names)))
    _apt(root, "apt-get", "-q", "download", *sorted(names), cwd=root / "debs")
    return sorted((root / "debs").glob("*.deb"))


def _unpack(root: Path, packages: Sequence[Path], tell: Callable[[str], None]) -> None:
    tell(trn("unpacking {n} package", "unpacking {n} packages", len(packages)))
    for package in packages:
        _run(["dpkg", "-x", str(package), str(root / "sysroot")])
        package.unlink()
    for name in _TRIMMED:
        shutil.rmtree(root / "sysroot" / name, ignore_errors=True)
    shutil.rmtree(root / "apt")
    # Programs look for their loader in /lib, which Debian 13's packages leave to the system.
    if not (root / "sysroot" / "lib").exists():
        (root / "sysroot" / "lib").symlink_to("usr/lib")


def _write_tools(root: Path) -> None:
    libraries = root / "sysroot" / "usr" / "lib" / "aarch64-linux-gnu"
    driver = next(iter(sorted(libraries.glob("libpocl.so.*"))), None)
    libgcc = next(iter(sorted((root / "sysroot/usr/lib/gcc").glob("*/*/libgcc.a"))), None)
    if driver is None or libgcc is None:
        missing = "libpocl.so" if driver is None else "libgcc.a"
        raise DeviceError(
            tr("the downloaded packages do not contain {missing}", missing=missing),
            where="emulated",
        )
    # The real path: PoCL finds its kernels beside itself by a path with "..", which the emulator
    # does not look up in the folder.
    write_file(root / "icds" / "pocl.icd", f"{driver}\n")
    options = [f"--sysroot={root}/sysroot", "-L", str(libgcc.parent), "-L", str(libraries)]
    linker = root / "bin" / "ld"
    write_file(linker, f'#!/bin/sh\nexec {shlex.join([_linker(), *options])} "$@"\n')
    linker.chmod(0o755)


def _apt(root: Path, *command: str, cwd: Path | None = None) -> str:
    return _run(list(command), cwd, {"APT_CONFIG": str(root / "apt" / "apt.conf")})


def _run(command: list[str], cwd: Path | None = None, more: dict[str, str] | None = None) -> str:
    """What it prints. Raises DeviceError with its last words."""
    env = {**os.environ, "LC_ALL": "C", **(more or {})}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)
    if done.returncode:
        said = [x for x in done.stderr.splitlines() if x.startswith("E:")] or [done.stderr.strip()]
        raise DeviceError(
            tr("{command} failed: {said}", command=command[0], said=said[0]), where="emulated"
        )
    return done.stdout
