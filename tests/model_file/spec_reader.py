"""A reader of `.lite` files written from docs/lite_format.md alone, without the engine."""

from __future__ import annotations

import json
import math
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np

MAGIC = bytes.fromhex("4C4954450D0A1A0A")
NUMPY = {"f32": "<f4", "f16": "<f2", "bf16": "<u2", "f64": "<f8", "i8": "i1", "u8": "u1",
         "i16": "<i2", "u16": "<u2", "i32": "<i4", "u32": "<u4", "i64": "<i8", "u64": "<u8",
         "bool": "?"}  # fmt: skip
WORD = r"""[^\s(){},=\[\]"]*[^\s(){},=\[\]":]"""
TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[(){},=\[\]]|:(?=\s)|' + WORD + ")")


def container(data: bytes) -> dict[str, bytes]:
    magic, version, count = struct.unpack_from("<8sII", data)
    assert magic == MAGIC and version == 1 and count <= 64
    sections = {}
    for i in range(count):
        raw, offset, size, crc, flags = struct.unpack_from("<8sQQII", data, 16 + 32 * i)
        name = raw.rstrip(b"\0").decode("ascii")
        assert name not in sections and offset % 64 == 0 and offset >= 16 + 32 * count
        assert offset + size <= len(data) and flags in (0, 1)
        body = data[offset : offset + size]
        assert zlib.crc32(body) == crc
        if flags:
            assert name in ("META", "GRAPH") or name.startswith("GRAPH.")
            body = (stream := zlib.decompressobj()).decompress(body, 1 << 30)
            assert stream.eof
        sections[name] = body
    return sections


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs), "a key occurs twice"
    return dict(pairs)


def document(data: bytes, schema: Any) -> Any:
    jsonschema.validate(value := json.loads(data, object_pairs_hook=once), schema)
    return value


class Line:
    def __init__(self, text: str) -> None:
        self.rest = text

    def take(self, *wanted: str) -> str:
        match = TOKEN.match(self.rest)
        assert match and (not wanted or match[1] in wanted), (wanted, self.rest)
        self.rest = self.rest[match.end() :].lstrip()
        return match[1]

    def skip(self, token: str) -> bool:
        return self.rest.startswith(token) and bool(self.take(token))

    def name(self) -> str:
        token = self.take()
        return json.loads(token) if token[0] == '"' else token

    def json(self) -> Any:
        value, end = json.JSONDecoder().raw_decode(self.rest)
        self.rest = self.rest[end:].lstrip()
        return value

    def type(self) -> tuple[str, list[str] | None] | None:
        dtype = self.take()
        if dtype == "?":
            return None
        assert dtype in NUMPY
        self.take("[")
        dims = []
        while not self.rest.startswith("]"):
            dims.append(self.name())
            self.skip(",")
        self.take("]")
        return dtype, None if dims == ["*"] else dims

    def value(self) -> tuple[str, Any]:
        name = self.name()
        return name, self.type() if self.skip(":") else None


def graph(text: str, arrays: list[np.ndarray], outer: set[str]) -> dict[str, Any]:
    lines = [line.strip() for line in text.splitlines()]
    head = Line(lines[0])
    head.take("graph")
    made: dict[str, Any] = {"name": head.name(), "inputs": [], "constants": {}, "nodes": []}
    head.take("{")
    assert lines[-1] == "}" and not head.rest
    known, outputs = set(outer), []
    for text_line in lines[1:-1]:
        line = Line(text_line)
        word = line.take()
        if word == "input":
            made["inputs"].append(line.value())
            known.add(made["inputs"][-1][0])
        elif word == "const":
            name, (dtype, dims) = line.value()
            line.take("=")
            shape = [int(d) for d in dims]
            listed = not line.rest.startswith("@")
            array = line.json() if listed else arrays[int(line.take()[1:])]
            array = np.array(array, NUMPY[dtype]).reshape(shape) if listed else array
            assert list(array.shape) == shape and array.dtype == NUMPY[dtype] and name not in known
            made["constants"][name] = array
            known.add(name)
        elif word == "output":
            outputs.append(line.name())
        else:
            made["nodes"].append(node(json.loads(word), line, arrays, known))
        assert not line.rest, text_line
    assert set(outputs) <= known
    return {**made, "outputs": outputs}


def node(name: str, line: Line, arrays: list[np.ndarray], known: set[str]) -> dict[str, Any]:
    line.take(":")
    outputs = [line.value()[0]]
    while line.take(",", "=") == ",":
        outputs.append(line.value()[0])
    op, inputs, attributes = line.name(), [], {}
    line.take("(")
    while not line.rest.startswith(")"):
        quoted = line.rest.startswith('"')
        port = line.name()
        assert port in known or (port == "_" and not quoted), port
        inputs.append(port)
        line.skip(",")
    line.take(")")
    if line.rest.startswith("{"):
        while line.take("{", ",", "}") != "}":
            key = line.name()
            line.take("=")
            assert key not in attributes
            attributes[key] = attribute(line.json(), arrays, known)
    sources = line.json() if line.skip("from") else []
    assert not known & set(outputs)
    known.update(outputs)
    return dict(zip(("name", "op", "inputs", "outputs", "sources", "attributes"),
                    (name, op, inputs, outputs, sources, attributes)))  # fmt: skip


def attribute(value: Any, arrays: list[np.ndarray], known: set[str]) -> Any:
    if not isinstance(value, dict):
        return value
    assert set(value) in ({"graph"}, {"array", "shape", "data"}, {"dtype"}, {"bytes"})
    return graph(value["graph"], arrays, known) if "graph" in value else value


def program(data: bytes, weights: int) -> list[tuple[str, str, str]]:
    magic, version, _, size, tensors, steps, *ports, rows = struct.unpack_from("<4sIQ6I", data)
    assert magic == b"LPRG" and version in (1, 2) and rows <= weights
    at = 40 + 20 * (version - 1)
    assert version == 1 or 1 < struct.unpack_from("<I", data, 40)[0] <= 1 << 16
    strings = data[at : at + size]
    at += size + 4 * sum(ports)
    for _ in range(tensors):
        dtype, role, rank, turns, alias = struct.unpack_from("<4x4Bi", data, at)
        assert 1 <= dtype <= 13 and 1 <= role <= 4 and rank <= 8 and turns <= 2 * (version - 1)
        assert math.prod(struct.unpack_from(f"<{rank}q", data, at + 52)) <= 1 << 44
        at += 52 + 8 * rank + 8 * (version == 2 and role == 4 and alias == -1)
    found = []
    for _ in range(steps):
        *names, ins, outs, attributes = struct.unpack_from("<6I", data, at)
        found.append(tuple(strings[n : strings.index(b"\0", n)].decode() for n in names))
        at += 24 + 4 * (ins + outs)
        for _ in range(attributes):
            kind, count = struct.unpack_from("<4xII", data, at)
            at += 12 + count * {1: 8, 2: 8, 3: 1}[kind]
    assert at == len(data), "a program ends with its last step"
    return found


def read(path: Path, page: str) -> dict[str, Any]:
    sections = container(path.read_bytes())
    shown = re.findall(r"^```json\n(.*?)^```", page, re.M | re.S)  # the schemas of the page
    meta = document(sections["META"], json.loads(shown[0]))
    index = list(struct.iter_unpack("<QQ", sections["WINDEX"]))
    weights = [sections["WEIGHTS"][a : a + n] for a, n in index]
    assert all(at % 64 == 0 and len(w) == size for (at, size), w in zip(index, weights))
    graphs = {}
    for tag in ["GRAPH", *meta.get("graphs", {}).values()]:
        held = document(sections[tag], json.loads(shown[1]))
        arrays = [np.frombuffer(weights[a["weight"]], NUMPY[a["dtype"]]).reshape(a["shape"])
                  for a in held["arrays"]]  # fmt: skip
        graphs[tag] = graph(held["text"], arrays, set())
    parts = {"": sections} | {t: container(d) for t, d in sections.items() if t[:5] == "SIZE."}
    programs = {part + tag: program(data, len(weights)) for part, held in parts.items()
                for tag, data in held.items() if tag.startswith(("PROG.", "HALF."))}  # fmt: skip
    return {"meta": meta, "graphs": graphs, "programs": programs, "weights": weights}
