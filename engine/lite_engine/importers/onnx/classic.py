"""ai.onnx.ml: the forms in which files hold classic models → ours, on numbers.

Class names become `labels` of the model, and their classifiers give the number of the class: an
answer is a tensor of numbers here. ZipMap, which only names the columns of the scores, goes.
Source: Operators-ml.md of ONNX.
"""

from __future__ import annotations

from typing import Any

from ...ir import Value
from .call import Call

_LABELS = {
    "LinearClassifier": "classlabels_ints",
    "SVMClassifier": "classlabels_ints",
    "TreeEnsembleClassifier": "classlabels_int64s",
    "ZipMap": "classlabels_int64s",
}


def classic_op(call: Call, metadata: dict[str, Any]) -> None:
    """Changes a call in place; names of classes go into the model's metadata."""
    call.version = 99
    attrs = call.attrs
    for key in [k for k in attrs if k.endswith("_as_tensor")]:
        value = attrs.pop(key)
        if isinstance(value, Value) and value.const is not None:
            attrs[key.removesuffix("_as_tensor")] = value.const.ravel()
    if call.op in _LABELS:
        given = _LABELS[call.op]
        names, numbers = attrs.pop("classlabels_strings", []), attrs.get(given, [])
        if names:
            attrs[given] = list(range(len(names)))
            metadata["labels"] = names
        elif numbers != list(range(len(numbers))):
            metadata.setdefault("labels", [str(v) for v in numbers])
    if call.op == "ZipMap":
        call.op, call.attrs = "Identity", {}
