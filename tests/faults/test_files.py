"""Every file operation of every verb that writes fails once: the old file or the new one is whole,
nothing stays behind, and the message names the person's path."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.workbench.hub import serving

from .calls import CALLS, SAMPLES
from .campaign import KINDS, Server, Verb, cases, compiled_shim

pytestmark = pytest.mark.cpu
#: Room for the files of all processes that test at the same time.
MOST_BYTES = 2 << 30


@pytest.fixture(scope="module")
def server(root: Path, tmp_path_factory) -> Iterator[Server]:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc; sudo apt-get install gcc")
    with serving() as (_, address):
        made = Server(compiled_shim(tmp_path_factory.mktemp("shim")), root, address)
        yield made
        made.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Iterator[Path]:
    """In memory where there is room: a disk would take most of the time."""
    memory = Path("/dev/shm")
    if not memory.is_dir() or shutil.disk_usage(memory).free < MOST_BYTES:
        yield tmp_path_factory.mktemp("faults")
        return
    with TemporaryDirectory(prefix="lite-faults-", dir=memory) as made:
        yield Path(made)


@pytest.fixture(scope="module")
def prepared(server: Server, root: Path, folder: Path) -> Callable[[str, bool], Verb]:
    """A verb whose call was made without a fault, by name and whether over its earlier files."""
    inputs = folder / "inputs"
    (inputs / "out").mkdir(parents=True)
    for file in ("digits.onnx", "digits.png", SAMPLES, "ocr.onnx", "ocr_total.png"):
        shutil.copy(root / "notebooks" / "models" / file, inputs)

    @lru_cache(maxsize=1)  # parts that follow each other share it
    def made(name: str, old: bool) -> Verb:
        call = CALLS[name]
        verb = Verb(call.words, inputs, folder / "place", old and call.over, call.warm, call.first)
        verb.prepare(server)
        assert verb.operations > 1, "the shim sees the files"
        return verb

    return made


@pytest.mark.parametrize("name, every", [("convert", 19), ("run", 13), ("devices", 5)])
def test_some_faults(name: str, every: int, prepared, server) -> None:
    verb = prepared(name, True)
    made = verb.campaign(server, cases(verb, KINDS, every))
    assert not made.findings, made.findings
    assert made.failed["open"] and made.failed.total() > made.failed["open"], made.failed


def whole_campaign(
    name: str, part: int, old: bool, kinds: Iterable[str], prepared, server, root
) -> None:
    """A part has each n-th of the cases, so that a campaign that is stopped has said much."""
    if name == "export_web" and not (root / "engine/lite_engine/_native/bin/wasm32").is_dir():
        pytest.skip("no WebAssembly runtime; run `make native-wasm`")
    verb = prepared(name, old)
    made = verb.campaign(server, cases(verb, kinds)[part :: CALLS[name].parts])
    assert not made.findings, made.findings
    faults, counts = made.failed.total(), dict(made.failed)
    print(f"{name}: {made.operations} operations, {faults} faults, {counts}")


PARTS = [(name, part) for name, call in CALLS.items() for part in range(call.parts)]


@pytest.mark.hours
@pytest.mark.parametrize("name, part", PARTS)
def test_a_full_disk_and_a_kill(name: str, part: int, prepared, server, root) -> None:
    """At every operation, over the files of an earlier run: a quarter of `test_every_fault`. `-rP`
    prints the counts."""
    whole_campaign(name, part, True, ("ENOSPC", "killed"), prepared, server, root)


@pytest.mark.hours
@pytest.mark.parametrize("old", [False, True], ids=["fresh", "over"])
@pytest.mark.parametrize("name, part", PARTS)
def test_every_fault(name: str, part: int, old: bool, prepared, server, root) -> None:
    if old and not CALLS[name].over:
        pytest.skip("it has no files of its own to write over")
    whole_campaign(name, part, old, KINDS, prepared, server, root)
