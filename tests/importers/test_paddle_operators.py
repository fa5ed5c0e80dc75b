"""Paddle operators against their definitions, on small programs written by the tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lite_engine.errors import ModelFormatError, UnsupportedOperatorError
from lite_engine.importers import load
from lite_engine.importers.paddle.registry import known_types

from tests.importers.golden_runs import run_graph
from tests.importers.paddle_files import PaddleProgram, small_network

RNG = np.random.default_rng(7)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def run_one(
    folder: Path, kind: str, feeds: dict[str, np.ndarray], inputs: dict[str, Any],
    outputs: dict[str, Any], weights: dict[str, np.ndarray] | None = None, **attrs: Any,
) -> list[np.ndarray]:  # fmt: skip
    """One operator; the outputs of its slots in order."""
    p = PaddleProgram()
    for name, array in feeds.items():
        p.feed(name, array.shape, array.dtype.name)
    for name, array in (weights or {}).items():
        p.weight(name, array)
    p.op(kind, inputs, outputs, **attrs)
    for names in outputs.values():
        for name in names if isinstance(names, list) else [names]:
            p.fetch(name)
    return list(run_graph(load(p.save(folder)), feeds).values())


@pytest.mark.parametrize("axis, shape", [(-1, (4, 5)), (1, (3,)), (0, (2, 3)), (2, (4, 1))])
def test_elementwise_axis(tmp_path: Path, axis: int, shape: tuple[int, ...]) -> None:
    x, y = normal(2, 3, 4, 5), normal(*shape)
    (z,) = run_one(tmp_path, "elementwise_add", {"x": x, "y": y}, {"X": "x", "Y": "y"},
                   {"Out": "z"}, axis=axis)  # fmt: skip
    at = 4 - len(shape) if axis == -1 else axis
    lifted = y.reshape((1,) * at + shape + (1,) * (4 - at - len(shape)))
    assert np.array_equal(z, x + lifted)


@pytest.mark.parametrize("after", [True, False])
def test_scale(tmp_path: Path, after: bool) -> None:
    x = normal(2, 3)
    (y,) = run_one(tmp_path, "scale", {"x": x}, {"X": "x"}, {"Out": "y"}, scale=2.0, bias=0.5,
                   bias_after_scale=after)  # fmt: skip
    assert np.allclose(y, x * 2 + 0.5 if after else (x + 0.5) * 2)


FUNCTIONS = {
    "expm1": np.expm1,
    "log1p": np.log1p,
    "log2": np.log2,
    "log10": np.log10,
    "square": np.square,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "trunc": np.trunc,
    "logsigmoid": lambda x: -np.log1p(np.exp(-x)),
    # ∫ tanh² from 0: x − tanh x without a difference
    "tanh_shrink": lambda x: (
        x * np.mean(np.tanh(x * ((np.arange(4000) + 0.5) / 4000)[:, None]) ** 2, 0)
    ),
}


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_functions(tmp_path: Path, kind: str) -> None:
    """Near 0 too, where e^x − 1 and ln(1 + x) lose their digits when computed step by step."""
    x = np.geomspace(1e-6, 3, 40, dtype=np.float32)
    (y,) = run_one(tmp_path, kind, {"x": x}, {"X": "x"}, {"Out": "y"})
    np.testing.assert_allclose(y, FUNCTIONS[kind](x.astype(np.float64)), rtol=1e-6)


def test_functions_of_two(tmp_path: Path) -> None:
    x, y = normal(3, 4), normal(3, 4)
    y[0] = x[0]
    (z,) = run_one(tmp_path, "atan2", {"x": x, "y": y}, {"X1": "x", "X2": "y"}, {"Out": "z"})
    np.testing.assert_allclose(z, np.arctan2(x, y), rtol=1e-6)
    (z,) = run_one(tmp_path, "not_equal", {"x": x, "y": y}, {"X": "x", "Y": "y"}, {"Out": "z"})
    assert np.array_equal(z, x != y)


def test_two_scales_in_one(tmp_path: Path) -> None:
    """As Paddle-Lite's optimiser writes them: the second after the first, then the activation."""
    x = normal(2, 3)
    (y,) = run_one(tmp_path, "scale", {"x": x}, {"X": "x"}, {"Out": "y"}, scale=2.0, bias=0.5,
                   fuse_scaleact=True, scale1=-3.0, bias1=0.25, activation_type="relu")  # fmt: skip
    assert np.allclose(y, np.maximum((x * 2 + 0.5) * -3 + 0.25, 0))


def test_defaults_that_newer_paddle_drops(tmp_path: Path) -> None:
    x = normal(2, 3) * 8
    for kind, wanted in [
        ("relu6", np.clip(x, 0, 6)),
        ("swish", x / (1 + np.exp(-x))),
        ("leaky_relu", np.where(x < 0, 0.02 * x, x)),
        ("hard_sigmoid", np.clip(0.2 * x + 0.5, 0, 1)),
    ]:
        (y,) = run_one(tmp_path, kind, {"x": x}, {"X": "x"}, {"Out": "y"})
        assert np.allclose(y, wanted, atol=1e-6), kind


def test_mul_flattens(tmp_path: Path) -> None:
    x, w = normal(2, 3, 4), normal(4, 5)
    (y,) = run_one(tmp_path, "mul", {"x": x}, {"X": "x", "Y": "w"}, {"Out": "y"}, {"w": w},
                   x_num_col_dims=2, y_num_col_dims=1)  # fmt: skip
    assert np.allclose(y, x @ w, atol=1e-5)
    x4 = normal(2, 3, 2, 2)
    w = normal(12, 5)
    (y,) = run_one(tmp_path, "mul", {"x": x4}, {"X": "x", "Y": "w"}, {"Out": "y"}, {"w": w},
                   x_num_col_dims=1, y_num_col_dims=1)  # fmt: skip
    assert np.allclose(y, x4.reshape(2, 12) @ w, atol=1e-5)


@pytest.mark.parametrize("mode", ["avg", "max"])
def test_adaptive_pool_that_does_not_divide(tmp_path: Path, mode: str) -> None:
    x = normal(1, 2, 7, 5)
    (y,) = run_one(tmp_path, "pool2d", {"x": x}, {"X": "x"}, {"Out": "y"}, pooling_type=mode,
                   ksize=[3, 2], adaptive=True)  # fmt: skip
    for i in range(3):
        for j in range(2):
            part = x[:, :, i * 7 // 3 : -(-(i + 1) * 7 // 3), j * 5 // 2 : -(-(j + 1) * 5 // 2)]
            wanted = part.mean((2, 3)) if mode == "avg" else part.max((2, 3))
            assert np.allclose(y[:, :, i, j], wanted, atol=1e-6)


def test_slice_and_decrease(tmp_path: Path) -> None:
    x = normal(3, 4, 5)
    (y,) = run_one(tmp_path, "slice", {"x": x}, {"Input": "x"}, {"Out": "y"}, axes=[0, 2],
                   starts=[1, -3], ends=[2, 100], decrease_axis=[0])  # fmt: skip
    assert np.array_equal(y, x[1, :, -3:])


def test_quantised_weight_and_activation(tmp_path: Path) -> None:
    """A QAT pair: activation by its stored scale, weight per channel by its own maxima."""
    x, w = normal(2, 4), normal(4, 3)
    p = PaddleProgram()
    p.feed("x", x.shape)
    p.weight("scale", np.asarray([2.0], np.float32))
    p.weight("w", w)
    p.op("fake_quantize_dequantize_moving_average_abs_max", {"X": "x", "InScale": "scale"},
         {"Out": "xq"}, bit_length=8)  # fmt: skip
    p.op("fake_channel_wise_quantize_dequantize_abs_max", {"X": "w"}, {"Out": "wq"},
         bit_length=8, quant_axis=1)  # fmt: skip
    p.op("matmul_v2", {"X": "xq", "Y": "wq"}, {"Out": "y"}, trans_x=False, trans_y=False)
    p.fetch("y")
    graph = load(p.save(tmp_path))
    assert {n.op for n in graph.nodes} >= {"QuantizeLinear", "DequantizeLinear", "MatMul"}
    (y,) = run_graph(graph, {"x": x}).values()
    step = np.abs(w).max(0) / 127
    xq = np.clip(np.rint(x / (2 / 127)), -128, 127) * (2 / 127)
    assert np.allclose(y, xq @ (np.rint(w / step) * step), atol=1e-4)


def test_names_that_are_written_twice(tmp_path: Path) -> None:
    """In-place programs: the fetched variable is its last value, under its own name."""
    x = normal(2, 3)
    p = PaddleProgram()
    p.feed("x", x.shape)
    p.op("relu", {"X": "x"}, {"Out": "t"})
    p.op("exp", {"X": "t"}, {"Out": "t"})
    p.op("square", {"X": "t"}, {"Out": "t"})
    p.fetch("t")
    outputs = run_graph(load(p.save(tmp_path)), {"x": x})
    assert list(outputs) == ["t"] and np.allclose(outputs["t"], np.exp(np.maximum(x, 0)) ** 2)


def test_input_shapes_are_hints(tmp_path: Path) -> None:
    path = small_network().save(tmp_path)
    graph = load(path, shapes={"x": (2, 3, 12, 10)})
    (y,) = run_graph(graph, {"x": normal(2, 3, 12, 10)}).values()
    assert y.shape == (2, 5)


def test_multiclass_nms(tmp_path: Path) -> None:
    boxes = np.asarray([[[0, 0, 10, 10], [1, 1, 10, 10], [20, 20, 30, 30]]], np.float32)
    scores = np.asarray([[[0.1, 0.2, 0.3], [0.9, 0.8, 0.05], [0.2, 0.1, 0.7]]], np.float32)
    out, index, count = run_one(
        tmp_path, "multiclass_nms3", {"b": boxes, "s": scores}, {"BBoxes": "b", "Scores": "s"},
        {"Out": "o", "Index": "i", "NmsRoisNum": "n"}, background_label=0, score_threshold=0.15,
        nms_top_k=10, keep_top_k=10, nms_threshold=0.5, nms_eta=1.0, normalized=True,
    )  # fmt: skip
    wanted = [[1, 0.9, 0, 0, 10, 10], [2, 0.7, 20, 20, 30, 30], [2, 0.2, 0, 0, 10, 10]]
    assert np.allclose(out, wanted) and count.tolist() == [3]
    assert index.ravel().tolist() == [0, 2, 0]


def test_unknown_operators_are_named_together(tmp_path: Path) -> None:
    p = PaddleProgram()
    p.feed("x", (1,))
    p.op("first_mystery", {"X": "x"}, {"Out": "y"})
    p.op("second_mystery", {"X": "y"}, {"Out": "z"})
    p.fetch("z")
    with pytest.raises(UnsupportedOperatorError, match="first_mystery, second_mystery"):
        load(p.save(tmp_path))


def test_training_programs_are_refused(tmp_path: Path) -> None:
    p = PaddleProgram()
    p.feed("x", (1,))
    p.op("relu_grad", {"X": "x"}, {"Out": "y"})
    p.fetch("y")
    with pytest.raises(UnsupportedOperatorError, match="export it for inference"):
        load(p.save(tmp_path))


def test_parameters_of_another_model(tmp_path: Path) -> None:
    path = small_network().save(tmp_path)
    (tmp_path / "inference.pdiparams").write_bytes(small_network().parameters() + b"\0" * 8)
    with pytest.raises(ModelFormatError, match="8 bytes remain"):
        load(path)


def test_families_are_covered() -> None:
    """The operators that the model families of the documentation need."""
    needed = """batch_norm conv2d depthwise_conv2d conv2d_transpose pool2d relu6 hard_swish prelu
        shuffle_channel yolo_box multiclass_nms prior_box box_coder density_prior_box matrix_nms
        deformable_conv generate_proposals_v2 roi_align rnn lstm gru im2sequence top_k_v2
        bilinear_interp_v2 nearest_interp grid_sampler instance_norm group_norm layer_norm
        pixel_shuffle fill_constant_batch_size_like lookup_table_v2 set_value where_index"""
    assert not set(needed.split()) - set(known_types())
