"""A figure holds what its answer holds: every value against the answer's own, and both agree."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lite_engine.compare import Side, compare
from lite_engine.errors import LiteError, UsageError
from lite_engine.figures import _images
from lite_engine.history import History
from lite_engine.history.changes import changes
from lite_engine.model_file import optimize
from lite_engine.profile import Profile, profile
from lite_engine.runtime import Predictor
from lite_engine.runtime.inputs import random_feeds
from PIL import Image

from tests.chromium import find_chromium
from tests.small_models import classifier

pytest.importorskip("plotly", reason="pip install 'lite-workbench[lab]'")
pytestmark = pytest.mark.cpu


@pytest.fixture(scope="module")
def made() -> Profile:
    predictor = Predictor(optimize(classifier()), "x86", threads=1)
    return profile(predictor, random_feeds(predictor.model.graph), runs=12)


def test_latency_has_every_layer_and_its_interval(made: Profile) -> None:
    (bars,) = made.figure("latency").data
    assert list(bars.customdata) == [x.name for x in made.layers]
    assert list(bars.y) == [x.median_ms for x in made.layers]
    assert list(bars.error_y.array) == [x.ci_ms or 0 for x in made.layers]
    for layer, text in zip(made.layers, bars.hovertext, strict=True):
        assert layer.kernel in text and layer.why in text


def test_roofline_is_logarithmic_and_below_it_is_time(made: Profile) -> None:
    roof = {"gflops": 100.0, "gbytes_per_s": 10.0, "what": "1 thread"}
    figure = replace(made, roofline=roof).figure("roofline")
    line, dots = figure.data
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"
    rows = {x.name: x for x in made.layers if x.flops and x.bytes and x.gflops}
    assert set(dots.customdata) == set(rows)
    for name, x, y in zip(dots.customdata, dots.x, dots.y, strict=True):
        assert x == rows[name].flops / rows[name].bytes and y == rows[name].gflops
    np.testing.assert_allclose(line.y, np.minimum(100.0, 10.0 * np.array(line.x)))
    assert 10.0 in line.x, "the ridge: 100 GFLOP/s over 10 GB/s"
    assert len(replace(made, roofline=None).figure("roofline").data) == 1
    cached = replace(made, roofline={**roof, "cache_gbytes_per_s": 50.0}).figure("roofline")
    assert [line.line.dash for line in cached.data[:2]] == ["solid", "dot"]
    np.testing.assert_allclose(cached.data[1].y, np.minimum(100.0, 50.0 * np.array(line_x(cached))))


def test_types_add_up(made: Profile) -> None:
    (bars,) = made.figure("types").data
    for op, value in zip(bars.y, bars.x, strict=True):
        assert value == pytest.approx(sum(x.median_ms for x in made.layers if x.op == op))
    assert list(bars.x) == sorted(bars.x)
    assert sum(bars.x) == pytest.approx(sum(x.median_ms for x in made.layers))


def test_memory_and_timeline(made: Profile) -> None:
    (bars,) = made.figure("memory").data
    tensors = made.memory_map["tensors"]
    assert list(bars.base) == [t["offset"] for t in tensors]
    assert list(bars.y) == [t["bytes"] for t in tensors]
    ends = {
        name: begin + length
        for bars in made.figure("timeline").data
        for name, begin, length in zip(bars.customdata, bars.base, bars.x, strict=True)
    }
    assert ends.keys() == {x.name for x in made.layers}
    np.testing.assert_allclose(
        [ends[x.name] for x in made.layers], [x.span_ms[1] for x in made.layers]
    )


def test_emulated_runs_count_instructions(made: Profile) -> None:
    layers = [replace(x, instructions=1000 + x.index) for x in made.layers]
    emulated = replace(made, layers=layers, times_meaningful=False, instructions={"run": 1})
    (bars,) = emulated.figure("latency").data
    assert list(bars.y) == [x.instructions for x in layers] and bars.error_y.array is None
    for kind in ("roofline", "timeline"):
        with pytest.raises(UsageError, match="no meaningful times"):
            emulated.figure(kind)


def test_errors_of_a_comparison() -> None:
    model = optimize(classifier())
    sides = [Side(Predictor(model, name), name) for name in ("reference", "x86")]
    made = compare(*sides, random_feeds(model.graph), detail=["wide"])
    accumulated, isolated, tolerance = made.figure("error").data
    assert list(accumulated.y) == [x.rel_l2 for x in made.layers]
    assert list(isolated.y) == [x.isolated["rel_l2"] for x in made.layers if x.isolated]
    assert list(tolerance.y) == [x.tolerance for x in made.layers]
    assert made.figure().layout.title.text.replace("<br>", " ") == made.verdict
    detail = next(x.detail for x in made.layers if x.name == "wide")
    (bars,) = made.figure("histogram").data
    assert list(bars.y) == detail["histogram"]["counts"]
    (bars,) = made.figure("channels", "wide").data
    assert list(bars.y) == detail["per_channel"]
    with pytest.raises(UsageError, match="detail"):
        made.figure("channels", "stem")


def test_the_waterfall_ends_at_the_second_total(made: Profile) -> None:
    slower = replace(made, layers=[replace(x, median_ms=2 * x.median_ms) for x in made.layers],
                     total_ms={**made.total_ms, "median": 2 * made.total_ms["median"]})  # fmt: skip
    change = changes(made, slower)
    (bars,) = change.figure().data
    assert bars.measure[0] == "absolute" and bars.measure[-1] == "total"
    assert sum(bars.y[:-1]) == pytest.approx(bars.y[-1]) == pytest.approx(change.after_ns / 1e6)


def test_saved_runs_over_time(made: Profile, tmp_path: Path) -> None:
    history = History(tmp_path / "runs.sqlite")
    for one in (made, replace(made, backend="opencl"), made):
        history.add(one)
    lines = history.figure().data
    assert sorted(len(line.y) for line in lines) == [1, 2]
    assert all(list(line.y) == [made.total_ms["median"]] * len(line.y) for line in lines)


def test_unknown_kinds_and_a_missing_plotly(made: Profile, monkeypatch: Any) -> None:
    with pytest.raises(UsageError, match="choose from latency, roofline"):
        made.figure("pie")
    json.loads(made.figure().to_json())
    monkeypatch.setitem(sys.modules, "plotly", None)
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(LiteError, match="figures need plotly"):
        made.figure()


def test_one_look_for_light_and_dark(made: Profile) -> None:
    """Text and lines are readable on white and on JupyterLab's dark page (WCAG 2.2, 1.4.3)."""
    look = made.figure().layout.template.layout
    assert look.paper_bgcolor == look.plot_bgcolor == "rgba(0,0,0,0)"
    for page in (0xFF, 0x11):
        assert contrast(look.font.color, page) >= 4.0


def test_images_say_what_they_need(made: Profile, monkeypatch: Any) -> None:
    """kaleido, and a browser that kaleido drives."""
    figure = made.figure()
    monkeypatch.setattr(_images, "find_spec", lambda name: None)
    with pytest.raises(LiteError) as told:
        figure.write_image("profile.png")
    assert str(told.value) == ("images of figures need kaleido; run `pip install 'kaleido>=1'`")
    monkeypatch.setattr(_images, "find_spec", lambda name: name)

    class Chromeless:
        def to_image(self, said: str) -> bytes:
            raise RuntimeError(said)

    other = _images.figure_class(Chromeless)()
    with pytest.raises(LiteError, match="need Chrome or Chromium; install one"):
        other.to_image("\n\nKaleido requires Google Chrome to be installed.\n")
    with pytest.raises(RuntimeError, match="no space"):
        other.to_image("no space is left")


@pytest.mark.browser
@pytest.mark.hours  # a browser of its own
def test_a_figure_is_written_as_an_image(made: Profile, tmp_path: Path, monkeypatch: Any) -> None:
    pytest.importorskip("kaleido", reason="pip install 'kaleido>=1'")
    monkeypatch.setenv("BROWSER_PATH", str(find_chromium()))
    made.figure("latency").write_image(tmp_path / "latency.png", width=640, height=360)
    with Image.open(tmp_path / "latency.png") as image:
        assert image.size == (640, 360) and len(image.convert("RGB").getcolors(10**6)) > 8


def line_x(figure: Any) -> list[float]:
    return list(figure.data[1].x)


def contrast(colour: str, grey: int) -> float:
    def luminance(*channels: int) -> float:
        linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4
                  for c in channels]  # fmt: skip
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    own = luminance(*bytes.fromhex(colour[1:]))
    low, high = sorted((own, luminance(grey, grey, grey)))
    return (high + 0.05) / (low + 0.05)
