"""Single layers of a target computed otherwise: on another backend, in another precision, or by
another kernel. Stored with the target, honoured wherever the file runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from lite_messages import tr

from .. import settings
from ..errors import UsageError
from ..extensions import BACKENDS, found
from .precision import ON_CPU, TARGETS, computed

if TYPE_CHECKING:
    from ..ir import Graph, Node
    from .model import Model

#: What `Model.overrides` may say of a layer: where, or in which precision.
PLACES = ("cpu", "opencl", "reference")
FLOATS = ("fp32", "fp16", "bf16")


def with_layers(model: Model, choices: Mapping[str, Mapping[str, str]]) -> Model:
    """The same model with {target: {layer: word}} added. A word is a backend, a float precision,
    or the name of a kernel; "plan" takes a choice back.

    Raises UsageError for a target, layer or word that is not known.
    """
    overrides = {t: dict(layers) for t, layers in model.overrides.items()}
    tuning = {t: dict(layers) for t, layers in model.tuning.items()}
    for target, layers in choices.items():
        if target not in model.targets:
            raise UsageError(
                tr(
                    "layers of {target}, which is not among {targets}",
                    target=target,
                    targets=", ".join(model.targets),
                )
            )
        graph = model.graph_in(model.precision(target))
        for layer, word in layers.items():
            kernels = _kernels(graph, layer, ON_CPU.get(target, target))
            word = ON_CPU.get(word, word)
            for table in (overrides, tuning):
                table.setdefault(target, {}).pop(layer, None)
            if word in kernels:
                tuning[target][layer] = word
            elif word in PLACES or word in settings.backends():
                overrides[target][layer] = word
            elif word in FLOATS:
                overrides[target][layer] = computed(target, word)
            elif word != "plan":
                raise UsageError(
                    tr(
                        "layer {layer}: {word!r} is not one of {words}, plan, or a "
                        "kernel ({kernels})",
                        layer=layer,
                        word=word,
                        words=", ".join(dict.fromkeys((*PLACES, *FLOATS, *found(BACKENDS)))),
                        kernels=", ".join(kernels) or tr("there is none"),
                    )
                )
    return model.but(overrides=_filled(overrides), tuning=_filled(tuning))


def words_of(overrides: Mapping[str, str] | None) -> dict[str, str]:
    """{layer: backend or precision} as a plan takes it: every CPU target is `cpu`. A backend that
    is not installed stays: the plan says so of the layer. Raises UsageError for what is none."""
    words = {layer: ON_CPU.get(word, word) for layer, word in dict(overrides or {}).items()}
    for layer, word in words.items():
        if not isinstance(word, str) or word in ("", "auto"):
            raise UsageError(
                tr(
                    "layer {layer}: {word!r} is not one of {words}",
                    layer=layer,
                    word=word,
                    words=", ".join(dict.fromkeys((*PLACES, *FLOATS, *found(BACKENDS)))),
                )
            )
    return words


def parse_layers(texts: Iterable[str], targets: Iterable[str]) -> dict[str, dict[str, str]]:
    """`LAYER=WORD` for every target, or `TARGET:LAYER=WORD`. Raises UsageError."""
    choices: dict[str, dict[str, str]] = {}
    for text in texts:
        name, _, word = text.rpartition("=")
        target, colon, layer = name.partition(":")
        if not (colon and target in TARGETS):
            target, layer = "", name
        if not layer or not word:
            raise UsageError(
                tr("{text!r} is not of the form LAYER=cpu or opencl:LAYER=fp32", text=text)
            )
        for one in [target] if target else targets:
            choices.setdefault(one, {})[layer] = word
    return choices


def of_graph(choices: Mapping[str, str], graph: Graph) -> dict[str, str]:
    """The choices whose layers a graph has."""
    names = {n.name for n in graph.nodes}
    return {layer: word for layer, word in choices.items() if layer in names}


def layer_called(graph: Graph, name: str) -> Node:
    """Raises UsageError where there is none, with the nearest name."""
    node = next((n for n in graph.nodes if n.name == name), None)
    if node is None:
        import difflib

        near = difflib.get_close_matches(name, [n.name for n in graph.nodes], n=1)
        hint = (
            tr("did you mean {near}?", near=near[0])
            if near
            else tr("`lite info --layers` lists them")
        )
        raise UsageError(tr("there is no layer {name!r}", name=name), fix=hint)
    return node


def _kernels(graph: Graph, layer: str, backend: str) -> list[str]:
    from ..ops import get_op  # reading a file needs no operators

    op = get_op(layer_called(graph, layer).op)
    return [k.name for k in op.kernels if k.backend == backend]


def _filled(table: Mapping[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    return {target: layers for target, layers in table.items() if layers}
