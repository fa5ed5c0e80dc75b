"""The `lite` command.

Exit codes: 0 good, 1 the thing asked for failed or fell short, 2 wrong usage, 130 Ctrl-C. Errors
are one line `error: …`; tracebacks and the debug log only with LITE_DEBUG=1. `--json -` prints one
document and nothing else.
"""

from __future__ import annotations

import difflib
import io
import logging
import sys
from collections.abc import Sequence

from lite_engine import __version__, settings
from lite_engine.errors import LiteError, UsageError

from .commands import VERBS, available, get_command, parser_for


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one verb and returns the exit code."""
    args = list(sys.argv[1:] if argv is None else argv)
    if isinstance(sys.stdout, io.TextIOWrapper):  # it may lack ×, a file name may be no text
        sys.stdout.reconfigure(errors="replace")
    try:
        if _debugging():
            logging.basicConfig(format="%(name)s: %(message)s")
            logging.getLogger("lite_engine").setLevel(logging.DEBUG)
        for line in settings.misspelt():
            print(f"warning: {line}", file=sys.stderr)
        return _main(args)
    except UsageError as error:
        return _fail(error, 2)
    except LiteError as error:
        return _fail(error, 1)
    except KeyboardInterrupt as error:
        print(f"error: {str(error) or 'interrupted'}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except MemoryError as error:
        return _fail(f"memory ran out; {str(error) or 'use smaller inputs'}", 1)
    except OSError as error:  # the machine's: no room in /tmp, a folder without permission
        return _fail(f"{error.filename or 'standard output'}: {error.strerror or error}", 1)


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
        hint = f"did you mean {near[0]}?" if near else f"verbs: {', '.join(available())}"
        raise UsageError(f"{name!r} is not a verb; {hint}")
    command = get_command(name)
    options = parser_for(command).parse_args(args[1:])
    result = command.call(options)
    text = command.show(result, options)
    if text:
        print(text, flush=True)  # a full disk behind it is told here
    return command.code(result, options)


def usage() -> str:
    lines = ["lite VERB …  (lite VERB --help)", ""]
    lines += [f"  {name:<10} {VERBS[name]}" for name in available()]
    return "\n".join(lines)


def _debugging() -> bool:
    """LITE_DEBUG; nonsense in it is told where a verb reads the settings."""
    try:
        return bool(settings.get("LITE_DEBUG"))
    except UsageError:
        return False


def _fail(error: object, code: int) -> int:
    if _debugging():
        import traceback

        traceback.print_exc()
    message = " ".join(str(error).split())
    print(f"error: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    raise SystemExit(main())
