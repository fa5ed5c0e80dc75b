"""Programs with an OpenCL part whose fields are changed one by one: sizes, places, constants,
images, grids, groups, arguments, options and kernels, as somebody would who knows the format
(`native_plan.py`)."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

EDGES = (0, 1, 2, 3, 4, 7, 8, 16, 64, 255, 4096, 65536, 2**31 - 1, 2**31, 2**32 - 1)


@dataclass(frozen=True)
class Fields:
    """Byte offsets of a plan's u32 fields, by what they are, and where its strings lie."""

    words: dict[str, list[int]]
    strings: tuple[int, int]

    @classmethod
    def of(cls, plan: bytes) -> Fields:
        columns = struct.unpack_from("<12I", plan, 12)
        (_, _, strings, texts, buffers, places, constants, scratch, images, launches, steps, _) = (
            columns
        )
        (version,) = struct.unpack_from("<I", plan, 4)
        end = 64 if version > 2 else 60
        (ways,) = struct.unpack_from("<I", plan, 60) if version > 2 else (0,)
        at = end + strings + 32 * texts
        words: dict[str, list[int]] = {"header": list(range(12, end, 4))}
        words["buffers"] = [at + 8 * i for i in range(buffers)]
        at += 8 * buffers
        words["places"] = list(range(at, at + 8 * places, 4))
        at += 8 * places
        words["constants"] = []
        for _ in range(constants):
            rank, operations = plan[at + 5], plan[at + 6]
            words["constants"] += [at, *range(at + 8, at + 8 + 4 * rank, 4)]
            at += 8 + 4 * rank
            for _ in range(operations):
                count = plan[at + 1]
                words["constants"] += list(range(at + 4, at + 4 + 4 * count, 4))
                at += 4 + 4 * count
        words["scratch"] = [at + 8 * i for i in range(scratch)]
        at += 8 * scratch
        words["images"] = [at + 16 * i + 4 * k for i in range(images) for k in (0, 1, 3)]
        at += 16 * images
        words |= {"launch": [], "grid": [], "arguments": []}
        for _ in range(launches):
            (count,) = struct.unpack_from("<I", plan, at + 40)
            words["launch"] += [at, at + 4, at + 8, at + 12]
            words["grid"] += list(range(at + 16, at + 40, 4))
            values = at + 44 + (count + 3) // 4 * 4
            words["arguments"] += list(range(values, values + 4 * count, 4))
            at = values + 4 * count
        words["steps"] = list(range(at, at + 24 * steps, 4))
        at += 24 * steps
        words["ways"] = list(range(at, at + 20 * ways, 4))
        return cls({k: v for k, v in words.items() if v}, (end, strings))


def mutants(plan: bytes, seed: int, count: int) -> Iterator[bytes]:
    """`count` copies of the plan with one to three fields changed, mostly arguments and grids."""
    fields, rng = Fields.of(plan), random.Random(seed)
    kinds = [k for k in fields.words for _ in range({"arguments": 8, "grid": 3}.get(k, 1))]
    for _ in range(count):
        changed = bytearray(plan)
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            kind = rng.choice([*kinds, "option"])
            if kind == "option":
                changed = _option(changed, fields, rng)
            else:
                _word(changed, fields.words[kind], rng)
        yield bytes(changed)


def _word(plan: bytearray, places: list[int], rng: random.Random) -> None:
    at = rng.choice(places)
    (value,) = struct.unpack_from("<I", plan, at)
    other = struct.unpack_from("<I", plan, rng.choice(places))[0]
    ways = (value + rng.choice((-4, -2, -1, 1, 2, 4)), rng.choice(EDGES), other, value * 2,
            value // 2, value ^ 1 << rng.randrange(32))  # fmt: skip
    struct.pack_into("<I", plan, at, rng.choice(ways) % 2**32)


def _option(plan: bytearray, fields: Fields, rng: random.Random) -> bytearray:
    """Another number of the same length in an option, or another option's letter."""
    first, size = fields.strings
    if not size:
        return plan
    text = bytes(plan[first : first + size])
    numbers = list(re.finditer(rb"#define \w+ (\d+)(?=[\n\0])", text))
    if numbers and rng.random() < 0.7:
        found = rng.choice(numbers)
        digits = found[1]
        new = str(rng.randrange(10 ** len(digits))).zfill(len(digits)).encode()
        plan[first + found.start(1) : first + found.end(1)] = new
    else:
        plan[first + rng.randrange(size)] = rng.choice(b"ABEHNTVW01248 \n\0")
    return plan
