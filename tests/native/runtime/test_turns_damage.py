"""Programs with turns that no plan makes, but a file may hold, are refused."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from lite_engine.backends.cpu import native
from lite_engine.errors import ModelFormatError
from lite_engine.plan import make_plan
from lite_engine.plan.program import WeightTable, encode

from .test_turns import BATCH, shuffled

pytestmark = pytest.mark.cpu
#: The first step of `shuffled` that takes turns, behind a change of layout.
FIRST = 1
KEPT, MOVING = 1, 2
#: Bytes of a header without strings, of version 2.
HEADER = 60


@pytest.fixture(autouse=True)
def small(monkeypatch) -> None:
    """Turns for small images too."""
    monkeypatch.setattr("lite_engine.plan.samples._CACHE_BYTES", 1 << 20)


def records(data: bytes) -> list[int]:
    """Where each tensor's record begins, and where the last one ends."""
    _, version, _, size, tensors, _, inputs, outputs, _ = struct.unpack_from("<4sIQ6I", data)
    assert version == 2
    found = [HEADER + size + 4 * (inputs + outputs)]
    for _ in range(tensors):
        at = found[-1]
        role, rank, (alias,) = data[at + 5], data[at + 6], struct.unpack_from("<i", data, at + 8)
        found.append(at + 52 + 8 * rank + 8 * (role == 4 and alias == -1))
    return found


def marked(data: bytes, turns: int) -> list[int]:
    """Records of tensors with these turns."""
    return [at for at in records(data)[:-1] if data[at + 7] == turns]


def with_turns(data: bytearray, at: int, turns: int) -> bytearray:
    data[at + 7] = turns
    return data


def resized(data: bytearray, at: int, batch: int) -> bytearray:
    struct.pack_into("<q", data, at + 52, batch)
    return data


def moved(data: bytearray, at: int, offset: int) -> bytearray:
    struct.pack_into("<Q", data, at + 16, offset)
    return data


def first_output(data: bytearray, tensor: int) -> bytearray:
    """Another tensor is the output; it gets the role of one."""
    size, _, _, inputs = struct.unpack_from("<16x4I", data)
    struct.pack_into("<I", data, HEADER + size + 4 * inputs, tensor)
    data[records(data)[tensor] + 5] = 2
    return data


def view_of_output(data: bytes) -> int:
    """The number of the tensor that moves over the output."""
    known = list(enumerate(records(data)[:-1]))
    (out,) = (i for i, at in known if data[at + 5] == 2 and not data[at + 7])
    over = {i: struct.unpack_from("<i", data, at + 8)[0] for i, at in known if data[at + 7] == 2}
    return next(i for i, of in over.items() if of == out)


def of_turns(data: bytearray, samples: int, first: int, end: int) -> bytearray:
    struct.pack_into("<3I", data, 40, samples, first, end)
    return data


def of_version(data: bytearray, version: int) -> bytearray:
    struct.pack_into("<I", data, 4, version)
    return data


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda d: moved(d, marked(d, KEPT)[0], 1 << 43), "out of memory"),
        (lambda d: moved(d, marked(d, KEPT)[0], 1 << 50), "kept outside the arena"),
        (lambda d: with_turns(d, marked(d, KEPT)[0], 3), "no samples to take turns"),
        (lambda d: with_turns(d, marked(d, KEPT)[0], MOVING), "moves over nothing"),
        (lambda d: with_turns(d, marked(d, KEPT)[0], 0), "take turns|lies outside"),
        (lambda d: with_turns(d, marked(d, MOVING)[-1], 0), "stands behind views"),
        (lambda d: with_turns(d, marked(d, MOVING)[0], KEPT), "lies outside"),
        (lambda d: resized(d, marked(d, MOVING)[-1], 6), "no samples to take turns"),
        (lambda d: resized(d, marked(d, MOVING)[-1], 1 << 40), "no samples to take turns"),
        (lambda d: resized(d, marked(d, KEPT)[0], 1), "no samples to take turns"),
        (lambda d: first_output(d, view_of_output(d)), "not a dense output tensor"),
        (lambda d: of_turns(d, 4, FIRST, 5), "no samples to take turns"),
        (lambda d: of_turns(d, BATCH, FIRST + 1, 5), "take turns on"),
        (lambda d: of_turns(d, BATCH, FIRST, FIRST + 2), "take turns on"),
        (lambda d: of_turns(d, BATCH, 3, 3), "do not take turns over 5 samples"),
        (lambda d: of_turns(d, BATCH, FIRST, 999), "do not take turns over 5 samples"),
        (lambda d: of_turns(d, 1, FIRST, 5), "do not take turns over 1 samples"),
        (lambda d: of_turns(d, (1 << 16) + 1, FIRST, 5), "do not take turns over 65537"),
        (lambda d: of_version(d, 1), "does not exist|truncated or damaged"),
        (lambda d: of_version(d, 3), "this runtime reads 1 to 2"),
    ],
)
@pytest.mark.parametrize("threads", [1, 8])
def test_damaged_programs_are_refused(change, message, threads) -> None:
    """With turns, and with all samples in one."""
    table = WeightTable()
    data = change(bytearray(encode(make_plan(shuffled(), "cpu"), table)))
    whole = "out of memory|outside the arena"  # where the offset of one sample says nothing
    if threads == 8 and message in ("out of memory",):
        native.NativeProgram(bytes(data), table.blobs, threads=threads)
        return
    with pytest.raises(ModelFormatError, match=message if threads == 1 else f"{message}|{whole}"):
        native.NativeProgram(bytes(data), table.blobs, threads=threads)


def test_a_program_of_version_1_has_no_turns() -> None:
    """Its records are without the second offset; turns are refused all the same."""
    plan = make_plan(shuffled(1), "cpu")
    table = WeightTable()
    data = bytearray(encode(plan, table))
    assert struct.unpack_from("<I", data, 4) == (1,)
    size, _, _, inputs, outputs = struct.unpack_from("<16x5I", data)
    data[40 + size + 4 * (inputs + outputs) + 7] = MOVING
    with pytest.raises(ModelFormatError, match="no samples to take turns"):
        native.NativeProgram(bytes(data), table.blobs)


class Written:
    """A program by hand, of version 2: what no plan has, but a file may."""

    def __init__(self, samples: int) -> None:
        self.samples = samples
        self.strings, self.tensors, self.steps = bytearray(), [], []

    def text(self, text: str) -> int:
        at = len(self.strings)
        self.strings += text.encode() + b"\0"
        return at

    def tensor(self, name, role, dims, pitch, turns=0, alias=-1, offset=0) -> int:
        record = struct.pack(
            f"<I4BiIQq4ii{len(dims)}q", self.text(name), 1, role, len(dims), turns, alias, 0,
            offset, pitch, 0, 0, 0, 0, 0, *dims,
        )  # fmt: skip
        self.tensors.append(record + (struct.pack("<Q", 0) if role == 4 and alias == -1 else b""))
        return len(self.tensors) - 1

    def step(self, op: str, x: int, y: int) -> None:
        names = self.text(op.lower()), self.text(op), self.text("f32_unary")
        self.steps.append(struct.pack("<6I2i", *names, 1, 1, 0, x, y))

    def bytes(self, inputs: list[int], outputs: list[int], arena: int) -> bytes:
        ports = struct.pack(f"<{len(inputs + outputs)}I", *inputs, *outputs)
        return b"LPRG" + struct.pack(
            "<IQ6I3IQ", 2, arena, len(self.strings), len(self.tensors), len(self.steps),
            len(inputs), len(outputs), 0, self.samples, 0, len(self.steps), arena,
        ) + bytes(self.strings) + ports + b"".join(self.tensors) + b"".join(self.steps)  # fmt: skip


@pytest.mark.parametrize("pitch", [8, 12])
def test_views_that_meet_in_a_later_turn_are_refused(pitch) -> None:
    """What a step reads and writes lie side by side in the first turn. Samples that are 16 and 24
    elements apart (pitch 8 and 12) meet in the second; with the same distance they never do."""
    w = Written(4)
    x, whole = w.tensor("x", 1, (4, 2, 8), 8), w.tensor("whole", 4, (512,), 512)
    y = w.tensor("y", 2, (4, 2, 8), 8)
    seen = w.tensor("x", 1, (4, 2, 8), 8, MOVING, x)
    read = w.tensor("read", 4, (4, 2, 8), 8, MOVING, whole, 4 * (64 if pitch == 8 else 24))
    made = w.tensor("made", 4, (4, 2, 8), pitch, MOVING, whole)
    last = w.tensor("y", 2, (4, 2, 8), 8, MOVING, y)
    for op, a, b in (("Relu", seen, read), ("Neg", read, made), ("Neg", made, last)):
        w.step(op, a, b)
    data = w.bytes([x], [y], 2048)
    if pitch == 12:
        with pytest.raises(ModelFormatError, match="'made' overwrites input 'read'"):
            native.NativeProgram(data, [], threads=1)
        return
    values = np.arange(64, dtype=np.float32).reshape(4, 2, 8) + 1
    for threads in (1, 2, 8):
        (got,) = native.NativeProgram(data, [], threads=threads).run([values])
        np.testing.assert_array_equal(got, values)
