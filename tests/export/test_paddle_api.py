"""Programs written for Paddle-Lite's C++ interface compile against ours and give the reference's
numbers, here and on AArch64."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine._version import __version__
from lite_engine.export import export_model
from lite_engine.model_file.writer import cpu_plans
from lite_engine.runtime import host_target

from tests.export.test_export import run, tool
from tests.small_models import classifier

pytestmark = pytest.mark.cpu
PROGRAMS = Path(__file__).parent / "paddle"
SOURCES = ("paddle_api.cc", "paddle_config.cc")
STRICT = ("-std=c++11", "-Wall", "-Wextra", "-Werror")
NAMES = {"x86": "x86_64", "arm": "aarch64"}


class Built:
    """The exported folder, and the programs linked to the library made of it."""

    def __init__(self, folder: Path, exported: Path, compiler: str, prefix: list[str]) -> None:
        self.folder, self.exported, self.prefix = folder, exported, prefix
        api, link = exported / "paddle", [f"-L{exported}/lib", "-llite_runtime", "-pthread"]
        run(compiler, *STRICT, "-fno-exceptions", "-fno-rtti", "-fPIC", "-shared", f"-I{api}",
            f"-I{exported}/include", *(api / s for s in SOURCES), *link,
            "-o", folder / "libpaddle_light_api_shared.so")  # fmt: skip
        for program in ("mobilenet", "classify", "behaviour"):
            run(compiler, *STRICT, PROGRAMS / f"{program}.cc", f"-I{api}", f"-L{folder}",
                "-lpaddle_light_api_shared", *link, "-o", folder / program)  # fmt: skip

    def __call__(self, program: str, *arguments: object) -> str:
        return run(*self.prefix, self.folder / program, *arguments)

    def told(self, program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Whatever its exit status; on the file's first target that works."""
        env = {k: v for k, v in os.environ.items() if k != "LITE_BACKEND"}
        command = [*self.prefix, self.folder / program, *arguments]
        return subprocess.run(
            [str(c) for c in command], env=env, capture_output=True, text=True, timeout=120
        )

    @property
    def model(self) -> Path:
        return self.exported / "classifier.lite"


def built(folder: Path, target: str, compiler: str, qemu: list[str]) -> Built:
    model = optimize(classifier(), targets=[target])
    exported = export_model(model, folder / "out", target).folder
    places = f"LD_LIBRARY_PATH={folder}:{exported}/lib"
    prefix = [*qemu, "-L", f"/usr/{NAMES[target]}-linux-gnu", "-E", places]
    return Built(folder, exported, compiler, prefix if qemu else ["env", places])


@pytest.fixture(scope="module")
def here(tmp_path_factory) -> Built:
    return built(tmp_path_factory.mktemp("here"), host_target(), tool("c++", "g++"), [])


def scores(image: np.ndarray) -> np.ndarray:
    return Predictor(optimize(classifier()).graph, "reference").run({"x": image})["prob"]


def check_ones(text: str) -> None:
    """What mobilenet.cc prints for an input of ones."""
    found = re.search(r"^output prob of 2 dims:(.*)", text, re.MULTILINE)
    assert found, text
    want = scores(np.ones((1, 3, 20, 20), np.float32)).ravel()
    np.testing.assert_allclose([float(v) for v in found[1].split()], want, atol=1e-5)


def check_image(call: Built, folder: Path, power: str) -> None:
    pixels = np.random.default_rng(3).integers(0, 256, (20, 20, 3), dtype=np.uint8)
    (folder / "x.raw").write_bytes(pixels.tobytes())
    image = np.ascontiguousarray(pixels.transpose(2, 0, 1)[None], np.float32) / np.float32(255)
    want = scores(image).ravel()
    text = call("classify", call.model, folder / "x.raw", 20, 20, power)
    rows = [line.split() for line in text.splitlines()]
    assert [int(number) for number, _ in rows] == list(np.argsort(-want, kind="stable"))
    np.testing.assert_allclose([float(s) for _, s in rows], np.sort(want)[::-1], atol=1e-5)


def inner_value(target: str) -> str:
    """A value that a step writes and no caller sees."""
    plan = next(iter(cpu_plans(optimize(classifier(), targets=[target]), target).values()))
    names = [tensor.name for tensor in plan.tensors]
    return next(name for name in names if "pool" in name)


@pytest.mark.parametrize("power", range(6))
def test_light_api(here, power):
    check_ones(here("mobilenet", here.model, "1,3,20,20", 2, power, 2))


def test_image_classification(here, tmp_path):
    check_image(here, tmp_path, "LITE_POWER_HIGH")


def test_behaviour(here):
    assert here("behaviour", here.model, inner_value(host_target())) == ""


@pytest.mark.opencl
def test_opencl(here, tmp_path):
    """The file's OpenCL program is used where there is a device; what has no effect is told."""
    targets = ["opencl", host_target()]
    made = export_model(optimize(classifier(), targets=targets), tmp_path / "m", host_target())
    model = made.folder / "classifier.lite"
    done = here.told("mobilenet", model, "1,3,20,20", 1, 3, 1, tmp_path)
    assert done.returncode == 0 and done.stdout.startswith("opencl: yes\n")
    check_ones(done.stdout)
    assert "\nlite: runs on opencl: " in done.stderr
    assert "lite: set_opencl_tune has no effect" in done.stderr
    assert "convert it with --precision opencl=fp16" in done.stderr


def test_errors_are_one_line_each(here, tmp_path):
    nowhere = here.told("mobilenet", tmp_path / "no.lite", "1,3,20,20", 1, 3, 1)
    assert nowhere.returncode == 1 and nowhere.stderr.startswith(f"lite: {tmp_path}/no.lite: ")
    larger = here.told("mobilenet", here.model, "1,3,224,224", 1, 3, 1)
    assert larger.stdout.endswith("output prob of 2 dims:\n")
    assert (
        "lite: input 'x': expected 1x3x20x20 of float, got 1x3x224x224 of float; another size "
        "needs `lite convert --shape`\n"
    ) in larger.stderr


def test_cmake_builds_it(here, tmp_path):
    """By the exported CMakeLists.txt, under Paddle-Lite's name of the library."""
    run(tool("cmake"), "-S", here.exported, "-B", tmp_path)
    run("cmake", "--build", tmp_path, "--target", "paddle_light_api_shared")
    shutil.copy(here.folder / "mobilenet", tmp_path)
    places = f"LD_LIBRARY_PATH={tmp_path}:{here.exported}/lib"
    check_ones(run("env", places, tmp_path / "mobilenet", here.model, "1,3,20,20", 1, 3, 1))


def test_the_page(here, tmp_path, root):
    """What docs/deploy.md says to type, with the first lines of paddle_api.h as the program."""
    (typed,) = re.findall(
        r"```sh\n(g\+\+ .*?)```", (root / "docs/deploy.md").read_text(), re.DOTALL
    )
    shutil.copytree(here.exported, tmp_path / "out")
    lines = (here.exported / "paddle/paddle_api.h").read_text().splitlines()
    usage = "\n".join(line[5:] for line in lines if line.startswith("//   "))
    usage = usage.replace("model.lite", "classifier.lite").replace("224, 224", "20, 20")
    fill = "for (int i = 0; i < 3 * 20 * 20; ++i) pixels[i] = 1;\npredictor->Run();"
    (tmp_path / "out/program.cc").write_text(
        "#include <cstdio>\n#include <paddle_api.h>\nusing namespace paddle::lite_api;\n"
        f"int main() {{\n{usage.replace('predictor->Run();', fill)}\n"
        'printf("output prob of 2 dims:");\n'
        'for (int i = 0; i < 10; ++i) printf(" %.7g", scores[i]);\n}\n'
    )
    check_ones(run("bash", "-ec", typed, cwd=tmp_path / "out"))


def test_java(here, tmp_path):
    """com.baidu.paddle.lite: compiled with every warning an error, checked by the JVM."""
    javac, java = tool("javac"), tool("java")
    headers = Path(javac).resolve().parents[1] / "include"
    if not (headers / "jni.h").is_file():
        pytest.skip("the JDK has no jni.h")
    sources = [p for p in here.exported.glob("java/**/*.java") if p.name != "Sample.java"]
    run(javac, "--release", "11", "-Xlint:all,-options", "-Werror", "-d", tmp_path, *sources,
        PROGRAMS / "Classify.java")  # fmt: skip
    run(tool("cc", "gcc"), "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{headers}",
        f"-I{headers}/linux", f"-I{here.exported}/include", here.exported / "java/lite_jni.c",
        f"-L{here.exported}/lib", "-llite_runtime", "-o", tmp_path / "liblite_jni.so")  # fmt: skip
    env = {**os.environ, "LD_LIBRARY_PATH": str(here.exported / "lib")}
    text = run(java, "-Xcheck:jni", f"-Djava.library.path={tmp_path}", "-cp", tmp_path, "Classify",
               here.model, env=env)  # fmt: skip
    first, version, from_memory = text.splitlines()
    check_ones(first)
    assert version == __version__ and from_memory == first


@pytest.mark.arm
def test_aarch64(tmp_path, qemu):
    call = built(tmp_path, "arm", tool("aarch64-linux-gnu-g++") if qemu else tool("c++"), qemu)
    check_ones(call("mobilenet", call.model, "1,3,20,20", 1, 0, 2))
    check_image(call, tmp_path, "LITE_POWER_FULL")
    assert call("behaviour", call.model, inner_value("arm")) == ""
