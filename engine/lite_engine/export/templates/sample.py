"""Runs the model once with Python's ctypes alone: sample.py MODEL.lite [INPUT.raw [BACKEND]]

INPUT.raw holds the first input's bytes; without it the input is zero. Prints the first values of
every output, and on standard error what was chosen. BACKEND is auto, cpu or opencl. The library is
lib/liblite_runtime.so beside the samples' folder. With lite-workbench installed,
`lite_engine.Predictor` does the same in one line.
"""

import ctypes
import pathlib
import struct
import sys


class TensorInfo(ctypes.Structure):
    """lite_tensor_info of lite_runtime.h."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_int32),
        ("role", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("dims", ctypes.c_int64 * 8),
        ("pitch", ctypes.c_int64),
        ("halo", ctypes.c_int32 * 4),
        ("bytes", ctypes.c_size_t),
    )


class Options(ctypes.Structure):
    """lite_options of lite_runtime.h."""

    _fields_ = (
        ("threads", ctypes.c_int32),
        ("pin", ctypes.c_int32),
        ("max_isa", ctypes.c_char_p),
        ("fail_allocation", ctypes.c_int64),
        ("memory_limit_bytes", ctypes.c_int64),
        ("l2_bytes", ctypes.c_int64),
        ("backend", ctypes.c_int32),
        ("device", ctypes.c_char_p),
        ("cache_dir", ctypes.c_char_p),
        ("timed", ctypes.c_int32),
        ("precision", ctypes.c_char_p),
        ("tune", ctypes.c_int32),
    )


# Element types of struct by their number in TensorInfo.dtype; bfloat16 (3) as its bits.
TYPES = {1: "f", 2: "e", 3: "H", 4: "d", 5: "b", 6: "B", 7: "h", 8: "H",
         9: "i", 10: "I", 11: "q", 12: "Q", 13: "B"}  # fmt: skip
BACKENDS = ("auto", "cpu", "opencl")  # by the number in Options.backend
ABI_VERSION = 5


def declare(library):
    """The functions that are used here, with their types."""
    pointer, text, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
    for name, result, arguments in (
        ("lite_file_open", pointer, (text, text, size)),
        ("lite_abi_version", ctypes.c_int, ()),
        ("lite_file_program", pointer, (pointer, text, ctypes.POINTER(Options), text, size)),
        ("lite_program_choice", text, (pointer,)),
        ("lite_program_input", ctypes.c_int, (pointer, ctypes.c_int)),
        ("lite_program_output", ctypes.c_int, (pointer, ctypes.c_int)),
        ("lite_program_num_outputs", ctypes.c_int, (pointer,)),
        ("lite_program_tensor", ctypes.c_int, (pointer, ctypes.c_int, ctypes.POINTER(TensorInfo))),
        ("lite_program_data", pointer, (pointer, ctypes.c_int)),
        ("lite_program_run", ctypes.c_int, (pointer, text, size)),
        ("lite_program_free", None, (pointer,)),
        ("lite_file_close", None, (pointer,)),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def main(model_path, input_path=None, backend="auto"):
    library_path = pathlib.Path(__file__).resolve().parents[1] / "lib" / "liblite_runtime.so"
    lite = declare(ctypes.CDLL(str(library_path)))
    if lite.lite_abi_version() != ABI_VERSION:
        sys.exit(f"error: {library_path} is of another version than this sample")
    if backend not in BACKENDS:
        sys.exit(f"error: backend {backend!r} is not one of {', '.join(BACKENDS)}")
    options = Options(backend=BACKENDS.index(backend))
    error = ctypes.create_string_buffer(512)
    file = lite.lite_file_open(model_path.encode(), error, len(error))
    if not file:
        sys.exit(f"error: {error.value.decode()}")
    program = lite.lite_file_program(file, None, options, error, len(error))
    if not program:
        sys.exit(f"error: {error.value.decode()}")
    info = TensorInfo()
    tensor = lite.lite_program_input(program, 0)
    lite.lite_program_tensor(program, tensor, info)
    data = bytes(info.bytes)
    if input_path:
        data = pathlib.Path(input_path).read_bytes()
    if len(data) != info.bytes:
        sys.exit(f"error: {input_path}: {info.bytes} bytes expected")
    ctypes.memmove(lite.lite_program_data(program, tensor), data, len(data))
    if lite.lite_program_run(program, error, len(error)):
        sys.exit(f"error: {error.value.decode()}")
    for i in range(lite.lite_program_num_outputs(program)):
        tensor = lite.lite_program_output(program, i)
        lite.lite_program_tensor(program, tensor, info)
        kind = TYPES[info.dtype]
        count = min(info.bytes // struct.calcsize(kind), 10)
        raw = ctypes.string_at(
            lite.lite_program_data(program, tensor), count * struct.calcsize(kind)
        )
        values = struct.unpack(f"<{count}{kind}", raw)
        texts = (f"{v:.6g}" if isinstance(v, float) else str(v) for v in values)
        print(f"{info.name.decode()}: {' '.join(texts)}")
    print(lite.lite_program_choice(program).decode(), file=sys.stderr)
    lite.lite_program_free(program)
    lite.lite_file_close(file)


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 4:
        sys.exit("usage: sample.py MODEL.lite [INPUT.raw [BACKEND]]")
    try:
        main(*sys.argv[1:])
    except OSError as missing:
        sys.exit(f"error: {missing}")
