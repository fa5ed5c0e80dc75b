"""Join a widget's ES modules into the one string that anywidget ships.

Our JavaScript is written as plain modules that run unmodified under ``node --test``. anywidget
wants one source text per widget, and a browser page behind a proxy has nowhere to fetch relative
imports from, so `bundle` inlines them: each imported module becomes one function scope, in the
order of first use. It knows exactly the forms that we use and refuses everything else:

    import { a, b as c } from "./x.js";      import * as ns from "./x.js";
    export function f   export async function f   export const c   export class C
    export default …    (in the entry only)

The output depends only on the source texts: same files, same bytes.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_IMPORT = re.compile(
    r"^import\s+(?:\{(?P<names>[^}]*)\}|\*\s+as\s+(?P<space>\w+))\s+"
    r'from\s+"(?P<path>[^"\n]+)";?[ ]*$',
    re.MULTILINE,
)
_EXPORT = re.compile(
    r"^export\s+(?P<decl>(?:async\s+function|function|const|class)\s+(?P<name>[A-Za-z_$][\w$]*))",
    re.MULTILINE,
)
# Comments that have lines of their own; `//` and `/*` inside a line are left alone.
_COMMENT = re.compile(r"^[ \t]*(?://.*|/\*\*(?:[^*]|\*(?!/))*\*/[ \t]*)\n", re.MULTILINE)
_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)
_LEFT_OVER = re.compile(r"^(?:import\b|export\b).*$", re.MULTILINE)


class BundleError(ValueError):
    """A module cannot be inlined; the message names the file, the line and the remedy."""


@cache
def bundle(entry: Path) -> str:
    """Return `entry` and everything it imports as one ES module. Raises BundleError."""
    scopes: dict[Path, _Scope] = {}
    source = _read(entry)
    body = _inline(source, entry, scopes, trail=(entry,))
    inlined = [scope.text for scope in scopes.values()]
    whole = "\n".join([*inlined, body.strip(), ""])
    # Indentation is a quarter of the text, and every instance of a widget sends it again.
    return _INDENT.sub("", _COMMENT.sub("", whole))


class _Scope:
    """One inlined module: its variable, its exported names and its wrapped text."""

    def __init__(self, variable: str, names: list[str], body: str) -> None:
        self.variable = variable
        self.names = frozenset(names)
        exports = ", ".join(names)
        self.text = f"const {variable} = (() => {{\n{body.strip()}\nreturn {{ {exports} }};\n}})();"


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError as error:
        raise BundleError(f"{path}: no such module; correct the import or add the file") from error


def _inline(source: str, path: Path, scopes: dict[Path, _Scope], trail: tuple[Path, ...]) -> str:
    """Replace the imports of `source` by destructuring of scopes, adding those scopes first."""

    def replace(match: re.Match[str]) -> str:
        target = match["path"]
        if not target.startswith("."):
            raise BundleError(f'{path}: import from "{target}"; only relative modules are inlined')
        scope = _scope((path.parent / target).resolve(), scopes, trail)
        if match["space"]:
            return f"const {match['space']} = {scope.variable};"
        pairs = [part.split() for part in match["names"].split(",") if part.strip()]
        missing = [pair[0] for pair in pairs if pair[0] not in scope.names]
        if missing:
            raise BundleError(f'{path}: "{target}" does not export {", ".join(missing)}')
        names = ", ".join(f"{p[0]}: {p[2]}" if len(p) == 3 else p[0] for p in pairs)
        return f"const {{ {names} }} = {scope.variable};"

    body = _IMPORT.sub(replace, source)
    for line in _LEFT_OVER.findall(body):
        entry_export = len(trail) == 1 and (
            line.startswith("export default") or _EXPORT.match(line)
        )
        if not entry_export and not _EXPORT.match(line):
            raise BundleError(f"{path}: cannot inline `{line}`; see lite_widgets/_bundle.py")
    return body


def _scope(path: Path, scopes: dict[Path, _Scope], trail: tuple[Path, ...]) -> _Scope:
    if path in trail:
        names = " → ".join(step.name for step in (*trail, path))
        raise BundleError(f"{path}: modules import each other in a circle: {names}")
    if path not in scopes:
        body = _inline(_read(path), path, scopes, (*trail, path))
        names = [match["name"] for match in _EXPORT.finditer(body)]
        body = _EXPORT.sub(lambda match: match["decl"], body)
        # The variable is numbered by first use, so that equal file names cannot collide.
        scopes[path] = _Scope(f"$lite{len(scopes)}", names, body)
    return scopes[path]
