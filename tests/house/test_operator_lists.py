"""What is known of operators stands with them in `ops/`: nobody else lists their names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from lite_engine.ops import all_ops

#: Names in one literal from which on it is a list of operators.
MANY = 3
#: Literals that name operators for a reason, by file and the name they are assigned to.
ALLOWED = {
    "lite_engine/backends/opencl/recurrent.py _DEFAULTS": "functions of a cell in OpenCL C",
    "lite_engine/model_file/precision.py _INTEGER": "operators that make a model an int8 one",
    "lite_engine/passes/fold_shapes.py": "NumPy's function of each",
    "lite_engine/passes/fold_shapes.py _HANDLERS": "keys of a table of functions",
    "lite_engine/passes/quantize_fuse_qdq.py ARITHMETIC": "what the pass computes on the scales",
    "lite_engine/passes/merge_views.py RESHAPES": "views that keep the order of elements",
}
#: Whole folders: tables from a format's names to ours and back.
NAME_MAPS = (
    "lite_engine/importers/",
    "lite_engine/model_file/naive_buffer/",
    "lite_engine/exporters/",
    "lite_engine/ops/",
)


def literals(path: Path) -> Iterator[tuple[str, int, list[str]]]:
    """(name it is assigned to, line, operators) of every literal with many operators. Patterns of
    passes (`P(…)`, `patterns`) and tables of functions by operator are the pass itself."""
    known = {op.name for op in all_ops()}

    def walk(node: ast.AST, target: str) -> Iterator[tuple[str, int, list[str]]]:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            first = node.targets[0] if isinstance(node, ast.Assign) else node.target
            target = first.id if isinstance(first, ast.Name) else target
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "P":
            return
        if target == "patterns":
            return
        if isinstance(node, (ast.Set, ast.Tuple, ast.List, ast.Dict)):
            names = node.keys if isinstance(node, ast.Dict) else node.elts
            of_functions = isinstance(node, ast.Dict) and all(
                isinstance(v, (ast.Name, ast.Call, ast.Lambda))
                for k, v in zip(node.keys, node.values)
                if k is not None
            )
            found = {n.value for n in names if isinstance(n, ast.Constant)} & known
            if len(found) >= MANY and not of_functions:
                yield target, node.lineno, sorted(found)
        for child in ast.iter_child_nodes(node):
            yield from walk(child, target)

    yield from walk(ast.parse(path.read_text(encoding="utf-8")), "")


def test_no_private_lists_of_operators(root: Path) -> None:
    found = {}
    for package in ("engine/lite_engine", "workbench/lite_workbench", "widgets/lite_widgets"):
        for path in sorted((root / package).rglob("*.py")):
            where = str(path.relative_to(root / package.partition("/")[0]))
            if where.startswith(NAME_MAPS):
                continue
            for target, line, names in literals(path):
                found[f"{where} {target}".strip()] = f"line {line}: {', '.join(names)}"
    unknown = {k: v for k, v in found.items() if k not in ALLOWED}
    assert not unknown, f"make it a property of OpDef: {unknown}"
    gone = set(ALLOWED) - set(found)
    assert not gone, f"no longer there, take them off the list: {gone}"


def test_a_private_list_is_found(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text(
        'PRIVATE = ("Relu", "Tanh", "Sigmoid")\nRULES = {"Relu": f, "Tanh": f, "Exp": f}\n'
    )
    assert [(t, n) for t, n, _ in literals(path)] == [("PRIVATE", 1)]
