"""Programs of one device: the text of a kernel file after its options, compiled once and kept."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lite_messages import tr

from ... import settings
from ...errors import BackendUnavailableError
from .binary_cache import BinaryCache
from .load_trial import LoadTrial

_log = logging.getLogger(__name__)
_POCL = "Portable Computing Language"
KERNELS = Path(__file__).parent / "kernels"
#: Files of custom operators' kernels, by name.
custom_files: dict[str, Path] = {}


def kernel_file(file: str, kernels: Path = KERNELS) -> Path:
    """FILE.cl of the folder, or of a custom operator."""
    return custom_files.get(file, kernels / f"{file}.cl")


def parts_of(file: str, kernels: Path = KERNELS) -> list[Path]:
    """What the text of FILE.cl consists of: i8.h is shared by the kernels of integers."""
    shared = ["common.h", "i8.h"] if file.startswith("i8_") else ["common.h"]
    return [*(kernels / name for name in shared), kernel_file(file, kernels)]


def program_text(file: str, defines: str = "", kernels: Path = KERNELS) -> str:
    """What a compiler gets for FILE.cl of a folder after `#define` lines."""
    return "\n".join([defines, *(part.read_text() for part in parts_of(file, kernels))])


def built(cl: Any, program: Any, options: Sequence[str] = ()) -> Any:
    """A pyopencl Program, built without pyopencl's cache; what the compiler says goes to the debug
    log. Raises pyopencl's Error, which has the build log."""
    # Without -w a driver's own compiler counts its warnings on the terminal.
    quiet = () if settings.get("LITE_DEBUG") else ("-w",)
    program.build([*options, *quiet], cache_dir=False)
    for device in program.get_info(cl.program_info.DEVICES):
        log = program.get_build_info(device, cl.program_build_info.LOG)
        if log and log.strip():
            _log.debug("%s: %s", device.name.strip(), log.strip())
    return program


def driver_keeps(platform: str) -> bool:
    """Whether a driver keeps compiled kernels itself and binaries of ours would cost more than they
    save. PoCL compiles a kernel at its first launch and keeps that by content; asked for a binary,
    it compiles every kernel once more. On 18 programs that takes 11 s of processor time in the
    first process, and saves 0.5 s in each later one (docs/performance.md)."""
    return platform == _POCL and os.environ.get("POCL_KERNEL_CACHE") != "0"


class Programs:
    """Builds each program of a device once. `identity` names the device and its driver in the
    cache (platform, device, versions of device and driver), `index` is its number there.
    `compiled` counts the programs that were not in the cache.

    Binaries are not kept where `driver_keeps` compiled kernels already."""

    def __init__(
        self, cl: Any, context: Any, identity: Sequence[str], index: int, options: Sequence[str]
    ) -> None:
        folder = settings.cache_dir() / "opencl"
        self._cl, self._context = cl, context
        self._device_name = identity[1]
        self._options = tuple(options)
        self._kept = not driver_keeps(identity[0])
        self._cache = BinaryCache(folder, identity)
        self._trial = LoadTrial(folder, identity, index)
        self._lock = threading.RLock()
        self.compiled = 0
        self._programs: dict[tuple[str, str], Any] = {}

    def has(self, file: str, defines: str = "") -> bool:
        """Whether this process has built it already."""
        return (file, defines) in self._programs

    def get(self, file: str, defines: str = "") -> Any:
        """The built program of kernels/FILE.cl after `#define` lines.

        Raises BackendUnavailableError with the first error of the build log.
        """
        key = (file, defines)
        with self._lock:
            if key not in self._programs:
                self._programs[key] = self.build(file, program_text(file, defines))
            return self._programs[key]

    def build(self, file: str, source: str) -> Any:
        """A text as a program, from the cache where it was built before; errors name it FILE.cl.

        Raises BackendUnavailableError with the first error of the build log.
        """
        key = self._cache.key(self._options, source)
        program = self._loaded(key)
        if program is not None:
            return program
        try:
            program = built(self._cl, self._cl.Program(self._context, source), self._options)
        except self._cl.Error as error:
            raise BackendUnavailableError(
                tr(
                    "cannot build {file}.cl: {first_error}",
                    file=file,
                    first_error=first_error(str(error)),
                ),
                where=self._device_name,
            ) from None
        self.compiled += 1
        if not self._kept:
            return program
        binary = program.get_info(self._cl.program_info.BINARIES)[0]
        if binary:  # a driver need not have any
            self._cache.store(key, binary)
        return program

    def _loaded(self, key: bytes) -> Any | None:
        """The program from the cache, None when it has to be compiled."""
        binary = self._cache.load(key) if self._kept else None
        if binary is None or not self._trial.loads(binary, self._options):
            return None
        try:
            program = self._cl.Program(self._context, self._context.devices, [binary])
            return built(self._cl, program, self._options)
        except self._cl.Error as error:
            _log.debug("%s refuses its own binary: %s", self._device_name, error)
            self._cache.drop(self._cache.path(key))
            return None


def first_error(log: str) -> str:
    """The line of a build log that says why."""
    words = ("error", "fatal", "unresolved")
    lines = [x.strip() for x in log.splitlines() if any(w in x.lower() for w in words)]
    return lines[0] if lines else log.strip().splitlines()[0] if log.strip() else tr("no build log")
