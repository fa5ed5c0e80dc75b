"""The runtime around the kernels: loading, refusing, memory, taps, threads."""

import struct
import threading
from dataclasses import replace

import numpy as np
import pytest
from lite_engine.backends.cpu import native
from lite_engine.errors import ModelFormatError, ShapeError
from lite_engine.ir import DType
from lite_engine.plan.memory import assign_offsets
from lite_engine.plan.model import Plan, PlanTensor, Step, row_major
from lite_engine.plan.program import WeightTable, encode

from ..tiny import load, one_step_plan

pytestmark = pytest.mark.cpu
X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5


def tensor(plan, name, dims, role, **more):
    plan.tensors.append(
        PlanTensor(len(plan.tensors), name, DType.F32, dims, row_major(len(dims)), role, **more)
    )
    return plan.tensors[-1].index


def step(plan, op, kernel, inputs, outputs, **attrs):
    plan.steps.append(
        Step(
            len(plan.steps), f"{op}{len(plan.steps)}", op, kernel, "", "cpu", inputs, outputs, attrs
        )
    )


def chain(*ops, dims=(3, 4)):
    """x → op → op → … → y, intermediate tensors m0, m1, … in the arena."""
    plan = Plan("cpu")
    at = tensor(plan, "x", dims, "input")
    plan.inputs.append(at)
    for i, op in enumerate(ops):
        last = i == len(ops) - 1
        to = tensor(plan, "y" if last else f"m{i}", dims, "output" if last else "arena")
        step(plan, op, "f32_unary", [at], [to])
        at = to
    plan.outputs.append(at)
    assign_offsets(plan)
    return plan


def test_chain_taps_times_and_memory():
    program = load(chain("Neg", "Relu", "Exp"), threads=2)
    program.tap("m0")
    program.tap("x")
    (y,) = program.run([X])
    np.testing.assert_allclose(y, np.exp(np.maximum(-X, 0)), rtol=1e-6)
    assert np.array_equal(program.tapped()["m0"], -X)
    assert np.array_equal(program.tapped()["x"], X)
    steps = program.steps()
    assert [s.op for s in steps] == ["Neg", "Relu", "Exp"]
    assert all(s.variant.startswith("f32_unary__") for s in steps)
    assert all(t >= 0 for t in program.step_times_ns())
    assert sum(program.step_times_ns()) <= program.run_ns
    assert program.memory().arena_bytes >= X.nbytes and program.threads == 2
    program.tap("m0", False)
    assert set(program.tapped()) == {"x"}
    with pytest.raises(ShapeError, match="no tensor 'nothing'"):
        program.tap("nothing")


def test_threads_note_what_they_compute():
    """Within their step's time, and only while somebody asks."""
    program = load(chain("Exp", "Neg", dims=(64, 4096)), threads=2)
    x = np.ones((64, 4096), np.float32)
    program.run([x])
    assert program.thread_times_ns(0) == ()
    program.note_threads(True)
    for _ in range(2):  # each run begins anew
        program.run([x])
        for i, step in enumerate(program.steps()):
            spent = program.thread_times_ns(i)
            assert len(spent) == 2 and max(spent) > 0
            assert all(0 <= ns <= step.end_ns - step.start_ns for ns in spent)
    assert program.thread_times_ns(2) == () == program.thread_times_ns(-1)
    program.note_threads(False)
    program.run([x])
    assert program.thread_times_ns(0) == ()


def test_max_isa_is_obeyed():
    for isa in native.isas():
        program = load(chain("Relu"), max_isa=isa)
        allowed = native.isas()[: native.isas().index(isa) + 1]
        assert program.steps()[0].variant.split("__")[1] in allowed
    with pytest.raises(ModelFormatError, match="unknown instruction set 'mmx'"):
        load(chain("Relu"), max_isa="mmx")


def test_outputs_may_be_views():
    """An output that is an input, a weight, or a reshaped arena tensor is copied at the end."""
    plan = chain("Neg", "Abs")
    weight = tensor(plan, "w", (3, 4), "weight", data=X * 2)
    for name, of in (("a", 0), ("b", 1), ("c", weight)):
        plan.outputs.append(tensor(plan, name, (4, 3), "output", alias_of=of))
    plan.tensors[plan.outputs[2]].offset = plan.tensors[1].offset
    results = load(plan).run([X])
    for got, wanted in zip(results, (np.abs(X), X, -X, X * 2)):
        assert np.array_equal(got.ravel(), wanted.ravel())


def test_concat_buffer_slices_and_halo():
    """Steps write channel slices of one buffer; a halo is filled by the runtime before each use."""
    plan = Plan("cpu")
    x = tensor(plan, "x", (1, 2, 2, 3), "input")
    plan.inputs.append(x)
    whole = tensor(plan, "whole", (1, 2, 2, 8), "output")
    first = tensor(plan, "first", (1, 2, 2, 3), "output", alias_of=whole, pitch=8)
    rest = tensor(plan, "rest", (1, 2, 2, 3), "output", alias_of=whole, pitch=8, offset=12)
    ring = tensor(plan, "ring", (1, 2, 2, 3), "arena", halo=(1, 1, 1, 1))
    pooled = tensor(plan, "pooled", (1, 4, 4, 3), "output")
    plan.outputs += [whole, pooled]
    step(plan, "Neg", "f32_unary", [x], [first])
    step(plan, "Abs", "f32_unary", [x], [rest])
    step(plan, "Relayout", "copy_relayout", [x], [ring], perm=[0, 1, 2, 3])
    step(plan, "MaxPool", "f32_pool", [ring], [pooled], kernel_shape=[1, 1], pads=[1, 1, 1, 1])
    arena = plan.tensors[ring].nbytes
    plan.arena_bytes = arena
    program = load(plan, threads=2)
    data = np.random.default_rng(3).normal(size=(1, 2, 2, 3)).astype(np.float32)
    got, pool = program.run([data])
    assert np.array_equal(got[..., :3], -data) and np.array_equal(got[..., 3:6], np.abs(data))
    assert np.array_equal(pool[:, 1:3, 1:3], data)


@pytest.mark.parametrize("joining", [True, False])
@pytest.mark.parametrize("offset, accepted", [(0, True), (16, False), (4, False), (48, False)])
def test_a_piece_lies_in_its_place_or_apart(joining, offset, accepted):
    """A piece that lies askew in the whole would be copied over itself."""
    plan = Plan("cpu")
    x = tensor(plan, "x", (4, 4), "input")
    whole = tensor(plan, "whole", (4, 4), "arena")
    piece = tensor(plan, "piece", (4, 4), "arena", alias_of=whole, offset=offset)
    if offset:  # room for the whole piece
        plan.tensors[whole].dims = (8, 4)
    y = tensor(plan, "y", (4, 4), "output")
    plan.inputs.append(x)
    plan.outputs.append(y)
    plan.arena_bytes = 256
    target = tensor(plan, "target", (4, 4), "arena", alias_of=whole)
    ends = [piece, target] if joining else [target, piece]
    step(plan, "Neg", "f32_unary", [x], ends[:1])
    op, kernel = ("Concat", "copy_concat") if joining else ("Split", "copy_split")
    step(plan, op, kernel, ends[:1], ends[1:], axis=0)
    step(plan, "Neg", "f32_unary", ends[1:], [y])
    data = np.arange(16, dtype=np.float32).reshape(4, 4)
    if accepted:
        assert np.array_equal(load(plan).run([data])[0], data)
    else:
        with pytest.raises(ModelFormatError, match="'piece' lies in 'target', but not"):
            load(plan)


def test_arrays_need_not_be_aligned():
    odd = np.ndarray(X.shape, X.dtype, bytearray(X.nbytes + 1), 1)
    odd[...] = X
    assert not odd.flags.aligned
    program = load(chain("Neg"))
    assert np.array_equal(program.run([odd])[0], -X)
    with pytest.raises(ShapeError, match="aligned to 4"):
        program.run([X], [odd])
    plan = one_step_plan("Add", "f32_binary", [X, X], [X], constant=[1])
    plan.tensors[1].data = odd
    assert np.array_equal(load(plan).run([X])[0], X + X)


def test_inputs_may_be_read_only_or_empty():
    """The address of neither comes by the quick way (`native_types.address_of`)."""
    fixed = X.copy()
    fixed.flags.writeable = False
    assert np.array_equal(load(chain("Neg")).run([fixed])[0], -X)
    none = np.empty((0, 4), np.float32)
    assert load(chain("Neg", dims=none.shape)).run([none])[0].shape == none.shape
    assert load(chain("Neg", dims=())).run([np.array(3, np.float32)])[0] == -3


BAD_ATTRS = [
    ("Softmax", "f32_softmax", {"axis": 9}, "axis is outside"),
    ("Relayout", "copy_relayout", {"perm": [0, 0]}, "not a permutation"),
    ("Conv", "f32_unary", {}, "does not implement Conv"),
    ("Relu", "no_such_kernel", {}, "'no_such_kernel' is not in this library"),
    ("Slice", "copy_slice", {"starts": [0], "ends": [1], "axes": [7]}, "not valid"),
]


@pytest.mark.parametrize("op, kernel, attrs, message", BAD_ATTRS)
def test_refusals_name_the_step(op, kernel, attrs, message):
    with pytest.raises(ModelFormatError, match=rf"step 0 'the_{op}'.*{message}"):
        load(one_step_plan(op, kernel, [X], [X], attrs))


def test_wrong_types_and_missing_ports():
    with pytest.raises(ModelFormatError, match="f32"):
        load(one_step_plan("Relu", "f32_unary", [X.astype(np.int32)], [X.astype(np.int32)]))
    with pytest.raises(ModelFormatError, match="needs"):
        load(one_step_plan("Add", "f32_binary", [X], [X]))
    with pytest.raises(ModelFormatError, match="broadcast"):
        load(one_step_plan("Add", "f32_binary", [X, X[:2]], [X]))


def test_memory_rules():
    plan = chain("Neg", "Relu")
    plan.tensors[1].offset = 1 << 40
    with pytest.raises(ModelFormatError, match="outside the arena"):
        load(plan)
    plan = chain("Neg", "Relu", "Exp")
    plan.tensors[2].offset = plan.tensors[1].offset
    assert load(plan).run([X])  # in place, which the kernel allows
    plan.tensors[2].offset = plan.tensors[1].offset + 4
    plan.arena_bytes += 64
    with pytest.raises(ModelFormatError, match="overwrites input"):
        load(plan)
    plan = chain("Neg", "Relu")
    small = plan.tensors[1]
    large = replace(small, index=len(plan.tensors), name="large", dims=(99, *small.dims[1:]),
                    pitch=small.dims[-1], alias_of=small.index)  # fmt: skip
    plan.tensors.append(large)
    with pytest.raises(ModelFormatError, match="'large': lies outside"):
        load(plan)
    plan = chain("Neg", "Relu")
    small = plan.tensors[1]
    odd = replace(small, index=len(plan.tensors), name="odd", dtype=DType.U8, alias_of=None,
                  offset=small.offset + 1)  # fmt: skip
    wide = replace(small, index=odd.index + 1, name="wide", dims=(1,), layout=(0,), pitch=1,
                   alias_of=odd.index, offset=odd.offset)  # fmt: skip
    plan.tensors += [odd, wide]
    with pytest.raises(ModelFormatError, match="'wide': its elements are not aligned in 'odd'"):
        load(plan)
    plan = one_step_plan("Relu", "f32_unary", [X], [X], constant=[0])
    plan.steps[0].outputs = [0]
    with pytest.raises(ModelFormatError, match="is a weight or an input"):
        load(plan)
    plan = chain("Neg")
    plan.tensors.append(replace(plan.tensors[0], index=2, name="loop", alias_of=2))
    with pytest.raises((ModelFormatError, RecursionError)):
        table = WeightTable()
        plan.root = lambda index: plan.tensors[index]
        native.NativeProgram(encode(plan, table), table.blobs)


def test_memory_limit_and_missing_weight():
    with pytest.raises(ModelFormatError, match="out of memory"):
        load(chain("Neg", "Relu", dims=(1000, 1000)), memory_limit_bytes=1 << 20)
    table = WeightTable()
    data = encode(one_step_plan("Relu", "f32_unary", [X], [X], constant=[0]), table)
    with pytest.raises(ModelFormatError, match="needs 1 weights, 0 are given"):
        native.NativeProgram(data, [])
    with pytest.raises(ModelFormatError, match="has 4 bytes, its tensor needs 48"):
        native.NativeProgram(data, [X.ravel()[:1]])


@pytest.mark.parametrize("compared", [True, False])
@pytest.mark.parametrize("count", [0, 3])
def test_weights_may_lie_anywhere_in_their_file(count, compared):
    file = np.zeros(64, np.uint8)
    odd = np.ndarray((count,), np.float32, buffer=file, offset=1)
    assert odd.ctypes.data % 4
    table = WeightTable(compared=compared)
    table.add(odd)
    assert table.blobs[0].ctypes.data % 4 == 0 and table.blobs[0].shape == (count,)


@pytest.mark.parametrize("length", [0, 3, 4, 8, 40, 47, -1, -9])
def test_truncated(length):
    table = WeightTable()
    data = encode(chain("Relu"), table)
    with pytest.raises(ModelFormatError, match=r"truncated|magic|version"):
        native.NativeProgram(data[:length], table.blobs)


def test_other_versions_are_refused():
    data = bytearray(encode(chain("Relu"), WeightTable()))
    data[4:8] = struct.pack("<I", 99)
    with pytest.raises(ModelFormatError, match="version 99, this runtime reads 1"):
        native.NativeProgram(bytes(data), [])


def test_wrong_inputs():
    program = load(chain("Relu"))
    for wrong in ([], [X, X], [X.astype(np.float64)], [X.ravel()]):
        with pytest.raises(ShapeError):
            program.run(wrong)
    # any memory order is taken
    assert np.array_equal(program.run([np.asfortranarray(X)])[0], np.maximum(X, 0))


def test_two_programs_at_once():
    """Different programs run in different threads, each with its own pool."""
    failures = []

    def work(seed):
        x = np.random.default_rng(seed).normal(size=(64, 301)).astype(np.float32)
        program = load(chain("Neg", "Relu", "Abs", dims=x.shape), threads=2)
        for _ in range(50):
            (y,) = program.run([x])
            if not np.array_equal(y, np.maximum(-x, 0)):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_thread_counts_agree():
    plan = chain("Exp", "Neg", dims=(7, 1003))
    x = np.random.default_rng(5).normal(size=(7, 1003)).astype(np.float32)
    first = load(plan, threads=1).run([x])[0]
    for threads in (2, 3, 8):
        assert np.array_equal(load(plan, threads=threads).run([x])[0], first)
    assert np.array_equal(load(plan, threads=2, pin=True).run([x])[0], first)
