"""C++ includes and JavaScript imports: no circles, and native folders that only use lower ones.
For Python, import-linter checks the same (pyproject.toml)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePosixPath

INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.M)
IMPORT = re.compile(r"""^\s*(?:import|export)\b[^;]*?["']([^"']+)["']""", re.M)
NATIVE = "engine/native"
#: Folders of the native sources, from the top down.
LAYERS = (
    {"fuzz", "wasm"},
    {"runner", "app", "isa"},
    {"runtime", "opencl", "plugins"},
    {"ops"},
    {"platform"},
    {"include"},
)
#: Includes that point up.
UP = {
    ("platform/pool_posix.cc", "runtime/thread_pool.h"): "it implements the pool declared there",
    ("platform/pool_wasm.cc", "runtime/thread_pool.h"): "it implements the pool declared there",
    ("ops/byte_table.cc", "runtime/dispatch.h"): "it asks which instructions this machine has",
}
Edges = dict[str, set[str]]


def edges_of(
    texts: Mapping[str, str], pattern: re.Pattern[str], roots: tuple[str, ...] = ()
) -> Edges:
    """File → the files that it names, beside it or below one of the roots."""
    found: Edges = {}
    for name, text in texts.items():
        for target in pattern.findall(text):
            for base in (str(PurePosixPath(name).parent), *roots):
                path = _joined(base, target)
                if path in texts:
                    found.setdefault(name, set()).add(path)
                    break
    return found


def _joined(base: str, target: str) -> str:
    parts: list[str] = []
    for part in (*PurePosixPath(base).parts, *target.split("/")):
        if part == ".." and parts:
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def circle(edges: Edges) -> list[str]:
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def native(root: Path, source_files: list[str]) -> Edges:
    """The native files by their path below src/, or below native/ for what is beside src/."""
    names = [n for n in source_files if n.startswith(NATIVE) and n.endswith((".cc", ".h", ".inc"))]
    texts = {_short(n): (root / n).read_text("utf-8") for n in names}
    assert len(texts) > 200  # the listing is whole
    return edges_of(texts, INCLUDE, ("", "include"))


def _short(name: str) -> str:
    return name.removeprefix(f"{NATIVE}/").removeprefix("src/")


def test_native_files_include_each_other_in_no_circle(root: Path, source_files: list[str]) -> None:
    edges = native(root, source_files)
    assert sum(map(len, edges.values())) > 500
    assert circle(edges) == []


def test_native_folders_use_lower_ones(root: Path, source_files: list[str]) -> None:
    floor = {name: i for i, layer in enumerate(LAYERS) for name in layer}
    up = {
        (file, target)
        for file, targets in native(root, source_files).items()
        for target in targets
        if floor[target.split("/")[0]] < floor[file.split("/")[0]]
    }
    assert up == set(UP)


def test_scripts_import_each_other_in_no_circle(root: Path, source_files: list[str]) -> None:
    names = [n for n in source_files if n.endswith((".js", ".mjs"))]
    edges = edges_of({n: (root / n).read_text("utf-8") for n in names}, IMPORT)
    assert sum(map(len, edges.values())) > 100
    assert circle(edges) == []


def test_a_circle_is_found() -> None:
    includes = {"a/x.cc": '#include "../b/y.h"', "b/y.h": '#include "a/x.cc"'}
    assert set(circle(edges_of(includes, INCLUDE, ("",)))) == {"a/x.cc", "b/y.h"}
    imports = {"w/a.js": 'import {\n  x,\n} from "./b.js";', "w/b.js": 'export * from "../w/a.js";'}
    assert set(circle(edges_of(imports, IMPORT))) == {"w/a.js", "w/b.js"}
