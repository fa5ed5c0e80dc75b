"""Sizes that depend on data in a program: bounds in the plan, counts while it runs; against
onnxruntime, whose results have just the rows that are there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.backends.cpu.native import NativeFile, NativeProgram
from lite_engine.ir import to_text
from lite_engine.model_file import Model
from lite_engine.ops import specialise
from lite_engine.ops.bounds import Unbounded, bounded
from lite_engine.passes.fixed_rows import fixed_rows, specialised_rows
from lite_engine.runtime.choice import host_target

onnx = pytest.importorskip("onnx", reason="pip install onnx")
onnxruntime = pytest.importorskip("onnxruntime", reason="pip install onnxruntime")

HEAD = '<ir_version: 9, opset_import: ["" : 18]>\n'

#: What the names of each case mean: x (9,4) and s (9) are inputs, `keep` (n) the places of s > 0.
CASES = {
    "rows": """
        (float[n,4] y, float[n] z) {
            zero = Constant<value_float = 0.0>()
            a, b = Split<axis = 1, num_outputs = 2>(xs)
            half = Constant<value_float = 0.5>()
            c = Mul(a, half)
            d = Concat<axis = 1>(c, b)
            y = Softmax<axis = 1>(d)
            z = ReduceMax<keepdims = 0>(y, one)
        }""",
    "shape_arithmetic": """
        (float[m] y, float[2,n,2] z, int64[k] r) {
            flat = Constant<value_ints = [-1]>()
            y = Reshape(xs, flat)
            shape = Shape(xs)
            first = Gather(shape, nought)
            head = Unsqueeze(first, zeros)
            pairs = Constant<value_ints = [2, 2]>()
            target = Concat<axis = 0>(head, pairs)
            w = Reshape(xs, target)
            z = Transpose<perm = [1, 0, 2]>(w)
            step = Constant<value_int = 1>()
            r = Range(nought, first, step)
        }""",
    "meetings": """
        (float[4] top, float[4] sum, float[k] best, int64[k] places, int64[1,4] last) {
            nothing = Constant<value_float = -inf>()
            infinite = Div(xs, limit0)
            low = Min(infinite, nothing)
            last = ArgMax<axis = 0, select_last_index = 1>(low)
            top = ReduceMax<keepdims = 0>(xs, zeros)
            sum = ReduceSum<keepdims = 0>(xs, zeros)
            three = Constant<value_ints = [3]>()
            size = Shape(ss)
            both = Concat<axis = 0>(size, three)
            k = ReduceMin<keepdims = 1>(both)
            best, places = TopK(ss, k)
        }""",
    "slices": """
        (float[a,4] first, float[b,4] last, float[c,4] whole) {
            two = Constant<value_ints = [2]>()
            five = Constant<value_ints = [5]>()
            far = Constant<value_ints = [9223372036854775807]>()
            first = Slice(xs, zeros, five, zeros)
            last = Slice(xs, two, far, zeros)
            count = Shape<end = 1>(xs)
            whole = Slice(xs, zeros, count, zeros)
        }""",
    "joined": """
        (float[m,4] y, float z) {
            t = Constant<value_float = 1.0>()
            more = Greater(s, t)
            found = NonZero(more)
            few = Squeeze(found, zeros)
            xf = Gather(x, few)
            y = Concat<axis = 0>(xs, x, xf)
            z = ReduceMax<keepdims = 0>(y)
        }""",
    "twice": """
        (float[m,4] y, int64[1,m] where) {
            t = Constant<value_float = 0.7>()
            more = Less(ss, t)
            where = NonZero(more)
            inner = Squeeze(where, zeros)
            y = Gather(xs, inner)
        }""",
    "scattered": """
        (float[9,4] y, float[n,4] z) {
            shape = Shape(x)
            blank = ConstantOfShape(shape)
            column = Constant<value_ints = [-1, 1]>()
            tall = Reshape(keep, column)
            four = Constant<value_ints = [4]>()
            count = Shape(keep)
            wide = Concat<axis = 0>(count, four)
            indices = Expand(tall, wide)
            y = ScatterElements<axis = 0>(blank, indices, xs)
            ones = ConstantOfShape<value = float[1] {1.0}>(wide)
            z = Add(ones, xs)
        }""",
    "regions": """
        (float[n,2,3,3] y) {
            picture_shape = Constant<value_ints = [1, 2, 6, 3]>()
            picture = Reshape(x, picture_shape)
            images = ConstantOfShape<value = int64[1] {0}>(count1)
            y = RoiAlign<output_height = 3, output_width = 3, sampling_ratio = 2>(
                picture, xs, images
            )
        }""",
    "images": """
        (float[n,2,2,2] y, float[n,1,1,1] z, float[n,1,2,2] w) {
            square = Constant<value_ints = [-1, 1, 2, 2]>()
            xi = Reshape(xs, square)
            kernel_shape = Constant<value_ints = [2, 1, 1, 1]>()
            kernel_values = Constant<value_floats = [0.5, -2.0]>()
            kernel = Reshape(kernel_values, kernel_shape)
            bias = Constant<value_floats = [0.25, 0.0]>()
            c = Conv(xi, kernel, bias)
            back = Constant<value_ints = [2, 1, 1, 1]>()
            spread = Reshape(kernel_values, back)
            large = ConvTranspose<strides = [2, 2]>(c, spread)
            small = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(large)
            w = Relu(small)
            z = GlobalAveragePool(w)
            r = Conv(w, kernel, bias)
            y = Add(r, c)
        }""",
    "numbered": """
        (float[n,4] y, int64[n] i) {
            count = Squeeze(count1, zeros)
            step = Constant<value_int = 1>()
            numbers = Range(nought, count, step)
            four = Constant<value_int = 4>()
            i = Mul(numbers, four)
            flat_shape = Constant<value_ints = [-1]>()
            flat = Reshape(xs, flat_shape)
            first = Gather(flat, i)
            column = Unsqueeze(first, one)
            y = Sub(xs, column)
        }""",
    "one_row": """
        (float[4] best, float all, float[4] last, float[4] running) {
            sums = ReduceSum<keepdims = 0>(xs, one)
            at = ArgMax<axis = 0, keepdims = 0>(sums)
            row = Gather(xs, at)
            best = Softmax<axis = 0>(row)
            all = ReduceSum<keepdims = 0>(row)
            count = Squeeze(count1, zeros)
            back = Sub(at, count)
            last = Gather(xs, back)
            axis = Constant<value_int = 1>()
            totals = CumSum(xs, axis)
            running = Gather(totals, at)
        }""",
    "suppressed": """
        (float[k,4] y, int64[k] kept) {
            low, size = Split<axis = 1, num_outputs = 2>(xs)
            length = Abs(size)
            high = Add(low, length)
            boxes = Concat<axis = 1>(low, high)
            b = Unsqueeze(boxes, zeros)
            two = Constant<value_ints = [0, 1]>()
            sc = Unsqueeze(ss, two)
            limit = Constant<value_ints = [9223372036854775807]>()
            iou = Constant<value_floats = [0.3]>()
            size2 = Shape(boxes)
            many = ReduceProd<keepdims = 0>(size2)
            none = Equal(many, nought)
            kept = If(none) <
                then_branch = empty () => (int64[e] t) { t = Constant<value = int64[0] {}>() },
                else_branch = found () => (int64[f] u) {
                    rows = NonMaxSuppression(b, sc, limit, iou)
                    third = Constant<value_int = 2>()
                    u = Gather<axis = 1>(rows, third)
                }
            >
            y = Gather(boxes, kept)
        }""",
}  # fmt: skip


def model(body: str, path: Path) -> Path:
    """A model of inputs x and s whose body begins with the places where s > 0."""
    outputs, rest = body.split("{", 1)
    text = f"""{HEAD}g (float[9,4] x, float[9] s) => {outputs.strip()} {{
        limit0 = Constant<value_float = 0.0>()
        nought = Constant<value_int = 0>()
        zeros = Constant<value_ints = [0]>()
        one = Constant<value_ints = [1]>()
        chosen = Greater(s, limit0)
        found0 = NonZero(chosen)
        keep = Squeeze(found0, zeros)
        count1 = Shape(keep)
        xs = Gather(x, keep)
        ss = Gather(s, keep)
        {rest}"""
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def inputs(seed: int, share: float) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    there = rng.permutation(9) < round(9 * share)
    s = np.where(there, rng.permutation(9) / 6 + 0.1, -1)
    return {"x": rng.normal(0, 2, (9, 4)).astype(np.float32), "s": s.astype(np.float32)}


def same(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> None:
    """Rows that are there, then −1."""
    for name, want in wanted.items():
        got = found[name]
        assert got.dtype == want.dtype and got.ndim == want.ndim
        there = tuple(slice(0, d) for d in want.shape)
        np.testing.assert_allclose(got[there], want, rtol=1e-5, atol=1e-6, err_msg=name)
        open_rows = np.ones(got.shape, bool)
        open_rows[there] = False
        assert (got[open_rows] == -1).all(), name


def oracle(path: Path, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    options = onnxruntime.SessionOptions()  # version 1.30 breaks open shapes as it optimizes
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options)
    return dict(zip((o.name for o in session.get_outputs()), session.run(None, feeds)))


@pytest.mark.cpu
@pytest.mark.parametrize("case", CASES)
def test_native_without_numpy(case: str, tmp_path: Path) -> None:
    path = model(CASES[case], tmp_path / "m.onnx")
    graph = optimize(path).graph
    fixed = fixed_rows(graph)
    assert to_text(specialised_rows(graph)) == to_text(specialise(fixed))
    assert all(v.type.is_static for n in fixed.nodes for v in n.outputs)
    predictor = Predictor(Model(fixed), host_target())
    assert {step.backend for step in predictor.plan().steps} == {"cpu"}
    for seed, share in enumerate((0.6, 1, 0.2, 0)):
        if share == 0 and case in ("meetings", "joined", "one_row"):
            continue  # the maximum of nothing is an error there
        feeds = inputs(seed, share)
        same(predictor.run(feeds), oracle(path, feeds))


@pytest.mark.cpu
def test_a_file_has_the_program(tmp_path: Path) -> None:
    """What lite_run executes, for counts that differ from run to run."""
    path = model(CASES["suppressed"], tmp_path / "m.onnx")
    optimize(path, targets=host_target()).save(tmp_path / "m.lite")
    program = NativeProgram.of_file(NativeFile(tmp_path / "m.lite"), threads=2)
    for seed in range(4):
        feeds = inputs(seed, 0.3 * seed)
        found = program.run([feeds[i.name] for i in program.inputs])
        same(dict(zip((o.name for o in program.outputs), found)), oracle(path, feeds))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("float[n] y) { y = ReduceMean<keepdims = 0>(ss) }", "ReduceMean"),
        ("float[4] y) { last = Constant<value_int = -1>() y = Gather(xs, last) }", "a negative"),
        ("float[n,4] y) { y = CumSum(xs, nought) }", "CumSum"),
        ("float[n,n] y) { t = Transpose(xs) y = MatMul(xs, t) }", "MatMul"),
    ],
)  # fmt: skip
def test_says_what_has_no_bound(line: str, reason: str, tmp_path: Path) -> None:
    graph = optimize(model(f"({line}", tmp_path / "m.onnx")).graph
    with pytest.raises(Unbounded, match=reason):
        bounded(specialise(graph))
    assert fixed_rows(graph) is graph
    assert to_text(specialised_rows(graph)) == to_text(specialise(graph))
