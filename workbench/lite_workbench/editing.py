"""Changes of a graph, in the order that `lite edit` and `Session.edit` make them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lite_engine.edit.sizes import Refusal
from lite_engine.errors import UsageError
from lite_messages import tr, trn

from .words import listed

if TYPE_CHECKING:
    import numpy as np
    from lite_engine.edit import Resized
    from lite_engine.ir import Graph
    from lite_engine.model_file import Model


@dataclass(frozen=True)
class Edits:
    """What to change, as docs/edit.md describes it. `replace` lists (inputs, outputs, model file),
    `replace_pattern` (pattern, model file), `append` operators like "ArgMax:1", `nms` the names
    of boxes and scores."""

    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    layers: Sequence[str] = ()
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    batch: int | str | None = None
    drop: Sequence[str] = ()
    replace: Sequence[tuple[Sequence[str], Sequence[str], str | Path]] = ()
    replace_pattern: Sequence[tuple[str, str | Path]] = ()
    remove_normalization: bool = False
    remove_postprocessing: bool = False
    normalize: str = ""
    append: Sequence[str] = ()
    nms: Sequence[str] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    fold: bool = False
    optimized: bool = False


@dataclass
class Edited:
    """A written file and what was done; nothing is written where layers refused. `targets` are
    those of a .lite file."""

    file: str
    bytes: int
    layers: dict[str, int]
    inputs: dict[str, str]
    outputs: dict[str, str]
    done: list[str] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)


def check_ending(out: Path) -> None:
    """Raises UsageError for a file that is neither .onnx nor .lite."""
    if out.suffix not in (".onnx", ".lite"):
        raise UsageError(
            tr("{out} is neither .onnx nor .lite", out=out), fix=tr("choose another file name")
        )


def write_edited(
    graph: Graph, out: Path, edits: Edits, *, opset: int | None = None, like: Model | None = None
) -> Edited:
    """Changes a graph and writes it, unless layers refused; a .lite file for the targets of `like`,
    with its precisions and overrides. Raises UsageError, LiteError."""
    check_ending(out)
    steps = _Steps(graph)
    _apply(steps, edits)
    if not steps.refused:
        if out.suffix == ".onnx":
            from lite_engine import write_onnx

            write_onnx(steps.graph, out, opset=opset)
        else:
            _write_lite(steps, out, like)
    made = steps.graph
    return Edited(
        str(out), 0 if steps.refused else out.stat().st_size,
        {"before": len(graph.nodes), "after": len(made.nodes)},
        {v.name: str(v.type) for v in made.inputs}, {v.name: str(v.type) for v in made.outputs},
        steps.done, steps.refused, [] if out.suffix == ".onnx" or like is None else like.targets,
    )  # fmt: skip


def _write_lite(steps: _Steps, out: Path, like: Model | None) -> None:
    """For targets with an int8 graph of their own, which is not edited, in float."""
    from lite_engine.model_file import optimize
    from lite_engine.model_file.layers import of_graph
    from lite_engine.model_file.precision import computes_in_integers

    precisions = {t: like.precision(t) for t in like.targets} if like else {}
    int8 = [t for t, p in precisions.items() if p == "int8"]
    if int8 and not computes_in_integers(steps.graph):
        said = tr("the int8 version is not edited: {targets} in float", targets=", ".join(int8))
        steps.done.append(said)
    kept = {t: "fp32" if t in int8 else p for t, p in precisions.items()}
    made = optimize(steps.graph, targets=list(kept), precision=kept)
    if like is not None:
        asked = {t: v for t, v in like.overrides.items() if t in kept}
        overrides = {t: of_graph(v, made.graph) for t, v in asked.items()}
        lost = {layer for t, v in asked.items() for layer in v if layer not in overrides[t]}
        if lost:
            said = tr(
                "overrides of layers that are gone are dropped: {names}", names=listed(sorted(lost))
            )
            steps.done.append(said)
        made = made.but(overrides=overrides)
    made.save(out)


class _Steps:
    """The graph after each step, and a sentence about each."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.done: list[str] = []
        self.refused: list[Refusal] = []

    def then(self, change: Callable[[Graph], Graph], said: str) -> None:
        self.graph = change(self.graph)
        self.done.append(said)

    def resized(self, made: Resized, said: str) -> None:
        self.graph, self.refused = made.graph, [*self.refused, *made.refused]
        layers = trn("{n} layer adapted", "{n} layers adapted", len(made.adapted))
        self.done.append(f"{said} ({layers})" if made.adapted else said)
        if made.kept:
            kept = listed(made.kept, between="; ")
            self.done.append(
                tr(
                    "numbers that may depend on the old size were not changed: {layers}",
                    layers=kept,
                )
            )

    def replaced(self, pattern: str, file: str | Path) -> None:
        """Every place that a pattern fits. Raises UsageError where it fits none."""
        from lite_engine import edit
        from lite_engine.importers import load

        made, count = edit.replace_matches(self.graph, edit.pattern(pattern), load(file))
        if not count:
            raise UsageError(tr("no layers match {pattern}", pattern=pattern))
        places = trn("{n} place", "{n} places", count)
        text = tr(
            "replaced {pattern} by {file} ({places})", pattern=pattern, file=file, places=places
        )
        self.then(lambda _: made, text)


def _apply(steps: _Steps, edits: Edits) -> None:
    """The changes in the order of the command's help."""
    from lite_engine import edit
    from lite_engine.importers import load
    from lite_engine.preprocess import Preprocess

    ins, outs, layers = edits.inputs, edits.outputs, edits.layers
    if ins or outs:
        what = f"{', '.join(ins) or '…'} → {', '.join(outs) or '…'}"
        steps.then(lambda g: edit.extract(g, ins, outs), tr("extracted {what}", what=what))
    if layers:
        said = trn("extracted {n} layer", "extracted {n} layers", len(layers))
        steps.then(lambda g: edit.extract_layers(g, layers), said)
    if edits.shapes:
        what = ", ".join(f"{n}:{'x'.join(map(str, dims))}" for n, dims in edits.shapes.items())
        shapes = {name: tuple(dims) for name, dims in edits.shapes.items()}
        steps.resized(edit.resize(steps.graph, shapes), tr("shapes {what}", what=what))
    if edits.batch:
        single = steps.graph
        steps.resized(edit.rebatch(single, edits.batch), tr("batch {n}", n=edits.batch))
        if not steps.refused:
            _check_batch(single, steps, edits.batch)
    if steps.refused:
        return
    if edits.drop:
        names = list(edits.drop)
        steps.then(lambda g: edit.drop(g, names), tr("dropped {names}", names=", ".join(names)))
    for at, to, file in edits.replace:
        steps.then(
            lambda g, at=at, to=to, file=file: edit.replace(g, at, to, load(file)),  # type: ignore[misc]
            tr("replaced {at} → {to} by {file}", at=",".join(at), to=",".join(to), file=file),
        )
    for text, file in edits.replace_pattern:
        steps.replaced(text, file)
    if edits.remove_normalization:
        bare, gone, (mean, std) = edit.remove_normalization(steps.graph)
        said = tr(
            "removed {layers}: the input is (x − {mean}) / {std}",
            layers=", ".join(gone), mean=_numbers(mean), std=_numbers(std),
        )  # fmt: skip
        steps.then(lambda _: bare, said)
    if edits.remove_postprocessing:
        ends, gone = edit.remove_postprocessing(steps.graph)
        steps.then(lambda _: ends, tr("removed {layers}", layers=", ".join(gone)))
    if edits.normalize:
        how = Preprocess.parse(edits.normalize, steps.graph.metadata.get("preprocess"))
        graph, why = edit.normalize(steps.graph, how)
        said = tr("normalization in the first convolution")
        if why:
            said = tr("normalization as layers ({why})", why="; ".join(why))
        steps.then(lambda _: graph, said)
    for text in edits.append:
        op, _, axis = text.partition(":")
        attrs: dict[str, Any] = {"axis": _integer(axis)} if axis else {}
        steps.then(
            lambda g, op=op, attrs=attrs: edit.append(g, op, attrs=attrs),  # type: ignore[misc]
            tr("appended {op}", op=text),
        )
    if edits.nms:
        if len(edits.nms) != 2:
            raise UsageError(tr("--nms takes two names, like boxes,scores"))
        boxes, scores = edits.nms
        said = tr("appended {op}", op="NonMaxSuppression")
        steps.then(lambda g: edit.append_nms(g, boxes, scores), said)
    if edits.rename:
        pairs = dict(edits.rename)
        said = ", ".join(f"{old} → {new}" for old, new in pairs.items())
        steps.then(lambda g: edit.rename(g, pairs), tr("renamed {names}", names=said))
    if edits.fold:
        steps.then(edit.fold, tr("folded constants"))
    if edits.optimized:
        steps.then(edit.optimized, tr("ran every pass"))


def _check_batch(single: Graph, steps: _Steps, batch: int | str) -> None:
    """Raises LiteError where a batch does not run, or its samples mix; a model that cannot run here
    is not checked, which is said. A large batch is checked as a small one, which is made alike."""
    from lite_engine.edit import rebatch

    from .batches import check_batch, few_of

    many, few = steps.graph, few_of(single)
    if isinstance(batch, int) and batch > few:
        many = rebatch(single, few).graph
    if why := check_batch(single, many):
        steps.done.append(tr("not checked with numbers: {error}", error=why))


def _numbers(array: np.ndarray) -> str:
    """One number where all are equal."""
    flat = array.ravel()
    return (
        f"{flat[0]:.6g}" if (flat == flat[0]).all() else f"[{', '.join(f'{n:.6g}' for n in flat)}]"
    )


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(tr("axis {text!r} is not a whole number", text=text)) from None
