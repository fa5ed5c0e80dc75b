"""Switch and Merge of TensorFlow 1: the branch that is taken, or both and a selection."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.errors import UnsupportedOperatorError

from tests.importers.golden_runs import run_graph
from tests.importers.tiny_tensorflow import const, node, placeholder, tensor_proto
from tests.importers.wire import message

X = np.array([[1.5, -2.0, 3.0]], np.float32)
F32 = np.float32


def conditional(*predicate: bytes, name: str = "p") -> list[bytes]:
    """tf.cond(p, lambda: x * 2 + 1, lambda: -x) as TensorFlow 1 writes it: constants of a branch
    wait for the branch's Identity."""
    return [
        placeholder("x", (1, 3)),
        *predicate,
        node("pred_id", "Identity", name, T=np.bool_),
        node("switch", "Switch", name, name, T=np.bool_),
        node("switch_t", "Identity", "switch:1", T=np.bool_),
        node("switch_f", "Identity", "switch", T=np.bool_),
        node("two", "Const", "^switch_t", dtype=F32, value=_tensor(2)),
        node("one", "Const", "^switch_t", dtype=F32, value=_tensor(1)),
        node("xs", "Switch", "x", "pred_id", T=F32),
        node("mul", "Mul", "xs:1", "two", T=F32),
        node("yes", "AddV2", "mul", "one", T=F32),
        node("no", "Neg", "xs", T=F32),
        node("merge", "Merge", "no", "yes", T=F32, N=2),
        node("y", "Abs", "merge", T=F32),
    ]


def _tensor(number: float) -> bytes:
    return message((8, tensor_proto(np.array(number, np.float32))))


def answers(graph, **feeds: np.ndarray) -> dict[str, np.ndarray]:
    return run_graph(graph, feeds)


@pytest.mark.parametrize("given", ["default", "input", "negated input"])
def test_prelu_and_dropout_as_mtcnn_has_them(tensorflow_imported, given):
    """PReLU as relu(x) + a·−relu(−x); the branch of training draws numbers, and is not taken.
    An input that would switch training on is no input of the model."""
    slope = np.array([0.25, -0.5, 2.0], np.float32)
    predicate = {
        "default": [const("c", np.array(False)),
                    node("is_training", "PlaceholderWithDefault", "c", dtype=np.bool_)],
        "input": [placeholder("is_training", (), np.bool_)],
        "negated input": [placeholder("is_test", (), np.bool_),
                          node("is_training", "LogicalNot", "is_test")],
    }  # fmt: skip
    graph = tensorflow_imported([
        placeholder("x", (1, 3)), const("a", slope), *predicate[given],
        node("above", "Relu", "x", T=F32), node("minus", "Neg", "x", T=F32),
        node("under", "Relu", "minus", T=F32), node("back", "Neg", "under", T=F32),
        node("sloped", "Mul", "a", "back", T=F32), node("prelu", "AddV2", "above", "sloped", T=F32),
        node("pred_id", "Identity", "is_training", T=np.bool_),
        node("switch", "Switch", "is_training", "is_training", T=np.bool_),
        node("switch_t", "Identity", "switch:1", T=np.bool_),
        node("shape", "Const", "^switch_t", dtype=np.int32,
             value=message((8, tensor_proto(np.array([1, 3], np.int32))))),
        node("xs", "Switch", "prelu", "pred_id", T=F32),
        node("drawn", "RandomUniform", "shape", T=np.int32, dtype=F32),
        node("dropped", "Mul", "xs:1", "drawn", T=F32), node("kept", "Identity", "xs", T=F32),
        node("merge", "Merge", "kept", "dropped", T=F32, N=2), node("y", "Abs", "merge", T=F32),
    ])  # fmt: skip
    (found,) = answers(graph, x=X).values()
    np.testing.assert_array_equal(found, np.abs(np.where(X > 0, X, slope * X)))
    fixed = {"default": [], "input": ["is_training", "false"], "negated input": ["is_test", "true"]}
    said = " ".join(graph.metadata.get("warnings", []))
    assert all(word in said for word in fixed[given]) and bool(said) == bool(fixed[given])


def test_numbers_drawn_outside_of_training_are_refused(tensorflow_imported):
    nodes = [const("s", np.array([1, 3], np.int32)), placeholder("x", (1, 3)),
             node("drawn", "RandomUniform", "s", T=np.int32, dtype=F32),
             node("y", "Mul", "x", "drawn", T=F32)]  # fmt: skip
    with pytest.raises(UnsupportedOperatorError, match=r"RandomUniform.*is_training\) as false"):
        tensorflow_imported(nodes)


@pytest.mark.parametrize("taken", [True, False])
@pytest.mark.parametrize("through", ["Const", "PlaceholderWithDefault", "LogicalNot"])
def test_a_constant_predicate_takes_its_branch(tensorflow_imported, taken, through):
    known = const("c", np.array(taken != (through == "LogicalNot")))
    if through == "Const":
        predicate, name = [known], "c"
    elif through == "LogicalNot":
        predicate, name = [known, node("p", "LogicalNot", "c")], "p"
    else:
        shape = {"dtype": np.bool_}
        predicate, name = [known, node("p", "PlaceholderWithDefault", "c", **shape)], "p"
    graph = tensorflow_imported(conditional(*predicate, name=name))
    assert not {n.op for n in graph.nodes} & {"Where", "Neg" if taken else "Add"}
    (found,) = answers(graph, x=X).values()
    np.testing.assert_array_equal(found, np.abs(X * 2 + 1 if taken else -X))


@pytest.mark.parametrize("taken", [True, False])
def test_a_computed_predicate_selects(tensorflow_imported, taken):
    graph = tensorflow_imported(conditional(placeholder("p", (), np.bool_)))
    (found,) = answers(graph, x=X, p=np.array(taken)).values()
    np.testing.assert_array_equal(found, np.abs(X * 2 + 1 if taken else -X))


def test_operators_of_the_branch_that_is_not_taken_need_not_be_known(tensorflow_imported):
    nodes = conditional(const("c", np.array(False)), name="c")
    at = next(i for i, n in enumerate(nodes) if b"Mul" in n)
    nodes[at] = node("mul", "NobodyKnowsThis", "xs:1", "two")
    nodes.append(node("update", "NobodyKnowsThatEither", "xs:1"))  # a leaf of training
    (found,) = answers(tensorflow_imported(nodes), x=X).values()
    np.testing.assert_array_equal(found, np.abs(-X))


def test_an_output_of_one_branch_is_refused(tensorflow_imported):
    nodes = [*conditional(placeholder("p", (), np.bool_)), node("z", "Exp", "xs:1", T=F32)]
    with pytest.raises(UnsupportedOperatorError, match="z is computed in one branch"):
        tensorflow_imported(nodes)
