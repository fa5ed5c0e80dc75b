"""TensorFlow: graphs, functions, SavedModels and bundles in small, and files that lie."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.errors import ModelFormatError, UnsupportedOperatorError
from lite_engine.passes import optimize_graph

from tests.importers.tensorflow_runs import RNG, W, X, run, same_conv
from tests.importers.tiny_tensorflow import (
    const,
    function,
    node,
    placeholder,
)
from tests.importers.wire import message

# ---- graphs


@pytest.mark.parametrize("shape", [(2, 6, 7, 3), (None, None, None, 3)])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_same_padding_of_known_and_open_sizes(tensorflow_imported, shape, stride):
    graph = tensorflow_imported([
        placeholder("x", shape), const("w", W),
        node("y", "Conv2D", "x", "w", strides=[1, stride, stride, 1], padding="SAME"),
    ])  # fmt: skip
    np.testing.assert_allclose(run(graph, x=X)["y"], same_conv(X, W, stride), atol=1e-4)
    (conv,) = [n for n in graph.nodes if n.op == "Conv"]
    assert ("auto_pad" in conv.attrs) == (shape[0] is None)


def test_data_format_nchw_needs_no_transpose(tensorflow_imported):
    graph = tensorflow_imported([
        placeholder("x", (2, 3, 6, 7)), const("w", W),
        node("y", "Conv2D", "x", "w", strides=[1, 1, 2, 2], padding="SAME", data_format="NCHW"),
        const("b", np.arange(4, dtype=np.float32)),
        node("z", "BiasAdd", "y", "b", data_format="NCHW"),
    ])  # fmt: skip
    assert not any(n.op == "Transpose" for n in graph.nodes)
    wanted = (same_conv(X, W, 2) + np.arange(4)).transpose(0, 3, 1, 2)
    found = run(graph, x=np.ascontiguousarray(X.transpose(0, 3, 1, 2)))["z"]
    np.testing.assert_allclose(found, wanted, atol=1e-4)


@pytest.mark.parametrize("kernel, stride", [(3, 2), (2, 3)])
def test_transposed_convolution_of_an_open_size(tensorflow_imported, kernel, stride):
    """VALID gives in·stride + max(kernel − stride, 0): every input adds its filter there."""
    w = RNG.standard_normal((kernel, kernel, 4, 3)).astype(np.float32)  # (kh,kw,O,C)
    graph = tensorflow_imported([
        placeholder("x", (2, 6, 7, 3)), placeholder("size", (4,), np.int32), const("w", w),
        node("y", "Conv2DBackpropInput", "size", "w", "x", strides=[1, stride, stride, 1],
             padding="VALID"),
    ])  # fmt: skip
    more = max(kernel - stride, 0)
    wanted = np.zeros((2, 6 * stride + more, 7 * stride + more, 4))
    for i, j in np.ndindex(6, 7):
        patch = np.einsum("nc,hwoc->nhwo", X[:, i, j], w)
        at = slice(i * stride, i * stride + kernel), slice(j * stride, j * stride + kernel)
        wanted[:, at[0], at[1]] += patch
    size = np.array(wanted.shape, np.int32)
    np.testing.assert_allclose(run(graph, x=X, size=size)["y"], wanted, atol=1e-4)


@pytest.mark.parametrize("padding, height", [("SAME", 16), ("SAME", 17), ("VALID", 19)])
def test_transposed_convolution_of_an_open_axis_to_a_given_size(
    tensorflow_imported, padding, height
):
    """The sizes are those of the convolution whose gradient it is: ⌈16/3⌉ = ⌈17/3⌉ = 6 rows."""
    w = RNG.standard_normal((4, 3, 4, 3)).astype(np.float32)  # (kh,kw,O,C)
    size = np.array([2, height, 20 if padding == "SAME" else 21, 4], np.int32)
    graph = tensorflow_imported([
        placeholder("x", (2, None, 7, 3)), const("size", size), const("w", w),
        node("y", "Conv2DBackpropInput", "size", "w", "x", strides=[1, 3, 3, 1], padding=padding),
    ])  # fmt: skip
    whole = np.zeros((2, 5 * 3 + 4, 6 * 3 + 3, 4))
    for i, j in np.ndindex(6, 7):
        patch = np.einsum("nc,hwoc->nhwo", X[:, i, j], w)
        whole[:, 3 * i : 3 * i + 4, 3 * j : 3 * j + 3] += patch
    before = [(full - want) // 2 for full, want in zip(whole.shape[1:3], size[1:3])]
    wanted = whole[:, before[0] : before[0] + size[1], before[1] : before[1] + size[2]]
    np.testing.assert_allclose(run(graph, x=X)["y"], wanted, atol=1e-4)


def taps(size: int, new: int, half_pixel: bool) -> np.ndarray:
    """(new, size) weights of a bicubic resize: a = −1/2 without what lies outside, or the old form,
    a = −3/4 with the border repeated. Source: Keys 1981, TensorFlow's resize_bicubic_op.cc."""
    a = -0.5 if half_pixel else -0.75
    out = np.zeros((new, size))
    for i in range(new):
        at = (i + 0.5) * size / new - 0.5 if half_pixel else i * size / new
        for t in range(int(np.floor(at)) - 1, int(np.floor(at)) + 3):
            d = abs(t - at)
            near = (a + 2) * d**3 - (a + 3) * d**2 + 1
            weight = near if d <= 1 else a * (d**3 - 5 * d**2 + 8 * d - 4)
            if 0 <= t < size or not half_pixel:
                out[i, min(max(t, 0), size - 1)] += weight
    return out / out.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("half_pixel", [False, True])
def test_resize(tensorflow_imported, half_pixel):
    graph = tensorflow_imported([
        placeholder("x", X.shape), const("size", np.array([9, 4], np.int32)),
        *(node(name, name, "x", "size", half_pixel_centers=half_pixel)
          for name in ("ResizeBicubic", "ResizeNearestNeighbor")),
    ])  # fmt: skip
    found = run(graph, x=X)
    by = [taps(6, 9, half_pixel), taps(7, 4, half_pixel)]
    wanted = np.einsum("ih,jw,nhwc->nijc", *by, X)
    np.testing.assert_allclose(found["ResizeBicubic"], wanted, atol=1e-5)
    half = 0.5 if half_pixel else 0
    rows, columns = (((np.arange(new) + half) * old / new).astype(int) for old, new in ((6, 9),
                     (7, 4)))  # fmt: skip
    np.testing.assert_array_equal(found["ResizeNearestNeighbor"], X[:, rows][:, :, columns])


def test_formulas(tensorflow_imported):
    """What has no ONNX operator of just that meaning."""
    whole = np.array([7, -7, 6, -6, 0], np.int32)
    by = np.array([2, 2, -4, -4, 3], np.int32)
    real, zero = np.array([3.0, -1.0, 0.0], np.float32), np.array([0.0, 2.0, 0.0], np.float32)
    graph = tensorflow_imported([
        placeholder("x", X.shape), placeholder("a", (5,), np.int32), placeholder("p", (3,)),
        const("b", by), const("q", zero),
        const("sizes", np.array([2, -1, 1], np.int32)), const("axis", np.array(1, np.int32)),
        node("lrn", "LRN", "x", depth_radius=1, bias=2.0, alpha=0.5, beta=0.75),
        node("floor", "FloorDiv", "a", "b"), node("mod", "FloorMod", "a", "b"),
        node("safe", "DivNoNan", "p", "q"),
        node("parts", "SplitV", "x", "sizes", "axis", num_split=3),
        *(node(f"part{i}", "Identity", f"parts:{i}") for i in range(3)),
    ])  # fmt: skip
    found = run(graph, x=X, a=whole, p=real)
    squares = np.pad(X**2, [(0, 0)] * 3 + [(1, 1)])
    near = squares[..., :-2] + squares[..., 1:-1] + squares[..., 2:]
    np.testing.assert_allclose(found["lrn"], X / (2 + 0.5 * near) ** 0.75, rtol=1e-5)
    np.testing.assert_array_equal(found["floor"], whole // by)
    np.testing.assert_array_equal(found["mod"], whole % by)
    np.testing.assert_array_equal(found["safe"], [0, -0.5, 0])
    for i, part in enumerate(np.split(X, [2, 5], axis=1)):
        np.testing.assert_array_equal(found.get(f"part{i}", found.get(f"parts:{i}")), part)


def test_dilated_convolution_in_blocks(tensorflow_imported):
    """SpaceToBatch → VALID convolution → BatchToSpace is one dilated convolution."""
    graph = tensorflow_imported([
        placeholder("x", (1, 7, 7, 3)), const("w", W), const("block", np.int32([2, 2])),
        const("pads", np.int32([[2, 3], [2, 3]])), const("crops", np.int32([[0, 1], [0, 1]])),
        node("s", "SpaceToBatchND", "x", "block", "pads"),
        node("c", "Conv2D", "s", "w", strides=[1, 1, 1, 1], padding="VALID"),
        node("y", "BatchToSpaceND", "c", "block", "crops"),
    ])  # fmt: skip
    assert [n.op for n in graph.nodes] == ["Transpose", "Conv", "Transpose"]
    wide = np.zeros((5, 5, 3, 4), np.float32)
    wide[::2, ::2] = W
    x = np.pad(X[:1], [(0, 0), (0, 1), (0, 0), (0, 0)])
    np.testing.assert_allclose(run(graph, x=x)["y"], same_conv(x, wide, 1), atol=1e-4)


def test_fake_quantisation_of_weights_and_values_is_qdq(tensorflow_imported):
    """Depthwise weights too keep their integers beside the convolution."""
    nodes = [placeholder("x", (1, 6, 7, 3)), const("w", W[..., :2])]
    for name, low, high in (("w", -2.0, 2.0), ("x", -1.0, 3.0)):
        nodes += [const(f"{name}lo", np.float32(low)), const(f"{name}hi", np.float32(high))]
        nodes.append(
            node(f"{name}q", "FakeQuantWithMinMaxVars", name, f"{name}lo", f"{name}hi", num_bits=8)
        )
    nodes.append(
        node("y", "DepthwiseConv2dNative", "xq", "wq", strides=[1, 1, 1, 1], padding="SAME")
    )
    graph = tensorflow_imported(nodes)
    (conv,) = [n for n in graph.nodes if n.op == "Conv"]
    weight = conv.inputs[1].producer
    assert weight.op == "DequantizeLinear" and weight.inputs[0].const.dtype == np.uint8
    optimised = optimize_graph(graph)
    a, b = run(graph, x=X[:1])["y"], run(optimised, x=X[:1])["y"]
    np.testing.assert_allclose(a, b, atol=1e-3)


def test_computed_slice_and_masks(tensorflow_imported):
    """x[:, :n, -1] with n from the shape of another tensor."""
    graph = tensorflow_imported([
        placeholder("x", (2, 6, 7, 3)), placeholder("z", (None, 4)), node("s", "Shape", "z"),
        const("zero", np.int32([0])), const("one", np.int32([1])),
        node("n", "StridedSlice", "s", "zero", "one", "one", shrink_axis_mask=1),
        const("a", np.int32(0)), node("end", "Pack", "a", "n", "a", axis=0),
        const("begin", np.int32([0, 0, -1])), const("step", np.int32([1, 1, 1])),
        node("y", "StridedSlice", "x", "begin", "end", "step", begin_mask=3, end_mask=1,
             shrink_axis_mask=4),
    ])  # fmt: skip
    found = run(graph, x=X, z=np.zeros((3, 4), np.float32))["y"]
    np.testing.assert_array_equal(found, X[:, :3, -1])


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("step", [-2, -1, 1])
def test_slices_are_those_of_python(tensorflow_imported, step, computed):
    """Which ONNX's are not where a backward one starts before the axis."""
    x = np.arange(5, dtype=np.float32)
    for start in (-10, -6, -5, -1, 0, 4, 7):
        given = np.int32([start])
        graph = tensorflow_imported([
            placeholder("x", (5,)), const("end", np.int32([-100 if step < 0 else 2])),
            placeholder("begin", (1,), np.int32) if computed else const("begin", given),
            const("step", np.int32([step])), node("y", "StridedSlice", "x", "begin", "end", "step"),
        ])  # fmt: skip
        feeds = {"x": x, "begin": given} if computed else {"x": x}
        wanted = x[start : -100 if step < 0 else 2 : step]
        np.testing.assert_array_equal(run(graph, **feeds)["y"], wanted, str(start))


def test_asserts_and_control_inputs_are_dropped(tensorflow_imported):
    graph = tensorflow_imported([
        placeholder("x", (2,)), const("limit", np.float32(0)), node("ok", "Greater", "x", "limit"),
        node("check", "Assert", "ok", "x"), node("same", "Identity", "x", "^check"),
        node("y", "Neg", "same", "^check"), node("init", "NoOp", "^y"),
    ])  # fmt: skip
    assert [n.op for n in graph.nodes] == ["Neg"]
    assert [v.name for v in graph.outputs] == ["y"]


def test_chosen_outputs(tensorflow_imported):
    nodes = [placeholder("x", (2,)), node("a", "Neg", "x"), node("b", "NotAnOperator", "a")]
    with pytest.raises(UnsupportedOperatorError, match="NotAnOperator"):
        tensorflow_imported(nodes)
    graph = tensorflow_imported(nodes, outputs=["a"])
    assert [v.name for v in graph.outputs] == ["a"]


@pytest.mark.parametrize("attrs", [{}, {"shape": message((7, message((3, True))))}])
def test_sizes_given_for_an_input_of_unknown_rank(tensorflow_imported, attrs):
    """A placeholder that states no shape, or the unknown one."""
    nodes = [
        node("x", "Placeholder", dtype=np.float32, **attrs), const("at", np.int32([-1])),
        node("rank", "Rank", "x", T=np.float32), node("last", "ReverseV2", "x", "at"),
    ]  # fmt: skip
    with pytest.raises(ModelFormatError, match=r"the rank of x is not known; .*--shape"):
        tensorflow_imported(nodes)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    graph = tensorflow_imported(nodes, shapes={"x": x.shape})
    assert graph.inputs[0].shape == x.shape
    found = run(graph, x=x)
    assert found["rank"] == 2
    np.testing.assert_array_equal(found["last"], x[:, ::-1])


def test_constant_given_as_one_number(tensorflow_imported):
    splat = message((1, 1), (2, message((2, message((1, 3))), (2, message((1, 2))))), (5, 1.5))
    graph = tensorflow_imported([
        placeholder("x", (3, 2)), node("c", "Const", value=message((8, splat))),
        node("y", "Mul", "x", "c"),
    ])  # fmt: skip
    assert run(graph, x=np.ones((3, 2), np.float32))["y"].tolist() == [[1.5, 1.5]] * 3


def test_constants_are_aligned(tensorflow_imported):
    """Their place in a protobuf is arbitrary; native code reads them in place."""
    names = ["a" * n for n in range(1, 9)]
    adds = [node(f"y{n}", "Mul", "x", n) for n in names]
    graph = tensorflow_imported(
        [placeholder("x", (3,)), *(const(n, np.ones(3, np.float32)) for n in names), *adds]
    )
    assert all(v.const.flags.aligned for v in graph.constants())


# ---- functions


def test_functions_are_inlined(tensorflow_imported):
    inner = function("twice", ["v"], {"out": "s:z:0"}, [node("s", "AddV2", "v", "v")])
    outer = function(
        "outer", ["a", "b"], {"first": "t:values:0", "second": "call:output:0"},
        [const("k", np.int32(1)), node("t", "TopKV2", "a", "k:output:0"),
         node("call", "PartitionedCall", "b", f=message((10, message((1, "twice")))))],
    )  # fmt: skip
    graph = tensorflow_imported(
        [placeholder("x", (1, 4)), placeholder("z", (1, 4)),
         node("f", "StatefulPartitionedCall", "x", "z", f=message((10, message((1, "outer"))))),
         node("y", "Mul", "f", "f:1")],
        [inner, outer],
    )  # fmt: skip
    x, z = np.float32([[1, 5, 2, 0]]), np.float32([[1, 2, 3, 4]])
    assert run(graph, x=x, z=z)["y"].tolist() == [[10, 20, 30, 40]]


def test_recursive_function(tensorflow_imported):
    body = function(
        "f", ["v"], {"out": "c:output:0"},
        [node("c", "PartitionedCall", "v", f=message((10, message((1, "f")))))],
    )  # fmt: skip
    with pytest.raises(ModelFormatError, match="nested deeper"):
        tensorflow_imported([placeholder("x", (1,)), node("y", "f", "x")], [body])


def test_functions_that_multiply(tensorflow_imported):
    """Each calls the one before ten times: 10⁸ nodes are not built."""
    bodies = [function("f0", ["v"], {"out": "n:y:0"}, [node("n", "Neg", "v")])]
    for i in range(1, 9):
        calls = [node(f"c{j}", f"f{i - 1}", "v") for j in range(10)]
        bodies.append(function(f"f{i}", ["v"], {"out": "c0:out:0"}, calls))
    with pytest.raises(ModelFormatError, match="after inlining"):
        tensorflow_imported([placeholder("x", (1,)), node("y", "f8", "x")], bodies)


# ---- control flow


def func(name: str) -> bytes:
    return message((10, message((1, name))))


def loop(limit: bytes, step: int = 1):
    """items[i] = x[i] · 2^i for i below the limit, in a list of tensors."""
    cond = function(
        "cond", ["i", "n", "v", "l"], {"go": "less:z:0"}, [node("less", "Less", "i", "n")]
    )
    body = function(
        "body", ["i", "n", "v", "l"],
        {"i2": "next:z:0", "n2": "n", "v2": "double:z:0", "l2": "set:output_handle:0"},
        [const("one", np.int32(step)), node("next", "AddV2", "i", "one:output:0"),
         node("double", "AddV2", "v", "v"), const("axis", np.int32(0)),
         node("item", "GatherV2", "v", "i", "axis:output:0"),
         node("set", "TensorListSetItem", "l", "i", "item:output:0")],
    )  # fmt: skip
    nodes = [
        placeholder("x", (3,)), const("zero", np.int32(0)), limit, const("shape", np.int32([])),
        const("size", np.int32(3)), node("list", "TensorListReserve", "shape", "size"),
        node("w", "While", "zero", "n", "x", "list", cond=func("cond"), body=func("body")),
        node("y", "TensorListStack", "w:3", "shape"),
    ]  # fmt: skip
    return nodes, [cond, body]


def test_loop_of_fixed_length_is_unrolled(tensorflow_imported):
    graph = tensorflow_imported(*loop(const("n", np.int32(3))))
    found = run(graph, x=np.float32([1, 2, 3]))["y"]
    assert found.tolist() == [1, 4, 12]
    assert not any(n.op in ("Less", "Loop") for n in graph.nodes)


def test_loop_that_data_decides_is_refused(tensorflow_imported):
    with pytest.raises(UnsupportedOperatorError, match="depends on data"):
        tensorflow_imported(*loop(placeholder("n", (), np.int32)))


def test_loop_without_end_and_list_index_outside(tensorflow_imported):
    with pytest.raises(ModelFormatError, match=r"steps|item"):
        tensorflow_imported(*loop(const("n", np.int32(3)), step=0))
    with pytest.raises(ModelFormatError, match="item 3 is outside a list of 3"):
        tensorflow_imported(*loop(const("n", np.int32(4))))


@pytest.mark.parametrize("taken", [True, False])
def test_decided_branch(tensorflow_imported, taken):
    bodies = [function(n, ["v"], {"out": "r:y:0"}, [node("r", o, "v")]) for n, o in
              (("yes", "Neg"), ("no", "Abs"))]  # fmt: skip
    branch = node("y", "If", "c", "x", then_branch=func("yes"), else_branch=func("no"))
    graph = tensorflow_imported(
        [placeholder("x", (2,)), const("c", np.bool_(taken)), branch], bodies
    )
    assert [n.op for n in graph.nodes] == ["Neg" if taken else "Abs"]
