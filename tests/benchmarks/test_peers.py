"""The benchmark against peers: what it compares, and that a missing peer stops nothing."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from benchmarks import environments, table, wide
from benchmarks.cold import cold_starts
from benchmarks.environments import extra, python_of
from benchmarks.losses import compare
from benchmarks.models import Files
from benchmarks.peers import ENGINES, peer
from benchmarks.peers.nodes import names_in, nodes_in
from benchmarks.schedule import choose, distance_of, measure

NETWORK = "mobilenet_v3_small"


def test_outputs_are_brought_together_before_they_are_compared():
    rng = np.random.default_rng(0)
    a, b = rng.random((1, 3, 4, 5), np.float32), rng.random((1, 7), np.float32)
    assert distance_of([a, b], [a, b]) == 0
    assert distance_of([b[0], np.moveaxis(a, 1, -1)], [a, b]) == 0  # another order, NHWC, no batch
    assert distance_of([a, b + 1], [a, b]) > 0.5
    assert distance_of([a], [a, b]) is None
    assert distance_of([a, b[:, 1:]], [a, b]) is None


def test_a_ratio_counts_only_peers_whose_output_is_ours():
    nets = {
        "one/1": {"lite": {"min_ms": 2.0}, "ncnn": {"min_ms": 4.0},
                  "mnn": {"min_ms": 1.0, "error": "its output is not ours"}},
        "two/1": {"lite": {"min_ms": 2.0}, "ncnn": {"min_ms": 1.0}},
        "three/2": {"lite": {"min_ms": 2.0}, "ncnn": {"error": "not installed"}},
    }  # fmt: skip
    found = table.ratios(nets, "min_ms")
    assert found == pytest.approx({"one/1": 0.5, "two/1": 2.0, "geomean/1": 1.0, "geomean": 1.0})


def test_lost_time_is_counted_over_layers_that_share_nodes():
    """Ours fuses a and b, the peer b and c: one group, of a, b and c."""
    ours = [{"nodes": ["a", "b"], "ms": 3.0, "kernel": "conv"},
            {"nodes": ["c"], "ms": 1.0, "kernel": "add"},
            {"nodes": ["d"], "ms": 1.0, "kernel": "pool"},
            {"nodes": [], "ms": 0.5, "kernel": "relayout"}]  # fmt: skip
    theirs = [{"nodes": ["a"], "ms": 1.0, "kernel": "Conv"},
              {"nodes": ["b", "c"], "ms": 1.5, "kernel": "Fused"},
              {"nodes": ["d"], "ms": 2.0, "kernel": "Pool"}]  # fmt: skip
    found = [(g.kernels, g.lost_ms) for g in compare(ours, theirs)]
    assert found == [(["conv", "add"], 1.5), (["relayout"], 0.5), (["pool"], -1.0)]


def test_nodes_are_found_in_the_names_of_fused_layers():
    known = {"conv": "conv", "conv_1": "conv_1", "relu_out": "relu"}
    assert nodes_in("conv_1_relu_out_nchwc", known) == ["relu", "conv_1"]
    assert nodes_in("deconv", known) == []


@pytest.mark.cpu
def test_a_profile_of_each_side_names_the_nodes_of_the_file(files, no_peers):
    source, feeds = files.network(NETWORK)
    nodes = set(names_in(source).values())
    for engine in ("lite", "onnxruntime"):
        with np.load(feeds) as file:
            given = {key: file[key] for key in file.files}
        model = files.model(engine, source, feeds, "fp32")
        rows = peer(engine).layers(model, given, 1, "fp32", 2)
        named = {name for row in rows for name in row["nodes"]}
        assert len(named & nodes) > 20 and all(row["ms"] >= 0 for row in rows)


def test_any_file_is_a_network(files, tmp_path):
    """With the inputs of the .npz file beside it, else with seeded ones of their types."""
    path = tmp_path / "own.onnx"
    text = """<ir_version: 8, opset_import: ["" : 17]>
    m (float[2,3] x, int32[N] i, bool[2] b) => (float[2,3] y) { y = Relu(x) }"""
    onnx.save(onnx.parser.parse_model(text), path)
    source, feeds = files.network(str(path))
    assert onnx.load(source) == onnx.load(path) and source.parent == files.folder
    seeded = dict(np.load(feeds))
    assert {n: (x.dtype.name, x.shape) for n, x in seeded.items()} == {
        "x": ("float32", (2, 3)), "i": ("int32", (1,)), "b": ("bool", (2,)),
    }  # fmt: skip
    np.savez(path.with_suffix(".npz"), **{**seeded, "i": np.arange(5, dtype=np.int32)})
    again, given = files.network(str(path))
    assert again != source and np.load(given)["i"].tolist() == [0, 1, 2, 3, 4]


def test_what_is_no_network_is_told(files, tmp_path):
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(b"no model")
    for name in (str(bad), str(tmp_path / "none.onnx"), "mobilenet_v9"):
        with pytest.raises(RuntimeError, match=re.escape(Path(name).name)):
            files.network(name)


def test_the_wide_set_says_what_it_needs(files, no_peers, monkeypatch):
    monkeypatch.setattr("benchmarks.environments.EXPORT", ("no_such_library",))
    with pytest.raises(RuntimeError, match=r"needs no_such_library: run `python -m benchmarks"):
        files.network("wide/vit_b_16")


@pytest.mark.parametrize("found", [True, False])
def test_pytorch_for_processors_is_tried_first(found, no_peers, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(environments.venv, "create", lambda *_, **__: None)
    monkeypatch.setattr(
        environments, "_installed",
        lambda python, package: asked.append(package) or found or "+cpu" not in package,
    )  # fmt: skip
    assert environments.install(export=True) == 0
    assert asked == [environments.FOR_PROCESSORS, *environments.EXPORT]
    assert ("the usual build is installed" in capsys.readouterr().err) is not found


def test_every_network_of_the_wide_set_has_a_builder():
    folder = Path(wide.__file__).parent
    for name, module in wide.NETWORKS.items():
        text = (folder / f"{module}.py").read_text()
        assert module == "vision" or f"def {name}() ->" in text, name


def test_networks_outside_the_wide_set_are_built_by_image_libraries(files):
    assert [wide.builder_of(n) for n in ("bert", "resnet34", "timm.ghostnet_100")] == [
        "text", "vision", "vision",
    ]  # fmt: skip
    with pytest.raises(RuntimeError, match="is no network's name"):
        files.network("wide/../x")


def test_engines_are_chosen_by_name():
    assert choose("ncnn,lite") == ["lite", "ncnn"]
    with pytest.raises(ValueError, match="there are: lite, onnxruntime"):
        choose("torch")
    for engine in ENGINES:
        assert "fp32" in peer(engine).PRECISIONS
    assert {r.partition(">")[0].lower() for r in extra()} >= {"onnxruntime", "openvino", "mnn"}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return Files(tmp_path_factory.mktemp("models"))


@pytest.fixture
def no_peers(monkeypatch, tmp_path):
    """Only what this environment has: our engine and onnxruntime."""
    monkeypatch.setenv("LITE_BENCH_PEERS", str(tmp_path))
    assert python_of("openvino") == sys.executable


def test_a_run_goes_on_without_a_peer(files, no_peers):
    rows = measure(files, NETWORK, ["lite", "onnxruntime", "mnn"], 1, "fp32", 0.1)
    assert "_tools" in rows["mnn"]["error"]  # the converter's own complaint
    assert rows["onnxruntime"]["distance"] < 1e-4
    for engine in ("lite", "onnxruntime"):
        row = rows[engine]
        assert 0 < row["min_ms"] <= row["median_ms"] and row["runs"] >= 3
        assert row["peak_mib"] > 10 and row["load_s"] > 0 and row["min_cpu_ms"] > 0
    assert table.ratio(rows, "min_ms") == rows["lite"]["min_ms"] / rows["onnxruntime"]["min_ms"]


def test_a_cold_start_counts_from_the_start_of_the_process(files, no_peers, monkeypatch):
    monkeypatch.setattr("benchmarks.cold.TIMES", 1)
    rows = cold_starts(files, NETWORK, ["lite", "onnxruntime"], 1, "fp32")
    for row in rows.values():
        assert row["process_s"] > row["load_s"] + row["first_s"] and row["again_s"] > 0


def test_a_worker_answers_errors_as_json():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.worker", "lite"], capture_output=True, text=True,
        input='{"burst_ms": 1}\n', check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == {"error": "no model is loaded"}
