"""python -m lite_engine.testing.tflite MODEL …: a TFLite model against LiteRT by operators.

LiteRT runs the model with its default kernels, every computed tensor made an output. Each operator
is then run alone on the inputs that LiteRT had, on every chosen backend, and so is the model as a
whole. Prints the operators whose integers differ, in the file's order; with --table one row for
each model, which names the first of them. With --activations dynamic the floats of layers with int8
weights and without a state must be equal, too. Ends with 1 when any differs, or any integer output
of the whole model. Needs `pip install ai-edge-litert`.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from lite_messages import tr

from ..errors import LiteError
from ..importers.tflite import CALLS, graph_of
from ..importers.tflite.model import File, Operator, read_file
from ..ir import Graph
from ..mapped import map_file
from ..ops import op_names
from ..passes import optimize_graph
from ..plan import make_plan
from ..runtime.execute import Execution
from .run import Place, places

Arrays = Mapping[int, np.ndarray]
_DYNAMIC = op_names(lambda op: op.dynamic)


class Difference(NamedTuple):
    """Of `values` numbers, `differing` do, by `most` steps at the most (of floats: by that share of
    the largest)."""

    differing: int
    values: int
    most: float
    integers: bool

    def __str__(self) -> str:
        unit = "steps" if self.integers else "of the largest"
        return f"{self.differing} of {self.values} values differ, by up to {self.most:.3g} {unit}"


@dataclass(frozen=True)
class Layer:
    """One operator of the file and what became of each of its outputs. `error` says why it did not
    run."""

    operator: Operator
    differences: tuple[Difference, ...] = ()
    error: str = ""
    exact: bool = False

    @property
    def equal(self) -> bool:
        off = (d.differing for d in self.differences if d.integers or self.exact)
        return not self.error and not any(off)


@dataclass(frozen=True)
class Report:
    """A model on a backend: its operators alone, and the outputs of the whole."""

    layers: tuple[Layer, ...]
    outputs: tuple[Difference, ...]
    error: str = ""

    @property
    def equal(self) -> bool:
        whole = not self.error and not any(d.integers and d.differing for d in self.outputs)
        return whole and all(layer.equal for layer in self.layers)

    @property
    def verdict(self) -> str:
        """What a row of the table says."""
        off = next((x.operator for x in self.layers if not x.equal), None)
        if off is not None:
            return f"operator {off.index}, {off.code}, differs"
        if self.error or not self.equal:
            return self.error or "outputs differ"
        most = max((d.most for d in self.outputs if not d.integers), default=0.0)
        return f"equal; floats within {most:.0e}" if most else "equal"


class LiteRT:
    """A model's bytes run by LiteRT's default kernels. Raises ImportError without the package."""

    def __init__(self, content: bytes) -> None:
        from ai_edge_litert.interpreter import (  # type: ignore[import-not-found,unused-ignore]
            Interpreter,
        )

        self._net: Any = Interpreter(model_content=content, num_threads=1)
        self._net.allocate_tensors()

    def run(self, feeds: Arrays, wanted: Sequence[int]) -> dict[int, np.ndarray]:
        """Tensors by number; `wanted` are outputs of the model."""
        for index, array in feeds.items():
            self._net.set_tensor(index, array)
        self._net.invoke()
        return {i: np.array(self._net.get_tensor(i)) for i in wanted}


def copies(content: bytes) -> tuple[bytes, bytes]:
    """The model, and with every computed tensor of its main subgraph among its outputs. LiteRT
    refuses an axis of scales beyond the tensor's rank, which other runtimes ignore: it becomes 0.
    """
    from ai_edge_litert.tools import (  # type: ignore[import-not-found,unused-ignore]
        flatbuffer_utils,
    )

    model = flatbuffer_utils.read_model_from_bytearray(bytearray(content))
    graph = model.subgraphs[0]
    for tensor in graph.tensors:
        quant, shape = tensor.quantization, tensor.shape
        if quant is not None and quant.quantizedDimension >= max(1, len(shape or ())):
            quant.quantizedDimension = 0
    model.signatureDefs = []
    whole = bytes(flatbuffer_utils.convert_object_to_bytearray(model))
    computed = [int(i) for op in graph.operators for i in op.outputs]
    graph.outputs = list(dict.fromkeys([*(int(i) for i in graph.outputs), *computed]))
    return whole, bytes(flatbuffer_utils.convert_object_to_bytearray(model))


def feeds_of(file: File, seed: int) -> dict[int, np.ndarray]:
    """Random inputs: integers over their whole range, floats from -1 to 1."""
    rng, graph = np.random.default_rng(seed), file.subgraphs[0]
    feeds = {}
    for index in graph.inputs:
        tensor = graph.tensors[index]
        assert tensor.dtype is not None
        kind = tensor.dtype.np
        if kind.kind == "f":
            feeds[index] = rng.uniform(-1, 1, tensor.shape).astype(kind)
        else:
            low, high = (0, 2) if tensor.quant is None else _limits(kind)
            feeds[index] = rng.integers(low, high, tensor.shape, kind)
    return feeds


def _limits(kind: np.dtype) -> tuple[int, int]:
    info = np.iinfo(kind)
    return int(info.min), int(info.max)


def layer_of(file: File, operator: Operator, *, dynamic: bool = False) -> tuple[Graph, list[int]]:
    """The operator alone as a graph, and the tensors that are its inputs."""
    main = file.subgraphs[0]
    given = [
        i for i in dict.fromkeys(operator.inputs)
        if i >= 0 and main.tensors[i].data is None and not main.tensors[i].is_variable
        and 0 not in main.tensors[i].shape
    ]  # fmt: skip
    # A tensor of an unknown size has LiteRT's size of this run.
    alone = replace(main, inputs=given, outputs=operator.outputs, operators=[operator])
    cut = replace(file, subgraphs=[alone, *file.subgraphs[1:]])
    graph, _ = graph_of(cut, operator.code, dynamic=dynamic)
    return graph, given


def run_on(graph: Graph, place: Place, feeds: Sequence[np.ndarray]) -> list[np.ndarray]:
    shapes = {v.name: x.shape for v, x in zip(graph.inputs, feeds, strict=True)}
    plan = make_plan(optimize_graph(graph), place.backend, shapes)
    return Execution(plan, threads=1, instead=place.cpu).run(list(feeds))


def difference(found: np.ndarray, wanted: np.ndarray) -> Difference:
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        raise LiteError(
            tr(
                "{found} instead of {wanted}",
                found=f"{found.dtype}{list(found.shape)}",
                wanted=f"{wanted.dtype}{list(wanted.shape)}",
            )
        )
    off = np.abs(found.astype(np.float64) - wanted.astype(np.float64))
    integers = wanted.dtype.kind != "f"
    most = float(off.max(initial=0))
    if not integers:
        most /= float(np.abs(wanted).max(initial=0)) or 1.0
    return Difference(int((off > 0).sum()), wanted.size, most, integers)


def check(
    path: Path, chosen: Sequence[Place], seed: int = 0, *, dynamic: bool = False
) -> Iterator[tuple[Place, Report]]:
    """A report for each backend. Raises ImportError without LiteRT, LiteError for a bad file."""
    file = read_file(map_file(path), path)
    main, feeds = file.subgraphs[0], feeds_of(file, seed)
    whole, exposed = copies(path.read_bytes())
    wanted = LiteRT(whole).run(feeds, main.outputs)
    computed = [i for op in main.operators for i in op.outputs]
    values = feeds | LiteRT(exposed).run(feeds, computed)
    for place in chosen:
        layers = tuple(_layer(file, op, place, values, dynamic) for op in main.operators)
        whole_graph, _ = graph_of(file, path.stem, dynamic=dynamic)
        case = (whole_graph, place, feeds, wanted, main.outputs)
        found, error = _attempt(partial(_compared, *case))
        yield place, Report(layers, found, error)


def _layer(file: File, operator: Operator, place: Place, values: Arrays, dynamic: bool) -> Layer:
    made: list[Graph] = []

    def run() -> tuple[Difference, ...]:
        graph, given = layer_of(file, operator, dynamic=dynamic)
        made.append(graph)
        feeds = {i: values[i] for i in given}
        return _compared(graph, place, feeds, values, operator.outputs)

    differences, error = _attempt(run)
    # A loop has other operators, too, and a layer with a state rounds in its functions.
    called = any(name in operator.options for name in CALLS)
    state = any(file.subgraphs[0].tensors[i].is_variable for i in operator.inputs if i >= 0)
    exact = not (called or state) and any(n.op in _DYNAMIC for g in made for n in g.nodes)
    return Layer(operator, differences, error, exact)


def _compared(
    graph: Graph, place: Place, feeds: Arrays, wanted: Arrays, outputs: Sequence[int]
) -> tuple[Difference, ...]:
    found = run_on(graph, place, list(feeds.values()))
    return tuple(difference(x, wanted[i]) for x, i in zip(found, outputs, strict=True))


def _attempt(run: Callable[[], tuple[Difference, ...]]) -> tuple[tuple[Difference, ...], str]:
    try:
        return run(), ""
    except LiteError as error:
        return (), str(error)


def _print(report: Report, file: File) -> None:
    for layer in report.layers:
        op = layer.operator
        name = file.subgraphs[0].tensors[op.outputs[0]].name if op.outputs else ""
        for text in [layer.error] if layer.error else map(str, layer.differences):
            if not layer.equal:
                print(f"    {op.index} {op.code} {name}: {text}")
    for text in [report.error] if report.error else map(str, report.outputs):
        if report.error or any(d.differing for d in report.outputs):
            print(f"    whole model: {text}")


def _say(path: Path, file: File, place: Place, report: Report) -> None:
    equal = sum(layer.equal for layer in report.layers)
    off, of = (sum(d[i] for d in report.outputs) for i in (0, 1))
    whole = report.error or f"{of - off} of {of} output values"
    print(f"{path.stem:36} {place.name:14} equal: integers of {equal} of "
          f"{len(report.layers)} operators, {whole}", flush=True)  # fmt: skip
    _print(report, file)
    codes = Counter(x.operator.code for x in report.layers if not x.equal)
    if codes:
        print("    " + ", ".join(f"{code} {n}x" for code, n in codes.items()))


def _row(path: Path, file: File, reports: Sequence[Report]) -> str:
    """A model in the table of the documentation."""
    words = [r.verdict for r in reports]
    cells = [f"`{path.stem}`", str(len(file.subgraphs[0].operators)), *words]
    return "| " + " | ".join(cells) + " |"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m lite_engine.testing.tflite", description=__doc__
    )
    parser.add_argument("models", nargs="+", metavar="MODEL", type=Path)
    parser.add_argument("--place", action="append", default=[],
                        help=tr("only backends whose name contains this; repeatable"))  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help=tr("of the random inputs"))
    parser.add_argument("--activations", choices=("float", "dynamic"), default="float",
                        help=tr("of layers with float inputs and int8 weights"))  # fmt: skip
    parser.add_argument("--table", action="store_true", help=tr("print a Markdown table"))
    options = parser.parse_args(argv)
    reference = Place("reference", "reference", lambda op, name: True)
    wanted = options.place or [""]
    chosen = [p for p in (reference, *places()) if any(w in p.name for w in wanted)]
    if not chosen:
        parser.error(f"no backend is named {' or '.join(wanted)}")
    if options.table:
        head = ["model", "operators", *(p.name for p in chosen)]
        print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    wrong = 0
    for path in options.models:
        file, reports = read_file(map_file(path), path), []
        dynamic = options.activations == "dynamic"
        for place, report in check(path, chosen, options.seed, dynamic=dynamic):
            reports.append(report)
            wrong += not report.equal
            if not options.table:
                _say(path, file, place, report)
        if options.table:
            print(_row(path, file, reports), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
