"""The `lite` command.

Exit codes: 0 good, 1 the thing asked for failed or fell short, 2 wrong usage, 130 Ctrl-C. Errors
are one line `error: …` on standard error; tracebacks and the debug log only with LITE_DEBUG=1.
`--json -` prints one document and nothing else: where the verb fails, {"error": {kind, what, where,
fix, command}}.
"""

from __future__ import annotations

import difflib
import io
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from lite_engine import __version__, settings
from lite_engine.errors import UsageError
from lite_engine.progress import listening
from lite_engine.terminal import error_line, screen
from lite_messages import tr

from .commands import VERBS, available, call, get_command, parser_for
from .commands._base import write_json
from .internal_error import as_ours
from .progress_line import ProgressLine
from .warning_lines import warnings_as_lines


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one verb and returns the exit code."""
    args = list(sys.argv[1:] if argv is None else argv)
    _open_closed_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):  # it may lack ×, a file name may be no text
        sys.stdout.reconfigure(errors="replace")
    try:
        if _debugging():
            logging.basicConfig(format="%(name)s: %(message)s")
            logging.getLogger("lite_engine").setLevel(logging.DEBUG)
        for line in settings.misspelt():
            print(tr("warning: {warning}", warning=line), file=sys.stderr)
        return _main(args)
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except (KeyboardInterrupt, Exception) as error:  # noqa: BLE001  nobody is shown a traceback
        return _fail(args, error)


def _open_closed_streams() -> None:
    """A stream that the caller closed (`2>&-`) leads to nowhere. Opened files would else get its
    number, and what a library writes to standard error would land in them."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115


def _main(args: list[str]) -> int:
    if not args or args[0] in ("-h", "--help", "help"):
        print(usage())
        return 0 if args else 2
    if args[0] in ("-V", "--version"):
        print(f"lite {__version__}")
        return 0
    name = args[0]
    if name not in available():
        near = difflib.get_close_matches(name, available(), n=1)
        hint = (
            tr("did you mean {near}?", near=near[0])
            if near
            else tr("verbs: {verbs}", verbs=", ".join(available()))
        )
        raise UsageError(tr("{name!r} is not a verb", name=name), fix=hint)
    command = get_command(name)
    options = parser_for(command).read(args[1:])
    line = ProgressLine(sys.stderr)
    try:
        with listening(line), warnings_as_lines(sys.stderr):
            result = call(command, options)
    finally:
        line.wipe()
    text = command.text(result, options)
    if text:
        print(screen(text), flush=True)  # a full disk behind it is told here
    return command.code(result, options)


def usage() -> str:
    lines = [tr("lite VERB …  (lite VERB --help)"), ""]
    lines += [f"  {name:<10} {VERBS[name]}" for name in available()]
    return "\n".join(lines)


def _debugging() -> bool:
    """LITE_DEBUG; nonsense in it is told where a verb reads the settings."""
    try:
        return bool(settings.get("LITE_DEBUG"))
    except UsageError:
        return False


def _fail(args: Sequence[str], error: BaseException) -> int:
    """Tells of the error and returns the exit code."""
    if _debugging():
        traceback.print_exc()
    told = as_ours(error)
    print(error_line(told), file=sys.stderr)
    if "--json=-" in args or ("--json", "-") in pairwise(args):
        with suppress(OSError):  # standard output itself may be what failed
            write_json({"error": told.to_dict()}, "-")
    if isinstance(error, KeyboardInterrupt):
        return 130
    return 2 if isinstance(error, UsageError) else 1


if __name__ == "__main__":
    raise SystemExit(main())
