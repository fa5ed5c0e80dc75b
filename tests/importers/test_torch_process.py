"""Code in a `.pt2` file runs in a process that may only compute and read.

A package named torch stands for the real one: it runs what the file holds, as an unpickler would.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest
from lite_engine import load
from lite_engine.confined import can_confine
from lite_engine.errors import ModelFormatError
from lite_engine.exporters.onnx import write_bytes

from tests.small_models import classifier

pytestmark = pytest.mark.cpu
PACKAGE = {
    "__init__.py": "from contextlib import nullcontext as no_grad\n",
    "onnx.py": """
def export(module, args, dynamo=False, verbose=True):
    return module
""",
    "export.py": """
import zipfile
class Program:
    graph_signature = "x -> y"
    def eval(self): pass
    def save(self, stream): stream.write(self.model)
def load(path):
    program = Program()
    with zipfile.ZipFile(path) as archive:
        program.model = archive.read("net/model.onnx")
        exec(archive.read("net/code.py"))
    return program
""",
}


@pytest.fixture
def torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it is imported here: neither its code nor the file's runs in this process."""
    for name, text in PACKAGE.items():
        file = tmp_path / "packages" / "torch" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.syspath_prepend(tmp_path / "packages")


def program(folder: Path, code: str) -> Path:
    path = folder / "net.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("net/models/model.json", "{}")
        archive.writestr("net/model.onnx", write_bytes(classifier()))
        archive.writestr("net/code.py", code)
    return path


def test_a_program_is_read_in_another_process(torch: None, tmp_path: Path) -> None:
    graph = load(program(tmp_path, "print('+ not the answer', flush=True)"))
    assert graph.name == "net" and graph.metadata["format"] == "pytorch"
    assert [v.name for v in graph.inputs] == [v.name for v in classifier().inputs]
    assert "torch" not in sys.modules


@pytest.mark.skipif(not can_confine(), reason="Linux on x86-64 and AArch64 confine")
@pytest.mark.parametrize(
    "code", ["open('taken', 'w').write('x')", "import subprocess; subprocess.run(['/bin/true'])"]
)
def test_code_in_it_does_nothing_else(
    code: str, torch: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = program(tmp_path, code)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelFormatError, match=r"torch cannot read this file: .*not permitted"):
        load(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.pt2", "packages"]


def test_an_end_without_an_answer_is_one_line(torch: None, tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match=r"net\.pt2: torch cannot read this file: 3"):
        load(program(tmp_path, "import os; os._exit(3)"))
