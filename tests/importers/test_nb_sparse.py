"""`.nb` files with sparse_conv2d: written as Paddle-Lite's opt 2.13rc0 does, and read back."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from lite_engine import settings
from lite_engine.compat.opt import run_opt
from lite_engine.errors import UnsupportedOperatorError
from lite_engine.importers import load
from lite_engine.importers.naive_buffer.container import read_nb
from lite_engine.ir import Graph
from lite_engine.model_file.naive_buffer import SparseLayers, write_nb
from lite_engine.model_file.naive_buffer.sparse import encode

from tests.importers import real_paddle_lite
from tests.importers.golden_runs import run_graph
from tests.small_models import pointwise

MODELS = Path(os.environ.get("LITE_TEST_MODELS", ""))
SLOTS = ("NonZeroWeights", "OcNonZeros", "Diffs")


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Threads that wait for each other are slow where workers of pytest share the processors."""
    with settings.override(LITE_THREADS="1"):
        yield


def some(kind: str) -> np.ndarray:
    """A weight (16, 8, 1, 1) of 1 to 128 with few that are not 0."""
    kept = np.zeros((16, 8), bool)
    for o in range(16):
        for j in range(o % 4 if kind == "single" else o // 2 % 3):
            kept[o, (3 * (o if kind == "single" else o // 2) + 2 * j + 1) % 8] = True
    if kind == "pairs":
        kept[:2, 5] = True
    return (np.arange(1, 129, dtype=np.float32).reshape(16, 8) * kept)[:, :, None, None]


#: What opt 2.13rc0 wrote of them for maps of 16x16: weights, ends, differences in planes, first_ic.
#: (Of pairs it leaves the last 8 ends and the last difference as they lay in memory.)
WRITTEN = {
    "single": (
        [13, 0, 0, 0, 18, 24, 0, 0, 27, 29, 31, 0, 41, 0, 0, 0, 52, 54, 0, 0, 57, 59, 63, 0, 77, 0,
         0, 0, 82, 88, 0, 0, 91, 93, 95, 0, 105, 0, 0, 0, 116, 118, 0, 0, 121, 123, 127, 0],
        [0, 1, 6, 11, 12, 13, 18, 23, 24, 25, 30, 35, 36, 37, 42, 47],
        [-3, 0, 0, 0, 6, -2, 0, 0, 2, 2, -4, -4, -1, 0, 0, 0, 2, -4, 0, 0, 2, 4, 0, 0, -3, 0, 0, 0,
         6, -2, 0, 0, 2, 2, -4, -4, -1, 0, 0, 0, 2, -4, 0, 0, 2, 4, 0, 0],
        4,
    ),
    "pairs": (
        [6, 14, 21, 29, 34, 42, 40, 48, 70, 78, 81, 89, 83, 91, 119, 127],
        [1, 2, 4, 4, 5, 7, 7, 8],
        [-1, -4, 6, 0, -5, 2, 1],
        5,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRITTEN)
def test_tensors_are_those_of_paddle_lite(kind: str) -> None:
    values, ends, planes, first = WRITTEN[kind]
    made = encode(some(kind), 256)
    assert made is not None
    assert made.values.tolist() == values and made.ends[: len(ends)].tolist() == ends
    assert (made.diffs[: len(planes)] / 1024).tolist() == planes
    assert (made.first, made.paired) == (first, kind == "pairs")
    assert encode(np.zeros_like(some(kind)), 256) is None


def network(w: np.ndarray, size: int | str = 6, attrs: str = 'activation="Relu"') -> Graph:
    return pointwise(w, size, attrs)


def drawn(outputs: int, channels: int, zeros: float, width: int = 1) -> np.ndarray:
    rng = np.random.default_rng(outputs)
    kept = np.repeat(rng.random((-(-outputs // width), channels)) >= zeros, width, axis=0)
    w = rng.standard_normal((outputs, channels)) * kept[:outputs]
    return w.astype(np.float32)[:, :, None, None]


@pytest.mark.parametrize(
    "w",
    [some("single"), some("pairs"), drawn(17, 24, 0.8), drawn(15, 9, 0.7, 2), drawn(1, 40, 0.7)],
    ids=["empty outputs", "pairs", "17x24", "odd pairs", "one output"],
)  # fmt: skip
@pytest.mark.parametrize("fp16", [False, True])
def test_a_file_reads_back_as_the_same_weights(w: np.ndarray, fp16: bool, tmp_path: Path) -> None:
    found = SparseLayers()
    path = write_nb(network(w), tmp_path / "m.nb", sparse=found, fp16=fp16)
    assert (len(found.done), found.dense) == (1, {})
    (op,) = [o for o in read_nb(memoryview(path.read_bytes())).blocks[0].ops if "conv" in o.type]
    number = 5 if fp16 else 1
    assert op.attrs["__@kernel_type_attr@__"] == f"sparse_conv2d/def/4/{number}/1"
    assert any(np.array_equal(v.const, w) for v in load(path).constants())
    feeds = {"x": np.random.default_rng(0).standard_normal((1, w.shape[1], 6, 6)).astype("f4")}
    (want,), (got,) = (run_graph(g, feeds).values() for g in (network(w), load(path)))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("graph", "targets", "why"),
    [
        (network(drawn(17, 24, 0.8)), ["arm", "opencl"], "target arm alone"),
        (network(drawn(17, 24, 0.8), "S"), ["arm"], "size of its input is not fixed"),
        (network(drawn(17, 24, 0.8), attrs="strides=[2, 2]"), ["arm"], "stride is not 1"),
        (network(np.zeros((9, 9, 1, 1), np.float32)), ["arm"], "no weight that is not 0"),
        (network(drawn(17, 24, 0.1)), ["arm"], ""),
    ],
)
def test_what_stays_dense_says_why(graph: Graph, targets: list[str], why: str, tmp_path) -> None:
    found = SparseLayers()
    path = write_nb(graph, tmp_path / "m.nb", targets=targets, sparse=found)
    assert not found.done and ([why in w for w in found.dense.values()] == [True] * bool(why))
    ops = [o.type for o in read_nb(memoryview(path.read_bytes())).blocks[0].ops]
    assert "conv2d" in ops and "sparse_conv2d" not in ops


def test_a_file_for_another_size_is_refused(tmp_path: Path) -> None:
    path = write_nb(network(drawn(17, 24, 0.8)), tmp_path / "m.nb", sparse=SparseLayers())
    with pytest.raises(UnsupportedOperatorError, match="another size than 5x5"):
        load(path, shapes={"x": (1, 24, 5, 5)})


def test_opt_says_what_it_did(tmp_path: Path, capsys) -> None:
    model = write_nb(network(drawn(17, 24, 0.8)), tmp_path / "dense.nb")
    command = [f"--model_file={model}", f"--optimize_out={tmp_path / 'm'}", "--sparse_model=true"]
    assert run_opt(command) == 0 and "1 layer is stored sparse" in capsys.readouterr().err
    assert run_opt([*command, "--sparse_threshold=0.9"]) == 0
    assert "no convolution has 90 % zeros" in capsys.readouterr().err


@pytest.mark.models
@pytest.mark.parametrize("kind", WRITTEN)
def test_the_same_file_as_opt_writes(kind: str, tmp_path: Path) -> None:
    """A Paddle model with pruned weights through both."""
    real_paddle_lite.needed()
    from tests.importers.paddle_files import record

    source = MODELS / "nb_made/tiny_paddle/model.pdmodel"
    params = dict(_parameters(source))
    params["conv2d_2.w_0"] = some(kind)
    (tmp_path / "model.pdmodel").write_bytes(source.read_bytes())
    (tmp_path / "model.pdiparams").write_bytes(b"".join(record(params[n]) for n in sorted(params)))
    model = tmp_path / "model"
    flags = [f"--model_file={model}.pdmodel", f"--param_file={model}.pdiparams",
             "--valid_targets=arm", "--sparse_model=true"]  # fmt: skip
    both = real_paddle_lite.written_by_both(tmp_path, flags)
    ours, theirs = (_sparse_tensors(path) for path in both)
    for slot in SLOTS:
        a, b = ours[slot], theirs[slot]
        assert a.dtype == b.dtype and a.shape == b.shape
        used = {"OcNonZeros": 8, "Diffs": -1}.get(slot) if kind == "pairs" else None
        np.testing.assert_allclose(a[:used], b[:used], rtol=1e-5)
    x = {"x": np.random.default_rng(0).standard_normal((1, 3, 32, 32)).astype(np.float32)}
    (a,), (b,) = (run_graph(load(path), x).values() for path in both)
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def _parameters(source: Path) -> dict[str, np.ndarray]:
    from lite_engine.importers.paddle import read_parameters
    from lite_engine.importers.paddle.program_desc import read_program

    program = read_program(source.read_bytes())
    read_parameters(program, source, source.with_suffix(".pdiparams"))
    return {name: np.ascontiguousarray(array) for name, array in program.params.items()}


def _sparse_tensors(path: Path) -> dict[str, np.ndarray]:
    program = read_nb(memoryview(path.read_bytes()))
    (op,) = [o for o in program.blocks[0].ops if o.type == "sparse_conv2d"]
    return {slot: program.params[op.inputs[slot][0]] for slot in SLOTS}
