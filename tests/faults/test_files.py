"""Every file operation of every verb that writes fails once: the old file or the new one is whole,
nothing stays behind, and the message names the person's path."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.workbench.hub import serving

from .calls import CALLS, SAMPLES
from .campaign import KINDS, Server, Verb, cases, compiled_shim

pytestmark = pytest.mark.cpu


@pytest.fixture(scope="module")
def server(root: Path, tmp_path_factory) -> Iterator[Server]:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc; sudo apt-get install gcc")
    with serving() as (_, address):
        made = Server(compiled_shim(tmp_path_factory.mktemp("shim")), root, address)
        yield made
        made.close()


def prepared(name: str, old: bool, server: Server, root: Path, tmp_path: Path) -> Verb:
    inputs, call = tmp_path / "inputs", CALLS[name]
    (inputs / "out").mkdir(parents=True)
    for file in ("digits.onnx", "digits.png", SAMPLES, "ocr.onnx", "ocr_total.png"):
        shutil.copy(root / "notebooks" / "models" / file, inputs)
    place = tmp_path / "place"
    verb = Verb(call.words, inputs, place, old and call.over, call.warm, call.first)
    verb.prepare(server)
    assert verb.operations > 1, "the shim sees the files"
    return verb


@pytest.mark.parametrize("name, every", [("convert", 19), ("run", 13), ("devices", 5)])
def test_some_faults(name: str, every: int, server, root, tmp_path) -> None:
    verb = prepared(name, True, server, root, tmp_path)
    made = verb.campaign(server, cases(verb, KINDS, every))
    assert not made.findings, made.findings
    assert made.failed["open"] and made.failed.total() > made.failed["open"], made.failed


def whole_campaign(name: str, old: bool, kinds: Iterable[str], server, root, tmp_path) -> str:
    if name == "export_web" and not (root / "engine/lite_engine/_native/bin/wasm32").is_dir():
        pytest.skip("no WebAssembly runtime; run `make native-wasm`")
    verb = prepared(name, old, server, root, tmp_path)
    made = verb.campaign(server, cases(verb, kinds))
    assert not made.findings, made.findings
    return (
        f"\n{name}: {made.operations} operations, {made.failed.total()} faults, {dict(made.failed)}"
    )


@pytest.mark.hours
@pytest.mark.parametrize("name", CALLS)
def test_a_full_disk_and_a_kill(name: str, server, root, tmp_path, capsys) -> None:
    """At every operation, over the files of an earlier run: a quarter of `test_every_fault`."""
    said = whole_campaign(name, True, ("ENOSPC", "killed"), server, root, tmp_path)
    with capsys.disabled():
        print(said)


@pytest.mark.hours
@pytest.mark.parametrize("old", [False, True], ids=["fresh", "over"])
@pytest.mark.parametrize("name", CALLS)
def test_every_fault(name: str, old: bool, server, root, tmp_path, capsys) -> None:
    if old and not CALLS[name].over:
        pytest.skip("it has no files of its own to write over")
    said = whole_campaign(name, old, KINDS, server, root, tmp_path)
    with capsys.disabled():
        print(said)
