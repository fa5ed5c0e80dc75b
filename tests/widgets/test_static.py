"""What a saved notebook shows where no kernel runs."""

from __future__ import annotations

import re

from lite_widgets import Notice, Stepper


def test_the_steps_are_a_line_of_tabs_and_not_a_table() -> None:
    stepper = Stepper(current="Compare")
    stepper.set_step("Compare", "attention", "1 <wrong> layer")
    said = stepper.static_html()
    assert "<table" not in said
    assert said.count("title=") == len(stepper.steps)
    assert "<b>Compare</b> <small>1 &lt;wrong&gt; layer</small>" in said
    assert "needs attention" in said and "<b>Model</b>" not in said


def test_code_in_a_notice_is_code() -> None:
    said = Notice(what="**No <kernel>**: run `lite doctor`", detail="see `a<b`").static_html()
    assert "<b>No &lt;kernel&gt;</b>" in said
    assert "<code>lite doctor</code>" in said and "<code>a&lt;b</code>" in said
    assert "`" not in said and "**" not in said


def test_text_outside_of_a_picture_has_the_colour_of_the_page() -> None:
    """No grey has a contrast of 4.5 on white and on JupyterLab's #111: the page knows its own."""
    stepper = Stepper()
    stepper.caption = "ocr.onnx"
    said = stepper.static_html() + stepper._static_caption()
    fills = set(re.findall(r"color:(#\w+)", said))
    assert "ocr.onnx" in said and fills == set()
