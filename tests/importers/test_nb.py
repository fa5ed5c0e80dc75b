"""Paddle-Lite's `.nb` files: all meta versions, targets and weight-only forms."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from lite_engine.errors import ModelFormatError
from lite_engine.importers import load
from lite_engine.ir import DType, Graph
from lite_engine.model_file.naive_buffer import write_nb
from lite_engine.runtime import Predictor
from PIL import Image

from tests.importers import real_paddle_lite
from tests.importers.golden_runs import relative_error, run_graph
from tests.importers.nb_files import meta_0, meta_1, two_files
from tests.importers.paddle_files import small_network

MODELS = Path(os.environ.get("LITE_TEST_MODELS", ""))
FIRST = np.array([0.118, 0.125, 0.096, 0.077])  # Paddle-Lite's own output for the tiny network


def _made() -> list[Path]:
    return sorted((MODELS / "nb_made").glob("*.nb")) if MODELS.name else []


@pytest.mark.models
@pytest.mark.parametrize("path", _made(), ids=lambda p: p.stem)
def test_tiny(path: Path) -> None:
    graph = load(path)
    y = run_graph(graph, {"x": np.ones((1, 3, 32, 32), np.float32)})
    (probabilities,) = y.values()
    assert np.abs(probabilities[0, :4] - FIRST).max() < 1e-3
    lite = graph.metadata["paddle_lite"]
    assert lite["meta_version"] == 2 and lite["opt_version"] == "v2.13-rc"


@pytest.mark.models
def test_kernel_choices_are_shown() -> None:
    kernels = load(MODELS / "nb_made/tiny_opencl.nb").metadata["paddle_lite"]["kernels"]
    assert "conv2d/image2d opencl fp16 image" in kernels.values()
    assert kernels["fetch:fetch"] == "fetch/def host any any"


@pytest.mark.models
@pytest.mark.parametrize("name, dtype", [("q8", DType.I8), ("q16", DType.I16)])
def test_weight_only_stays_integer(name: str, dtype: DType) -> None:
    graph = load(MODELS / f"nb_made/{name}.nb")
    weights = [n.inputs[0] for n in graph.nodes if n.op == "DequantizeLinear"]
    assert len(weights) == 3 and all(w is not None and w.dtype is dtype for w in weights)


@pytest.mark.parametrize("version, convert", [(0, meta_0), (1, meta_1)])
def test_older_meta_versions(tmp_path: Path, version: int, convert: Callable) -> None:
    path = write_nb(load(small_network().save(tmp_path)), tmp_path / "m.nb")
    x = {"x": np.random.default_rng(0).normal(size=(1, 3, 8, 8)).astype(np.float32)}
    (wanted,) = run_graph(load(path), x).values()
    path.write_bytes(convert(path.read_bytes()))
    graph = load(path)
    assert graph.metadata["paddle_lite"]["meta_version"] == version
    (y,) = run_graph(graph, x).values()
    assert np.array_equal(y, wanted)


def test_models_in_two_files(tmp_path: Path) -> None:
    """Named by their folder or by either file, with the parameters elsewhere, and without them."""
    path = write_nb(load(small_network().save(tmp_path)), tmp_path / "m.nb")
    x = {"x": np.random.default_rng(0).normal(size=(1, 3, 8, 8)).astype(np.float32)}
    (wanted,) = run_graph(load(path), x).values()
    folder = tmp_path / "old"
    folder.mkdir()
    two_files(path.read_bytes(), folder)
    for named in (folder, folder / "__model__.nb", folder / "param.nb"):
        graph = load(named)
        assert graph.name == "old" and graph.metadata["paddle_lite"]["meta_version"] == 0
        assert np.array_equal(*run_graph(graph, x).values(), wanted)
    (folder / "param.nb").rename(tmp_path / "weights")
    with pytest.raises(ModelFormatError, match=r"param\.nb, are missing"):
        load(folder)
    graph = load(folder, params=tmp_path / "weights")
    assert np.array_equal(*run_graph(graph, x).values(), wanted)
    (folder / "__model__.nb").write_bytes(b"\1" * 40)
    with pytest.raises(ModelFormatError):
        load(folder, params=tmp_path / "weights")


def image(name: str, width: int, height: int) -> np.ndarray:
    picture = Image.open(MODELS / "images" / name).convert("RGB").resize((width, height))
    x = (np.asarray(picture).astype(np.float32)[..., ::-1] - 127.5) / 127.5
    return np.ascontiguousarray(x.transpose(2, 0, 1)[None], np.float32)


@pytest.mark.models
@pytest.mark.parametrize("name, turned", [("text_cls.jpg", 1), ("text_rec.jpg", 0)])
def test_static_int8_classifier(name: str, turned: int) -> None:
    x = image(name, 192, 48)
    graph = load(MODELS / "nb/ch_ppocr_mobile_v2.0_cls_slim_opt.nb", shapes={"x": x.shape})
    (y,) = run_graph(graph, {"x": x}).values()
    assert y[0].argmax() == turned and y[0].max() > 0.7


def read_line(y: np.ndarray) -> str:
    """CTC greedy decoding of (steps, characters)."""
    keys = (MODELS / "labels/ppocr_keys_v1.txt").read_text(encoding="utf-8").splitlines()
    steps = y.argmax(-1)
    kept = [s for i, s in enumerate(steps) if s and (i == 0 or s != steps[i - 1])]
    return "".join(keys[s - 1] for s in kept)


@pytest.mark.models
def test_static_int8_recogniser_reads_a_line() -> None:
    x = image("text_rec.jpg", 148, 32)
    graph = load(MODELS / "nb/ch_ppocr_mobile_v2.0_rec_slim_opt.nb", shapes={"x": x.shape})
    (y,) = run_graph(graph, {"x": x}).values()
    assert read_line(y[0]) == "韩国小馆"


@pytest.mark.models
@pytest.mark.cpu
def test_static_int8_recogniser_on_integer_kernels() -> None:
    """One of its channels is dead: scale 0 with integers stored all the same."""
    x = image("text_rec.jpg", 148, 32)
    graph = load(MODELS / "nb/ch_ppocr_mobile_v2.0_rec_slim_opt.nb", shapes={"x": x.shape})
    (y,) = Predictor(graph).run({"x": x}).values()
    assert read_line(y[0]) == "韩国小馆"


@pytest.mark.models
def test_sources_are_unique() -> None:
    """Paddle-Lite reuses variables: the operators that write one are told apart by number."""
    graph = load(MODELS / "nb/ch_ppocr_mobile_v2.0_det_slim_opt.nb")
    convs = [n.sources[0] for n in graph.nodes if n.op == "Conv"]
    assert len(set(convs)) == len(convs)
    assert set(convs) <= set(graph.metadata["paddle_lite"]["kernels"])


@pytest.mark.models
def test_static_int8_detector_runs() -> None:
    graph = load(MODELS / "nb/ch_ppocr_mobile_v2.0_det_slim_opt.nb", shapes={"x": (1, 3, 96, 96)})
    x = np.random.default_rng(0).normal(size=(1, 3, 96, 96)).astype(np.float32)
    (y,) = run_graph(graph, {"x": x}).values()
    assert y.shape == (1, 1, 96, 96) and 0 <= y.min() <= y.max() <= 1


@pytest.mark.models
def test_meta_version_0() -> None:
    graph = load(MODELS / "nb/mask_detector_model.nb")
    assert graph.metadata["paddle_lite"]["meta_version"] == 0
    (y,) = run_graph(graph, {graph.inputs[0].name: np.ones((1, 3, 128, 128), np.float32)}).values()
    assert y.shape == (1, 2) and abs(y.sum() - 1) < 1e-5


def in_floats(graph: Graph) -> Graph:
    """The same layers with the weights' real numbers, nothing rounded between them."""
    for node in list(graph.nodes):
        if node.op != "DequantizeLinear":
            continue
        source, scale = node.inputs[0], np.asarray(node.inputs[1].const)
        if source.is_const:
            axis = node.attrs.get("axis", 1) % source.const.ndim
            along = [-1 if i == axis else 1 for i in range(source.const.ndim)]
            weight = source.const.astype(np.float32) * scale.reshape(along if scale.ndim else [])
            real = graph.constant(weight.astype(np.float32))
        else:
            assert source.producer.op == "QuantizeLinear"
            real = source.producer.inputs[0]
        graph.replace_uses(node.output, real)
    graph.remove_unread()
    assert not any("Quantize" in node.op for node in graph.nodes)
    return graph


@pytest.mark.models
@pytest.mark.parametrize("name, photo, width, height, limit", [
    ("ch_ppocr_mobile_v2.0_cls_slim_opt", "text_cls.jpg", 192, 48, 1e-5),
    ("ch_ppocr_mobile_v2.0_rec_slim_opt", "text_rec.jpg", 148, 32, 1e-4),
    ("ch_ppocr_mobile_v2.0_det_slim_opt", "ch_en_num.jpg", 320, 320, 5e-4),
    ("mask_detector_model", "face.jpg", 128, 128, 1e-5),
])  # fmt: skip
def test_paddle_lite_gives_the_same_in_floats(
    name: str, photo: str, width: int, height: int, limit: float, tmp_path: Path
) -> None:
    """Its x86 wheel takes no file for arm, and its int8 kernels are wrong there (docs/deploy.md):
    the published layers and weights are held against it in floats."""
    real_paddle_lite.needed()
    path, x = MODELS / f"nb/{name}.nb", image(photo, width, height)
    feed = {load(path).inputs[0].name: x}
    graph = in_floats(load(path, shapes={k: v.shape for k, v in feed.items()}))
    (wanted,) = run_graph(graph, feed).values()
    again = write_nb(graph, tmp_path / "m.nb", targets=["x86"])
    (found,) = real_paddle_lite.run(tmp_path, again, feed)
    assert relative_error(found.reshape(wanted.shape), wanted) < limit
