"""`lite info`: on small graphs made here, and on every model of the collection."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from lite_engine.errors import ModelFormatError
from lite_engine.importers import find_model, load
from lite_engine.ir import from_text
from lite_engine.runtime.support import model_info

from tests.importers import tiny_caffe
from tests.importers.paddle_files import small_network
from tests.importers.test_classic_models import model as classic
from tests.importers.tiny_tflite import TinyModel, conv_model
from tests.small_models import Builder, classifier

MODELS = Path(os.environ.get("LITE_TEST_MODELS", ""))
_SUFFIXES = (".onnx", ".tflite", ".pb", ".caffemodel", ".nb", ".pdmodel")


def _files() -> list[Path]:
    if not MODELS.name:
        return []
    found = [p for p in sorted(MODELS.rglob("*")) if p.suffix in _SUFFIXES]
    return [*found, MODELS / "paddle/shufflenet_v2_imagenet_fluid"]


@pytest.mark.models
@pytest.mark.parametrize("path", _files(), ids=lambda p: f"{p.parent.name}-{p.name}")
def test_every_model(path: Path) -> None:
    info = model_info(load(path), path.name)
    assert info.macs and info.params and info.layers
    assert {s.op for s in info.support} == set(info.operators)
    assert all(s.supported or (s.reason and s.fix) for s in info.support)
    assert bool(info.assumed) == any("--shape" in h for h in info.hints)


def test_open_sizes_are_assumed_and_said(tmp_path: Path) -> None:
    graph = load(small_network().save(tmp_path))
    info = model_info(graph, "small")
    assert info.assumed == {"x": [1, 3, 8, 8]}
    assert any("--shape x:1x3x8x8" in h for h in info.hints)
    assert info.becomes["BatchNormalization"] == "Conv" and info.becomes["Conv"] == ""
    assert all(s.supported for s in info.support)
    assert not any(h for h in model_info(load(tmp_path, shapes={"x": (1, 3, 8, 8)}), "s").hints)


def test_a_row_names_what_runs_the_operator(tmp_path: Path) -> None:
    x = np.zeros((2, 3), np.float32)
    (tmp_path / "n.onnx").write_bytes(classic("Normalizer", [x], norm="L2"))
    rows = model_info(load(tmp_path / "n.onnx"), "n").support
    assert {r.runs_on for r in rows} == {"NumPy"} and {r.backend for r in rows} == {"reference"}
    graph = load(small_network().save(tmp_path))
    assert {r.runs_on for r in model_info(graph, "small").support} == {"yes"}
    graph.nodes[0].op = "Unheard"
    rows = model_info(graph, "small").support
    assert {r.runs_on for r in rows if r.op == "Unheard"} == {"no"}


def test_dead_and_double_weights(tmp_path: Path) -> None:
    p = small_network()
    p.weight("nobody", np.ones(5, np.float32))
    info = model_info(load(p.save(tmp_path)), "small")
    assert info.dead_weights == ["nobody"]


def test_weights_of_another_size_are_a_hint(tmp_path: Path) -> None:
    net = tiny_caffe.save(tmp_path)
    text = net.read_text().replace("dim: 5 dim: 5", "dim: 9 dim: 9")
    net.write_text(text)
    (hint,) = model_info(load(net), "net").hints
    assert "inner dimensions 75 and 27 differ" in hint


def test_paths_that_people_type(tmp_path: Path) -> None:
    program = small_network().save(tmp_path)
    assert find_model(tmp_path / "inference") == program
    assert load(tmp_path / "inference").nodes
    (tmp_path / "net.onnx").touch()
    (tmp_path / "net.tflite").touch()
    with pytest.raises(ModelFormatError, match=r"give one of net\.onnx, net\.tflite"):
        find_model(tmp_path / "net")
    with pytest.raises(ModelFormatError, match="no such file or folder"):
        find_model(tmp_path / "other")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelFormatError, match="no model in this folder"):
        find_model(tmp_path / "empty")


@pytest.mark.parametrize(
    ("name", "start", "hint"),
    [("net.pt", b"PK\3\4", "torch.export.save"), ("net.h5", b"\x89HDF", "SavedModel"),
     ("net.param", b"7767517\n", "original model"), ("net.xml", b"<net", "original model"),
     ("notes.txt", b"text", "not a model in a supported format"),
     ("notes.onnx", b"text", r"notes\.onnx: not an ONNX model.*again, as binary")],
)  # fmt: skip
def test_files_of_other_tools(tmp_path: Path, name: str, start: bytes, hint: str) -> None:
    (tmp_path / name).write_bytes(start + b"0" * 64)
    with pytest.raises(ModelFormatError, match=hint):
        load(tmp_path / name)


def test_dynamic_range_weights_are_a_hint(tmp_path: Path) -> None:
    """TFLite's dynamic range: int8 weights under float activations."""
    m = TinyModel()
    x, y = (m.tensor(name, "float32", (1, 4)) for name in "xy")
    w = m.tensor("w", "int8", (4, 4), np.arange(16).reshape(4, 4), scale=0.1)
    m.op(9, [x, w, -1], [y])
    path = tmp_path / "dynamic.tflite"
    path.write_bytes(m.bytes([x], [y]))
    hints = model_info(load(path), "dynamic").hints
    assert len(hints) == 2
    assert hints[0].startswith("1 weight is stored in 8 bits") and "LiteRT" in hints[1]
    path.write_bytes(conv_model(quantised=True))
    assert not any("8 bits" in h for h in model_info(load(path), "static").hints)


@pytest.mark.parametrize("stated", [None, (None, None), (1, None)])
def test_sizes_of_outputs_follow_from_the_inputs(stated: tuple[int | None, ...] | None) -> None:
    """Where the file leaves them open."""
    graph = classifier()
    graph.outputs[0].shape = stated
    (told,) = model_info(graph, "m").outputs
    assert told["text"] == "1×10" and told["shape"] == [1, 10]


@pytest.mark.parametrize("bits", [4, 8])
def test_weights_that_share_a_byte_are_counted_one_by_one(bits: int) -> None:
    n, k, size = 5, 36, 16
    b = Builder((2, k), "packed")
    groups = -(-k // size)
    packed = b.graph.constant(np.zeros((n, groups, size * bits // 8), np.uint8))
    scales = b.graph.constant(np.ones(n * groups, np.float32))
    attrs = {"K": k, "N": n, "bits": bits, "block_size": size}
    info = model_info(
        b.done(b.add("MatMulNBits", b.x, packed, scales, name="mm", **attrs)), "packed"
    )
    assert info.params == info.layers[0].params == n * k + n * groups
    assert info.weight_bytes == packed.const.nbytes + scales.const.nbytes


def test_types_that_an_operator_cannot_have_are_a_reason() -> None:
    """A damaged `.lite` file may name one operator and the types of another."""
    graph = from_text(
        'graph "g" {\n  input q: f32[2,8]\n  const k: i64[3] = [1, 2, 8]\n'
        '  "a": y: f32[1,2,8] = Attention(q, k) {kv_num_heads=2, q_num_heads=2}\n  output y\n}'
    )
    (row,) = (s for s in model_info(graph, "damaged").support if s.target == "x86")
    assert not row.supported and "a (Attention): " in row.reason
