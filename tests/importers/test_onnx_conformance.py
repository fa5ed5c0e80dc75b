"""The ONNX project's backend cases: what passes, and that the list of what does not is exact.

onnx_unsupported.txt names each case that fails and why; `[…]` marks families that inference on
numbers leaves out (training, sequences, strings, random generators, small float types).
"""

from __future__ import annotations

import pytest

pytest.importorskip("onnx", reason="pip install onnx")
from tests.importers import onnx_cases

LISTED = dict(line.split(": ", 1) for line in onnx_cases.unsupported())


@pytest.mark.parametrize("kind", onnx_cases.KINDS)
def test_cases(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = [onnx_cases.run(case) for case in onnx_cases.cases(kind)]
    wanted = [o for o in outcomes if not o.scope]
    passed = [o for o in wanted if o.passed]
    beyond = sum(o.passed for o in outcomes) - len(passed)
    with capsys.disabled():
        print(
            f"\nONNX {kind} cases: {len(passed)} of {len(wanted)} pass;"
            f" of {len(outcomes) - len(wanted)} in families left out, {beyond} pass"
        )
    broken = [f"{o.name}: {o.reason}" for o in outcomes if not o.passed and o.name not in LISTED]
    assert not broken, "not in onnx_unsupported.txt:\n" + "\n".join(broken)
    fixed = [o.name for o in outcomes if o.passed and o.name in LISTED]
    assert not fixed, f"pass although onnx_unsupported.txt lists them: {fixed}"
    bar = 0.95 if kind == "node" else 1.0
    assert len(passed) >= bar * len(wanted)
