"""A board's OpenCL in the Workbench: Target lists it, Profile and Compare run on it."""

from __future__ import annotations

import re
import shutil
import time
from typing import Any

import pytest
from lite_engine.runtime import host_target

from tests.conftest import ROOT
from tests.devices.conftest import sshd  # noqa: F401  a fixture

pytestmark = [
    pytest.mark.browser, pytest.mark.opencl, pytest.mark.cpu, pytest.mark.ssh, pytest.mark.hours,
]  # fmt: skip
MODELS = ROOT / "notebooks" / "models"


def test_a_boards_opencl(lab: Any, server: Any, sshd: Any) -> None:  # noqa: F811
    """The board is this machine behind a server of ssh."""
    shutil.copy(MODELS / "ocr.onnx", server("/").root)
    page = lab(
        [
            "import lite_workbench as lw\n"
            'session = lw.open("ocr.onnx")\n'
            f'session.convert(targets=["{host_target()}", "opencl"])\n'
            f'session.boards.add("rock", "{sshd.address}", "{sshd.config}")\n'
            "workbench = lw.Workbench(session)\n"
            "workbench"
        ]
    )
    assert page.run_all()
    find = page.page.locator

    page.step("Target")
    card = find(".card[data-id=rock]").locator("visible=true")
    card.get_by_text("OpenCL", exact=True).wait_for()
    assert re.search(r"pthread|cpu", card.inner_text())
    page.shot("board-target")
    card.locator("[data-action=use]").click()
    card.locator("[data-action=leave]").wait_for()

    page.step("Profile")
    find("button", has_text="OpenCL on rock").locator("visible=true").first.click()
    until = time.monotonic() + 240  # the board warms up, and its processor is measured first
    while page.run_code("print('opencl' in session.profiles)") != "True":
        assert time.monotonic() < until
        time.sleep(1)
    page.prints(
        "p = session.profiles.get('opencl'); print(p and (p.device, p.backend))",
        f"('{sshd.address}', 'opencl')",
    )
    page.shot("board-profile")

    page.step("Compare")
    page.page.click("[data-action=compare] >> visible=true", timeout=300_000)  # jobs queue
    find(".verdict .what", has_text="agree").locator("visible=true").first.wait_for(timeout=300_000)
    page.shot("board-compare")
    choices = find("select").locator("visible=true").all_inner_texts()
    assert sum("OpenCL on rock" in offered for offered in choices) == 2, choices
    ran = "print(*{session.predictor(b).device.name for b in list(session.comparisons)[-1]})"
    assert page.run_code(ran) == sshd.address
