"""Ensembles of decision trees: ai.onnx.ml TreeEnsemble and the two operators that it replaced.

All rows walk all trees at once, a level at a time, so the cost of Python is that of the deepest
tree. What the standard leaves open of two classes follows onnxruntime.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import TypeInfo
from ._classic import POST_TRANSFORMS, labels_of, transformed, two_scores
from ._core import REQUIRED, define_op
from .classic_linear import classes, rows_of

_LEQ, _LT, _GTE, _GT, _EQ, _NEQ, _MEMBER, _LEAF = range(8)
_MODES = {
    "BRANCH_LEQ": _LEQ, "BRANCH_LT": _LT, "BRANCH_GTE": _GTE, "BRANCH_GT": _GT, "BRANCH_EQ": _EQ,
    "BRANCH_NEQ": _NEQ, "LEAF": _LEAF,
}  # fmt: skip
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
#: samples that walk at once: a (block, trees) table of nodes at a time
_BLOCK = 4096


@dataclass
class Forest:
    """Nodes of all trees in one table; a leaf gives `weights[i]` to `targets[i]` for i from
    starts[node] to starts[node + 1]."""

    roots: np.ndarray
    modes: np.ndarray
    features: np.ndarray
    splits: np.ndarray
    yes: np.ndarray
    no: np.ndarray
    missing: np.ndarray
    starts: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    members: dict[int, np.ndarray]

    def check(self, columns: int, targets: int) -> None:
        """Raises ShapeError for numbers of features, nodes or targets that do not exist."""
        inner = self.modes != _LEAF
        for name, given, bound in (
            ("feature", self.features[inner], columns),
            (
                "node",
                np.concatenate([self.yes[inner], self.no[inner], self.roots]),
                self.modes.size,
            ),
            ("target", self.targets, targets),
        ):
            if given.size and not 0 <= int(given.min()) <= int(given.max()) < bound:
                raise ShapeError(
                    tr("the trees name a {name} that does not exist: there are {count}",
                       name=name, count=bound)
                )  # fmt: skip

    def leaves(self, x: np.ndarray) -> np.ndarray:
        """The leaf (N, trees) that each row ends in. Raises ShapeError when nodes form a cycle."""
        at = np.broadcast_to(self.roots, (len(x), self.roots.size)).copy()
        rows = np.arange(len(x))[:, None]
        for _ in range(self.modes.size + 1):
            modes = self.modes[at]
            if (modes == _LEAF).all():
                return at
            v, split = x[rows, self.features[at]], self.splits[at]
            holds = np.select(
                [modes == m for m in range(_MEMBER)],
                [v <= split, v < split, v >= split, v > split, v == split, v != split],
                False,
            )
            for node in np.unique(at[modes == _MEMBER]):
                holds |= (at == node) & np.isin(v, self.members.get(int(node), np.empty(0)))
            holds |= np.isnan(v) & self.missing[at]
            at = np.where(modes == _LEAF, at, np.where(holds, self.yes[at], self.no[at]))
        raise ShapeError(tr("the nodes of a tree form a cycle"))

    def scores(self, x: np.ndarray, how: str, targets: int) -> np.ndarray:
        """Aggregated leaf weights (N, targets); 0 where no leaf has one for a target."""
        x = x.reshape(x.shape[0] if x.ndim > 1 else 1, -1)
        x = x if x.dtype.kind == "f" else x.astype(np.float32)
        self.check(x.shape[1], targets)
        starts = range(0, max(1, len(x)), _BLOCK)
        return np.concatenate([self._block(x[i : i + _BLOCK], how, targets) for i in starts])

    def _block(self, x: np.ndarray, how: str, targets: int) -> np.ndarray:
        start = {"MIN": np.inf, "MAX": -np.inf}.get(how, 0.0)
        add = {"MIN": np.minimum, "MAX": np.maximum}.get(how, np.add)
        y = np.full((len(x), targets), start, self.weights.dtype)
        written = np.zeros(y.shape, bool)
        rows = np.arange(len(x))
        for leaf in self.leaves(x).T:  # tree after tree, as sums are rounded
            first, counts = self.starts[leaf], self.starts[leaf + 1] - self.starts[leaf]
            for k in range(int(counts.max(initial=0))):
                has = counts > k
                at = (rows[has], self.targets[first[has] + k])
                add.at(y, at, self.weights[first[has] + k])
                written[at] = True
        if how == "AVERAGE":
            y /= max(1, self.roots.size)
        return np.where(written, y, 0)


# ---- TreeEnsemble: leaves in tables of their own

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
tree_ensemble.infer(lambda x, *, n_targets, **_: x.with_shape((rows_of(x), n_targets)))


def _forest(a: dict[str, Any]) -> Forest:
    """Leaf i becomes node (number of inner nodes) + i."""
    modes = np.asarray(a["nodes_modes"], np.int64)
    count, leaves = modes.size, len(a["leaf_targetids"])

    def child(side: str) -> np.ndarray:
        ids = np.asarray(a[f"nodes_{side}nodeids"], np.int64)
        is_leaf = np.asarray(a[f"nodes_{side}leafs"], bool)
        if ids.size and ids.min() < 0:
            raise ShapeError(tr("a node of a tree has a negative number"))
        return np.concatenate([ids + count * is_leaf, np.zeros(leaves, np.int64)])

    def with_leaves(values: Any, fill: Any, dtype: Any) -> np.ndarray:
        flat = np.asarray(values, dtype)
        return np.concatenate([flat, np.full(leaves, fill, flat.dtype)])

    members: dict[int, np.ndarray] = {}
    if a["membership_values"] is not None:  # sets of BRANCH_MEMBER nodes, each ended by NaN
        values = np.asarray(a["membership_values"])
        sets = np.split(values, np.flatnonzero(np.isnan(values)))
        members = {int(n): s[~np.isnan(s)] for n, s in zip(np.flatnonzero(modes == _MEMBER), sets)}
    return Forest(
        np.asarray(a["tree_roots"], np.int64),
        with_leaves(modes, _LEAF, np.int64),
        with_leaves(a["nodes_featureids"], 0, np.int64),
        with_leaves(a["nodes_splits"], 0, None),
        child("true"),
        child("false"),
        with_leaves(a["nodes_missing_value_tracks_true"] or [0] * count, 0, bool),
        np.concatenate([np.zeros(count, np.int64), np.arange(leaves + 1)]),
        np.asarray(a["leaf_targetids"], np.int64),
        np.asarray(a["leaf_weights"]).ravel(),
        members,
    )


def _named(names: tuple[str, ...], index: int, attribute: str) -> str:
    if not 0 <= index < len(names):
        raise ShapeError(
            tr("{attribute} must be below {count}, got {index}",
               attribute=attribute, count=len(names), index=index)
        )  # fmt: skip
    return names[index]


@tree_ensemble.reference
def _(x: np.ndarray, **attrs: Any) -> np.ndarray:
    """Sum, average, minimum or maximum of the leaf weights that each row reaches, per target"""
    how = _named(_AGGREGATES, attrs["aggregate_function"], "aggregate_function")
    y = _forest(attrs).scores(x, how, attrs["n_targets"])
    transform = _named(POST_TRANSFORMS, attrs["post_transform"], "post_transform")
    return transformed(y, transform).astype(x.dtype)


# ---- TreeEnsembleRegressor and -Classifier: nodes named by tree and number

_NODES = {
    "nodes_falsenodeids": REQUIRED, "nodes_featureids": REQUIRED, "nodes_hitrates": [],
    "nodes_missing_value_tracks_true": [], "nodes_modes": REQUIRED, "nodes_nodeids": REQUIRED,
    "nodes_treeids": REQUIRED, "nodes_truenodeids": REQUIRED, "nodes_values": REQUIRED,
    "base_values": [], "post_transform": "NONE",
}  # fmt: skip


def _keyed_forest(a: dict[str, Any], owner: str) -> Forest:
    """`owner` is target or class: the prefix of what leaves give."""
    trees, nodes = (np.asarray(a[f"nodes_{k}ids"], np.int64) for k in ("tree", "node"))
    numbers = {key: i for i, key in enumerate(zip(trees.tolist(), nodes.tolist()))}
    try:
        modes = np.array([_MODES[m] for m in a["nodes_modes"]], np.int64)
    except KeyError as error:
        raise ShapeError(tr("the mode {mode} of a tree node is not known", mode=error)) from None
    inner = modes != _LEAF

    def found(tree: int, node: int) -> int:
        number = numbers.get((tree, node))
        if number is None:
            raise ShapeError(tr("tree {tree} has no node {node}", tree=tree, node=node))
        return number

    def child(side: str) -> np.ndarray:
        ids = a[f"nodes_{side}nodeids"]
        return np.array(
            [found(t, n) if i else 0 for t, n, i in zip(trees.tolist(), ids, inner, strict=True)],
            np.int64,
        )

    yes, no = child("true"), child("false")
    roots = np.setdiff1d(np.arange(modes.size), np.concatenate([yes[inner], no[inner]]))
    owners = zip(a[f"{owner}_treeids"], a[f"{owner}_nodeids"], strict=True)
    leaf = np.array([found(t, n) for t, n in owners], np.int64)
    order = np.argsort(leaf, kind="stable")
    return Forest(
        roots,
        modes,
        np.asarray(a["nodes_featureids"], np.int64),
        np.asarray(a["nodes_values"], _float(a["nodes_values"])),
        yes,
        no,
        np.asarray(a["nodes_missing_value_tracks_true"] or [0] * modes.size, bool),
        np.searchsorted(leaf[order], np.arange(modes.size + 1)),
        np.asarray(a[f"{owner}_ids"], np.int64)[order],
        np.asarray(a[f"{owner}_weights"], _float(a[f"{owner}_weights"]))[order],
        {},
    )


def _float(values: Any) -> Any:
    """float64 tables are tensors; lists of attributes are float32."""
    return values.dtype if isinstance(values, np.ndarray) else np.float32


tree_regressor = define_op(
    "TreeEnsembleRegressor",
    inputs="x",
    attrs={
        **_NODES, "aggregate_function": "SUM", "n_targets": 1, "target_ids": REQUIRED,
        "target_nodeids": REQUIRED, "target_treeids": REQUIRED, "target_weights": REQUIRED,
    },
    source="ai.onnx.ml TreeEnsembleRegressor-5",
)  # fmt: skip


@tree_regressor.infer
def _(x: TypeInfo, *, n_targets: int, **_: Any) -> TypeInfo:
    return classes(x, n_targets)[1]


@tree_regressor.reference
def _(x: np.ndarray, **attrs: Any) -> np.ndarray:
    """Aggregated weights of the leaves that each row reaches, and base_values"""
    forest = _keyed_forest(attrs, "target")
    y = forest.scores(x, attrs["aggregate_function"], attrs["n_targets"])
    y = y + np.asarray(attrs["base_values"] or 0, y.dtype)
    return transformed(y, attrs["post_transform"]).astype(np.float32)


tree_classifier = define_op(
    "TreeEnsembleClassifier",
    inputs="x",
    outputs="label scores",
    attrs={
        **_NODES, "class_ids": REQUIRED, "class_nodeids": REQUIRED, "class_treeids": REQUIRED,
        "class_weights": REQUIRED, "classlabels_int64s": REQUIRED,
    },
    source="ai.onnx.ml TreeEnsembleClassifier-5",
)  # fmt: skip
tree_classifier.infer(
    lambda x, *, classlabels_int64s, **_: classes(x, max(2, len(classlabels_int64s)))
)


@tree_classifier.reference
def _(x: np.ndarray, **attrs: Any) -> Any:
    """The class with the largest sum of leaf weights, and the sums; trees that score one of two
    classes only decide at 0.5, or at 0 where they have negative weights"""
    labels, base = attrs["classlabels_int64s"], attrs["base_values"]
    forest, how = _keyed_forest(attrs, "class"), attrs["post_transform"]
    count = max(2, len(labels))
    y = forest.scores(x, "SUM", count)
    single = len(labels) <= 2 and len(set(forest.targets.tolist())) == 1
    if not single:
        y = y + np.asarray(base or 0, y.dtype)
        return labels_of(labels, y.argmax(-1)), transformed(y, how).astype(np.float32)
    column = int(forest.targets[0])
    score = y[:, column] + (y.dtype.type(base[min(column, len(base) - 1)]) if base else 0)
    positive = forest.weights.min(initial=0) >= 0
    second = (score > (0.5 if positive else 0)).astype(np.int64)
    if column:
        scores = transformed(y, how)
    else:
        scores = two_scores(score, how, signed=not positive)
    return labels_of(labels if len(labels) == 2 else [0, 1], second), scores.astype(np.float32)
