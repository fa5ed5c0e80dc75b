"""Stages' times, and layers inside them."""

from __future__ import annotations

import pytest
from lite_engine import optimize
from lite_engine.errors import UsageError
from lite_engine.pipeline import Pipeline, profile
from lite_engine.runtime import host_target

from tests.small_models import classifier

pytestmark = pytest.mark.cpu


def test_stages_and_the_layers_inside_them(photo) -> None:
    model = optimize(classifier())
    pipeline = Pipeline([{"model": model, "name": name} for name in ("first", "second")], "two")
    steps: list[tuple[int, int]] = []
    made = profile(pipeline, photo, host_target(), runs=3, progress=lambda *at: steps.append(at))
    assert [s.name for s in made.stages] == ["first", "second"] and made.runs == 3
    assert made.decode_ms + sum(s.ms for s in made.stages) <= made.total_ms * 1.5
    for stage in made.stages:
        assert stage.pictures == 1 and sum(stage.parts.values()) <= stage.ms * 1.5
        assert stage.layers is not None and stage.layers.backend == host_target()
        assert {row.op for row in stage.layers.layers} >= {"Conv"}
    assert steps[-1] == (6, 6) and [done for done, _ in steps] == sorted(d for d, _ in steps)
    assert made.to_dict()["stages"][0]["layers"]["model"] == stage.layers.model
    assert made.slowest in made.stages


def test_without_layers_and_without_runs(photo) -> None:
    pipeline = Pipeline([{"model": optimize(classifier()), "name": "m"}], "one")
    assert profile(pipeline, photo, runs=1, layers=False).stages[0].layers is None
    with pytest.raises(UsageError, match="at least 1, got 0"):
        profile(pipeline, photo, runs=0)


def test_a_stage_that_nothing_reached_has_no_layers(photo) -> None:
    """The first model finds no boxes, so that nothing is cut out for the second."""
    model = optimize(classifier())
    stages = [{"model": model, "name": "find", "read": {"kind": "top"}}, {"crop": {}},
              {"model": model, "name": "read"}]  # fmt: skip
    made = profile(Pipeline(stages, "none"), photo, runs=1)
    assert made.stages[2].pictures == 0 and made.stages[2].layers is None


def test_other_models_in_the_same_stages(photo) -> None:
    turned = classifier()
    weights = next(n for n in turned.nodes if n.name == "fc").inputs[1]
    weights.const = -weights.const
    model, other = optimize(classifier()), optimize(turned)
    pipeline = Pipeline([{"model": model, "name": "a"}, {"model": model, "name": "b"}], "two")
    changed = pipeline.but({"b": other}, "changed")
    before, after = pipeline.run(photo)["answers"], changed.run(photo)["answers"]
    assert changed.name == "changed" and after["a"] == before["a"] and after["b"] != before["b"]
    alone = Pipeline([{"model": other, "name": "b"}], "one").run(photo)["answers"]
    assert after["b"] == alone["b"]
    assert changed.models["a"].model is model
