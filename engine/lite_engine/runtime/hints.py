"""What a person should know of a model before converting it, in sentences."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from lite_messages import tr, trn

from ..ir import DType, Graph, Shape
from ..ops import op_names

#: Beside the operators that say so: those that only formats of training know.
_TRAINING = (*op_names(lambda op: op.training), "Gradient", "sgd", "momentum", "adam")


#: Layers whose float inputs become bytes as they run.
_DYNAMIC = op_names(lambda op: op.dynamic)


def sounds(graph: Graph) -> list[str]:
    """Inputs that take the bytes of a sound file, of any length."""
    return [v.name for v in graph.inputs if {r.op for r in v.readers} == {"DecodeWav"}]


def _dequantized_weights(graph: Graph) -> int:
    """8-bit constants that only a DequantizeLinear reads, where no activation is quantized."""
    if any(n.op == "QuantizeLinear" for n in graph.nodes):
        return 0
    sources = [n.inputs[0] for n in graph.nodes if n.op == "DequantizeLinear"]
    bytes_ = (DType.I8, DType.U8)
    return sum(v is not None and v.const is not None and v.dtype in bytes_ for v in sources)


def open_sizes(assumed: Mapping[str, Shape] | Mapping[str, list[int]], *, fits: bool) -> str:
    """The hint about inputs that leave sizes open; `fits`: the model runs with those assumed."""
    fixed = (f"{n}:{'x'.join(map(str, d))}" for n, d in assumed.items())
    flags = " ".join(f"--shape {shlex.quote(option)}" for option in fixed)
    what = (
        tr("so costs and support are for an assumed size")
        if fits
        else tr("and no assumed size fits")
    )
    return tr("inputs have dynamic sizes, {what}; fix them like {flags}", what=what, flags=flags)


def hints_of(
    graph: Graph, unknown: list[str], assumed: Mapping[str, Shape], misfit: str
) -> list[str]:
    """`unknown` are operators that nobody knows; `assumed` the sizes that open inputs got, `misfit`
    why those do not fit, "" when they do."""
    hints = [str(w) for w in graph.metadata.get("warnings", [])]
    if any(n.op in _TRAINING or n.attrs.get("training_mode") for n in graph.nodes):
        hints.append(tr("this is a training graph: export it for inference"))
    hints += [
        tr("{name} takes a sound file: use --input FILE.wav", name=name) for name in sounds(graph)
    ]
    if assumed:
        hints.append(open_sizes(assumed, fits=not misfit))
    if stored := _dequantized_weights(graph):
        hints.append(
            trn(
                "{n} weight is stored in 8 bits and becomes float32 when the model is loaded: "
                "its layer computes in floating point",
                "{n} weights are stored in 8 bits and become float32 when the model is loaded: "
                "their layers compute in floating point",
                stored,
            )
        )
        if graph.metadata.get("format") == "tflite":
            hints.append(
                tr(
                    "LiteRT quantizes the inputs of such layers as it runs: its results differ; "
                    "`lite convert --activations dynamic` computes as LiteRT does"
                )
            )
    if dynamic := sum(n.op in _DYNAMIC for n in graph.nodes):
        hints.append(
            trn(
                "{n} layer quantizes its input as it runs, with the range of that input",
                "{n} layers quantize their inputs as they run, with the range of each input",
                dynamic,
            )
        )
    if misfit and not unknown:
        hints.append(misfit)
    if unknown:
        hints.append(tr("unknown operators: {unknown}", unknown=", ".join(unknown)))
    return hints
