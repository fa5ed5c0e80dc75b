"""LITE_CHECK=1 compares every kernel with its reference while a model runs."""

from __future__ import annotations

import pytest
from lite_engine import Predictor, settings
from lite_engine.errors import LiteError
from lite_engine.runtime import host_target

from tests.small_models import attention, classifier, image

pytestmark = pytest.mark.cpu


@pytest.mark.parametrize("graph", [classifier(), attention()], ids=lambda g: g.name)
def test_right_kernels_pass(graph) -> None:
    feeds = image(graph)
    plain = Predictor(graph, host_target()).run(feeds)
    with settings.override(LITE_CHECK="1"):
        checked = Predictor(graph, host_target()).run(feeds)
    for name, array in plain.items():
        assert (checked[name] == array).all()


def test_a_wrong_kernel_is_named() -> None:
    graph = classifier()
    predictor = Predictor(graph, host_target(), faults={"pw": "swap_channels"})
    predictor.run(image(graph))  # without the check nobody notices
    with settings.override(LITE_CHECK="1"), pytest.raises(LiteError, match="LITE_CHECK: pw "):
        predictor.run(image(graph))
