"""Every file operation of every verb that writes fails once: the old file or the new one is whole,
nothing stays behind, and the message names the person's path."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from .campaign import KINDS, Server, Verb, cases, compiled_shim

pytestmark = pytest.mark.cpu
SAMPLES = "digits_held_back.npz"
#: What must have happened before a call.
FIRST = {
    "tag": "profile digits.onnx --backend reference --runs 1 --warmup 0",
    "remove": "devices add board ssh://me@board",
}
#: Short names: what a person gives is looked for in messages.
CALLS = {
    "convert": "convert digits.onnx -o out/m.lite --targets x86",
    "opt": "opt --model_file digits.onnx --optimize_out out/b",
    "quantize": f"quantize digits.onnx -o out/q.lite --calibration {SAMPLES} --samples 2 "
    "--method minmax --targets x86 --resume out/q.npz --analyze out/a.json",
    "run": "run digits.onnx --input digits.png --backend reference --output out/r.npz "
    "--json out/r.json",
    "profile": "profile digits.onnx --backend x86 --runs 1 --warmup 0 --csv out/p.csv "
    "--trace out/t.json --netron out/n.json --json out/p.json",
    "compare": "compare digits.onnx --backends reference,x86 --no-isolated --json out/c.json",
    "info": "info digits.onnx --json out/i.json",
    "edit": "edit digits.onnx -o out/d.onnx --batch 2 --json out/d.json",
    "export": "export digits.onnx -o out/e --target x86 --no-report",
    "devices": "devices add board ssh://me@board",
    "evaluate": f"evaluate digits.onnx --data {SAMPLES} --limit 2 --backend reference "
    "--predictions out/v.json --json out/e.json",
    "tag": "runs tag 1 mine",
    "remove": "devices remove board",
    "report": "report digits.onnx -o out/r.html --backends reference --runs 1",
}


@pytest.fixture(scope="module")
def server(root: Path, tmp_path_factory) -> Iterator[Server]:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc; sudo apt-get install gcc")
    made = Server(compiled_shim(tmp_path_factory.mktemp("shim")), root)
    yield made
    made.close()


def prepared(name: str, old: bool, server: Server, root: Path, tmp_path: Path) -> Verb:
    inputs = tmp_path / "inputs"
    (inputs / "out").mkdir(parents=True)
    for file in ("digits.onnx", "digits.png", SAMPLES):
        shutil.copy(root / "notebooks" / "models" / file, inputs)
    place, over = tmp_path / "place", old and name not in ("devices", *FIRST)
    verb = Verb(CALLS[name], inputs, place, over, name == "profile", FIRST.get(name, ""))
    verb.prepare(server)
    assert verb.operations > 4, "the shim sees the files"
    return verb


@pytest.mark.parametrize("name, every", [("convert", 19), ("run", 13), ("devices", 5)])
def test_some_faults(name: str, every: int, server, root, tmp_path) -> None:
    verb = prepared(name, True, server, root, tmp_path)
    failed = Counter(verb.check(server, n, kind) for n, kind in cases(verb, KINDS, every))
    assert failed["open"] and sum(failed.values()) > failed["open"] + failed[""], failed


@pytest.mark.hours
@pytest.mark.parametrize("old", [False, True], ids=["fresh", "over"])
@pytest.mark.parametrize("name", CALLS)
def test_every_fault(name: str, old: bool, server, root, tmp_path, capsys) -> None:
    verb = prepared(name, old, server, root, tmp_path)
    all_cases = cases(verb, KINDS)
    failed = Counter(verb.check(server, n, kind) for n, kind in all_cases)
    done = failed.total() - failed.pop("", 0)
    with capsys.disabled():
        print(f"\n{name}: {verb.operations} operations, {done} faults, {dict(failed)}")
