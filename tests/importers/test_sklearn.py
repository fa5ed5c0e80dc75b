"""scikit-learn's exports (skl2onnx) against onnxruntime, labels exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lite_engine.backends.reference import run_graph
from lite_engine.importers import onnx as importer

pytest.importorskip("skl2onnx", reason="pip install skl2onnx scikit-learn")
pytest.importorskip("sklearn", reason="pip install scikit-learn")
pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
from skl2onnx import to_onnx
from sklearn import (
    cluster,
    compose,
    decomposition,
    discriminant_analysis,
    ensemble,
    gaussian_process,
    impute,
    linear_model,
    naive_bayes,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    svm,
    tree,
)

from tests.importers.test_classic_models import onnxruntime

RNG = np.random.default_rng(5)
X = RNG.normal(size=(90, 6)).astype(np.float32)
TWO, THREE = (X[:, 0] > 0).astype(np.int64), RNG.integers(0, 3, 90) * 2 + 5
REAL = (X @ RNG.normal(size=6)).astype(np.float32)

CLASSIFIERS = [
    linear_model.LogisticRegression(),
    linear_model.SGDClassifier(loss="log_loss", random_state=0),
    linear_model.RidgeClassifier(),
    linear_model.Perceptron(),
    svm.LinearSVC(),
    svm.SVC(probability=False, random_state=0),
    svm.SVC(kernel="poly", random_state=0),
    svm.NuSVC(nu=0.3, random_state=0),
    tree.DecisionTreeClassifier(max_depth=4, random_state=0),
    ensemble.RandomForestClassifier(8, random_state=0),
    ensemble.ExtraTreesClassifier(8, random_state=0),
    ensemble.GradientBoostingClassifier(n_estimators=8, random_state=0),
    ensemble.AdaBoostClassifier(n_estimators=5, random_state=0),
    ensemble.BaggingClassifier(n_estimators=3, random_state=0),
    naive_bayes.GaussianNB(),
    naive_bayes.BernoulliNB(),
    neighbors.KNeighborsClassifier(3),
    neural_network.MLPClassifier(hidden_layer_sizes=(8,), max_iter=30, random_state=0),
    discriminant_analysis.LinearDiscriminantAnalysis(),
    discriminant_analysis.QuadraticDiscriminantAnalysis(),
]
REGRESSORS = [
    linear_model.LinearRegression(),
    linear_model.Lasso(0.01),
    linear_model.PoissonRegressor(max_iter=300),
    svm.SVR(),
    svm.NuSVR(kernel="sigmoid"),
    svm.LinearSVR(),
    tree.DecisionTreeRegressor(max_depth=4),
    ensemble.RandomForestRegressor(8, random_state=0),
    ensemble.GradientBoostingRegressor(n_estimators=8, random_state=0),
    neighbors.KNeighborsRegressor(3),
    neural_network.MLPRegressor(hidden_layer_sizes=(8,), max_iter=30, random_state=0),
    gaussian_process.GaussianProcessRegressor(),
]
TRANSFORMERS = [
    preprocessing.StandardScaler(),
    preprocessing.MinMaxScaler(clip=True),
    preprocessing.RobustScaler(),
    preprocessing.MaxAbsScaler(),
    preprocessing.Normalizer("l1"),
    preprocessing.Normalizer("max"),
    preprocessing.Binarizer(threshold=0.2),
    preprocessing.PolynomialFeatures(2),
    preprocessing.KBinsDiscretizer(3, encode="ordinal"),
    preprocessing.PowerTransformer(),
    impute.SimpleImputer(),
    decomposition.PCA(3),
    decomposition.TruncatedSVD(3),
    cluster.KMeans(3, random_state=0),
    ensemble.IsolationForest(n_estimators=5, random_state=0),
    svm.OneClassSVM(),
]


def name(given: Any) -> str:
    return type(given).__name__


def agree(model: Any, x: np.ndarray = X, **options: Any) -> None:
    """Labels and integers are equal; floats as float32 sums in another order differ."""
    opsets = {"": 20, "ai.onnx.ml": 3}  # IsolationForest asks for it
    data = to_onnx(model, x[:1], target_opset=opsets, options={id(model): options})
    data = data.SerializeToString()
    got = run_graph(importer.read_bytes(data), [x])
    for ours, theirs in zip(got, onnxruntime(data, [x]), strict=True):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=name)
@pytest.mark.parametrize("target", [TWO, THREE], ids=["two", "three"])
def test_classifier(model: Any, target: np.ndarray) -> None:
    options = {} if name(model) == "LinearSVC" else {"zipmap": False}
    agree(model.fit(X, target), **options)


@pytest.mark.parametrize("model", REGRESSORS, ids=name)
def test_regressor(model: Any) -> None:
    agree(model.fit(X, REAL if name(model) != "PoissonRegressor" else np.abs(REAL)))


@pytest.mark.parametrize("model", TRANSFORMERS, ids=name)
def test_transformer(model: Any) -> None:
    agree(model.fit(X))


def test_pipeline_of_columns() -> None:
    x = np.concatenate([X[:, :3], RNG.integers(0, 4, (90, 2)).astype(np.float32)], 1)
    columns = compose.ColumnTransformer(
        [
            ("scaled", preprocessing.StandardScaler(), [0, 1, 2]),
            ("coded", preprocessing.OneHotEncoder(handle_unknown="ignore"), [3, 4]),
        ]
    )
    model = pipeline.make_pipeline(columns, linear_model.LogisticRegression()).fit(x, TWO)
    data = to_onnx(model, x[:1], options={"zipmap": False}).SerializeToString()
    for ours, theirs in zip(run_graph(importer.read_bytes(data), [x]), onnxruntime(data, [x])):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_names_of_classes_become_labels() -> None:
    """Without options an export names classes with text and ends in a ZipMap."""
    names = np.array(["ash", "birch", "cedar"])[RNG.integers(0, 3, 90)]
    model = linear_model.LogisticRegression().fit(X, names)
    data = to_onnx(model, X[:1]).SerializeToString()
    graph = importer.read_bytes(data)
    assert graph.metadata["labels"] == ["ash", "birch", "cedar"]
    numbers, scores = run_graph(graph, [X])
    wanted, maps = onnxruntime(data, [X])
    assert [graph.metadata["labels"][i] for i in numbers] == list(wanted)
    table = [[row[label] for label in graph.metadata["labels"]] for row in maps]
    np.testing.assert_allclose(scores, table, atol=1e-5)
