"""Plans: what becomes a step, where layouts change, and that storage is never shared in error."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.errors import ShapeError
from lite_engine.ir import DType, Graph, Value
from lite_engine.model_file import Model
from lite_engine.plan import Plan, cut, lifetimes, make_plan
from lite_engine.runtime import host_target

from tests.small_models import Builder, attention, classifier, image


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


def test_precision_offers_more_kernels_and_moves_nothing() -> None:
    plain, short = (make_plan(classifier(), "cpu", precision=p) for p in ("fp32", "bf16"))
    assert ops(plain) == ops(short)
    assert not any(s.kernel.startswith("bf16_") for s in plain.steps)
    chosen = [s for s in short.steps if s.kernel.startswith("bf16_")]
    assert chosen and all("bf16" in s.why for s in chosen)


def test_fp16_is_what_values_are_stored_in() -> None:
    """Cast at the edges and around what is computed in float32, which a layer can be set to."""
    plan = make_plan(classifier(), "cpu", precision="fp16")
    for step in plan.steps:
        kinds = {plan.tensors[i].dtype for i in step.outputs}
        if step.kernel.startswith(("f16_", "f32_")):
            assert kinds == {DType.F16 if step.kernel.startswith("f16_") else DType.F32}
    halves = [s for s in plan.steps if s.kernel.startswith("f16_")]
    assert len(halves) > 3 and ops(plan).count("Cast") == 2
    assert all(plan.tensors[i].dtype is DType.F32 for i in (*plan.inputs, *plan.outputs))
    mixed = make_plan(classifier(), "cpu", precision="fp16", overrides={"dw": "fp32"})
    assert next(s for s in mixed.steps if s.name == "dw").kernel == "f32_conv2d_depthwise"
    assert ops(mixed).count("Cast") == 4


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


def test_what_a_band_hands_on_lies_behind_the_rest() -> None:
    """Only a tapped run writes it: in between, it would keep pages of the others apart."""
    b = Builder((1, 8, 80, 80))
    y = b.x
    for i in range(5):
        y = b.conv(y, 8 if i == 0 else 32, 32, 1, name=f"c{i}")
    plan = make_plan(b.done(b.add("GlobalAveragePool", y)), "cpu")
    assert [s.band for s in plan.steps] == [0, *[1] * 6]
    inside = {plan.tensor_of[f"c{i}"] for i in range(5)}
    spans = lifetimes(plan)
    rest = sum(s.size for s in spans.values() if s.tensor not in inside)
    for span in spans.values():
        end = plan.tensors[span.tensor].offset + span.size
        assert span.tensor in inside or end <= rest
        assert span.tensor not in inside or span.last == span.first + 1


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


def test_a_part_that_broadcasts_is_not_overwritten() -> None:
    """The part is a view of storage as large as the output, and lies at its end."""
    b = Builder((1, 5), "part")
    y = b.add("Neg", b.x, name="whole")
    parts = b.graph.add("Split", [y, b.ints(4, 1)], {"axis": 1}, outputs=2, name="cut").outputs
    rest = b.add("Neg", parts[0])
    graph = b.done(rest, b.add("Neg", b.add("Max", parts[1], b.x, name="most")))
    x = np.array([[3, -1, 2, 0, -2]], np.float32)
    _, most = Predictor(graph, "x86").run({b.x.name: x}).values()
    np.testing.assert_array_equal(most, -np.maximum(2, x))


def test_a_residual_sum_lies_as_its_readers_read_it() -> None:
    """Image patches with a class token, as exported of vision transformers: a convolution's rows
    of channels are what the products read, and the constant token is turned instead of them."""
    b = Builder((1, 8, 4, 4), "tokens")
    rng = np.random.default_rng(0)

    def some(*shape: int):
        return b.graph.constant(rng.standard_normal(shape).astype(np.float32))

    token, scale = some(1, 8, 1), some(8)
    patches = b.add("Reshape", b.conv(b.x, 8, 8, 1), b.ints(1, 8, 16))
    y = b.add("Transpose", b.add("Concat", token, patches, axis=2), perm=[0, 2, 1])
    for _ in range(3):
        norm = b.add("LayerNormalization", y, scale, scale)
        rows = b.add("Reshape", norm, b.ints(17, 8))
        made = b.add("Gemm", rows, some(8, 8), scale)
        y = b.add("Add", y, b.add("Reshape", made, b.ints(1, 17, 8)))
    plan = make_plan(b.done(b.add("LayerNormalization", y, scale, scale)), "cpu")
    steps = [s.op for s in plan.steps]
    assert steps.count("Add") == 3
    assert steps.count("Relayout") == 1  # the image comes in as NCHW


def joined():
    """A fire module: two convolutions side by side, joined, cut again."""
    b = Builder((1, 8, 9, 9), "joined")
    left = b.conv(b.x, 8, 12, 1, name="left", activation="Relu")
    right = b.conv(b.x, 8, 20, 3, name="right")
    y = b.add("Concat", left, right, name="join", axis=1)
    parts = b.graph.add("Split", [y, b.ints(7, 25)], {"axis": 1}, outputs=2, name="cut").outputs
    first = b.conv(parts[0], 7, 5, 1, name="first")
    second = b.conv(parts[1], 25, 6, 3, name="second")
    return b.done(b.add("GlobalAveragePool", first), b.add("GlobalAveragePool", second))


def test_pieces_of_a_join_are_views() -> None:
    plan = make_plan(joined(), "cpu")
    whole = plan.tensors[plan.tensor_of["join"]]
    right = plan.tensors[plan.tensor_of["right"]]
    assert right.alias_of == whole.index and right.pitch == 32 and right.alias_offset == 12 * 4
    assert right.offset == whole.offset + 48
    second = plan.tensors[plan.tensor_of["cut:1"]]
    assert plan.root(second.index) is whole and second.pitch == 32


def test_pieces_of_a_join_that_is_shuffled_are_views() -> None:
    """ShuffleNetV2's unit: what was cut off is copied, what a convolution makes is not."""
    b = Builder((1, 8, 6, 7), "shuffled")
    y = b.conv(b.x, 8, 12, 1)
    waits, goes = b.graph.add("Split", [y, b.ints(6, 6)], {"axis": 1}, outputs=2).outputs
    made = b.conv(goes, 6, 6, 1, name="made", activation="Relu")
    join = b.add("Concat", waits, made, name="join", axis=1)
    halves = b.add("Transpose", b.add("Reshape", join, b.ints(1, 2, 6, 6, 7)), perm=[0, 2, 1, 3, 4])
    y = b.conv(b.add("Reshape", halves, b.ints(1, 12, 6, 7)), 12, 5, 3)
    graph = b.done(b.add("GlobalAveragePool", y))
    plan = make_plan(graph, "cpu")
    whole = plan.tensors[plan.tensor_of["join"]]
    laid = plan.tensors[plan.tensor_of["made"]]
    assert plan.root(laid.index) is whole and (laid.pitch, laid.alias_offset) == (12, 6 * 4)
    feeds = image(graph)
    exact = Predictor(graph, backend="reference").run(feeds)
    for name, value in Predictor(graph, backend=host_target()).run(feeds).items():
        np.testing.assert_allclose(value, exact[name], rtol=1e-5, atol=1e-6)


def test_a_chain_in_place_is_one_storage() -> None:
    b = Builder((1, 8, 8, 8))
    y = first = b.conv(b.x, 8, 8, 1)
    for i, op in enumerate(("Sigmoid", "Tanh", "Neg")):
        y = b.add(op, y, name=f"act{i}")
    plan = make_plan(b.done(b.conv(y, 8, 8, 1)), "cpu")
    home = plan.tensor_of[first.name]
    assert [plan.root(plan.tensor_of[f"act{i}"]).index for i in range(3)] == [home] * 3


def twice():
    """The same piece twice in a join."""
    b = Builder((1, 8, 9, 9), "twice")
    y = b.conv(b.x, 8, 4, 1, name="piece")
    y = b.add("Concat", y, b.conv(b.x, 8, 3, 1), y, name="join", axis=1)
    return b.done(b.conv(y, 11, 5, 1, name="last"))


def shuffled():
    """Pieces of a cut joined in another order."""
    b = Builder((1, 8, 9, 9), "shuffled")
    y = b.conv(b.x, 8, 12, 1, name="whole")
    parts = b.graph.add("Split", [y, b.ints(5, 7)], {"axis": 1}, outputs=2, name="cut").outputs
    y = b.add("Concat", *reversed(parts), name="join", axis=1)
    return b.done(b.conv(y, 12, 5, 1, name="last"))


def part_again():
    """A join of a map, and before it of a piece of that map."""
    b = Builder((4, 8), "part_again")
    y = b.add("Exp", b.x, name="whole")
    parts = b.graph.add("Split", [y, b.ints(3, 5)], {"axis": 1}, outputs=2, name="cut").outputs
    y = b.add("Concat", parts[1], y, b.x, name="join", axis=1)
    return b.done(b.add("MatMul", y, b.weights(21, 5)), parts[0])


def view_again():
    """A join of a matrix and of a view of it."""
    b = Builder((4, 8), "view_again")
    y = b.add("Exp", b.x, name="whole")
    same = b.add("Reshape", y, b.ints(4, 8), name="same")
    y = b.add("Concat", same, b.add("Neg", b.x), y, name="join", axis=1)
    return b.done(b.add("MatMul", y, b.weights(24, 5)))


def view_of_a_piece():
    """A piece of a cut, read as it is and through a view that has its rows."""
    b = Builder((4, 7, 7, 16), "view_of_a_piece")
    y = b.add("MatMul", b.x, b.weights(16, 24), name="whole")
    parts = b.graph.add("Split", [y, b.ints(8, 16)], {"axis": -1}, outputs=2, name="cut").outputs
    rows = b.add("Reshape", parts[0], b.ints(4, 49, 8), name="rows")
    seen = b.add("MatMul", rows, b.weights(8, 5))
    return b.done(seen, b.add("MatMul", parts[1], b.weights(16, 5)))


def early():
    """An output that looks at what the next layers read, long before the end."""
    b = Builder((4, 8), "early")
    y = b.add("MatMul", b.x, b.weights(8, 8), name="first")
    seen = b.add("Reshape", y, b.ints(8, 4), name="seen")
    for i in range(4):
        y = b.add("MatMul", y, b.weights(8, 8), name=f"m{i}")
    return b.done(seen, y)


@pytest.mark.cpu
@pytest.mark.parametrize(
    "graph",
    [
        joined(),
        twice(),
        shuffled(),
        part_again(),
        view_again(),
        view_of_a_piece(),
        early(),
        classifier(),
    ],
    ids=lambda g: g.name,
)
def test_storage_gives_the_right_numbers(graph, tmp_path) -> None:
    """Natively with taps and without, by a file's own program, and with each layer in turn on
    another backend."""
    feeds, model = image(graph), Model(graph)  # no pass changes it
    names = [v.name for n in graph.nodes for v in n.outputs]
    exact = Predictor(model, "reference").run(feeds, taps=names)
    predictor = Predictor(model, host_target(), threads=2)
    stored = Model(graph, [host_target()]).save(tmp_path / "m.lite")
    found = [
        predictor.run(feeds, taps=names), predictor.run(feeds),
        Predictor(stored, host_target()).run(feeds),
    ]  # fmt: skip
    for node in graph.nodes:
        mixed = Predictor(model, host_target(), threads=1, overrides={node.name: "reference"})
        found.append(mixed.run(feeds))
    for outputs in found:
        for name, array in outputs.items():
            np.testing.assert_allclose(array, exact[name], rtol=1e-4, atol=1e-5, err_msg=name)


def test_outputs_have_their_values_names_wherever_they_are_made() -> None:
    graph = classifier()  # maps lie channels-last and are handed out row-major
    graph.outputs += [n.output for n in graph.nodes if n.output not in graph.outputs]
    for backend, precision in (("cpu", "fp32"), ("cpu", "fp16"), ("reference", "fp32")):
        plan = make_plan(graph, backend, precision=precision)
        assert [plan.tensors[i].name for i in plan.outputs] == [v.name for v in graph.outputs]


def test_tensors_that_no_arena_holds():
    """Found by mutants of ONNX's cases: OverflowError where offsets pass 64 bits."""
    graph = Graph("g")
    x = Value("x", DType.F32, (1 << 31, 1 << 30))
    graph.inputs = [x]
    for _ in range(3):
        x = graph.add("Sin", [x], {}).output
    graph.outputs = [x]
    with pytest.raises(ShapeError, match="too large for a native program"):
        make_plan(graph, "cpu")


def positions(tokens: int) -> Graph:
    """Embeddings of positions that are counted from the tokens, as RoBERTa's exporters write it."""
    b = Builder((1, tokens), "positions")
    b.x.dtype = DType.I64
    b.graph.inputs = [b.x]
    seen = b.add("Cast", b.add("Not", b.add("Equal", b.x, b.ints(0))), to=DType.I64)
    counted = b.add("Add", b.add("Mul", b.add("CumSum", seen, b.ints(1)), seen), b.ints(1))
    table = b.graph.constant(np.ones((tokens + 2, 8), np.float32))
    return b.done(b.add("Relu", b.add("Gather", table, counted)))


def test_integers_before_a_layer_of_the_cpu_stay_there() -> None:
    """Equal and Cast have kernels on OpenCL; Not, CumSum, Mul and Add of integers have none."""
    steps = make_plan(positions(16), "opencl").steps
    assert [s.op for s in steps if s.backend == "opencl"] == ["Copy", "Gather", "Relu", "Copy"]
    equal = next(s for s in steps if s.op == "Equal")
    assert equal.backend == "cpu" and "which needs it, is on the CPU" in equal.why
    many = make_plan(positions(1 << 20), "opencl").steps
    assert next(s for s in many if s.op == "Equal").backend == "opencl"


def test_an_override_keeps_integers_on_the_device() -> None:
    graph = positions(16)
    equal = next(n.name for n in graph.nodes if n.op == "Equal")
    steps = make_plan(graph, "opencl", overrides={equal: "opencl"}).steps
    assert next(s for s in steps if s.op == "Equal").backend == "opencl"


def test_an_input_is_turned_where_it_is_read() -> None:
    """Pixels of blocks become channels (TResNet, Swin's patches): a copy that is no alias."""
    b = Builder((1, 3, 8, 8), "blocks")
    parts = b.add("Reshape", b.x, b.ints(1, 3, 4, 2, 4, 2))
    turned = b.add("Transpose", parts, perm=[0, 3, 5, 1, 2, 4])
    graph = b.done(b.conv(b.add("Reshape", turned, b.ints(1, 12, 4, 4)), 12, 8, 3))
    for backend in ("opencl", "cpu"):
        (moved, *_) = [s for s in make_plan(graph, backend).steps if s.op == "Relayout"]
        assert moved.backend == backend
