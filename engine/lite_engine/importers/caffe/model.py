"""The layers of a net with their weights: prototxt and caffemodel brought together."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from lite_messages import tr

from ...errors import ModelFormatError
from ...mapped import map_file
from .._protobuf import Message
from .._shaped import shaped
from . import fields
from ._prototxt import MAX_BYTES, Block, parse

#: V1LayerParameter.LayerType → today's type name. Source: caffe.proto.
V1_TYPES = {
    35: "AbsVal", 1: "Accuracy", 30: "ArgMax", 2: "BNLL", 3: "Concat", 37: "ContrastiveLoss",
    4: "Convolution", 5: "Data", 39: "Deconvolution", 6: "Dropout", 32: "DummyData",
    7: "EuclideanLoss", 25: "Eltwise", 38: "Exp", 8: "Flatten", 9: "HDF5Data", 10: "HDF5Output",
    28: "HingeLoss", 11: "Im2col", 12: "ImageData", 13: "InfogainLoss", 14: "InnerProduct",
    15: "LRN", 29: "MemoryData", 16: "MultinomialLogisticLoss", 34: "MVN", 17: "Pooling",
    26: "Power", 18: "ReLU", 19: "Sigmoid", 27: "SigmoidCrossEntropyLoss", 36: "Silence",
    20: "Softmax", 21: "SoftmaxWithLoss", 22: "Split", 33: "Slice", 23: "TanH", 24: "WindowData",
    31: "Threshold",
}  # fmt: skip
_V1_BY_NAME = {
    **{name.upper(): name for name in V1_TYPES.values()},
    "INNER_PRODUCT": "InnerProduct", "SOFTMAX_LOSS": "SoftmaxWithLoss", "HDF5_DATA": "HDF5Data",
    "IMAGE_DATA": "ImageData", "DUMMY_DATA": "DummyData", "MEMORY_DATA": "MemoryData",
    "EUCLIDEAN_LOSS": "EuclideanLoss", "WINDOW_DATA": "WindowData",
}  # fmt: skip

#: fills its tops from a data base or a list of files: a net for training
DATA_LAYERS = ("Data", "ImageData", "HDF5Data", "WindowData", "AnnotatedData", "MemoryData")
#: outputs that nobody needs when the net runs
DROPPED = ("Accuracy", "Silence", "HDF5Output", "DetectionEvaluate")


@dataclass
class Layer:
    """One layer; `blobs` are its weights, views of the caffemodel."""

    name: str
    type: str
    bottoms: list[str]
    tops: list[str]
    block: Block
    blobs: list[np.ndarray] = field(default_factory=list)


@dataclass
class Net:
    name: str
    #: name and shape of each input, in the file's order
    inputs: list[tuple[str, list[int]]]
    layers: list[Layer]
    #: transform_param of the input or data layer
    transform: Block
    #: layers of the caffemodel that have weights and are not in the net
    unused: list[str] = field(default_factory=list)


def read_prototxt(path: Path) -> Block:
    view = map_file(path)
    if len(view) > MAX_BYTES:
        raise ModelFormatError(
            tr("the prototxt is larger than {max_bytes} MiB", max_bytes=MAX_BYTES >> 20), where=path
        )
    try:
        return parse(str(view, "utf-8", "strict"))
    except UnicodeDecodeError:
        raise ModelFormatError(
            tr("not a text file"), where=path, fix=tr("give the prototxt")
        ) from None


def read_net(block: Block, path: Path) -> Net:
    """Layers of the test phase. Raises ModelFormatError."""
    layers: list[Layer] = []
    inputs = _declared_inputs(block)
    transform = Block()
    for entry in [*block.blocks("layer"), *block.blocks("layers")]:
        if entry.has("layer"):
            raise ModelFormatError(
                tr("layers in the oldest format (V0) are not supported"),
                where=path,
                fix=tr("run Caffe's upgrade_net_proto_text"),
            )
        if not _in_test_phase(entry):
            continue
        layer = _layer(entry)
        if entry.has("transform_param") and layer.type in ("Input", *DATA_LAYERS):
            transform = entry.block("transform_param")
        if layer.type == "Input":
            shapes = [s.ints("dim") for s in entry.block("input_param").blocks("shape")]
            shapes = shapes * len(layer.tops) if len(shapes) == 1 else shapes
            inputs += list(zip(layer.tops, shapes))
        elif layer.type in DATA_LAYERS:
            raise ModelFormatError(
                tr("layer {layer} ({type}) reads training data", layer=layer.name, type=layer.type),
                where=path,
                fix=tr(
                    "this is a net for training. Give the deploy prototxt, or "
                    "replace the layer by an Input layer"
                ),
            )
        elif layer.type not in DROPPED:
            layers.append(layer)
    if not layers:
        raise ModelFormatError(tr("no layers"), where=path, fix=tr("is this a solver or a net?"))
    if not inputs:
        raise ModelFormatError(
            tr("no input"), where=path, fix=tr("add an Input layer with its shape")
        )
    for name, shape in inputs:
        if not shape or min(shape) < 1 or max(shape) > 1 << 20 or len(shape) > 8:
            raise ModelFormatError(
                tr("input {name} has shape {shape}", name=name, shape=shape), where=path
            )
    return Net(block.text("name", path.stem), inputs, layers, transform)


def _declared_inputs(block: Block) -> list[tuple[str, list[int]]]:
    names = block.texts("input")
    shapes = [s.ints("dim") for s in block.blocks("input_shape")]
    dims = block.ints("input_dim")
    if not shapes and dims:
        shapes = [dims[i : i + 4] for i in range(0, len(dims), 4)]
    if len(shapes) == 1:
        shapes = shapes * len(names)
    return list(zip(names, shapes))


def _in_test_phase(entry: Block) -> bool:
    """include/exclude rules by phase; a rule that names stages or levels does not hold."""

    def holds(rule: Block) -> bool:
        if rule.text("phase", "TEST") not in ("TEST", "1"):
            return False
        return not (rule.has("stage") or rule.int("min_level", 0) > 0)

    include, exclude = entry.blocks("include"), entry.blocks("exclude")
    if include:
        return any(holds(r) for r in include)
    return not any(holds(r) for r in exclude)


def _layer(entry: Block) -> Layer:
    kind = entry.text("type")
    if kind.isdigit():
        kind = V1_TYPES.get(int(kind), kind)
    return Layer(
        entry.text("name"),
        _V1_BY_NAME.get(kind, kind),
        entry.texts("bottom"),
        entry.texts("top"),
        entry,
    )


def attach_weights(net: Net, view: memoryview, path: Path) -> None:
    """Weights of the caffemodel by layer name. Raises ModelFormatError for a layer without."""
    message = Message(view)
    blobs: dict[str, list[np.ndarray]] = {}
    for layer in message.messages(fields.NetParameter.LAYER):
        blobs[layer.text(fields.Layer.NAME)] = [
            _blob(b) for b in layer.messages(fields.Layer.BLOBS)
        ]
    for layer in message.messages(fields.NetParameter.LAYERS):
        blobs[layer.text(fields.V1Layer.NAME)] = [
            _blob(b) for b in layer.messages(fields.V1Layer.BLOBS)
        ]
    if not blobs:
        raise ModelFormatError(tr("no layers"), where=path, fix=tr("not a caffemodel"))
    for entry in net.layers:
        entry.blobs = blobs.pop(entry.name, [])
    net.unused = [name for name, arrays in blobs.items() if arrays]


def _blob(message: Message) -> np.ndarray:
    """data with its shape, or the old num × channels × height × width."""
    data = message.fixed(fields.Blob.DATA, np.float32)
    if not len(data) and 8 in message:
        data = message.fixed(fields.Blob.DOUBLE_DATA, np.float64).astype(np.float32)
    shape = message.message(fields.Blob.SHAPE)
    if shape is not None:
        dims = shape.ints(fields.BlobShape.DIM)
    elif any(n in message for n in (1, 2, 3, 4)):
        dims = [message.int(n, 1) for n in (1, 2, 3, 4)]
    else:
        dims = [len(data)]
    if any(d < 0 for d in dims) or len(dims) > 8 or math.prod(dims) != len(data):
        raise ModelFormatError(
            tr(
                "caffemodel: a blob has shape {dims}, but {numbers} numbers",
                numbers=len(data),
                dims=dims,
            )
        )
    return shaped(data, dims)
