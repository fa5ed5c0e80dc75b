"""OpenCL kernels of custom operators: a text in the form of the files in `kernels`."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from lite_messages import tr

from ... import settings
from ...errors import UsageError
from ...files import write_file
from ...ops import OpDef, is_custom
from .programs import custom_files
from .reach import ReachError, statement


def opencl_kernel(op: OpDef, source: str, *, dtype: str = "f32") -> Path:
    """Gives a custom operator a kernel for OpenCL devices and returns the file that holds it, for
    `lite_run_opencl --library`.

    `source` has one kernel, of which a work-item makes one element of the first output, and lines
    `//@` above it that state what it reads and writes: CONTRIBUTING.md, "Add a kernel". It gets
    inputs, outputs and `int n`; sizes and attributes are `#define`s where `//@ options` lists them.
    `dtype` lists the types of the first input that it takes. Raises UsageError for a text without
    these lines.
    """
    if not is_custom(op.name):
        raise UsageError(tr("{op} is not a custom operator", op=op.name))
    found = re.search(r"^//@ kernel (\w+)$", source, re.M)
    if not found:
        raise UsageError(tr("{op}: the text has no line `//@ kernel NAME`", op=op.name))
    digest = hashlib.blake2b(source.encode(), digest_size=8).hexdigest()
    name = f"{found[1]}_{digest}"  # another text is another kernel, also for compiled ones
    path = settings.cache_dir() / "custom" / f"{name}.cl"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, re.sub(rf"\b{found[1]}\b", name, source).encode())
    custom_files[name] = path
    try:
        statement(name, name)
    except (ReachError, SyntaxError, IndexError) as error:  # a parameter without a name
        del custom_files[name]
        raise UsageError(
            tr("{op}: the lines `//@` are not complete: {error}", op=op.name, error=error)
        ) from None
    op.kernels[:] = [k for k in op.kernels if k.backend != "opencl"]
    op.kernel("opencl", name, dtype=dtype)
    return path
