"""What a launch reaches of its arguments, by the `//@` lines that its kernel's text has.

CONTRIBUTING.md describes the lines. The native runtime reads the same ones
(`native/src/opencl/reach.cc`) and refuses a file whose launches leave their memory; here they guard
the builders.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple

from ...plan import Plan, PlanTensor
from .launch import Image, Launch, grouped
from .programs import kernel_file, parts_of

#: Kernels number elements by ints.
_INT_MAX = 2**31 - 1
_SIZES = {
    "char": 1, "uchar": 1, "short": 2, "ushort": 2, "half": 2, "int": 4, "uint": 4, "float": 4,
    "long": 8, "ulong": 8, "double": 8,
}  # fmt: skip
_DEFINE = re.compile(r"#define (\w+)(?: (.*))?")


class ReachError(ValueError):
    """A launch that its kernel does not state, or that leaves an argument's memory."""


@dataclass(frozen=True)
class Parameter:
    name: str
    type: str
    written: bool
    kind: str  # "buffer", "image" or "number"


@dataclass(frozen=True)
class Line:
    """`let`, `need`, `items`, `group`, `local`, `reads` or `writes`. `parts` are (name, values)."""

    word: str
    text: str
    parts: tuple[tuple[str, CodeType], ...]
    when: CodeType | None


@dataclass(frozen=True)
class Extent:
    """`rows` times `width` elements of an argument, `apart` from row to row, from `first` on; of an
    image `rows` x `width` texels. `end` is one past the last element."""

    argument: int
    written: bool
    itemsize: int
    first: int
    rows: int
    apart: int
    width: int

    @property
    def end(self) -> int:
        return self.first + (self.rows - 1) * self.apart + self.width if self.rows else 0


def extents(launch: Launch) -> list[Extent]:
    """Of each argument that the launch reads or writes. Raises ReachError where the kernel's
    conditions do not hold."""
    return list(_extents(_asked(launch)))


def check(launch: Launch, plan: Plan) -> None:
    """Raises ReachError where the launch leaves the memory of an argument."""
    for extent in _extents(_asked(launch)):
        argument = launch.args[extent.argument]
        if isinstance(argument, PlanTensor):
            argument = plan.root(argument.index)
        if isinstance(argument, Image):
            fits = extent.width <= argument.width and extent.rows <= argument.height
        else:
            end = extent.end
            fits = end <= _INT_MAX and end * extent.itemsize <= argument.nbytes
        if not fits:
            raise ReachError(f"{launch.kernel} leaves argument {extent.argument}: {extent}")


def local_bytes(launch: Launch) -> int:
    """Of local memory that a group of work-items needs. Raises ReachError."""
    return sum(v[0][1][0] for line, v, _ in _lines(_asked(launch)) if line.word == "local")


class _Asked(NamedTuple):
    """All of a launch that its reach follows from."""

    file: str
    options: str
    kernel: str
    numbers: tuple[int | None, ...]  # of the arguments, None for those that are none
    grid: tuple[int, ...]
    group: tuple[int, ...]


def _asked(launch: Launch) -> _Asked:
    parameters, _ = statement(launch.file, launch.kernel)
    if len(parameters) != len(launch.args):
        raise ReachError(f"{launch.kernel} takes {len(parameters)} arguments")
    numbers = [int(a) if p.kind == "number" else None for p, a in zip(parameters, launch.args)]
    grid, group = launch.global_size, launch.local_size
    if group is None:
        grid, group = grouped(grid)
    return _Asked(
        launch.file, launch.options, launch.kernel, tuple(numbers), tuple(grid), tuple(group)
    )


@lru_cache(4096)  # a plan has each kernel many times
def _extents(asked: _Asked) -> tuple[Extent, ...]:
    parameters, _ = statement(asked.file, asked.kernel)
    return tuple(
        _extent(parameters, name, value, names, line.word == "writes")
        for line, values, names in _lines(asked)
        if line.word in ("reads", "writes")
        for name, value in values
    )


def _lines(asked: _Asked) -> Iterator[tuple[Line, list[tuple[str, Any]], dict[str, Any]]]:
    """Lines that apply, with their values and those of all names so far; a condition that does not
    hold raises ReachError."""
    parameters, lines = statement(asked.file, asked.kernel)
    options = dict(_DEFINE.findall(asked.options))
    names: dict[str, Any] = _Names(asked.file, options)
    names |= {p.name: n for p, n in zip(parameters, asked.numbers) if n is not None}
    grid, group = asked.grid, asked.group
    names |= {f"g{d}": n for d, n in enumerate((*grid, 1, 1)[:3])}
    for line in lines:
        if line.when is not None and not _value(line.when, names, line):
            continue
        values = [(name, _value(code, names, line)) for name, code in line.parts]
        if line.word == "let":
            names |= dict(values)
        elif line.word not in ("reads", "writes") and not _holds(
            line.word, values[0][1], grid, group
        ):
            raise ReachError(f"{asked.kernel}: '{line.text}' does not hold")
        yield line, values, names


def _holds(word: str, values: tuple[int, ...], grid: tuple[int, ...], group: Any) -> bool:
    if word == "need":
        return all(values)
    if word == "group":
        return tuple(values) == tuple(group)
    if word == "items":
        whole = tuple(-(-n // size) * size for n, size in zip(values, group))
        return len(values) == len(grid) and min(values) > 0 and whole == tuple(grid)
    return word == "local"  # the driver's to refuse


def _extent(
    parameters: tuple[Parameter, ...],
    name: str,
    value: tuple[int, ...],
    names: Mapping[str, Any],
    written: bool,
) -> Extent:
    index = next(i for i, p in enumerate(parameters) if p.name == name)
    kind = parameters[index].type
    if len(value) == 2:
        return Extent(index, written, 0, 0, value[1], 0, value[0])
    first, rows, apart, width = value if len(value) == 4 else (0, 1, value[0], value[0])
    if min(first, rows, apart, width) < 0:
        raise ReachError(f"'{name}' has a negative extent")
    itemsize = (2 if names["HALF"] else 4) if kind == "T" else _bytes(kind) or names[kind]
    return Extent(index, written, itemsize, first, rows if width else 0, apart, width)


def _value(code: CodeType, names: dict[str, Any], line: Line) -> Any:
    try:
        return eval(code, {"__builtins__": {}, "min": min, "max": max, "up": _up}, names)
    except (ZeroDivisionError, KeyError) as error:
        raise ReachError(f"'{line.text}': {error}") from None


def _up(a: int, b: int) -> int:
    return -(-a // b)


class _Names(dict[str, Any]):
    """Options of a file that a launch does not define are 0."""

    def __init__(self, file: str, options: Mapping[str, str]) -> None:
        listed = option_forms(file)
        super().__init__(dict.fromkeys(listed, 0), INT_MAX=_INT_MAX, HALF=0)
        for name, text in options.items():
            form = listed.get(name)
            if form is None:
                raise ReachError(f"{file}.cl lists no option {name}")
            if form.startswith("="):
                self[name] = int(text)
                if not _is_listed(int(text), form[1:]):
                    raise ReachError(f"{file}.cl takes no option '{name} {text}'")
            elif form == ":type":
                self[name] = _bytes(text)
            else:
                self[name] = 1


def _is_listed(value: int, form: str) -> bool:
    """Whether it is among values and ranges like "1,4..8"."""
    ends = (part.split("..") for part in form.split(","))
    return any(int(low) <= value <= int(high[-1] if high else low) for low, *high in ends)


def _bytes(name: str) -> int:
    """Of an OpenCL C type, 0 for an unknown one."""
    found = re.fullmatch(r"([a-z]+)(2|4|8|16)?", name)
    return _SIZES.get(found[1], 0) * int(found[2] or 1) if found else 0


@lru_cache
def option_forms(file: str) -> dict[str, str]:
    """Options of kernels/FILE.cl and what each is: nothing (a flag), "=1,4..8", ":type",
    ":number" or "(x)"."""
    text = kernel_file(file).read_text()
    words = [w for line in re.findall(r"^//@ options (.*)$", text, re.M) for w in line.split()]
    return {m[1]: m[2] for w in words if (m := re.fullmatch(r"(\w+)(.*)", w))}


@lru_cache
def statement(file: str, kernel: str) -> tuple[tuple[Parameter, ...], tuple[Line, ...]]:
    """Raises ReachError for a kernel without one."""
    *shared_parts, text = (part.read_text() for part in parts_of(file))
    found = re.search(rf"^//@ kernel {kernel}\n((?://@ .*\n)+)", text, re.M)
    listed = re.search(rf"^(?!static inline).*\bvoid {kernel}\(([^)]*)\)", text, re.M)
    if not found or not listed:
        raise ReachError(f"{file}.cl does not state the reach of {kernel}")
    form = re.compile(r"^#define ([A-Z]+) ((?:int|float) .*)$", re.M)
    shared = dict(row for part in shared_parts for row in form.findall(part))
    words = [shared.get(p.strip(), p) for p in listed[1].split(",")]
    parameters = tuple(_parameter(p.split()) for p in ",".join(words).split(","))
    return parameters, tuple(_line(line[4:]) for line in found[1].splitlines())


def _parameter(words: list[str]) -> Parameter:
    name, kind = words[-1].lstrip("*"), words[-2] if words[-2] not in ("*", "*restrict") else ""
    if words[-1].startswith("*") or "*restrict" in words:
        rest = [w for w in words[:-1] if w not in ("global", "const", "*restrict")]
        return Parameter(name, rest[-1], "const" not in words, "buffer")
    if kind == "image2d_t":
        return Parameter(name, kind, "write_only" in words, "image")
    return Parameter(name, kind, False, "number" if kind == "int" else "value")


def _line(text: str) -> Line:
    whole, _, condition = text.partition(" when ")
    word, _, rest = whole.partition(" ")
    when = _code(condition) if condition else None
    if word == "let":
        name, _, value = rest.partition(" = ")
        return Line(word, text, ((name, _code(value)),), when)
    if word in ("reads", "writes"):
        parts = re.findall(r"(\w+)\[(.*?)\]", rest)
        return Line(word, text, tuple((name, _code(f"({v},)")) for name, v in parts), when)
    return Line(word, text, (("", _code(f"({rest},)")),), when)


def _code(expression: str) -> CodeType:
    """Division is of numbers that are not negative: C's and Python's are one."""
    return compile(expression.strip().replace("/", "//"), "<statement>", "eval")


__all__ = [
    "Extent", "Line", "Parameter", "ReachError", "check", "extents", "local_bytes", "option_forms",
]  # fmt: skip
