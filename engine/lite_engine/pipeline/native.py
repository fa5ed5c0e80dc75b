"""ctypes binding of the native runtime's pipelines (`lite_runtime.h`, lite_app)."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from lite_messages import tr

from ..backends.cpu.native import library
from ..errors import LiteError, UsageError
from ..ir import DType

_ERROR_BYTES = 1024
_DTYPES = tuple(DType)
#: What runs the i-th model: an array (1,C,H,W) or (1,H,W,C) → its outputs, in order.
Run = Callable[[int, np.ndarray], Sequence[np.ndarray]]


class _Array(ctypes.Structure):
    _fields_ = (
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("dims", ctypes.c_int64 * 8),
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t),
    )


_Call = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(_Array), ctypes.POINTER(_Array),
    ctypes.POINTER(ctypes.c_char), ctypes.c_size_t,
)  # fmt: skip
_MAX_OUTPUTS = 16


def _lib() -> ctypes.CDLL:
    lib = library()
    pointer, text, size, number = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int)
    signatures: dict[str, tuple[Any, ...]] = {
        "lite_app_make": (pointer, text, size, _Call, pointer, text, size),
        "lite_app_free": (None, pointer),
        "lite_app_run": (number, pointer, text, size, text, size),
        "lite_app_answer": (text, pointer, number),
        "lite_app_drawn": (pointer, pointer, ctypes.POINTER(size)),
        "lite_image_decode": (
            pointer, text, size, ctypes.POINTER(ctypes.c_int32), ctypes.POINTER(ctypes.c_int32),
            text, size,
        ),
        "lite_outputs_read": (pointer, text, size, ctypes.POINTER(_Array), number, text, size),
        "lite_text_free": (None, pointer),
    }  # fmt: skip
    for name, (result, *arguments) in signatures.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


class NativePipeline:
    """A pipeline in the native runtime, whose models `run` runs. Not for two threads at once.

    Raises UsageError when the runtime refuses the document."""

    def __init__(self, document: bytes, run: Run) -> None:
        self._lib, self._run = _lib(), run
        self._raised: BaseException | None = None
        self._kept: list[np.ndarray] = []
        self._call = _Call(self._called)
        error = ctypes.create_string_buffer(_ERROR_BYTES)
        self._handle = self._lib.lite_app_make(
            document, len(document), self._call, None, error, _ERROR_BYTES
        )
        if not self._handle:
            raise UsageError(error.value.decode(errors="replace"))

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._lib.lite_app_free(self._handle)
            self._handle = None

    def run(self, image: bytes) -> None:
        """Raises UsageError for an image that cannot be read, and what a model raises."""
        error = ctypes.create_string_buffer(_ERROR_BYTES)
        self._raised = None
        failed = self._lib.lite_app_run(self._handle, image, len(image), error, _ERROR_BYTES)
        self._kept = []
        if self._raised is not None:
            raise self._raised
        if failed:
            raise UsageError(error.value.decode(errors="replace"))

    def answer_of(self, image: bytes, *, times: bool = False) -> dict[str, Any]:
        """`run` and `answer`."""
        self.run(image)
        made: dict[str, Any] = json.loads(self.answer(times=times))
        return made

    def answer(self, *, times: bool) -> str:
        """JSON. Raises LiteError when memory does not suffice."""
        text = self._lib.lite_app_answer(self._handle, int(times))
        if text is None:
            raise LiteError(tr("the answer does not fit in memory"))
        return str(text.decode())

    def drawn(self) -> bytes:
        """A PNG file. Raises LiteError when memory does not suffice."""
        size = ctypes.c_size_t()
        data = self._lib.lite_app_drawn(self._handle, ctypes.byref(size))
        if not data:
            raise LiteError(tr("the answer does not fit in memory"))
        return ctypes.string_at(data, size.value)

    def _called(self, _: Any, model: int, given: Any, outputs: Any, error: Any, room: int) -> int:
        """What the runtime calls; an exception must not cross it."""
        try:
            made = self._run(model, _as_array(given[0]))
            self._kept = [np.ascontiguousarray(a) for a in made]
            if len(self._kept) > _MAX_OUTPUTS:
                raise UsageError(
                    tr("a pipeline's model has at most {count} outputs", count=_MAX_OUTPUTS)
                )
            for i, array in enumerate(self._kept):
                outputs[i] = _described(array)
        except BaseException as raised:  # noqa: BLE001 (handed on by `run`)
            self._raised = raised
            return -1
        return len(self._kept)


def read_outputs(document: bytes, outputs: Sequence[np.ndarray]) -> dict[str, Any]:
    """What outputs mean, as `lite_outputs_read` says it; `document` is what it takes. Raises
    UsageError for an adapter that the runtime refuses."""
    lib, error = _lib(), ctypes.create_string_buffer(_ERROR_BYTES)
    kept = [np.ascontiguousarray(a) for a in outputs]
    given = (_Array * max(len(kept), 1))(*map(_described, kept))
    text = lib.lite_outputs_read(document, len(document), given, len(kept), error, _ERROR_BYTES)
    if not text:
        raise UsageError(error.value.decode(errors="replace"))
    try:
        made: dict[str, Any] = json.loads(ctypes.string_at(text))
    finally:
        lib.lite_text_free(text)
    return made


def _described(array: np.ndarray) -> _Array:
    dims = (ctypes.c_int64 * 8)(*array.shape)
    number = _DTYPES.index(DType.of(array)) + 1
    return _Array(number, array.ndim, dims, array.ctypes.data, array.nbytes)


def _as_array(given: _Array) -> np.ndarray:
    """A copy: the memory is the runtime's."""
    shape = tuple(given.dims[: given.rank])
    raw = ctypes.string_at(given.data, given.bytes)
    return np.frombuffer(raw, _DTYPES[given.dtype - 1].np).reshape(shape)


def decode_image(data: bytes) -> np.ndarray:
    """A JPEG, PNG or BMP file → (H,W,3) uint8 RGB, upright. Raises UsageError."""
    lib, error = _lib(), ctypes.create_string_buffer(_ERROR_BYTES)
    width, height = ctypes.c_int32(), ctypes.c_int32()
    pixels = lib.lite_image_decode(
        data, len(data), ctypes.byref(width), ctypes.byref(height), error, _ERROR_BYTES
    )
    if not pixels:
        raise UsageError(error.value.decode(errors="replace"))
    try:
        raw = ctypes.string_at(pixels, width.value * height.value * 3)
    finally:
        lib.lite_text_free(pixels)
    return np.frombuffer(raw, np.uint8).reshape(height.value, width.value, 3)
