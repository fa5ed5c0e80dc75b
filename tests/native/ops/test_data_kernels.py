"""Kernels that move, select, index, convert and resample, against the operators' definitions."""

import numpy as np
import pytest
from lite_engine.ir import DType

from ..tiny import assert_close, check, isas, load, one_step_plan, run_step

pytestmark = pytest.mark.cpu
rng = np.random.default_rng(11)
TYPES = [np.float32, np.int64, np.uint8, np.float16]


def numbers(shape, dtype=np.float32):
    values = rng.normal(0, 20, shape)
    return np.asarray(np.abs(values) if np.dtype(dtype).kind == "u" else values).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape, perm", [
    ((3, 5), [1, 0]), ((2, 17, 9, 11), [0, 2, 3, 1]), ((2, 9, 11, 17), [0, 3, 1, 2]),
    ((2, 3, 4, 5, 6), [4, 2, 0, 3, 1]), ((1, 1, 7), [2, 0, 1]), ((100,), [0]),
    ((33, 65, 3), [1, 2, 0]), ((2, 3, 5, 13), [0, 2, 3, 1]), ((3, 50), [1, 0]),
    ((0, 4), [1, 0]), ((0, 4), [0, 1]), ((2, 3, 4), [0, 1, 2]), ((), []), ((7,), [0]),
    ((3, 2, 58), [0, 2, 1]), ((40, 35), [1, 0]),
])  # fmt: skip
def test_relayout(shape, perm, dtype):
    x = numbers(shape, dtype)
    for threads in (1, 3):
        (y,) = run_step(
            "Relayout", "copy_relayout", [x], [x.transpose(perm)], {"perm": perm}, threads=threads
        )
        assert_close(y, x.transpose(perm), 0, "relayout")


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat_and_split(axis, dtype):
    parts = []
    for n in (1, 4, 7):
        shape = [3, 5, 6]
        shape[axis] = n
        parts.append(numbers(shape, dtype))
    whole = np.concatenate(parts, axis)
    for threads in (1, 2):
        (y,) = run_step("Concat", "copy_concat", parts, [whole], {"axis": axis}, threads=threads)
        assert_close(y, whole, 0, "concat")
        back = run_step("Split", "copy_split", [whole], parts, {"axis": axis}, threads=threads)
        for got, wanted in zip(back, parts):
            assert_close(got, wanted, 0, "split")


@pytest.mark.parametrize("starts, ends, axes, steps", [
    ([1], [4], [0], [1]), ([0, 2], [9, 5], [1, 2], [1, 1]), ([-3], [2**63 - 1], [-1], [1]),
    ([-1], [-(2**63)], [1], [-1]), ([5, 0], [1, 100], [0, 2], [-2, 3]), ([3], [3], [0], [1]),
    ([1], [7], [1], [2]),
])  # fmt: skip
def test_slice(starts, ends, axes, steps):
    x = numbers((6, 8, 9))
    given = [np.array(v, np.int64) for v in (starts, ends, axes, steps)]
    check(
        "Slice",
        "copy_slice",
        [x, *given],
        as_attrs={"starts": 1, "ends": 2, "axes": 3, "steps": 4},
        tolerance=0,
    )


def test_tile_of_nothing():
    """Other axes may be of any size then; their strides must not overflow (UBSan)."""
    x = np.zeros((0, 1 << 40, 1, 8), np.float32)
    y = np.zeros((0, 0, 1 << 40, 8), np.float32)
    (made,) = load(one_step_plan("Tile", "copy_tile", [x], [y])).run([x])
    assert made.shape == y.shape


def test_expand_tile_depth_to_space():
    x = numbers((3, 1, 5))
    for shape in ((3, 4, 5), (2, 3, 1, 5), (1,)):
        check("Expand", "copy_expand", [x, np.array(shape)], as_attrs={"shape": 1})
    check("Tile", "copy_tile", [numbers((2, 3, 4)), np.array([2, 1, 3])], as_attrs={"repeats": 1})
    for mode in ("DCR", "CRD"):
        attrs = {"blocksize": 2, "mode": mode}
        check(
            "DepthToSpace",
            "copy_depth_to_space",
            [numbers((2, 12, 3, 5))],
            attrs,
            channels_last=[0],
        )
        check(
            "SpaceToDepth", "copy_space_to_depth", [numbers((2, 3, 6, 4))], attrs, channels_last=[0]
        )


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pad(mode, dtype):
    for shape, pads in [
        ((4, 5), [1, 2, 3, 4]),
        ((3, 4, 5), [0, 1, 0, 2, 0, 3]),
        ((7,), [3, 2]),
        ((4, 6), [-1, 2, 1, -2]),
    ]:
        x = numbers(shape, dtype)
        check(
            "Pad",
            "copy_pad",
            [x, np.array(pads), np.array(2, dtype)],
            {"mode": mode},
            as_attrs={"pads": 1, "value": 2},
        )


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_gather_family(index_type):
    x = numbers((4, 5, 6))
    for axis in (0, 1, -1):
        at = rng.integers(-4, 4, (2, 3)).astype(index_type)
        check("Gather", "copy_gather", [x, at], {"axis": axis})
        shape = [4, 5, 6]
        shape[axis] = 3
        at = rng.integers(-4, 4, shape).astype(index_type)
        check("GatherElements", "copy_gather_elements", [x, at], {"axis": axis})
    check("Gather", "copy_gather", [x, np.array(2, index_type)], {"axis": 1})
    check("GatherND", "copy_gather_nd", [x, rng.integers(0, 4, (7, 2)).astype(index_type)])
    check(
        "GatherND",
        "copy_gather_nd",
        [x, rng.integers(0, 4, (4, 3, 1)).astype(index_type)],
        {"batch_dims": 1},
    )
    at = np.array([[0, 1], [3, 4], [2, 2]], index_type)
    check("ScatterND", "copy_scatter_nd", [x, at, numbers((3, 6))])
    at = np.stack([rng.permutation(4) for _ in range(5)], 1)[:3].astype(index_type)
    check(
        "ScatterElements",
        "copy_scatter_elements",
        [x, at[:, :, None], numbers((3, 5, 1))],
        {"axis": 0},
    )


def test_indices_out_of_range_do_no_harm():
    x, at = numbers((4, 6)), np.array([9, -9, 1, 2**62])
    (y,) = run_step("Gather", "copy_gather", [x, at], [np.zeros((4, 6), np.float32)], {"axis": 0})
    assert np.array_equal(
        y, np.stack([np.zeros(6), np.zeros(6), x[1], np.zeros(6)]).astype(np.float32)
    )


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.int8, np.float64])
@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Min", "Max"])
def test_any_arithmetic(op, dtype):
    a, b = numbers((3, 5, 700), dtype), numbers((5, 1), dtype)
    b = np.where(b == 0, 1, b).astype(dtype)
    check(op, "any_binary", [a, b])


@pytest.mark.parametrize("op", ["Mod", "Pow", "BitwiseAnd", "BitwiseOr", "BitwiseXor"])
def test_integer_arithmetic(op):
    a, b = rng.integers(-50, 50, (4, 33)), rng.integers(1, 5, (33,))
    check(op, "any_binary", [a, b])


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8])
@pytest.mark.parametrize(
    "op", ["Equal", "NotEqual", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"]
)
def test_compare(op, dtype):
    a = rng.integers(0, 4, (3, 40)).astype(dtype)
    check(op, "any_binary", [a, rng.integers(0, 4, (40,)).astype(dtype)])


def test_logic_and_where():
    a, b = rng.integers(0, 2, (3, 40)).astype(bool), rng.integers(0, 2, (3, 1)).astype(bool)
    for op in ("And", "Or", "Xor"):
        check(op, "any_binary", [a, b])
    check("Not", "any_unary", [a])
    for dtype in TYPES:
        check("Where", "any_where", [a, numbers((40,), dtype), numbers((3, 40), dtype)])
    x = rng.integers(-9, 9, (41,))
    for op in ("Neg", "Abs", "Sign"):
        check(op, "any_unary", [x])
    check("IsNaN", "any_unary", [np.array([1, np.nan, np.inf], np.float32)])


CAST = [np.float32, np.float16, np.float64, np.int8, np.uint8, np.int32, np.int64, np.bool_]


@pytest.mark.parametrize("source", CAST)
@pytest.mark.parametrize("to", CAST)
def test_cast(source, to):
    x = rng.normal(0, 60, 1500)
    x = (np.abs(x) if np.uint8 in (source, to) else x).clip(-127, 127).astype(source)
    check("Cast", "cast", [x], {"to": DType.of(np.dtype(to))})


def test_half_precision_round_trip():
    """Every float16 survives; rounding of float32 is NumPy's."""
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    (wide,) = run_step("Cast", "cast", [every], [np.zeros(65536, np.float32)])
    assert_close(wide, every.astype(np.float32), 0, "f16 to f32")
    x = np.concatenate([rng.normal(0, s, 5000) for s in (1e-8, 1e-6, 1e-3, 1, 1e4, 1e5)]).astype(
        np.float32
    )
    (half,) = run_step("Cast", "cast", [x], [np.zeros(x.size, np.float16)])
    with np.errstate(over="ignore"):
        assert np.array_equal(half.view(np.uint16), x.astype(np.float16).view(np.uint16))


def test_double_to_half_rounds_once():
    """Doubles a hair beside the middle of two float16 values: by way of float32 they would tie."""
    steps = np.arange(1, 200, dtype=np.uint16).view(np.float16).astype(np.float64)
    usual = np.arange(0x3C00, 0x3D00, dtype=np.uint16).view(np.float16).astype(np.float64)
    middles = np.concatenate([(v[:-1] + v[1:]) / 2 for v in (steps, usual, -usual)])
    x = np.concatenate([np.nextafter(middles, -9), middles, np.nextafter(middles, 9)])
    (half,) = run_step("Cast", "cast", [x], [np.zeros(x.size, np.float16)])
    assert np.array_equal(half, x.astype(np.float16))


MODES = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"]


@pytest.mark.parametrize("isa", isas())
@pytest.mark.parametrize("coordinates", MODES)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize(mode, coordinates, isa):
    for shape, scales in [
        ((1, 3, 5, 7), [1, 1, 2, 2]),
        ((2, 18, 6, 5), [1, 1, 1.5, 0.6]),
        ((1, 33, 4, 4), [1, 1, 3, 1]),
    ]:
        x = numbers(shape) / 20
        attrs = {"mode": mode, "coordinate_transformation_mode": coordinates}
        for extra in ({}, {"nearest_mode": "floor"}, {"exclude_outside": 1}):
            check(
                "Resize",
                "f32_resize",
                [x, None, np.array(scales, np.float32)],
                {**attrs, **extra},
                channels_last=[0],
                as_attrs={"scales": 2},
                isas=[isa],
            )


@pytest.mark.parametrize("isa", isas())
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_resize_of_bytes(dtype, isa):
    for shape, scales in [((1, 3, 5, 7), [1, 1, 2, 2]), ((2, 18, 6, 5), [1, 1, 1.5, 0.6])]:
        check(
            "Resize",
            "i8_resize",
            [numbers(shape).astype(dtype), None, np.array(scales, np.float32)],
            {"mode": "nearest"},
            channels_last=[0],
            as_attrs={"scales": 2},
            isas=[isa],
        )


def test_resize_antialiased_and_by_sizes():
    x = numbers((1, 5, 16, 12))
    attrs = {"mode": "linear", "antialias": 1}
    scales = np.array([1, 1, 0.25, 0.5], np.float32)
    check(
        "Resize", "f32_resize", [x, None, scales], attrs, channels_last=[0], as_attrs={"scales": 2}
    )
    check(
        "Resize",
        "f32_resize",
        [x, None, None, np.array([1, 5, 4, 30])],
        attrs,
        channels_last=[0],
        as_attrs={"sizes": 3},
    )
