"""Backends of other packages: what they run; their faults cost no more than a sub-graph."""

from __future__ import annotations

import sys
import textwrap
import time

import numpy as np
import pytest
from lite_engine import Predictor, extensions, settings, write_onnx
from lite_engine.backends import get_plugin, register_backend, unregister_backend
from lite_engine.backends.plugins.probe import usability_of
from lite_engine.backends.reference import run_graph
from lite_engine.compare import Side, compare
from lite_engine.doctor import examine
from lite_engine.errors import BackendUnavailableError, UsageError
from lite_engine.profile import profile
from lite_engine.profile.advice import advise
from lite_engine.runtime import host_target
from lite_engine.runtime.support import model_info
from lite_workbench.cli import main

from tests.plugins.toy import Toy
from tests.small_models import Builder

pytestmark = pytest.mark.cpu


@pytest.fixture
def register():
    yield register_backend
    unregister_backend("toy")


def _network():
    """Nothing that the passes would fuse: convolutions around a pool, a product, a view."""
    b = Builder((1, 3, 16, 16))
    a = b.conv(b.x, 3, 8, 3, name="first")
    a = b.add("MaxPool", a, name="pool", kernel_shape=[3, 3], pads=[1] * 4, strides=[1, 1])
    c = b.conv(a, 8, 8, 3, name="second")
    d = b.conv(a, 8, 8, 1, name="branch")
    e = b.add("Mul", c, d, name="join")
    b.graph.outputs = [b.add("Reshape", e, b.ints(1, -1), name="flat")]
    from lite_engine.ops import infer_types

    infer_types(b.graph)
    return b.graph


def _feeds():
    return {"x": np.random.default_rng(3).standard_normal((1, 3, 16, 16)).astype(np.float32)}


def _expected():
    return Predictor(_network(), "reference").run(_feeds())


def _same(got, want):
    assert got.keys() == want.keys()
    for name in want:
        np.testing.assert_allclose(got[name], want[name], atol=1e-5)


def test_a_plugin_gets_the_whole_graph_and_its_values_can_be_tapped(register):
    toy = Toy()
    register(toy)
    predictor = Predictor(_network(), "toy")
    _same(predictor.run(_feeds()), _expected())
    assert {s.backend for s in predictor.plan().steps} == {"toy"}
    assert [len(g.nodes) for g in toy.graphs] == [6]
    inner = predictor.run(_feeds(), taps=["pool", "join"])
    wanted = Predictor(_network(), "reference").run(_feeds(), taps=["pool", "join"])
    _same(inner, wanted)


@pytest.mark.parametrize("refused", ["Conv", "MaxPool", "Mul"])
def test_what_a_plugin_refuses_runs_on_the_cpu_with_its_reason(register, refused):
    register(Toy(lambda node: f"no {refused}" if node.op == refused else ""))
    predictor = Predictor(_network(), "toy")
    _same(predictor.run(_feeds()), _expected())
    steps = [s for s in predictor.plan().steps if s.node is not None]
    assert {s.backend for s in steps if s.op == refused} == {"cpu"}
    assert all(f"no {refused}" in s.why for s in steps if s.op == refused)
    assert "toy" in {s.backend for s in steps}


def test_a_view_between_two_layers_of_a_plugin_parts_its_subgraphs(register):
    """The Reshape that it refuses costs the CPU nothing, and is nobody's step."""
    b = Builder((1, 3, 4, 4))
    y = b.add("Flatten", b.conv(b.x, 3, 8, 3, name="conv"), name="view")
    graph = b.done(b.add("Gemm", y, b.weights(5, 128), b.weights(5), transB=1, name="fc"))
    toy = Toy(lambda node: "no views" if node.op == "Flatten" else "")
    register(toy)
    feeds = {"x": np.random.default_rng(3).standard_normal((1, 3, 4, 4)).astype(np.float32)}
    predictor = Predictor(graph, "toy")
    _same(predictor.run(feeds), Predictor(graph, "reference").run(feeds))
    assert [[n.name for n in g.nodes] for g in toy.graphs] == [["conv"], ["fc"]]
    assert not predictor.refused


def _raises(results):
    raise RuntimeError("the device is on fire")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (_raises, "the device is on fire"),
        (lambda r: [a[..., :-1] for a in r], "expected f32"),
        (lambda r: [a.astype(np.float64) for a in r], "float64"),
        (lambda r: [], "gave 0 outputs, expected 1"),
    ],
    ids=["raises", "shape", "type", "count"],
)
def test_a_plugin_that_fails_costs_its_subgraph_not_the_run(register, spoil, reason):
    register(Toy(spoil=spoil))
    predictor = Predictor(_network(), "toy")
    _same(predictor.run(_feeds()), _expected())
    assert reason in predictor.refused["join"]
    assert reason in predictor.explain()
    assert "toy" not in {s.backend for s in predictor.plan().steps}


def test_a_plugin_that_fails_to_compile_one_subgraph_keeps_the_other(register):
    def no_second(graph):
        if any(n.name == "second" for n in graph.nodes):
            raise ValueError("too many channels")

    register(Toy(lambda node: "not here" if node.name == "pool" else "", change=no_second))
    predictor = Predictor(_network(), "toy")
    _same(predictor.run(_feeds()), _expected())
    where = {s.name: s.backend for s in predictor.plan().steps}
    assert where["first"] == "toy" and where["second"] == where["join"] == "cpu"
    assert "too many channels" in predictor.refused["second"]


def test_overrides_send_layers_to_a_plugin_and_away_from_it(register):
    register(Toy())
    predictor = Predictor(_network(), host_target(), overrides={"second": "toy"})
    _same(predictor.run(_feeds()), _expected())
    where = {s.name: s.backend for s in predictor.plan().steps}
    assert where["second"] == "toy" and where["first"] == "cpu"
    predictor = Predictor(_network(), "toy", overrides={"second": "reference"})
    _same(predictor.run(_feeds()), _expected())
    where = {s.name: s.backend for s in predictor.plan().steps}
    assert where["second"] == "reference" and where["first"] == "toy"


def test_layers_sent_to_a_plugin_that_is_gone_run_on_the_cpu_with_the_reason(register):
    register(Toy())
    choices = {"second": "toy"}
    _same(Predictor(_network(), host_target(), overrides=choices).run(_feeds()), _expected())
    unregister_backend("toy")
    predictor = Predictor(_network(), host_target(), overrides=choices)
    _same(predictor.run(_feeds()), _expected())
    second = next(s for s in predictor.plan().steps if s.name == "second")
    assert second.backend == "cpu" and "the backend toy cannot be used here" in second.why


def test_compare_names_the_layer_that_a_plugin_computes_wrongly(register):
    def another_bias(graph):
        for node in graph.nodes:
            if node.name == "branch":
                node.inputs[2].const = np.full_like(node.inputs[2].const, 5)

    register(Toy(lambda n: "no" if n.op == "MaxPool" else "", change=another_bias))
    sides = (Side(Predictor(_network(), name)) for name in ("reference", "toy"))
    result = compare(*sides, _feeds())
    assert result.finding.layer == "branch"


def test_profile_shows_the_subgraph_and_its_estimate(register):
    register(Toy())
    result = profile(Predictor(_network(), "toy"), _feeds(), runs=3)
    assert {row.backend for row in result.layers} == {"toy"}
    assert any(w.startswith("toy: 1 sub-graph with 6 layers, estimated") for w in result.warnings)
    assert result.shares["toy"].layers == 6


def test_advice_names_a_plugin_that_has_not_run_the_model(register, monkeypatch):
    register(Toy())
    monkeypatch.setattr(settings, "backends", lambda: (*settings.BACKENDS, "toy"))
    for backend in (host_target(), "toy"):
        predictor = Predictor(_network(), backend)
        result = profile(predictor, _feeds(), runs=3)
        told = [a for a in advise(result, predictor.plan()) if a.rule == "another-backend"]
        assert [a.command for a in told] == ["lite profile MODEL --backend toy"] * (
            backend != "toy"
        )


def test_doctor_knows_plugins_by_name(register):
    register(Toy())
    found = examine()
    assert found.backends["toy"] is True
    assert next(c for c in found.checks if c.name == "toy").summary.startswith("a toy")


def test_info_asks_a_plugin_what_it_takes(register, tmp_path, capsys):
    register(Toy(lambda node: "no pools here" if node.op == "MaxPool" else ""))
    write_onnx(_network(), tmp_path / "m.onnx")
    assert main(["info", str(tmp_path / "m.onnx"), "--plugins", "toy"]) == 0
    said = capsys.readouterr().out
    assert "toy" in said and "no pools here" in said
    info = model_info(_network(), "m", ("x86", "toy"))
    rows = {s.op: s for s in info.support if s.target == "toy"}
    assert rows["Conv"].supported and rows["Conv"].backend == "toy"
    assert (rows["MaxPool"].supported, rows["MaxPool"].runs_on) == (False, "CPU")
    with pytest.raises(BackendUnavailableError, match="pip install lite-backend-nowhere"):
        model_info(_network(), "m", ("x86", "nowhere"))


def test_a_backend_that_is_not_installed_is_named():
    with pytest.raises(UsageError, match="'nowhere' is not one of"):
        Predictor(_network(), "nowhere")
    assert "pip install lite-backend-nowhere" in str(get_plugin("nowhere").usability())


def test_a_plugin_of_another_contract_is_refused(register):
    toy = Toy()
    toy.contract = 99
    register(toy)
    with pytest.raises(BackendUnavailableError, match="contract 99, this engine has 1"):
        Predictor(_network(), "toy")


class _Kept(Toy):
    """A toy whose compiled graphs are kept."""

    def __init__(self):
        super().__init__()
        self.restored, self.saved = 0, 0

    def version(self):
        return "1"

    def save(self, compiled):
        self.saved += 1
        return b"toy"

    def restore(self, blob, graph, *, threads, precision):
        if blob != b"toy":
            raise ValueError("not mine")
        self.restored += 1
        return Toy.compile(self, graph, threads=threads, precision=precision)


def test_compiled_graphs_are_kept_and_made_again_where_a_blob_does_not_open(
    register, tmp_path, monkeypatch
):
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path))
    toy = _Kept()
    register(toy)
    for _ in range(2):
        _same(Predictor(_network(), "toy").run(_feeds()), _expected())
    assert (toy.saved, toy.restored) == (1, 1)
    (blob,) = (tmp_path / "plugins").iterdir()
    blob.write_bytes(b"damaged")
    _same(Predictor(_network(), "toy").run(_feeds()), _expected())
    assert (toy.saved, toy.restored) == (2, 1)
    monkeypatch.setattr(_Kept, "version", lambda self: "2")
    _same(Predictor(_network(), "toy").run(_feeds()), _expected())
    assert (toy.saved, toy.restored) == (3, 1)


class _Open(Toy):
    """Knows its nodes' times and its inner values."""

    def compile(self, graph, *, threads, precision):
        return _OpenGraph(graph)


class _OpenGraph:
    def __init__(self, graph):
        self.graph, self.taps = graph, {}

    def run(self, inputs):
        self.taps = {}
        return run_graph(self.graph, inputs, taps=self.taps)

    def times(self):
        return {"first": (0, 5000), "join": (5000, 7000)}

    def tap(self, names):
        self.names = names

    def tapped(self, name):
        return self.taps[name]


def test_a_compiled_graph_may_know_its_times_and_inner_values(register):
    register(_Open())
    predictor = Predictor(_network(), "toy")
    inner = predictor.run(_feeds(), taps=["pool"])
    _same(inner, Predictor(_network(), "reference").run(_feeds(), taps=["pool"]))
    times = predictor.execution().times()
    by_name = dict(zip((s.name for s in predictor.plan().steps), times))
    assert by_name["first"].end_ns - by_name["first"].start_ns == 5000
    assert by_name["branch"].variant == "toy (fused)"


def test_a_dear_border_leaves_everything_on_the_cpu_with_the_reason(register, monkeypatch):
    toy = Toy()
    monkeypatch.setattr(toy, "border_cost", lambda: (1e3, 0.0, 0.0))
    register(toy)
    predictor = Predictor(_network(), "toy")
    _same(predictor.run(_feeds()), _expected())
    first = next(s for s in predictor.plan().steps if s.name == "first")
    assert (
        first.backend == "cpu"
        and "copies and launches would take longer than toy saves" in first.why
    )


# ---- installed ones, asked in another process


def _install(folder, name, body):
    """A distribution as pip leaves it behind."""
    (folder / f"{name}_module.py").write_text(textwrap.dedent(body))
    info = folder / f"lite_backend_{name}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: lite-backend-{name}\nVersion: 1.2\n"
    )
    (info / "entry_points.txt").write_text(
        f"[lite_engine.backends]\n{name} = {name}_module:Plugin\n"
    )


@pytest.fixture
def installed(tmp_path, monkeypatch):
    def install(name, body):
        _install(tmp_path, name, body)
        extensions._installed.cache_clear()

    monkeypatch.syspath_prepend(tmp_path)
    yield install
    extensions._installed.cache_clear()
    for name in list(sys.modules):
        if name.endswith("_module"):
            del sys.modules[name]


@pytest.mark.parametrize(
    ("name", "body", "reason"),
    [
        ("crashing", "import ctypes; ctypes.string_at(0)", "SIGSEGV"),
        ("incomplete", "raise ImportError('libacme.so is missing')", "libacme.so is missing"),
        ("silent", "import os; os._exit(0)", "fails while it is opened"),
        ("empty", "class Plugin: pass", "not a BackendPlugin"),
    ],
)
def test_a_plugin_that_breaks_while_it_is_asked_is_told_apart(installed, name, body, reason):
    installed(name, body)
    assert name in settings.backends()
    state = usability_of(name)
    assert not state.usable
    assert reason in state.reason
    assert f"lite-backend-{name} 1.2" in str(state)
    with pytest.raises(BackendUnavailableError):
        Predictor(_network(), name)


def test_a_plugin_that_hangs_is_given_up(installed):
    installed("slow", "import time; time.sleep(600)")
    began = time.monotonic()
    state = usability_of("slow", timeout_s=1.5)
    assert time.monotonic() - began < 60
    assert "does not answer within" in state.reason
