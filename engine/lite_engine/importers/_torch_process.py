"""The process that reads a `.pt2` file for `pytorch.open`: it may only compute and read.

torch unpickles what is in the file, which can be any code: it runs here, confined where the system
can (`confined`).
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import pickle
import sys
import tempfile
from pathlib import Path

from ..confined import confine
from ..errors import LiteError
from . import pytorch

#: What torch would import on the way, when no program can be started any more.
_EARLY = ("torch", "torch.onnx", "torch.export", "onnxscript")


def answer() -> None:
    """(path, options) come in; `+` and the ONNX model, or `-` and the error, go out."""
    path, options = pickle.load(sys.stdin.buffer)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what code in the file prints is no answer
    try:
        for name in _EARLY:
            if importlib.util.find_spec(name.partition(".")[0]) is not None:
                importlib.import_module(name)
        tempfile.gettempdir()  # whose name is found by writing there
        confine()
        out.write(b"+" + pytorch.read_program(Path(path), options))
    except LiteError as error:
        out.write(b"-" + json.dumps(error.to_dict()).encode())
    out.close()
