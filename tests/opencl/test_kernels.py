"""Every OpenCL kernel of the registry against the NumPy reference, at sizes around its tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lite_engine.backends.opencl.options import function_options
from lite_engine.backends.opencl.profile import BUILD_OPTIONS
from lite_engine.backends.opencl.programs import KERNELS
from lite_engine.ir import DType, Graph
from lite_engine.ops import all_kernels
from lite_engine.ops.activation import unary_params
from lite_engine.plan import make_plan
from lite_engine.runtime.execute import Execution

from tests.native.tiny import reference
from tests.opencl.tiny import check, device, single
from tests.small_models import Builder

pytestmark = pytest.mark.opencl

RNG = np.random.default_rng(11)


def some(*shape: int) -> np.ndarray:
    return (RNG.standard_normal(shape) * 0.5).astype(np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def conv(shape: tuple[int, ...], outputs: int, kernel: int, group: int = 1, **attrs: Any) -> Graph:
    w = some(outputs, shape[1] // group, *[kernel] * (len(shape) - 2))
    pads = [kernel // 2] * 2 * (len(shape) - 2)
    return single("Conv", shape, w, some(outputs), group=group, **{"pads": pads, **attrs})


def residual() -> Graph:
    b = Builder((1, 8, 5, 5), "residual")
    y = b.conv(b.x, 8, 8, 3, activation="Relu")
    w, bias = b.weights(8, 8, 1, 1), b.weights(8)
    return b.done(b.add("Conv", y, w, bias, y, name="layer", activation="HardSwish"))


def cast(to: str) -> Graph:
    b = Builder((3, 7), "cast")
    whole = b.add("Mul", b.x, b.graph.constant(np.float32(40)))
    return b.done(b.add("Cast", whole, to=DType(to)))


def outputs(op: str, shape: tuple[int, ...], count: int, *inputs: Any, **attrs: Any) -> Graph:
    b = Builder(shape, op)
    values = [b.graph.constant(v) for v in inputs]
    node = b.graph.add(op, [b.x, *values], attrs, name="layer", outputs=count)
    return b.done(*node.outputs)


def pair(op: str, a: tuple[int, ...], b_shape: tuple[int, ...], **attrs: Any) -> Graph:
    """op(x, computed second operand)."""
    b = Builder(a, op)
    other = b.add("Relu", b.add("Expand", b.graph.constant(some(*b_shape)), b.ints(*b_shape)))
    return b.done(b.add(op, b.x, other, name="layer", **attrs))


def concat(first: int) -> Graph:
    b = Builder((1, first, 4, 5), "concat")
    return b.done(b.add("Concat", b.x, b.add("Relu", b.x), b.x, axis=1, name="layer"))


def recurrent(op: str, gates: int, hidden: int, direction: str = "forward", **more: Any) -> Graph:
    """Four steps of two sequences, initial states given, all outputs taken."""
    sides = 2 if direction == "bidirectional" else 1
    states = [some(sides, 2, hidden)] * (2 if op == "LSTM" else 1)
    if more.get("layout"):
        states = [s.swapaxes(0, 1) for s in states]
    b = Builder((2, 4, 5) if more.get("layout") else (4, 2, 5), op)
    arrays = [
        some(sides, gates * hidden, 5), some(sides, gates * hidden, hidden),
        some(sides, 2 * gates * hidden), None, *states,
    ]  # fmt: skip
    values = [None if a is None else b.graph.constant(a) for a in arrays]
    attrs = {"hidden_size": hidden, "direction": direction, **more}
    node = b.graph.add(op, [b.x, *values], attrs, name="layer", outputs=1 + len(states))
    return b.done(*node.outputs)


IMAGE = (1, 6, 5, 7)

#: kernel → graphs. Channels below, at and above a vector of four or a tile of 16; odd sizes.
CASES: dict[str, list[Graph]] = {
    "conv2d": [
        conv((1, c, 5, 7), o, 3, activation="Relu") for c, o in ((3, 15), (4, 16), (5, 17), (1, 8))
    ]
    + [conv((1, c, 9, 11), o, 1, 1) for c, o in ((8, 31), (5, 33), (16, 32))]
    + [conv((1, 16, 11, 10), 20, 3, activation="Relu"), conv((1, 4, 3, 29), 48, 3)]
    + [
        conv((2, 5, 9, 6), 7, 3, strides=[2, 1], dilations=[2, 1]),
        conv((2, 6, 7, 8), 17, 1, strides=[2, 2]),
        conv((1, 3, 9), 5, 3),
        conv((1, 4, 6, 6), 3, 5, pads=[0, 1, 2, 3]),
        residual(),
    ],
    "conv2d_depthwise": [
        conv((1, c, 6, 7), c, 3, c, strides=[s, s])
        for c, s in ((3, 1), (4, 2), (9, 1), (16, 1), (18, 1))
    ]
    + [conv((2, 8, 9, 7), 8, 5, 8, dilations=[1, 2], pads=[2, 4, 2, 4], activation="Relu")],
    "conv2d_grouped": [conv((1, 6, 5, 5), 9, 3, 3), conv((1, 4, 5, 5), 8, 3, 4)],
    "deconv2d": [
        single("ConvTranspose", (1, 5, 4, 3), some(5, o, k, k), some(o), strides=[s, s], pads=p)
        for o, k, s, p in ((3, 2, 2, [0] * 4), (4, 3, 2, [1, 0, 1, 0]), (2, 3, 1, [1] * 4))
    ]
    + [single("ConvTranspose", (1, 4, 4, 3), some(4, 2, 3, 3), None, group=2, strides=[2, 2])],
    "gemm": [
        single("Gemm", (m, 9), some(9, n), some(n)) for m, n in ((1, 15), (7, 16), (9, 17), (8, 3))
    ]
    + [single("Gemm", (3, 9), some(5, 9), transB=1, alpha=0.5)],
    "matmul": [
        pair("MatMul", (2, m, 5), (2, 5, n)) for m, n in ((1, 3), (3, 4), (5, 9))
    ]
    + [single("MatMul", (2, 3, 5), some(5, 6))],
    "pool": [
        single("MaxPool", IMAGE, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        single("MaxPool", IMAGE, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
        single("AveragePool", IMAGE, kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        single(
            "AveragePool", IMAGE, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1,
            ceil_mode=1, strides=[2, 2],
        ),
    ],
    "reduce": [single("GlobalAveragePool", IMAGE), single("GlobalMaxPool", IMAGE)]
    + [single("ReduceMean", (2, 3, 5), ints(-1)), single("ReduceMax", (2, 3, 5), ints(1))]
    + [single(f"Reduce{f}", (3, n), ints(1)) for f in ("Prod", "Min", "Mean") for n in (15, 33)]
    + [single("ReduceL2", (4, 40), ints(1), keepdims=0), single("ReduceProd", (3, 5), ints(0))],
    "softmax": [
        single("Softmax", (2, 3, 7), axis=1), single("Softmax", (5, 130), axis=-1),
        single("LogSoftmax", (2, 9), axis=-1),
    ],
    "arg": [
        single("ArgMax", (3, 7), axis=1), single("ArgMin", (3, 7, 2), axis=1, keepdims=0),
        single("ArgMax", (3, 7), axis=0, select_last_index=1),
    ],
    "layer_norm": [single("LayerNormalization", (3, 5, n), some(n), some(n)) for n in (7, 16, 35)],
    "lp_norm": [single("LpNormalization", (3, 5, n), axis=-1, p=p) for n, p in ((7, 2), (40, 1))]
    + [single("LpNormalization", IMAGE, axis=1)],
    "instance_norm": [single("InstanceNormalization", IMAGE, some(6), some(6))],
    "batch_norm": [
        single("BatchNormalization", IMAGE, some(6), some(6), some(6), np.abs(some(6)) + 0.5)
    ],
    "lstm": [
        recurrent("LSTM", 4, 7, "bidirectional"), recurrent("LSTM", 4, 16, "reverse"),
        recurrent("LSTM", 4, 33, layout=1),
    ],
    "gru": [
        recurrent("GRU", 3, 9, "bidirectional", linear_before_reset=1),
        recurrent("GRU", 3, 17, "reverse", linear_before_reset=0),
    ],
    "rnn": [recurrent("RNN", 1, 6), recurrent("RNN", 1, 16, activations=["relu"])],
    "unary": [
        single("Relu", IMAGE), single("Sigmoid", (7,)), single("LeakyRelu", (3, 5), alpha=0.2),
        single("Clip", (3, 5), np.float32(-0.2), np.float32(0.3)), single("Gelu", (3, 5)),
        single("HardSwish", (9,)), single("Elu", (35,)), single("Softplus", (17,)),
        single("Exp", (3, 3)), single("Erf", (3, 3)),
    ],
    "binary": [
        single("Add", IMAGE, some(6, 1, 1)), single("Mul", IMAGE, some(1, 6, 5, 7)),
        single("Add", (2, 5, 16), some(16)), single("Mul", (2, 5, 32), some(5, 1)),
        single("Mul", (20, 700), some(700)),
        single("Sub", (3, 1, 5), some(4, 1)), single("Div", (3, 5), np.float32(3)),
        single("PRelu", IMAGE, some(6, 1, 1)), pair("Add", (2, 3, 4), (2, 3, 4)),
        pair("Max", (2, 3, 4), (2, 3, 4)), single("Min", IMAGE, some(6, 1, 1)),
    ],
    "cast": [cast("i32"), cast("u8")],
    "copy_relayout": [
        single("Transpose", (2, 3, 4, 5), perm=[3, 1, 0, 2]),
        single("Transpose", (2, 3, 5, 7), perm=[0, 2, 3, 1]),
        single("Transpose", (2, 37, 3, 19), perm=[0, 3, 2, 1]),
        single("Transpose", (33, 40), perm=[1, 0]),
        single("Transpose", (3, 2, 29), perm=[0, 2, 1]),
        single("Transpose", (3, 4500), perm=[1, 0]),
        single("Transpose", (2, 5, 3, 8), perm=[0, 2, 1, 3]),
    ],
    "copy_concat": [concat(c) for c in (3, 4)],
    "copy_split": [outputs("Split", (1, 7, 4, 3), 2, ints(3, 4), axis=1)],
    "copy_slice": [
        single("Slice", (1, 6, 5, 7), ints(1, 5), ints(6, -9), ints(1, 3), ints(2, -2)),
        single("Slice", (9, 8), ints(2), ints(8), ints(0)),
        single("Slice", (9, 1200), ints(3), ints(1103), ints(1)),
    ],
    "copy_pad": [
        single("Pad", IMAGE, ints(0, 1, 2, 0, 0, 0, 1, 3), np.float32(0.5)),
        single("Pad", (4, 6), ints(-1, 1, 0, -2)),
    ],
    "copy_expand": [single("Expand", (3, 1, 5), ints(2, 3, 4, 5))],
    "copy_gather": [single("Gather", (5, 6), np.array([[4, -1, 0]]), axis=a) for a in (0, 1)],
    "resize": [
        single("Resize", IMAGE, None, some(4) * 0 + np.float32([1, 1, 2, 2]), mode=m)
        for m in ("nearest", "linear", "cubic")
    ]
    + [single("Resize", (1, 8, 3, 4), None, np.float32([1, 1, 3, 2]), mode="linear")],
}  # fmt: skip


#: Kernels whose sums go over the same numbers as the definition's: NaN comes out where it has it.
NAN_IN_PLACE = ("unary", "binary", "pool", "reduce", "arg", "softmax", "conv2d_depthwise", "rnn")


@pytest.mark.parametrize("kernel", CASES)
def test_kernel(kernel: str) -> None:
    for graph in CASES[kernel]:
        plan = check(graph, special=kernel in NAN_IN_PLACE).plan
        assert kernel in {s.kernel for s in plan.steps}, (kernel, [s.kernel for s in plan.steps])


HALVES = [k for k in all_kernels("opencl") if DType.F16 in k.dtypes]


@pytest.mark.parametrize("kernel", sorted({k.name for k in HALVES} - {"cast"}))
def test_kernel_with_half_storage(kernel: str) -> None:
    for graph in CASES[kernel][:2]:
        check(graph, precision="fp16")


@pytest.mark.parametrize("tiles", [False, True])
def test_rows_of_halves_begin_anywhere(tiles: bool) -> None:
    """Rows of 41 numbers: a driver may not read vectors of them as if they were aligned."""
    shape, scale = (5, 41), some(41)
    for graph in (
        single("Softmax", shape),
        single("ReduceMax", shape, ints(1)),
        single("LayerNormalization", shape, scale, scale),
        single("Add", (3, *shape), some(*shape)),
    ):
        check(graph, tiles=tiles, precision="fp16")


def test_every_kernel_of_the_registry_has_a_case() -> None:
    assert {k.name for k in all_kernels("opencl")} <= set(CASES)


@pytest.mark.parametrize("op, exact", [("Expm1", np.expm1), ("Log1p", np.log1p)])
def test_functions_near_zero(op: str, exact: Any) -> None:
    """e^x − 1 and ln(1 + x), where the steps one by one are 7 % off."""
    x = np.geomspace(1e-6, 1e-3, 99, dtype=np.float32)
    execution = Execution(make_plan(single(op, x.shape), "opencl"), threads=1)
    (y,) = execution.run([x])
    np.testing.assert_allclose(y, exact(x.astype(np.float64)), rtol=5e-7)  # 4 ulp (OpenCL 7.4)


@pytest.mark.parametrize("width", [1, 8])
def test_functions_of_nan_and_infinities(width: int) -> None:
    """Every function of one number, in one program, of numbers and of vectors."""
    numbers = [0, -0.0, np.inf, -np.inf, np.nan, 88, -88, 0.4, -0.4, 3, -3, 7, -7, 2, -1, 1]
    x = np.array(numbers, np.float32)
    names = [k.op for k in all_kernels("opencl") if k.name == "unary"]
    body = ""
    for row, name in enumerate(names):
        options = function_options(name, unary_params(name, {}))
        absent = "\n#ifndef ACT_A\n#define ACT_A 0.0f\n#endif"  # as common.h says
        body += f"\n#undef ACT\n#undef ACT_A\n#undef ACT_B\n{options}{absent}\nROW({row})"
    row = "for (int i = 0; i < 16; i += V) { FV v = LDV(x, i); STV(y, 16 * (k) + i, ACT(v)); }"
    source = f"#define V {width}\n" + (KERNELS / "common.h").read_text()
    source += f"#define ROW(k) {row}\n"
    source += f"kernel void functions(global const float *x, global float *y) {{{body}\n}}"
    own = device()
    program = own.cl.Program(own.context, source).build(list(BUILD_OPTIONS))
    got = np.empty((len(names), x.size), np.float32)
    y = own.buffer(got.nbytes)
    program.functions(own.queue, (1,), None, own.buffer(x.nbytes, x), y)
    own.cl.enqueue_copy(own.queue, got, y)
    for name, found in zip(names, got):
        with np.errstate(all="ignore"):
            (wanted,) = reference(name, [x], {})
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    "kernel",
    [
        "reduce",
        "pool",
        "binary",
        "copy_concat",
        "softmax",
        "layer_norm",
        "copy_relayout",
        "unary",
        "conv2d_depthwise",
        "resize",
        "instance_norm",
        "lstm",
        "gru",
        "rnn",
        "matmul",
    ],
)
def test_group_sizes_of_gpus(kernel: str) -> None:
    for graph in CASES[kernel]:
        check(graph, tiles=True)
