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
    outputs: dict[str, Any], weights: dict[str, np.ndarray] | None = None,
    version: int = 2006002, **attrs: Any,
) -> list[np.ndarray]:  # fmt: skip
    """One operator; the outputs of its slots in order."""
    p = PaddleProgram(version)
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


@pytest.mark.parametrize(
    "decimals, wanted",
    [(0, [1, -2, 33, -33, 2, 15]), (1, [1.3, -2.4, 33.3, -33, 2.5, 15]),
     (-1, [0, -0.0, 30, -30, 0, 20])],
)  # fmt: skip
def test_round(tmp_path: Path, decimals: int, wanted: list[float]) -> None:
    """The numbers of Paddle 3.3.1."""
    x = np.array([1.26, -2.35, 33.3, -33, 2.5, 15], np.float32)
    (y,) = run_one(tmp_path, "round", {"x": x}, {"X": "x"}, {"Out": "y"}, decimals=decimals)
    np.testing.assert_allclose(y, np.asarray(wanted, np.float32), rtol=2e-7)
    whole = np.array([-33, 15], np.int32)
    (y,) = run_one(tmp_path, "round", {"x": whole}, {"X": "x"}, {"Out": "y"}, decimals=decimals)
    assert np.array_equal(y, whole)


WHOLE = [-7, 7, -1, -(2**31), 2**31 - 1]
REAL, BY_REAL = [54.7, 1e10, -54.7, 5.5, -7.5], [0.1, 3, 0.1, 2, 2]


@pytest.mark.parametrize(
    "kind, version, a, b, wanted",
    [
        ("elementwise_floordiv", 3003001, WHOLE, [3] * 5, [-3, 2, -1, -715827883, 715827882]),
        ("elementwise_floordiv", 2006002, WHOLE, [-3] * 5, [2, -3, 0, 715827882, -715827883]),
        ("elementwise_floordiv", 2004002, WHOLE, [3] * 5, [-2, 2, 0, -715827882, 715827882]),
        ("elementwise_mod", 3003001, WHOLE, [3] * 5, [2, 1, 2, 1, 1]),
        ("elementwise_floordiv", 3003001, REAL, BY_REAL, [546, 3333333248, -547, 2, -4]),
        ("elementwise_mod", 3003001, REAL, BY_REAL,
         [0.09999994933605194, 1, 5.21540641784668e-08, 1.5, 0.5]),
        ("elementwise_mod", 3003001, [-7.5, 7.5], [np.inf, np.inf], [np.inf, 7.5]),
    ],
)  # fmt: skip
def test_division_rounds_down(
    tmp_path: Path, kind: str, version: int, a: list[float], b: list[float], wanted: list[float]
) -> None:
    """The numbers of Paddle 3.3.1, whose kernels 2.6.2 has as well; 2.4 truncated integers."""
    dtype = np.int32 if a is WHOLE else np.float32
    x, y = np.array(a, dtype), np.array(b, dtype)
    (z,) = run_one(tmp_path, kind, {"x": x, "y": y}, {"X": "x", "Y": "y"}, {"Out": "z"},
                   version=version)  # fmt: skip
    assert np.array_equal(z, np.array(wanted, dtype))


@pytest.mark.parametrize(
    "dtype, out_dtype, wanted",
    [("int32", -1, "int64"), ("bool", -1, "int64"), ("float32", 3, "int64"), ("uint8", -1, "uint8"),
     ("float32", -1, "float32")],
)  # fmt: skip
def test_sum_has_a_type_of_its_own(tmp_path: Path, dtype: str, out_dtype: int, wanted: str) -> None:
    """Elements are converted before they are added: 2·(2³¹ − 1) and ⌊1.7⌋ + ⌊1.7⌋ show it."""
    x = np.array({"int32": [2**31 - 1] * 2, "float32": [1.7] * 2}.get(dtype, [1, 0]), dtype)
    (y,) = run_one(tmp_path, "reduce_sum", {"x": x}, {"X": "x"}, {"Out": "y"}, dim=[0],
                   reduce_all=True, out_dtype=out_dtype)  # fmt: skip
    assert y.dtype == wanted
    np.testing.assert_allclose(y, x.astype(wanted).sum(dtype=wanted), rtol=1e-6)


@pytest.mark.parametrize("order", [0.0, 0.5, 1.0, 2.0, 3.0, np.inf, -np.inf])
def test_norm_of_vectors(tmp_path: Path, order: float) -> None:
    x = np.array([[1, 0, 2, 0], [0, 0, 0, 0], [1, -1, 5, 3]], np.float32)
    (y,) = run_one(tmp_path, "p_norm", {"x": x}, {"X": "x"}, {"Out": "y"}, porder=order, axis=1)
    np.testing.assert_allclose(y, np.linalg.norm(x, order, axis=1), rtol=1e-6)


def test_matrix_times_vector(tmp_path: Path) -> None:
    x, v = normal(3, 4), normal(4)
    (y,) = run_one(tmp_path, "mv", {"x": x, "v": v}, {"X": "x", "Vec": "v"}, {"Out": "y"})
    np.testing.assert_allclose(y, x @ v, rtol=1e-5)


@pytest.mark.parametrize(
    "stride, size, at", [(1, (5, 6), (1, 0)), (2, (9, 12), (1, 0)), (3, (14, 17), (0, 0))]
)
def test_transposed_convolution_pads_as_its_input_does(
    tmp_path: Path, stride: int, size: tuple[int, int], at: tuple[int, int]
) -> None:
    """Sizes and places within the whole of Paddle 3.3.1, whatever the dilations say."""
    x, w = normal(1, 3, 5, 6), normal(3, 2, 3, 2)
    whole = np.zeros((1, 2, 4 * stride + 3, 5 * stride + 2))
    for i, j in np.ndindex(5, 6):
        patch = np.einsum("nc,cohw->nohw", x[:, :, i, j], w)
        whole[:, :, i * stride : i * stride + 3, j * stride : j * stride + 2] += patch
    (y,) = run_one(tmp_path, "conv2d_transpose", {"x": x}, {"Input": "x", "Filter": "w"},
                   {"Output": "y"}, {"w": w}, strides=[stride] * 2, dilations=[2, 2],
                   padding_algorithm="SAME", data_format="NCHW")  # fmt: skip
    wanted = whole[:, :, at[0] : at[0] + size[0], at[1] : at[1] + size[1]]
    np.testing.assert_allclose(y, wanted, atol=1e-5)


def test_transposed_convolution_of_an_open_size(tmp_path: Path) -> None:
    """Only stride 1 pads every size alike."""
    for stride in (1, 2):
        p = PaddleProgram()
        p.feed("x", (1, 3, -1, 6))
        p.op("conv2d_transpose", {"Input": "x", "Filter": p.weight("w", normal(3, 2, 3, 2))},
             {"Output": "y"}, strides=[stride] * 2, padding_algorithm="SAME")  # fmt: skip
        p.fetch("y")
        path = p.save(tmp_path)
        if stride == 1:
            (y,) = run_graph(load(path), {"x": normal(1, 3, 4, 6)}).values()
            assert y.shape == (1, 2, 4, 6)
        else:
            with pytest.raises(UnsupportedOperatorError, match="SAME needs a fixed input size"):
                load(path)


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


@pytest.mark.parametrize("start", [-10, -4, -3, -1, 2, 5])
@pytest.mark.parametrize("step", [-1, 2])
def test_slices_are_those_of_python(tmp_path: Path, start: int, step: int) -> None:
    """Which ONNX's are not where a backward one starts before the axis; parts written as well."""
    x, end = normal(3, 2), -100 if step < 0 else 3
    (y,) = run_one(tmp_path, "strided_slice", {"x": x}, {"Input": "x"}, {"Out": "y"}, axes=[0],
                   starts=[start], ends=[end], strides=[step])  # fmt: skip
    assert np.array_equal(y, x[start:end:step])
    (y,) = run_one(
        tmp_path,
        "set_value",
        {"x": x},
        {"Input": "x"},
        {"Out": "y"},
        axes=[0],
        starts=[start],
        ends=[end],
        steps=[step],
        shape=[1],
        fp32_values=[7.0],
    )
    x[start:end:step] = 7
    assert np.array_equal(y, x)


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
