"""The ai.onnx.ml operators that prepare features: scaled, encoded, completed. Numbers only."""

from __future__ import annotations

from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import Dim, DType, TypeInfo
from ._core import REQUIRED, define_op
from ._helpers import check_word, same_type

binarizer = define_op(
    "Binarizer", inputs="x", attrs={"threshold": 0.0}, source="ai.onnx.ml Binarizer-1"
)
binarizer.infer(same_type)
binarizer.reference(lambda x, *, threshold: (x > threshold).astype(x.dtype))

scaler = define_op(
    "Scaler", inputs="x", attrs={"offset": [0.0], "scale": [1.0]}, source="ai.onnx.ml Scaler-1"
)
scaler.infer(lambda x, **_: TypeInfo(DType.F32, x.shape))
scaler.reference(
    lambda x, *, offset, scale: (
        (x.astype(np.float32) - np.array(offset, np.float32)) * np.array(scale, np.float32)
    )
)

normalizer = define_op(
    "Normalizer", inputs="x", attrs={"norm": "MAX"}, source="ai.onnx.ml Normalizer-1"
)
normalizer.infer(lambda x, **_: TypeInfo(DType.F32, x.shape))


@normalizer.reference
def _(x: np.ndarray, *, norm: str) -> np.ndarray:
    """y = x / its norm along the last axis; MAX is the largest value, not the largest magnitude"""
    check_word("norm", norm, "MAX", "L1", "L2")
    x = x.astype(np.float32)
    if norm == "MAX":
        size = x.max(-1, keepdims=True)
    elif norm == "L1":
        size = np.abs(x).sum(-1, keepdims=True)
    else:
        size = np.sqrt(np.square(x).sum(-1, keepdims=True))
    return np.divide(x, size, out=x.copy(), where=size != 0)


imputer = define_op(
    "Imputer",
    inputs="x",
    attrs={
        "imputed_value_floats": [], "imputed_value_int64s": [],
        "replaced_value_float": 0.0, "replaced_value_int64": 0,
    },
    source="ai.onnx.ml Imputer-1",
)  # fmt: skip
imputer.infer(same_type)


@imputer.reference
def _(x: np.ndarray, **attrs: Any) -> np.ndarray:
    """y = x, with `imputed_value` (one, or one per feature) where x is `replaced_value`"""
    kind = "int64" if x.dtype.kind in "iu" else "float"
    given = np.asarray(attrs[f"imputed_value_{kind}s"], x.dtype)
    if given.size not in (1, x.shape[-1] if x.ndim else 1):
        raise ShapeError(
            tr(
                "expected one imputed value, or one for each of {size} features, found {given}",
                given=given.size,
                size=x.shape[-1],
            )
        )
    absent = attrs[f"replaced_value_{kind}"]
    return np.where(np.isnan(x) if absent != absent else x == absent, given, x).astype(x.dtype)


feature_vectorizer = define_op(
    "FeatureVectorizer",
    inputs="*xs",
    attrs={"inputdimensions": REQUIRED},
    source="ai.onnx.ml FeatureVectorizer-1",
)


@feature_vectorizer.infer
def _(*xs: TypeInfo, inputdimensions: list[int]) -> TypeInfo:
    rows: Dim = xs[0].dims[0] if xs[0].rank > 1 else 1
    return TypeInfo(DType.F32, (rows, sum(inputdimensions)))


@feature_vectorizer.reference
def _(*xs: np.ndarray, inputdimensions: list[int]) -> np.ndarray:
    """Features side by side, each input cut or filled with zeros to its number of columns"""
    parts = []
    for x, columns in zip(xs, inputdimensions, strict=True):
        flat = x.reshape(x.shape[0] if x.ndim > 1 else 1, -1)[:, :columns].astype(np.float32)
        parts.append(np.pad(flat, ((0, 0), (0, columns - flat.shape[1]))))
    return np.concatenate(parts, 1)


one_hot_encoder = define_op(
    "OneHotEncoder",
    inputs="x",
    attrs={"cats_int64s": REQUIRED, "zeros": 1},
    source="ai.onnx.ml OneHotEncoder-1, numbers only",
)
one_hot_encoder.infer(
    lambda x, *, cats_int64s, zeros: TypeInfo(DType.F32, (*x.dims, len(cats_int64s)))
)


@one_hot_encoder.reference
def _(x: np.ndarray, *, cats_int64s: list[int], zeros: int) -> np.ndarray:
    """y[…, k] = 1 where x, truncated, is category k. Raises ShapeError for another number unless
    `zeros`."""
    y = x.astype(np.int64)[..., None] == np.array(cats_int64s, np.int64)
    if not zeros and not y.any(-1).all():
        unknown = x[~y.any(-1)].ravel()[0]
        raise ShapeError(tr("{value} is not one of the encoder's categories", value=unknown))
    return y.astype(np.float32)


_NUMBERS = ("floats", "int64s")
label_encoder = define_op(
    "LabelEncoder",
    inputs="x",
    attrs={
        **{f"{side}_{kind}": [] for side in ("keys", "values") for kind in (*_NUMBERS, "strings")},
        "keys_tensor": None, "values_tensor": None, "default_float": -0.0, "default_int64": -1,
        "default_string": "_Unused", "default_tensor": None,
    },
    source="ai.onnx.ml LabelEncoder-4, numbers only",
)  # fmt: skip


def _table(attrs: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, Any]:
    """Keys, values and the default of a LabelEncoder. Raises ShapeError for strings."""

    def side(name: str) -> np.ndarray:
        if attrs[f"{name}_tensor"] is not None:
            return np.asarray(attrs[f"{name}_tensor"]).ravel()
        if attrs[f"{name}_floats"]:
            return np.array(attrs[f"{name}_floats"], np.float32)
        if attrs[f"{name}_int64s"]:
            return np.array(attrs[f"{name}_int64s"], np.int64)
        raise ShapeError(tr("{name} are strings, which are not supported", name=name))

    keys, values = side("keys"), side("values")
    if keys.size != values.size:
        raise ShapeError(
            tr(
                "expected as many keys as values, found {keys} and {values}",
                keys=keys.size,
                values=values.size,
            )
        )
    default = attrs["default_float"] if values.dtype.kind == "f" else attrs["default_int64"]
    if attrs["default_tensor"] is not None:
        default = np.asarray(attrs["default_tensor"]).ravel()[0]
    return keys, values, default


@label_encoder.infer
def _(x: TypeInfo, **attrs: Any) -> TypeInfo:
    return TypeInfo(DType.of(_table(attrs)[1]), x.shape)


@label_encoder.reference
def _(x: np.ndarray, **attrs: Any) -> np.ndarray:
    """y = values[i] where x = keys[i], the default elsewhere; NaN finds NaN"""
    keys, values, default = _table(attrs)
    y = np.full(x.shape, default, values.dtype)
    for key, value in zip(keys, values):
        same = np.isnan(x) if key != key else x == key
        y[same] = value
    return y
