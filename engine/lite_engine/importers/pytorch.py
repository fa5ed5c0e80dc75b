"""A PyTorch module → Graph, where torch is installed: exported to ONNX in memory, then read.

graph = load(module, example_inputs=(torch.zeros(1, 3, 224, 224),))
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from lite_messages import tr

from ..errors import BackendUnavailableError, ModelFormatError, UsageError
from ..ir import Graph
from .onnx import read_bytes


def is_module(model: Any) -> bool:
    """True for torch.nn.Module and what torch.jit made, without importing torch."""
    return any(
        base.__module__.startswith("torch.") and base.__name__ in ("Module", "ScriptModule")
        for base in type(model).__mro__
    )


def from_module(
    module: Any,
    example_inputs: Any = None,
    *,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset: int | None = None,
) -> Graph:
    """`example_inputs` is a tensor, or a tuple of the arguments that the module is called with;
    their sizes become the graph's; `opset` is torch's own choice when None. The module is put into
    evaluation mode for the export and back.

    Raises UsageError without example inputs, BackendUnavailableError without torch or the parts it
    needs, ModelFormatError with torch's own words when it cannot export.
    """
    try:
        import torch
    except ImportError:
        raise BackendUnavailableError(
            tr("PyTorch is not installed"),
            fix=tr("pip install torch, or export to ONNX where it is"),
        ) from None
    if example_inputs is None:
        raise UsageError(tr("give example_inputs=(tensor, …): an export follows one call"))
    args = tuple(example_inputs) if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    names = list(input_names) if input_names else _parameters(module, len(args))
    stream = io.BytesIO()
    training = bool(getattr(module, "training", False))
    options: dict[str, Any] = {} if opset is None else {"opset_version": opset}
    if _has_dynamo(torch):
        options["dynamo"] = False  # the other way needs a package more
    try:
        module.eval()
        with torch.no_grad():
            torch.onnx.export(
                module, args, stream, input_names=names,
                output_names=list(output_names) if output_names else None, **options,
            )  # fmt: skip
    except ImportError as error:
        raise BackendUnavailableError(
            tr("exporting with torch needs an additional package: {error}", error=error)
        ) from None
    except Exception as error:  # whatever the module's own code raises
        text = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelFormatError(
            tr("torch cannot export this module: {text}", text=text[0])
        ) from error
    finally:
        module.train(training)
    graph = read_bytes(stream.getvalue())
    graph.name = type(module).__name__
    graph.metadata["format"] = "pytorch"
    return graph


def _has_dynamo(torch: Any) -> bool:
    import inspect

    return "dynamo" in inspect.signature(torch.onnx.export).parameters


def _parameters(module: Any, count: int) -> list[str]:
    """Names of the arguments of `forward`, as far as it names them."""
    import inspect

    try:
        names = list(inspect.signature(module.forward).parameters.values())
    except (TypeError, ValueError):
        names = []
    plain = [p.name for p in names if p.kind is p.POSITIONAL_OR_KEYWORD][:count]
    return plain if len(plain) == count else [f"input{i}" for i in range(count)]
