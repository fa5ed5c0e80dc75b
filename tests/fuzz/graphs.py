"""Random graphs of valid operators against onnxruntime, on every backend.

    python -m tests.fuzz.graphs COUNT [SEED] [BACKEND …]

Each graph has a few operators on random shapes, broadcast, with random attributes. onnxruntime runs
every operator as it is added, so all values are known. A graph on which a backend disagrees is cut
down: operators that the disagreement does not need become inputs with onnxruntime's values. The
small model is printed, and written to the current folder with its inputs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from lite_engine.errors import LiteError
from lite_engine.importers.onnx import read_bytes
from lite_engine.ir import Graph
from lite_engine.passes import optimize_graph
from lite_engine.plan import make_plan
from lite_engine.runtime.execute import Execution
from onnx import helper, numpy_helper

OPSET = 21
#: Share of a value's largest number by which sums in another order may differ.
CLOSE = 1e-4
#: Of these it is a share of the terms, too: where they cancel, what they were rounded by remains.
#: (An InstanceNormalization of one element is its bias to the bit here and in float64, up to 1.4e-6
#: beside it in onnxruntime; seed 2054150 subtracts two of them.)
SUMS = ("Add", "Sub")
Array = np.ndarray


@dataclass(frozen=True)
class Call:
    """One operator: names of its inputs ("" where one is absent) and outputs."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: dict[str, Any] = field(default_factory=dict)


@dataclass
class Model:
    """Calls in order, and every value by name. `constants` are written into the file."""

    calls: list[Call] = field(default_factory=list)
    values: dict[str, Array] = field(default_factory=dict)
    constants: set[str] = field(default_factory=set)

    def given(self) -> list[str]:
        """What the model reads and no call makes, without constants."""
        made = {o for c in self.calls for o in c.outputs}
        read = dict.fromkeys(i for c in self.calls for i in c.inputs if i)
        return [n for n in read if n not in made and n not in self.constants]

    def content(self, outputs: Sequence[str]) -> bytes:
        def info(name: str) -> Any:
            x = self.values[name]
            return helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape
            )

        read = {i for c in self.calls for i in c.inputs}
        graph = helper.make_graph(
            [helper.make_node(c.op, c.inputs, c.outputs, **c.attrs) for c in self.calls],
            "random",
            [info(n) for n in self.given()],
            [info(n) for n in outputs],
            [numpy_helper.from_array(self.values[n], n) for n in sorted(self.constants & read)],
        )
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()

    def __str__(self) -> str:
        lines = []
        for c in self.calls:
            inputs = ", ".join(
                f"{n}{'=' if n in self.constants else ''}:"
                f"{self.values[n].dtype}{list(self.values[n].shape)}" if n else "-"
                for n in c.inputs
            )  # fmt: skip
            lines.append(f"{', '.join(c.outputs)} = {c.op}({inputs}) {c.attrs or ''}")
        return "\n".join(lines)


class Builder:
    """Draws a model. `sharp` are values that are the same whatever the order of sums: only they may
    be rounded, compared or sorted."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.model = Model()
        self.sharp: set[str] = set()
        self.usable: list[str] = []
        rank = int(self.rng.integers(2, 5))
        self.shape = tuple(int(d) for d in self.rng.integers(1, 8, rank))
        if rank == 4 and self.one_in(2):
            self.shape = (self.shape[0] % 2 + 1, int(self.rng.integers(1, 20)), *self.shape[2:])
        for i in range(int(self.rng.integers(1, 3))):
            self.add_value(f"x{i}", self.floats(self.shape if i == 0 else self.broadcast()))
            self.usable.append(f"x{i}")

    def one_in(self, count: int) -> bool:
        return bool(self.rng.integers(count) == 0)

    def pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def floats(self, shape: Sequence[int], scale: float = 1.0) -> Array:
        return np.asarray(self.rng.normal(0, scale, tuple(shape))).astype(np.float32)

    def broadcast(self, shape: Sequence[int] | None = None) -> tuple[int, ...]:
        """A shape that goes with another: some sizes 1, some leading axes left out."""
        dims = list(self.shape if shape is None else shape)
        for i in range(len(dims)):
            if self.one_in(3):
                dims[i] = 1
        return tuple(dims[int(self.rng.integers(len(dims) + 1)) if self.one_in(3) else 0 :])

    def add_value(self, name: str, array: Array, constant: bool = False) -> str:
        self.model.values[name] = array
        self.sharp.add(name)
        if constant:
            self.model.constants.add(name)
        return name

    def const(self, array: Any) -> str:
        return self.add_value(f"c{len(self.model.values)}", np.asarray(array), True)

    def ints(self, *numbers: int) -> str:
        return self.const(np.array(numbers, np.int64))

    def value(self) -> str:
        """A float value; the latest more often."""
        if self.one_in(2):
            return self.usable[-1]
        return str(self.pick(self.usable))

    def of_rank(self, *ranks: int) -> str | None:
        known = [n for n in self.usable if self.model.values[n].ndim in ranks]
        return self.pick(known) if known else None

    def call(
        self, op: str, *inputs: str, count: int = 1, sharp: bool = False, **attrs: Any
    ) -> bool:
        """Adds an operator unless onnxruntime refuses it or its numbers leave the ordinary."""
        at = len(self.model.calls)
        outputs = tuple(f"y{at}_{i}" for i in range(count))
        alone = Model([Call(op, inputs, outputs, attrs)], self.model.values, self.model.constants)
        for name in outputs:  # their types are not known yet
            alone.values[name] = np.zeros((), np.float32)
        try:
            found = _run_alone(alone, outputs)
        except Exception:  # noqa: BLE001  onnxruntime has no class of its own for a refusal
            for name in outputs:
                del self.model.values[name]
            return False
        good = all(
            x.size <= 20_000 and x.size > 0
            and (x.dtype.kind != "f" or (np.isfinite(x).all() and np.abs(x).max() < 1e4))
            for x in found
        )  # fmt: skip
        for name, x in zip(outputs, found, strict=True):
            if good:
                self.model.values[name] = x
                if x.dtype == np.float32:
                    self.usable.append(name)
                if sharp and all(i in self.sharp for i in inputs if i):
                    self.sharp.add(name)
            else:
                del self.model.values[name]
        if good:
            self.model.calls.append(Call(op, inputs, outputs, attrs))
        return good


def _run_alone(model: Model, outputs: Sequence[str]) -> list[Array]:
    """One call, whose outputs' types and shapes are open."""
    graph = helper.make_graph(
        [helper.make_node(c.op, c.inputs, c.outputs, **c.attrs) for c in model.calls], "one",
        [helper.make_tensor_value_info(
            n, helper.np_dtype_to_tensor_dtype(model.values[n].dtype), model.values[n].shape)
         for n in model.given()],
        [helper.make_empty_tensor_value_info(n) for n in outputs],
        [numpy_helper.from_array(model.values[n], n) for n in sorted(model.constants)
         if n in model.calls[0].inputs],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(
        made.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    found: list[Array] = session.run(None, {n: model.values[n] for n in model.given()})
    return found


def build(seed: int, catalog: Sequence[Callable[[Builder], object]]) -> Model:
    b = Builder(seed)
    wanted = int(b.rng.integers(2, 9))
    for _ in range(4 * wanted):
        if len(b.model.calls) >= wanted:
            break
        b.pick(catalog)(b)
    return b.model


# ---- disagreements


@dataclass(frozen=True)
class Backend:
    name: str
    optimized: bool = True

    def run(self, content: bytes, feeds: Sequence[Array]) -> list[Array]:
        graph = _read(content, self.optimized)
        return Execution(make_plan(graph, self.name), threads=1).run(list(feeds))


@lru_cache(maxsize=2)
def _read(content: bytes, optimized: bool) -> Graph:
    """Read and optimized once for all backends."""
    return optimize_graph(_read(content, False)) if optimized else read_bytes(content)


BACKENDS = {
    "cpu": Backend("cpu"), "plain": Backend("cpu", False), "reference": Backend("reference", False),
    "optimized": Backend("reference"), "opencl": Backend("opencl"),
}  # fmt: skip


def disagreement(model: Model, outputs: Sequence[str], backend: Backend) -> str:
    """What differs, "" when nothing does."""
    feeds = [model.values[n] for n in model.given()]
    try:
        found = backend.run(model.content(outputs), feeds)
    except LiteError as error:
        return f"refused: {error}"
    except Exception as error:  # noqa: BLE001  whatever it is, it is a finding
        return f"{type(error).__name__}: {error}"
    for name, x in zip(outputs, found, strict=True):
        want = model.values[name]
        if x.shape != want.shape or x.dtype != want.dtype:
            return f"{name}: {x.dtype}{list(x.shape)} instead of {want.dtype}{list(want.shape)}"
        if want.dtype.kind != "f":
            if (x != want).any():
                return f"{name}: {int((x != want).sum())} of {x.size} differ"
            continue
        most = _largest(model, name)
        off = float(np.abs(x.astype(np.float64) - want).max(initial=0))
        if not off <= CLOSE * most:
            return f"{name}: off by {off:.3g}, the largest is {most:.3g}"
    return ""


def _largest(model: Model, name: str) -> float:
    """What the tolerance of a value is a share of."""
    (maker,) = (c for c in model.calls if name in c.outputs)
    names = (name, *maker.inputs) if maker.op in SUMS else (name,)
    return max(1e-2, *(float(np.abs(model.values[n]).max(initial=0)) for n in names))


def outputs_of(model: Model) -> list[str]:
    """Values without readers."""
    read = {i for c in model.calls for i in c.inputs}
    return [o for c in model.calls for o in c.outputs if o not in read]


def shrunk(model: Model, backend: Backend) -> Model:
    """The calls without which the disagreement ends; the others' results become inputs."""
    calls, changed = list(model.calls), True
    while changed:
        changed = False
        for call in list(calls):
            fewer = Model([c for c in calls if c is not call], model.values, model.constants)
            if fewer.calls and disagreement(fewer, outputs_of(fewer), backend):
                calls, changed = fewer.calls, True
    return Model(calls, model.values, model.constants)


def campaign(
    count: int, seed: int, backends: Sequence[str]
) -> Iterator[tuple[int, str, str, Model]]:
    """Seed, backend, what differs and the small model of every disagreement."""
    from .graph_moves import CATALOG

    for at in range(seed, seed + count):
        model = build(at, CATALOG)
        outputs = outputs_of(model)
        if not outputs:
            continue
        for name in backends:
            backend = BACKENDS[name]
            if disagreement(model, outputs, backend):
                small = shrunk(model, backend)
                yield at, name, disagreement(small, outputs_of(small), backend), small


def main() -> int:
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    found = 0
    for at, name, text, model in campaign(count, seed, sys.argv[3:] or ["cpu", "reference"]):
        found += 1
        print(f"seed {at} on {name}: {text}\n{model}\n", flush=True)
        Path(f"graph_{at}_{name}.onnx").write_bytes(model.content(outputs_of(model)))
        np.savez(f"graph_{at}_{name}.npz", **{n: model.values[n] for n in model.given()})
    print(f"{count} graphs, {found} disagreements")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
