"""Caffe: a prototxt (the net) with a caffemodel (its weights), today's layers and V1's.

Either file may be given; the other one is looked for beside it, or named by `params`. Outputs are
the
blobs that no layer reads, in alphabetical order, as Caffe has them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lite_messages import tr

from ...errors import ModelFormatError, ShapeError, UnsupportedOperatorError
from ...files import head
from ...ir import DType, Graph, Shape, Value, format_shape
from ...mapped import map_file
from .._emit import Emitter
from . import layers, layers_pointwise, layers_shape, layers_ssd
from .call import LAYERS, Call
from .model import Net, attach_weights, read_net, read_prototxt

__all__ = ["layers", "layers_pointwise", "layers_shape", "layers_ssd", "match", "open"]


def match(path: Path) -> bool:
    """A prototxt with layers, or a binary NetParameter with weights."""
    if not path.is_file():
        return False
    start = head(path, 1 << 16)
    if path.suffix == ".caffemodel":
        return bool(start)
    if b"\0" in start:
        return False
    return re.search(rb"(^|\n)\s*layers?\s*\{", start) is not None


#: A net reshapes itself to what it is fed: the sizes in the prototxt are only defaults.
SHAPES_ARE_HINTS = True


def open(
    path: Path, *, params: Path | None = None, shapes: Mapping[str, Shape] | None = None
) -> Graph:
    """`shapes` replace those of the prototxt. Raises ModelFormatError, ShapeError,
    UnsupportedOperatorError (all layers at once)."""
    net_path, weights_path = _pair(path, params)
    net = read_net(read_prototxt(net_path), net_path)
    attach_weights(net, map_file(weights_path), weights_path)
    _check_layers(net)
    graph = Graph(net.name)
    graph.metadata = {"format": "caffe", "unused_weights": net.unused, **_preprocess(net)}
    emit = Emitter(graph, fold_shapes=False)
    blobs: dict[str, Value] = {}
    for name, declared in net.inputs:
        shape = tuple((shapes or {}).get(name, declared))
        if len(shape) != len(declared):
            raise ShapeError(
                tr(
                    "input {name} has rank {count}, got shape {shape}",
                    name=name,
                    count=len(declared),
                    shape=format_shape(shape),
                )
            )
        value = Value(emit.unique(name), DType.F32, shape)
        graph.inputs.append(value)
        blobs[name] = value
    read: set[str] = set()
    named: set[int] = {id(v) for v in graph.inputs}
    for layer in net.layers:
        emit.source = layer.name
        for name in layer.bottoms:
            if name not in blobs:
                raise ModelFormatError(
                    tr(
                        "layer {layer} reads {name!r} before it is computed",
                        layer=layer.name,
                        name=name,
                    ),
                    where=net_path,
                )
        read.update(layer.bottoms)
        result = LAYERS[layer.type](Call(emit, layer, [blobs[b] for b in layer.bottoms]))
        values = [result] if isinstance(result, Value) else list(result)
        for name, value in zip(layer.tops, values):
            if id(value) not in named and value.producer is not None:
                named.add(id(value))
                value.name = emit.unique(name)
            blobs[name] = value
            read.discard(name)  # a layer in place makes the blob anew
    outputs = sorted(n for n in blobs if n not in read and n not in dict(net.inputs))
    if not outputs:
        raise ModelFormatError(
            tr("every blob is read by a layer"), where=net_path, fix=tr("there is no output")
        )
    emit.finish([(name, blobs[name]) for name in outputs])
    return graph


def _pair(path: Path, params: Path | None) -> tuple[Path, Path]:
    """(prototxt, caffemodel). Raises ModelFormatError that says how to name the other one."""
    binary = path.suffix == ".caffemodel"
    if params is not None:
        return (params, path) if binary else (path, params)
    suffix = ".prototxt" if binary else ".caffemodel"
    other = path.with_suffix(suffix)
    if not other.is_file():
        found = sorted(p for p in path.parent.glob(f"*{suffix}") if p.is_file())
        if binary:
            deploy = [p for p in found if "deploy" in p.name]
            found = deploy or found
        if len(found) != 1:
            what = "prototxt" if binary else "caffemodel"
            raise ModelFormatError(
                tr(
                    "there are {files} {suffix} files beside it",
                    files=len(found) or "no",
                    suffix=suffix,
                ),
                where=path,
                fix=tr("name its {what} with --params", what=what),
            )
        other = found[0]
    return (other, path) if binary else (path, other)


def _check_layers(net: Net) -> None:
    missing = Counter(layer.type for layer in net.layers if layer.type not in LAYERS)
    if not missing:
        return
    names = ", ".join(f"{kind} ({n}x)" if n > 1 else kind for kind, n in missing.items())
    hint = (
        tr("Python layers do not describe what they compute; replace them")
        if "Python" in missing
        else tr("replace them, or cut the net before them")
    )
    raise UnsupportedOperatorError(
        tr("unsupported Caffe layers: {names}", names=names),
        tuple(layer.name for layer in net.layers if layer.type not in LAYERS),
        fix=hint,
    )


def _preprocess(net: Net) -> dict[str, Any]:
    """transform_param: (x − mean)·scale, BGR as Caffe reads images."""
    mean, scale = net.transform.floats("mean_value"), net.transform.float("scale", 1.0)
    if not mean and scale == 1:
        return {}
    shape = net.inputs[0][1]
    out: dict[str, Any] = {
        "mean": mean or [0.0], "std": [1 / scale if scale else 1.0], "colour": "bgr",
        "layout": "nchw",
    }  # fmt: skip
    if len(shape) == 4:
        out["size"] = shape[2:]
    return {"preprocess": out}
