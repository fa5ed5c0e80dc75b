"""Programs of one process that read the same arrays on a device make constants of them once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from pathlib import Path

import pytest

from tests.native.opencl.sharing import SIZES, Sizes, output

pytestmark = [pytest.mark.opencl, pytest.mark.cpu]
#: Bytes of the smallest of the network's weights.
FEWEST = 8192


def alone(size: int) -> bytes:
    return output(Sizes().load(size), size)


def test_other_sizes_give_the_same_bits() -> None:
    """Beside each other, and after the one that made the constants has gone."""
    wanted = {size: alone(size) for size in SIZES}
    for first, second in permutations(SIZES, 2):
        sizes = Sizes()
        maker = sizes.load(first)
        assert output(maker, first) == wanted[first]
        user = sizes.load(second)
        assert output(user, second) == wanted[second]
        assert output(maker, first) == wanted[first]
        del maker
        assert output(user, second) == wanted[second]
        last = sizes.load(first)
        del user
        assert output(last, first) == wanted[first]


def test_an_array_written_to_in_between_is_another_constant() -> None:
    sizes, (size, *_) = Sizes(), SIZES
    program = sizes.load(size)
    before = output(program, size)
    for blob in sizes.table.blobs:
        if blob.nbytes >= FEWEST:
            blob *= 0.5
    after = output(sizes.load(size), size)
    assert after != before and output(program, size) == before
    del program
    assert output(sizes.load(size), size) == after


def test_many_threads_load_and_run() -> None:
    wanted, sizes = {size: alone(size) for size in SIZES}, Sizes()

    def turn(number: int) -> bool:
        size = SIZES[number % len(SIZES)]
        return output(sizes.load(size), size) == wanted[size]

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(turn, range(12)))


def test_buffers_are_made_once_in_one_context(
    failing_driver: str, against: Callable[[str, Path, str], str], tmp_path: Path
) -> None:
    """So are those that matrix units are tried with. Until a device fails: who comes then gets a
    context of its own."""
    driver = against("counting_driver.c", tmp_path / "libcounting.so", failing_driver)
    done = subprocess.run(
        [sys.executable, "-m", "tests.native.opencl.sharing", driver],
        env=os.environ | {"COUNTS": str(tmp_path / "counts")},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["same"] and "CL_INVALID_COMMAND_QUEUE" in found["refused"]
    context, made = [], []
    for rows in found["asked"]:
        context.append(rows[-1][0])  # opening a device tries it in contexts that it leaves
        mine = [r for r in rows if r[0] == context[-1]]
        made.append(sum(int(r[2]) and int(r[1]) >= FEWEST for r in mine))
    first, second, third, after_failure, *_ = made
    assert first >= 3 and second == third == 0 and after_failure == first
    assert context[0] == context[1] == context[2] != context[3]
