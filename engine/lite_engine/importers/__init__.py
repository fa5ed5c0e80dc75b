"""File → Graph. Each format is a module, an `Importer` (`_protocol.py`).

`load` asks each module in turn; the first that matches opens the file.
"""

from __future__ import annotations

import difflib
import importlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lite_messages import tr

from ..errors import LiteError, ModelFormatError, ShapeError, UsageError, reason_of
from ..files import LITE_MAGIC, about, head, model_path
from ..mapped import mapping
from ._protocol import Importer

if TYPE_CHECKING:
    from ..ir import Graph, Node, Shape, Value

#: Tried in this order: exact magics first, formats known only by their structure last.
FORMATS = ("tflite", "naive_buffer", "onnx", "paddle", "tensorflow", "caffe", "pytorch")
#: What a person knows them by, the most usual first.
KNOWN_AS = tr("ONNX, TFLite, Paddle, Paddle-Lite .nb, TensorFlow, Caffe, PyTorch .pt2, .lite")
#: What may be left out of a path, and what is looked for in a folder.
SUFFIXES = (".pdmodel", ".json", ".onnx", ".tflite", ".pb", ".prototxt", ".nb", ".pt2")


def _module(name: str) -> Importer:
    return cast(Importer, importlib.import_module(f"{__name__}.{name}"))


def find_model(path: str | Path) -> Path:
    """The file or folder that a format reads: the path itself, `inference` for
    `inference.pdmodel`, a folder for the one model in it. Raises ModelFormatError."""
    path = model_path(path)
    try:
        there = path.exists()
    except OSError as error:  # a name that is too long
        raise ModelFormatError(
            tr("cannot be read ({reason})", reason=reason_of(error)), where=path
        ) from None
    if not there:
        beside = [path.with_name(path.name + s) for s in SUFFIXES]
        found = [p for p in beside if p.is_file()]
        what = tr("no such file or folder")
    elif path.is_dir() and _match(path) is None:
        found = [p for p in sorted(path.iterdir()) if p.suffix in SUFFIXES and p.is_file()]
        what = tr(
            "no model in this folder (__model__, saved_model.pb, *{suffixes})",
            suffixes=", *".join(SUFFIXES),
        )
    else:
        return path
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(p.name for p in found[:8])
        what = tr(
            "{models} models have this name; give one of {names}", models=len(found), names=names
        )
    raise ModelFormatError(what, where=path)


def _match(path: Path) -> str | None:
    return next((name for name in FORMATS if _module(name).match(path)), None)


def format_of(path: str | Path) -> str:
    """Name of the format. Raises ModelFormatError when nothing matches."""
    path = find_model(path)
    _check_download(path)
    name = _match(path)
    if name is None:
        raise ModelFormatError(_what_it_is(path), where=path)
    return name


#: What a file of another tool starts with or is called: what to do about it.
_OTHERS = (
    (
        b"PK",
        (".pt", ".pth", ".pt2", ".ckpt"),
        tr(
            "a PyTorch file without a program that others can run; `lite_engine.load(module, "
            "example)` takes the module, or save it with torch.export.save as .pt2"
        ),
    ),
    (b"PK", (".keras",), tr("a Keras file; save it with model.export(FOLDER), a SavedModel")),
    (
        b"\x89HDF",
        (".h5", ".hdf5"),
        tr("a Keras file; save it with model.export(FOLDER), a SavedModel"),
    ),
    (b"7767517", (".param",), tr("an ncnn net; convert the original model instead")),
    (
        b"",
        (".mnn", ".mlmodel", ".engine", ".trt", ".xml", ".safetensors", ".gguf"),
        tr("a file of another tool; convert the original model instead"),
    ),
)


def _check_download(path: Path) -> None:
    """Raises ModelFormatError for what a failed download leaves in place of a model."""
    if not path.is_file():
        return
    start = head(path, 64).lstrip().lower()
    if path.stat().st_size == 0:
        raise ModelFormatError(
            tr("the file is empty"), where=path, fix=tr("copy or download it again")
        )
    if start.startswith(b"version https://git-lfs"):
        raise ModelFormatError(
            tr("a Git LFS pointer, not the model"), where=path, command="git lfs pull"
        )
    if start.startswith((b"<!doctype html", b"<html")):
        raise ModelFormatError(
            tr("a web page, not a model"),
            where=path,
            fix=tr("download the file itself (its raw address)"),
        )


def _what_it_is(path: Path) -> str:
    start = head(path)
    if start.startswith(LITE_MAGIC):
        return tr(
            "a .lite file, converted already; run it with lite_engine.Predictor or `lite run`"
        )
    if path.suffix.lower() == ".lite":
        return tr("not a .lite file, or a damaged one; copy or download it again, as binary")
    for magic, suffixes, hint in _OTHERS:
        if start.startswith(magic) and path.suffix.lower() in suffixes:
            return hint
    return tr(
        "not a model in a supported format ({formats}); give the model file "
        "itself, or the folder that contains __model__ or saved_model.pb",
        formats=KNOWN_AS,
    )


def load(
    path: Any,
    example_inputs: Any = None,
    *,
    params: str | Path | None = None,
    shapes: Mapping[str, Shape] | None = None,
    mmap: bool | None = None,
    activations: str = "float",
    **options: Any,
) -> Graph:
    """Reads a model of any known format, or takes a PyTorch module: `load(module, example)`.

    `path` is a file or folder; a known suffix may be left out. `example_inputs` (a tensor or a
    tuple of arguments) and other options of `pytorch.from_module` are for modules. `params` is the
    file of weights where a format keeps two files (Paddle, Caffe) and its place cannot be guessed.
    `shapes` fixes symbolic input shapes. `activations="dynamic"` has the layers of a dynamic-range
    TFLite model make bytes of their float inputs as they run, as LiteRT does. Constants are views
    of the mapped file; with `mmap=False` (default: LITE_MMAP) it is read into memory, so that
    nothing can change it.
    Raises ModelFormatError, UnsupportedOperatorError.
    """
    if not isinstance(path, (str, os.PathLike)):
        from . import pytorch

        if pytorch.is_module(path):
            return _checked(pytorch.from_module(path, example_inputs, **options), shapes)
    path = find_model(path)
    if example_inputs is not None:
        raise UsageError(
            tr("example inputs are for a PyTorch module"), fix=tr("open the file without them")
        )
    if params is not None:
        options["params"] = Path(params)
    format_name = format_of(path)
    module = _module(format_name)
    if activations != "float":
        options["activations"] = _checked_activations(activations, format_name)
    if shapes and module.SHAPES_ARE_HINTS:
        options["shapes"] = shapes
    with about(path), mapping(mmap):
        graph = _opened(module, path, options)
        graph.metadata.setdefault("format", format_name)
        return _checked(graph, shapes)


def _checked_activations(activations: str, format_name: str) -> str:
    if activations != "dynamic":
        raise UsageError(
            tr('activations must be "float" or "dynamic", got {what!r}', what=activations)
        )
    if format_name != "tflite":
        raise UsageError(
            tr(
                "dynamic activations are for TFLite models, this one is {format}",
                format=format_name,
            ),
            fix=tr("quantize it with `lite quantize`"),
        )
    return activations


def _opened(module: Importer, path: Path, options: dict[str, Any]) -> Graph:
    try:
        return module.open(path, **options)
    except LiteError:
        raise
    except MemoryError as e:  # whether the file lies or the machine is small
        raise ModelFormatError(tr("out of memory"), fix=str(e)) from e
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as e:
        # Importers check what they read; this is the last line for hostile files.
        raise ModelFormatError(tr("damaged ({kind}: {e})", kind=type(e).__name__, e=e)) from e


def _checked(graph: Graph, shapes: Mapping[str, Shape] | None) -> Graph:
    from ..ir import verify, walk
    from ..ops import find_op, infer_types
    from ..ops.control_flow import check_control, check_counts
    from ._emit import name_open_sizes

    def has_its_inputs(node: Node) -> None:
        op = find_op(node.op)
        if op is not None:
            op.arguments(node.inputs, node.name)
            if op.has_subgraphs:
                op.filled_attrs(node)
            check_counts(node)

    def counts_axes_from_the_front(node: Node) -> None:
        perm = node.attrs.get("perm")
        if node.op == "Transpose" and isinstance(perm, list):
            rank = len(perm)
            node.attrs["perm"] = [a + rank if a in range(-rank, 0) else a for a in perm]

    try:
        walk(graph, has_its_inputs)
    except ShapeError as error:
        raise ModelFormatError.of(error) from None
    walk(graph, counts_axes_from_the_front)
    fix_shapes(graph, shapes or {})
    for value in graph.inputs:
        if value.dtype is None:
            raise ModelFormatError(
                tr("input {name} does not have a numeric element type", name=value.name)
            )
    name_open_sizes(graph.inputs)
    infer_types(graph)
    walk(graph, check_control)
    verify(graph, "import")
    return graph


def fix_shapes(graph: Graph, shapes: Mapping[str, Shape]) -> None:
    """Writes given input shapes into the graph. A symbol that they give one number has it in other
    inputs, too. Raises ModelFormatError for an unknown name, UsageError."""
    from ..ops import check_shape

    if not isinstance(shapes, Mapping):
        raise UsageError(
            tr("shapes are a {kind}, not a mapping", kind=type(shapes).__name__),
            fix=tr("give them by name, like {example}", example="shapes={'x': (1, 3, 224, 224)}"),
        )
    by_name = {v.name: v for v in graph.inputs}
    numbers: dict[str, set[int]] = {}
    for name, shape in shapes.items():
        if name not in by_name:
            raise ModelFormatError(
                tr("there is no input {name!r}", name=name),
                fix=tr("inputs: {by_name}", by_name=", ".join(by_name)),
            )
        if isinstance(shape, str) or not isinstance(shape, Iterable):
            raise ShapeError(
                tr("input {name}: {given!r} is not a valid shape", name=name, given=shape),
                fix=tr("use whole numbers"),
            )
        declared = by_name[name].shape or ()
        by_name[name].shape = check_shape(by_name[name], tuple(shape))
        for dim, size in zip(declared, shape):
            if isinstance(dim, str) and isinstance(size, int):
                numbers.setdefault(dim, set()).add(size)
    known = {dim: sizes.pop() for dim, sizes in numbers.items() if len(sizes) == 1}
    for value in graph.inputs:
        if value.shape is not None and value.name not in shapes:
            value.shape = tuple(known.get(d, d) if isinstance(d, str) else d for d in value.shape)


def values_named(graph: Graph, names: Sequence[str]) -> list[Value]:
    """The values of these names, or what layers of these names give, each once; inputs as well.
    Raises UsageError for a name that the graph does not have."""
    values = {v.name: [v] for n in graph.nodes for v in n.outputs}
    values = {**{n.name: n.outputs for n in graph.nodes}, **values}
    values = {**{v.name: [v] for v in graph.inputs}, **values}
    for name in names:
        if name not in values:
            near = difflib.get_close_matches(name, values, n=1)
            hint = (
                tr("did you mean {near}?", near=near[0])
                if near
                else tr("`lite info --layers` lists the layers")
            )
            raise UsageError(tr("the model has no value {name!r}", name=name), fix=hint)
    return list(dict.fromkeys(v for name in names for v in values[name]))


def end_at(graph: Graph, names: Sequence[str]) -> None:
    """Makes these values (or what layers of these names give) the outputs and drops what they do
    not need, inputs too. Raises UsageError for a name that the graph does not have."""
    graph.outputs = values_named(graph, names)
    if graph.remove_unread():
        graph.inputs = [v for v in graph.inputs if v.readers]
