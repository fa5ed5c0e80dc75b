"""@NAME@: a photo in, the answer out, with Python's ctypes alone.

    app.py LIBRARY @MODEL@ PHOTO [DRAWN.png]

Prints the answer as JSON with each stage's time; DRAWN.png is the photo with the answer on it.
"""

import ctypes
import pathlib
import sys


def declare(library):
    """The functions that are used here, with their types."""
    pointer, text, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
    for name, result, arguments in (
        ("lite_file_open", pointer, (text, text, size)),
        ("lite_file_close", None, (pointer,)),
        ("lite_app_open", pointer, (pointer, pointer, text, size)),
        ("lite_app_free", None, (pointer,)),
        ("lite_app_run", ctypes.c_int, (pointer, text, size, text, size)),
        ("lite_app_answer", text, (pointer, ctypes.c_int)),
        ("lite_app_drawn", pointer, (pointer, ctypes.POINTER(size))),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def main(library_path, model_path, photo_path, drawn_path=None):
    lite = declare(ctypes.CDLL(library_path))
    error = ctypes.create_string_buffer(1024)
    file = lite.lite_file_open(model_path.encode(), error, len(error))
    app = lite.lite_app_open(file, None, error, len(error)) if file else None
    if not app:
        sys.exit(f"error: {error.value.decode()}")
    photo = pathlib.Path(photo_path).read_bytes()
    if lite.lite_app_run(app, photo, len(photo), error, len(error)):
        sys.exit(f"error: {photo_path}: {error.value.decode()}")
    print(lite.lite_app_answer(app, 1).decode(), end="")
    if drawn_path:
        size = ctypes.c_size_t()
        png = lite.lite_app_drawn(app, ctypes.byref(size))
        pathlib.Path(drawn_path).write_bytes(ctypes.string_at(png, size.value))
    lite.lite_app_free(app)
    lite.lite_file_close(file)


if __name__ == "__main__":
    if not 4 <= len(sys.argv) <= 5:
        sys.exit("usage: app.py LIBRARY @MODEL@ PHOTO [DRAWN.png]")
    try:
        main(*sys.argv[1:])
    except OSError as missing:
        sys.exit(f"error: {missing}")
