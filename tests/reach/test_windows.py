"""Windows' runner in Wine: every kernel case, whole networks, names in any language, errors.

Its numbers are those of the same compiler's build for Linux bit by bit (`scripts/native.sh
x86_64-linux-musl`); another compiler contracts products and sums elsewhere.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from lite_engine.model_file import open_model
from lite_engine.model_file.program_file import write_program_file

from ..native.cases import check_outputs, collected, merged

zoo = pytest.importorskip("benchmarks.zoo", reason="the zoo is in the source tree only")
# Wine takes seconds to start a process, and more to make its first folder.
pytestmark = [pytest.mark.wine, pytest.mark.slow]

BUILD = Path(__file__).parents[2] / "build"
EXE = BUILD / "x86_64-windows-gnu" / "lite_run.exe"
DLL = EXE.with_name("liblite_runtime.dll")
LINUX = BUILD / "x86_64-linux-musl" / "lite_run"


@pytest.fixture(scope="module")
def wine(tmp_path_factory):
    """Runs lite_run.exe, or another program."""
    prefix = tmp_path_factory.mktemp("wine")
    env = {**os.environ, "WINEPREFIX": str(prefix), "WINEDEBUG": "-all", "LC_ALL": "C.UTF-8",
           "DISPLAY": ""}  # fmt: skip

    def call(*words: object, program: Path = EXE) -> subprocess.CompletedProcess[str]:
        command = ["wine", str(program), *map(str, words)]
        return subprocess.run(
            command, capture_output=True, text=True, encoding="utf-8", env=env, timeout=300
        )

    return call


def arrays(folder: Path) -> dict[str, np.ndarray]:
    return {path.stem: np.load(path) for path in sorted(folder.glob("*.npy"))}


@pytest.mark.parametrize("threads", [1, 3])
def test_all_kernel_cases(wine, tmp_path, threads):
    cases = collected()
    plan = merged([case.plan(all_constant=True) for case in cases])
    program = write_program_file(plan, tmp_path / "cases.lite", ("x86",))
    done = wine(program, "--threads", threads, "--output", tmp_path)
    assert done.returncode == 0, done.stderr
    check_outputs(cases, plan, tmp_path)


QUICK = ("mobilenet_v1", "squeezenet", "ocr_recogniser")


@pytest.fixture(
    scope="module",
    params=[n if n in QUICK else pytest.param(n, marks=pytest.mark.hours) for n in zoo.NAMES],
)
def network(request, tmp_path_factory):
    return written(request.param, tmp_path_factory.mktemp(request.param))


def written(name: str, folder: Path) -> Path:
    source = folder / "n.onnx"
    source.write_bytes(zoo.build(name).SerializeToString())
    return open_model(source).but(targets=["x86"]).save(folder / "n.lite")


@pytest.mark.parametrize("isa", ["sse2", "avx2"])
def test_a_network_agrees_with_linux_bit_by_bit(wine, network, tmp_path, isa):
    if not LINUX.is_file():
        pytest.skip("no build/x86_64-linux-musl; scripts/native.sh x86_64-linux-musl")
    options = ("--max-isa", isa, "--threads", 2, "--output")
    command = [LINUX, network, *map(str, (*options, tmp_path / "linux"))]
    subprocess.run(command, check=True, timeout=60)
    done = wine(network, *options, tmp_path / "windows")
    assert done.returncode == 0, done.stderr
    expected, found = arrays(tmp_path / "linux"), arrays(tmp_path / "windows")
    assert expected and set(found) == set(expected)
    for name, array in expected.items():
        assert found[name].tobytes() == array.tobytes(), name


@pytest.mark.hours
def test_the_library_is_loaded_by_its_path(wine, root, tmp_path):
    """As Python's ctypes does; its numbers are those of Linux, too."""
    if not (LINUX.is_file() and DLL.is_file()):
        pytest.skip("needs scripts/native.sh x86_64-linux-musl and x86_64-windows-gnu")
    zig = subprocess.run([root / "scripts/zig.sh"], capture_output=True, text=True, check=True)
    program, model = tmp_path / "load.exe", written("squeezenet", tmp_path)
    source = root / "tests/reach/load_library.c"
    command = [zig.stdout.strip(), "cc", "-target", "x86_64-windows-gnu",
               "-I", root / "engine/native/include", source, "-o", program]  # fmt: skip
    subprocess.run(command, check=True, timeout=600)
    done = wine(f"Z:{DLL}".replace("/", "\\"), model, tmp_path / "out.bin", program=program)
    assert done.returncode == 0, done.stderr
    command = [LINUX, model, "--max-isa", "sse2", "--threads", "2", "--output", tmp_path / "linux"]
    subprocess.run(command, check=True, timeout=60)
    (expected,) = arrays(tmp_path / "linux").values()
    assert (tmp_path / "out.bin").read_bytes() == expected.tobytes()


def test_names_in_any_language(wine, tmp_path):
    folder = tmp_path / "模型 é"
    folder.mkdir()
    model = folder / "сеть ß.lite"
    model.write_bytes(written("squeezenet", tmp_path).read_bytes())
    out, profile = folder / "ответ", folder / "профиль.json"
    done = wine(model, "--output", out, "--profile", profile, "--runs", 1)
    assert done.returncode == 0, done.stderr
    assert arrays(out) and profile.stat().st_size > 100


def test_an_error_names_the_file(wine, tmp_path):
    done = wine(tmp_path / "нет.lite")
    assert done.returncode == 1
    assert done.stderr.strip().endswith("нет.lite: cannot be read")
