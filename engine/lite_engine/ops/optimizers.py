"""One step of ONNX's training optimizers: rate, count of steps so far, then lists of tensors.

Source: ai.onnx.preview.training of ONNX, version 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import TypeInfo
from ._core import define_op
from ._helpers import check_word

Array = np.ndarray
#: (rate, count, tensors of one parameter, attributes) → its new tensors
Step = Callable[..., Sequence[Array]]


def _optimizer(name: str, groups: int, step: Step, **attrs: Any) -> None:
    """`groups` tensors belong to each parameter: itself, its gradient, and state. The outputs are
    the new parameters, then the new state, list by list."""
    op = define_op(
        name, inputs="rate count *tensors", outputs="*ys", attrs=attrs,
        source=f"ONNX ai.onnx.preview.training {name}-1", training=True,
    )  # fmt: skip

    def parts(tensors: Sequence[Any]) -> list[Sequence[Any]]:
        count, rest = divmod(len(tensors), groups)
        if rest or not count:
            raise ShapeError(
                tr("{count} tensors do not split into {groups} lists of equal length",
                   count=len(tensors), groups=groups)
            )  # fmt: skip
        return [tensors[i * count : (i + 1) * count] for i in range(groups)]

    @op.infer
    def _(rate: TypeInfo, count: TypeInfo, *tensors: TypeInfo, **_: Any) -> list[TypeInfo]:
        x, _gradient, *state = parts(tensors)
        return [t for part in (x, *state) for t in part]

    @op.reference
    def _(rate: Array, count: Array, *tensors: Array, **attrs: Any) -> list[Array]:
        """New parameters and state"""
        given = (float(rate.reshape(())), int(count.reshape(())))
        made = [step(*given, *each, **attrs) for each in zip(*parts(tensors), strict=True)]
        return [y.astype(x.dtype) for x, y in zip(_kept(parts(tensors)), _by_list(made))]


def _kept(parts: Sequence[Sequence[Array]]) -> Iterator[Array]:
    return (t for i, part in enumerate(parts) if i != 1 for t in part)


def _by_list(made: Sequence[Sequence[Array]]) -> Iterator[Array]:
    return (t for part in zip(*made, strict=True) for t in part)


def _adagrad(
    rate: float, count: int, x: Array, g: Array, h: Array, *,
    decay_factor: float, epsilon: float, norm_coefficient: float,
) -> list[Array]:  # fmt: skip
    g = norm_coefficient * x + g
    h = h + g * g
    return [x - rate / (1 + count * decay_factor) * g / (np.sqrt(h) + epsilon), h]


def _adam(
    rate: float, count: int, x: Array, g: Array, v: Array, h: Array, *,
    alpha: float, beta: float, epsilon: float, norm_coefficient: float,
    norm_coefficient_post: float,
) -> list[Array]:  # fmt: skip
    g = norm_coefficient * x + g
    v = alpha * v + (1 - alpha) * g
    h = beta * h + (1 - beta) * g * g
    if count > 0:
        rate = rate * np.sqrt(1 - beta**count) / (1 - alpha**count)
    x = x - rate * v / (np.sqrt(h) + epsilon)
    return [(1 - norm_coefficient_post) * x, v, h]


def _momentum(
    rate: float, count: int, x: Array, g: Array, v: Array, *,
    alpha: float, beta: float, mode: str, norm_coefficient: float,
) -> list[Array]:  # fmt: skip
    check_word("mode", mode, "standard", "nesterov")
    g = norm_coefficient * x + g
    v = alpha * v + (beta if count > 0 else 1.0) * g
    return [x - rate * (g + alpha * v if mode == "nesterov" else v), v]


_optimizer("Adagrad", 3, _adagrad, decay_factor=0.0, epsilon=1e-6, norm_coefficient=0.0)
_optimizer(
    "Adam", 4, _adam, alpha=0.9, beta=0.999, epsilon=0.0, norm_coefficient=0.0,
    norm_coefficient_post=0.0,
)  # fmt: skip
_optimizer("Momentum", 3, _momentum, alpha=0.9, beta=1.0, mode="standard", norm_coefficient=0.0)
