"""benchmarks/kernels/layers.cc stands on the runtime's insides: it must follow them."""

from __future__ import annotations

import shutil
import subprocess

import pytest


def test_the_program_that_times_layers_compiles(root):
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler; sudo apt-get install g++")
    native = root / "engine" / "native"
    source = root / "benchmarks" / "kernels" / "layers.cc"
    flags = ["-std=gnu++17", "-fsyntax-only", f"-I{native / 'include'}", f"-I{native / 'src'}"]
    made = subprocess.run([compiler, *flags, source], capture_output=True, text=True, timeout=60)
    assert made.returncode == 0, made.stderr
