"""The ai.onnx.ml domain on numbers: TreeEnsemble, Binarizer, Scaler, LabelEncoder."""

from __future__ import annotations

from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import DType, TypeInfo
from ._core import REQUIRED, define_op
from ._helpers import same_type

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
    lambda x, *, offset, scale: ((x - np.array(offset)) * np.array(scale)).astype(np.float32)
)

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
            return np.asarray(attrs[f"{name}_tensor"])
        if attrs[f"{name}_floats"]:
            return np.array(attrs[f"{name}_floats"], np.float32)
        if attrs[f"{name}_int64s"]:
            return np.array(attrs[f"{name}_int64s"], np.int64)
        raise ShapeError(tr("{name} are strings, which are not supported", name=name))

    keys, values = side("keys"), side("values")
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


tree_ensemble = define_op(
    "TreeEnsemble",
    inputs="x",
    attrs={
        "aggregate_function": 1,
        "leaf_targetids": REQUIRED,
        "leaf_weights": REQUIRED,
        "membership_values": None,
        "n_targets": 1,
        "nodes_falseleafs": REQUIRED,
        "nodes_falsenodeids": REQUIRED,
        "nodes_featureids": REQUIRED,
        "nodes_hitrates": None,
        "nodes_missing_value_tracks_true": [],
        "nodes_modes": REQUIRED,
        "nodes_splits": REQUIRED,
        "nodes_trueleafs": REQUIRED,
        "nodes_truenodeids": REQUIRED,
        "post_transform": 0,
        "tree_roots": REQUIRED,
    },
    source="ai.onnx.ml TreeEnsemble-5",
)
tree_ensemble.infer(lambda x, *, n_targets, **_: x.with_shape((x.dims[0], n_targets)))

_LEQ, _LT, _GTE, _GT, _EQ, _NEQ, _MEMBER = range(7)


class _Trees:
    """Node tables, and the walk from a root to a leaf."""

    def __init__(self, attrs: dict[str, Any]) -> None:
        self.attrs = attrs
        self.modes = np.asarray(attrs["nodes_modes"])
        self.splits = np.asarray(attrs["nodes_splits"])
        self.missing = list(attrs["nodes_missing_value_tracks_true"]) or [0] * len(self.modes)
        # members of each BRANCH_MEMBER node, separated by NaN in node order
        self.members: dict[int, np.ndarray] = {}
        if attrs["membership_values"] is not None:
            values = np.asarray(attrs["membership_values"])
            groups = np.split(values, np.flatnonzero(np.isnan(values)))
            nodes = np.flatnonzero(self.modes == _MEMBER)
            self.members = {int(n): g[~np.isnan(g)] for n, g in zip(nodes, groups)}

    def holds(self, node: int, v: float) -> bool:
        """Whether a row goes to the node's true branch."""
        mode, split = int(self.modes[node]), self.splits[node]
        if np.isnan(v) and self.missing[node]:
            return True
        if mode == _MEMBER:
            return bool(np.any(self.members.get(node, np.empty(0)) == v))
        return bool((v <= split, v < split, v >= split, v > split, v == split, v != split)[mode])

    def leaf(self, root: int, row: np.ndarray) -> int:
        """Index of the leaf that a row ends in. Raises ShapeError when the tables have a cycle."""
        a, node = self.attrs, root
        for _ in range(len(self.modes) + 1):
            side = "true" if self.holds(node, float(row[a["nodes_featureids"][node]])) else "false"
            following = a[f"nodes_{side}nodeids"][node]
            if a[f"nodes_{side}leafs"][node]:
                return int(following)
            node = following
        raise ShapeError(tr("the tree's nodes form a cycle"))


@tree_ensemble.reference
def _(x: np.ndarray, **attrs: Any) -> np.ndarray:
    """Sum (or average, minimum, maximum) of the leaf weights that each row reaches, per target"""
    trees, how = _Trees(attrs), attrs["aggregate_function"]
    if attrs["post_transform"]:
        raise ShapeError(tr("post_transform of a TreeEnsemble is not supported"))
    weights = np.asarray(attrs["leaf_weights"])
    start = {2: np.inf, 3: -np.inf}.get(how, 0.0)
    y = np.full((x.shape[0], attrs["n_targets"]), start, x.dtype)
    combine = {2: np.minimum, 3: np.maximum}.get(how, np.add)
    for i, row in enumerate(x):
        for root in attrs["tree_roots"]:
            leaf = trees.leaf(root, row)
            target = attrs["leaf_targetids"][leaf]
            y[i, target] = combine(y[i, target], weights[leaf])
    if how == 0:
        y /= max(1, len(attrs["tree_roots"]))
    return np.where(np.isinf(y), 0, y).astype(x.dtype)
