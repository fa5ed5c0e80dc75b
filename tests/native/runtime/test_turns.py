"""Steps that take turns over the samples of a batch give what each sample gives on its own."""

from __future__ import annotations

import subprocess

import lite_engine
import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine._native import runner_path
from lite_engine.backends.cpu import native
from lite_engine.ir import DType, Graph, Value
from lite_engine.model_file.program_file import tensor_file_name, write_program_file
from lite_engine.plan import make_plan
from lite_engine.plan.turns import turns_of
from lite_engine.profile import profile

from tests.profile.test_export import check_map
from tests.small_models import Builder

from ..tiny import isas, load

pytestmark = pytest.mark.cpu
BATCH = 5
#: A second-level cache in which bands pay, whatever this machine has.
LARGE = 2 << 20


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
            if samples < batch:
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
    assert not any(s.samples for s in plan.steps if s.op == "Conv")
    rng = np.random.default_rng(0)
    feeds = {v.name: rng.standard_normal(v.shape).astype(np.float32) for v in graph.inputs}
    wanted = Predictor(graph, "reference").run(feeds)[y.name]
    close(Predictor(graph, native.target()).run(feeds)[y.name], wanted)


def test_views_of_other_first_sizes_are_for_all_samples() -> None:
    """Rows of all samples as one axis, between two layers that take turns; the sizes are open, so
    that no pass joins the views."""
    b = Builder(("n", "l", 64), "rows")
    shape = b.add("Shape", b.x, name="shape")
    y = b.add("Softmax", b.add("Relu", b.x), axis=2)
    y = b.add("Reshape", b.add("Reshape", y, b.ints(-1, 64)), shape)
    y = b.add("Sin", b.add("Softmax", y, axis=2, name="again"), name="last")
    graph = b.done(b.add("ReduceMax", y, b.ints(1, 2)))
    for batch in (8, 32):
        x = np.random.default_rng(0).standard_normal((batch, 2048, 64)).astype(np.float32)
        wanted = Predictor(graph, "reference").run({"x": x})
        for threads in (1, 2, 8):
            got = Predictor(graph, native.target(), threads=threads).run({"x": x})
            for name, want in wanted.items():
                close(got[name], want, f"{batch}, {threads}")


def test_taps_of_values_that_leave_the_turns() -> None:
    """The next step writes in place what the last one in turns has made."""
    b = Builder((8, 16, 64, 64), "leaving")
    y = b.conv(b.conv(b.x, 16, 32, 3, activation="Relu"), 32, 32, 3)
    y = b.add("GlobalAveragePool", y, name="pool")
    graph = b.done(b.add("Exp", b.add("Sin", y, name="sin"), name="exp"))
    plan = make_plan(graph, "cpu")
    turns, (pool, sin) = turns_of(plan), plan.steps[-3:-1]
    assert pool.index == turns.end - 1
    assert plan.root(sin.outputs[0]) is plan.root(pool.outputs[0])
    x, names = batch_of(graph), ["pool", "sin", "exp"]
    wanted = Predictor(graph, "reference").run({"x": x}, taps=names)
    for threads in (1, 2, 8):
        found = Predictor(graph, native.target(), threads=threads).run({"x": x}, taps=names)
        for name in names:
            close(found[name], wanted[name], name)


@pytest.mark.parametrize("make", GRAPHS)
def test_many_threads_have_the_memory_of_a_program_without_turns(make, monkeypatch) -> None:
    plan = make_plan(make(12), "cpu")
    memory = load(plan, threads=8).memory().arena_bytes
    assert turns_of(plan).end and memory == plan.whole_bytes
    monkeypatch.setattr("lite_engine.plan.samples._CACHE_BYTES", 1 << 40)
    plain = make_plan(make(12), "cpu")
    assert not turns_of(plain).end
    assert memory <= 1.02 * load(plain, threads=8).memory().arena_bytes  # fewer steps in place


@pytest.mark.parametrize("threads", [1, 4, 8])
def test_the_memory_map_is_that_of_the_runtime(threads) -> None:
    predictor = Predictor(branches(12), native.target(), threads=threads)
    measured = profile(predictor, {"x": batch_of(branches(12))}, runs=1, warmup=1, roof=False)
    found = measured.memory_map
    assert 0 <= found["arena_bytes"] - measured.memory["arena"] < 4096
    check_map(found)
    names = {t["name"]: t["bytes"] for t in found["tensors"]}
    samples = {1: 1, 4: 4, 8: 12}[threads]
    assert 0 <= names["stem"] - samples * 24 * 65 * 59 * 4 < samples * 64


@lite_engine.custom_op("com.acme::Shift")
def shift(x, *, samples=3, band=1):
    return (x + samples * x[:1] + band).astype(x.dtype)


def test_an_operator_may_have_attributes_of_these_names() -> None:
    """`samples` and `band` of a custom operator are its own."""
    b = Builder((3, 16, 128, 128), "own")
    y = b.add("com.acme::Shift", b.conv(b.x, 16, 16, 3), samples=2, band=5)
    graph = b.done(b.conv(y, 16, 4, 3))
    x = batch_of(graph)
    (want,) = Predictor(graph, "reference").run({"x": x}).values()
    plan = make_plan(graph, "cpu")
    assert all(s.band == s.samples == 0 for s in plan.steps if s.op == "com.acme::Shift")
    for threads in (1, 2):
        (got,) = Predictor(graph, native.target(), threads=threads).run({"x": x}).values()
        close(got, want)


def test_a_dump_has_every_value_once(tmp_path) -> None:
    graph, x = shuffled(12), batch_of(shuffled(12))
    plan = make_plan(graph, "cpu")
    model = write_program_file(plan, tmp_path / "m.lite", (native.target(),))
    np.save(tmp_path / "x.npy", x)
    values = [n.outputs[0].name for n in graph.nodes]
    wanted = Predictor(graph, "reference").run({"x": x}, taps=values)
    tensors = {tensor_file_name(t.index): t for t in plan.tensors}
    for threads in (1, 2, 8):
        out = tmp_path / str(threads)
        out.mkdir()
        done = subprocess.run(
            [runner_path(), model, "--input", f"t0={tmp_path / 'x.npy'}", "--dump", out,
             "--threads", str(threads)], capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        found = [(tensors[p.stem], np.load(p)) for p in out.iterdir()]
        checked = [(t, y) for t, y in found if t.name in wanted]
        assert len(checked) > 4
        for tensor, y in checked:
            close(y.transpose(np.argsort(tensor.layout)), wanted[tensor.name], tensor.name)
