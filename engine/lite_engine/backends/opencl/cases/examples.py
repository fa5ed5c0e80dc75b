"""Layers that say with their attributes and constants what a kernel has to do: sizes around its
tiles and vectors, below, at and above them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....ir import DType, Graph
from .graphs import (
    attended,
    concat,
    conv,
    in_bytes,
    ints,
    pair,
    recurrent,
    residual,
    single,
    some,
    typed,
)

_IMAGE = (1, 6, 5, 7)


def examples() -> dict[str, list[Graph]]:
    """By kernel: channels below, at and above a vector of four or a tile of 16; odd sizes."""
    return {
        "conv2d": [
            conv((1, c, 5, 7), o, 3, activation="Relu")
            for c, o in ((3, 15), (4, 16), (5, 17), (1, 8))
        ]
        + [conv((1, c, 9, 11), o, 1, 1) for c, o in ((8, 31), (5, 33), (16, 32))]
        + [conv((1, 16, 11, 10), 20, 3, activation="Relu"), conv((1, 4, 3, 29), 48, 3)]
        + [
            conv((2, 5, 9, 6), 7, 3, strides=[2, 1], dilations=[2, 1]),
            conv((2, 6, 7, 8), 17, 1, strides=[2, 2]),
            conv((1, 3, 9), 5, 3),
            conv((1, 4, 6, 6), 3, 5, pads=[0, 1, 2, 3]),
            residual(8, side=5, activation="HardSwish"),
        ]
        + [in_bytes("Conv", (1, c, 2, 3), (9, c, 1, 1), some(9)) for c in (3, 8, 40)]
        + [
            in_bytes("Conv", (1, 9, 1, 2), (9, 9, 1, 1), some(9), again=True, activation=act)
            for act in ("Relu", "Gelu")
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
        + [  # pads that cut rows and columns of the input off
            single("ConvTranspose", (2, 3, 5, 6), some(3, 3, k, k), some(3), strides=[s, s], pads=p)
            for k, s, p in ((1, 1, [1] * 4), (1, 1, [0, 0, 2, 1]), (2, 3, [0, 3, 4, 5]))
        ]
        + [single("ConvTranspose", (1, 4, 4, 3), some(4, 2, 3, 3), None, group=2, strides=[2, 2])]
        + [single("ConvTranspose", (1, 4, 4, 3), some(4, 2, 2, 2), some(2), strides=[2, 2])],
        "gemm": [
            single("Gemm", (m, 9), some(9, n), some(n))
            for m, n in ((1, 15), (7, 16), (9, 17), (8, 3))
        ]
        + [single("Gemm", (3, 9), some(5, 9), transB=1, alpha=0.5)]
        + [in_bytes("Gemm", (1, k), (k, 17), some(17), axis=1) for k in (5, 64, 1030)]
        + [in_bytes("Gemm", (7, 48), (33, 48), transB=1, alpha=0.5, activation="HardSwish")],
        "matmul": [
            pair("MatMul", (2, m, 5), (2, 5, n)) for m, n in ((1, 3), (3, 4), (5, 9))
        ]
        + [single("MatMul", (2, 3, 5), some(5, 6))]
        + [in_bytes("MatMul", (2, 3, 40), (40, 9), axis=1)],
        "attention": [
            attended((1, 4, 35, 64), (1, 2, 70, 64), (1, 2, 70, 64), softcap=2.0),
            attended((1, 66, 96), (1, 67, 96), (1, 67, 48), some(1, 3, 66, 67), q_num_heads=3,
                     kv_num_heads=3, scale=0.2),
            attended((1, 1, 3, 5), (1, 1, 1, 5), (1, 1, 1, 3)),
            attended((1, 1, 70, 128), (1, 1, 70, 128), (1, 1, 70, 88), is_causal=1),
            attended((2, 3, 9, 40), (2, 3, 33, 40), (2, 3, 33, 130), some(2, 1, 1, 33),
                     softcap=3.0),
        ],
        "turn_pairs": [
            single("TurnPairs", x, some(*angles), some(*angles), interleaved=between)
            for x, angles in (((2, 3, 5, 8), (5, 8)), ((1, 5, 3, 64), (1, 5, 1, 64)))
            for between in (0, 1)
        ],
        "pool": [
            single("MaxPool", _IMAGE, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
            single("MaxPool", _IMAGE, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
            single("AveragePool", _IMAGE, kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
            # windows that lie in padding alone
            single("AveragePool", _IMAGE, kernel_shape=[2, 2], pads=[2, 2, 3, 2]),
            single(
                "AveragePool", _IMAGE, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1,
                ceil_mode=1, strides=[2, 2],
            ),
        ],
        "reduce": [single("GlobalAveragePool", _IMAGE), single("GlobalMaxPool", _IMAGE)]
        + [single("ReduceMean", (2, 3, 5), ints(-1)), single("ReduceMax", (2, 3, 5), ints(1))]
        + [single(f"Reduce{f}", (3, n), ints(1)) for f in ("Prod", "Min", "Mean") for n in (15, 33)]
        + [single("ReduceL2", (4, 40), ints(1), keepdims=0), single("ReduceProd", (3, 5), ints(0))]
        + [
            single(f"Reduce{f}", shape, ints(*axes), keepdims=0)
            for f, shape, axes in (
                ("Mean", (1, 7, 7, 68), (1, 2)), ("L2", (3, 5, 7, 11), (0, 2)),
                ("Max", (5, 13, 9, 7), (1, 3)), ("Min", (2, 3, 2, 5, 3, 4), (0, 2, 4)),
                ("Sum", (3, 2, 5, 2, 7, 13), (1, 3, 5)), ("Mean", (6, 5, 7, 20), (0, 2)),
            )
        ],
        "softmax": [
            single("Softmax", (2, 3, 7), axis=1), single("Softmax", (5, 130), axis=-1),
            single("LogSoftmax", (2, 9), axis=-1),
        ],
        "arg": [
            single("ArgMax", (3, 7), axis=1), single("ArgMin", (3, 7, 2), axis=1, keepdims=0),
            single("ArgMax", (3, 7), axis=0, select_last_index=1),
        ],
        "layer_norm": [
            single("LayerNormalization", (3, 5, n), some(n), some(n)) for n in (7, 16, 35)
        ]
        + [single("RMSNormalization", (3, 5, n), some(n)) for n in (7, 16, 35)]
        + [
            single("LayerNormalization", (2, 5003), some(5003), some(5003)),
            single("RMSNormalization", (2, 3, 1667), some(3, 1667), axis=1),
        ],
        "lp_norm": [
            single("LpNormalization", (3, 5, 7), axis=-1, p=2),
            single("LpNormalization", (3, 5, 40), axis=-1, p=1),
            single("LpNormalization", _IMAGE, axis=1),
            single("LpNormalization", (2, 37, 3, 7), axis=1, p=1),
        ],
        "instance_norm": [
            single("InstanceNormalization", shape, some(shape[1]), some(shape[1]))
            for shape in (_IMAGE, (1, 1, 21), (2, 1, 9001), (1, 37, 41, 3), (2, 3, 300))
        ],
        "group_norm": [
            single("GroupNormalization", (n, c, *rest), some(c), some(c), num_groups=groups)
            for n, c, groups, *rest in (
                (1, 6, 2, 5, 7), (2, 24, 6, 3, 5), (1, 320, 1, 7), (2, 96, 2, 31, 9),
                (1, 40, 20, 70, 70), (1, 48, 3, 6, 6),
            )
        ],
        "batch_norm": [
            single("BatchNormalization", _IMAGE, some(6), some(6), some(6), np.abs(some(6)) + 0.5)
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
            single("Relu", _IMAGE), single("Sigmoid", (7,)), single("LeakyRelu", (3, 5), alpha=0.2),
            single("Clip", (3, 5), np.float32(-0.2), np.float32(0.3)), single("Gelu", (3, 5)),
            single("HardSwish", (9,)), single("Elu", (35,)), single("Softplus", (17,)),
            single("Exp", (3, 3)), single("Erf", (3, 3)),
        ],
        "binary": [
            single("Add", _IMAGE, some(6, 1, 1)), single("Mul", _IMAGE, some(1, 6, 5, 7)),
            single("Add", (2, 5, 16), some(16)), single("Mul", (2, 5, 32), some(5, 1)),
            single("Mul", (20, 700), some(700)),
            single("Sub", (3, 1, 5), some(4, 1)), single("Div", (3, 5), np.float32(3)),
            single("PRelu", _IMAGE, some(6, 1, 1)), pair("Add", (2, 3, 4), (2, 3, 4)),
            pair("Max", (2, 3, 4), (2, 3, 4)), single("Min", _IMAGE, some(6, 1, 1)),
        ],
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
        "copy_split": [single("Split", (1, 7, 4, 3), ints(3, 4), count=2, axis=1)],
        "copy_slice": [
            single("Slice", (1, 6, 5, 7), ints(1, 5), ints(6, -9), ints(1, 3), ints(2, -2)),
            single("Slice", (9, 8), ints(2), ints(8), ints(0)),
            single("Slice", (9, 1200), ints(3), ints(1103), ints(1)),
        ],
        "copy_pad": [
            single("Pad", _IMAGE, ints(0, 1, 2, 0, 0, 0, 1, 3), np.float32(0.5)),
            single("Pad", (4, 6), ints(-1, 1, 0, -2)),
        ]
        + [
            single("Pad", shape, ints(*pads), mode=mode)
            for mode in ("edge", "reflect", "wrap")
            for shape, pads in ((_IMAGE, (0, 0, 1, 2, 0, 0, 2, 3)), ((4, 6), (-1, 9, 2, 0)))
        ],
        "copy_expand": [single("Expand", (3, 1, 5), ints(2, 3, 4, 5))],
        "copy_tile": [single("Tile", (3, 1, 5), ints(2, 4, 1)), single("Tile", (2, 3), ints(1, 3))],
        "copy_gather": [single("Gather", (5, 6), np.array([[4, -1, 0]]), axis=a) for a in (0, 1)],
        "resize": [
            single("Resize", _IMAGE, None, np.array([1, 1, 2, 2], np.float32), mode=m)
            for m in ("nearest", "linear", "cubic")
        ]
        + [single("Resize", (1, 8, 3, 4), None, np.array([1, 1, 3, 2], np.float32), mode="linear")],
    }  # fmt: skip


def large() -> dict[str, list[Graph]]:
    """By kernel: layers that fill every tile, aligned and not."""
    found: dict[str, list[Graph]] = {}

    def add(kernel: str, *graphs: Graph) -> None:
        found.setdefault(kernel, []).extend(graphs)

    for channels, filters in ((64, 128), (36, 130), (33, 129)):
        wide, vector = some(channels, filters), some(filters)
        add("conv2d", conv((1, channels, 24, 24), filters, 3, activation="Relu"))
        add("conv2d", conv((1, channels, 24, 24), filters, 1))
        add("gemm", single("Gemm", (200, channels), wide, vector))
        add("matmul", pair("MatMul", (1, 200, channels), (1, channels, filters)))
        doubling = some(channels, filters, 2, 2)
        shape = (1, channels, 12, 12)
        add("deconv2d", single("ConvTranspose", shape, doubling, None, strides=[2, 2]))
        add("conv2d", *(residual(channels, k, activation="HardSwish") for k in (1, 3)))
        add("conv2d_depthwise", residual(channels, 3, channels, activation="HardSwish"))
        if channels % 3 == 0:
            add("conv2d_grouped", residual(channels, 3, 3, activation="HardSwish"))
    # Few tiles and a long sum, which is split among units
    add("matmul", pair("MatMul", (1, 64, 2048), (1, 2048, 64)))
    # Few long rows side by side, which items hold or read again
    add("softmax", *(single("Softmax", (1, n, 6), axis=1) for n in (400, 5000)))
    # Groups that fill tiles, aligned and not
    for channels in (64, 34):
        add("conv2d_grouped", *(residual(2 * channels, k, 2, activation="Relu") for k in (1, 3)))
    for count in (1, 3):
        w, r = some(1, 28, 5), some(1, 28, 7)
        add("lstm", single("LSTM", (4, 2, 5), w, r, count=count, hidden_size=7))
    add("conv2d_depthwise", conv((1, 64, 24, 24), 64, 3, 64), conv((1, 64, 160, 160), 64, 5, 64))
    heads = (4, 170, 64, 16)  # more than a large GPU shares keys out for
    add("attention", attended(heads, heads, heads))
    return found


def of_every_size() -> Iterator[tuple[str, Graph]]:
    """(kernel, copy) of elements of one and of eight bytes: others have four, in fp16 two."""
    shape = (3, 4, 5)
    for dtype in (DType.U8, DType.I64):
        yield "copy_relayout", typed("Transpose", dtype, shape, perm=[2, 0, 1])
        yield "copy_slice", typed("Slice", dtype, shape, ints(1), ints(4), ints(1))
        yield "copy_tile", typed("Tile", dtype, shape, ints(1, 2, 3))
        yield "copy_pad", typed("Pad", dtype, shape, ints(0, 1, 2, 1, 0, 1))
        yield "copy_expand", typed("Expand", dtype, (3, 1, 5), ints(2, 3, 4, 5))
        yield "copy_gather", typed("Gather", dtype, shape, np.array([[2, -1, 0]]), axis=1)
