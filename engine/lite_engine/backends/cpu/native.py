"""ctypes binding of the native runtime (`lite_runtime.h`).

    program = NativeProgram(data, weights, threads=2)
    outputs = program.run([image])          # arrays in physical order, in the program's order
    program.step_times_ns()

Arrays are handed over without a copy when they are C-contiguous, aligned and of the right type.
"""

from __future__ import annotations

import ctypes
import itertools
import platform
from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from lite_messages import tr

from ..._native import library_path
from ...errors import BackendUnavailableError, ModelFormatError, ShapeError
from ...mapped import file_state
from .native_types import (
    MemoryInfo,
    Options,
    RawKernel,
    RawStep,
    RawTensor,
    StepInfo,
    TensorInfo,
    address_of,
    dense,
    is_dense,
)
from .rooms import Rooms

ABI_VERSION = 5
_ERROR_BYTES = 1024
_CPU = 1  # lite_options.backend


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    """The loaded library. Raises BackendUnavailableError when it is missing or does not fit."""
    path = library_path()
    try:
        lib = ctypes.CDLL(str(path))
    except OSError as error:
        raise BackendUnavailableError(
            tr(
                "{path} cannot be loaded on {machine} ({error})",
                path=path.name,
                machine=platform.machine(),
                error=error,
            ),
            fix=tr("build it here"),
            command="make native",
        ) from error
    _declare(lib)
    if lib.lite_abi_version() != ABI_VERSION:
        raise BackendUnavailableError(
            tr(
                "{path} has ABI {found}, this engine needs {abi_version}",
                path=path.name,
                found=lib.lite_abi_version(),
                abi_version=ABI_VERSION,
            ),
            fix=tr("rebuild it"),
            command="make native",
        )
    return lib


def _declare(lib: ctypes.CDLL) -> None:
    pointer, text, size, number = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int)
    signatures = {
        "lite_abi_version": (number,),
        "lite_version": (text,),
        "lite_target": (text,),
        "lite_cpu_features": (text,),
        "lite_isas": (text,),
        "lite_kernel": (number, number, ctypes.POINTER(RawKernel)),
        "lite_plugin_load": (number, text, text, size),
        "lite_program_load": (
            pointer,
            pointer,
            size,
            ctypes.POINTER(pointer),
            ctypes.POINTER(size),
            size,
            ctypes.POINTER(Options),
            text,
            size,
        ),
        "lite_file_open": (pointer, text, text, size),
        "lite_file_close": (None, pointer),
        "lite_file_program": (pointer, pointer, text, ctypes.POINTER(Options), text, size),
        "lite_program_free": (None, pointer),
        "lite_program_num_inputs": (number, pointer),
        "lite_program_num_outputs": (number, pointer),
        "lite_program_num_tensors": (number, pointer),
        "lite_program_num_steps": (number, pointer),
        "lite_program_threads": (number, pointer),
        "lite_program_input": (number, pointer, number),
        "lite_program_output": (number, pointer, number),
        "lite_program_find": (number, pointer, text),
        "lite_program_tensor": (number, pointer, number, ctypes.POINTER(RawTensor)),
        "lite_program_step": (number, pointer, number, ctypes.POINTER(RawStep)),
        "lite_program_note_threads": (number, pointer, number),
        "lite_program_thread_ns": (ctypes.c_int64, pointer, number, number),
        "lite_program_memory": (None, pointer, ctypes.POINTER(MemoryInfo)),
        "lite_program_bind": (number, pointer, number, pointer, size),
        "lite_program_data": (pointer, pointer, number),
        "lite_program_tap": (number, pointer, number, number, text, size),
        "lite_program_run": (number, pointer, text, size),
        "lite_program_choice": (text, pointer),
    }
    for name, (result, *arguments) in signatures.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments


def cpu_features() -> tuple[str, ...]:
    """Features of this CPU that kernels may use, baseline first."""
    return tuple(library().lite_cpu_features().decode().split())


def isas() -> tuple[str, ...]:
    """Instruction sets that the library has kernels for and this machine can run, lowest first."""
    return tuple(library().lite_isas().decode().split())


def target() -> str:
    """What the library runs: "x86" or "arm"."""
    return str(library().lite_target().decode())


def version() -> str:
    return str(library().lite_version().decode())


@lru_cache(maxsize=1)
def kernels() -> frozenset[tuple[str, str]]:
    """(operator, kernel) pairs that the library can run, on one instruction set at least."""
    lib, raw = library(), RawKernel()
    pairs: set[tuple[str, str]] = set()
    for i in itertools.count():
        if lib.lite_kernel(i, ctypes.byref(raw)):
            return frozenset(pairs)
        pairs |= {(op, raw.name.decode()) for op in raw.ops.decode().split()}
    raise AssertionError("the tables end")


def kernel_names() -> frozenset[str]:
    """Names of all kernels of the library."""
    return frozenset(name for _, name in kernels())


class NativeFile:
    """A `.lite` file mapped by the runtime itself. Raises ModelFormatError when it is damaged."""

    def __init__(self, path: Path) -> None:
        self._lib = library()
        self.state = file_state(path)
        error = ctypes.create_string_buffer(_ERROR_BYTES)
        self.handle = self._lib.lite_file_open(str(path).encode(), error, _ERROR_BYTES)
        if not self.handle:
            raise ModelFormatError(error.value.decode(errors="replace"))

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self._lib.lite_file_close(self.handle)
            self.handle = None


class NativeProgram:
    """A program loaded into the native runtime. Not for two threads at once.

    `data` is what `plan.program.encode` made, or encode_opencl of the OpenCL backend, `weights` the
    blobs of its table. Raises ModelFormatError when the runtime refuses it. `device` is an OpenCL
    device's number or part of its name, `timed` lets its steps note their times. `max_isa` lowers
    the instruction set; for tests, `fail_allocation` makes the n-th allocation fail, and `l2_bytes`
    is a second-level cache to prepare for in place of this machine's.
    """

    def __init__(
        self,
        data: bytes,
        weights: Sequence[np.ndarray],
        *,
        threads: int = 0,
        pin: bool = False,
        max_isa: str | None = None,
        memory_limit_bytes: int = 0,
        fail_allocation: int = 0,
        l2_bytes: int = 0,
        device: str | None = None,
        cache_dir: Path | None = None,
        timed: bool = False,
    ) -> None:
        # The runtime reads weights in place: they are kept alive.
        arrays = [dense(w) for w in weights]
        count = len(arrays)
        addresses = (ctypes.c_void_p * max(count, 1))(*(w.ctypes.data for w in arrays))
        sizes = (ctypes.c_size_t * max(count, 1))(*(w.nbytes for w in arrays))
        options = Options(
            threads,
            int(pin),
            max_isa.encode() if max_isa else None,
            fail_allocation,
            memory_limit_bytes,
            l2_bytes,
            0,
            device.encode() if device else None,
            str(cache_dir).encode() if cache_dir else None,
            int(timed),
        )
        error = ctypes.create_string_buffer(_ERROR_BYTES)
        handle = library().lite_program_load(
            data, len(data), addresses, sizes, count, ctypes.byref(options), error, _ERROR_BYTES
        )
        self._adopt(handle, arrays, error)

    @classmethod
    def of_file(cls, file: NativeFile, *, threads: int = 0) -> NativeProgram:
        """The program that a file holds for this machine. Raises ModelFormatError."""
        program = cls.__new__(cls)
        options = Options(threads, backend=_CPU)
        error = ctypes.create_string_buffer(_ERROR_BYTES)
        handle = library().lite_file_program(
            file.handle, None, ctypes.byref(options), error, _ERROR_BYTES
        )
        program._adopt(handle, file, error)
        return program

    def _adopt(self, handle: int | None, kept: Any, error: Any) -> None:
        """`kept` owns the weights that the program reads."""
        self._handle, self._kept, self._lib = handle, kept, library()
        if not handle:
            raise ModelFormatError(
                tr("native runtime: {error}", error=error.value.decode(errors="replace"))
            )
        lib = self._lib
        self.inputs = [
            self._info(lib.lite_program_input(handle, i))
            for i in range(lib.lite_program_num_inputs(handle))
        ]
        self.outputs = [
            self._info(lib.lite_program_output(handle, i))
            for i in range(lib.lite_program_num_outputs(handle))
        ]
        self._rooms = Rooms(self.outputs)
        self._tapped: dict[str, TensorInfo] = {}
        self._error = ctypes.create_string_buffer(_ERROR_BYTES)  # of runs

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._lib.lite_program_free(self._handle)
            self._handle = None

    @property
    def choice(self) -> str:
        """What runs it and why: "cpu", or "opencl: " and the device."""
        return str(self._lib.lite_program_choice(self._handle).decode(errors="replace"))

    @cached_property
    def threads(self) -> int:
        return int(self._lib.lite_program_threads(self._handle))

    def _info(self, index: int) -> TensorInfo:
        raw = RawTensor()
        if self._lib.lite_program_tensor(self._handle, index, ctypes.byref(raw)):
            raise IndexError(tr("tensor {index} does not exist", index=index))
        return TensorInfo(index, raw)

    def tensors(self) -> list[TensorInfo]:
        return [self._info(i) for i in range(self._lib.lite_program_num_tensors(self._handle))]

    def run(
        self, inputs: Sequence[np.ndarray], out: Sequence[np.ndarray] | None = None
    ) -> list[np.ndarray]:
        """One inference. Arrays are in physical order; `out` may give the outputs' memory.

        Raises ShapeError when an array does not fit, BackendUnavailableError when the run fails.
        """
        if len(inputs) != len(self.inputs):
            raise ShapeError(
                tr(
                    "the program has {inputs} inputs, got {count}",
                    inputs=len(self.inputs),
                    count=len(inputs),
                )
            )
        arrays = [self._fitting(a, info) for a, info in zip(inputs, self.inputs)]
        outputs = list(out) if out is not None else self._rooms.take()
        for array, info in zip(outputs, self.outputs):
            if not is_dense(array) or array.nbytes != info.nbytes:
                raise ShapeError(
                    tr(
                        "output '{info}' needs {nbytes} contiguous bytes, aligned to {itemsize}",
                        info=info.name,
                        nbytes=info.nbytes,
                        itemsize=info.dtype.itemsize,
                    )
                )
        bind, handle, error = self._lib.lite_program_bind, self._handle, self._error
        for array, info in zip((*arrays, *outputs), (*self.inputs, *self.outputs)):
            if bind(handle, info.tensor, address_of(array), array.nbytes):
                raise ShapeError(
                    tr("'{info}' does not take {nbytes} bytes", info=info.name, nbytes=array.nbytes)
                )
        if self._lib.lite_program_run(handle, error, _ERROR_BYTES):
            raise BackendUnavailableError(
                tr("native runtime: {error}", error=error.value.decode(errors="replace"))
            )
        return outputs

    @staticmethod
    def _fitting(array: np.ndarray, info: TensorInfo) -> np.ndarray:
        if array.shape != info.dims or array.dtype != info.dtype.np:
            raise ShapeError(
                tr(
                    "input '{info}' is {dtype}{dims}, got {given}{shape}",
                    info=info.name,
                    dtype=info.dtype,
                    dims=list(info.dims),
                    given=array.dtype,
                    shape=list(array.shape),
                )
            )
        return dense(array)

    def tap(self, name: str, on: bool = True) -> None:
        """Keeps a copy of a tensor in every run. Raises ShapeError for an unknown name."""
        index = self._lib.lite_program_find(self._handle, name.encode())
        error = ctypes.create_string_buffer(_ERROR_BYTES)
        if index < 0:
            raise ShapeError(tr("the program has no tensor '{name}'", name=name))
        if self._lib.lite_program_tap(self._handle, index, int(on), error, _ERROR_BYTES):
            raise BackendUnavailableError(
                tr("native runtime: {error}", error=error.value.decode(errors="replace"))
            )
        if on:
            self._tapped[name] = self._info(index)
        else:
            self._tapped.pop(name, None)

    def tapped(self) -> dict[str, np.ndarray]:
        """Copies that the last run made, dense, in physical order."""
        return {name: self._copy(info) for name, info in self._tapped.items()}

    def _copy(self, info: TensorInfo) -> np.ndarray:
        out = np.empty(info.dims, info.dtype.np)
        address = self._lib.lite_program_data(self._handle, info.tensor)
        if info.nbytes:
            ctypes.memmove(out.ctypes.data, address, info.nbytes)
        return out

    def steps(self) -> list[StepInfo]:
        """Steps with the kernels chosen and the times of the last run."""
        out, raw = [], RawStep()
        for i in range(self._lib.lite_program_num_steps(self._handle)):
            self._lib.lite_program_step(self._handle, i, ctypes.byref(raw))
            out.append(StepInfo(raw))
        return out

    def step_times_ns(self) -> list[int]:
        """Duration of each step in the last run."""
        return [s.end_ns - s.start_ns for s in self.steps()]

    def note_threads(self, on: bool) -> None:
        """Whether the next runs note what each thread computes of each step."""
        self._lib.lite_program_note_threads(self._handle, int(on))

    def thread_times_ns(self, step: int) -> tuple[int, ...]:
        """What each thread computed of a step in the last run (the rest of the step it waited);
        empty when that was not noted."""
        ask, handle = self._lib.lite_program_thread_ns, self._handle
        spent = [ask(handle, step, thread) for thread in range(self.threads)]
        return tuple([ns for ns in spent if ns >= 0])

    def memory(self) -> MemoryInfo:
        raw = MemoryInfo()
        self._lib.lite_program_memory(self._handle, ctypes.byref(raw))
        return raw

    @property
    def run_ns(self) -> int:
        """Wall time of the last run."""
        return int(self.memory().run_ns)
