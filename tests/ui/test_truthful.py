"""What the Workbench once said wrongly, each as a person sees it in a real JupyterLab.

Every test has a cell of its own on one page: a page load serves them all.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from lite_engine import optimize

from tests.conftest import ROOT
from tests.small_models import Builder
from tests.ui.lab_page import LabPage

MODELS = ROOT / "notebooks" / "models"
pytestmark = [pytest.mark.browser, pytest.mark.cpu]

#: `Hold(session)` is work that ends when the test says so: what is started later waits.
START = """%load_ext lite_workbench
import os, threading
import lite_workbench as lw
from lite_workbench.steps import CompareStep, ProfileStep

class Hold:
    def __init__(self, session, about=""):
        self.go = threading.Event()
        self.job = session.start("Holding the queue", lambda: self.go.wait(60), about)

os.chdir("truthful")
"""
#: Why a button cannot be pressed.
WHY = "(e) => e.closest('[data-tip]')?.dataset.tip || e.title"
SHARE = re.compile(
    r"(\d+) of \w+(?: layers)? ran on OpenCL(?: \(\d+ % of the time\))?, (\d+) on the CPU, "
    r"(\d+) needs? no computation"
)
COUNT = "() => window.jupyterapp.shell.currentWidget.content.widgets.length"
#: The HTML that a cell's output keeps for pages without a kernel, if it contains a text.
SAVED = """([cell, text]) => window.jupyterapp.shell.currentWidget.content.widgets[cell]
  .model.outputs.toJSON().map((output) => output.data?.['text/html'])
  .find((html) => html?.includes(text))"""
#: Whole name and layers of each block; what is drawn may be cut to its width.
HEADS = """(heads) => heads.map((head) => {
  const [name, layers] = head.getAttribute('aria-label').split(/, (?=\\d+ layer)/);
  return [name.split(' / ').pop(), layers];
})"""
#: Layer → the bracket under its bar or stem.
BRACKETS = """(svg) => {
  const texts = [...svg.querySelectorAll('.bracket + text')].map((t) => {
    const { left, right } = t.previousElementSibling.getBoundingClientRect();
    return [t.textContent, left, right];
  });
  return Object.fromEntries([...svg.querySelectorAll('[data-k]')].map((g) => {
    const { left, right } = g.querySelector('.hit').getBoundingClientRect();
    const at = (left + right) / 2;
    return [g.dataset.k, texts.filter(([, from, to]) => from <= at && at <= to).map(([t]) => t)];
  }));
}"""


@pytest.fixture(scope="module")
def lab_page(server: Any, chromium: Any) -> Iterator[LabPage]:
    """JupyterLab in a folder of its own with the digits model, another model's samples, and a
    chain of 40 convolutions whose names tell of no blocks."""
    folder = server("/").root / "truthful"
    folder.mkdir(exist_ok=True)
    for name in ("digits.onnx", "digits_held_back.npz"):
        shutil.copy(MODELS / name, folder)
    np.savez(folder / "another.npz", tokens=np.zeros((30, 7), np.int64))
    (folder / "chars.txt").write_text("a\nb\n")
    b = Builder((1, 8, 32, 32), "chain")
    y = b.x
    for i in range(40):
        y = b.conv(y, 8, 8, 3, strides=[2, 2] if i % 15 == 14 else [1, 1], activation="Relu")
    optimize(b.done(y)).save(folder / "chain.lite")
    page = LabPage(chromium, server("/"), dark=False)
    page.open([START])
    assert page.run_all()
    yield page
    page.shot("truthful")
    page.close()
    assert page.outside == [], "a request left the machine"
    assert page.errors == [], "the console has errors"


def without(shown: Any, pattern: re.Pattern[str]) -> None:
    """Waits until a person reads nothing there that has the pattern."""
    from playwright.sync_api import TimeoutError  # only where browsers are

    try:
        shown.page.wait_for_function(
            "([place, pattern]) => !new RegExp(pattern).test(place.innerText)",
            arg=[shown.element_handle(), pattern.pattern],
        )
    except TimeoutError:
        lines = [line for line in shown.inner_text().splitlines() if pattern.search(line)]
        raise AssertionError(f"it still says {lines}") from None


@pytest.mark.arm
def test_no_number_stands_under_a_device_that_it_was_not_measured_on(lab_page: LabPage) -> None:
    cell = lab_page.run_cell(
        "s = lw.open('digits.onnx')\ns.convert(targets=['x86', 'arm'])\n"
        "s.profile('x86', runs=2)\nhold = Hold(s)\nlw.Workbench(s, step='Profile')"
    )
    step = cell.locator(".lite-step-Profile")
    step.locator(".lite-latency [data-k]").first.wait_for()
    measured = re.compile(r"\d\s*(ms|µs|GFLOP|instr)")
    assert measured.search(step.inner_text()), "the test sees the numbers of x86"

    # a click on arm, which waits for its turn: neither bars nor numbers
    step.locator(".lite-header [data-value=arm]").click()
    step.get_by_text("Profiling arm").first.wait_for()
    for row in (".lite-latency [data-k]", "tr[data-k]"):
        step.locator(row).first.wait_for(state="detached")
    without(step, measured)

    # measured, it shows its own: instructions
    lab_page.run_code("hold.go.set()")
    step.locator(".lite-latency [data-k]").first.wait_for()
    step.locator(".lite-timing", has_text="Emulated").wait_for()
    lab_page.shot("truthful-arm")
    step.locator(".lite-header [data-value=x86]").click()
    step.locator(".lite-timing", has_text="without the profiler").wait_for()
    # an emulated device's times mean nothing: none stands beside those of x86
    step.locator(".lite-table tr[data-k]").first.wait_for()
    for part in (".lite-table", ".lite-inspector"):
        assert "arm" not in step.locator(part).inner_text()


def test_what_runs_is_said_until_it_ends_and_not_after(lab_page: LabPage) -> None:
    cell = lab_page.run_cell(
        "s = lw.open('digits.onnx')\ns.convert(targets=['x86'])\n"
        "hold = Hold(s, 'Profile')\nbench = lw.Workbench(s, step='Profile')\nbench"
    )
    top = cell.locator(".lite-top")
    profile, compare = (cell.locator(f".lite-step-{name}") for name in ("Profile", "Compare"))
    nothing_yet = re.compile(r"no model yet|not compared yet|not measured yet|has not run", re.I)

    # what was started meanwhile waits in a queue; nothing offers what is under way already
    top.get_by_text("Holding the queue").wait_for()
    profile.locator(".lite-running li", has_text="Profiling x86").get_by_text("waiting").wait_for()
    cell.locator("button[data-step=Compare]").click()
    compare.locator(".lite-running li", has_text="Comparing x86").wait_for()
    top.get_by_text("2 waiting").wait_for()
    for step in (compare, profile):
        cell.locator(f"button[data-step={'Compare' if step is compare else 'Profile'}]").click()
        step.locator(".lite-graph [data-block]").first.wait_for()
        assert not nothing_yet.search(step.inner_text()), step.inner_text()
        primary = step.locator(".lite-header .btn.pri")
        assert primary.is_disabled() and "still running" in primary.evaluate(WHY)
    lab_page.shot("truthful-queue")

    # what is saved tells of no work: it does not go on there
    number = lab_page.page.evaluate(COUNT) - 1
    lab_page.page.wait_for_function(SAVED, arg=[number, "Where does the time go?"])
    saved = lab_page.page.evaluate(SAVED, [number, ""])
    assert "Holding" not in saved and "waiting" not in saved and "running" not in saved

    # ended, it is gone; so it is after a reload of the page
    lab_page.run_code("hold.go.set()")
    profile.locator(".lite-latency [data-k]").first.wait_for()
    cell.locator("button[data-step=Compare] .rs", has_text="all agree").wait_for()
    under_way = re.compile(r"Holding|Profiling|Comparing|\d waiting|still runs")
    cell.locator(".lite-running li").first.wait_for(state="detached")
    without(cell, under_way)
    lab_page.reload()
    cell.locator(".lite-latency [data-k]").first.wait_for()
    without(cell, under_way)


@pytest.mark.opencl
def test_the_share_that_ran_on_opencl_is_said(lab_page: LabPage) -> None:
    """Three convolutions are moved to the CPU."""
    cell = lab_page.run_cell(
        "s = lw.open('digits.onnx')\ns.convert(targets=['x86', 'opencl'])\n"
        "for name in [n.name for n in s.model.graph.nodes if n.op == 'Conv'][:3]:\n"
        "    s.override(name, 'x86')\n"
        "lw.Workbench(s, step='Run')"
    )
    cell.locator(".lite-step-Run .lite-header [data-action=run]").click()
    card = cell.locator(".lite-result", has_text="OpenCL")
    card.get_by_text("on the CPU").wait_for()
    cell.locator("button[data-step=Compare]").click()
    verdict = cell.locator(".verdict .what", has_text="agree on all")
    verdict.wait_for()
    cell.locator("button[data-step=Profile]").click()
    profile = cell.locator(".lite-step-Profile")
    profile.locator(".lite-header [data-value=opencl]").click()
    line = profile.locator(".lite-timing", has_text="without the profiler")
    line.wait_for()
    layers = int(lab_page.run_code("print(len(s.model.graph.nodes))"))
    for said in (card, verdict, line):
        share = SHARE.search(said.inner_text())
        assert share, said.inner_text()
        ran, moved, idle = map(int, share.groups())
        assert moved == 3 and ran + moved + idle == layers


def test_a_block_has_one_name_in_chart_strip_and_graph(lab_page: LabPage) -> None:
    cell = lab_page.run_cell(
        "s = lw.open('chain.lite')\ns.profile('x86', runs=2)\ns.compare('x86', 'reference')\n"
        "display(ProfileStep(s), CompareStep(s))"
    )
    chart = cell.locator(".lite-latency svg.chart")
    strip = cell.locator(".lite-errors svg.chart")
    chart.wait_for()
    strip.wait_for()
    bars, stems = chart.evaluate(BRACKETS), strip.evaluate(BRACKETS)
    blocks = {name: text for name, (text,) in bars.items()}  # every bar stands over one bracket
    assert len(stems) == 40 and len(set(blocks.values())) > 2
    assert {name: [blocks[name]] for name in stems} == stems
    counted = {text: sum(blocks[name] == text for name in stems) for text in blocks.values()}
    for graph in cell.locator(".lite-graph").all():
        heads = graph.locator("[data-block]").evaluate_all(HEADS)
        assert len(heads) > 1
        for text, right in heads:
            assert right.startswith(f"{counted[text]} layers")
    # the layer that is selected in the chart lies in the graph's block of that name
    last = list(stems)[-1]
    chart.locator(f"[data-k='{last}'] .hit").click()
    graph = cell.locator(".lite-graph").first
    graph.locator(f"g.sel[data-k='{last}']").first.wait_for()
    opened = graph.locator("[data-block][aria-expanded=true]").evaluate_all(HEADS)
    assert blocks[last] in [text for text, _ in opened]


def test_tab_completes_model_files(lab_page: LabPage) -> None:
    """Of `chain.lite`, `chars.txt` and Python's `class` and `chr` only the model."""
    cell = lab_page.add_cell("%lite info c")
    cell.locator(".cm-content").click()
    lab_page.page.keyboard.press("End")
    lab_page.page.keyboard.press("Tab")
    items = lab_page.page.locator(".jp-Completer-item")
    items.filter(has_text="chain.lite").wait_for()
    assert items.count() == 1, items.all_inner_texts()
    lab_page.page.keyboard.press("Escape")


def test_samples_of_another_model_are_not_offered(lab_page: LabPage) -> None:
    cell = lab_page.run_cell("lw.Workbench(lw.open('digits.onnx'), step='Quantize')")
    samples = cell.locator(".lite-step-Quantize [data-set=samples]")
    samples.wait_for()
    assert samples.locator("option").all_inner_texts() == ["digits_held_back.npz"]


def test_the_best_version_is_not_chosen_by_noise(lab_page: LabPage) -> None:
    cell = lab_page.run_cell(
        "import lite_widgets\n"
        "point = dict(method='mse', kept=[], bytes=9, latency_ci_ms=0.002)\n"
        "lite_widgets.TradeOff(\n"
        "    method='mse', float_=dict(accuracy=98.4, latency_ms=0.12, bytes=40),\n"
        "    points=[point | dict(label='exact', accuracy=98.3, latency_ms=0.061),\n"
        "            point | dict(label='noisy', accuracy=97.9, latency_ms=0.059)])"
    )
    chosen = cell.locator(".lite-tradeoff")
    chosen.get_by_text("98.3 %").wait_for()
    assert "97.9 %" not in chosen.inner_text()
    assert "0.061" in chosen.inner_text(), "the other one takes 0.059 ms"


def test_a_dropped_image_says_where_it_was_copied(lab_page: LabPage) -> None:
    cell = lab_page.run_cell(
        "s = lw.open('digits.onnx')\ns.convert(targets=['x86'])\nlw.Workbench(s, step='Run')"
    )
    run = cell.locator(".lite-step-Run")
    with lab_page.page.expect_file_chooser() as chooser:
        run.locator("button, label", has_text="Drop or choose an image").click()
    image = (MODELS / "digits.png").read_bytes()
    chooser.value.set_files({"name": "seven.png", "mimeType": "image/png", "buffer": image})
    copied = lab_page.server.root / "truthful" / "seven.png"
    run.locator(".lite-header", has_text=f"copied to {copied.resolve()}").wait_for()
    assert copied.is_file()


def test_the_board_form_marks_the_field_that_is_wrong(lab_page: LabPage) -> None:
    cell = lab_page.run_cell("lw.Workbench(lw.open('digits.onnx'), step='Target')")
    step = cell.locator(".lite-step-Target")
    step.locator(".lite-header [data-action=add]").click()
    form = step.locator(".lite-form")
    form.locator("[data-field=name]").fill("pi")
    form.locator("[data-field=address]").fill("nowhere")
    form.locator("button[type=submit]").click()
    wrong = form.locator("label.wrong")
    wrong.wait_for()
    assert "'nowhere'" in wrong.inner_text()
    marked = form.locator("[aria-invalid=true]")
    assert marked.count() == 1 and marked.get_attribute("data-field") == "address"
    assert step.locator(".lite-notice").locator("visible=true").count() == 0
    assert "digits.onnx" not in step.inner_text(), "no path that has nothing to do with it"


def test_a_file_that_is_no_model_is_one_line(lab_page: LabPage) -> None:
    cell = lab_page.run_cell("lw.open('chars.txt')")
    said = cell.locator(".jp-OutputArea-output")
    said.wait_for()
    assert said.inner_text().startswith("error: chars.txt: not a model")
    assert "\n" not in said.inner_text().strip() and "Traceback" not in cell.inner_text()
