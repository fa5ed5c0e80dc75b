"""Other batches of graphs that repeat a batch of one (or two) in their constants, as exporters
write them: each sample gets what it gets alone, in onnxruntime."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from lite_engine import Predictor, edit, load, write_onnx
from lite_engine.errors import UsageError
from lite_engine.ir import DType, Graph, Value
from lite_engine.ops import infer_types
from lite_workbench.batches import MixedSamples, check_batch
from lite_workbench.cli import main

from tests.edit.test_edit import close, run
from tests.small_models import Builder, attention, class_token

pytestmark = pytest.mark.cpu

T, C, HEADS = 6, 8, 2


def dense(b: Builder, x, cin: int = C, cout: int = C):
    """A Gemm, whose input has two axes."""
    return b.add("Gemm", x, b.weights(cin, cout), b.weights(cout))


def rows(batch: int = 1) -> Graph:
    """B, T, C → B·T, C and back."""
    b = Builder((batch, T, C), "rows")
    y = dense(b, b.add("Reshape", b.x, b.ints(batch * T, C)))
    return b.done(b.add("Reshape", y, b.ints(batch, T, C)))


def without_zeros() -> Graph:
    """As torch.onnx writes it: 0 would be a size."""
    b = Builder((1, T, C), "without_zeros")
    flat = b.add("Reshape", b.x, b.ints(1, T * C), allowzero=1)
    return b.done(dense(b, flat, T * C, 3))


def what_is_left() -> Graph:
    """-1 is not the batch here, but would take it."""
    b = Builder((1, T, C), "what_is_left")
    y = b.add("Reshape", b.x, b.ints(1, -1, HEADS, C // HEADS), allowzero=1)
    y = b.add("Softmax", b.add("Transpose", y, perm=[0, 2, 1, 3]), axis=2)
    y = b.add("Transpose", y, perm=[0, 2, 1, 3])
    return b.done(b.add("Reshape", y, b.ints(1, T, -1)))


def windows() -> Graph:
    """Swin: B·windows, with a mask for each window."""
    b = Builder((1, 8, 8, C), "windows")
    y = b.add("Reshape", b.x, b.ints(1, 2, 4, 2, 4, C))
    y = b.add("Reshape", b.add("Transpose", y, perm=[0, 1, 3, 2, 4, 5]), b.ints(4, 16, C))
    y = b.add("Reshape", b.add("MatMul", y, b.weights(C, 3 * C)), b.ints(4, 16, 3, HEADS, 4))
    y = b.add("Transpose", y, perm=[2, 0, 3, 1, 4])
    q, k, v = (b.add("Gather", y, b.graph.constant(np.array(i)), axis=0) for i in range(3))
    scores = b.add("MatMul", q, b.add("Transpose", k, perm=[0, 1, 3, 2]))
    scores = b.add("Add", b.add("Reshape", scores, b.ints(1, 4, HEADS, 16, 16)),
                   b.weights(1, 4, 1, 16, 16))  # fmt: skip
    scores = b.add("Softmax", b.add("Reshape", scores, b.ints(4, HEADS, 16, 16)), axis=-1)
    y = b.add("Transpose", b.add("MatMul", scores, v), perm=[0, 2, 1, 3])
    y = b.add("MatMul", b.add("Reshape", y, b.ints(4, 16, C)), b.weights(C, C))
    y = b.add("Transpose", b.add("Reshape", y, b.ints(1, 2, 2, 4, 4, C)), perm=[0, 1, 3, 2, 4, 5])
    return b.done(b.add("Reshape", y, b.ints(1, 8, 8, C)))


def time_first() -> Graph:
    """nn.MultiheadAttention: T·B rows for products, T, B·heads for the attention."""
    b = Builder((1, T, C), "time_first")
    flat = b.add("Reshape", b.add("Transpose", b.x, perm=[1, 0, 2]), b.ints(T, C))
    parts = []
    for _ in range(3):
        y = b.add("Reshape", dense(b, flat), b.ints(T, 1, C))
        y = b.add("Reshape", y, b.ints(T, HEADS, C // HEADS))
        parts.append(b.add("Transpose", y, perm=[1, 0, 2]))
    q, k, v = parts
    scores = b.add("Softmax", b.add("MatMul", q, b.add("Transpose", k, perm=[0, 2, 1])), axis=-1)
    y = b.add("Transpose", b.add("MatMul", scores, v), perm=[1, 0, 2])
    y = b.add("Reshape", dense(b, b.add("Reshape", y, b.ints(T, C))), b.ints(T, 1, C))
    return b.done(b.add("Transpose", y, perm=[1, 0, 2]))


def token() -> Graph:
    """A class token of one, and an Expand to one sample."""
    b = Builder((1, T, C), "token")
    y = b.add("Concat", b.weights(1, 1, C), b.x, axis=1)
    return b.done(b.add("Expand", b.add("ReduceMean", y, b.ints(1)), b.ints(1, 5, C)))


def recurrent(states: float) -> Graph:
    """States of one sample, in the middle axis."""
    b = Builder((1, T, C), "recurrent")
    start = b.graph.constant(np.full((1, 1, 4), states, np.float32))
    x = b.add("Transpose", b.x, perm=[1, 0, 2])
    made = b.graph.add(
        "LSTM", [x, b.weights(1, 16, C), b.weights(1, 16, 4), None, None, start, start],
        {"hidden_size": 4}, outputs=3,
    )  # fmt: skip
    y = b.add("Transpose", b.add("Reshape", made.outputs[0], b.ints(T, 1, 4)), perm=[1, 0, 2])
    return b.done(y, b.add("Squeeze", made.outputs[1], b.ints(0)))


def masked() -> Graph:
    """A mask for each of four windows, added where B·windows is one axis."""
    b = Builder((1, 4, T, C), "masked")
    y = b.add("Reshape", b.x, b.ints(4, T, C))
    y = b.add("Sub", b.weights(4, T, 1), y)
    return b.done(b.add("Reshape", y, b.ints(1, 4, T, C)))


def shifted() -> Graph:
    """Rows of all samples in another order, as the passes write a shift of windows."""
    b = Builder((1, 4, 4, C), "shifted")
    y = b.add("Reshape", b.x, b.ints(16, C))
    y = b.add("Gather", y, b.graph.constant(np.random.default_rng(1).permutation(16)[:12]), axis=0)
    return b.done(b.add("Reshape", dense(b, y), b.ints(1, 12, C)))


def computed() -> Graph:
    """Some sizes are computed, those behind them fixed."""
    b = Builder((1, T, C), "computed")
    first = b.add("Gather", b.add("Shape", b.x), b.ints(0), axis=0)
    y = b.add("Reshape", b.x, b.add("Concat", first, b.ints(T, HEADS, C // HEADS), axis=0))
    y = b.add("Transpose", b.add("Transpose", y, perm=[0, 2, 1, 3]), perm=[0, 2, 1, 3])
    return b.done(dense(b, b.add("Reshape", y, b.ints(1, T * C)), T * C, 3))


def gathered() -> Graph:
    """A mask that is read by sample and place, and a copy by place in memory (as_strided)."""
    b = Builder((1, C, 4, 4), "gathered")
    y = b.add("Reshape", b.add("ReduceMean", b.x, b.ints(2, 3)), b.ints(-1))
    places = b.graph.constant(np.arange(C).reshape(1, C, 1, 1))
    y = b.add("Sub", b.x, b.add("Gather", y, places, axis=0))
    corner = [[[0, c, 0, c % 4] for c in range(C)]]
    mask = b.add("GatherND", b.x, b.graph.constant(np.array(corner)))
    return b.done(b.add("Mul", y, b.add("Reshape", mask, b.ints(1, C, 1, 1))))


def grown() -> Graph:
    """A Resize to the sizes of all axes."""
    b = Builder((1, C, 4, 4), "grown")
    sizes = b.ints(1, C, 7, 9)
    y = b.graph.add("Resize", [b.x, None, None, sizes], {"mode": "linear"}).output
    return b.done(b.conv(y, C, 4, 3))


GRAPHS: list[Callable[[], Graph]] = [
    rows, without_zeros, what_is_left, windows, time_first, token, masked, shifted, gathered,
    grown, computed, attention,
]  # fmt: skip


def each_alone(graph: Graph, many: Graph, batch: int, one: int = 1) -> None:
    shape = graph.inputs[0].shape
    x = np.random.default_rng(3).standard_normal((batch, *shape[1:])).astype(np.float32)
    got = run(many, {"x": x})
    for at in range(0, batch, one):
        for name, want in run(graph, {"x": x[at : at + one]}).items():
            assert close(got[name][at : at + one], want), (graph.name, name, at)


@pytest.mark.parametrize("make", GRAPHS, ids=lambda f: f.__name__)
def test_each_sample_gets_what_it_gets_alone(make: Callable[[], Graph], tmp_path) -> None:
    graph = make()
    infer_types(graph, strict=True)
    made = edit.rebatch(graph, 3)
    assert made.refused == [] and made.adapted
    each_alone(graph, made.graph, 3)
    of_any = edit.rebatch(graph, "N")
    assert of_any.refused == []
    for batch in (2, 5):
        each_alone(graph, of_any.graph, batch)
    write_onnx(of_any.graph, tmp_path / "n.onnx")
    again = load(tmp_path / "n.onnx", shapes={"x": (3, *graph.inputs[0].shape[1:])})
    assert check_batch(graph, again) == ""  # our own engine on the file
    assert [v.shape for v in again.outputs] == [v.shape for v in made.graph.outputs]


@pytest.mark.parametrize("states", [0.0, 0.5])
def test_first_states_of_one_sample_are_those_of_all(states: float) -> None:
    graph = recurrent(states)
    infer_types(graph, strict=True)
    for batch in (3, "N"):
        made = edit.rebatch(graph, batch)
        assert made.refused == []
        lstm = next(n for n in made.graph.nodes if n.op == "LSTM")
        assert (lstm.input(5) is None) is (states == 0)
        each_alone(graph, made.graph, 3)


def test_first_states_stay_where_the_sequence_grows() -> None:
    """One of each direction and sample; a sequence of 1 is no batch."""
    b = Builder((1, 1, 2), "steps")
    states = [b.weights(1, 1, 3), b.weights(1, 1, 3)]
    inputs = [b.x, b.weights(1, 12, 2), b.weights(1, 12, 3), None, None, *states]
    graph = b.done(b.graph.add("LSTM", inputs, {"hidden_size": 3}, outputs=2).outputs[1])
    infer_types(graph, strict=True)
    made = edit.resize(graph, {"x": (4, 1, 2)})
    assert made.refused == [] and made.graph.nodes[-1].input(5).shape == (1, 1, 3)
    x = np.random.default_rng(3).standard_normal((4, 1, 2)).astype(np.float32)
    (got,) = run(made.graph, {"x": x}).values()
    open_steps = graph.copy()
    open_steps.inputs[0].shape = ("T", 1, 2)
    (want,) = run(open_steps, {"x": x}).values()
    np.testing.assert_array_equal(got, want)
    assert [r.op for r in edit.resize(graph, {"x": (4, 2, 2)}).refused] == ["LSTM"]


@pytest.mark.parametrize(("op", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_lengths_of_one_sample_are_those_of_all(op: str, gates: int) -> None:
    b = Builder((1, T, C), "lengths")
    x = b.add("Transpose", b.x, perm=[1, 0, 2])
    lengths = b.graph.constant(np.array([4], np.int32))
    inputs = [x, b.weights(1, gates * 3, C), b.weights(1, gates * 3, 3), None, lengths]
    y = b.graph.add(op, inputs, {"hidden_size": 3}, outputs=2).outputs[1]
    graph = b.done(b.add("Squeeze", y, b.ints(0)))
    infer_types(graph, strict=True)
    for batch in (3, "N"):
        made = edit.rebatch(graph, batch)
        assert made.refused == []
        each_alone(graph, made.graph, 3)


def test_a_batch_of_two_becomes_one_of_six() -> None:
    graph = rows(2)
    infer_types(graph, strict=True)
    made = edit.rebatch(graph, 6)
    assert made.refused == [] and made.graph.outputs[0].shape == (6, T, C)
    each_alone(graph, made.graph, 6, one=2)
    assert edit.rebatch(made.graph, 1).graph.outputs[0].shape == (1, T, C)


def test_what_cannot_have_another_batch_is_told() -> None:
    """A mean over the batch, and an output in which samples and rows are one axis."""
    b = Builder((1, T, C), "mean")
    graph = b.done(b.add("Sub", b.x, b.add("ReduceMean", b.x, b.ints(0, 1), name="mean")))
    infer_types(graph, strict=True)
    assert [r.layer for r in edit.rebatch(graph, 2).refused] == ["mean"]
    b = Builder((1, T, C), "flat")
    graph = b.done(b.add("Reshape", b.x, b.ints(T, C), name="flat"))
    infer_types(graph, strict=True)
    (refusal,) = edit.rebatch(graph, "N").refused
    assert refusal.layer == "flat" and "6*(N)×8 has no axis of the batch alone" in refusal.why


def test_what_is_left_stays_so_where_the_batch_was_unknown() -> None:
    """Behind a roll along it."""
    b = Builder(("n", T, C), "rolled")
    ends = ((1, 2**40), (0, 1))
    parts = [b.add("Slice", b.x, b.ints(i), b.ints(j), b.ints(0)) for i, j in ends]
    rolled = b.add("Concat", *parts, axis=0)
    graph = b.done(b.add("Tanh", b.add("Reshape", rolled, b.ints(-1, C))))
    infer_types(graph)
    x = np.random.default_rng(0).standard_normal((3, T, C)).astype(np.float32)
    (y,) = Predictor(edit.rebatch(graph, 3).graph, "reference").run({"x": x}).values()
    np.testing.assert_allclose(y, np.tanh(np.roll(x, -1, 0)).reshape(-1, C), rtol=1e-6)


def test_inputs_that_do_not_begin_with_the_batch_are_refused(tmp_path, capsys) -> None:
    """States of a recurrent layer, whose first size is that of its directions."""
    b = Builder((T, 2, C), "states")
    state = Value("h", DType.F32, (1, 2, 4))
    b.graph.inputs.append(state)
    made = b.graph.add("GRU", [b.x, b.weights(1, 12, C), b.weights(1, 12, 4), None, None, state],
                       {"hidden_size": 4}, outputs=2)  # fmt: skip
    graph = b.done(made.outputs[0])
    with pytest.raises(UsageError, match=r"no common batch size: x 6×2×8, h 1×2×4"):
        edit.rebatch(graph, 4)


@pytest.mark.parametrize("batch", [4, "M"])
def test_sizes_that_are_computed_follow(batch) -> None:
    """An open batch becomes a number, or another name."""
    made = edit.rebatch(class_token(), batch)
    assert made.refused == [] and made.graph.inputs[0].shape == (batch, 6, 4)
    x = np.random.default_rng(3).standard_normal((4, 6, 4)).astype(np.float32)
    (got,) = run(made.graph, {"x": x}).values()
    (want,) = run(class_token(), {"x": x}).values()
    np.testing.assert_array_equal(got, want)


def test_a_batch_of_very_many_needs_no_memory(tmp_path) -> None:
    """Neither for what is repeated for each sample, nor for the check."""
    write_onnx(token(), tmp_path / "one.onnx")
    made = tmp_path / "many.onnx"
    assert main(["edit", str(tmp_path / "one.onnx"), "-o", str(made), "--batch", "90000000"]) == 0
    assert made.stat().st_size < 10_000 and load(made).outputs[0].shape[0] == 90_000_000


def test_samples_that_mix_are_found_by_their_numbers(tmp_path, capsys) -> None:
    b = Builder((1, T, C), "mixing")
    scores = b.add("MatMul", b.x, b.add("Transpose", b.x, perm=[0, 2, 1]))
    graph = b.done(b.add("CumSum", scores, b.graph.constant(np.array(0)), name="sum"))
    write_onnx(graph, tmp_path / "mixing.onnx")
    many = edit.rebatch(load(tmp_path / "mixing.onnx"), 3).graph
    with pytest.raises(MixedSamples, match="mixes the samples"):
        check_batch(graph, many)
    assert main(["edit", str(tmp_path / "mixing.onnx"), "-o", str(tmp_path / "x.onnx"),
                 "--batch", "3"]) == 1  # fmt: skip
    assert "mixes the samples of a batch" in capsys.readouterr().err
    assert not (tmp_path / "x.onnx").exists()


@pytest.mark.parametrize("batch", ["N", "12", "2"])
def test_a_batch_of_several_is_checked_as_well(batch: str, tmp_path, capsys) -> None:
    """Opened, made larger and made smaller."""
    b = Builder((4, C), "over_samples")
    write_onnx(b.done(b.add("Softmax", b.x, axis=0)), tmp_path / "four.onnx")
    made = tmp_path / "x.onnx"
    assert main(["edit", str(tmp_path / "four.onnx"), "-o", str(made), "--batch", batch]) == 1
    assert "mixes the samples of a batch" in capsys.readouterr().err and not made.exists()
    b = Builder((4, C), "each")
    write_onnx(b.done(b.add("Softmax", b.x, axis=1)), tmp_path / "four.onnx")
    assert main(["edit", str(tmp_path / "four.onnx"), "-o", str(made), "--batch", batch]) == 0
    assert "not checked" not in capsys.readouterr().out


def beside(first: int | str, shape: tuple[int, ...]) -> Graph:
    """x · k, where k is an input that has no batch."""
    b = Builder((first, 4), "beside")
    b.graph.inputs.append(k := Value("k", DType.F32, shape))
    graph = b.done(b.add("MatMul" if shape else "Mul", b.x, k))
    infer_types(graph, strict=True)
    return graph


@pytest.mark.parametrize(("first", "shape"), [(1, ()), ("N", (4, 3)), ("N", (4, 1))])
def test_inputs_without_the_batch_stay_and_are_fed_whole(first, shape, tmp_path, capsys) -> None:
    write_onnx(beside(first, shape), tmp_path / "one.onnx")
    made = tmp_path / "x.onnx"
    assert main(["edit", str(tmp_path / "one.onnx"), "-o", str(made), "--batch", "3"]) == 0
    assert "not checked" not in capsys.readouterr().out
    graph = load(made)
    assert [v.shape for v in graph.inputs] == [(3, 4), shape]
    rng = np.random.default_rng(3)
    feeds = {v.name: rng.standard_normal(v.shape).astype(np.float32) for v in graph.inputs}
    (got,) = run(graph, feeds).values()
    want = feeds["x"] @ feeds["k"] if shape else feeds["x"] * feeds["k"]
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_a_batch_is_opened_by_the_command(tmp_path, capsys) -> None:
    write_onnx(windows(), tmp_path / "one.onnx")
    made = tmp_path / "any.onnx"
    assert main(["edit", str(tmp_path / "one.onnx"), "-o", str(made), "--batch", "N"]) == 0
    assert "x: f32[N×8×8×8]" in capsys.readouterr().out
    x = np.random.default_rng(3).standard_normal((2, 8, 8, C)).astype(np.float32)
    (got,) = Predictor(load(made)).run({"x": x}).values()
    (want,) = run(windows(), {"x": x[1:]}).values()
    np.testing.assert_allclose(got[1:], want, rtol=1e-4, atol=1e-5)
    assert main(["edit", str(tmp_path / "one.onnx"), "-o", str(made), "--batch", "0"]) == 2
    assert "'0' is not a whole number of 1 or more" in capsys.readouterr().err


def test_the_runner_of_a_batch_agrees() -> None:
    """The windows in our engine, planned for a batch."""
    graph = windows()
    infer_types(graph, strict=True)
    x = np.random.default_rng(3).standard_normal((4, 8, 8, C)).astype(np.float32)
    (got,) = Predictor(edit.rebatch(graph, 4).graph, "x86").run({"x": x}).values()
    (want,) = run(edit.rebatch(graph, "N").graph, {"x": x}).values()
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_steps_in_front_follow_beside_directions() -> None:
    """What exporters write behind a recurrent layer of two directions: T, 2, 1, C → T, 1, 2·C."""

    def built(steps: int) -> Graph:
        b = Builder((steps, 1, 3), "directions")
        w, r = b.weights(2, 16, 3), b.weights(2, 16, 4)
        y = b.graph.add("LSTM", [b.x, w, r], {"hidden_size": 4, "direction": "bidirectional"},
                        outputs=3, name="rnn").outputs[0]  # fmt: skip
        y = b.add("Transpose", y, perm=[0, 2, 1, 3])
        graph = b.done(b.add("Reshape", y, b.ints(steps, 1, 8), name="joined"))
        infer_types(graph, strict=True)
        return graph

    made = edit.resize(built(5), {"x": (9, 1, 3)})
    assert made.refused == []
    x = np.random.default_rng(3).standard_normal((9, 1, 3)).astype(np.float32)
    (got,), (want,) = (run(g, {"x": x}).values() for g in (made.graph, built(9)))
    np.testing.assert_array_equal(got, want)
    squeezed = built(5)
    squeezed.nodes[1].attrs["perm"] = [0, 1, 2, 3]  # 2 and the batch as they are
    infer_types(squeezed, strict=True)
    assert edit.resize(squeezed, {"x": (9, 1, 3)}).refused == []
