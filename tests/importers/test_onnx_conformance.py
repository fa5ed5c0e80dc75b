"""The ONNX project's backend cases: what passes, and that the list of what does not is exact.

onnx_unsupported.txt names each case that fails and why; `[…]` marks families that inference on
numbers leaves out (training, sequences, strings, random generators, small float types). The counts
end a run of pytest, and docs/formats.md states them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="pip install onnx")
from tests.importers import onnx_cases

#: How docs/formats.md says what passed.
STATED = {
    "node": "of {of} node cases {passed} pass", "simple": "{passed} of {of} simple ones",
    "pytorch-operator": "{passed} of {of} `pytorch-operator`",
    "pytorch-converted": "{passed} of {of} `pytorch-converted`",
}  # fmt: skip
LISTED = dict(line.split(": ", 1) for line in onnx_cases.unsupported())


@pytest.mark.parametrize("kind", onnx_cases.KINDS)
def test_cases(kind: str, root: Path, record_property: Callable[[str, str], None]) -> None:
    outcomes = [onnx_cases.run(case) for case in onnx_cases.cases(kind)]
    wanted = [o for o in outcomes if not o.scope]
    passed = [o for o in wanted if o.passed]
    count, of = sum(o.passed for o in outcomes), len(outcomes)
    record_property("summary", f"ONNX {kind} tests: {count} of {of} pass, {of - count} left out")
    broken = [f"{o.name}: {o.reason}" for o in outcomes if not o.passed and o.name not in LISTED]
    assert not broken, "not in onnx_unsupported.txt:\n" + "\n".join(broken)
    fixed = [o.name for o in outcomes if o.passed and o.name in LISTED]
    assert not fixed, f"pass although onnx_unsupported.txt lists them: {fixed}"
    bar = 0.95 if kind == "node" else 1.0
    assert len(passed) >= bar * len(wanted)
    assert onnx_cases.is_stated(root, STATED[kind].format(of=of, passed=count))
