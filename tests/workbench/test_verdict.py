"""A comparison's verdict on the screen: every kind of finding, in words that hold its numbers."""

from __future__ import annotations

import dataclasses
import json
from types import SimpleNamespace
from typing import Any

import pytest
from lite_engine.compare.comparison import Comparison
from lite_engine.compare.finding import AnswerDifference, Finding, LayerError
from lite_engine.compare.words import sentence
from lite_workbench.verdict import verdict
from lite_workbench.views import comparison_data

AT = {"layer": "b3/dw", "op": "Conv", "tolerance": 1e-4, "layers": 9, "after": 3}
OUTPUT = {"kind": "outputs_differ", "output": "p", "error": 0.52, "tolerance": 1e-3}
CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "agree": ({"kind": "agree", "layers": 9}, "done", "x86 and OpenCL agree on all 9 layers."),
    "candidate": ({"kind": "layer_fails", "side": "candidate", "error": 0.079, **AT}, "error",
                  "OpenCL goes wrong at **b3/dw**: on the input of x86, it has an error of "
                  "**7.9e−2** (tolerance 1.0e−4)."),
    "overflow": ({"kind": "layer_fails", "side": "candidate", "not_finite": {"candidate": 4}, **AT},
                 "error", "OpenCL goes wrong at **b3/dw**: on the input of x86, it gives values "
                 "that are not finite (tolerance 1.0e−4)."),
    "baseline": ({"kind": "layer_fails", "side": "baseline", "reference_error": 0.5, **AT}, "error",
                 "x86 goes wrong at **b3/dw**: it has an error of **0.5** against the NumPy "
                 "reference (tolerance 1.0e−4)."),
    "baseline overflows": ({"kind": "layer_fails", "side": "baseline",
                            "not_finite": {"baseline": 1}, "reference_error": float("inf"), **AT},
                           "error",
                           "x86 goes wrong at **b3/dw**: its infinite and NaN values are not those "
                           "of the NumPy reference."),
    "whole runs": ({"kind": "layer_differs", "error": 0.03, **AT}, "warn",
                   "OpenCL differs first at **b3/dw**: **3.0e−2** (tolerance 1.0e−4)."),
    "plan": ({"kind": "whole_run_fails", "error": 0.03, **AT}, "error",
             "OpenCL goes wrong at **b3/dw**, but only in the whole run."),
    "steps": ({**OUTPUT, "cause": "steps"}, "warn",
              "No layer fails, but output **p** differs: **0.52** (limit 1.0e−3)."),
    "adds up": ({**OUTPUT, "cause": "errors_add_up"}, "warn",
                "No layer fails, but output **p** differs: **0.52** (limit 1.0e−3)."),
    "unmatched": ({"kind": "outputs_unmatched"}, "warn",
                  "No layer fails, but not every output has a counterpart."),
}  # fmt: skip


def found(**what: Any) -> Comparison:
    finding = Finding(**{"side": "candidate", **what})
    return Comparison("x86", "opencl", None, None, [], finding, finding.kind == "agree", 1e-4,
                      unmatched_outputs=["only opencl has q, 1×2"])  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_each_finding_has_its_words(case) -> None:
    what, kind, text = CASES[case]
    notice = verdict(found(**what))
    assert (notice["kind"], notice["what"]) == (kind, text)
    assert notice["detail"].endswith(".") and notice.get("layer") == what.get("layer")
    line = sentence(found(**what))  # the same finding on the command line
    for name in ("layer", "output"):
        assert what.get(name, "") in line
    assert not line.endswith(".")


FAILS = {"kind": "layer_fails", "side": "candidate", "error": 0.13, **AT}
SAME = {"same": True, "baseline": "TOTAL 128.40", "candidate": "TOTAL 128.40"}
#: finding, answer, tolerance → kind, what, the beginning of the explanation, the line's first words
ANSWERS: dict[str, tuple[dict[str, Any], dict[str, Any], float | None, list[str]]] = {
    "same": ({"kind": "agree", "layers": 9}, SAME, None,
             ["done", "**Same answer, 35.0 dB from float**: TOTAL 128.40.",
              "float and int8 agree on all 9 layers.",
              "same answer, 35.0 dB from float (TOTAL 128.40); float and int8 agree"]),
    "same, over the caller's tolerance": (
        FAILS, SAME, 0.05,
        ["done", "**Same answer, 35.0 dB from float**: TOTAL 128.40.",
         "1 of 9 layers exceeds its tolerance: b3/dw, 0.13.",
         "same answer, 35.0 dB from float (TOTAL 128.40); 1 of 9 layers exceeds its tolerance"]),
    "same, over what rounding explains": (
        FAILS, SAME, None,
        ["warn", "**Same answer, 35.0 dB from float**: TOTAL 128.40.",
         "1 of 9 layers exceeds its tolerance: b3/dw, 0.13.", "same answer, 35.0 dB from float"]),
    "another, and a layer is wrong": (
        FAILS, {**SAME, "same": False, "candidate": "TOTAL 128.46", "sqnr_db": 3.0}, 0.05,
        ["warn", "**Different answers, 3.0 dB from float**: float gives TOTAL 128.40, int8 gives "
         "TOTAL 128.46.", "int8 goes wrong at b3/dw: on the input of float",
         "different answers, 3.0 dB from float (TOTAL 128.40 and TOTAL 128.46); b3/dw (Conv) "
         "fails on its own"]),
    "another, by rounding alone": (
        {"kind": "agree", "layers": 9, "largest_own": LayerError("b3/dw", 0.2)},
        {**SAME, "same": False, "candidate": ""}, None,
        ["warn", "**Different answers, 35.0 dB from float**: float gives TOTAL 128.40, int8 gives "
         "nothing.", "float and int8 agree on all 9 layers. b3/dw has the largest error of its own",
         "different answers, 35.0 dB from float (TOTAL 128.40 and nothing); float and int8 agree"]),
    "numbers": ({"kind": "agree", "layers": 9}, {"detail": "98.2 % are the same"}, None,
                ["done", "**The outputs are 35.0 dB from float.**", "98.2 % are the same. float",
                 "the outputs are 35.0 dB from float, 98.2 % are the same; float and int8 agree"]),
    "numbers, and a layer is wrong": (
        FAILS, {"sqnr_db": None}, 0.05,
        ["warn", "**The outputs are equal to float.**", "int8 goes wrong at b3/dw",
         "the outputs are equal to float; b3/dw (Conv) fails on its own"]),
}  # fmt: skip


@pytest.mark.parametrize("case", ANSWERS)
def test_integers_against_floats_say_the_answer_first(case) -> None:
    what, said, tolerance, (kind, first, then, line) = ANSWERS[case]
    answer = AnswerDifference(**{"integers": "candidate", "sqnr_db": 35.0, **said})
    rows = [SimpleNamespace(name=what["layer"], within=False)] if "layer" in what else []
    made = dataclasses.replace(found(**what), baseline="float", candidate="int8", answer=answer,
                               tolerance=tolerance, layers=rows)  # fmt: skip
    notice = verdict(made)
    assert (notice["kind"], notice["what"]) == (kind, first)
    assert notice["detail"].startswith(then)
    assert notice.get("layer", "b3/dw") == "b3/dw" and ("layer" in notice or kind == "done")
    assert sentence(made).startswith(line)
    assert made.needs_attention == (kind == "warn")


def test_what_comes_after_a_failing_layer() -> None:
    failing = {"kind": "layer_fails", "error": 1.0, **AT}

    def detail(**more: Any) -> str:
        return verdict(found(**{**failing, **more}))["detail"]

    assert detail() == (
        "The 3 layers after it are correct on correct input; they only propagate the error."
    )
    assert detail(after=1).startswith("The layer after it is correct")
    assert detail(after=0) == "It is the last layer."
    assert detail(also_failing=1) == "1 of the 3 layers after it also fails."
    assert detail(also_failing=2) == "2 of the 3 layers after it also fail."


def test_the_largest_error_is_named() -> None:
    same = found(kind="agree", layers=2)
    whole = dataclasses.replace(same.finding, largest=LayerError("l1", 2e-5))
    own = dataclasses.replace(whole, largest_own=LayerError("l0", 1e-5))
    details = [verdict(dataclasses.replace(same, finding=f))["detail"]
               for f in (same.finding, whole, own)]  # fmt: skip
    assert details[1:] == [
        "The whole runs differ most at l1: 2.0e−5.",
        "l0 has the largest error of its own, 1.0e−5.",
    ]
    assert details[0].startswith("The values are the same")


def test_the_widgets_get_plain_data() -> None:
    data = comparison_data(found(**CASES["candidate"][0]))
    assert json.loads(json.dumps(data))["notice"]["actions"] == [
        ["run_on_a", "Run this layer on x86"]
    ]
