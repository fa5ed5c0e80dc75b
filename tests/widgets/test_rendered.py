"""Widgets in a real browser, both themes: drawn, operated by mouse and keyboard, linked."""

from __future__ import annotations

import os
import re
from pathlib import Path

import lite_widgets as lw
import numpy as np
import pytest
from lite_workbench.answers import answer

from tests.widgets import samples
from tests.widgets.showcase import difference, showcase, trade_off

pytestmark = pytest.mark.browser
CLICK = """async (name) => {
    const selector = `[data-k="${name}"]`, began = performance.now();
    const bar = document.querySelector(`#w0 ${selector} .hit`);
    bar.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    const seen = (view) => document.querySelector(`${view}${selector}.sel`);
    while (!seen("#w1 tr") || !seen("#w2 .slice g")) {
        if (performance.now() - began > 5000) return false;
        await new Promise(requestAnimationFrame);
    }
    return true;
}"""
#: Scrolls to the end; what was drawn at most, added at most in one frame, and seen in all.
SCROLL = """async () => {
    const pane = document.querySelector("[data-pane=main]"), seen = new Set();
    let [drawn, added, most] = [0, 0, 0];
    const count = (all) => all.forEach((change) => { added += change.addedNodes.length; });
    new MutationObserver(count).observe(pane, { childList: true, subtree: true });
    for (let last = -1; pane.scrollTop !== last; ) {
        [last, added] = [pane.scrollTop, 0];
        pane.scrollTop += 300;
        for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame);
        const nodes = [...pane.querySelectorAll(".slice g[data-k]")];
        nodes.forEach((e) => seen.add(e.dataset.k));
        [drawn, most] = [Math.max(drawn, nodes.length), Math.max(most, added)];
    }
    return { drawn, most, seen: seen.size };
}"""
SAVED = "() => Object.assign({}, ...window.saved[%d])"


def saved(page, i=0):
    """What widget i sent to Python so far, later changes over earlier ones."""
    page.wait_for_timeout(200)  # soft changes are sent at most every 120 ms
    return page.evaluate(SAVED % i)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1100, 700, 340])
def test_everything_draws_without_errors_or_requests(mount, theme, width):
    widgets = showcase()
    page, wide = mount(widgets, theme=theme, width=width), []
    for i, widget in enumerate(widgets):
        box = page.locator(f"#w{i} .lite")
        assert box.get_attribute("data-theme") == theme
        assert box.bounding_box()["height"] > 20, type(widget).__name__
        html = box.inner_html()
        assert "NaN" not in html.replace(">NaN<", "") and "undefined" not in html, type(widget)
        over = box.evaluate("e => e.querySelector('.frame').scrollWidth - e.clientWidth")
        wide += [f"{type(widget).__name__} {over} px"] if over > 1 else []
    assert not wide, f"too wide at {width}: {wide}"
    keep = os.environ.get("LITE_TEST_SHOTS")
    if keep:
        Path(keep).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=f"{keep}/widgets-{theme}-{width}.png", full_page=True)


def test_theme_is_followed_live(mount):
    page = mount([lw.LatencyChart(profile=samples.profile())])
    before = page.locator(".lite-latency [data-k='b5/dw'] .mark").get_attribute("fill")
    page.evaluate("() => document.body.setAttribute('data-jp-theme-light', 'false')")
    page.wait_for_function("() => document.querySelector('.lite').dataset.theme === 'dark'")
    after = page.locator(".lite-latency [data-k='b5/dw'] .mark").get_attribute("fill")
    assert before != after


def test_a_click_selects_in_every_linked_view(mount):
    profile = samples.profile()
    page = mount(
        [
            lw.LatencyChart(profile=profile, link="x"),
            lw.LayerTable(profile=profile, link="x"),
            lw.GraphView(graph=samples.graph(), profile=profile, link="x"),
            lw.LayerTable(profile=profile, link="other"),
        ]
    )
    for name in ("b2/dw", "head/fc1", "b8/project"):
        assert page.evaluate(CLICK, name), name
    assert page.locator("#w1 tr.sel").inner_text().startswith("52")
    assert page.locator("#w3 tr.sel").count() == 0
    assert saved(page)["selected"] == ["b8/project"] and saved(page, 3) == {}
    # What a widget hears is not kept back: it would go out later and undo what Python has set.
    assert saved(page, 1)["selected"] == saved(page, 2)["selected"] == ["b8/project"]
    assert page.evaluate("() => models.map((m) => Object.keys(m.pending))") == [[], [], [], []]


def test_keyboard_multiselect_escape_and_live_region(mount):
    page = mount([lw.LatencyChart(profile=samples.profile(), selected=["b1/dw"])])
    page.focus(".lite-latency [data-keys]")
    page.keyboard.press("ArrowRight")
    assert saved(page)["selected"] == ["b1/se/pool"]
    assert "b1/se/pool, " in page.locator(".sr").inner_text()
    page.keyboard.press("Shift+ArrowRight")
    assert saved(page)["selected"] == ["b1/se/pool", "b1/se/fc1"]
    page.keyboard.press("Escape")
    assert saved(page)["selected"] == [] and page.locator(".sel[data-k]").count() == 0


def test_lasso_selects_what_it_touches(mount):
    page = mount([lw.LatencyChart(profile=samples.profile())])
    box = page.locator("[data-part=chart]").bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 200, box["y"] + 160, steps=4)
    page.mouse.up()
    names = saved(page)["selected"]
    assert 3 <= len(names) <= 12 and "b1/project" in names


def test_graph_opens_finds_zooms_and_lassos(mount):
    graph = lw.GraphView(graph=samples.graph(), profile=samples.profile())
    page = mount([graph], width=400)
    assert page.locator("[data-block][aria-expanded=true]").count() >= 1
    page.fill("[data-find]", "head/fc2")
    assert saved(page)["selected"] == ["head/fc2"] and "head" in saved(page)["open_blocks"]
    assert page.locator(".slice g.sel").count() == 1
    page.locator("[data-block=head]").focus()
    page.keyboard.press("Enter")
    assert "head" not in saved(page)["open_blocks"]
    page.click("[data-all]")
    assert len(saved(page)["open_blocks"]) == 11
    width = page.locator(".slice").bounding_box()["width"]
    page.click("[data-zoom='1']")
    assert page.locator(".slice").bounding_box()["width"] > width * 1.1


def test_find_prefers_the_layer_of_exactly_that_name(mount):
    names = ["Conv_0", "Conv_11", "Conv_1", "Conv_12", "b/dw_1", "b/dw", "c/dw"]
    nodes = [{"name": n, "op": "Conv", "inputs": [], "block": "b"} for n in names]
    page = mount([lw.GraphView(graph={"nodes": nodes, "inputs": [], "outputs": []})], width=400)

    def found(text, keys=()):
        page.fill("[data-find]", text)
        for key in keys:
            page.locator("[data-find]").press(key)
        return saved(page)["selected"]

    assert found("conv_1") == ["Conv_1"] and found("conv_1", ["Enter"]) == ["Conv_1"]
    assert found("dw") == ["b/dw"] and found("dw", ["Enter"]) == ["c/dw"]
    assert found("conv") == ["Conv_0"] and found("conv", ["Enter", "Enter"]) == ["Conv_1"]


def test_a_result_of_plain_values_is_drawn_as_the_engine_says_it(mount):
    """DeepLab's mask, and an output that is nothing special."""
    mask = np.zeros((1, 16, 16), np.int64)
    mask[0, 4:] = 3
    answers = [answer({"mask": mask}, ()), answer({"y": np.ones((1, 2, 3), np.float32)}, ())]
    cards = [lw.ResultCard(kind=a.kind, items=a.items) for a in answers]
    page = mount(cards)
    assert [a.kind for a in answers] == ["values", "values"]
    assert "class 3\t1×16×16\t75.0 % of the image" in page.locator("#w0 table").inner_text()
    assert "y\t1×2×3\t1 … 1" in page.locator("#w1 table").inner_text()


def test_source_graph_is_linked_through_the_fusion_map(mount):
    view = lw.GraphView(
        graph=samples.graph(),
        source_graph=samples.source_graph(),
        profile=samples.profile(),
        selected=["b5/dw"],
    )
    page = mount([view], width=1000)
    sources = next(n["sources"] for n in samples.graph()["nodes"] if n["name"] == "b5/dw")
    lit = page.locator("[data-pane=source] g.sel").evaluate_all(
        "all => all.map(e => e.dataset.src)"
    )
    assert lit == sources
    page.locator("[data-pane=source] g[data-src].sel").first.locator(
        "xpath=following::*[@data-src][4]"
    ).click()
    assert saved(page)["selected"] not in ([], ["b5/dw"])


def test_of_a_thousand_nodes_only_those_in_sight_are_drawn(mount):
    big = samples.long_chain(1000)
    page = mount([lw.GraphView(graph=big.graph, profile=big.profile)], width=500)
    page.click("[data-all]")
    found = page.evaluate(SCROLL)
    assert found["seen"] == 1000 and found["drawn"] < 120
    assert found["most"] < 200, "what stays in sight was drawn anew"


def test_tolerance_is_dragged_and_followed_and_operable_by_keys(mount):
    comparison = samples.comparison()
    page = mount(
        [
            lw.ErrorStrip(comparison=comparison, link="c"),
            lw.GraphView(graph=samples.graph(), comparison=comparison, link="c"),
        ]
    )
    assert "goes wrong at b3/dw" in page.locator(".verdict .what").inner_text()
    before = page.locator(".verdict").bounding_box()
    line = page.locator("[data-drag] rect").last.bounding_box()
    page.mouse.move(line["x"] + 4, line["y"] + 5)
    page.mouse.down()
    page.mouse.move(line["x"] + 4, line["y"] + 90, steps=6)
    line = page.locator("svg[aria-label='Error per layer'] .acc")
    assert re.search(r"\d+ of \d+ layers over it, first ", line.text_content())
    assert "goes wrong at b3/dw" in page.locator(".verdict .what").inner_text()
    assert page.locator(".verdict").bounding_box() == before, "nothing may shift under the pointer"
    page.mouse.up()
    low = saved(page)["tolerance"]
    assert low < 1e-3 and page.evaluate("() => models[1].get('tolerance')") == low
    page.focus("[data-drag=tolerance]")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert saved(page)["tolerance"] > low * 1.4
    page.click("[data-action=usual]")
    assert saved(page)["tolerance"] == 1e-2
    page.click("[data-action=show]")
    assert saved(page)["selected"] == ["b3/dw"]
    page.click("[data-action=run_on_a]")
    assert saved(page)["action"] == {"id": "run_on_a", "layer": "b3/dw", "seq": 1}


def test_difference_pane_magnifies_and_chooses_channels(mount):
    page = mount([difference()], width=680)
    page.wait_for_timeout(150)
    assert "column 159 (the last)" in page.locator("[data-part=map]").inner_text()
    assert "x 159" in page.locator(".lens small").inner_text()
    painted = page.evaluate(
        "() => { const c = document.querySelector('[data-map]'); const d = c.getContext('2d')"
        ".getImageData(0, 0, c.width, c.height).data; let n = 0;"
        "for (let i = 3; i < d.length; i += 4) n += d[i] > 40; return [c.width, c.height, n]; }"
    )
    assert painted[:2] == [160, 12] and 0 < painted[2] <= 12
    page.locator("[data-map]").hover(position={"x": 3, "y": 3})
    assert (
        "x 0" in page.locator(".lens small").inner_text()
        or "x 1" in page.locator(".lens small").inner_text()
    )
    page.click("[data-channel='7']")
    assert saved(page)["channel"] == 7
    page.focus("[data-part=channels]")
    page.keyboard.press("ArrowRight")
    assert saved(page)["channel"] == 8
    page.click("[data-value=accumulated]")
    assert saved(page)["kind"] == "accumulated"


def test_table_sorts_filters_and_stays_small(mount):
    big = samples.long_chain(1000)
    page = mount([lw.LayerTable(profile=big.profile)])
    assert page.locator("tbody tr[data-k]").count() < 80
    page.click("[data-sort=value]")
    assert saved(page)["sort"] == "-value"
    first = float(page.locator("tbody tr[data-k]").first.locator("td").nth(4).inner_text())
    assert first == max(round(r["median_ms"], 3) for r in big.profile["layers"])
    page.fill("[data-find]", "stage7/unit3")
    page.wait_for_timeout(250)
    assert page.evaluate("() => document.activeElement.dataset.find") == "filter"
    assert "of 1000 rows" in page.locator(".bar0").inner_text()
    page.locator(".tw").evaluate("e => { e.scrollTop = 1e6; }")


def test_types_untick_and_the_chart_fades(mount):
    profile = samples.profile()
    page = mount(
        [lw.TypeSummary(profile=profile, link="t"), lw.LatencyChart(profile=profile, link="t")]
    )
    bar = page.locator("#w1 [data-k='b5/dw'] .mark")
    before = bar.get_attribute("fill")
    page.click("[data-type='Depthwise conv']")
    assert saved(page)["hidden_types"] == ["Depthwise conv"]
    assert bar.get_attribute("fill") != before


def test_budget_moves_the_choice(mount):
    page = mount([trade_off()])
    page.focus("[data-drag=budget]")
    for _ in range(4):
        page.keyboard.press("ArrowDown")
    state = saved(page)
    assert state["budget"] == 0.9 and state["best"] >= 0
    assert "int8 in all layers" in page.locator("[data-part=summary]").inner_text()


STATES = [
    {"kind": "error", "what": "**No images.**", "fix": "mogrify x"},
    {"kind": "empty", "title": "Nothing yet", "button": "Profile"},
]


def test_states_stand_in_place_of_the_plot(mount):
    data = [None, None]
    page = mount([lw.LatencyChart(profile=p, status=s) for p, s in zip(data, STATES, strict=True)])
    assert (
        page.locator("#w0 [role=alert]").count() == 1 and page.locator("#w0 svg.chart").count() == 0
    )
    page.click("#w1 [data-action=start]")
    assert saved(page, 1)["action"]["id"] == "start"


def test_what_runs_and_what_waits_can_be_cancelled(mount):
    waiting = {"id": "8", "title": "Comparing", "state": "waiting"}
    page = mount([lw.Running(jobs=[LONG, waiting], shown="x86 at 14:32:05"), lw.Running()])
    text = page.locator("#w0").inner_text()
    assert "1 of 9" in text and "waiting" in text and "Shown below: x86 at 14:32:05" in text
    page.locator("#w0 [data-action=cancel]").last.click()
    action = saved(page)["action"]
    assert (action["id"], action["job"]) == ("cancel", "8")
    assert page.locator("#w1").inner_text().strip() == ""


def test_hostile_names_stay_text(mount):
    profile = samples.profile()
    evil = '<img src=x onerror="window.hacked=1">"\'&'
    profile["layers"][3]["name"] = evil
    graph = samples.graph()
    graph["nodes"][3]["name"] = evil
    page = mount(
        [
            lw.LatencyChart(profile=profile, selected=[evil]),
            lw.LayerTable(profile=profile),
            lw.GraphView(graph=graph, profile=profile, selected=[evil]),
        ]
    )
    page.hover("#w0 g.sel .hit")
    assert page.evaluate("() => window.hacked") is None
    assert (
        page.locator("#w0 g.sel").count() == 1 and "<img" in page.locator("#w0 .tip").inner_text()
    )


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
    assert "Name missing" in page.locator(".sr").inner_text() and saved(page) == {}
    page.fill("[data-field=name]", "pi")
    page.keyboard.press("Enter")
    values = {"address": "ssh://pi@10.0.0.5", "name": "pi", "config": ""}
    assert saved(page)["action"] == {"id": "submit", "values": values, "seq": 1}


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
    page.select_option("[data-set=override_precision]", "")
    button.click()
    sent = saved(page)["action"]
    assert sent["layers"][1:] == ["b1/dw", "b2/dw"] and sent["precision"] == ""


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
    page.wait_for_timeout(100)
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
    page.wait_for_timeout(200)
    page.keyboard.press("/")
    assert saved(page, 1)["filter"] == "b5/"
    page.click("#w2 summary")
    page.evaluate("s => models[2].set('status', s)", {**error, "what": "**Still no.**"})
    page.locator("#w2 b", has_text="Still").wait_for()
    assert page.locator("#w2 details").get_attribute("open") is not None
