"""What Paddle-Lite's `opt` writes beside a `.nb` file: lists for a tailored build, and pictures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from lite_messages import tr, trn

from ..files import make_folder, write_file
from ..importers.naive_buffer.container import read_nb
from ..importers.paddle.program import Program
from ..mapped import map_file
from ..model_file.naive_buffer import Int8Layers, SparseLayers

KERNEL = "__@kernel_type_attr@__"
#: As Paddle-Lite's lists spell the numbers of a kernel string (lite/api/paddle_place.h).
_TARGETS = {1: "kHost", 2: "kX86", 4: "kARM", 5: "kOpenCL", 6: "kAny"}
_PRECISIONS = {1: "kFloat", 2: "kInt8", 3: "kInt32", 4: "kAny", 5: "kFP16", 7: "kInt64"}
_LAYOUTS = {1: "kNCHW", 2: "kAny", 3: "kNHWC", 4: "kImageDefault", 5: "kImageFolder"}


def write_tailoring_lists(files: Iterable[Path], folder: Path) -> list[Path]:
    """`.tailored_ops_list` and `.tailored_kernels_list` of what `.nb` files need together. Raises
    LiteError."""
    ops, kernels = set(), set()
    for op in (op for nb in files for block in read_nb(map_file(nb)).blocks for op in block.ops):
        ops.add(op.type)
        if KERNEL in op.attrs:
            kernels.add(_kernel(str(op.attrs[KERNEL])))
    return [
        _write(folder / ".tailored_ops_list", sorted(ops)),
        _write(folder / ".tailored_kernels_list", sorted(kernels)),
    ]


def _kernel(text: str) -> str:
    """ "conv2d/def/4/1/1" → "conv2d,kARM,kFloat,kNCHW,def"."""
    name, alias, *numbers = text.split("/")
    words = [
        table.get(int(number), "kUnk")
        for table, number in zip((_TARGETS, _PRECISIONS, _LAYOUTS), numbers)
    ]
    return ",".join([name, *words, alias])


def write_pictures(nb: Path, folder: Path) -> list[Path]:
    """`Block_N.dot`, one for each block of a `.nb` file: Graphviz draws them. Raises LiteError."""
    program = read_nb(map_file(nb))
    return [_write(folder / f"Block_{i}.dot", _dot(program, i)) for i in range(len(program.blocks))]


def _dot(program: Program, index: int) -> Iterator[str]:
    ops = program.blocks[index].ops
    names = {
        n for op in ops for slots in (op.inputs, op.outputs) for s in slots.values() for n in s
    }
    numbers = {name: i for i, name in enumerate(sorted(names), start=len(ops))}
    yield "digraph G {"
    for i, op in enumerate(ops):
        yield f"  node_{i}[label={_quoted(op.type)} style=filled fillcolor=yellow]"
    for name, i in numbers.items():
        yield f"  node_{i}[label={_quoted(name)} style=filled fillcolor=gray shape=record]"
    for i, op in enumerate(ops):
        yield from (f"  node_{numbers[n]}->node_{i}" for s in op.inputs.values() for n in s)
        yield from (f"  node_{i}->node_{numbers[n]}" for s in op.outputs.values() for n in s)
    yield "}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _write(path: Path, lines: Iterable[str]) -> Path:
    make_folder(path.parent)
    return write_file(path, "\n".join(lines) + "\n")


def sparse_notes(found: SparseLayers | None) -> list[str]:
    """What --sparse_model did: no layer with as many zeros stays dense without a word."""
    if found is None:
        return []
    lines = [
        tr("--sparse_model: {name} stays dense: {why}", name=name, why=why)
        for name, why in found.dense.items()
    ]
    if found.done:
        stored = trn("{n} layer is stored sparse", "{n} layers are stored sparse", len(found.done))
        lines.append(f"--sparse_model: {stored}")
    elif not found.dense:
        percent = 100 * found.threshold
        lines.append(
            tr("--sparse_model: no convolution has {percent:.0f} % zeros", percent=percent)
        )
    return lines


def int8_notes(found: Int8Layers) -> list[str]:
    """What became of a network in integers; nothing of one in floats."""
    if not found.done and not found.floats:
        return []
    done, floats = len(found.done), len(found.floats)
    lines = [
        trn("{n} layer computes in int8", "{n} layers compute in int8", done),
        tr("inputs and outputs of the file are floats"),
    ]
    if floats:
        lines.append(trn("{n} layer computes in floats", "{n} layers compute in floats", floats))
    return lines
