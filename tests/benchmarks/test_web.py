"""The benchmark in the browser: its page runs our engine with the answers of this process."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.export import export_model

from benchmarks import schedule
from tests.small_models import classifier

web = pytest.importorskip("benchmarks.web.__main__", reason="needs playwright")


def test_tensors_keep_their_bytes_as_text():
    for value in (np.arange(6, dtype=np.float32).reshape(2, 3), np.array([1, -1])):
        told = web.to_text("x", value)
        np.testing.assert_array_equal(web.from_text(told), value)
        assert told["shape"] == list(value.shape)


def test_without_the_peer_it_says_so(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(web, "PACKAGE", tmp_path / "nothing")
    with pytest.raises(SystemExit):
        web.main([])
    assert "nothing" in capsys.readouterr().err


@pytest.mark.wasm
@pytest.mark.browser
def test_the_page_has_our_answers_and_times(tmp_path, chromium):
    graph = classifier()
    feeds = {t.name: np.random.default_rng(0).random(t.shape, np.float32) for t in graph.inputs}
    expected = list(Predictor(optimize(graph, targets=["x86"])).run(feeds).values())
    export_model(optimize(graph), tmp_path / "model", "web")
    for name in ("index.html", "page.js"):
        (tmp_path / name).symlink_to(web.HERE / name)
    with web.served(tmp_path) as origin:
        page = web.Page(chromium, origin)
        inputs = [web.to_text(name, value) for name, value in feeds.items()]
        reply = page.ask(engine="lite", model="model/model.lite", inputs=inputs, threads=1)
        found = [web.from_text(t) for t in reply.pop("outputs")]
        assert schedule.distance_of(found, expected) < 1e-5
        rows = {"lite": reply}
        schedule.run_in_turn({"lite": page}, rows, 0)
        assert rows["lite"]["min_ms"] > 0 and "min_cpu_ms" not in rows["lite"]
        assert "no such engine" in page.ask(engine="x", model="", inputs=[], threads=1)["error"]
        page.close()
