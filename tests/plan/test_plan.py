"""Plans: what becomes a step, where layouts change, and that storage is never shared in error."""

from __future__ import annotations

import pytest
from lite_engine.errors import ShapeError
from lite_engine.plan import Plan, cut, lifetimes, make_plan

from tests.small_models import Builder, attention, classifier


def ops(plan: Plan) -> list[str]:
    return [s.op for s in plan.steps]


def test_views_take_no_step_and_layouts_change_once() -> None:
    plan = make_plan(classifier(), "cpu")
    assert "Flatten" not in ops(plan)
    assert ops(plan).count("Relayout") == 1  # the image comes in as NCHW
    assert plan.tensors[plan.tensor_of["flat"]].alias_of is not None


def test_every_step_says_why() -> None:
    plan = make_plan(classifier(), "cpu")
    assert all(s.why and s.kernel for s in plan.steps)
    assert next(s for s in plan.steps if s.name == "dw").kernel == "f32_conv2d_depthwise"


def test_symbolic_input_needs_a_shape() -> None:
    with pytest.raises(ShapeError, match="--shape"):
        make_plan(classifier("N"), "cpu")
    plan = make_plan(classifier("N"), "cpu", {"x": (3, 3, 20, 20)})
    assert plan.tensors[plan.outputs[0]].shape == (3, 10)


def test_wrong_shape_is_named() -> None:
    with pytest.raises(ShapeError, match="input x"):
        make_plan(classifier(), "cpu", {"x": (1, 4, 20, 20)})


@pytest.mark.parametrize("graph", [classifier(), attention()], ids=lambda g: g.name)
def test_live_storage_does_not_overlap(graph) -> None:
    plan = make_plan(graph, "cpu")
    spans = lifetimes(plan)
    for span in spans.values():
        span.offset = plan.tensors[span.tensor].offset
        assert span.offset % 64 == 0 and span.offset + span.size <= plan.arena_bytes
    rows = list(spans.values())
    for i, a in enumerate(rows):
        for b in rows[i + 1 :]:
            apart = a.last < b.first or b.last < a.first
            assert apart or a.offset + a.size <= b.offset or b.offset + b.size <= a.offset


def test_override_cuts_the_plan_into_segments() -> None:
    plan = make_plan(classifier(), "cpu", overrides={"pw": "reference"})
    segments = cut(plan)
    assert [s.backend for s in segments] == ["cpu", "reference", "cpu"]
    for segment in segments:
        made = {i for s in segment.plan.steps for i in s.outputs}
        for step in segment.plan.steps:
            for index in (i for i in step.inputs if i >= 0):
                root = segment.plan.root(index)
                assert root.role in ("weight", "input") or root.index in {
                    segment.plan.root(m).index for m in made
                }


def test_unary_runs_in_place() -> None:
    b = Builder((1, 8, 8, 8))
    y = b.conv(b.x, 8, 8, 1)
    y = b.add("Sigmoid", y, name="act")
    plan = make_plan(b.done(b.conv(y, 8, 8, 1)), "cpu")
    assert plan.tensors[plan.tensor_of["act"]].alias_of is not None
