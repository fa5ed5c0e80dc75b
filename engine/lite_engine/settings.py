"""The few `LITE_*` environment variables: typed, listed by `lite doctor`, misspellings noticed.

with settings.override(LITE_THREADS="2"):
    ...
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lite_messages import find_catalogue, tr

from . import extensions, system
from .errors import UsageError
from .whole_numbers import as_whole

BACKENDS = ("auto", "x86", "arm", "wasm", "opencl", "reference")
OPENCL_EXECUTORS = ("pyopencl", "native")
MAX_THREADS = 256


def backends() -> tuple[str, ...]:
    """The words for a backend, those of installed packages included."""
    return (*BACKENDS, *(n for n in extensions.found(extensions.BACKENDS) if n not in BACKENDS))


class Setting:
    """One variable: how to read it, what it means when it is unset."""

    def __init__(self, name: str, default: Any, parse: Callable[[str], Any], help: str) -> None:
        self.name = name
        self.default = default
        self.parse = parse
        self.help = help

    def value(self) -> Any:
        text = os.environ.get(self.name, "")
        if text == "":
            return self.default
        try:
            return self.parse(text)
        except ValueError as error:
            raise UsageError(f"{self.name}={text!r}: {error}", fix=self.help) from None


def _backend(text: str) -> str:
    if text not in backends():
        raise ValueError(tr("not one of {backends}", backends=", ".join(backends())))
    return text


def _threads(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MAX_THREADS:
        raise ValueError(
            tr("not a whole number between 1 and {max_threads}", max_threads=MAX_THREADS)
        )
    return int(text)


def _flag(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError("not 0 or 1")
    return text == "1"


def _executor(text: str) -> str:
    if text not in OPENCL_EXECUTORS:
        raise ValueError(
            tr("not one of {opencl_executors}", opencl_executors=", ".join(OPENCL_EXECUTORS))
        )
    return text


def _language(text: str) -> str:
    try:
        find_catalogue(text)
    except OSError:
        raise ValueError(tr("there is no catalog for this language")) from None
    return text


def default_cache_dir() -> Path:
    return system.cache_home() / "lite-workbench"


SETTINGS = {
    s.name: s
    for s in (
        Setting("LITE_BACKEND", "auto", _backend, tr("force a backend: ") + " | ".join(BACKENDS)),
        Setting(
            "LITE_THREADS",
            None,
            _threads,
            tr("number of CPU threads, 1 to {max_threads}", max_threads=MAX_THREADS),
        ),
        Setting("LITE_OPENCL_LIBRARY", None, str, tr("path of the OpenCL library to try first")),
        Setting("LITE_OPENCL_DEVICE", None, str, tr("OpenCL device: index or part of its name")),
        Setting(
            "LITE_OPENCL_EXECUTOR",
            "pyopencl",
            _executor,
            tr("how Python runs OpenCL: ") + " | ".join(OPENCL_EXECUTORS),
        ),
        Setting(
            "LITE_CACHE_DIR",
            None,
            Path,
            tr("folder for compiled kernels, tuning results and saved runs"),
        ),
        Setting(
            "LITE_LANGUAGE",
            "",
            _language,
            tr("language of the texts, like de or pt_BR, or the path of a catalog (x.mo)"),
        ),
        Setting("LITE_DEBUG", False, _flag, tr("1: show tracebacks and debug logs")),
        Setting(
            "LITE_MMAP",
            True,
            _flag,
            tr(
                "0: read model files into memory instead of mapping them, so that "
                "programs which overwrite them in place do no harm"
            ),
        ),
        Setting(
            "LITE_CHECK", False, _flag, tr("1: check every kernel against its NumPy reference")
        ),
    )
}
#: Variables of the test suite and the benchmarks, which are not settings and not misspellings.
OTHERS = ("LITE_TEST_", "LITE_BENCH_")


def get(name: str) -> Any:
    """Typed value of a setting. Raises UsageError when the variable holds nonsense."""
    return SETTINGS[name].value()


def cache_dir() -> Path:
    """The cache folder (not created)."""
    return get("LITE_CACHE_DIR") or default_cache_dir()


def threads(asked: int | None = None) -> int:
    """`asked`, else LITE_THREADS, else the number of processors this process may use.

    Raises UsageError for a number that is none of threads."""
    if asked is None:
        return get("LITE_THREADS") or system.processors()
    count = as_whole(asked)
    if count is None or not 1 <= count <= MAX_THREADS:
        raise UsageError(
            tr(
                "threads must be between 1 and {max_threads}, got {asked!r}",
                max_threads=MAX_THREADS,
                asked=asked,
            )
        )
    return count


def misspelt() -> list[str]:
    """One line for each set LITE_* variable that is not a setting."""
    lines = []
    for name in sorted(os.environ):
        if name.startswith("LITE_") and name not in SETTINGS and not name.startswith(OTHERS):
            import difflib

            near = difflib.get_close_matches(name, SETTINGS, n=1)
            hint = (
                tr("did you mean {near}?", near=near[0])
                if near
                else tr("known: {settings}", settings=", ".join(SETTINGS))
            )
            lines.append(tr("{name} is not a setting; {hint}", name=name, hint=hint))
    return lines


@contextmanager
def override(**values: str | None) -> Iterator[None]:
    """Sets variables for a block; None unsets."""
    unknown = [n for n in values if n not in SETTINGS]
    if unknown:
        raise UsageError(
            tr("{unknown} is not a setting", unknown=unknown[0]),
            fix=tr("known: {settings}", settings=", ".join(SETTINGS)),
        )
    before = {name: os.environ.get(name) for name in values}
    try:
        for name, value in values.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
        yield
    finally:
        for name, old in before.items():
            os.environ.pop(name, None) if old is None else os.environ.__setitem__(name, old)
