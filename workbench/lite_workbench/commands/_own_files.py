"""A verb does not write over a file that it reads."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from lite_engine.files import keep_inputs

#: Options that name what is read, what is written, and what is read and gone on with.
READ = ("model", "models", "pipeline", "baseline", "candidate", "other", "params", "input",
        "image", "images", "stream", "data", "labels", "calibration", "quantize", "quantized",
        "versions", "tokenizer", "operators", "library", "replace", "replace_pattern", "repeat",
        "field_results", "ssh_config")  # fmt: skip
WRITTEN = ("output", "json", "csv", "trace", "netron", "draw", "predictions", "report", "analyze",
           "field_report")  # fmt: skip
CONTINUED = ("resume", "trade_off")


def check_outputs(options: argparse.Namespace, rewrites: bool) -> None:
    """With `rewrites` a `.lite` file may be its own --output. Raises UsageError."""
    from lite_engine.model_file import is_lite

    sources = [path for name in READ for path in _files(getattr(options, name, None))]
    for name in WRITTEN:
        for out in _files(getattr(options, name, None)):
            own = [x for x in sources if not (rewrites and name == "output" and is_lite(x))]
            keep_inputs(out, own, f"--{name.replace('_', '-')}")


def _files(value: Any) -> Iterator[Path]:
    """The files that an option names, also as NAME=FILE, FILE:K or A,B."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _files(item)
    elif isinstance(value, (str, Path)):
        text = str(value)
        for part in {text, text.rpartition("=")[2], text.rpartition(":")[0], *text.split(",")}:
            with suppress(OSError):  # a name that is too long is no file
                if Path(part).is_file():
                    yield Path(part)
