"""Executables of one device share packed weights, and nothing that only looks the same."""

import gc

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.backends.opencl.constants import Constant
from lite_engine.backends.opencl.device import choose, open_device
from lite_engine.ir import DType, Graph, Value

pytestmark = pytest.mark.opencl


@pytest.fixture
def device():
    return open_device(choose())


def floats(*dims):
    return np.random.default_rng(3).standard_normal(dims).astype(np.float32)


def read(device, held, like):
    found = np.empty_like(like)
    device.cl.enqueue_copy(device.queue, found, held.buffer)
    return found


def test_the_same_array_packed_alike_is_one_buffer(device):
    array = floats(64, 64)
    constant = Constant.of(array).T.cast(DType.F16)
    first = device.weights.get(device, constant)
    assert device.weights.get(device, Constant.of(array).T.cast(DType.F16)) is first
    wanted = array.T.astype(np.float16)
    np.testing.assert_array_equal(read(device, first, np.ascontiguousarray(wanted)), wanted)


def test_another_order_type_view_or_array_is_another(device):
    array = floats(64, 64)
    others = [
        Constant.of(array), Constant.of(array).T, Constant.of(array).cast(DType.F16),
        Constant.of(array.T), Constant.of(array.reshape(32, 128)), Constant.of(array[:32]),
        Constant.of(array[32:]), Constant.of(array.view(np.int32)), Constant.of(array.copy()),
    ]  # fmt: skip
    held = [device.weights.get(device, constant) for constant in others]
    assert len({id(one.buffer) for one in held}) == len(others)
    for one, constant in zip(held, others):
        value = np.ascontiguousarray(constant.value)
        np.testing.assert_array_equal(read(device, one, value), value)


def test_an_array_written_to_in_between_is_packed_again(device):
    array = floats(64, 64)
    before = device.weights.get(device, Constant.of(array))
    array[5, 7] += 1
    after = device.weights.get(device, Constant.of(array))
    np.testing.assert_array_equal(read(device, after, array), array)
    assert not np.array_equal(read(device, before, array), array)


def test_a_buffer_that_no_one_holds_is_forgotten(device):
    array = floats(64, 64)
    held = device.weights.get(device, Constant.of(array))
    known = len(device.weights._known)
    del held
    gc.collect()
    assert len(device.weights._known) == known - 1


def test_sizes_and_predictors_of_a_model_give_the_numbers_of_one_alone():
    graph, x = Graph("two"), Value("x", DType.F32, ("n", 256))
    graph.inputs = [x]
    a, b = floats(256, 128), floats(128, 256)
    hidden = graph.add("Relu", [graph.add("MatMul", [x, graph.constant(a)]).output]).output
    graph.outputs = [graph.add("MatMul", [hidden, graph.constant(b)]).output]
    model = optimize(graph)
    predictors = [Predictor(model, "opencl") for _ in range(2)]
    for rows in (3, 40, 9):
        fed = np.random.default_rng(rows).standard_normal((rows, 256)).astype(np.float32)
        wanted = np.maximum(fed.astype(np.float64) @ a, 0) @ b
        for predictor in list(predictors):
            (found,) = predictor.run({"x": fed}).values()
            assert np.linalg.norm(found - wanted) < 1e-5 * np.linalg.norm(wanted)
        if rows == 40:
            del predictors[0], predictor  # the other one goes on
