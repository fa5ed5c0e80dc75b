"""ai.onnx.ml against onnxruntime: each operator with random parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lite_engine.backends.reference import run_graph
from lite_engine.errors import LiteError
from lite_engine.importers import onnx as importer

pytest.importorskip("onnx", reason="pip install onnx")
pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
import onnx
import onnxruntime as ort
from onnx import helper

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO")
RNG = np.random.default_rng


def model(op: str, inputs: list[np.ndarray], outputs: int = 1, **attrs: Any) -> bytes:
    """One operator of ai.onnx.ml, its batch size open."""
    names = [f"x{i}" for i in range(len(inputs))]
    node = helper.make_node(
        op, names, [f"y{i}" for i in range(outputs)], domain="ai.onnx.ml", **attrs
    )
    graph = helper.make_graph(
        [node],
        op,
        [
            helper.make_tensor_value_info(
                n, helper.np_dtype_to_tensor_dtype(x.dtype), ["N", *x.shape[1:]]
            )
            for n, x in zip(names, inputs)
        ],
        [helper.make_empty_tensor_value_info(f"y{i}") for i in range(outputs)],
    )
    version = 5 if op == "TreeEnsemble" else 3
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def onnxruntime(data: bytes, inputs: list[np.ndarray]) -> list[np.ndarray]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip([i.name for i in session.get_inputs()], inputs)))


def agree(data: bytes, *inputs: np.ndarray, atol: float = 1e-5) -> None:
    """Equal labels, and scores as float32 sums in another order differ."""
    graph = importer.read_bytes(data)
    wanted = onnxruntime(data, list(inputs))
    for got, want in zip(run_graph(graph, list(inputs)), wanted, strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=atol, equal_nan=True)


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(norm: str) -> None:
    x = RNG(0).normal(size=(7, 5)).astype(np.float32)
    x[2] = 0
    agree(model("Normalizer", [x], norm=norm), x)


def test_features() -> None:
    x = RNG(1).integers(0, 4, (6, 3)).astype(np.float32)
    agree(model("Scaler", [x], offset=[0.5, 1.0, -2.0], scale=[2.0, 3.0, 0.1]), x)
    agree(model("Binarizer", [x], threshold=1.5), x)
    agree(model("OneHotEncoder", [x], cats_int64s=[0, 2, 3]), x)
    labels = {"keys_floats": [0.0, 2.0], "values_floats": [5.0, 7.0], "default_float": -3.0}
    agree(model("LabelEncoder", [x], **labels), x)
    gaps = np.where(x == 1, np.float32(np.nan), x)
    imputed = {"replaced_value_float": float("nan")}
    agree(model("Imputer", [gaps], imputed_value_floats=[9.0], **imputed), gaps)
    agree(model("Imputer", [gaps], imputed_value_floats=[9.0, 8.0, 7.0], **imputed), gaps)
    agree(model("FeatureVectorizer", [x, x], inputdimensions=[3, 3]), x, x)


def test_unknown_category_is_refused_where_the_model_says_so() -> None:
    x = np.array([[5.0]], np.float32)
    graph = importer.read_bytes(model("OneHotEncoder", [x], cats_int64s=[0, 2], zeros=0))
    with pytest.raises(LiteError, match="not one of the encoder's categories"):
        run_graph(graph, [x])


@pytest.mark.parametrize("how", TRANSFORMS)
@pytest.mark.parametrize("rows", [1, 2, 4])
def test_linear(how: str, rows: int) -> None:
    rng = RNG(rows)
    x = rng.normal(size=(9, 5)).astype(np.float32)
    weights = {
        "coefficients": rng.normal(size=rows * 5).tolist(),
        "intercepts": rng.normal(size=rows).tolist(),
        "post_transform": how,
    }
    labels = list(range(10, 10 + max(2, rows)))
    agree(model("LinearRegressor", [x], targets=rows, **weights), x)
    agree(model("LinearClassifier", [x], 2, classlabels_ints=labels, **weights), x)


KERNELS = {
    "LINEAR": [0.0, 0, 0],
    "RBF": [0.3, 0.0, 0.0],
    "POLY": [0.2, 1.0, 3.0],
    "SIGMOID": [0.1, 0.2, 0],
}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("one_class", [0, 1])
def test_svm_regressor(kernel: str, one_class: int) -> None:
    rng = RNG(3)
    x = rng.normal(size=(9, 4)).astype(np.float32)
    attrs = {
        "kernel_type": kernel,
        "kernel_params": KERNELS[kernel],
        "support_vectors": rng.normal(size=6 * 4).tolist(),
        "coefficients": rng.normal(size=6).tolist(),
        "rho": [0.3],
        "n_supports": 6,
        "one_class": one_class,
    }
    agree(model("SVMRegressor", [x], **attrs), x, atol=1e-4)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("likely", [False, True])
@pytest.mark.parametrize("sizes", [[4, 3], [3, 4, 2], [2, 3, 4, 2]])
@pytest.mark.parametrize("how", TRANSFORMS)
def test_svm_classifier(kernel: str, likely: bool, sizes: list[int], how: str) -> None:
    rng = RNG(len(sizes))
    x = rng.normal(size=(20, 4)).astype(np.float32)
    count, vectors = len(sizes), sum(sizes)
    pairs = count * (count - 1) // 2
    attrs: dict[str, Any] = {
        "kernel_type": kernel,
        "kernel_params": KERNELS[kernel],
        "support_vectors": rng.normal(size=vectors * 4).tolist(),
        "coefficients": rng.normal(size=(count - 1) * vectors).tolist(),
        "rho": rng.normal(size=pairs).tolist(),
        "vectors_per_class": sizes,
        "classlabels_ints": list(range(5, 5 + count)),
        "post_transform": how,
    }
    if likely:
        attrs |= {
            "prob_a": rng.normal(size=pairs).tolist(),
            "prob_b": rng.normal(size=pairs).tolist(),
        }
    agree(model("SVMClassifier", [x], 2, **attrs), x, atol=1e-4)


def random_trees(rng: np.random.Generator, trees: int, depth: int, features: int) -> dict[str, Any]:
    """nodes_* of complete trees with random splits, and (tree, node) of each leaf."""
    modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
    columns: dict[str, list[Any]] = {k: [] for k in (
        "treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids",
        "missing_value_tracks_true")}  # fmt: skip
    leaves = []
    for tree in range(trees):
        inner = 2**depth - 1
        for node in range(2 * inner + 1):
            is_leaf = node >= inner
            columns["treeids"].append(tree)
            columns["nodeids"].append(node)
            columns["featureids"].append(0 if is_leaf else int(rng.integers(features)))
            columns["modes"].append("LEAF" if is_leaf else str(rng.choice(modes)))
            columns["values"].append(0.0 if is_leaf else float(rng.integers(-2, 3)))
            columns["truenodeids"].append(0 if is_leaf else 2 * node + 1)
            columns["falsenodeids"].append(0 if is_leaf else 2 * node + 2)
            columns["missing_value_tracks_true"].append(0 if is_leaf else int(rng.integers(2)))
            if is_leaf:
                leaves.append((tree, node))
    return {"nodes": {f"nodes_{k}": v for k, v in columns.items()}, "leaves": leaves}


def owners(leaves: list[tuple[int, int]], name: str, ids: list[list[int]], rng: Any, low: float):
    """Weights of each leaf for the targets or classes `ids` lists for it."""
    rows = [(t, n, i) for (t, n), given in zip(leaves, ids) for i in given]
    return {
        f"{name}_treeids": [r[0] for r in rows],
        f"{name}_nodeids": [r[1] for r in rows],
        f"{name}_ids": [r[2] for r in rows],
        f"{name}_weights": rng.uniform(low, 1, len(rows)).tolist(),
    }


def samples(rng: np.random.Generator) -> np.ndarray:
    x = rng.integers(-3, 4, (40, 4)).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = np.nan
    return x


@pytest.mark.parametrize("how", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_tree_regressor(how: str, targets: int, transform: str) -> None:
    rng = RNG(7)
    trees = random_trees(rng, 5, 3, 4)
    ids = [sorted(set(rng.integers(0, targets, 2).tolist())) for _ in trees["leaves"]]
    weights = owners(trees["leaves"], "target", ids, rng, -1)
    x = samples(rng)
    attrs = {"n_targets": targets, "aggregate_function": how, "post_transform": transform}
    attrs["base_values"] = rng.normal(size=targets).tolist()
    agree(model("TreeEnsembleRegressor", [x], **trees["nodes"], **weights, **attrs), x)


@pytest.mark.parametrize("how", TRANSFORMS)
@pytest.mark.parametrize("classes", [2, 3])
def test_linear_svm_classifier(how: str, classes: int) -> None:
    rng = RNG(classes)
    x = rng.normal(size=(9, 4)).astype(np.float32)
    attrs: dict[str, Any] = {
        "coefficients": rng.normal(size=classes * 4).tolist(),
        "rho": [0.2],
        "kernel_params": [0.0, 0.0, 0.0],
        "classlabels_ints": list(range(classes)),
        "post_transform": how,
    }
    agree(model("SVMClassifier", [x], 2, **attrs), x)


#: classes that each leaf scores; how many base values
TREES = {"first": ([0], (0, 1)), "second": ([1], (0,)), "three": ([0, 1, 2], (0, 3))}


@pytest.mark.parametrize("low", [0, -1])
@pytest.mark.parametrize("kind", TREES)
@pytest.mark.parametrize("how", TRANSFORMS)
def test_tree_classifier(low: float, kind: str, how: str) -> None:
    rng = RNG(11)
    trees = random_trees(rng, 4, 3, 4)
    given, bases = TREES[kind]
    classes = 3 if kind == "three" else 2
    weights = owners(trees["leaves"], "class", [given] * len(trees["leaves"]), rng, low)
    x = samples(rng)
    for base in bases:
        attrs: dict[str, Any] = {
            "classlabels_int64s": list(range(3, 3 + classes)),
            "post_transform": how,
        }
        if base:
            attrs["base_values"] = rng.normal(size=base).tolist()
        agree(model("TreeEnsembleClassifier", [x], 2, **trees["nodes"], **weights, **attrs), x)


@pytest.mark.parametrize("op, domain, attrs", [
    ("StringNormalizer", "", {"case_change_action": "LOWER"}),
    ("TfIdfVectorizer", "", {
        "mode": "TF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0,
        "ngram_counts": [0], "ngram_indexes": [0, 1], "pool_strings": ["a", "b"],
    }),
    ("OneHotEncoder", "ai.onnx.ml", {"cats_strings": ["a", "b"]}),
])  # fmt: skip
def test_text_is_refused_in_one_line(op: str, domain: str, attrs: dict[str, Any]) -> None:
    node = helper.make_node(op, ["x"], ["y"], domain=domain, **attrs)
    x = helper.make_tensor_value_info("x", onnx.TensorProto.STRING, [2])
    graph = helper.make_graph([node], op, [x], [helper.make_empty_tensor_value_info("y")])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 3)]
    with pytest.raises(LiteError) as error:
        importer.read_bytes(helper.make_model(graph, opset_imports=opsets).SerializeToString())
    assert "x: element type string is not supported" in str(error.value)
    assert "\n" not in str(error.value)
