"""A `.pt2` file as ONNX, by torch, in a process of its own that may only compute and read.

torch unpickles what is in the file, which can be any code: it runs here, confined where the system
can (`confined`). What comes back is read as the bytes of a stranger.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from lite_messages import tr

from .. import errors
from ..confined import confine
from ..errors import LiteError, ModelFormatError
from ..system import crash_name

#: What torch would import on the way, when no program can be started any more.
_EARLY = ("torch", "torch.onnx", "torch.export", "onnxscript")
#: Kinds of error that may be reported.
_ERRORS = {
    made.kind: made
    for made in (errors.BackendUnavailableError, ModelFormatError, errors.UsageError)
}
_CHILD = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from lite_engine.importers._torch_process import answer; answer()"
)


def exported(path: Path, options: dict[str, Any]) -> bytes:
    """The ONNX model of a `.pt2` file; `options` are those of `pytorch.from_module`. Raises what it
    does, ModelFormatError where torch ended without an answer."""
    done = subprocess.run(
        [sys.executable or "python3", "-c", _CHILD, json.dumps(sys.path)],
        input=pickle.dumps((str(path), options)), capture_output=True,
    )  # fmt: skip
    kind, data = done.stdout[:1], done.stdout[1:]
    if kind == b"+":
        return data
    if kind == b"-":
        told = json.loads(data)
        made = _ERRORS.get(told["kind"], ModelFormatError)
        raise made(told["what"], where=told["where"], fix=told["fix"])
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    why = crash_name(done.returncode) or (lines[-1] if lines else str(done.returncode))
    raise ModelFormatError(tr("torch cannot read this file: {text}", text=why), where=path)


def answer() -> None:
    """Of the process: (path, options) come in, `+` and the model or `-` and the error go out."""
    path, options = pickle.load(sys.stdin.buffer)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what code in the file prints is no answer
    try:
        from . import pytorch

        for name in _EARLY:
            if importlib.util.find_spec(name.partition(".")[0]) is not None:
                importlib.import_module(name)
        tempfile.gettempdir()  # whose name is found by writing there
        confine()
        out.write(b"+" + pytorch.read_program(Path(path), options))
    except LiteError as error:
        out.write(b"-" + json.dumps(error.to_dict()).encode())
    out.close()
