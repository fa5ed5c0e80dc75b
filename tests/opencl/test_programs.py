"""The cache of compiled kernels: whatever happens to its files, the numbers are right."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from lite_engine.backends.opencl import binary_cache, discover
from lite_engine.backends.opencl.binary_cache import BinaryCache, packed, unpacked
from lite_engine.backends.opencl.device import choose
from lite_engine.backends.opencl.programs import driver_keeps

from tests.opencl.cached_programs import in_a_process
from tests.opencl.drivers import faulty_driver

KEY = b"platform\0device\0version\0driver\0options\0digest"
Damage = Callable[[Sequence[Path], random.Random], None]


def truncated(files: Sequence[Path], rng: random.Random) -> None:
    for file in files:
        whole = file.read_bytes()
        file.write_bytes(whole[: rng.randrange(len(whole))])


def flipped(files: Sequence[Path], rng: random.Random) -> None:
    for file in files:
        data = bytearray(file.read_bytes())
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        file.write_bytes(data)


def swapped(files: Sequence[Path], rng: random.Random) -> None:
    """Each holds what the next one held."""
    contents = [f.read_bytes() for f in files]
    for file, content in zip(files, contents[1:] + contents[:1]):
        file.write_bytes(content)


def foreign(files: Sequence[Path], rng: random.Random) -> None:
    """Other files, a binary without header, another version's entry, another device's entry."""
    for number, file in enumerate(files):
        _, key, binary = parts(file.read_bytes())
        kinds = [
            rng.randbytes(rng.randrange(1, 9999)),
            b"\x7fELF" + rng.randbytes(999),
            binary,
            packed(key.replace(b"\0", b" of yesterday\0", 1), binary),
            packed(key, binary).replace(b"LITEKRNL\1", b"LITEKRNL\2", 1),
        ]
        file.write_bytes(kinds[number % len(kinds)])


def emptied(files: Sequence[Path], rng: random.Random) -> None:
    for file in files:
        file.write_bytes(b"")


DAMAGES = (truncated, flipped, swapped, foreign, emptied)


def parts(entry: bytes) -> tuple[bytes, bytes, bytes]:
    """Header, key and binary, by the sizes in the header."""
    size = int.from_bytes(entry[12:16], "little")
    return entry[:56], entry[56 : 56 + size], entry[56 + size :]


def test_an_entry_is_what_was_stored() -> None:
    binary = bytes(range(256)) * 9
    entry = packed(KEY, binary)
    assert unpacked(entry, KEY) == binary
    assert parts(entry)[1:] == (KEY, binary)


def test_no_damage_goes_unseen() -> None:
    """Every length, every bit."""
    entry = packed(KEY, b"binary " * 30)
    for length in range(len(entry)):
        with pytest.raises(ValueError):
            unpacked(entry[:length], KEY)
    for bit in range(8 * len(entry)):
        data = bytearray(entry)
        data[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ValueError):
            unpacked(bytes(data), KEY)
    with pytest.raises(ValueError, match="bytes instead of"):
        unpacked(entry + b"\0", KEY)
    with pytest.raises(ValueError, match="another program, device or driver"):
        unpacked(entry, KEY.replace(b"driver", b"DRIVER"))


@pytest.mark.parametrize("place", ["folder", "pipe", "huge"])
def test_what_is_no_file_of_ours_is_refused(place: str, tmp_path: Path, caplog, monkeypatch):
    import os

    monkeypatch.setattr(BinaryCache, "_warned", False)
    monkeypatch.setattr(binary_cache, "MOST_BYTES", 1000)
    cache = BinaryCache(tmp_path, ("platform", "device"))
    key = cache.key(["-w"], "source")
    if place == "folder":
        cache.path(key).mkdir()
    elif place == "pipe":
        os.mkfifo(cache.path(key))
    else:
        cache.path(key).write_bytes(b"x" * 1001)
    assert cache.load(key) is None
    (record,) = caplog.records
    assert "built again" in record.getMessage()
    cache.store(key, b"binary")
    assert cache.load(key) == (None if place == "folder" else b"binary")


@pytest.mark.opencl
def test_a_few_damaged_entries_recover(tmp_path: Path) -> None:
    """One of each kind; what is not damaged is not compiled."""
    recover(tmp_path, DAMAGES, each=1, spared=2)


@pytest.mark.opencl
@pytest.mark.hours
@pytest.mark.parametrize("damage", DAMAGES)
def test_200_damaged_entries_recover(damage: Damage, tmp_path: Path) -> None:
    """40 of each kind."""
    recover(tmp_path, [damage], each=40, spared=0)


def recover(folder: Path, damages: Sequence[Damage], each: int, spared: int) -> None:
    damaged = each * len(damages)
    count = damaged + spared
    first, said = in_a_process(folder, count)
    assert first == {"right": count, "compiled": count} and not said
    assert not list((folder / "opencl").glob("driver-*"))  # nothing was loaded: no trial
    files = sorted((folder / "opencl").glob("*.bin"))
    assert len(files) == count
    rng = random.Random(7)
    at = 0
    for damage in damages:
        # What is swapped needs a second one.
        damage(files[at : at + max(each, 2 if damage is swapped else 1)], rng)
        at += each
    second, said = in_a_process(folder, count)
    assert second["right"] == count
    assert damaged <= second["compiled"] <= damaged + spared
    assert len(said) == 1 and "damaged compiled kernels are built again" in said[0], said
    third, said = in_a_process(folder, count)
    assert third == {"right": count, "compiled": 0} and not said


FAULTS = {
    "crash": ("abort()", "crashed (SIGABRT)"),
    "null": ("*(volatile int *)0 = 1", "crashed (SIGSEGV)"),
    "hang": ("for (;;) sleep(9)", "hung for 5.0 s"),
}


@pytest.mark.opencl
@pytest.mark.parametrize(
    "fault", ["crash", *(pytest.param(name, marks=pytest.mark.hours) for name in ("null", "hang"))]
)
def test_a_driver_that_breaks_on_loading_is_found_once(fault: str, tmp_path: Path) -> None:
    code, reason = FAULTS[fault]
    own = next(a for a in discover.attempts() if a.good and a.found_by.endswith(".icd"))
    driver = faulty_driver(tmp_path / "libfaulty.so", own.candidate, code)
    variables = {"OCL_ICD_VENDORS": str(driver)}
    folder = tmp_path / "cache"
    first, said = in_a_process(folder, 2, "5", **variables)
    assert first == {"right": 2, "compiled": 2} and not said
    second, said = in_a_process(folder, 2, "5", **variables)
    assert second == {"right": 2, "compiled": 2}
    assert len(said) == 1 and reason in said[0], said
    (verdict,) = (folder / "opencl").glob("driver-*.json")
    assert json.loads(verdict.read_text())["loads"] is False
    third, said = in_a_process(folder, 2, "5", **variables)
    assert third == {"right": 2, "compiled": 2} and not said


@pytest.mark.opencl
def test_a_driver_that_keeps_kernels_itself_is_asked_for_none(tmp_path: Path) -> None:
    """PoCL's own cache is on: a binary of ours would cost it another compilation."""
    platform = choose().platform
    own = {"POCL_KERNEL_CACHE": "1", "POCL_CACHE_DIR": str(tmp_path / "driver")}
    kept = driver_keeps(platform)
    for _ in range(2):
        result, said = in_a_process(tmp_path, 2, **own)
        assert result["right"] == 2 and not said
    assert result["compiled"] == (2 if kept else 0)
    assert bool(list((tmp_path / "opencl").glob("*.bin"))) != kept


def test_which_drivers_keep_kernels_themselves(monkeypatch) -> None:
    monkeypatch.delenv("POCL_KERNEL_CACHE", raising=False)
    assert driver_keeps("Portable Computing Language") and not driver_keeps("NVIDIA CUDA")
    monkeypatch.setenv("POCL_KERNEL_CACHE", "0")
    assert not driver_keeps("Portable Computing Language")


@pytest.mark.opencl
def test_a_verdict_is_made_once(tmp_path: Path) -> None:
    in_a_process(tmp_path, 1)
    in_a_process(tmp_path, 1)
    (verdict,) = (tmp_path / "opencl").glob("driver-*.json")
    assert json.loads(verdict.read_text())["loads"] is True
    made = verdict.stat().st_mtime_ns
    in_a_process(tmp_path, 1)
    assert verdict.stat().st_mtime_ns == made
    verdict.write_text("{ damaged")
    assert in_a_process(tmp_path, 1) == ({"right": 1, "compiled": 0}, [])
    assert json.loads(verdict.read_text())["loads"] is True
    shutil.rmtree(tmp_path / "opencl")
