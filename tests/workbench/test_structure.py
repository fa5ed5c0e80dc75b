"""Regions of networks: each architecture is built as its paper draws it, and found again."""

from __future__ import annotations

from pathlib import Path

import lite_workbench as lw
import pytest
from lite_engine import optimize
from lite_engine.ir import Graph
from lite_engine.ops import infer_types
from lite_workbench.places import places
from lite_workbench.structure import find_regions

from tests.small_models import Builder, attention


def residual() -> Graph:
    """ResNet's: two stages of two blocks, the first of a stage with a 1×1 shortcut."""
    b = Builder((1, 3, 32, 32))
    y = b.add("Relu", b.conv(b.x, 3, 8, 3))
    for before, width, stride in ((8, 8, 1), (8, 8, 1), (8, 16, 2), (16, 16, 1)):
        z = b.add("Relu", b.conv(y, before, width, 3, strides=[stride] * 2))
        z = b.conv(z, width, width, 3)
        short = y
        if before != width:
            short = b.add("Conv", y, b.weights(width, before, 1, 1), strides=[2, 2])
        y = b.add("Relu", b.add("Add", z, short))
    y = b.add("Flatten", b.add("GlobalAveragePool", y))
    return b.done(b.add("Gemm", y, b.weights(10, 16), b.weights(10), transB=1))


def inverted() -> Graph:
    """MobileNetV3's: expand, depthwise, squeeze-and-excite, project; only the second one adds."""
    b = Builder((1, 3, 32, 32))
    y = b.conv(b.x, 3, 8, 3, strides=[2, 2])
    for stride in (2, 1):
        z = b.add("HardSwish", b.conv(y, 8, 24, 1))
        z = b.add("HardSwish", b.conv(z, 24, 24, 3, group=24, strides=[stride] * 2))
        gate = b.add("Relu", b.conv(b.add("GlobalAveragePool", z), 24, 6, 1))
        gate = b.add("HardSigmoid", b.conv(gate, 6, 24, 1))
        z = b.conv(b.add("Mul", z, gate), 24, 8, 1)
        y = b.add("Add", z, y) if stride == 1 else z
    y = b.add("Flatten", b.add("GlobalAveragePool", y))
    return b.done(b.add("Softmax", y, axis=-1))


def pyramid() -> Graph:
    """A feature pyramid: two resolutions joined from the top down, a convolution on the sum."""
    b = Builder((1, 3, 32, 32))
    fine = b.add("Relu", b.conv(b.x, 3, 8, 3, strides=[2, 2], name="fine"))
    coarse = b.conv(fine, 8, 8, 3, strides=[2, 2], name="coarse")
    scales = b.graph.constant(b.weights(4).const * 0 + [1, 1, 2, 2])
    scales.const = scales.const.astype("float32")
    up = b.add("Resize", coarse, None, scales, name="up", mode="nearest")
    joined = b.add("Add", up, b.conv(fine, 8, 8, 1, name="lateral"), name="join")
    return b.done(b.add("Sigmoid", b.conv(joined, 8, 1, 3, name="mask"), name="probability"))


def encoder() -> Graph:
    """Two layers of a transformer: attention and feed-forward, each with a sum and a norm."""
    b = Builder((1, 6, 8))
    y = b.x
    for _ in range(2):
        q, k, v = (b.add("MatMul", y, b.weights(8, 8)) for _ in range(3))
        scores = b.add("MatMul", q, b.add("Transpose", k, perm=[0, 2, 1]))
        z = b.add("MatMul", b.add("Softmax", scores, axis=-1), v)
        y = norm(b, b.add("Add", b.add("MatMul", z, b.weights(8, 8)), y))
        z = b.add("Relu", b.add("MatMul", y, b.weights(8, 32)))
        y = norm(b, b.add("Add", b.add("MatMul", z, b.weights(32, 8)), y))
    return b.done(b.add("MatMul", y, b.weights(8, 3), name="classes"))


def norm(b: Builder, x):
    return b.add("LayerNormalization", x, b.weights(8), b.weights(8), axis=-1)


@pytest.mark.parametrize(
    ("graph", "names"),
    [
        (residual, ["stem", "stage 1: residual block ×2", "stage 2: residual block ×2", "head"]),
        (inverted, ["stem", "stage 1: inverted bottleneck ×2", "head"]),
        (encoder, ["stage 1: transformer layer ×2", "head"]),
        (attention, ["stage 1: attention"]),
        (pyramid, ["stage 1: convolution", "stage 2: convolution", "neck", "head"]),
    ],
)
def test_regions(graph, names) -> None:
    made = graph()
    infer_types(made)
    for one in (made, optimize(made).graph):
        found = find_regions(one)
        assert [region.name for region in found] == names
        every = [node.name for region in found for node in region.nodes]
        assert sorted(every) == sorted(node.name for node in one.nodes), "each node once"
        assert all(region.evidence for region in found)


def test_the_places_are_a_topological_order_with_unique_blocks() -> None:
    made = pyramid()
    infer_types(made)
    known = places(made)
    order = list(known)
    for node in made.nodes:
        before = [v.producer.name for v in node.inputs if v is not None and v.producer]
        assert all(order.index(name) < order.index(node.name) for name in before)
    regions = {}
    for place in known.values():
        assert regions.setdefault(place.block, place.region) is place.region


@pytest.mark.parametrize("whole", [True, False], ids=["backbone", "stages"])
def test_a_scope_that_is_a_whole_backbone_names_no_block(whole: bool) -> None:
    """A detector of "extractor/conv_1 …" and box predictors has stages within the extractor."""
    b = Builder((1, 3, 32, 32))
    y = b.conv(b.x, 3, 8, 3, name="extractor/conv_0")
    for i in range(1, 10):
        scope, stride = "extractor" if whole else f"part_{i}", 2 if i in (1, 4, 7) else 1
        y = b.conv(y, 8, 8, 3, group=8, strides=[stride] * 2, name=f"{scope}/depthwise_{i}")
        y = b.conv(y, 8, 8, 1, name=f"{scope}/pointwise_{i}")
    ends = []
    for k in range(7):
        z = y
        for i in range(3):
            z = b.conv(z, 8, 8, 1, name=f"box_{k}/conv_{i}")
        ends.append(z)
    made = b.done(b.add("Concat", *ends, name="boxes/join", axis=1))
    infer_types(made)
    blocks = {place.block for place in places(made).values()}
    assert ("box_0" in blocks) is not whole
    if whole:
        regions = {place.region.name for place in places(made).values()}
        assert "extractor" not in blocks and len(regions) > 3


def test_numbers_of_layers_add_up_in_their_region(tmp_path: Path) -> None:
    made = lw.open(optimize(residual()).save(tmp_path / "net.lite"))
    profile = made.profile("x86", runs=2)
    made.compare("x86", "reference")
    table = made.structure()
    assert table["layers"].sum() == len(made.model.graph.nodes)
    whole = sum(row.median_ms for row in profile.layers if not row.overhead)
    assert table["ms_x86"].sum() == pytest.approx(whole)
    weights = {id(v): v.const.nbytes for v in made.model.graph.constants() if v.readers}
    assert table["weights_bytes"].sum() == sum(weights.values())
    assert table["error_x86_reference"].max() < 1e-4
