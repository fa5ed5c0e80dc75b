"""The wheel says what it holds: tag_wheel.py puts a bill of materials into it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from lite_engine._native import library_path, runner_path

pytestmark = pytest.mark.cpu
METADATA = """Metadata-Version: 2.4
Name: lite-workbench
Version: 0.1.0
License-Expression: Apache-2.0
Requires-Dist: numpy>=1.24
Requires-Dist: plotly>=6; extra == "lab"
"""
WHEEL = """Wheel-Version: 1.0
Generator: test
Root-Is-Purelib: false
Tag: py3-none-linux_x86_64
"""


def test_a_wheel_with_its_bill(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "lite_workbench-0.1.0"
    native = folder / "lite_engine" / "_native"
    (native / "bin").mkdir(parents=True)
    library = native / "liblite_runtime.so"
    library.write_bytes(library_path().read_bytes())
    (native / "bin" / "lite_run").write_bytes(runner_path().read_bytes())
    (native / "bin" / "lite_run").chmod(0o755)
    info = folder / "lite_workbench-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA)
    (info / "WHEEL").write_text(WHEEL)
    (info / "RECORD").write_text("")
    pack = [sys.executable, "-m", "wheel", "pack", "-d", tmp_path, folder]
    subprocess.run(pack, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    command = [sys.executable, root / "scripts" / "tag_wheel.py", wheel, tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    again = subprocess.run([*command[:-1], tmp_path / "again"], capture_output=True, text=True)
    first, second = (Path(d.stdout.strip()) for d in (done, again))
    assert first.name == second.name and first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(done.stdout.strip()) as made:
        bill = json.loads(made.read(f"{info.name}/sboms/lite-workbench.cdx.json"))
        assert made.getinfo("lite_engine/_native/bin/lite_run").external_attr >> 16 & 0o111
        record = made.read(f"{info.name}/RECORD").decode()
    assert "sboms/lite-workbench.cdx.json,sha256=" in record and "manylinux_2_" in done.stdout
    assert bill["bomFormat"] == "CycloneDX" and bill["metadata"]["component"]["version"] == "0.1.0"
    named = {c["name"]: c for c in bill["components"]}
    assert named["numpy"]["purl"] == "pkg:pypi/numpy" and "plotly" not in named
    assert named["lit-html"]["licenses"] == [{"license": {"id": "BSD-3-Clause"}}]
    digest = hashlib.sha256(library.read_bytes()).hexdigest()
    assert named["lite_engine/_native/liblite_runtime.so"]["hashes"][0]["content"] == digest
