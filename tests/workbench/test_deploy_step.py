"""The Deploy step: what it says of the bundle is what is written."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("ipywidgets", reason="pip install 'lite-workbench[lab]'")

import lite_workbench as lw
import onnx.parser
from lite_workbench.steps import step_class

from tests.workbench.sessions import click, settle

pytestmark = pytest.mark.cpu


def test_deploy_writes_what_is_ticked(session: lw.Session, tmp_path: Path) -> None:
    step = step_class("Deploy")(session)
    step.bundle.chosen = ["walk"]
    click(step.bundle, "write")
    settle(session)
    assert {p.name for p in (tmp_path / "digits_bundle").iterdir()} == {
        "digits.lite", "digits_walk.ipynb"
    }  # fmt: skip
    assert "Wrote" in step.notice.what
    step.bundle.chosen = ["device", "labels"]
    sizes, about = {i["id"]: i["bytes"] for i in step.bundle.items}, step.bundle.total_bytes()
    click(step.bundle, "write")
    settle(session)
    written = tmp_path / "digits_bundle"
    assert sizes["model"] == (written / "digits.lite").stat().st_size
    report = (written / "report.html").stat().st_size  # is not there before
    found = sum(p.stat().st_size for p in written.rglob("*") if p.is_file()) - report
    assert about == pytest.approx(found, rel=0.01)
    assert (written / "bin" / "lite_run").exists() and (written / "labels.txt").exists()
    assert set(step.code.sources) == {"Python", "C", "C++", "Java"}


def test_deploy_says_before_that_a_device_cannot_run_it(tmp_path: Path, monkeypatch) -> None:
    """If runs in Python only: no runner is offered, and what is written says so."""
    monkeypatch.chdir(tmp_path)
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[3, 5] x) => (float[3, 5] y) {
      s = ReduceSum <keepdims = 0> (x)
      zero = Constant <value = float {0.0}> ()
      c = Greater (s, zero)
      y = If (c) <then_branch = a () => (float[3, 5] p) { p = Relu (x) },
                  else_branch = b () => (float[3, 5] q) { q = Neg (x) }>
    }"""
    (tmp_path / "if.onnx").write_bytes(onnx.parser.parse_model(text).SerializeToString())
    session = lw.open(tmp_path / "if.onnx")
    session.convert(targets=["x86", "arm"])
    step = step_class("Deploy")(session)
    assert "cannot run on a device alone" in step.notice.what and step.notice.layout.display is None
    assert step.notice.detail.startswith("The bundle has the model for Python and no runner")
    assert [i["id"] for i in step.bundle.items] == ["model", "walk"]
    assert step.bundle.items[0]["what"] == "model for Python, float"
    click(step.bundle, "write")
    settle(session)
    assert {p.name for p in (tmp_path / "if_bundle").iterdir()} == {"if.lite", "if_walk.ipynb"}


def test_deploy_offers_the_devices_that_the_model_was_converted_for(session: lw.Session) -> None:
    session.convert(targets=["x86", "arm"])
    step = step_class("Deploy")(session)
    assert [o[0] for o in step.header.segments["options"]] == ["x86", "arm"]
    assert step.header.values["target"] == "arm"
    session.convert(targets=["x86"])
    assert [o[0] for o in step.header.segments["options"]] == ["x86"]
    assert step.header.values["target"] == "x86"
    assert [i["id"] for i in step.bundle.items][:2] == ["model", "device"]
    session.convert(targets=["opencl"])
    assert "device" not in [i["id"] for i in step.bundle.items]
    assert "was converted for opencl, not x86" in step.notice.what
    assert f"lite convert {session.path} --targets opencl,x86" in step.notice.detail


def test_deploy_writes_no_file_to_weigh_while_another_step_is_open(session: lw.Session) -> None:
    session.convert(targets=["x86"])
    workbench = lw.Workbench(session, step="Deploy")
    step = workbench.step("Deploy")
    made = step._made
    workbench.current = "Profile"
    layer = session.model.graph.nodes[0].name
    session.override(layer, "reference")
    assert step._made is made
    workbench.current = "Deploy"
    assert step._made is not made and "cannot run Conv without Python" in step.notice.what
