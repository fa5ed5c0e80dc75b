"""Steps that take turns over the samples of a batch give what each sample gives on its own."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.backends.cpu import native
from lite_engine.errors import ModelFormatError
from lite_engine.ir import DType, Graph, Value
from lite_engine.plan import make_plan
from lite_engine.plan.program import WeightTable, encode
from lite_engine.plan.turns import turns_of

from tests.small_models import Builder

from ..tiny import isas, load

pytestmark = pytest.mark.cpu
BATCH = 5
#: A second-level cache in which bands pay, whatever this machine has.
LARGE = 2 << 20
#: The first step of `shuffled` that takes turns, behind a change of layout.
FIRST = 1


@pytest.fixture(autouse=True)
def small(monkeypatch) -> None:
    """Turns for small images too."""
    monkeypatch.setattr("lite_engine.plan.samples._CACHE_BYTES", 1 << 20)
    monkeypatch.setattr("lite_engine.plan.samples._STEP_BYTES", 64 << 10)


def branches(batch: int = BATCH) -> Graph:
    """Slices of a Concat, a Split, a residual, an input and a value that others read, too, and two
    outputs of which one is a part of the batch's values."""
    b = Builder((batch, 3, 129, 117), "branches")
    y = b.conv(b.x, 3, 24, 3, strides=[2, 2], activation="Relu", name="stem")
    left, right = (b.conv(y, 24, 16, 1, name=n) for n in ("left", "right"))
    joined = b.add("Concat", left, b.conv(right, 16, 16, 3, group=16), axis=1, name="join")
    halves = b.graph.add("Split", [joined], {"axis": 1}, outputs=2, name="split").outputs
    y = b.add("Add", halves[0], b.add("HardSwish", halves[1], name="swish"), name="sum")
    y = b.add("Mul", y, b.add("GlobalAveragePool", y, name="mean"), name="scale")
    seen = b.add("MaxPool", y, kernel_shape=[3, 3], strides=[2, 2], name="pool")
    y = b.conv(seen, 16, 24, 3, activation="Relu", name="deep")
    scales = b.graph.constant(np.array([1, 1, 2, 2], np.float32))
    y = b.add("Resize", y, None, scales, mode="nearest", name="up")
    whole = b.add("ReduceMean", b.x, b.ints(1, 2, 3), name="of_input")
    y = b.add("Flatten", b.add("GlobalAveragePool", y, name="last"), name="flat")
    y = b.add("Gemm", y, b.weights(10, 24), b.weights(10), transB=1, name="fc")
    return b.done(y, b.add("ReduceMax", seen, b.ints(0), name="over_batch"), whole)


def shuffled(batch: int = BATCH) -> Graph:
    """Channels in another order through five dimensions; a transposed convolution."""
    b = Builder((batch, 16, 40, 36), "shuffled")
    y = b.conv(b.x, 16, 32, 1, activation="Relu", name="a")
    y = b.add("Reshape", y, b.ints(batch, 2, 16, 40, 36))
    y = b.add("Transpose", y, perm=[0, 2, 1, 3, 4])
    y = b.add("Reshape", y, b.ints(batch, 32, 40, 36))
    y = b.conv(y, 32, 32, 3, name="b")
    y = b.add("ConvTranspose", y, b.weights(32, 8, 2, 2), strides=[2, 2], name="up")
    return b.done(b.conv(y, 8, 6, 1, activation="Sigmoid", name="c"))


GRAPHS = [branches, shuffled]


def batch_of(graph: Graph) -> np.ndarray:
    shape = graph.inputs[0].shape
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


def close(got: np.ndarray, want: np.ndarray, message: str = "") -> None:
    scale = np.abs(want).max()
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-4 * scale, err_msg=message)


#: Samples of a turn by batch and threads: about one for each, with few threads.
SAMPLES = {
    (5, 1): 1, (5, 2): 1, (5, 3): 5, (12, 1): 1, (12, 2): 2, (12, 3): 3, (12, 4): 4, (12, 5): 12,
}  # fmt: skip


@pytest.mark.parametrize("bands", [False, True])
@pytest.mark.parametrize("batch", [5, 12])
@pytest.mark.parametrize("make", GRAPHS)
def test_against_the_reference(make, batch, bands, monkeypatch) -> None:
    """Also where steps inside a turn take turns over rows."""
    if bands:
        monkeypatch.setattr("lite_engine.plan.bands._LARGE_BYTES", 0)
    graph = make(batch)
    x = batch_of(graph)
    wanted = Predictor(graph, "reference").run({"x": x})
    plan = make_plan(graph, "cpu")
    turns = turns_of(plan)
    assert turns.samples == batch and turns.end - turns.first > 4 and turns.kept
    inside = [turns.first <= s.index < turns.end for s in plan.steps]
    for isa in isas():
        for threads, samples in ((t, n) for (b, t), n in SAMPLES.items() if b == batch):
            program = load(plan, threads=threads, max_isa=isa, l2_bytes=LARGE)
            names = [s.variant for s in program.steps()]
            assert ["_turns" in n for n in names] == [i and samples < batch for i in inside]
            banded = any(n.endswith("_turns_band") for n in names)
            assert banded == (bands and make is branches and samples == 1)
            room = plan.kept_at + samples * (plan.arena_bytes - plan.kept_at)
            assert plan.kept_at < program.memory().arena_bytes <= room
            first = [np.array(y) for y in program.run([x])]
            for value, got in zip(graph.outputs, first, strict=True):
                close(got.reshape(wanted[value.name].shape), wanted[value.name], isa)
            for got, again in zip(first, program.run([x]), strict=True):
                np.testing.assert_array_equal(got, again)


@pytest.mark.parametrize("make", GRAPHS)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_each_sample_has_the_bits_that_it_has_alone(make, precision) -> None:
    """Where all steps take turns: with one sample, the same kernels compute the same tensors."""
    x = batch_of(make())
    plans = [make_plan(make(n), "cpu", precision=precision) for n in (BATCH, 1)]
    last = plans[0].steps[turns_of(plans[0]).end - 1].name
    both = [load(plan, threads=2) for plan in plans]
    names = []
    for program, plan in zip(both, plans, strict=True):
        (step,) = (s for s in plan.steps if s.name == last)
        names.append(plan.tensors[step.outputs[0]].name)
        program.tap(names[-1])
    both[0].run([x])
    found = both[0].tapped()[names[0]]
    for i in range(BATCH):
        both[1].run([x[i : i + 1]])
        np.testing.assert_array_equal(found[i : i + 1], both[1].tapped()[names[1]])


@pytest.mark.parametrize("batch", [5, 12])
def test_inner_values_are_those_of_the_whole_batch(batch) -> None:
    """All of them at once, and each alone."""
    graph, x = branches(batch), batch_of(branches(batch))
    values = [n.outputs[0].name for n in graph.nodes]
    wanted = Predictor(graph, "reference").run({"x": x}, taps=values)
    found = Predictor(graph, native.target(), threads=2).run({"x": x}, taps=values)
    for name in values:
        close(found[name], wanted[name], name)
        alone = Predictor(graph, native.target(), threads=2).run({"x": x}, taps=[name])
        np.testing.assert_array_equal(alone[name], found[name], name)


@pytest.mark.parametrize("make", GRAPHS)
def test_memory_is_that_of_one_sample(make) -> None:
    """Beside what other steps write or read."""
    one, many = make_plan(make(1), "cpu"), make_plan(make(8 * BATCH), "cpu")
    kept = turns_of(many).kept
    owners = [t for t in many.tensors if t.role == "arena" and t.alias_of is None]
    others = sum(t.nbytes for t in owners if t.index not in kept)
    assert many.arena_bytes < one.arena_bytes + others + 4096
    assert others < 0.2 * sum(t.nbytes for t in owners)


def test_times_are_those_of_all_turns() -> None:
    plan = make_plan(shuffled(), "cpu")
    program = load(plan, threads=2)
    program.note_threads(True)
    for _ in range(3):
        program.run([batch_of(shuffled())])
        times = program.step_times_ns()
        assert min(times) > 0 and sum(times) <= program.run_ns
        for i, step in enumerate(times):
            assert 0 < max(program.thread_times_ns(i)) <= step + 10_000


def conv(batch: int, channels: int, side: int) -> Graph:
    b = Builder((batch, channels, side, side), "conv")
    y = b.conv(b.x, channels, channels, 3, name="a", activation="Relu")
    return b.done(b.conv(y, channels, channels, 3, name="b"))


@pytest.mark.parametrize("batch, channels, side", [(1, 32, 64), (8, 8, 16), (4, 512, 14)])
def test_what_gains_nothing_takes_no_turns(batch, channels, side) -> None:
    """One sample; values that stay in the caches; weights larger than values."""
    assert not turns_of(make_plan(conv(batch, channels, side), "cpu")).end


def test_weights_that_depend_on_the_data_are_no_batch() -> None:
    """As many filters as samples."""
    graph = Graph("filters")
    x = Value("x", DType.F32, (8, 16, 64, 64))
    w = Value("w", DType.F32, (8, 16, 3, 3))
    graph.inputs = [x, w]
    y = graph.add("Relu", [graph.add("Conv", [x, w], {"pads": [1, 1, 1, 1]}).output]).output
    graph.outputs = [y]
    plan = make_plan(graph, "cpu")
    assert not any("samples" in s.attrs for s in plan.steps if s.op == "Conv")
    rng = np.random.default_rng(0)
    feeds = {v.name: rng.standard_normal(v.shape).astype(np.float32) for v in graph.inputs}
    wanted = Predictor(graph, "reference").run(feeds)[y.name]
    close(Predictor(graph, native.target()).run(feeds)[y.name], wanted)


def records(data: bytes) -> list[int]:
    """Where each tensor's record begins."""
    _, _, _, size, tensors, _, inputs, outputs, _ = struct.unpack_from("<4sIQ6I", data)
    at, found = 40 + size + 4 * (inputs + outputs), []
    for _ in range(tensors):
        found.append(at)
        at += 52 + 8 * data[at + 6]
    return found


def with_turns(data: bytearray, which: int, turns: int) -> bytearray:
    """The `which`-th tensor whose `turns` are not 0 gets others."""
    marked = [at for at in records(data) if data[at + 7]]
    data[marked[which] + 7] = turns
    return data


def resized(data: bytearray, which: int, batch: int) -> bytearray:
    marked = [at for at in records(data) if data[at + 7]]
    struct.pack_into("<q", data, marked[which] + 52, batch)
    return data


def moved(data: bytearray, which: int, offset: int) -> bytearray:
    marked = [at for at in records(data) if data[at + 7]]
    struct.pack_into("<Q", data, marked[which] + 16, offset)
    return data


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda d: moved(d, 0, 1 << 43), "out of memory"),
        (lambda d: moved(d, 0, 1 << 50), "kept outside the arena"),
        (lambda d: with_turns(d, 0, 3), "no samples to take turns"),
        (lambda d: with_turns(d, 0, 2), "moves over nothing"),
        (lambda d: with_turns(d, 0, 0), "take turns|outside the arena"),
        (lambda d: with_turns(d, -1, 0), "take turns on"),
        (lambda d: with_turns(d, -1, 1), "lies outside"),
        (lambda d: resized(d, -1, 6), "lies outside"),
        (lambda d: resized(d, -1, 1 << 40), "no samples to take turns"),
        (lambda d: resized(d, 0, 6), "take turns on"),
        (lambda d: resized(d, 0, 1), "no samples to take turns"),
    ],
)
def test_damaged_programs_are_refused(change, message) -> None:
    table = WeightTable()
    data = change(bytearray(encode(make_plan(shuffled(), "cpu"), table)))
    with pytest.raises(ModelFormatError, match=message):
        native.NativeProgram(bytes(data), table.blobs)


@pytest.mark.parametrize(
    "samples, message",
    [
        ({FIRST: None}, "take turns on"),
        ({FIRST + 2: None}, "take turns on"),
        ({FIRST: 4}, "take turns on"),
        ({FIRST + 1: BATCH + 1}, "not those of the steps before"),
        ({FIRST: -1}, "not those of the steps before"),
    ],
)
def test_steps_that_do_not_belong_together_are_refused(samples, message) -> None:
    plan, table = make_plan(shuffled(), "cpu"), WeightTable()
    data = encode(plan, table)
    for index, number in samples.items():
        step = plan.steps[index]
        assert step.attrs["samples"] == BATCH
        data = changed_attribute(data, index, number)
    with pytest.raises(ModelFormatError, match=message):
        native.NativeProgram(data, table.blobs)


def changed_attribute(data: bytes, step: int, number: int | None) -> bytes:
    """`samples` of a step is another number, or has another name."""
    size, _, steps = struct.unpack_from("<16x3I", data)
    names = data[40 : 40 + size]
    at = records(data)[-1]
    at += 52 + 8 * data[at + 6]
    out = bytearray(data)
    for i in range(steps):
        _, _, _, ins, outs, attributes = struct.unpack_from("<6I", data, at)
        at += 24 + 4 * (ins + outs)
        for _ in range(attributes):
            name, kind, count = struct.unpack_from("<3I", data, at)
            if i == step and names[name : names.index(b"\0", name)] == b"samples":
                if number is None:
                    struct.pack_into("<I", out, at, name + 1)  # "amples"
                else:
                    struct.pack_into("<q", out, at + 12, number)
            at += 12 + count * {1: 8, 2: 8, 3: 1}[kind]
    assert out != data
    return bytes(out)
