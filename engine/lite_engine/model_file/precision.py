"""Precision per target: what a file may ask for, and what a target's kernels compute it in."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from lite_messages import tr

from ..errors import UsageError, check_choice

if TYPE_CHECKING:
    from ..ir import Graph, Node

#: Those whose program the native runtime executes on a processor.
CPU_TARGETS = ("x86", "arm", "wasm")
TARGETS = (*CPU_TARGETS, "opencl")
#: What a conversion is for where nobody says it.
DEFAULT_TARGETS = ("x86", "arm", "opencl")
#: How sections with programs call a target: a tag has eight bytes (`PROG.web`).
SECTION_WORDS = {"x86": "x86", "arm": "arm", "wasm": "web"}
#: Target → backend, where they have different names.
ON_CPU = dict.fromkeys(CPU_TARGETS, "cpu")
PRECISIONS = ("fp32", "fp16", "bf16", "int8")
#: What the kernels of a target hold; anything else is computed in fp32, and the choice says so.
HELD = {
    "x86": ("fp32", "bf16", "int8"),
    "arm": ("fp32", "fp16", "int8"),
    "wasm": ("fp32", "int8"),
    "opencl": ("fp32", "fp16", "int8"),
}
_INTEGER = ("QuantizeLinear", "ConvInteger", "MatMulInteger")
#: CPU features without which a precision gains nothing: a file has a program in fp32, too.
OR_FP32 = {("arm", "fp16"): "neonfp16", ("x86", "bf16"): "avx512bf16"}
#: Of these, what is computed without the feature as well, more slowly, where the caller asks.
ANYWHERE = frozenset({("x86", "bf16")})


def computed(target: str, precision: str, features: Collection[str] | None = None) -> str:
    """The precision that a target really computes a file's precision in, on a CPU with these
    features (None: with all of them)."""
    needed = OR_FP32.get((target, precision))
    if needed and features is not None and needed not in features:
        return "fp32"
    return precision if precision in HELD.get(target, PRECISIONS) else "fp32"


def parse_precisions(text: str | Mapping[str, str], targets: Sequence[str]) -> dict[str, str]:
    """`fp16` or `opencl=fp16,arm=int8` → precision by target; one word without targets is for each
    that there is. Raises UsageError."""
    if not isinstance(text, str):
        pairs = dict(text)
    elif "=" in text:
        pairs = {}
        for part in text.split(","):
            target, _, precision = part.partition("=")
            pairs[target.strip()] = precision.strip()
    else:
        pairs = dict.fromkeys(targets or TARGETS, text)
    for target, precision in pairs.items():
        check_choice(tr("target"), target, TARGETS)
        check_choice(tr("precision"), precision, PRECISIONS)
        if targets and target not in targets:
            raise UsageError(
                tr(
                    "precision for {target}, which is not among {targets}",
                    target=target,
                    targets=", ".join(targets),
                )
            )
    return pairs


def check_int8(graph: Graph, precisions: Mapping[str, str]) -> None:
    """Raises UsageError when int8 is asked for and no layer of the graph computes in integers: a
    conversion cannot know the ranges."""
    asked = [t for t, p in precisions.items() if p == "int8"]
    if not asked or computes_in_integers(graph):
        return
    if is_quantised(graph):  # calibration does not help: its weights have been rounded
        raise UsageError(
            tr(
                "int8 for {asked} needs ranges, which a model with weights alone in integers "
                "does not have",
                asked=", ".join(asked),
            ),
            fix=tr("quantize the float model that it was made from, with --calibration"),
        )
    raise UsageError(
        tr(
            "int8 for {asked} needs ranges: give `lite convert` --calibration "
            "DIR, or --quantized FILE with what `lite quantize` wrote",
            asked=", ".join(asked),
        )
    )


def told(graph: Graph, precision: str) -> str:
    """What people read of a graph in a precision: int8 where layers compute in integers, with the
    half precision of the others beside it."""
    others = "fp32" if precision == "int8" else precision
    if not computes_in_integers(graph):
        return others
    return "int8" if others == "fp32" else tr("int8 and {precision}", precision=others)


def computes_in_integers(graph: Graph) -> bool:
    """Some layer computes with activations in integers: int8 is there. Integers that are weights
    alone are widened first."""
    return any(n.op in _INTEGER or n.op.startswith("QLinear") for n in graph.nodes)


def is_quantised(graph: Graph) -> bool:
    """Some of its layers hold integers that stand for real numbers, of weights alone or of
    activations as well: it is no float version."""
    one_of_each = {n.op: n for n in graph.nodes}  # few operators, many layers
    return computes_in_integers(graph) or any(
        op == "DequantizeLinear" or holds_blocks(n) for op, n in one_of_each.items()
    )


def holds_blocks(node: Node) -> bool:
    """Its weights are packed, in groups that have a scale each."""
    from ..ops import find_op  # whoever opens a file to run its program needs no operators

    op = find_op(node.op)
    return op is not None and op.blocks


def parse_targets(targets: str | Sequence[str]) -> list[str]:
    """`arm,opencl` or a list → targets in order, each once. Raises UsageError."""
    given = targets.split(",") if isinstance(targets, str) else list(targets)
    names = list(dict.fromkeys(n.strip() for n in given if n.strip()))
    if targets and not names:
        raise UsageError(
            tr(
                "targets {targets!r} name none of {known}",
                targets=targets,
                known=", ".join(TARGETS),
            )
        )
    for name in names:
        check_choice(tr("target"), name, TARGETS)
    return names
