"""The ONNX project's own backend cases, run through our importer and references.

`python -m tests.importers.onnx_cases` prints the list of what does not pass, with reasons
(tests/importers/onnx_unsupported.txt).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes  # onnx needs it
import numpy as np
import onnx
from lite_engine.backends.reference import run_graph
from lite_engine.errors import LiteError, UnsupportedOperatorError
from lite_engine.importers import onnx as importer
from lite_engine.ir import Graph
from onnx import numpy_helper
from onnx.backend.test import loader

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted")
_TRAINING = {
    "Adagrad",
    "Adam",
    "Momentum",
    "Gradient",
}
_STRINGS = {"StringNormalizer", "StringConcat", "StringSplit", "RegexFullMatch"}
_SMALL = {
    "f8e4m3fn": "float8_e4m3fn",
    "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e5m2": "float8_e5m2",
    "f8e5m2fnuz": "float8_e5m2fnuz",
    "f8e8m0": "float8_e8m0fnu",
    "f4e2m1": "float4_e2m1fn",
}


@dataclass
class Outcome:
    """One case: passed, or why not; `scope` names the family that is left out, if any."""

    name: str
    kind: str
    scope: str
    reason: str

    @property
    def passed(self) -> bool:
        return not self.reason


def cases(kind: str) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the generators divide by zero on purpose
        return loader.load_model_tests(kind=kind)


def model_bytes(case: Any) -> bytes:
    if case.model is not None:
        return case.model.SerializeToString()
    return (Path(case.model_dir) / "model.onnx").read_bytes()


def data_sets(case: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    if case.data_sets is not None:
        yield from case.data_sets
        return
    for folder in sorted(Path(case.model_dir).glob("test_data_set_*")):
        yield _protos(folder, "input"), _protos(folder, "output")


def _protos(folder: Path, stem: str) -> list[Any]:
    paths = sorted(folder.glob(f"{stem}_*.pb"), key=lambda p: int(p.stem.rsplit("_", 1)[1]))
    return [numpy_helper.to_array(onnx.TensorProto.FromString(p.read_bytes())) for p in paths]


def scope_of(model: onnx.ModelProto) -> str:
    """The family that the standard's inference on numbers does not need; empty for the rest."""
    graph = model.graph
    ops = {n.op_type for n in graph.node}
    types = [v.type for v in (*graph.input, *graph.output)]
    elements = {t.tensor_type.elem_type for t in types}
    if any(
        t.WhichOneof("value") in ("sequence_type", "optional_type", "map_type") for t in types
    ) or any(op.startswith(("Sequence", "Optional", "SplitToSeq", "ConcatFromSeq")) for op in ops):
        return "sequences, optionals and maps"
    if ops & _TRAINING or "training" in str(model.opset_import):
        return "training and loss"
    if 8 in elements or ops & _STRINGS:
        return "strings"
    return ""


def scope(case: Any) -> str:
    """`scope_of` its model; the name tells of training."""
    found = scope_of(onnx.ModelProto.FromString(model_bytes(case)))
    return found or ("training and loss" if "training" in case.name else "")


def is_stated(root: Path, words: str) -> bool:
    """Whether docs/formats.md says so; of another release of onnx, which has other cases, nothing
    is stated."""
    page = " ".join((root / "docs/formats.md").read_text("utf-8").split())
    return f"`onnx` {onnx.__version__})" not in page or words in page


def unsupported() -> list[str]:
    """Lines `name: reason` of onnx_unsupported.txt."""
    lines = Path(__file__).with_name("onnx_unsupported.txt").read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def plain(array: Any) -> np.ndarray:
    """Types that NumPy does not have as they are held here: bits of floats, integers in bytes."""
    if isinstance(array, onnx.TensorProto):
        array = numpy_helper.to_array(array)
    array = np.asarray(array)
    kind = array.dtype.name
    if kind in ("int4", "int2", "uint4", "uint2"):
        return array.astype(np.int8 if kind[0] == "i" else np.uint8)
    if kind.startswith(("float8", "float4")):
        return array.view(np.uint8)
    return array.view(np.uint16) if kind == "bfloat16" else array


def real(array: np.ndarray, dtype: str) -> np.ndarray:
    """The numbers of an array that holds the bits of floats."""
    if dtype == "bf16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    small = _SMALL.get(dtype)
    return array if small is None else array.view(getattr(ml_dtypes, small)).astype(np.float32)


#: Draws per number of a case whose result is random; its mean is judged at 5 standard errors.
DRAWS = 20_000


def check_distribution(graph: Graph, inputs: list[np.ndarray]) -> None:
    """A Bernoulli's means are the given probabilities; the recorded draws are somebody else's."""
    (chance,) = inputs
    (drawn,) = run_graph(graph, [np.broadcast_to(chance, (DRAWS, *chance.shape)).copy()])
    assert drawn.shape == (DRAWS, *chance.shape) and set(np.unique(drawn)) <= {0, 1}
    error = np.sqrt(chance * (1 - chance) / DRAWS)
    np.testing.assert_array_less(np.abs(drawn.mean(0, np.float64) - chance), 5 * error + 1e-9)


def run(case: Any) -> Outcome:
    data = model_bytes(case)
    left_out = scope(case)
    try:
        graph = importer.read_bytes(data, Path(case.model_dir or "."))
        for inputs, wanted in data_sets(case):
            taps: dict[str, np.ndarray] = {}
            outputs = run_graph(graph, [plain(a) for a in inputs[: len(graph.inputs)]], taps=taps)
            check_types(graph, taps)
            compare(case, outputs, wanted, [str(v.dtype) for v in graph.outputs])
            if is_random(case):
                check_distribution(graph, [plain(a) for a in inputs])
    except UnsupportedOperatorError as error:
        return Outcome(case.name, case.kind, left_out, f"unsupported: {error}")
    except (
        LiteError,
        AssertionError,
        TypeError,
        AttributeError,
        KeyError,
        ValueError,
        IndexError,
    ) as error:
        lines = [s.strip() for s in str(error).splitlines() if s.strip()]
        return Outcome(
            case.name, case.kind, left_out, f"{type(error).__name__}: {' '.join(lines[:3])}"
        )
    return Outcome(case.name, case.kind, left_out, "")


def check_types(graph: Graph, taps: dict[str, np.ndarray]) -> None:
    """What inference said holds for what came out."""
    for value in graph.values():
        got = taps.get(value.name)
        if got is None or value.dtype is None:
            continue
        assert got.dtype == value.dtype.np, f"{value} is inferred, {got.dtype} came out"
        if value.shape is not None:
            fits = len(value.shape) == got.ndim and all(
                not isinstance(d, int) or d == n for d, n in zip(value.shape, got.shape)
            )
            assert fits, f"{value} is inferred, shape {got.shape} came out"


def is_random(case: Any) -> bool:
    """Its recorded numbers were drawn, so only their form can agree."""
    return case.name.startswith("test_bernoulli")


#: Distance from 1 to the next number of the types in which recordings round after every step.
_STEPS = {"bf16": 2.0**-7, "f16": 2.0**-10}


def compare(case: Any, outputs: list[np.ndarray], wanted: list[Any], dtypes: list[str]) -> None:
    """The case's own tolerance; attention in 16 bits may differ by two steps of the type: it was
    recorded from a run that rounds every sum, ours rounds results. Fourier transforms may differ by
    a step of float32 at the largest number: where all of it cancels, recordings hold that."""
    assert len(outputs) >= len(wanted), f"{len(outputs)} outputs instead of {len(wanted)}"
    for got, expected, dtype in zip(outputs, wanted, dtypes):
        expected = plain(expected)
        assert got.shape == expected.shape, f"shape {got.shape} instead of {expected.shape}"
        assert got.dtype == expected.dtype, f"dtype {got.dtype} instead of {expected.dtype}"
        if is_random(case):
            continue
        got, expected = real(got, dtype), real(expected, dtype)
        rtol, atol = case.rtol, case.atol
        if "attention" in case.name:
            rtol = max(rtol, 2 * _STEPS.get(dtype, 0))
        if "_dft" in case.name:
            atol = max(atol, 2.0**-23 * np.abs(expected).max())
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol)


def main() -> None:
    for kind in KINDS:
        for case in sorted(cases(kind), key=lambda c: c.name):
            outcome = run(case)
            if not outcome.passed:
                family = f"[{outcome.scope}] " if outcome.scope else ""
                print(f"{outcome.name}: {family}{outcome.reason}")


if __name__ == "__main__":
    main()
