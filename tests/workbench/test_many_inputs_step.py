"""Compare on many inputs: the table of the step and of a cell is the answer's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lite_workbench as lw
import pytest
from lite_workbench import rich

from tests.workbench.sessions import click, settle

pytestmark = pytest.mark.cpu


def test_the_samples_beside_the_model_are_compared(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(rich, "in_notebook", lambda: True)
    session = lw.open(lw.shipped("digits.onnx"))
    session.convert(targets=["x86"])
    layer = session.model.graph.nodes[2].name
    session.plant_fault(layer, "drop_last_column", backend="reference")
    found = []
    session.observe(lambda _, made: found.append(made), "inputs")
    step = lw.Workbench(session, step="Compare").step("Compare")
    settle(session)
    assert step.many.layout.display == "none"
    assert [b["id"] for b in step.header.buttons] == ["many", "compare"]
    click(step.header, "many")
    settle(session)
    (made,) = found
    assert made.inputs == 50 and made.agreeing == 0
    samples = str(lw.shipped("digits_held_back.npz"))
    assert session.code[-1] == (
        f"spread = session.compare_many({samples!r}, 'x86', 'reference', limit=50)"
    )
    worst = step.many.rows[0]
    assert worst["0"] == layer and worst["2"] == "50/50", "the planted layer fails on every input"
    assert len(step.many.rows) == len(made.layers) and step.many.note == made.verdict
    assert layer in rich.bundle(made)["text/html"]
    step.close()
