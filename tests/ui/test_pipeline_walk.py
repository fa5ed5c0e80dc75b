"""A pipeline in a real JupyterLab: frames as a stream by the keyboard, and every step looked at in
light and dark."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.ui.steps import workbench_cell
from tests.ui.test_nine_steps import FAULTS

MODELS = ROOT / "notebooks" / "models"
pytestmark = [pytest.mark.browser, pytest.mark.cpu]

START = workbench_cell("receipt.json")
STAGES = [
    {
        "model": "text_finder.onnx",
        "name": "find",
        "preprocess": "unit,letterbox=255",
        "read": {"kind": "regions", "unclip": 0.4},
    },
    {"crop": {}},
    {"model": "ocr.onnx", "name": "read", "preprocess": "letterbox=236"},
]
#: What the receipt says, and where.
LINES = {"TOTAL 128.40": (117, 63, 387, 103), "21-11-2026": (389, 213, 619, 253),
         "COFFEE 3.20": (189, 383, 439, 423)}  # fmt: skip
WORK = """s = workbench.session
s.run("receipt.png", "x86")
s.profile(backend="x86", runs=2)
s.compare("x86", "reference")
s.evaluate("pages.txt", ["x86"], task="spotting")
s.export("receipt_app", "x86")"""
STEPS = ("Model", "Quantize", "Run", "Evaluate", "Profile", "Compare", "Deploy")


def test_frames_stream_and_every_step_fits(lab: Any, server: Any) -> None:
    root = server("/").root
    for name in ("text_finder.onnx", "ocr.onnx", "receipt.png"):
        shutil.copy(MODELS / name, root)
    (root / "receipt.json").write_text(json.dumps({"name": "receipt", "stages": STAGES}))
    regions = [
        {"transcription": text, "points": [[x0, y0], [x1, y0], [x1, y1], [x0, y1]]}
        for text, (x0, y0, x1, y1) in LINES.items()
    ]
    (root / "pages.txt").write_text(f"receipt.png\t{json.dumps(regions)}\n")
    (root / "frames").mkdir()
    for i in range(6):
        shutil.copy(MODELS / "receipt.png", root / "frames" / f"{i}.png")
    lab_page = lab([START])
    assert lab_page.run_all()
    page, find = lab_page.page, lab_page.page.locator

    # by the keyboard alone: the button, the field, Enter
    lab_page.step("Run")
    find(".lite-header [data-action=stream] >> visible=true").focus()
    page.keyboard.press("Enter")
    find(".lite-form [data-field=frames] >> visible=true").focus()
    page.keyboard.type("frames")
    lab_page.shot("pipeline-stream-form")
    page.keyboard.press("Enter")
    find(".lite-data", has_text="every frame answered").locator("visible=true").wait_for()
    card = find(".lite-result", has_text="Frame 5 of frames").locator("visible=true")
    card.locator("img").wait_for()
    assert "TOTAL 128.40" in card.inner_text()
    shares = find(".lite-data", has_text="mean of the frames").locator("visible=true").inner_text()
    assert all(name in shares for name in ("find", "crop", "read"))
    assert "session.stream('frames'" in lab_page.run_code("print(workbench.session.code[-1])")

    # every step with results, in light and dark: nothing is cut off or wider than its cell
    assert lab_page.run_code(WORK) == ""
    faults = {}
    for theme in ("light", "dark"):
        lab_page.theme(dark=theme == "dark")
        for step in STEPS:
            lab_page.step(step)
            find(f".lite-step-{step} .lite-header h2").wait_for()
            page.wait_for_timeout(200)  # widgets fit to the width
            lab_page.shot(f"pipeline-{step}-{theme}")
            faults |= dict.fromkeys(page.evaluate(FAULTS), f"{step} {theme}")
    assert not faults
