"""Kernels through the OpenCL loader, and through pyopencl where the loader is not found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.backends.opencl import enqueue
from lite_engine.profile import profile
from lite_engine.runtime.inputs import random_feeds

from tests.opencl.tiny import device
from tests.small_models import classifier

pytestmark = pytest.mark.opencl

SOURCE = "kernel void scale(global float *x, float by) { x[get_global_id(0)] *= by; }"


@pytest.fixture(params=["loader", "pyopencl"])
def way(request, monkeypatch) -> str:
    if request.param == "pyopencl":
        monkeypatch.setattr(enqueue, "_entry", lambda *name: None)
    return request.param


def program() -> Any:
    own = device()
    return own.cl.Program(own.context, SOURCE).build()


def test_arguments_and_times(way: str) -> None:
    own = device()
    numbers = np.arange(8, dtype=np.float32)
    buffer = own.buffer(numbers.nbytes, numbers)
    kernel = enqueue.bound(own.cl, program(), "scale", [buffer, np.float32(3)])
    assert isinstance(kernel, enqueue.Handle) == (way == "loader")
    assert enqueue.prepared(own.cl, own.queue, kernel, (8,), None)() == 0
    own.queue.finish()
    call = enqueue.prepared(own.cl, own.queue, kernel, (8,), (4,))
    event = enqueue.noted(own.cl, own.timed_queue, call)
    own.timed_queue.finish()
    queued, start, end = enqueue.span(event)
    assert 0 < queued <= start <= end
    found = np.empty_like(numbers)
    own.cl.enqueue_copy(own.queue, found, buffer)
    assert found.tolist() == [9 * n for n in range(8)]


def test_what_a_driver_refuses(way: str) -> None:
    own = device()
    buffer = own.buffer(32)
    refused = (enqueue.Refused, own.cl.Error)
    with pytest.raises(refused, match="INVALID_KERNEL_NAME"):
        enqueue.bound(own.cl, program(), "halve", [buffer])
    with pytest.raises(refused, match="INVALID_ARG_SIZE"):
        enqueue.bound(own.cl, program(), "scale", [buffer, np.float64(3)])
    kernel = enqueue.bound(own.cl, program(), "scale", [buffer, np.float32(3)])
    with pytest.raises(refused, match="INVALID_WORK_GROUP_SIZE"):
        enqueue.noted(
            own.cl, own.timed_queue, enqueue.prepared(own.cl, own.queue, kernel, (8,), (3,))
        )


def test_a_network(way: str) -> None:
    graph = classifier()
    feeds = random_feeds(graph)
    predictor = Predictor(graph, "opencl")
    wanted = Predictor(graph, "reference").run(feeds)
    for name, value in predictor.run(feeds).items():
        np.testing.assert_allclose(value, wanted[name], rtol=1e-4, atol=1e-5)
    made = profile(predictor, feeds, runs=1, roof=False)
    assert all(layer.min_ms > 0 for layer in made.layers if layer.kernel.startswith("f32_"))
