"""One-operator TFLite models on bytes, and what LiteRT's default kernels answer.

    python -m tests.importers.tflite_rounding      records the answers anew (needs ai-edge-litert)

The scales are such that many results lie on or beside a tie.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from tests.importers.tiny_tflite import TinyModel
from tests.importers.wire import Num, Table

RECORDED = Path(__file__).with_name("tflite_rounding.json")
SHAPE = (1, 8, 14, 8)
Made = tuple[bytes, list[np.ndarray]]


def _binary(code: int, dtype: str, scales: tuple[float, ...], b_shape: tuple[int, ...]) -> Made:
    m, rng, zeros = TinyModel(), np.random.default_rng(code), (-7, 5, 3)
    info = np.iinfo(dtype)
    zeros = zeros if dtype == "int8" else tuple(z + 128 for z in zeros)
    arrays = [rng.integers(info.min, info.max + 1, s, dtype) for s in (SHAPE, b_shape)]
    a = m.tensor("a", dtype, SHAPE, scale=scales[0], zero=zeros[0])
    const = arrays[1] if len(b_shape) < 4 else None
    b = m.tensor("b", dtype, b_shape, const, scale=scales[1], zero=zeros[1])
    y = m.tensor("y", dtype, SHAPE, scale=scales[2], zero=zeros[2])
    m.op(code, [a, b], [y])
    inputs = [a] if const is not None else [a, b]
    return m.bytes(inputs, [y]), arrays[: len(inputs)]


def _unary(
    code: int, dtypes: tuple[str, str], scales: tuple[float, float], zeros: tuple[int, int],
    options: Table | None = None, kind: int = 1, out: tuple[int, ...] = SHAPE,
) -> Made:  # fmt: skip
    m = TinyModel()
    info = np.iinfo(dtypes[0]) if dtypes[0] != "float32" else None
    if info is None:
        array = np.random.default_rng(code).uniform(-3, 3, SHAPE).astype(np.float32)
        # Halves of a step, which are ties.
        array = np.where(np.arange(8) % 2, np.rint(array * 40) / 40 * np.float32(2), array)
        x = m.tensor("x", "float32", SHAPE)
    else:
        array = np.random.default_rng(code).integers(info.min, info.max + 1, SHAPE, dtypes[0])
        x = m.tensor("x", dtypes[0], SHAPE, scale=scales[0], zero=zeros[0])
    y = m.tensor("y", dtypes[1], out, scale=scales[1], zero=zeros[1])
    m.op(code, [x], [y], options, kind=kind)
    return m.bytes([x], [y]), [array.astype(dtypes[0])]


def _pool(dtype: str, size: int, out: tuple[int, ...]) -> Made:
    options = Table(_0=Num("b", 0), _1=Num("i", 2), _2=Num("i", 2), _3=Num("i", size),
                    _4=Num("i", size))  # fmt: skip
    return _unary(1, (dtype, dtype), (0.3, 0.3), (4, 4), options, 5, out)


ADD, SUB, MUL, QUANTIZE, LEAKY_RELU = 0, 41, 18, 114, 98
NEAR, FAR, HALF = (0.25, 0.125, 0.5), (0.0173, 0.0411, 0.0562), (0.1, 0.5, 0.1)
ROW = (8,)
#: name → the model and its inputs
CASES: dict[str, Callable[[], Made]] = {
    **{
        f"{name} {dtype} {shape[-1] if len(shape) == 1 else 'map'} {scales[0]}": (
            lambda c=code, d=dtype, s=scales, b=shape: _binary(c, d, s, b)
        )
        for name, code in (("ADD", ADD), ("SUB", SUB), ("MUL", MUL))
        for dtype in ("int8", "uint8")
        for scales in ((FAR, HALF) if code == MUL else (NEAR, FAR))
        for shape in (SHAPE, ROW, (1,))
        if len(shape) != 1 or shape == ROW or dtype == "int8"
    },
    "QUANTIZE int8": lambda: _unary(
        QUANTIZE, ("int8", "int8"), (0.42287, 1.0), (0, 0)
    ),
    "QUANTIZE uint8": lambda: _unary(QUANTIZE, ("uint8", "uint8"), (0.031, 0.02), (130, 117)),
    "QUANTIZE float32": lambda: _unary(QUANTIZE, ("float32", "int8"), (1.0, 0.05), (0, 3)),
    "LEAKY_RELU int8": lambda: _unary(
        LEAKY_RELU, ("int8", "int8"), (0.02, 0.017), (-11, 3), Table(_0=Num("f", 0.2)), 75
    ),
    "ABS int8": lambda: _unary(101, ("int8", "int8"), (0.02, 0.0503), (-8, -42)),
    "HARD_SWISH int8": lambda: _unary(117, ("int8", "int8"), (0.0098, 0.0049), (1, -53)),
    "HARD_SWISH uint8": lambda: _unary(117, ("uint8", "uint8"), (0.05, 0.03), (100, 28)),
    "AVERAGE_POOL_2D int8 2": lambda: _pool("int8", 2, (1, 4, 7, 8)),
    "AVERAGE_POOL_2D uint8 3": lambda: _pool("uint8", 3, (1, 4, 7, 8)),
}  # fmt: skip


def recorded() -> dict[str, np.ndarray]:
    """Name → LiteRT's bytes, as u8."""
    found = json.loads(RECORDED.read_text())["answers"]
    return {
        name: np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8)
        for name, text in found.items()
    }


def litert() -> Iterator[tuple[str, np.ndarray]]:
    """Name → the bytes that the LiteRT of this environment answers."""
    from ai_edge_litert.interpreter import (  # type: ignore[import-not-found,unused-ignore]
        Interpreter,
    )

    for name, make in CASES.items():
        content, arrays = make()
        net = Interpreter(model_content=content, num_threads=1)
        net.allocate_tensors()
        for detail, array in zip(net.get_input_details(), arrays, strict=True):
            net.set_tensor(detail["index"], array)
        net.invoke()
        yield name, net.get_tensor(net.get_output_details()[0]["index"]).ravel().view(np.uint8)


def main() -> None:
    from importlib.metadata import version

    answers = {
        name: base64.b64encode(zlib.compress(y.tobytes(), 9)).decode() for name, y in litert()
    }
    content = {"litert": version("ai-edge-litert"), "answers": answers}
    RECORDED.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
