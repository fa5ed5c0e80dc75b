"""Caffe: the prototxt parser, small nets against plain NumPy, and files that lie."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.errors import ModelFormatError, UnsupportedOperatorError
from lite_engine.importers import format_of, load
from lite_engine.importers.caffe._prototxt import parse

from tests.importers.golden_runs import run_graph
from tests.importers.tiny_caffe import INPUT, blob, weights
from tests.importers.wire import field, message


@pytest.fixture
def imported(tmp_path):
    def make(text: str, binary: bytes = b""):
        (tmp_path / "net.prototxt").write_text(text)
        (tmp_path / "net.caffemodel").write_bytes(binary or weights(unused=[[0.0]]))
        return load(tmp_path / "net.prototxt")

    return make


def run(graph, x):
    return run_graph(graph, {graph.inputs[0].name: np.asarray(x, np.float32)})


X = np.random.default_rng(0).standard_normal((1, 2, 5, 5)).astype(np.float32)


# ---- text format


def test_text_format():
    net = parse("""
        name: 'it\\'s' "two"   # a comment
        layer { bottom: "a", bottom: "b"; value: 1.5f flag: true list: [1, 2, 3] }
        layer < type: ENUM_NAME big: -3e2 >
        sub: { deep { x: 1 } }
    """)
    assert net.text("name") == "it'stwo"
    first, second = net.blocks("layer")
    assert first.texts("bottom") == ["a", "b"] and first.float("value", 0) == 1.5
    assert first.flag("flag", False) and first.ints("list") == [1, 2, 3]
    assert second.text("type") == "ENUM_NAME" and second.int("big", 0) == -300
    assert net.block("sub").block("deep").int("x", 0) == 1 and not net.block("none").fields


@pytest.mark.parametrize(
    ("text", "where"),
    [("a {", "not closed"), ("a: }", "no value"), ("{", "field name"), ("a b", "expected :"),
     ("a: [1 2]", "not closed"), ("\n\na: \x01", "line 3"), ("a {" * 100, "nested deeper"),
     ("a: [", "no value")],
)  # fmt: skip
def test_text_format_errors(text, where):
    with pytest.raises(ModelFormatError, match=where):
        parse(text)


@pytest.mark.parametrize("value", ["nan", "inf", "1e300", "word", "'text'"])
def test_numbers_that_are_none(value):
    with pytest.raises(ModelFormatError):
        parse(f"x: {value}").int("x", 0)


# ---- layers


def test_in_place_layers_and_outputs_in_alphabetical_order(imported):
    graph = imported(
        INPUT
        + """
        layer { name: "p" type: "Power" bottom: "data" top: "z" power_param { scale: 2 shift: -1 } }
        layer { name: "r" type: "ReLU" bottom: "z" top: "z" }
        layer { name: "n" type: "ReLU" bottom: "z" top: "a" relu_param { negative_slope: 0.5 } }
        layer { name: "s" type: "Sigmoid" bottom: "data" top: "b" }
        layer { name: "loss" type: "Accuracy" bottom: "b" bottom: "z" top: "acc" }
    """
    )
    assert [v.name for v in graph.outputs] == ["a", "b"]
    found = run(graph, X)
    np.testing.assert_allclose(found["a"], np.maximum(2 * X - 1, 0), rtol=1e-6)
    assert [n.sources for n in graph.nodes][:2] == [("p",), ("p",)]


def test_batch_norm_and_scale(imported):
    text = (
        INPUT
        + """
        layer { name: "bn" type: "BatchNorm" bottom: "data" top: "bn" }
        layer { name: "sc" type: "Scale" bottom: "bn" top: "sc" scale_param { bias_term: true } }
    """
    )
    mean, var = np.array([2.0, 4.0]), np.array([8.0, 2.0])
    graph = imported(text, weights(bn=[mean, var, [2.0]], sc=[[3.0, 5.0], [1.0, -1.0]]))
    c = (1, 2, 1, 1)
    normal = (X - (mean / 2).reshape(c)) / np.sqrt((var / 2).reshape(c) + 1e-5)
    wanted = normal * np.array([3, 5.0]).reshape(c) + np.array([1, -1.0]).reshape(c)
    np.testing.assert_allclose(run(graph, X)["sc"], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("divisors", [[], [1.0, 2.0]], ids=["none", "two"])
def test_batch_norm_divides_by_one_number(imported, divisors: list[float]) -> None:
    text = INPUT + """layer { name: "bn" type: "BatchNorm" bottom: "data" top: "bn" }"""
    with pytest.raises(ModelFormatError, match=f"bn .* by {len(divisors)} numbers, expected one"):
        imported(text, weights(bn=[[2.0, 4.0], [8.0, 2.0], divisors]))


def caffe_pool(x, kernel, stride, pad, average):
    """PoolingLayer::Forward_cpu, one output at a time."""
    height, width = x.shape[2:]
    out = []
    for size in (height, width):
        n = int(np.ceil((size + 2 * pad - kernel) / stride)) + 1
        out.append(n - 1 if pad and (n - 1) * stride >= size + pad else n)
    y = np.empty((*x.shape[:2], *out))
    for i, j in np.ndindex(*out):
        h0, w0 = i * stride - pad, j * stride - pad
        h1, w1 = min(h0 + kernel, height + pad), min(w0 + kernel, width + pad)
        area = (h1 - h0) * (w1 - w0)
        part = x[:, :, max(h0, 0) : min(h1, height), max(w0, 0) : min(w1, width)]
        y[:, :, i, j] = part.sum((2, 3)) / area if average else part.max((2, 3))
    return y


@pytest.mark.parametrize("kind", ["MAX", "AVE"])
@pytest.mark.parametrize(("kernel", "stride", "pad"), [(2, 2, 0), (3, 2, 0), (3, 2, 1), (2, 3, 1)])
def test_pooling_rounds_up(imported, kind, kernel, stride, pad):
    graph = imported(
        INPUT
        + f"""layer {{ name: "p" type: "Pooling" bottom: "data" top: "p"
        pooling_param {{ pool: {kind} kernel_size: {kernel} stride: {stride} pad: {pad} }} }}"""
    )
    wanted = caffe_pool(X.astype(np.float64), kernel, stride, pad, kind == "AVE")
    np.testing.assert_allclose(run(graph, X)["p"], wanted, rtol=1e-5, atol=1e-6)


def test_v1_layers_with_old_blobs(tmp_path):
    (tmp_path / "a.prototxt").write_text("""
        input: "data" input_dim: 1 input_dim: 2 input_dim: 5 input_dim: 5
        layers { name: "c" type: CONVOLUTION bottom: "data" top: "c"
                 convolution_param { num_output: 4 kernel_size: 1 group: 2 } }
        layers { name: "f" type: INNER_PRODUCT bottom: "c" top: "f"
                 inner_product_param { num_output: 3 bias_term: false } }
        layers { name: "s" type: SOFTMAX bottom: "f" top: "s" }
    """)
    rng = np.random.default_rng(1)
    w, b, f = (
        rng.standard_normal((4, 1, 1, 1)),
        rng.standard_normal(4),
        rng.standard_normal((3, 100)),
    )

    def layer(name, *blobs):
        return field(2, message((4, name), *((6, blob(v, old=True)) for v in blobs)))

    (tmp_path / "a.caffemodel").write_bytes(layer("c", w, b) + layer("f", f))
    graph = load(tmp_path / "a.caffemodel")
    conv = X[:, [0, 0, 1, 1]] * w.reshape(1, 4, 1, 1) + b.reshape(1, 4, 1, 1)
    score = np.exp(f @ conv.ravel())
    np.testing.assert_allclose(run(graph, X)["s"][0], score / score.sum(), rtol=1e-4)


TAPS = np.array([[1, 0], [0.5, 0.5], [0, 1]], np.float32)
LAYERS = {
    'type: "AbsVal"': np.abs(X),
    'type: "BNLL"': np.log1p(np.exp(X)),
    'type: "ELU" elu_param { alpha: 0.3 }': np.where(X > 0, X, 0.3 * np.expm1(X)),
    'type: "Exp" exp_param { base: 2 scale: 3 shift: 1 }': 2.0 ** (3 * X + 1),
    'type: "Power" power_param { power: 2 }': X**2,
    'type: "Clip" clip_param { min: -0.5 max: 0.25 }': np.clip(X, -0.5, 0.25),
    'type: "Threshold" threshold_param { threshold: 0.1 }': (X > 0.1).astype(np.float32),
    'type: "Pooling" pooling_param { kernel_size: 2 stride: 2 round_mode: FLOOR }':
        X[:, :, :4, :4].reshape(1, 2, 2, 2, 2, 2).max((3, 5)),
    'type: "Permute" permute_param { order: 0 order: 2 order: 3 order: 1 }':
        X.transpose(0, 2, 3, 1),
    'type: "Flatten"': X.reshape(1, -1),
    'type: "Flatten" flatten_param { axis: 2 }': X.reshape(1, 2, 25),
    'type: "Reshape" reshape_param { shape { dim: 0 dim: -1 dim: 10 } }': X.reshape(1, 5, 10),
    'type: "Reshape" reshape_param { shape { dim: 5 dim: -1 } axis: 1 num_axes: 2 }':
        X.reshape(1, 5, 2, 5),
    'type: "Reduction" reduction_param { operation: MEAN axis: 2 coeff: 2 }': 2 * X.mean((2, 3)),
    'type: "Reduction" reduction_param { operation: ASUM axis: 1 }': np.abs(X).sum((1, 2, 3)),
    'type: "Tile" tile_param { axis: 1 tiles: 3 }': np.tile(X, (1, 3, 1, 1)),
    'type: "MVN"': (X - X.mean((2, 3), keepdims=True)) / (X.std((2, 3), keepdims=True) + 1e-9),
    'type: "ArgMax" argmax_param { axis: 1 }': X.argmax(1)[:, None].astype(np.float32),
    'type: "LRN" lrn_param { local_size: 3 alpha: 0.6 beta: 0.5 }':
        X / (1 + 0.2 * (X**2).sum(1, keepdims=True)) ** 0.5,
    'type: "ShuffleChannel" shuffle_channel_param { group: 2 }': X,
    'type: "Eltwise" bottom: "data" eltwise_param { coeff: 2 coeff: -0.5 }': 1.5 * X,
    'type: "Eltwise" bottom: "data" eltwise_param { operation: PROD }': X * X,
    # the corners of what is left, its middle halfway between them
    'type: "Interp" interp_param { height: 3 width: 3 pad_beg: -1 pad_end: -2 }':
        TAPS @ X[:, :, 1:3, 1:3] @ TAPS.T,
    'type: "Interp" interp_param { zoom_factor: 2 pad_beg: -3 }': TAPS @ X[:, :, 3:, 3:] @ TAPS.T,
    'type: "Interp" interp_param { shrink_factor: 2 pad_end: -2 }': X[:, :, :3:2, :3:2],
    'type: "Concat" bottom: "data" concat_param { axis: 2 }': np.concatenate([X, X], 2),
}  # fmt: skip


@pytest.mark.parametrize("spec", LAYERS)
def test_layer(imported, spec):
    graph = imported(INPUT + f'layer {{ name: "y" bottom: "data" top: "y" {spec} }}')
    found = run(graph, X)["y"]
    wanted = LAYERS[spec]
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_slice(imported):
    graph = imported(
        INPUT
        + """layer { name: "s" type: "Slice" bottom: "data" top: "a" top: "b"
        top: "c" slice_param { axis: 3 slice_point: 1 slice_point: 3 } }"""
    )
    found = run(graph, X)
    assert [found[k].shape[3] for k in "abc"] == [1, 2, 2]
    np.testing.assert_array_equal(found["b"], X[..., 1:3])


def test_normalize(imported):
    graph = imported(
        INPUT
        + """layer { name: "n" type: "Normalize" bottom: "data" top: "n"
        norm_param { across_spatial: false channel_shared: false } }""",
        weights(n=[[20.0, 10.0]]),
    )
    wanted = X / np.sqrt((X**2).sum(1, keepdims=True)) * np.array([20, 10]).reshape(1, 2, 1, 1)
    np.testing.assert_allclose(run(graph, X)["n"], wanted, rtol=1e-4)


def test_prior_box(imported):
    """Two sizes, ratio 2 and its inverse: four priors per cell; offsets in the middle of cells."""
    graph = imported("""
        input: "data" input_shape { dim: 1 dim: 3 dim: 40 dim: 80 }
        layer { name: "m" type: "Pooling" bottom: "data" top: "m"
                pooling_param { pool: MAX kernel_size: 20 stride: 20 } }
        layer { name: "p" type: "PriorBox" bottom: "m" bottom: "data" top: "p" prior_box_param {
                min_size: 8 max_size: 18 aspect_ratio: 2 variance: [0.1, 0.1, 0.2, 0.2] } }
    """)
    found = run(graph, np.zeros((1, 3, 40, 80)))["p"]
    assert found.shape == (1, 2, 2 * 4 * 4 * 4)
    first = found[0, 0].reshape(2, 4, 4, 4)[1, 2]  # row 1, column 2: centre (50, 30)
    sizes = [(8, 8), (12, 12), (8 * 2**0.5, 8 / 2**0.5), (8 / 2**0.5, 8 * 2**0.5)]
    wanted = [[(50 - w / 2) / 80, (30 - h / 2) / 40, (50 + w / 2) / 80, (30 + h / 2) / 40]
              for w, h in sizes]  # fmt: skip
    np.testing.assert_allclose(first, wanted, rtol=1e-5)
    np.testing.assert_allclose(found[0, 1, :4], [0.1, 0.1, 0.2, 0.2])


def test_preprocessing_of_the_input_layer(imported):
    graph = imported("""
        layer { name: "d" type: "Input" top: "data"
                input_param { shape { dim: 1 dim: 3 dim: 8 dim: 9 } }
                transform_param { scale: 0.5 mean_value: 104 mean_value: 117 mean_value: 123 } }
        layer { name: "r" type: "ReLU" bottom: "data" top: "r" }
    """)
    assert graph.metadata["preprocess"] == {
        "mean": [104.0, 117.0, 123.0], "std": [2.0], "colour": "bgr", "layout": "nchw",
        "size": [8, 9],
    }  # fmt: skip


# ---- what cannot be read, and files that lie


def test_training_net_says_what_to_do(imported):
    with pytest.raises(ModelFormatError, match="deploy prototxt"):
        imported('layer { name: "d" type: "Data" top: "data" } layer { name: "r" type: "ReLU" }')


def test_training_layers_are_left_out(imported):
    graph = imported(
        INPUT
        + """
        layer { name: "d" type: "Data" top: "data" include { phase: TRAIN } }
        layer { name: "r" type: "ReLU" bottom: "data" top: "r" }
        layer { name: "s" type: "Sigmoid" bottom: "r" top: "r" exclude { phase: TEST } }
    """
    )
    assert [n.op for n in graph.nodes] == ["Relu"]


def test_unsupported_layers_are_named_together(imported):
    with pytest.raises(UnsupportedOperatorError, match=r"Python, SPP \(2x\)") as e:
        imported(
            INPUT
            + """layer { name: "a" type: "Python" bottom: "data" top: "a" }
            layer { name: "b" type: "SPP" bottom: "a" top: "b" }
            layer { name: "c" type: "SPP" bottom: "b" top: "c" }"""
        )
    assert e.value.nodes == ("a", "b", "c")


LIES = {
    "missing bottom": 'layer { name: "r" type: "ReLU" bottom: "nothing" top: "r" }',
    "no bottom": 'layer { name: "r" type: "ReLU" top: "r" }',
    "no weights": 'layer { name: "c" type: "Convolution" bottom: "data" top: "c"'
    " convolution_param { num_output: 2 kernel_size: 1 } }",
    "kernel": 'layer { name: "p" type: "Pooling" bottom: "data" top: "p"'
    " pooling_param { kernel_size: 0 } }",
    "stride": 'layer { name: "p" type: "Pooling" bottom: "data" top: "p"'
    " pooling_param { kernel_size: 2 stride: -1 } }",
    "order": 'layer { name: "p" type: "Permute" bottom: "data" top: "p"'
    " permute_param { order: 7 order: 7 } }",
    "axis of a tile": 'layer { name: "t" type: "Tile" bottom: "data" top: "t"'
    " tile_param { axis: 9 tiles: 2 } }",
    "axis of a flatten": 'layer { name: "f" type: "Flatten" bottom: "data" top: "f"'
    " flatten_param { axis: -7 } }",
    "axis of a reshape": 'layer { name: "r" type: "Reshape" bottom: "data" top: "r"'
    " reshape_param { axis: 2147483647 shape { dim: 1 } } }",
    "shape of a reshape": 'layer { name: "r" type: "Reshape" bottom: "data" top: "r"'
    " reshape_param { axis: 3 shape { dim: 0 dim: 0 } num_axes: 1 } }",
    "coefficients": 'layer { name: "e" type: "Eltwise" bottom: "data" bottom: "data" top: "e"'
    " eltwise_param { coeff: 2 } }",
    "positive pads": 'layer { name: "i" type: "Interp" bottom: "data" top: "i"'
    " interp_param { height: 3 width: 3 pad_beg: 1 } }",
    "pads of everything": 'layer { name: "i" type: "Interp" bottom: "data" top: "i"'
    " interp_param { height: 3 width: 3 pad_beg: -2 pad_end: -3 } }",
    "oldest format": 'layers { layer { name: "x" type: "conv" } }',
    "no layers": "base_lr: 0.1",
}


@pytest.mark.parametrize("name", LIES)
def test_lies(imported, name):
    with pytest.raises(ModelFormatError, match=r"net\.prototxt: ") as found:
        imported(INPUT + LIES[name])
    assert "Error" not in str(found.value)


@pytest.mark.parametrize("dims", ["dim: 0", "dim: -1", "dim: 1 dim: 99999999999", ""])
def test_input_shapes(imported, dims):
    with pytest.raises(ModelFormatError):
        imported(
            f'input: "x" input_shape {{ {dims} }} layer {{ name: "r" type: "ReLU" bottom: "x" }}'
        )


def test_blob_whose_shape_does_not_fit(imported):
    wrong = message(
        (7, message((1, 1 << 40), (1, 1 << 40))), (5, np.zeros(3, np.float32).tobytes())
    )
    data = field(100, message((1, "c"), (7, wrong)))
    with pytest.raises(ModelFormatError, match=r"a blob has shape .*, but 3 numbers"):
        imported(INPUT + 'layer { name: "r" type: "ReLU" bottom: "data" top: "r" }', data)


def test_the_other_file_must_be_named_when_it_cannot_be_guessed(tmp_path):
    (tmp_path / "x.prototxt").write_text(
        INPUT + 'layer { name: "r" type: "ReLU" bottom: "data" top: "r" }'
    )
    for name in "ab":
        (tmp_path / f"{name}.caffemodel").write_bytes(weights(u=[[0.0]]))
    with pytest.raises(ModelFormatError, match="--params"):
        load(tmp_path / "x.prototxt")
    assert load(tmp_path / "x.prototxt", params=tmp_path / "a.caffemodel").nodes
    assert format_of(tmp_path / "x.prototxt") == "caffe"
