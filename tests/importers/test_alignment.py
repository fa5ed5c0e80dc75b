"""Weights at odd addresses of a mapped file are copied, and the file's pages are let go."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pytest
from lite_engine.mapped import aligned, map_file

COUNT = 1 << 20


@pytest.fixture
def view(tmp_path: Path) -> np.ndarray:
    """float32 numbers that begin at byte 3 of a mapped file."""
    file = tmp_path / "weights"
    file.write_bytes(b"abc" + np.arange(COUNT, dtype=np.float32).tobytes() + b"end")
    return np.frombuffer(map_file(file)[3 : 3 + 4 * COUNT], np.float32)


def _resident(path: str) -> int:
    """kB of a mapped file that lie in this process's memory (proc(5), smaps)."""
    smaps = Path("/proc/self/smaps").read_text().splitlines()
    at = next(i for i, line in enumerate(smaps) if line.endswith(path))
    return next(int(line.split()[1]) for line in smaps[at:] if line.startswith("Rss:"))


def test_a_copy_of_the_same_numbers(view: np.ndarray) -> None:
    made = aligned(view)
    assert made.flags.aligned and not view.flags.aligned
    np.testing.assert_array_equal(made, np.arange(COUNT, dtype=np.float32))
    np.testing.assert_array_equal(view, made)  # read from the file again


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="no proc file system here")
@pytest.mark.skipif(not hasattr(mmap, "MADV_DONTNEED"), reason="no madvise here")
def test_its_pages_are_released(view: np.ndarray, tmp_path: Path) -> None:
    assert view.sum() > 0  # every page was read
    before = _resident(str(tmp_path / "weights"))
    assert before >= 4 * COUNT // 1024
    made = aligned(view)
    assert _resident(str(tmp_path / "weights")) <= 64  # the first and the last page stay
    assert made[-1] == COUNT - 1


def test_what_is_aligned_stays_a_view() -> None:
    array = np.arange(4, dtype=np.float32)
    assert aligned(array) is array


def test_bytes_of_no_mapping() -> None:
    made = aligned(np.frombuffer(b"x" + np.float32(7).tobytes(), np.float32, offset=1))
    assert made.flags.aligned and made.tolist() == [7]
