"""A launch whose sizes do not fit its memory: of that layer, no verdict on its kernel."""

from __future__ import annotations

import pytest
from lite_engine import Predictor, settings
from lite_engine.backends.opencl import ways
from lite_engine.backends.opencl.launch import Launch
from lite_engine.runtime.inputs import random_feeds

from tests.small_models import classifier

pytestmark = pytest.mark.opencl


def test_other_models_keep_the_kernel(tmp_path, monkeypatch) -> None:
    graph, own = classifier(), ways.launches_of
    feeds = random_feeds(graph)

    def larger(step, plan, target) -> list[Launch]:
        made = own(step, plan, target)
        if step.kernel == "softmax":
            made[-1].args = [10_000 * x if type(x) is int else x for x in made[-1].args]
        return made

    def placed() -> str:
        predictor = Predictor(graph, "opencl")
        predictor.run(feeds)
        (step,) = [s for s in predictor.plan().steps if s.name == "prob"]
        return step.backend

    with settings.override(LITE_CACHE_DIR=str(tmp_path)):
        with monkeypatch.context() as patched:
            patched.setattr(ways, "launches_of", larger)
            with pytest.warns(UserWarning, match="softmax does not run with these sizes"):
                assert placed() != "opencl"
        assert placed() == "opencl"
