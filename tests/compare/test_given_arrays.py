"""`lite compare --input` takes arrays as `lite run` does: one feed, whatever their first sizes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from lite_engine import optimize
from lite_engine.ir import DType, Graph, Value
from lite_workbench.cli import main

EDGES = np.array([0, 2, 2, 1, 0])


@pytest.fixture
def messages(tmp_path: Path) -> str:
    """nodes (n, 4), edges (e,) → the rows of the nodes that the edges name, twice their size."""
    graph = Graph("messages")
    graph.inputs = [Value("nodes", DType.F32, ("n", 4)), Value("edges", DType.I64, ("e",))]
    rows = graph.add("Gather", list(graph.inputs), {"axis": 0}, name="rows").output
    graph.outputs = [graph.add("Add", [rows, rows], name="twice").output]
    return str(optimize(graph).save(tmp_path / "m.lite"))


def _compared(capsys, *words: str) -> str:
    code = main(["compare", *words, "--backends", "reference", "--json", "-"])
    assert code == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def test_an_npz_of_other_first_sizes(messages: str, tmp_path: Path, capsys) -> None:
    """3 nodes, 5 edges: they are no samples."""
    np.savez(tmp_path / "one.npz", nodes=np.eye(3, 4, dtype=np.float32), edges=EDGES)
    assert _compared(capsys, messages, messages, "--input", str(tmp_path / "one.npz"))


def test_numbers_of_a_csv(tmp_path: Path, capsys) -> None:
    """They are no list of files and their labels."""
    graph = Graph("table")
    graph.inputs = [Value("x", DType.F32, ("n", 4))]
    graph.outputs = [graph.add("Exp", list(graph.inputs), name="exp").output]
    model = str(optimize(graph).save(tmp_path / "t.lite"))
    (tmp_path / "x.csv").write_text("0,1,2,3\n4,5,6,7\n")
    assert _compared(capsys, model, model, "--input", f"x={tmp_path / 'x.csv'}")


def test_many_inputs_are_stacked(messages: str, tmp_path: Path, capsys) -> None:
    """`--data` reads samples: it says how they lie, and takes them so."""
    one = {"nodes": np.eye(3, 4, dtype=np.float32), "edges": EDGES}
    path = str(tmp_path / "d.npz")
    np.savez(path, **one)
    words = ["compare", messages, messages, "--backends", "reference", "--data", path]
    assert main(words) == 1
    said = capsys.readouterr().err
    assert "(nodes 3, edges 5); stack as many samples of each along a new first axis" in said
    np.savez(path, **{name: np.stack([x, x]) for name, x in one.items()})
    assert main(words) == 0 and "2 inputs" in capsys.readouterr().out
