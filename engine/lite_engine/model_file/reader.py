"""`.lite` → Model. Every offset, size, count and index is checked before use."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np
from lite_messages import tr

from ..errors import LiteError, ModelFormatError, UsageError, VersionError
from ..files import LITE_MAGIC, head
from ..ir import Entry, Journal
from . import schema
from ._container import ALIGN, Sections, read_container
from .model import Model
from .needs import Needs, from_bytes
from .precision import PRECISIONS
from .scales import restore_scales

if TYPE_CHECKING:
    from ..ir import Graph, Node


def is_lite(path: Path) -> bool:
    try:
        return path.is_file() and head(path, len(LITE_MAGIC)) == LITE_MAGIC
    except OSError:  # a name that is too long: the importers say so
        return False


def read_model(path: Path) -> Model:
    """Reads and checks a whole file. Raises ModelFormatError, VersionError."""
    model = open_file(path)
    model.all_graphs()  # reading them is the check
    return model


def open_file(path: Path, data: memoryview | None = None) -> Model:
    """A file's Model, or that of `data`, which lies in a pipeline's file; its graphs are read when
    they are asked for. Constants are views of the mapped file. Raises ModelFormatError, UsageError
    for a pipeline's file; reading a graph, ModelFormatError."""
    sections = read_container(path, data)
    _check_kind(sections)
    missing = [tag for tag in ("META", "GRAPH", "WINDEX", "WEIGHTS") if tag not in sections]
    if missing:
        raise ModelFormatError(
            tr("section {missing} is missing", missing=missing[0]),
            where=path,
            fix=tr("convert the model again"),
        )
    needs = Needs()
    if "NEEDS" in sections:  # first: a file of a newer engine may have keys that this one refuses
        with _damage_named(sections, "NEEDS"):
            needs = from_bytes(bytes(sections["NEEDS"]))
        needs.check_engine(str(path))
    with _damage_named(sections, "META"):
        meta = schema.read(bytes(sections["META"]), schema.META, "META")
        model = _model(meta, lambda: _graph(sections, "GRAPH"))
        for precision, tag in meta.get("graphs", {}).items():
            if precision not in PRECISIONS or tag not in sections:
                raise ModelFormatError(
                    tr("the graph for {precision!r} is missing", precision=precision)
                )
        model.graphs = _Graphs(sections, meta.get("graphs", {}))
    # A part of a file has no path: it cannot be opened by one.
    model.path, model.needs = path if data is None else None, needs
    return model


def _check_kind(sections: Sections) -> None:
    """Raises UsageError for a pipeline's file."""
    if "PIPE" in sections and "GRAPH" not in sections:
        raise UsageError(
            tr("a pipeline of several models, not a single one"),
            where=sections.path,
            command=f"lite pipeline {quote(str(sections.path))} --image PHOTO",
        )


class _Graphs(Mapping[str, "Graph"]):
    """The graphs of single precisions, each read on first use."""

    def __init__(self, sections: Sections, tags: Mapping[str, str]):
        self._sections, self._tags = sections, dict(tags)
        self._read: dict[str, Graph] = {}

    def __getitem__(self, precision: str) -> Graph:
        if precision not in self._read:
            self._read[precision] = _graph(self._sections, self._tags[precision])
        return self._read[precision]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tags)

    def __len__(self) -> int:
        return len(self._tags)


def _graph(sections: Sections, tag: str) -> Graph:
    from ..ir import from_text, verify, walk

    with _damage_named(sections, tag):
        data = schema.read(bytes(sections[tag]), schema.GRAPH, tag)
        arrays = _arrays(data["arrays"], sections)
        graph = from_text(data["text"], arrays)
        graph.metadata = dict(data["metadata"])
        restore_scales(graph)
        verify(graph, "reading")
        walk(graph, _check_inputs)
        return graph


def _check_inputs(node: Node) -> None:
    """Raises VersionError for an input that this version would not read."""
    from ..ops import find_op

    op = find_op(node.op)
    if op is None or op.is_variadic:
        return
    count = max((i for i, v in enumerate(node.inputs, 1) if v is not None), default=0)
    if count > len(op.inputs):
        raise VersionError(
            tr(
                "{op} has {count} inputs where this version knows {known}: "
                "the file was made by a newer version",
                op=node.op,
                count=count,
                known=len(op.inputs),
            ),
            where=node.name,
            fix=tr("install a newer lite-workbench"),
            command="pip install -U lite-workbench",
        )


@contextmanager
def _damage_named(sections: Sections, tag: str) -> Iterator[None]:
    """Whatever is wrong with a section becomes a ModelFormatError that says where it lies."""
    place = sections.place(tag)
    try:
        yield
    except VersionError:
        raise
    except LiteError as error:
        own = str(sections.path) in str(error)  # it says which section
        raise (error if own else ModelFormatError.of(error, where=place)) from None
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise ModelFormatError(
            tr("cannot be read ({error})", error=error),
            where=place,
            fix=tr("convert the model again"),
        ) from None


def _model(meta: dict[str, Any], graph: Callable[[], Graph]) -> Model:
    journal = Journal()
    journal.passes.extend(meta["journal"]["passes"])
    for e in meta["journal"]["entries"]:
        journal.entries.append(
            Entry(e["rule"], e["action"], tuple(e["nodes"]), tuple(e["result"]), e["reason"])
        )
    return Model(
        graph,
        list(meta["targets"]),
        dict(meta["precisions"]),
        {k: dict(v) for k, v in meta["tuning"].items()},
        {
            **meta["metadata"],
            "notes": meta["notes"],
            "engine": meta["engine"],
            "padded": meta.get("padded", False),
        },
        journal,
        overrides=meta.get("overrides", {}),
    )


def _arrays(table: list[Any], sections: Sections) -> list[np.ndarray]:
    """The constants that the graph's text refers to. The schema has checked the table's types."""
    from ..ir import DType

    index, weights = sections["WINDEX"], sections["WEIGHTS"]
    if len(index) % 16:
        raise ModelFormatError(tr("not a multiple of 16 bytes"), where=sections.place("WINDEX"))
    rows = np.frombuffer(index, "<u8").reshape(-1, 2)
    arrays = []
    for number, entry in enumerate(table):
        dtype, shape, weight = DType(entry["dtype"]), entry["shape"], entry["weight"]
        if weight >= len(rows):
            raise ModelFormatError(
                tr("weight {weight} is not in WINDEX", weight=weight), where=f"arrays[{number}]"
            )
        offset, size = int(rows[weight, 0]), int(rows[weight, 1])
        if offset > len(weights) or size > len(weights) - offset or offset % ALIGN:
            raise ModelFormatError(
                tr(
                    "row {row} names bytes {first} to {last} of {size}",
                    row=weight,
                    first=offset,
                    last=offset + size,
                    size=len(weights),
                ),
                where=sections.place("WINDEX"),
            )
        if size != math.prod(shape) * dtype.itemsize:
            raise ModelFormatError(
                tr(
                    "weight {weight} has {size} bytes, which is not {dtype}{shape}",
                    weight=weight,
                    size=size,
                    dtype=dtype,
                    shape=shape,
                ),
                where=f"arrays[{number}]",
            )
        arrays.append(np.frombuffer(weights[offset : offset + size], dtype.np).reshape(shape))
    return arrays
