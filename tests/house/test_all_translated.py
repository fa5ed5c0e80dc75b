"""No text that a person reads bypasses the catalogue: literals in Python, strings and templates in
JavaScript. What looks like prose and is none is listed here, with the reason."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.accents import messages, template

ROOT = Path(__file__).parents[2]
PACKAGES = ("lite_engine", "lite_widgets", "lite_workbench")

#: Two words, or a word beside a field.
PROSE = re.compile(r"[A-Za-z]{2,}[,:;]? +[a-zA-Z({…]|…} [a-z]{2,}")
#: Commands, numbers with their unit, and other languages than English.
NOT_PROSE = re.compile(
    r"^ *(lite|pip|sudo|make|adb|git|qemu-\S+|-{1,2}\w[\w-]*) "
    r"|^[\s{…}±,%]+(ms|GHz)\b"
    r"|^\s*(#|import |from \w+ import|<\w|__kernel|kernel |def |class )"
    r"|^\s*(create |select |insert |alter )"
    r"|^id, at, "
    r"|^\s*(update |pragma |where |order by )"
    r"|#define|&& lite|^Dir::|\"\$\d\"|head -n|<html|"
    r"OpenCL: {…}|-(ui|src) '?|font-family:|\w+:\d+px|max-age"
    r"|\(\?[:P!=<]|\\[sdwb]|^\^|^(dict|list|tuple)\[|\| Skip$|[\w-]+: ?[#\w]+;|^[\w-]+/\w+;"
)
#: Files whose strings are not for people, or not translated.
FILES = {
    "lite_engine/ops/*": "schemas: names of inputs, and sources in other people's words",
    "lite_engine/testing/*": "python -m lite_engine.testing, a tool for contributors",
    "lite_engine/export/templates/*": "programs that run without the packages",
    "lite_engine/ir/text.py": "a format",
    "lite_engine/profile/export.py": "formats of other tools",
    "lite_engine/compat/opt_reports.py": "Graphviz",
    "lite_engine/importers/tflite/schema.py": "names of the format",
    "lite_engine/importers/paddle/pir_ops.py": "names of the format",
    "lite_engine/model_file/naive_buffer/kernels.py": "names of the format",
    "lite_engine/model_file/needs.py": "a format",
    "lite_engine/model_file/writer.py": "names of layers and backends",
    "lite_engine/backends/opencl/reach.py": "for the authors of kernels",
    "lite_engine/backends/opencl/persistent_text.py": "OpenCL C",
    "lite_engine/devices/adb.py": "what adb prints",
    "lite_engine/devices/ssh.py": "what ssh prints",
}
#: Texts that other tools print and names that are stored, compared or fixed by others.
NAMES = {
    "invalid ELF header|file too short|cannot read file data": "what the loader prints",
    "Portable Computing Language": "a platform's name",
    "vendor library": "a key: how a library was found",
    "vendor path": "a key: how a library was found",
    "text not null default 'profile'": "SQL",
    "text not null default ''": "SQL",
    "real not null default 0": "SQL",
    "OKS mAP": "a metric's name",
    "OKS mAP@.5": "a metric's name",
    "OKS mAP medium": "a metric's name",
    "OKS mAP large": "a metric's name",
    "mask mAP": "a metric's name",
    "mask mAP@.5": "a metric's name",
    "mask mAP small": "a metric's name",
    "mask mAP medium": "a metric's name",
    "mask mAP large": "a metric's name",
    "few rows": "a variant's key in the cache of tuning",
    "matrix units": "a variant's key in the cache of verdicts",
    "Winograd on {…}": "a variant's key in the cache of verdicts",
    "smallest tile": "a variant's key in the cache of verdicts",
    "gpu without fp16 and images": "a profile's key in .lite files",
    "nvidia with matrix units": "a profile's key in .lite files",
    "int8 {…} mixed": "the name of a version, as in JSON",
    "fewer channels": "the name of a version, as in JSON",
    "zeros in weights": "the name of a version, as in JSON",
    "recommends suggests conflicts breaks replaces enhances": "fields of apt",
    "Paddle-Lite opt {…}": "a producer's name",
    "Paddle PIR": "a producer's name",
    "{…} blob {…}": "a tensor's name in a program",
    "MIN_COMBINED, MIN_FIRST, SCALED": "attribute values of TensorFlow",
    "GraphDef {…}": "a producer's name",
    "{…} sub-graph": "a graph's name",
    "runner {…}": "a file's name",
    "fault {…}": "a kernel's name",
    "Copy {…}": "a layer's name",
    "{…} to {…}": "a step's layouts or types, read by profile/moves.py",
    "{…} bytes": "the cause of an error that is logged",
    "%s: damaged compiled kernels are built again (%s: %s)": "a log message in a condition",
    "{…}WEAVE {…}": "OpenCL C",
    "{…}BLOCK {…}": "OpenCL C",
    "{…} numbers": "a test case's name",
    "{…} for {…}": "a program and what it is installed for",
    "type {…}": "a type's name where the format has none",
    " (after {…})": "the pass that broke a graph, for its author",
    "%lite VERB": "a command",
    "LITE_CHECK: {…}": "a setting's name before a text",
    "Deprecated: use `{…}`.": "a docstring",
    "{…} is not a BackendPlugin": "for the author of a plug-in",
    "cpu MHz": "a line of /proc/cpuinfo",
    "integer conv": "a key of measured peaks",
    "{…} threads": "part of a key of measured peaks",
    "Depthwise conv": "a layer type: a key, shown as it is",
    "Transposed conv": "a layer type: a key, shown as it is",
    "positional arguments": "argparse's own, looked up in the catalogue",
    "ssh://user@host[:port], adb://SERIAL, …": "addresses",
    "paired bootstrap": "a test's name in statistics",
    "mAP small": "a metric's name",
    "mAP medium": "a metric's name",
    "mAP large": "a metric's name",
    "pixel accuracy": "a metric's name",
    "exact match": "a metric's name",
    "detection Hmean": "a metric's name",
    "as in the file": "a version's name",
}
LOGS = {"debug", "info", "warning", "error", "exception"}
#: Raised by mistakes of a programmer, who reads the code.
MISTAKES = ("AssertionError", "AttributeError", "KeyError", "NotImplementedError")


def called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def not_shown(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node whose literals nobody is shown, or that are texts of the catalogue."""
    if isinstance(node, ast.Call):
        owner = getattr(getattr(node.func, "value", None), "id", "")
        if called(node) in ("tr", "trn"):
            yield from node.args
        elif owner in ("_log", "log", "logging") and called(node) in LOGS:
            yield node
        yield from (k.value for k in node.keywords if k.arg in ("source", "metavar", "command"))
    elif isinstance(node, ast.Expr):  # a docstring
        yield from [node.value] if isinstance(node.value, ast.Constant) else []
    elif isinstance(node, ast.Assert):
        yield from [node.msg] if node.msg else []
    elif isinstance(node, ast.Compare):
        yield node
    elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        yield from [node.exc] if called(node.exc) in MISTAKES else []
    elif isinstance(node, ast.JoinedStr):
        yield from node.values
    elif isinstance(node, ast.FormattedValue) and node.format_spec:
        yield node.format_spec


def bypassing(source: str) -> list[tuple[int, str]]:
    """(line, text) of each literal that reads like prose and is not in the catalogue."""
    nodes = list(ast.walk(ast.parse(source)))
    skipped: set[int] = set()
    for node in nodes:
        for part in not_shown(node):
            whole = not isinstance(node, ast.JoinedStr) and called_or_none(node) not in (
                "tr",
                "trn",
            )
            skipped.update(map(id, ast.walk(part) if whole else [part]))
    found = []
    for node in nodes:
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        elif isinstance(node, ast.JoinedStr):
            text = "".join(
                str(v.value) if isinstance(v, ast.Constant) else "{…}" for v in node.values
            )
        else:
            continue
        if PROSE.search(text) and not NOT_PROSE.search(text) and text not in NAMES:
            found.append((node.lineno, text))
    return found


def called_or_none(node: ast.AST) -> str:
    return called(node) if isinstance(node, ast.Call) else ""


def python_files() -> Iterator[tuple[Path, str]]:
    for package in PACKAGES:
        for path in sorted(ROOT.glob(f"*/{package}/**/*.py")):
            name = str(path.relative_to(path.parents[len(path.parts) - len(ROOT.parts) - 2]))
            if not any(Path(name).match(pattern) for pattern in FILES):
                yield path, name


def test_no_text_in_python_bypasses_the_catalogue():
    found = [
        f"{name}:{line}: {text}"
        for path, name in python_files()
        for line, text in bypassing(path.read_text(encoding="utf-8"))
    ]
    assert found == [], "tr(…) or trn(…) it, or say in NAMES why not"


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ('x = f"ran on {backend}"', ["ran on {…}"]),
        ('card(title="the first layer")', ["the first layer"]),
        ('f(tr("in {x} of all", x=f"{a} more"))', ["{…} more"]),
        ('raise ValueError("cannot be read")', ["cannot be read"]),
        ('tr("the first layer"); trn("{n} more layer", "{n} more layers", n)', []),
        ('"""A docstring of words."""\n_log.warning("a damaged file: %s", x)', []),
        ('f("pip install x", f"{time} ms"); assert x, "never so far"', []),
    ],
)
def test_a_literal_that_bypasses_the_catalogue_is_found(source, seen):
    assert [text for _, text in bypassing(source)] == seen


def test_exceptions_are_needed():
    """A name that no file has any more is dropped from the list."""
    sources = "\n".join(path.read_text(encoding="utf-8") for path, _ in python_files())
    parts = {part for name in NAMES for part in name.split("{…}") if part.strip()}
    assert [part for part in parts if part not in sources] == []
    for pattern in FILES:
        assert list(ROOT.glob(f"*/{pattern}")), pattern


# ---- JavaScript

#: In JavaScript: attributes, keys, styles, units and commands that look like words.
SCRIPT_NAMES = {
    "Home", "End", "Enter", "Escape",  # keys
    "Copy", "Conv 1×1", "Conv k×k", "Depthwise conv", "Transposed conv", "SE fc",  # layer types
    "fp32", "ms", "{…}Lite Workbench", "{…} GFLOP/s{…}", ".node-item path",
    "Netron: {…}", "image {…}", "lite lite-{…}",
    "not all", "there is no page to draw into",  # a media query; for authors of widgets
    "jupyter server extension enable lite_widgets.netron_view.extension",
    "pip install netron==9.3.3",
}  # fmt: skip
#: Words in the text of a template; two words, a word beside a gap or a capital word in a string.
IN_MARKUP = re.compile(r"[A-Za-z]{2,}")
IN_STRING = re.compile(r"[A-Za-z]{2,}[,:;.]?\s+[\w({]|…} [a-z]{2,}|^[A-Z][a-z]+[.…?]?$")
UNITS = re.compile(r"[\W\d]*{…}[{…}\s\W]*ms[{…}\W]*")
STYLE = re.compile(r"[\[\].]\w+[\]\s,=]|\w\((?:[\d{,]|in )|prefers-color-scheme|gradient\(")


@pytest.fixture(scope="module")
def scripts() -> ModuleType:
    spec = importlib.util.spec_from_file_location("script_texts", ROOT / "scripts/script_texts.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["script_texts"] = module  # dataclass looks its module up
    spec.loader.exec_module(module)
    return module


def script_files() -> list[Path]:
    files = sorted((ROOT / "widgets" / "lite_widgets").rglob("*.js"))
    return [p for p in files if not {"static", "labextension"} & set(p.parts)]


def classes() -> set[str]:
    sheets = (ROOT / "widgets" / "lite_widgets").rglob("*.css")
    return {n for s in sheets for n in re.findall(r"\.([a-z][\w-]*)", s.read_text("utf-8"))}


def bypassing_script(scripts: ModuleType, source: str, styles: set[str]) -> list[tuple[int, str]]:
    found = []
    for literal in scripts.literals(source):
        if literal.marked:
            continue
        words = IN_MARKUP if literal.markup else IN_STRING
        for text in literal.read():
            plain = re.sub(r"{…}|\bms\b", " ", text) if literal.markup else text
            if (
                words.search(plain)
                and text not in SCRIPT_NAMES
                and not STYLE.search(text)
                and not set(text.split()) <= styles
                and not UNITS.fullmatch(text)
            ):
                found.append((literal.line, text))
    return found


def test_no_text_in_javascript_bypasses_the_catalogue(scripts):
    styles = classes() | {"hide-s", "hide-u", "hide-t"}
    found = [
        f"{path.name}:{line}: {text}"
        for path in script_files()
        for line, text in bypassing_script(scripts, path.read_text("utf-8"), styles)
    ]
    assert len(script_files()) > 60
    assert found == []


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("html`<b>${n} layers</b>`", ["{…} layers"]),
        ('html`<b title="Close it">${tr("Close")}</b>`', ["Close it"]),
        ("html`<i>${all ? html`<u>read</u>` : ''}</i>`", ["read"]),
        ("c.say(`no layer matches ${text}`)", ["no layer matches {…}"]),
        ('button("run", "Run again")', ["Run again"]),
        ('const r = /["`]/; html`<i>${tr("a {b}", { b })}</i>`; trn("one", "many words", 2)', []),
        ("html`<i class=\"btn sm\" style=\"width:${w}px\">${f({ a: 1 })}</i>` // a comment", []),
    ],
)  # fmt: skip
def test_a_string_that_bypasses_the_catalogue_is_found(scripts, source, seen):
    assert [text for _, text in bypassing_script(scripts, source, {"btn", "sm"})] == seen


def test_every_text_of_javascript_reaches_the_page():
    """A bundle is given the translations of the texts that stand in it (lite_messages)."""
    bundles = sorted((ROOT / "widgets" / "lite_widgets" / "static").glob("*.js"))
    if not bundles:
        pytest.skip("no bundles; run `make bundle`")
    all_of_them = "".join(p.read_text("utf-8") for p in bundles)
    texts = [
        message.id if isinstance(message.id, str) else message.id[0]
        for message in template()
        if message.id and any(file.endswith(".js") for file, _ in message.locations)
    ]
    assert len(texts) > 200 and messages().DOMAIN
    assert [text for text in texts if text not in all_of_them] == []
