"""Packed weights are made once for all programs of a process that hold the same arrays, and for
nothing that only looks the same."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import permutations

import numpy as np
import pytest
from lite_engine.errors import ModelFormatError
from lite_engine.ir import DType, Graph, Value
from lite_engine.plan import assign_offsets, make_plan

from ..cases import plans
from ..tiny import isas, load

pytestmark = pytest.mark.cpu
rng = np.random.default_rng(5)

#: Less is not shared (runtime/weight_cache.cc).
FEWEST_BYTES = 4096


@lru_cache(1)
def large():
    """The cases of the kernels' tests with weights that are large enough."""

    def most(plan):
        return max((t.data.nbytes for t in plan.tensors if t.data is not None), default=0)

    return [plan for plan in plans() if most(plan) >= FEWEST_BYTES]


def fed(plan):
    made = []
    for tensor in (plan.tensors[i] for i in plan.inputs):
        whole = tensor.dtype.np.kind in "iub"
        values = rng.integers(0, 2, tensor.dims) if whole else rng.standard_normal(tensor.dims)
        made.append(values.astype(tensor.dtype.np))
    return made


def outputs(program, inputs):
    return [np.array(y) for y in program.run(inputs)]


def same(found, wanted, what=""):
    for y, w in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(y, w, what)


@pytest.mark.parametrize("isa", isas())
def test_a_second_program_gives_the_same_bits(isa):
    """Of every kernel: beside the first one, when that has gone, and with both gone."""
    tried = set()
    for plan in large():
        kernel, inputs = plan.steps[0].kernel, fed(plan)
        try:
            first = load(plan, max_isa=isa, threads=1)
        except ModelFormatError as error:
            assert "is not in this library" in str(error), error
            continue
        wanted = outputs(first, inputs)
        second = load(plan, max_isa=isa, threads=1)
        del first
        same(outputs(second, inputs), wanted, kernel)
        third = load(plan, max_isa=isa, threads=1)
        same(outputs(third, inputs), wanted, kernel)
        del second, third
        same(outputs(load(plan, max_isa=isa, threads=1), inputs), wanted, kernel)
        tried.add(kernel)
    assert {"f32_gemm", "f32_conv2d_winograd43", "i8_conv2d_gemm", "f32_lstm"} <= tried


def graph_of(op, x, weights, attrs=None, *more):
    """One node; `weights` is the array itself, not a copy of it."""
    graph = Graph(op)
    value = Value("x", DType.of(x), x.shape)
    graph.inputs = [value]
    constants = [graph.constant(w) for w in (weights, *more)]
    graph.outputs = [graph.add(op, [value, *constants], attrs or {}, name="n").output]
    return graph


def planned(graph, isa):
    plan = make_plan(graph, "cpu")
    assign_offsets(plan)
    return plan, load(plan, max_isa=isa, threads=1)


def floats(*dims):
    return rng.standard_normal(dims).astype(np.float32)


#: Ways to use one array: (op, x, shape of the weights, attributes).
SQUARE, CUBE = floats(96, 96), floats(96, 8, 3, 3)
X, IMAGE, DEEP = floats(5, 96), floats(1, 8, 12, 12), floats(1, 72, 6, 6)
WAYS = {
    "Gemm": [
        ("Gemm", X, SQUARE, (96, 96), {}),
        ("Gemm", X, SQUARE, (96, 96), {"transB": 1}),
        ("Gemm", X, SQUARE, (96, 96), {"alpha": 2.0}),
        ("Gemm", floats(5, 48), SQUARE, (48, 192), {}),
        ("MatMul", floats(2, 5, 96), SQUARE, (96, 96), {}),
    ],
    "Conv": [
        ("Conv", IMAGE, CUBE, (96, 8, 3, 3), {"pads": [1, 1, 1, 1]}),
        ("Conv", IMAGE, CUBE, (96, 8, 3, 3), {"strides": [2, 2]}),
        ("Conv", floats(1, 32, 12, 12), CUBE, (96, 8, 3, 3), {"group": 4, "pads": [1, 1, 1, 1]}),
        ("Conv", DEEP, CUBE, (96, 72, 1, 1), {}),
        ("Conv", DEEP, CUBE, (48, 72, 1, 2), {}),
        ("Gemm", floats(5, 96), CUBE, (96, 72), {}),
        ("Conv", floats(1, 3, 12, 12), CUBE[:, :3], (96, 3, 3, 3), {}),
    ],
}


@pytest.mark.parametrize("isa", isas())
@pytest.mark.parametrize("ways", WAYS)
def test_another_use_of_an_array_is_packed_for_itself(ways, isa):
    """Each beside each other one. The oracle is the same program alone, with a copy of it."""
    graphs, wanted = [], []
    for op, x, array, shape, attrs in WAYS[ways]:
        view = array.reshape(shape) if array.flags.c_contiguous else np.ascontiguousarray(array)
        graphs.append(graph_of(op, x, view, attrs))
        _, program = planned(graph_of(op, x, view.copy(), attrs), isa)
        wanted.append(outputs(program, [x]))
        del program
    for first, second in permutations(range(len(graphs)), 2):
        kept = planned(graphs[first], isa)
        _, program = planned(graphs[second], isa)
        x = WAYS[ways][second][1]
        same(outputs(program, [x]), wanted[second], f"{first} before {second}")
        del kept, program


def test_an_array_written_to_in_between_is_packed_again():
    weights, x = floats(96, 96), floats(5, 96)
    _, before = planned(graph_of("Gemm", x, weights), None)
    old = outputs(before, [x])
    weights *= 2
    _, after = planned(graph_of("Gemm", x, weights), None)
    same(outputs(after, [x]), [2 * old[0]])
    same(outputs(before, [x]), old)


def test_programs_come_and_go_in_several_threads():
    arrays = [floats(64, 96) for _ in range(4)]
    x = floats(3, 64)
    wanted = [outputs(planned(graph_of("Gemm", x, w.copy()), None)[1], [x]) for w in arrays]

    def work(seed):
        order = np.random.default_rng(seed)
        held = {}
        for _ in range(60):
            i = int(order.integers(4))
            held[int(order.integers(3))] = planned(graph_of("Gemm", x, arrays[i]), None)[1], i
            for program, n in held.values():
                same(outputs(program, [x]), wanted[n])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


MEMORY = """
import numpy as np
from lite_engine import Predictor, optimize
from lite_engine.backends.cpu.native import target
from lite_engine.ir import DType, Graph, Value
rng = np.random.default_rng(0)
x = Value("x", DType.F32, ("n", 1024))
graph = Graph("deep")
graph.inputs = [x]
for i in range(12):
    w = graph.constant(rng.standard_normal((1024, 1024)).astype(np.float32))
    x = graph.add("Relu", [graph.add("MatMul", [x, w]).output]).output
graph.outputs = [x]
model = optimize(graph)

def mebibytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 2**20

predictor = Predictor(model, target())
predictor.run({"x": np.zeros((2, 1024), np.float32)})
first = mebibytes()
predictor.run({"x": np.zeros((9, 1024), np.float32)})
other = Predictor(model, target())
other.run({"x": np.zeros((2, 1024), np.float32)})
print(mebibytes() - first)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc/self/statm")
def test_a_second_size_and_a_second_predictor_add_no_weights():
    """48 MiB of weights; what they add is plans and buffers."""
    done = subprocess.run(
        [sys.executable, "-c", MEMORY], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert float(done.stdout) < 24, done.stdout
