"""PyTorch → Graph, where torch is installed: exported to ONNX in memory, then read.

graph = load(module, torch.zeros(1, 3, 224, 224))
graph = load("model.pt2")

torch reads `.pt2` files itself, in a process that may only compute and read where the system can
hold it to that (Linux); elsewhere open those of people that you trust.
"""

from __future__ import annotations

import importlib.util
import inspect
import io
import json
import logging
import pickle
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lite_messages import tr

from ..errors import BackendUnavailableError, ModelFormatError, UsageError, check_choice
from ..files import head
from ..ir import Graph
from ..system import crash_name
from .onnx import read_bytes

EXPORTERS = ("dynamo", "torchscript")
#: Argv: sys.path as JSON.
_CHILD = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from lite_engine.importers._torch_process import answer; answer()"
)
#: Kinds of error that the process reports.
_ERRORS = {made.kind: made for made in (BackendUnavailableError, ModelFormatError, UsageError)}
_MODULES = ("Module", "ScriptModule", "ExportedProgram")


@dataclass(frozen=True)
class _ExportOptions:
    """How a module becomes ONNX: the options of `from_module`."""

    exporter: str | None = None
    dynamic_shapes: Any = None
    input_names: Sequence[str] | None = None
    output_names: Sequence[str] | None = None
    opset: int | None = None


def is_module(model: Any) -> bool:
    """True for torch.nn.Module, what torch.jit made and what torch.export made, without importing
    torch."""
    return any(
        base.__module__.startswith("torch.") and base.__name__ in _MODULES
        for base in type(model).__mro__
    )


#: A file says which sizes are open; only those are filled in.
SHAPES_ARE_HINTS = False


def match(path: Path) -> bool:
    """True for a file of torch.export.save: a `.pt2` archive with a model in it. torch unpickles
    what is inside, so a file of any other name is none, whatever it holds."""
    if not path.is_file() or path.suffix.lower() != ".pt2" or not head(path).startswith(b"PK"):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError):
        return False
    inner = {name.partition("/")[2] or name for name in names}
    return "models/model.json" in inner or "serialized_exported_program.json" in names


def open(path: Path, **options: Any) -> Graph:
    """Reads a `.pt2` file with torch. Raises as `from_module` does."""
    if importlib.util.find_spec("torch") is None:
        raise _no_torch()
    graph = read_bytes(_in_another_process(path, options))
    graph.metadata["format"] = "pytorch"
    graph.name = Path(path).stem
    return graph


def _in_another_process(path: Path, options: dict[str, Any]) -> bytes:
    """The ONNX model of a `.pt2` file, as the bytes of a stranger. Raises ModelFormatError, also
    where torch ended without an answer."""
    done = subprocess.run(
        [sys.executable or "python3", "-c", _CHILD, json.dumps(sys.path)],
        input=pickle.dumps((str(path), options)), capture_output=True,
    )  # fmt: skip
    kind, data = done.stdout[:1], done.stdout[1:]
    if kind == b"+":
        return data
    if kind == b"-":
        told = json.loads(data)
        made = _ERRORS.get(told["kind"], ModelFormatError)
        raise made(told["what"], where=told["where"], fix=told["fix"])
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    why = crash_name(done.returncode) or (lines[-1] if lines else str(done.returncode))
    raise ModelFormatError(tr("torch cannot read this file: {text}", text=why), where=path)


def read_program(path: Path, options: dict[str, Any]) -> bytes:
    """The ONNX model of a `.pt2` file, whose code runs here and now (`_torch_process`)."""
    torch = _torch()
    try:
        with _quiet():
            program = torch.export.load(path)
    except Exception as error:  # whatever its unpicklers and checks raise
        raise ModelFormatError(
            tr("torch cannot read this file: {text}", text=_first_line(error)), where=path
        ) from error
    return _to_onnx(program, None, _ExportOptions(**options))


def from_module(
    module: Any,
    example_inputs: Any = None,
    *,
    exporter: str | None = None,
    dynamic_shapes: Any = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset: int | None = None,
) -> Graph:
    """A module, or a program of torch.export, whose dynamic sizes stay open.

    `example_inputs` is a tensor, or a tuple of the arguments that the module is called with; their
    sizes become the graph's, but for those that `dynamic_shapes` names as torch.export.export does.
    `exporter` is one of EXPORTERS: by default "dynamo" where onnxscript is installed, which it
    needs. `opset` is torch's own choice when None. The module is exported in evaluation mode.

    Raises UsageError without example inputs, BackendUnavailableError without torch or the parts it
    needs, ModelFormatError with torch's own words when it cannot export.
    """
    asked = _ExportOptions(exporter, dynamic_shapes, input_names, output_names, opset)
    graph = read_bytes(_to_onnx(module, example_inputs, asked))
    graph.name = type(module).__name__
    graph.metadata["format"] = "pytorch"
    return graph


def _to_onnx(module: Any, example_inputs: Any, asked: _ExportOptions) -> bytes:
    torch = _torch()
    program = hasattr(module, "graph_signature")
    way = _exporter(torch, module, asked.exporter, asked.dynamic_shapes, program)
    if example_inputs is None and not program:
        raise UsageError(tr("give example_inputs=(tensor, …): an export follows one call"))
    args = tuple(example_inputs) if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    names = list(asked.input_names or ([] if program else _parameters(module, len(args))))
    options: dict[str, Any] = {} if asked.opset is None else {"opset_version": asked.opset}
    if names:
        options["input_names"] = names
    if asked.output_names:
        options["output_names"] = list(asked.output_names)
    if asked.dynamic_shapes is not None:
        options["dynamic_shapes"] = asked.dynamic_shapes
    training = bool(getattr(module, "training", False))
    try:
        if not program:
            module.eval()
        with torch.no_grad(), _quiet():
            return _export(torch, module, () if program else args, way, options)
    except ImportError as error:
        raise BackendUnavailableError(
            tr("exporting with torch needs an additional package: {error}", error=error)
        ) from None
    except Exception as error:  # whatever the module's own code raises
        raise ModelFormatError(
            tr("torch cannot export this module: {text}", text=_first_line(error)),
            fix="" if program else tr("try {choices}", choices=_other(way)),
        ) from error
    finally:
        if not program:
            module.train(training)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without torch's output on its own deprecations and what it looks for: what fails, raises."""
    log = logging.getLogger("torch")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise _no_torch() from None
    return torch


def _no_torch() -> BackendUnavailableError:
    return BackendUnavailableError(
        tr("PyTorch is not installed"), fix=tr("pip install torch, or export to ONNX where it is")
    )


def _exporter(torch: Any, module: Any, given: str | None, dynamic: Any, program: bool) -> str:
    """Which of EXPORTERS: TorchScript modules have one way, programs and open sizes the other."""
    check_choice("exporter", given, (None, *EXPORTERS))
    if program or dynamic is not None:
        if given == "torchscript":
            raise UsageError(tr("the TorchScript exporter takes a module with fixed sizes"))
        return "dynamo"
    scripted = isinstance(module, torch.jit.ScriptModule)
    has_dynamo = "dynamo" in inspect.signature(torch.onnx.export).parameters
    if scripted or not has_dynamo or importlib.util.find_spec("onnxscript") is None:
        return given or "torchscript"
    return given or "dynamo"


def _export(torch: Any, module: Any, args: Any, way: str, options: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    if way == "dynamo":
        made = torch.onnx.export(module, args, dynamo=True, verbose=False, **options)
        made.save(stream)
        return stream.getvalue()
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:
        options = {**options, "dynamo": False}
    fused = getattr(
        torch.backends, "mha", None
    )  # one operator for a whole layer, without ONNX form
    was = fused.get_fastpath_enabled() if fused else None
    try:
        if fused:
            fused.set_fastpath_enabled(False)
        torch.onnx.export(module, args, stream, **options)
    finally:
        if fused:
            fused.set_fastpath_enabled(was)
    return stream.getvalue()


def _other(way: str) -> str:
    return 'exporter="torchscript"' if way == "dynamo" else 'exporter="dynamo"'


def _first_line(error: Exception) -> str:
    """The line of torch's message that says what happened: its own errors wrap the cause."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    lines = str(cause).strip().splitlines()
    return lines[0] if lines else type(cause).__name__


def _parameters(module: Any, count: int) -> list[str]:
    """Names of the arguments of `forward`, as far as it names them."""
    try:
        names = list(inspect.signature(module.forward).parameters.values())
    except (TypeError, ValueError):
        names = []
    plain = [p.name for p in names if p.kind is p.POSITIONAL_OR_KEYWORD][:count]
    return plain if len(plain) == count else [f"input{i}" for i in range(count)]
