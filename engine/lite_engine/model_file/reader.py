"""`.lite` → Model. Every offset, size, count and index is checked before use."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from lite_messages import tr

from ..errors import LiteError, ModelFormatError
from ..files import head
from ..ir import Entry, Journal
from ._container import MAGIC, read_container
from .layers import FLOATS, PLACES
from .model import Model
from .needs import from_bytes
from .precision import PRECISIONS, TARGETS

if TYPE_CHECKING:
    from ..ir import Graph


def is_lite(path: Path) -> bool:
    return path.is_file() and head(path, len(MAGIC)) == MAGIC


def read_model(path: Path) -> Model:
    """Reads and checks a whole file. Raises ModelFormatError, VersionError."""
    model = open_file(path)
    model.all_graphs()  # reading them is the check
    return model


def open_file(path: Path) -> Model:
    """A file's Model; its graphs are read when they are asked for. Constants are views of the
    mapped file. Raises ModelFormatError, VersionError; reading a graph, ModelFormatError."""
    sections = read_container(path)
    missing = [tag for tag in ("META", "GRAPH", "WINDEX", "WEIGHTS") if tag not in sections]
    if missing:
        raise ModelFormatError(
            tr("section {missing} is missing", missing=missing[0]),
            where=path,
            fix=tr("convert the model again"),
        )
    with _damage_named(path):
        meta = _json(sections["META"])
        model = _model(meta, lambda: _graph(path, sections, "GRAPH"))
        for precision, tag in meta.get("graphs", {}).items():
            if precision not in PRECISIONS or tag not in sections:
                raise ModelFormatError(
                    tr("the graph for {precision!r} is missing", precision=precision)
                )
        model.graphs = _Graphs(path, sections, meta.get("graphs", {}))
        if "NEEDS" in sections:
            model.needs = from_bytes(bytes(sections["NEEDS"]))
    model.path = path
    model.needs.check_engine(str(path))
    return model


class _Graphs(Mapping[str, "Graph"]):
    """The graphs of single precisions, each read on first use."""

    def __init__(self, path: Path, sections: Mapping[str, memoryview], tags: Mapping[str, str]):
        self._path, self._sections, self._tags = path, sections, dict(tags)
        self._read: dict[str, Graph] = {}

    def __getitem__(self, precision: str) -> Graph:
        if precision not in self._read:
            self._read[precision] = _graph(self._path, self._sections, self._tags[precision])
        return self._read[precision]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tags)

    def __len__(self) -> int:
        return len(self._tags)


def _graph(path: Path, sections: Mapping[str, memoryview], tag: str) -> Graph:
    from ..ir import from_text, verify

    with _damage_named(path):
        data = _json(sections[tag])
        arrays = _arrays(data["arrays"], sections["WINDEX"], sections["WEIGHTS"])
        graph = from_text(data["text"], arrays)
        graph.metadata = dict(data["metadata"])
        verify(graph, "reading")
        return graph


@contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    """Whatever goes wrong with hostile bytes becomes a ModelFormatError that names the file."""
    try:
        yield
    except LiteError as error:
        raise ModelFormatError.of(error, where=path) from None
    except (AttributeError, KeyError, IndexError, TypeError, ValueError, RecursionError) as error:
        raise ModelFormatError(
            tr("damaged ({kind}: {error})", kind=type(error).__name__, error=error),
            where=path,
            fix=tr("convert the model again"),
        ) from None


def _model(meta: dict[str, Any], graph: Callable[[], Graph]) -> Model:
    bad = [t for t in meta["targets"] if t not in TARGETS]
    bad += [p for p in meta["precisions"].values() if p not in PRECISIONS]
    if bad:
        raise ModelFormatError(tr("target or precision {bad!r} is not known", bad=bad[0]))
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
        overrides={t: _words(v) for t, v in meta.get("overrides", {}).items()},
    )


def _words(layers: Mapping[str, str]) -> dict[str, str]:
    """Choices for layers. Raises ModelFormatError for what no engine of this version wrote."""
    for word in layers.values():
        if word not in (*PLACES, *FLOATS):
            raise ModelFormatError(tr("a layer is set to {word!r}, which is not known", word=word))
    return dict(layers)


def _json(data: memoryview) -> dict[str, Any]:
    value = json.loads(bytes(data).decode("utf-8"))
    if not isinstance(value, dict):
        raise ModelFormatError(tr("a section is not a JSON object"))
    return value


def _arrays(table: list[Any], index: memoryview, weights: memoryview) -> list[np.ndarray]:
    if len(index) % 16:
        raise ModelFormatError(tr("weight index is damaged"))
    from ..ir import DType

    rows = np.frombuffer(index, "<u8").reshape(-1, 2)
    arrays = []
    for entry in table:
        dtype, shape = DType(entry["dtype"]), [int(d) for d in entry["shape"]]
        weight = int(entry["weight"])
        if not 0 <= weight < len(rows) or any(d < 0 for d in shape):
            raise ModelFormatError(tr("a constant refers to no weight"))
        offset, size = int(rows[weight, 0]), int(rows[weight, 1])
        if offset + size > len(weights) or size != math.prod(shape) * dtype.itemsize:
            raise ModelFormatError(tr("a weight lies outside the file or has the wrong size"))
        arrays.append(np.frombuffer(weights[offset : offset + size], dtype.np).reshape(shape))
    return arrays
