"""The Python side: what widgets accept, sync, refuse, and show where no kernel runs."""

from __future__ import annotations

import importlib
import math
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import comm
import lite_widgets as lw
import numpy as np
import pytest
import traitlets as t
from comm.base_comm import BaseComm
from lite_widgets._base import LiteWidget, checked
from lite_widgets._rows import row_value
from lite_widgets.formats import error_text

from tests.widgets import samples
from tests.widgets.showcase import showcase

WIDGETS = [
    cls for cls in (getattr(lw, name) for name in lw.__all__)
    if isinstance(cls, type) and issubclass(cls, LiteWidget)
]  # fmt: skip
EVIL = '<script>alert("x")</script>'


@pytest.mark.parametrize("cls", WIDGETS, ids=lambda cls: cls.__name__)
class TestEvery:
    def test_every_public_trait_is_synced(self, cls):
        widget = cls()
        own = {n for k in cls.__mro__ if issubclass(k, LiteWidget) for n in vars(k)
               if isinstance(vars(k)[n], t.TraitType) and not n.startswith("_")}  # fmt: skip
        assert own and own <= set(widget.keys)

    def test_unknown_keyword_is_refused_with_the_nearest(self, cls):
        with pytest.raises(TypeError, match="did you mean selected"):
            cls(selectd=["a"])

    def test_nothing_given_shows_nothing_but_works(self, cls):
        widget = cls()
        assert widget.static_svg() is None or widget.static_svg().startswith("<svg")
        data, _ = widget._repr_mimebundle_()
        assert "text/html" in data and "application/vnd.jupyter.widget-view+json" in data

    def test_folder_is_a_pair_with_documented_traits(self, cls):
        module = sys.modules[cls.__module__]
        fetched = re.search(r"""\bimport\b\s*[{*("']|\bfrom\s*["']""", cls._esm)
        assert not fetched, "a cell has nowhere to fetch a module from"
        assert re.search(r"export\{.*\bas default[,}]", cls._esm)
        documented = cls.__doc__ + LiteWidget.__doc__ + (module.__doc__ or "")
        skip = {"title", "height", "counts", "can_insert"}
        own = {n for n in vars(cls) if isinstance(vars(cls)[n], t.TraitType)} - skip
        missing = [n for n in own if n not in documented]
        assert not missing, f"{cls.__name__} does not document {missing}"


def test_data_checked_once_are_what_each_widget_makes_of_them_and_one_object():
    profile = {"layers": [{"name": "a/x", "op": "Conv", "ms": math.nan}, {"name": "a/y"}]}
    shared = checked(profile, "profile")
    alone = lw.LayerTable(profile=profile).profile
    assert shared == alone and list(shared) == list(alone)
    assert alone["layers"][0] == {"name": "a/x", "op": "Conv", "ms": None, "index": 0,
                                  "type": "Conv", "block": alone["layers"][0]["block"]}  # fmt: skip
    assert lw.LayerTable(profile=shared).profile is lw.Timeline(profile=shared).profile is shared
    assert "type" not in profile["layers"][0], "what was given stays as it was"


def test_data_checked_for_other_rows_are_checked_again():
    nodes = checked({"nodes": [{"name": "a"}], "layers": [{"name": "b"}]}, "graph", "nodes")
    shown = lw.LayerTable(profile=nodes).profile
    assert shown is not nodes and shown["layers"][0]["type"] == ""
    with pytest.raises(t.TraitError, match="lacks layers"):
        lw.LayerTable(comparison=checked({"nodes": []}, "graph", "nodes"))


@pytest.mark.parametrize("widget", showcase(), ids=lambda w: type(w).__name__)
def test_static_picture_is_whole_and_small(widget):
    picture = widget.static_svg()
    if picture:
        root = ET.fromstring(picture)
        picture = re.sub('base64,[^"]*', "", picture)
        assert root.tag.endswith("svg") and "nan" not in picture.lower().replace("nanometre", "")
    page = widget.static_html()
    assert len(page) < 200_000 and "None" not in page


def test_all_javascript_together_is_below_a_million_and_a_half():
    assert sum(len(cls._esm.encode()) for cls in WIDGETS) < 1_500_000
    assert max(len(cls._esm.encode()) for cls in WIDGETS) < 120_000


def test_names_from_a_file_are_never_markup():
    profile = samples.profile()
    profile["layers"][3]["name"] = EVIL
    comparison = samples.comparison()
    comparison["layers"][12]["name"] = EVIL
    for widget in (
        lw.LatencyChart(profile=profile), lw.LayerTable(profile=profile),
        lw.ErrorStrip(comparison=comparison), lw.Waterfall(change=samples.change(profile, profile)),
        lw.Notice(what=EVIL, fix=EVIL), lw.FactsCard(title=EVIL, facts=[[EVIL, EVIL]]),
        lw.LatencyChart(profile=profile, caption=EVIL, python=EVIL),
    ):  # fmt: skip
        assert "<script" not in widget.static_html()


def test_not_a_number_becomes_none_and_numpy_becomes_python():
    comparison = samples.comparison()
    comparison["layers"][0]["rel_l2"] = float("nan")
    comparison["layers"][1]["max_abs"] = np.float32(0.5)
    widget = lw.ErrorStrip(comparison=comparison)
    assert widget.comparison["layers"][0]["rel_l2"] is None
    assert widget.comparison["layers"][1]["max_abs"] == 0.5
    with pytest.raises(t.TraitError, match="not plain data"):
        lw.ErrorStrip(comparison={**comparison, "a": object()})
    with pytest.raises(t.TraitError, match="lacks layers"):
        lw.LatencyChart(profile={"backend": "x86"})
    twice = samples.profile()
    twice["layers"][1]["name"] = twice["layers"][0]["name"]
    with pytest.raises(t.TraitError, match="names must differ"):
        lw.LatencyChart(profile=twice)


@pytest.mark.parametrize(
    ("names", "shapes", "expected"),
    [
        (["a/x", "a/y", "b/x", "b/y"], None, ["a", "a", "b", "b"]),
        (["/m/a/x", "/m/a/y", "/m/b/x", "/m/b/y"], None, ["m/a", "m/a", "m/b", "m/b"]),
        (
            ["a/x", "a/y", "a/z", "b/x", "b/y", "a/t", "a/u"],
            None,
            ["a"] * 3 + ["b"] * 2 + ["a (2)"] * 2,
        ),
        ([f"conv_{i}" for i in range(6)], [8, 8, 8, 4, 4, 4], ["part 1"] * 3 + ["part 2"] * 3),
    ],
)
def test_blocks_come_from_scopes_or_resolution(names, shapes, expected):
    nodes = [{"name": n, "op": "Conv", "inputs": []} for n in names]
    for node, size in zip(nodes, shapes or []):
        node["output_shapes"] = [[1, 3, size, size]]
    widget = lw.GraphView(graph={"nodes": nodes, "inputs": [], "outputs": []})
    assert [node["block"] for node in widget.graph["nodes"]] == expected


def test_copies_belong_to_the_block_of_the_next_layer():
    rows = lw.LatencyChart(profile=samples.profile("opencl")).profile["layers"]
    copy = next(row for row in rows if row["type"] == "Copy")
    assert copy["block"] == "b7"


def test_action_reaches_its_listeners_every_time():
    widget, heard = lw.StepHeader(), []
    widget.on_action(lambda name, payload: heard.append((name, payload)), "run")
    widget.action = {"id": "run", "seq": 1, "n": 5}
    widget.action = {"id": "run", "seq": 2, "n": 5}
    widget.action = {"id": "other", "seq": 3}
    assert heard == [("run", {"n": 5}), ("run", {"n": 5})]


def test_upload_arrives_whole_or_says_that_it_broke_off():
    zone, files = lw.DropZone(), []
    zone.on_file(lambda name, content: files.append((name, content)))
    for seq, (offset, part) in enumerate([(0, b"abc"), (3, b"de")], 1):
        zone.set_trait("data", memoryview(part))
        zone.piece = {"name": "m.onnx", "size": 5, "offset": offset, "seq": seq}
    assert files == [("m.onnx", b"abcde")] and zone.received == {"seq": 2, "offset": 5}
    zone.piece = {"name": "m.onnx", "size": 5, "offset": 4, "seq": 3}
    assert "was interrupted" in zone.received["error"] and len(files) == 1


def test_the_same_infinity_on_both_sides_is_no_difference():
    detail = lw.difference_detail(np.array([np.inf, np.nan, 1.0]), np.array([np.inf, np.nan, 2.0]))
    assert detail["not_finite"] == 0 and detail["worst"]["index"] == [2]


def test_difference_detail_finds_the_place():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(1, 8, 6, 20)).astype(np.float32)
    b = a.copy()
    b[0, 5, 2, 19] += 3
    detail = lw.difference_detail(a, b)
    assert detail["worst"]["index"] == [0, 5, 2, 19] and detail["channel"] == 5
    assert detail["map"].shape == (6, 20) and detail["map"].argmax() == 2 * 20 + 19
    assert sum(detail["histogram"]["counts"]) == a.size
    nhwc = lw.difference_detail(a.transpose(0, 2, 3, 1), b.transpose(0, 2, 3, 1), layout="NHWC")
    assert nhwc["channel"] == 5 and np.array_equal(nhwc["map"], detail["map"])
    b[0, 0, 0, 0] = np.nan
    broken = lw.difference_detail(a, b)
    assert broken["not_finite"] == 1 and broken["worst"]["b"] is None and broken["channel"] == 0
    with pytest.raises(ValueError, match="shapes"):
        lw.difference_detail(a, b[0])
    for shape in ((), (7,), (3, 4), (1, 80, 97), (2, 2, 2, 2, 2)):
        assert lw.difference_detail(np.zeros(shape), np.ones(shape))["not_finite"] == 0
    pane = lw.DifferencePane(layer=samples.comparison()["layers"][12])
    pane.show(a, a)
    assert len(pane.map) == 4 * 6 * 20 and pane.map_shape == [6, 20]


def test_trade_off_chooses_the_fastest_within_the_budget():
    points = [{"method": "kl", "kept": [], "accuracy": a, "latency_ms": ms, "bytes": 1}
              for a, ms in ((98.0, 3), (97.0, 2))]  # fmt: skip
    widget = lw.TradeOff(points=points, float_={"accuracy": 98.4, "latency_ms": 6, "bytes": 4})
    assert widget.best == 0
    widget.budget = 2.0
    assert widget.best == 1
    widget.budget = 0.1
    assert widget.best == -1


def test_trade_off_does_not_follow_noise():
    """Of versions whose intervals overlap the fastest's: the most accurate, then the smallest."""
    points = [{"method": "kl", "kept": [], "accuracy": a, "latency_ms": ms, "bytes": size,
               "latency_ci_ms": 0.1}
              for a, ms, size in ((98.0, 3.0, 9), (98.0, 3.15, 7), (97.9, 2.99, 5), (99, 3.5, 9))
              ]  # fmt: skip
    fp = {"accuracy": 98.4, "latency_ms": 6, "bytes": 40}
    assert lw.TradeOff(points=points, float_=fp).best == 1
    swapped = [{**p, "latency_ms": 6.0 - p["latency_ms"] + 0.15} for p in points[:2]]
    assert lw.TradeOff(points=swapped, float_=fp).best == 1, "noise the other way round"


def test_stepper_knows_its_steps():
    stepper = lw.Stepper()
    stepper.set_step("Profile", "done", "5.99 ms")
    assert stepper.steps[7] == {"name": "Profile", "state": "done", "result": "5.99 ms"}
    with pytest.raises(KeyError):
        stepper.set_step("Nowhere", "done")
    with pytest.raises(t.TraitError, match="state must be one of"):
        stepper.set_step("Profile", "finished")


def test_workbench_builds_a_step_when_it_is_opened():
    view, made = lw.WorkbenchView("m.onnx"), []
    view.build("Profile", lambda: made.append(1) or [lw.Notice(what="hello")])
    assert not made
    view.stepper.current = "Profile"
    assert made == [1] and view.current == "Profile" and "hello" in view.static_html()
    view.stepper.current = "Model"
    view.current = "Profile"
    assert made == [1] and view.stepper.current == "Profile"
    with pytest.raises(ValueError, match="kind must be"):
        lw.columns(kind="no")


def test_package_exports_what_it_says_and_knows_no_engine():
    for name in lw.__all__:
        assert getattr(lw, name) is not None
    with pytest.raises(AttributeError):
        _ = lw.Nothing
    assert dir(lw) == lw.__all__
    code = "import sys, lite_widgets as w; [getattr(w, n) for n in w.__all__]; "
    code += (
        "sys.exit(any(m.split('.')[0] in ('lite_engine', 'lite_workbench') for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
    importlib.import_module("lite_widgets.data")


def test_convolutions_are_counted_by_their_weights():
    from lite_widgets._rows import family

    gemm, data = "f32_conv2d_gemm__avx512_14x32", [1, 8, 16, 16]
    assert family("Conv", gemm, [data, [16, 8, 3, 3], [16]]) == "Conv"
    assert family("Conv", gemm, [data, [16, 8, 1, 1], [16]]) == "Conv 1×1"
    assert family("Conv", gemm, [data, [8, 1, 3, 3]]) == "Depthwise conv"
    assert family("Conv", gemm, [[1, 1, 9, 9], [8, 1, 3, 3]]) == "Conv", (
        "one channel, not depthwise"
    )
    assert family("QLinearConv", "", [data, [], [], [16, 8, 1, 1], [16]]) == "Conv 1×1"
    assert [family(op) for op in ("QLinearAdd", "QLinearSigmoid", "QLinearMatMul")] == [
        "Elementwise", "Activation", "MatMul",
    ]  # fmt: skip
    assert {family(op) for op in ("QuantizeLinear", "DequantizeLinear")} == {"Quantize"}
    assert family("Conv", "f32_conv2d_depthwise__neon_3x3") == "Depthwise conv"


def test_errors_and_bars_are_written_in_their_units():
    texts = {None: "–", 0: "0", 0.079: "7.9e−2", 0.5: "0.5", 12.4: "12", 1234: "1.2e3"}
    texts |= {float("inf"): "–", -float("inf"): "–"}
    assert {v: error_text(v) for v in texts} == texts
    row = {"median_ms": 1.5, "instructions": 2_500_000}
    assert (row_value(row), row_value(row, emulated=True), row_value({})) == (1.5, 2.5, 0)


def test_only_a_kernel_has_the_state_made_ready_for_a_page(monkeypatch):
    asked = []
    state = LiteWidget.get_state

    def counted(self, key=None, drop_defaults=False):
        if key not in ("_esm", "_css", "_anywidget_id"):  # which anywidget gives by themselves
            asked.append(key)
        return state(self, key, drop_defaults)

    monkeypatch.setattr(LiteWidget, "get_state", counted)
    monkeypatch.setattr(comm, "create_comm", comm._create_comm)  # what is there without a kernel
    alone = lw.DataTable(rows=[])
    alone.title = "changed"
    assert not asked
    sent = []

    class Heard(BaseComm):
        def publish_msg(self, kind, data=None, **_):
            sent.append((kind, (data or {}).get("state", {}).get("title")))

    monkeypatch.setattr(comm, "create_comm", Heard)
    heard = lw.DataTable(rows=[], title="first")
    heard.title = "second"
    assert ("comm_open", "first") in sent and sent[-1] == ("comm_msg", "second")


def test_transfers_are_grouped_by_what_they_change():
    """A change of layout within one backend is none between backends, whatever its sides are."""
    layouts = {"source": "row-major", "target": "channels-last", "source_layout": "row-major",
               "target_layout": "channels-last"}  # fmt: skip
    own = {"name": "Relayout x", "median_ms": 0.5, "copy": layouts}
    across = {"name": "Copy y", "median_ms": 2.0, "copy": {"source": "x86", "target": "opencl"}}
    matrix = lw.TransitionMatrix(profile={"layers": [own]})
    assert matrix.by == "layout" and [c["names"] for c in matrix.cells] == [["Relayout x"]]
    matrix.by = "backend"
    assert matrix.cells == [], "the person's choice stays"
    both = lw.TransitionMatrix(profile={"layers": [own, across]})
    assert both.by == "backend" and [c["names"] for c in both.cells] == [["Copy y"]]
