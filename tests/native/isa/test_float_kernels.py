"""Softmax, reductions, pooling and normalisations against the operators' NumPy definitions."""

import numpy as np
import pytest
from lite_engine.ir.bfloat16 import bf16_to_f32, f32_to_bf16

from ..tiny import as_bf16, check, isas, make_case, run_step

pytestmark = pytest.mark.cpu
rng = np.random.default_rng(7)


def normal(*shape):
    return rng.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("isa", isas())
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("shape, axis", [
    ((3, 1000), -1), ((2, 5, 7), 1), ((2, 21, 6, 5), 1), ((4, 3), 0), ((5, 1), -1), ((2, 17), 1),
    ((16,), 0), ((2, 3, 33), 0),
])  # fmt: skip
def test_softmax(op, shape, axis, isa):
    for middle in (0, -150, 150):  # where exp(x) itself is no float32
        x = normal(*shape) * 5 + np.float32(middle)
        check(op, "f32_softmax", [x], {"axis": axis}, isas=[isa])


@pytest.mark.parametrize("isa", isas())
@pytest.mark.parametrize(
    "op",
    [
        "ReduceSum",
        "ReduceMean",
        "ReduceMax",
        "ReduceMin",
        "ReduceProd",
        "ReduceL1",
        "ReduceL2",
        "ReduceSumSquare",
        "ReduceLogSumExp",
    ],
)
def test_reduce(op, isa):
    for shape, axes in [
        ((3, 37), [1]), ((3, 37), [0]), ((2, 5, 6, 19), [1, 2]), ((2, 5, 6, 19), [2, 3]),
        ((2, 5, 6), None),
        ((2, 5, 6, 7), [0, 2]), ((2, 5, 6, 7), [1, 3]), ((9,), [0]), ((1, 1, 300), [-1]),
        ((4, 1), [1]),
    ]:  # fmt: skip
        for keepdims in (0, 1):
            given = None if axes is None else np.array(axes)
            terms = np.prod([shape[a] for a in axes or range(len(shape))])
            check(
                op,
                "f32_reduce",
                [normal(*shape), given],
                {"keepdims": keepdims},
                as_attrs={"axes": 1},
                isas=[isa],
                threads=[1, 3],
                tolerance=max(5e-6, terms * 2**-24),  # sums cancel: the error goes by the terms
            )


@pytest.mark.parametrize("isa", isas())
@pytest.mark.parametrize("op, extra", [
    ("MaxPool", {}), ("AveragePool", {}), ("AveragePool", {"count_include_pad": 1}),
])  # fmt: skip
def test_pool(op, extra, isa):
    cases = [
        ((1, 3, 9, 11), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ((2, 17, 8, 8), {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ((1, 70, 7, 7), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
        (
            (1, 5, 10, 9),
            {"kernel_shape": [3, 2], "pads": [0, 1, 2, 0], "ceil_mode": 1, "strides": [2, 3]},
        ),
        ((1, 16, 6), {"kernel_shape": [3], "strides": [1], "pads": [1, 1]}),
        ((1, 4, 9, 9), {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
        ((1, 4, 13, 13), {"kernel_shape": [5, 5], "dilations": [2, 2], "pads": [4, 4, 4, 4]}),
        ((1, 70, 13, 13), {"kernel_shape": [3, 3], "dilations": [2, 2], "strides": [2, 2]}),
    ]
    for shape, attrs in cases:
        check(
            op,
            "f32_pool",
            [normal(*shape)],
            {**attrs, **extra},
            channels_last=[0],
            isas=[isa],
            threads=[1, 3],
        )


@pytest.mark.parametrize("isa", isas())
@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool"])
def test_global_pool(op, isa):
    for shape in [(1, 3, 5, 7), (2, 100, 7, 7), (1, 33, 9)]:
        check(op, "f32_pool", [normal(*shape)], channels_last=[0], isas=[isa], threads=[1, 3])


WINDOWS = [
    {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    {"kernel_shape": [2, 2]}, {"kernel_shape": [5, 5]},
]  # fmt: skip


def test_extremes_keep_nan():
    """Wherever in a window or row it stands, alone or beside infinities."""
    for channels in (3, 70):
        x = normal(1, channels, 9, 11)
        flat = x.reshape(-1)
        flat[rng.permutation(flat.size)[: flat.size // 10]] = np.nan
        flat[rng.permutation(flat.size)[: flat.size // 20]] = -np.inf
        for attrs in WINDOWS:
            check("MaxPool", "f32_pool", [x], attrs, channels_last=[0], isas=isas(), threads=[1])
        check("GlobalMaxPool", "f32_pool", [x], channels_last=[0], isas=isas(), threads=[1])
        for axes in ([1], [3], [2, 3]):
            for op in ("ReduceMax", "ReduceMin"):
                inputs = [x, np.array(axes)]
                check(op, "f32_reduce", inputs, as_attrs={"axes": 1}, isas=isas(), threads=[1])
        for attrs in ({"axis": 3}, {"axis": 1, "select_last_index": 1}):
            for op in ("ArgMax", "ArgMin"):
                check(op, "any_arg", [x], attrs, threads=[1])


@pytest.mark.parametrize("isa", isas())
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "GlobalAveragePool"])
def test_pool_of_shorts(op, isa):
    """bf16 in memory: maxima are exact, means rounded once."""
    window = {"kernel_shape": [3, 2], "pads": [0, 1, 2, 0], "ceil_mode": 1, "strides": [2, 3]}
    cases = [
        ((1, 5, 10, 9), window),
        ((2, 70, 8, 9), {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ((1, 100, 23, 21), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ]
    for shape, attrs in [((2, 33, 7, 7), {})] if op.startswith("Global") else cases:
        x = bf16_to_f32(f32_to_bf16(normal(*shape)))
        x[0, 0, 0, 1], x[0, 1, 2, 3], x[0, 2, 4:, :] = np.nan, -np.nan, -np.inf
        case = make_case(op, "bf16_pool", [x], attrs, channels_last=[0])
        for threads in (1, 3):
            (bits,) = run_step(
                op,
                "bf16_pool",
                [as_bf16(case.inputs[0])],
                [as_bf16(case.wanted[0])],
                case.attrs,
                threads=threads,
                max_isa=isa,
            )
            got = bf16_to_f32(bits)
            limit = 0 if op == "MaxPool" else 2.0**-8
            np.testing.assert_allclose(got, case.wanted[0], rtol=limit, atol=1e-6)


@pytest.mark.parametrize("isa", isas())
@pytest.mark.parametrize("op", ["LayerNormalization", "RMSNormalization"])
def test_normalisation_into_shorts(op, isa):
    """Rounded once, also numbers that bf16 does not have in the middle of a row."""
    for rows, n in ((3, 1), (7, 37), (5, 768)):
        x, scale = normal(rows, n), normal(n)
        inputs = [x, scale, normal(n)] if op == "LayerNormalization" else [x, scale]
        scale[n // 2] = np.inf if n > 1 else 1
        check(op, "bf16_layer_norm", inputs, {"epsilon": 0.05}, isas=[isa], tolerance=2e-5)
        case = make_case(op, "bf16_layer_norm", inputs, {"epsilon": 0.05})
        (want,) = case.wanted
        (bits,) = run_step(
            op, "bf16_layer_norm", inputs, [as_bf16(want)], {"epsilon": 0.05}, constant=(1, 2),
            threads=2, max_isa=isa,
        )  # fmt: skip
        np.testing.assert_allclose(bf16_to_f32(bits), want, rtol=2.0**-8, atol=2e-5)


@pytest.mark.parametrize("isa", isas())
def test_normalisations(isa):
    for c in (1, 3, 16, 24, 35):
        x, scale, bias, mean = normal(2, c, 5, 6), normal(c), normal(c), normal(c)
        variance = np.abs(normal(c)) + 0.1
        check(
            "BatchNormalization",
            "f32_batch_norm",
            [x, scale, bias, mean, variance],
            {"epsilon": 0.05},
            channels_last=[0],
            constant=[1, 2, 3, 4],
            isas=[isa],
            tolerance=1e-5,
        )
        check(
            "InstanceNormalization",
            "f32_instance_norm",
            [x, scale, bias],
            {"epsilon": 0.05, "activation": "LeakyRelu", "activation_params": [0.1]},
            channels_last=[0],
            isas=[isa],
            tolerance=1e-5,
            threads=[1, 3],
        )
        for groups in {1, c, 5 if c == 35 else 1, 2 if c % 2 == 0 else 1}:
            check(
                "GroupNormalization",
                "f32_group_norm",
                [x, scale, bias],
                {"num_groups": groups, "epsilon": 0.05, "activation": "Silu" if groups > 1 else ""},
                channels_last=[0],
                isas=[isa],
                tolerance=1e-5,
                threads=[1, 3],
            )
        row = normal(3, 7, c)
        check(
            "LayerNormalization", "f32_layer_norm", [row, scale, bias], isas=[isa], tolerance=2e-5
        )
        check(
            "LayerNormalization",
            "f32_layer_norm",
            [row, normal(7, c)],
            {"axis": 1, "epsilon": 0.05},
            isas=[isa],
            tolerance=2e-5,
        )
        check("RMSNormalization", "f32_layer_norm", [row, scale], {"epsilon": 0.05}, isas=[isa],
              tolerance=2e-5)  # fmt: skip
        check("LpNormalization", "f32_lp_norm", [row], {"axis": 1}, isas=[isa])
        check("LRN", "f32_lrn", [x], {"size": 5}, channels_last=[0], isas=[isa])


@pytest.mark.parametrize("isa", isas())
@pytest.mark.parametrize(
    ("shape", "groups"),
    [((2, 1, 20011), 1), ((1, 3, 61, 67), 1), ((2, 6, 9001), 3), ((1, 40, 33, 31), 8)],
)
def test_statistics_over_many_blocks(shape: tuple[int, ...], groups: int, isa: str) -> None:
    """Against float64, far from zero; what is rounded does not depend on the number of threads."""
    c = shape[1]
    x = (normal(*shape) + 20 * normal(1, c, *[1] * (len(shape) - 2))).astype(np.float32)
    scale, bias = normal(c), normal(c)
    last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    wide = x.astype(np.float64)
    for op, kernel, attrs, parts in (
        ("InstanceNormalization", "f32_instance_norm", {}, c),
        ("GroupNormalization", "f32_group_norm", {"num_groups": groups}, groups),
    ):
        flat = wide.reshape(shape[0], parts, -1)
        centred = flat - flat.mean(2, keepdims=True)
        want = (centred / np.sqrt(np.square(centred).mean(2, keepdims=True) + 1e-5)).reshape(shape)
        sides = [v.astype(np.float64).reshape(c, *[1] * (len(shape) - 2)) for v in (scale, bias)]
        want = np.moveaxis(want * sides[0] + sides[1], 1, -1)
        got = [
            run_step(op, kernel, [last, scale, bias], [last], {"epsilon": 1e-5, **attrs},
                     threads=threads, max_isa=isa)[0]
            for threads in (1, 3)
        ]  # fmt: skip
        assert np.array_equal(*got)
        assert np.abs(got[0] - want).max() < 2e-5
