"""Widgets in a real browser, operated: focus, keys, sliders that lag, late clicks."""

from __future__ import annotations

import lite_widgets as lw
import pytest

from tests.widgets import samples
from tests.widgets.browser import STATES, saved, settle
from tests.widgets.showcase import showcase

pytestmark = pytest.mark.browser


def test_reduced_motion(chromium, tmp_path):
    from tests.widgets import host_page

    context = chromium.new_context(reduced_motion="reduce")
    page = context.new_page()
    steps = [{"name": "Profile", "state": "running", "result": "3 of 5"}]
    page.goto(host_page.write(tmp_path / "p.html", [lw.Stepper(steps=steps), *showcase()]))
    page.evaluate("() => window.ready")
    assert page.locator(".spin").first.evaluate("e => getComputedStyle(e).animationName") == "none"
    context.close()


def test_form_sends_by_enter_and_waits_for_what_is_needed(mount):
    fields = [
        {"name": "address", "label": "Address"},
        {"name": "name", "label": "Name"},
        {"name": "config", "label": "Configuration", "optional": True},
    ]
    page = mount([lw.Form(title="Add a board", fields=fields)])
    page.fill("[data-field=address]", " ssh://pi@10.0.0.5 ")
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.dataset.field") == "name"
    assert "Name missing" in page.locator(".sr").inner_text()
    assert saved(page)["errors"] == {"name": "required"} and "action" not in saved(page)
    page.fill("[data-field=name]", "pi")
    page.keyboard.press("Enter")
    values = {"address": "ssh://pi@10.0.0.5", "name": "pi", "config": ""}
    assert saved(page)["action"] == {"id": "submit", "values": values, "seq": 1}
    page.evaluate("models[0].set('blocked', 'No network.')")
    page.locator("small", has_text="No network.").wait_for()
    assert page.locator("[type=submit]").is_disabled()
    page.focus("[data-field=name]")
    page.keyboard.press("Enter")
    assert saved(page)["action"]["seq"] == 1


def test_inspector_measures_what_differs_from_now(mount):
    page = mount(
        [
            lw.Inspector(
                layer=samples.profile()["layers"][3],
                backends=["opencl"],
                precisions=["fp32", "int8"],
                override_precision="int8",
                current={"backend": "", "precision": "int8"},
                also=["b1/dw", "b2/dw"],
            )
        ]
    )
    button = page.locator("[data-action=measure]")
    assert button.is_disabled() and "2 other selected layers" in page.locator(".ovr").inner_text()
    assert button.get_attribute("title") == "Choose another backend or precision first."
    page.select_option("[data-set=override_precision]", "")
    button.click()  # waits until it can be pressed
    assert button.get_attribute("title") is None
    sent = saved(page)["action"]
    assert sent["layers"][1:] == ["b1/dw", "b2/dw"] and sent["precision"] == ""


def test_an_emulated_layer_has_instructions_and_nothing_of_its_time(mount):
    """Its share is of all instructions: that of the time is the emulator's, as is the rate."""
    row = {**samples.profile()["layers"][3], "instructions": 250_000, "share": 0.9}
    facts = {"emulated": True, "instructions": 1_000_000, "total_ms": 5.0}
    page = mount([lw.Inspector(layer=row, **facts), lw.Inspector(layer=row, total_ms=5.0)])
    emulated = page.locator("#w0").inner_text()
    assert "Instructions" in emulated and "0.250" in emulated and "25.0" in emulated
    assert not any(word in emulated for word in ("GFLOP/s", "90.0", " ms", "Time"))
    timed = page.locator("#w1").inner_text()
    assert "Time" in timed and "90.0" in timed and "GFLOP/s" in timed
    static = lw.Inspector(layer=row, **facts).static_html()
    assert "250,000" in static and "Time" not in static


def test_emulation_is_said_once(mount):
    said = "emulated: kernels, shapes, memory are exact, times are not"
    profile = {**samples.profile(), "emulated": True, "warnings": [said], "busy": ""}
    page = mount(
        [lw.TimingLine(profile=profile), lw.TimingLine(profile={**profile, "emulated": False})]
    )
    assert page.locator("#w0").inner_text().lower().count("emulated") == 1
    assert "Emulated: kernels" in page.locator("#w1").inner_text()  # a warning of any other profile


def test_late_echo_does_not_put_the_slider_back(mount):
    data = samples.comparison()
    page = mount(
        [lw.ErrorStrip(comparison=data, link="c"), lw.ErrorStrip(comparison=data, link="c")]
    )
    page.evaluate(
        """async () => {
        const slider = document.querySelector("#w0 [data-range=tolerance]");
        const put = (v) => {
            slider.value = v;
            slider.dispatchEvent(new Event("input", {bubbles: true}));
        };
        put(-4);
        await new Promise((r) => setTimeout(r, 200));
        put(-3);
        for (const model of models) {  // what Python was told before comes back
            model.set("tolerance", 1e-4);
            delete model.pending.tolerance;
        }
        await new Promise((r) => setTimeout(r, 200));
    }"""
    )
    assert page.evaluate("() => models.map((m) => m.get('tolerance'))") == [1e-3, 1e-3]
    assert page.evaluate("() => saved.map((all) => all.at(-1).tolerance)") == [1e-3, 1e-3]


def test_tolerance_per_operator_is_a_stepped_band(mount):
    comparison = samples.comparison()
    page = mount(
        [
            lw.ErrorStrip(comparison=comparison, link="c"),
            lw.GraphView(graph=samples.graph(), comparison=comparison, link="c"),
        ]
    )
    line = page.locator("[data-drag=tolerance] path")
    flat = line.get_attribute("d")
    assert len({part.split("H")[0] for part in flat.split("V")[1:]}) == 1
    page.check("[data-set=by_operator]")
    expect = pytest.importorskip("playwright.sync_api").expect
    expect(line).not_to_have_attribute("d", flat)  # it is drawn in the next frame
    steps = {part.split("H")[0] for part in line.get_attribute("d").split("V")[1:]}
    assert len(steps) == 2
    assert "goes wrong at b3/dw" in page.locator(".verdict .what").inner_text()
    own = saved(page)["op_tolerances"]
    assert own["DepthwiseConv"] == pytest.approx(5 * own["Mul"])
    assert page.evaluate("() => models[1].get('op_tolerances')") == own
    page.focus("[data-drag=tolerance]")
    page.keyboard.press("PageDown")
    assert saved(page)["op_tolerances"]["Mul"] == pytest.approx(own["Mul"] / 10**0.5, rel=0.06)
    page.uncheck("[data-set=by_operator]")
    assert saved(page)["op_tolerances"] == {}


def test_steps_and_tabs_by_keyboard(mount):
    tabs = [{"name": n, "badge": ""} for n in ("Layers", "Roofline", "Types")]
    page = mount([lw.Stepper(current="Profile"), lw.TabBar(tabs=tabs, current="Layers")])
    page.focus("[data-step=Profile]")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("() => document.activeElement.dataset.step") == "Compare"
    assert page.locator("[data-step=Compare]").get_attribute("aria-label") == "Compare: to do"
    page.keyboard.press("Enter")
    assert saved(page)["current"] == "Compare"
    page.focus("[data-tab=Layers]")
    page.keyboard.press("ArrowRight")
    assert saved(page, 1)["current"] == "Roofline"
    page.wait_for_function("() => document.activeElement.dataset.tab === 'Roofline'")
    page.keyboard.press("End")
    assert saved(page, 1)["current"] == "Types"


def test_a_selection_that_comes_with_its_model_waits_for_the_drawing(mount):
    """Python sends a new model and its selection in one message, before anything is drawn."""
    widget = lw.GraphView(graph=samples.graph(), selected=[])
    name = widget.graph["nodes"][-1]["name"]
    page = mount([lw.GraphView()])
    page.evaluate(
        """([graph, name]) => {
            models[0].set("graph", graph);
            models[0].set("selected", [name]);
        }""",
        [widget.graph, name],
    )
    page.locator(f"#w0 [data-pane=main] [data-k='{name}'].sel").wait_for()


def test_a_graph_drawn_without_width_takes_a_selection_and_shows_it_later(mount):
    """A step behind another tab hears of a new model and of a click elsewhere."""
    widget = lw.GraphView(graph=samples.graph(), profile=samples.profile())
    name = widget.graph["nodes"][-1]["name"]
    page = mount([lw.GraphView()])
    page.evaluate(
        """async ([graph, name]) => {
            const frame = () => new Promise((done) => setTimeout(done, 60)), box = w0.style;
            box.display = "none";
            models[0].set("graph", graph);
            await frame();
            models[0].set("selected", [name]);
            await frame();
            box.display = "";
        }""",
        [widget.graph, name],
    )
    page.locator(f"#w0 [data-pane=main] [data-k='{name}'].sel").wait_for()


LONG = {"id": "7", "title": "Long", "state": "running", "done": 1, "total": 9, "left": ""}


def test_a_button_that_is_pressed_during_progress_is_heard(mount):
    """Progress draws the bar ten times a second; a person's click takes as long."""
    page = mount([lw.TopBar(title="m", jobs=[LONG])])
    page.locator("#w0 [data-action=cancel]").hover()
    page.mouse.down()
    page.evaluate("(job) => models[0].set('jobs', [{...job, done: 2}])", LONG)
    settle(page, 100)
    page.mouse.up()
    action = saved(page)["action"]
    assert (action["id"], action["job"]) == ("cancel", "7")
    page.locator("#w0 .job", has_text="2 of 9").wait_for()


#: Presses a key on each element that can have the focus. JupyterLab looks for a shortcut from there
#: outwards, unless the element says that it must not; returned are those that do not say it.
SHORTCUTS = """async ([key, ctrl]) => {
    const able = "a[href],button,input,select,textarea,summary,[tabindex]", fired = [];
    const lab = (e) => {
        if (!e.target.hasAttribute("data-lm-suppress-shortcuts")) fired.push(e.target.outerHTML);
    };
    document.addEventListener("keydown", lab, true);
    const all = [...document.querySelectorAll(".lite")]
        .flatMap((w) => [...w.querySelectorAll(able)]);
    for (const e of all) {
        e.focus();
        e.dispatchEvent(new KeyboardEvent("keydown", { key, ctrlKey: ctrl, bubbles: true }));
    }
    document.removeEventListener("keydown", lab, true);
    return [all.length, fired];
}"""


def test_no_element_of_any_widget_lets_a_plain_key_through(mount):
    """JupyterLab's own keys, such as b and d d, would change the notebook; Ctrl+S saves it."""
    page = mount([*showcase(), *(lw.LatencyChart(status=s) for s in STATES)])
    page.evaluate("document.querySelector('#w0 .frame').append(document.createElement('input'))")
    count, fired = page.evaluate(SHORTCUTS, ["b", False])
    assert count > 100 and fired == []
    count, fired = page.evaluate(SHORTCUTS, ["s", True])
    assert len(fired) == count


def test_a_drawing_keeps_focus_caret_and_what_was_typed(mount):
    """Python changes other traits while a person writes, chooses and looks at details."""
    fields = [{"name": "address", "label": "Address"}, {"name": "name", "label": "Name"}]
    error = {"kind": "error", "what": "**No.**", "tried": [["✓", "lib", "found"]]}
    page = mount(
        [
            lw.Form(title="Add a board", fields=fields),
            lw.LayerTable(profile=samples.profile()),
            lw.LatencyChart(profile=samples.profile(), status=error),
        ]
    )
    page.fill("[data-field=address]", "ssh://pi")
    page.keyboard.press("ArrowLeft")
    page.evaluate("models[0].set('note', 'Its name is taken.')")
    page.locator("#w0 small", has_text="taken").wait_for()
    page.keyboard.press("x")
    assert page.input_value("[data-field=address]") == "ssh://pxi"
    page.fill("#w1 [data-find]", "b5")
    page.evaluate("models[1].set('colour_by', 'backend')")
    settle(page)
    page.keyboard.press("/")
    assert saved(page, 1)["filter"] == "b5/"
    page.click("#w2 summary")
    page.evaluate("s => models[2].set('status', s)", {**error, "what": "**Still no.**"})
    page.locator("#w2 b", has_text="Still").wait_for()
    assert page.locator("#w2 details").get_attribute("open") is not None


def test_a_form_offers_choices(mount):
    fields = [
        {"name": "input:a", "label": "a", "options": [["", "random data"], ["a.csv", "a.csv"]]},
        {"name": "seed", "label": "Seed", "optional": True},
    ]
    page = mount([lw.Form(title="Inputs", fields=fields, values={"seed": "3"})])
    choice = page.locator("[data-field='input:a']")
    assert choice.input_value() == ""
    page.locator("[data-field=seed]").press("Enter")
    assert saved(page)["action"]["values"] == {"input:a": "", "seed": "3"}
    choice.select_option("a.csv")
    page.locator("[data-field=seed]").press("Enter")
    assert saved(page)["action"]["values"] == {"input:a": "a.csv", "seed": "3"}
