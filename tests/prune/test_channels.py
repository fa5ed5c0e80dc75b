"""Channels that go through everything that shares them."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.errors import CalibrationError
from lite_engine.ir import Graph, from_text
from lite_engine.ops import infer_types
from lite_engine.prune import PruneOptions, Pruner
from lite_engine.prune.channels import channel_groups, kept_of
from lite_engine.quantize import reference_run

from tests.quantize.conftest import small_network

RNG = np.random.default_rng(3)

NETWORK = """graph "g" {
  input x: f32[1,3,8,8]
  const w0: f32[32,3,3,3] = @0
  const b0: f32[32] = @1
  const w1: f32[32,1,3,3] = @2
  const w2: f32[32,32,1,1] = @3
  const w3: f32[10,512] = @4
  "stem": a = Conv(x, w0, b0) {pads=[1, 1, 1, 1], activation="Relu"}
  "depth": b = Conv(a, w1) {pads=[1, 1, 1, 1], group=32}
  "act": c = Relu(b)
  "point": d = Conv(c, w2)
  "add": e = Add(d, a)
  "pool": f = MaxPool(e) {kernel_shape=[2, 2], strides=[2, 2]}
  "flat": g = Flatten(f)
  "fc": y = Gemm(g, w3) {transB=1}
  output y
}"""


def network(copies: bool) -> Graph:
    """With `copies`, channels 16 to 31 are those from 0 to 15 again: half can go for nothing."""
    w0, w1 = (RNG.standard_normal(s).astype(np.float32) for s in ((32, 3, 3, 3), (32, 1, 3, 3)))
    b0 = RNG.standard_normal(32).astype(np.float32)
    w2 = RNG.standard_normal((32, 32, 1, 1)).astype(np.float32) / 6
    if copies:
        for array in (w0, b0, w1, w2):
            array[16:] = array[:16]
    graph = from_text(NETWORK, [w0, b0, w1, w2, RNG.standard_normal((10, 512)).astype(np.float32)])
    infer_types(graph)
    return graph


FEEDS = [{"x": RNG.standard_normal((1, 3, 8, 8)).astype(np.float32)} for _ in range(80)]


def test_what_is_added_and_depthwise_is_one_group():
    (group,), whole = channel_groups(network(False))
    assert (group.size, group.makers, group.same) == (32, ["stem", "point"], ["depth"])
    assert sorted(group.readers) == ["fc", "point"]
    assert whole == {"fc": "its channels are an output of the model"}


@pytest.mark.parametrize("shared", [False, True])
def test_copies_go_and_the_outputs_stay(shared):
    """Also where exporters made one constant of equal biases, which several layers then read."""
    graph = network(True)
    if shared:
        graph.node("point").set_input(2, graph.node("stem").inputs[2])
    for name in ("pool", "flat", "fc"):
        graph.nodes.remove(graph.node(name))
    head = graph.constant(RNG.standard_normal((10, 32, 1, 1)).astype(np.float32), "head")
    graph.add("Conv", [graph.node("add").output, head], name="fc", outputs=["z"])
    graph.outputs = [graph.node("fc").output]
    infer_types(graph)
    made = Pruner(graph, FEEDS, PruneOptions(channels=0.5)).make()
    assert made.channels == [{"name": "stem", "before": 32, "after": 16}]
    shapes = {n.name: n.inputs[1].const.shape for n in made.graph.nodes if n.op in ("Conv", "Gemm")}
    assert shapes == {"stem": (16, 3, 3, 3), "depth": (16, 1, 3, 3), "point": (16, 16, 1, 1),
                      "fc": (10, 16, 1, 1)}  # fmt: skip
    assert made.graph.node("depth").attrs["group"] == 16
    assert made.sqnr_db > 20
    assert made.whole_layers == {"fc": "its channels are an output of the model"}
    if shared:
        assert graph.node("point").inputs[2] is graph.node("stem").inputs[2]
        assert [made.graph.node(n).inputs[2].const.size for n in ("stem", "point")] == [16, 16]


@pytest.mark.parametrize(
    ("size", "share", "kept"),
    [(24, 0.2, 16), (32, 0.2, 24), (64, 0.2, 48), (40, 0.5, 24), (24, 0.5, 16), (24, 0.1, 24),
     (128, 0.2, 104), (512, 0.2, 408), (24, 0.99, 8), (16, 0.2, 13), (16, 0.01, 16),
     (20, 0.05, 20)],
)  # fmt: skip
def test_what_is_kept_is_the_nearest_multiple(size, share, kept):
    assert kept_of(size, share) == kept
    if size > 16:
        steps = range(8, size + 1, 8)
        near = min(abs(step - size * (1 - share)) for step in [*steps, size])
        assert abs(kept - size * (1 - share)) == pytest.approx(near)


def test_a_share_that_is_too_small_is_said():
    with pytest.raises(CalibrationError, match=r"stem: 5 % of 32 channels are too few to remove"):
        Pruner(network(False), FEEDS[:5], PruneOptions(channels=0.05)).make()


def test_the_readers_are_solved_again():
    """Without that, the output would be what the kept channels alone make."""
    graph = network(False)
    pruner = Pruner(graph, FEEDS, PruneOptions(channels=0.25))
    made = pruner.make()
    plain = graph.copy()
    kept = [k for k in range(32) if _kept(graph, made.graph, k)]
    lost = [k for k in range(32) if k not in kept]
    for name in ("stem", "point"):
        w = plain.node(name).inputs[1].const.copy()
        w[lost] = 0
        plain.node(name).set_input(1, plain.constant(w, f"{name}.w"))
    b = plain.node("stem").inputs[2].const.copy()
    b[lost] = 0
    plain.node("stem").set_input(2, plain.constant(b, "stem.b"))
    want, got, rough = (
        np.stack([reference_run(g, f)["y"] for f in pruner.feeds])
        for g in (graph, made.graph, plain)
    )
    assert len(kept) == 24
    assert ((want - got) ** 2).sum() < 0.7 * ((want - rough) ** 2).sum()


def _kept(graph: Graph, pruned: Graph, channel: int) -> bool:
    one = graph.node("stem").inputs[1].const[channel]
    return any(np.array_equal(one, w) for w in pruned.node("stem").inputs[1].const)


def test_what_is_not_known_keeps_its_channels():
    """A Concat, a gate that multiplies channels, and a layer whose outputs are the network's."""
    groups, whole = channel_groups(small_network())
    assert all("fc" not in g.makers and "stem" not in g.makers for g in groups)
    assert all(whole[name] for name in ("fc", "stem"))


@pytest.mark.parametrize("keep", ["point", "depth"])
def test_a_layer_that_stays_keeps_its_group(keep):
    pruner = Pruner(
        network(False), FEEDS[:10], PruneOptions(channels=0.5, sparsity=0.8), keep=[keep]
    )
    assert pruner.groups == []
    assert pruner.make().whole_layers["stem"] == "kept on request"
