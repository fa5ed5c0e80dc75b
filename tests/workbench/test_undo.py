"""Undo: versions and overrides go back one change at a time; what was measured stays."""

from __future__ import annotations

from typing import Any

import lite_workbench as lw
import pytest
from lite_engine.errors import UsageError

pytestmark = pytest.mark.cpu


def state(session: lw.Session) -> tuple[Any, ...]:
    held = session.overrides
    return (list(session.versions), session.version, list(session.targets), dict(held.backends),
            dict(held.precisions), session.quantization is not None)  # fmt: skip


def test_each_change_goes_back() -> None:
    session = lw.open(lw.shipped("digits.onnx"))
    changes = [
        lambda: session.convert(targets=["x86", "opencl"]),
        lambda: session.override("/b3/dw/Conv", "reference"),
        lambda: session.quantize(lw.shipped("digits_held_back.npz"), limit=8),
        lambda: session.override("/b2/dw/Conv", precision="fp32"),
        lambda: session.use("float"),
    ]
    states = [state(session)]
    for change in changes:
        change()
        states.append(state(session))
    profile = session.profile("x86", runs=2)
    session.use(session.version)  # changes nothing, so there is nothing to undo in it
    for before in reversed(states[:-1]):
        undone = session.undo()
        assert state(session) == before
    assert undone.startswith("session.convert(")
    assert session.profiles["x86"] is profile
    with pytest.raises(UsageError, match="nothing to undo"):
        session.undo()


def test_what_fails_is_not_recorded() -> None:
    session = lw.open(lw.shipped("digits.onnx"))
    session.convert(targets=["x86"])
    with pytest.raises(UsageError):
        session.override("nowhere", "reference")
    session.undo()
    assert not session.versions


def test_the_top_bar_offers_it() -> None:
    session = lw.open(lw.shipped("digits.onnx"))
    session.convert(targets=["x86"])
    bench = lw.Workbench(session)
    assert bench.top.undo == "session.convert(targets=['x86'])"
    session.override("/b3/dw/Conv", "reference")
    assert "'/b3/dw/Conv', 'reference'" in bench.top.undo
    bench.top.action = {"id": "undo", "seq": 1}
    assert session.overrides.backends == {} and "undone" in bench.top.note
    assert bench.top.undo == "session.convert(targets=['x86'])"
