"""Integer convolutions in NumPy: inputs, attributes and the exact result."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from ..oracles import conv, deconv
from .cases_int8 import DEPTHWISE, I8, U8

pytestmark = pytest.mark.cpu


def requantise(acc, scale, zero, dtype, low=-np.inf, high=np.inf, added=0):
    """clamp(round_half_even(float32(acc) * scale + added) + zero), float32 all the way."""
    info = np.iinfo(dtype)
    q = np.rint(acc.astype(np.float32) * scale + added).astype(np.float64) + zero
    return np.clip(q, max(info.min, low), min(info.max, high)).astype(dtype)


def quant_case(rng, depth, channels, x_type, w_type, y_type, names=("x", "w")) -> dict[str, Any]:
    x, w = names
    info = np.iinfo(x_type)
    return {
        f"{x}_scale": float(np.float32(0.02)),
        f"{x}_zero_point": int(rng.integers(info.min, info.max + 1)),
        f"{w}_scale": (rng.random(channels).astype(np.float32) * 0.02 + 0.001).tolist(),
        f"{w}_zero_point": [128 if w_type is U8 else 0],
        "y_scale": float(np.float32(0.03 * np.sqrt(depth))),
        "y_zero_point": 120 if y_type is U8 else -5,
    }


def scales(quant, names=("x", "w")) -> np.ndarray:
    x, w = names
    product = np.float32(quant[f"{x}_scale"]) * np.array(quant[f"{w}_scale"], np.float32)
    return product / np.float32(quant["y_scale"])


def weight_zeros(rng, kind, channels) -> np.ndarray:
    """Zero points of u8 weights."""
    if kind == "some":
        return rng.integers(0, 256, channels)
    return np.full(channels, {"near": 127}.get(kind, kind))


def int_conv_case(kernel, x_dims, out_c, k, options, x_type, w_type, y_type):
    """(inputs, attributes, expected output) of one QLinearConv; constants are at 3 and 8."""
    rng = np.random.default_rng(3)
    options = {"group": x_dims[3] if kernel == DEPTHWISE else 1, **options}
    residual, sum_zero = options.pop("residual", None), options.pop("sum_zero", None)
    residual_zero, y_zero = options.pop("residual_zero", 3), options.pop("y_zero", None)
    info = np.iinfo(x_type)
    x = rng.integers(info.min, info.max + 1, x_dims).astype(x_type)
    w = rng.integers(-127, 128, (out_c, x_dims[3] // options["group"], *k)).astype(np.int64)
    zeros = weight_zeros(rng, options.pop("zeros", 128), out_c)
    if (zeros != 128).any():
        w.flat[::7], w.flat[1::7] = 127, -128
    w += 128  # as stored in u8; zeros too
    w -= zeros.reshape(-1, 1, 1, 1)
    if (kept := options.pop("kept", 1)) < 1:  # a share of the weights that are not 0
        w *= rng.random(w.shape) < kept
    b = rng.integers(-3000, 3000, out_c).astype(np.int32)
    quant = quant_case(rng, w[0].size, out_c, x_type, w_type, y_type)
    if y_zero is not None:
        quant["y_zero_point"] = y_zero
    geometry = {n: v for n, v in options.items() if not n.startswith("activation")}
    acc = conv(x.astype(np.int64) - quant["x_zero_point"], w, **geometry) + b
    low, high, added, behind = -np.inf, np.inf, 0, []
    if residual:
        limits = np.iinfo(residual)
        r = rng.integers(limits.min, limits.max + 1, acc.shape).astype(residual)
        quant |= {"residual_scale": float(np.float32(0.027)), "residual_zero_point": residual_zero}
        ratio = np.float32(quant["residual_scale"]) / np.float32(quant["y_scale"])
        added, behind = (r.astype(np.int32) - residual_zero).astype(np.float32) * ratio, [r]
    if options.get("activation") == "Relu":
        low = quant["y_zero_point"]
    elif "activation" in options:
        low, high = (
            np.rint(np.float32(v) / np.float32(quant["y_scale"])) + quant["y_zero_point"]
            for v in options["activation_params"]
        )
    scale = scales(quant)
    if sum_zero is not None:
        quant |= {"sum_scale": float(np.float32(quant["y_scale"] / 3)), "sum_zero_point": sum_zero}
        own = scales({**quant, "y_scale": quant["sum_scale"]})
        acc = requantise(acc, own, sum_zero, y_type).astype(np.int32) - sum_zero
        scale = np.float32(quant["sum_scale"]) / np.float32(quant["y_scale"])
    want = requantise(acc, scale, quant["y_zero_point"], y_type, low, high, added)
    quant["w_zero_point"] = (zeros - (0 if w_type is U8 else 128)).tolist()
    stored = (w + zeros.reshape(-1, 1, 1, 1) - (0 if w_type is U8 else 128)).astype(w_type)
    none = [None, None]
    return [x, *none, stored, *none, *none, b, *behind], {**options, **quant}, want


def int_deconv_case(x_dims, out_c, k, options, x_type, w_type, y_type):
    """(inputs, attributes, expected output) of one QLinearConvTranspose; constants at 3 and 8."""
    rng = np.random.default_rng(5)
    geometry = {n: v for n, v in options.items() if n not in ("activation", "zeros")}
    info = np.iinfo(x_type)
    x = rng.integers(info.min, info.max + 1, x_dims).astype(x_type)
    group = options.get("group", 1)
    stored = rng.integers(-127, 128, (x_dims[3], out_c // group, *k)) + (w_type is U8) * 128
    zeros = weight_zeros(rng, options.get("zeros", 128), out_c) - (w_type is not U8) * 128
    own = np.repeat(zeros.reshape(group, 1, -1), x_dims[3] // group, axis=1)
    w = stored - own.reshape(*stored.shape[:2], 1, 1)
    b = rng.integers(-3000, 3000, out_c).astype(np.int32)
    quant = quant_case(rng, w.size // out_c, out_c, x_type, w_type, y_type)
    acc = deconv(x.astype(np.int64) - quant["x_zero_point"], w, **geometry).astype(np.int64) + b
    low = quant["y_zero_point"] if options.get("activation") == "Relu" else -np.inf
    want = requantise(acc, scales(quant), quant["y_zero_point"], y_type, low)
    attrs = {n: v for n, v in options.items() if n != "zeros"} | quant
    attrs["w_zero_point"] = zeros.tolist()
    return [x, None, None, stored.astype(w_type), *[None] * 4, b], attrs, want


#: a and b of products of two computed matrices: broadcast batches, k that fills groups or not,
#: columns around panels, and none at all.
PRODUCTS = [
    ((1, 4), (4, 65)), ((3, 5), (5, 7)), ((2, 1, 14, 64), (2, 3, 64, 70)),
    ((4, 2, 5, 33), (2, 33, 16)), ((2, 130, 30), (30, 129)), ((2, 3, 0), (2, 0, 5)),
]  # fmt: skip


def product_cases():
    """(inputs, attributes, expected output) of QLinearMatMul: all types, zero points inside and
    at the ends of them; every third has the largest sums."""
    rng, out = np.random.default_rng(3), []
    kinds = [(a, b, y) for a in (U8, I8) for b in (U8, I8) for y in (U8, I8)]
    for number, ((a_dims, b_dims), (a_type, b_type, y_type)) in enumerate(product(PRODUCTS, kinds)):
        low, high = (np.iinfo(t) for t in (a_type, b_type))
        a = rng.integers(low.min, low.max + 1, a_dims).astype(a_type)
        b = rng.integers(high.min, high.max + 1, b_dims).astype(b_type)
        zeros = [(3, 5), (0, 0), (low.min, high.max), (low.max, high.min)][number % 4]
        if number % 3 == 0:
            a[...], b[...] = low.max, high.min
        n = b_dims[-1]
        quant = quant_case(rng, max(a_dims[-1], 1), n, a_type, b_type, y_type, ("a", "b"))
        quant |= {"a_zero_point": int(zeros[0]), "b_zero_point": [int(zeros[1])] * n}
        acc = (a.astype(np.int64) - zeros[0]) @ (b.astype(np.int64) - zeros[1])
        want = requantise(acc, scales(quant, ("a", "b")), quant["y_zero_point"], y_type)
        out.append(([a, None, None, b], quant, want))
    return out
