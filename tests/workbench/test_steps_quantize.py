"""The Quantize step without a browser: samples, versions, and what measures them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ipywidgets", reason="pip install 'lite-workbench[lab]'")

import lite_workbench as lw
import numpy as np
from lite_engine import optimize

from tests.small_models import classifier
from tests.workbench.sessions import click, opened, settle

pytestmark = pytest.mark.cpu


@pytest.fixture
def session(tmp_path: Path, monkeypatch: Any) -> lw.Session:
    monkeypatch.chdir(tmp_path)
    return opened("x86")


def test_only_samples_that_fit_are_offered(tmp_path: Path, monkeypatch: Any) -> None:
    """Those of another model have other shapes or names; those named like the model come first."""
    monkeypatch.chdir(tmp_path)
    image = np.zeros((3, 3, 20, 20), np.float32)
    np.savez("other.npz", x=np.zeros((3, 1, 32, 32), np.float32))
    np.savez("text.npz", tokens=np.zeros((3, 7), np.int64))
    np.savez("a_few.npz", x=image)
    np.savez("m_held.npz", image)
    (tmp_path / "broken.npz").write_bytes(b"PK nothing")
    made = lw.open(optimize(classifier()).save("m.lite"))
    header = lw.Workbench(made, step="Quantize").step("Quantize").header
    assert [text for _, text in header.selects[0]["options"]] == ["m_held.npz", "a_few.npz"]
    assert header.values["samples"].endswith("m_held.npz")


def test_versions_are_measured_on_the_chosen_backend(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("m_held.npz", np.random.default_rng(2).random((6, 3, 20, 20), np.float32))
    made = lw.open(optimize(classifier(), targets=["x86", "opencl"]).save("m.lite"))
    step = lw.Workbench(made, step="Quantize").step("Quantize")
    assert [name for name, *_ in step.header.segments["options"]] == ["x86", "opencl"]
    step.header.values = {**step.header.values, "backend": "reference"}
    click(step.header, "run")
    settle(made)
    assert made.code[-1] == "session.explore('reference')" and step.trade.points


def test_quantize_offers_versions(session: lw.Session) -> None:
    session.quantize(lw.shipped("digits_held_back.npz"), limit=12)
    session.explore()
    bench = lw.Workbench(session, step="Quantize")
    step = bench.step("Quantize")
    assert len(step.trade.points) == 5 and step.layers.layers
    assert step.range.layer["name"] == session.selected[0]
    step.trade.budget = 100.0
    assert step.trade.best >= 0
    click(step.header, "keep")
    settle(session)
    assert bench.current == "Run"
