"""Custom operators: SSD post-processing and MediaPipe's pooling with positions and transposed
convolution with bias."""

from __future__ import annotations

import struct

from lite_messages import tr

from ...errors import ModelFormatError
from ...ir import Value
from .. import _nhwc
from ._call import Call, Result, custom
from ._flexbuffers import read_map


@custom("TFLite_Detection_PostProcess")
def detection_post_process(c: Call) -> Result:
    """Inputs: box encodings (1,A,4), class scores (1,A,C), anchors (A,4)."""
    options = read_map(c.op.custom)

    def number(key: str, default: float | None = None) -> float:
        if key not in options and default is None:
            raise ModelFormatError(
                tr("tflite: {code} has no option {key!r}", code=c.op.code, key=key)
            )
        return float(options.get(key, default or 0.0))

    attrs = {
        "max_detections": int(number("max_detections")),
        "max_classes_per_detection": int(number("max_classes_per_detection", 1)),
        "detections_per_class": int(number("detections_per_class", 100)),
        "num_classes": int(number("num_classes")),
        "score_threshold": number("nms_score_threshold"),
        "iou_threshold": number("nms_iou_threshold"),
        "use_regular_nms": bool(options.get("use_regular_nms", False)),
        "scales": [number(f"{a}_scale") for a in "yxhw"],
    }
    inputs = [c.x(0), c.x(1), c.x(2)]
    return c.emit.outputs("TFLite_Detection_PostProcess", inputs, 4, **attrs)


def _padding(code: int, where: str) -> str:
    """TfLitePadding: 1 same, 2 valid."""
    if code not in (1, 2):
        raise ModelFormatError(
            tr("tflite: {where} has padding code {code}, expected 1 or 2", where=where, code=code)
        )
    return "SAME" if code == 1 else "VALID"


def _struct(c: Call, count: int) -> list[int]:
    """The first `count` int32 of the options, a C struct of MediaPipe."""
    if len(c.op.custom) < 4 * count:
        raise ModelFormatError(
            tr(
                "tflite: {code} has {bytes} bytes of options, expected {count}",
                code=c.op.code,
                bytes=len(c.op.custom),
                count=4 * count,
            )
        )
    return list(struct.unpack_from(f"<{count}i", c.op.custom))


@custom("Convolution2DTransposeBias")
def transpose_conv_bias(c: Call) -> Value:
    """x (N,H,W,C), w (O,kh,kw,C), bias (O,); options: padding, stride width, stride height."""
    padding, stride_w, stride_h = _struct(c, 3)
    y = _nhwc.conv_transpose(
        c.emit,
        c.x(0),
        c.weight(1, (3, 0, 1, 2)),
        c.bias(2),
        (stride_h, stride_w),
        _padding(padding, c.emit.source),
        (None, None),
    )
    return _nhwc.to_last(c.emit, y)


def _pool_options(c: Call) -> dict[str, object]:
    """TfLitePoolParams: padding, stride width, stride height, filter width, filter height."""
    padding, stride_w, stride_h, filter_w, filter_h = _struct(c, 5)
    return {
        "kernel_shape": [filter_h, filter_w],
        "strides": [stride_h, stride_w],
        "padding": _padding(padding, c.emit.source),
    }


@custom("MaxPoolingWithArgmax2D")
def max_pool_with_argmax(c: Call) -> Result:
    """Largest element of each window, and its position inside the window (row-major, f32)."""
    return c.emit.outputs("MaxPoolingWithArgmax2D", [c.x()], 2, **_pool_options(c))


@custom("MaxUnpooling2D")
def max_unpool(c: Call) -> Value:
    """Puts each element back at its position inside the window; zeros elsewhere."""
    return c.emit("MaxUnpooling2D", c.x(0), c.x(1), **_pool_options(c))
