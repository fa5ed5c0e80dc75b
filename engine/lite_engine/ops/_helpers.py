"""Small functions that several operator files share: axes, broadcasting, windows."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError, check_choice
from ..ir import Dim, DType, Node, Shape, TypeInfo, Value
from ._core import OpDef

#: Element types of kernels that only move elements.
ANY = ",".join(d for d in DType if not d.is_narrow)
#: Element types of kernels that compute in int64 or double: they cannot order large u64.
COUNTED = ANY.replace("u64,", "")
#: Those of them that ONNX's arithmetic takes.
NUMBERS = COUNTED.replace(",bool", "")


AUTO_PADS = ("NOTSET", "", "VALID", "SAME_UPPER", "SAME_LOWER")


def float_kernels(op: OpDef, name: str, **more: Any) -> None:
    """Registers the CPU kernels f32_`name` and, for plans that store fp16, f16_`name`."""
    op.kernel("cpu", f"f32_{name}", **more)
    op.kernel("cpu", f"f16_{name}", dtype="f16", precision="f16", **more)


def residual_of(node: Node) -> Value | None:
    """What a convolution or product adds to its result before the activation, if anything."""
    return node.input(3) if node.op in ("Conv", "Gemm") else None


def check_word(name: str, given: str, *words: str) -> None:
    """Raises ShapeError for an attribute's word that the operator does not have."""
    check_choice(name, given, words, error=ShapeError)


def slice_of(start: int, end: int, step: int, size: Dim) -> slice:
    """ONNX's slice of an axis as Python's: the two clamp alike, but for a start before the axis,
    from which backwards ONNX takes the first element and Python nothing."""
    return slice(max(start, -size) if step < 0 and isinstance(size, int) else start, end, step)


def normalise_axis(axis: int, rank: int) -> int:
    """A non-negative axis. Raises ShapeError when it lies outside [-rank, rank)."""
    if not -rank <= axis < max(rank, 1):
        raise ShapeError(tr("axis {axis} is outside a rank-{rank} tensor", axis=axis, rank=rank))
    return axis % rank if rank else 0


def broadcast_dims(a: Dim, b: Dim) -> Dim:
    """Multidirectional broadcasting of one dimension. Raises ShapeError."""
    if a == b:
        return a
    if a == 1:
        return b
    if b == 1:
        return a
    if isinstance(a, int) and isinstance(b, int):
        raise ShapeError(tr("{a} and {b} cannot be broadcast", a=a, b=b))
    if isinstance(a, str) and isinstance(b, str):  # n, and n or 64 if that is less: they fit as n
        return a if _is_limited(b, a) else b if _is_limited(a, b) else None
    return a if isinstance(a, int) else b if isinstance(b, int) else None


def symbol_limited(symbol: str, most: int) -> Dim:
    """The smaller of a symbol and a number of 2 or more, as `H≤64`, of which no other is made."""
    return f"{symbol}≤{most}" if most > 1 and "≤" not in symbol else None


def _is_limited(limited: str, symbol: str) -> bool:
    return bool(re.fullmatch(re.escape(symbol) + r"≤\d+", limited))


def broadcast_shapes(*shapes: Shape | None) -> Shape | None:
    """NumPy broadcasting with symbolic dimensions. Raises ShapeError."""
    known = [s for s in shapes if s is not None]
    if len(known) != len(shapes):
        return None
    if known and known.count(known[0]) == len(known):
        return known[0]
    rank = max((len(s) for s in known), default=0)
    out: list[Dim] = [1] * rank
    for shape in known:
        for i, dim in enumerate(shape):
            at = rank - len(shape) + i
            out[at] = broadcast_dims(out[at], dim)
    return tuple(out)


def window_pads(
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
    auto_pad: str = "NOTSET",
) -> list[int]:
    """Explicit pads [begin…, end…] of a sliding window; resolves ONNX auto_pad. Raises
    ShapeError."""
    check_word("auto_pad", auto_pad, *AUTO_PADS)
    n = len(sizes)
    if auto_pad in ("NOTSET", ""):
        return list(pads) if len(pads) else [0] * (2 * n)
    if auto_pad == "VALID":
        return [0] * (2 * n)
    begin, end = [], []
    for i in range(n):
        out = -(-sizes[i] // strides[i])
        total = max(0, (out - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 - sizes[i])
        small, large = total // 2, total - total // 2
        begin.append(small if auto_pad == "SAME_UPPER" else large)
        end.append(large if auto_pad == "SAME_UPPER" else small)
    return begin + end


def window_output(
    size: Dim, kernel: int, stride: int, pad: int, dilation: int, *, ceil: bool = False
) -> Dim:
    """Output positions of a window over one axis: ⌊(size + pad − d·(k−1) − 1)/stride⌋ + 1.

    With `ceil` the quotient is rounded up: a window may end behind the data, also the only one.
    A symbol gives a symbol, so that two ways through the same windows are known to fit.
    """
    if stride <= 0 or dilation <= 0 or kernel <= 0:
        raise ShapeError(
            tr(
                "window size, stride and dilation must be at least 1, found {kernel}, "
                "{stride} and {dilation}",
                kernel=kernel,
                stride=stride,
                dilation=dilation,
            )
        )
    extra = pad - dilation * (kernel - 1) - 1
    if not isinstance(size, int):
        return None if size is None or ceil else symbol_quotient(size, extra + stride, stride)
    span = size + extra
    if span < 0 and not (ceil and span > -stride):
        raise ShapeError(
            tr(
                "a window of {kernel} (dilation {dilation}) is larger than its input of"
                " {size} with a padding of {pad}",
                kernel=kernel,
                dilation=dilation,
                size=size,
                pad=pad,
            )
        )
    return (-(-span // stride) if ceil else span // stride) + 1


_QUOTIENT = re.compile(r"\(?(?P<base>.+?)(?P<plus>[+-]\d+)?\)?(?://(?P<over>\d+))?")
_MULTIPLE = re.compile(r"(?P<times>[1-9]\d{0,8})\*\((?P<symbol>.+)\)")
_LARGEST = 1 << 40  # beyond sizes of tensors: a damaged file's digits do not pile up


def symbol_quotient(symbol: str, plus: int, over: int) -> Dim:
    """⌊(symbol + plus)/over⌋ as a symbol of one form, `(H+plus)//over`: equal text, equal size.

    ⌊(⌊(H+a)/b⌋ + c)/d⌋ = ⌊(H + a + b·c)/(b·d)⌋ for positive b and d, and of a multiple
    ⌊(k·m·H + c)/k⌋ = m·H for 0 ≤ c < k.
    """
    if "≤" in symbol:
        return None
    if multiple := _MULTIPLE.fullmatch(symbol):
        times = int(multiple["times"])
        if times % over or not 0 <= plus < over:
            return None
        return multiple["symbol"] if times == over else f"{times // over}*({multiple['symbol']})"
    found = _QUOTIENT.fullmatch(symbol)
    if found is None:
        return None
    base, b = found["base"], int(found["over"] or 1)
    plus, over = int(found["plus"] or 0) + b * plus, b * over
    if max(abs(plus), over) > _LARGEST:
        return None
    text = f"{base}{plus:+d}" if plus else base
    if over == 1:
        return text
    return f"({text})//{over}" if plus else f"{text}//{over}"


def symbol_product(symbol: str, times: int) -> Dim:
    """`symbol` times a whole number, as `2*(H//2)`."""
    if "≤" in symbol and times != 1:
        return None
    if multiple := _MULTIPLE.fullmatch(symbol):
        symbol, times = multiple["symbol"], times * int(multiple["times"])
    return None if times > _LARGEST else symbol if times == 1 else f"{times}*({symbol})"


def elements_of(sizes: Iterable[Dim]) -> tuple[int, Counter[str]] | None:
    """How many elements a shape has: a number times symbols. None where a size is unknown."""
    parts = [split_symbol(size) for size in sizes]
    symbols = [symbol for _, symbol in parts if symbol != ""]
    known = [symbol for symbol in symbols if symbol is not None]
    if len(known) < len(symbols):
        return None
    return math.prod(times for times, _ in parts), Counter(known)


def reshape_target(shape: Sequence[Dim], source: Sequence[Dim] | None) -> list[int] | None:
    """The constant by which a Reshape of a value of shape `source` gives `shape`: 0 stands for a
    symbol that stays in its place, −1 for what is left. None where more than one size is open."""
    if 0 in shape:
        return None  # it would be taken for a size that stays
    kept = source or ()
    target = []
    for i, size in enumerate(shape):
        if isinstance(size, int):
            target.append(size)
        else:
            target.append(0 if size is not None and i < len(kept) and kept[i] == size else -1)
    return target if target.count(-1) <= 1 else None


def split_symbol(dim: Dim) -> tuple[int, str | None]:
    """(times, symbol) of a size: 12*(N) is (12, "N"), a number has the symbol "", None is None."""
    if isinstance(dim, int):
        return dim, ""
    multiple = None if dim is None else _MULTIPLE.fullmatch(dim)
    return (int(multiple["times"]), multiple["symbol"]) if multiple else (1, dim)


def same_type(x: TypeInfo, *_: object, **__: object) -> TypeInfo:
    """Inference of an operator whose output looks like its first input."""
    return TypeInfo(x.dtype, x.shape)


def typed(fn: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """A reference whose result keeps the first input's element type (float16 stays float16)."""

    def wrapped(x: np.ndarray, *args: Any, **attrs: Any) -> np.ndarray:
        return np.asarray(fn(x, *args, **attrs)).astype(x.dtype, copy=False)

    wrapped.__doc__ = fn.__doc__
    return wrapped


def wide(x: np.ndarray) -> np.ndarray:
    """The array in the type that sums are kept in: float32 at least for floats."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


def bool_type(*xs: TypeInfo) -> TypeInfo:
    """Inference of comparisons: broadcast shape, bool."""
    return TypeInfo(DType.BOOL, broadcast_shapes(*(x.shape for x in xs)))


def known_ints(info: TypeInfo | None) -> list[int] | None:
    """Contents of a constant integer input; None when absent or not known."""
    return None if info is None or info.const is None else [int(v) for v in info.const.ravel()]


def unknown_dims(rank: int | None) -> Shape | None:
    """A shape of which only the rank is known."""
    return None if rank is None else (None,) * rank


def normalise_axes(axes: Sequence[int], rank: int) -> list[int]:
    """Non-negative, distinct axes. Raises ShapeError."""
    out = [normalise_axis(int(a), rank) for a in axes]
    if len(set(out)) != len(out):
        raise ShapeError(tr("axes {axes} name an axis twice", axes=list(axes)))
    return out


def product(shape: Sequence[Dim]) -> int:
    """Number of elements of a static shape. Raises ShapeError."""
    count = 1
    for d in shape:
        if not isinstance(d, int):
            raise ShapeError(tr("shape is not fixed"))
        count *= d
    return count
