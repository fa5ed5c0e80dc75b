"""`%lite VERB …` and `%%lite`: the verbs of the command, with objects instead of text.

%load_ext lite_workbench
profile = %lite profile model.onnx --backend x86
%%lite
info model.onnx
convert model.onnx -o model.lite
"""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from IPython.core.completer import SimpleCompletion, context_matcher
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class, needs_local_scope
from lite_engine.errors import LiteError, UsageError
from lite_engine.terminal import error_line
from lite_messages import tr

from .commands import available, call, get_command, parser_for
from .rich import bundle

_LINE = re.compile(r"^\s*(?:[\w, ]+=\s*)?%{1,2}lite\b\s*(.*)$")


class Shown:
    """A verb's result in a notebook: its own rich display, else the text of the command.

    `value` is the object; attributes and items are the object's.
    """

    def __init__(self, value: Any, text: str) -> None:
        self.value, self.text = value, text

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.value, name)

    def __getitem__(self, key: Any) -> Any:
        return self.value[key]

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any] | None:
        made = bundle(_answer(self.value))
        return made and {**made, "text/plain": self.text}

    def _repr_html_(self) -> str:
        own = getattr(self.value, "_repr_html_", None)
        return own() if own else f"<pre>{html.escape(self.text)}</pre>"


def _answer(value: Any) -> Any:
    """What a verb's result is about: a profile with advice is shown as the profile."""
    return getattr(value, "profile", value)


@magics_class
class LiteMagics(Magics):
    """The `%lite` magic."""

    @needs_local_scope
    @line_cell_magic
    def lite(self, line: str, cell: str | None = None, local_ns: Any = None) -> Any:
        """Runs one verb (%lite) or one per line (%%lite); the last result is the cell's.

        The arguments are those of the `lite` command: `%lite VERB --help` lists them. `{name}` is
        replaced by a variable. Results are objects: `profile = %lite profile model.onnx`.
        """
        lines = [line] if cell is None else [line, *cell.splitlines()]
        names = {**getattr(self.shell, "user_ns", {}), **(local_ns or {})}
        result: Any = None
        for text in lines:
            text = _without_comment(text).strip()
            if cell is None or (text and not text.startswith("#")):
                result = self._one(text, names)
        return result

    def _one(self, text: str, names: Mapping[str, Any]) -> Any:
        try:
            return run_verb(_arguments(text, names))
        except LiteError as error:
            print(error_line(error))
            return None


def _without_comment(text: str) -> str:
    """What stands before a # that begins a word outside quotes."""
    quote = ""
    for i, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character == "#" and text[i - 1 : i].isspace():
            return text[:i]
    return text


def _arguments(text: str, names: Mapping[str, Any]) -> list[str]:
    """Words of a line, `{name}` replaced by a variable. Raises UsageError."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}") from None

    def value(match: re.Match[str]) -> str:
        if match[1] not in names:
            raise UsageError(tr("there is no variable {match!r}", match=match[1]))
        return str(names[match[1]])

    return [re.sub(r"\{(\w+)\}", value, word) for word in words]


def run_verb(words: list[str]) -> Shown | None:
    """VERB and arguments → what it gives. Raises LiteError; --help prints and gives None."""
    if not words or words[0] in ("-h", "--help", "help"):
        from .cli import usage

        print(usage().replace("lite VERB", "%lite VERB"))
        return None
    name, *rest = words
    if name not in available():
        raise UsageError(
            tr("{name!r} is not a verb", name=name),
            fix=tr("verbs: {verbs}", verbs=", ".join(available())),
        )
    if name == "lab":  # a second server would hold this kernel until it ends
        raise UsageError(
            tr("this notebook is in Jupyter already"), fix=tr("run `lite lab` in a terminal")
        )
    command = get_command(name)
    parser = parser_for(command, "%lite")
    if "-h" in rest or "--help" in rest:
        print(parser.format_help())
        return None
    options = parser.read(rest)
    result = call(command, options)
    return Shown(result, command.text(result, options))


# ---- completion


@context_matcher(identifier="lite.verbs", priority=200)  # type: ignore[misc]
def lite_matcher(context: Any) -> dict[str, Any]:
    """Verbs, options, the values of options, and files; nothing of Python."""
    before = context.line_with_cursor[: context.cursor_position]
    found = _LINE.match(before)
    in_cell = context.full_text.lstrip().startswith("%%lite")
    if found is None and not in_cell:
        return {"completions": [], "suppress": False}
    text = found[1] if found else before
    words, fragment = text[: len(text) - len(_last(text))].split(), _last(text)
    choices = candidates(words, fragment, getattr(get_shell(), "user_ns", {}))
    fitting = [SimpleCompletion(text=c, type="lite") for c in choices if c.startswith(fragment)]
    return {"completions": fitting, "suppress": True, "ordered": True,
            "matched_fragment": fragment}  # fmt: skip


def _last(text: str) -> str:
    return re.search(r"\S*$", text)[0]  # type: ignore[index]


def get_shell() -> InteractiveShell | None:
    from IPython import get_ipython

    shell: InteractiveShell | None = get_ipython()
    return shell


def candidates(words: list[str], fragment: str, names: Mapping[str, Any]) -> list[str]:
    """What may stand next after these words."""
    if not words:
        return available()
    if words[0] not in available():
        return []
    parser = parser_for(get_command(words[0]))
    options = {o: a for a in parser._actions for o in a.option_strings if o.startswith("--")}
    last = options.get(words[-1])
    if last is not None and last.nargs != 0:
        return values_of(words[-1], last, names, fragment)
    if fragment.startswith("-"):
        return [o for o in options if o not in words]
    return models(fragment, names)


def values_of(option: str, action: Any, names: Mapping[str, Any], fragment: str = "") -> list[str]:
    """Choices of an option; targets, backends and layers of open sessions where they fit; else
    files."""
    from lite_engine import settings

    from .names import BACKENDS
    from .session import Session

    if action.choices:
        return list(map(str, action.choices))
    if option == "--backend":
        return list(settings.backends())
    if option in ("--targets", "--backends"):
        return [*BACKENDS, "x86,opencl", "x86,arm,opencl", "x86,reference"]
    if option in ("--layers", "--until", "--tap"):
        sessions = [v for v in names.values() if isinstance(v, Session)]
        return [n.name for s in sessions for n in s.model.graph.nodes]
    return files(fragment) if action.type is None else []


_MODELS = (".onnx", ".tflite", ".lite", ".nb", ".pdmodel", ".json", ".pb", ".caffemodel")


def models(fragment: str, names: Mapping[str, Any]) -> list[str]:
    """Model files and folders that begin like this, and `{variables}` that hold a model's path."""
    held = [f"{{{k}}}" for k, v in names.items() if isinstance(v, Path) and v.suffix in _MODELS]
    return [*files(fragment, _MODELS), *held]


def files(fragment: str, suffixes: tuple[str, ...] = ()) -> list[str]:
    """Folders, and files of these suffixes (of any without one), that begin with what is typed."""
    head, slash, start = fragment.rpartition("/")
    folder = Path(f"{head}{slash}" or ".").expanduser()
    try:
        found = sorted(folder.iterdir())
    except OSError:
        return []
    shown = [p for p in found if p.name.startswith(start) and (start or p.name[0] != ".")]
    return [
        f"{head}{slash}{p.name}{'/' if p.is_dir() else ''}"
        for p in shown
        if p.is_dir() or not suffixes or p.suffix in suffixes
    ]


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext lite_workbench``"""
    shell.register_magics(LiteMagics)
    if lite_matcher not in shell.Completer.custom_matchers:
        shell.Completer.custom_matchers.append(lite_matcher)


def unload_ipython_extension(shell: Any) -> None:
    """``%unload_ext lite_workbench``"""
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("lite", None)
    if lite_matcher in shell.Completer.custom_matchers:
        shell.Completer.custom_matchers.remove(lite_matcher)
