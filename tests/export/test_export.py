"""Exported folders: every sample is compiled and gives the reference's numbers."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine._native import library_path
from lite_engine.errors import LiteError, TargetMismatchError, UsageError
from lite_engine.export import export_model
from lite_engine.export.trim import kernel_list, short_list
from lite_engine.ir import DType, Graph, Value
from lite_engine.ops import infer_types
from lite_engine.runtime import host_target
from lite_engine.runtime.choice import usability
from lite_workbench.cli import main

from tests.small_models import classifier, image

pytestmark = pytest.mark.cpu

#: Segments of AArch64 are aligned to 64 KiB in the file, so that its size grows in such steps.
MOST_RUNNER = 2_600_000


def test_a_folder_that_was_made_for_nothing_goes(tmp_path, monkeypatch) -> None:
    """And one that was there stays, with what is in it."""
    model = optimize(classifier(), targets=[host_target()])
    monkeypatch.setattr("lite_engine.export.exporter.copy", _full_disk)
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "mine.txt").write_text("kept")
    for name in ("old", "new"):
        with pytest.raises(LiteError, match="cannot be written"):
            export_model(model, tmp_path / name, host_target())
    assert [p.name for p in tmp_path.iterdir()] == ["old"]
    assert (tmp_path / "old" / "mine.txt").read_text() == "kept"


def _full_disk(*_, **__):
    raise OSError(28, "No space left on device")


def run(*command, **options) -> str:
    done = subprocess.run(
        [str(c) for c in command], capture_output=True, text=True, timeout=120, **options
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def tool(*names: str) -> str:
    for name in names:
        if found := shutil.which(name):
            return found
    pytest.skip(f"no {names[0]}; sudo apt-get install gcc g++ default-jdk-headless")


def jni_library(source: Path, include: Path, folder: Path) -> None:
    """Native methods over this machine's library, in the folder; skips without jni.h."""
    headers, library = Path(tool("javac")).resolve().parents[1] / "include", library_path()
    if not (headers / "jni.h").is_file():
        pytest.skip("the JDK has no jni.h")
    run(tool("cc", "gcc"), "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{headers}",
        f"-I{headers}/linux", f"-I{include}", source, library,
        f"-Wl,-rpath,{library.parent}", "-o", folder / "liblite_jni.so")  # fmt: skip


@pytest.fixture(scope="module")
def want():
    """The reference's numbers, and the input as raw bytes."""
    graph = optimize(classifier()).graph
    feeds = image(graph)
    return Predictor(graph, "reference").run(feeds)["prob"].ravel(), feeds["x"].tobytes()


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The folder for this machine."""
    model = optimize(classifier(), targets=["x86", "arm", "opencl"])
    return export_model(model, tmp_path_factory.mktemp("out") / "x", host_target()).folder


@pytest.fixture(scope="module")
def raw(want, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("raw") / "x.raw"
    path.write_bytes(want[1])
    return path


def check(text: str, want) -> None:
    name, _, values = text.partition(":")
    assert name == "prob"
    np.testing.assert_allclose([float(v) for v in values.split()], want[0], atol=1e-5)


def compiled(folder: Path, compiler: str, source: str, out: Path, *options: str) -> Path:
    run(compiler, "-Wall", "-Wextra", "-Werror", "-O1", *options, folder / "samples" / source,
        f"-I{folder}/include", f"-L{folder}/lib", "-llite_runtime", "-o", out)  # fmt: skip
    return out


def chosen(*command: object, raw: Path, env: dict[str, str] | None = None) -> None:
    """A sample takes the backend that it is told, and says what was chosen."""
    env = {k: v for k, v in {**os.environ, **(env or {})}.items() if k != "LITE_BACKEND"}

    def told(backend: str) -> subprocess.CompletedProcess[str]:
        words = [*map(str, command), str(raw), backend]
        return subprocess.run(words, env=env, capture_output=True, text=True, timeout=120)

    cpu, opencl, wrong = map(told, ("cpu", "opencl", "npu"))
    assert cpu.returncode == 0 and cpu.stderr == "cpu: asked for\n"
    assert wrong.returncode == 1 and "is not one of" in wrong.stderr
    if usability("opencl").usable:
        assert opencl.returncode == 0 and opencl.stderr.startswith("opencl: "), opencl.stderr
    else:
        assert opencl.returncode == 1 and "OpenCL" in opencl.stderr


def refuses(*command: object, raw: Path, env: dict[str, str] | None = None) -> None:
    """Inputs of another size, what is not there, folders and wrong usage are one line each."""
    data, other = raw.read_bytes(), raw.with_name("other.raw")
    needed, *words = f"{len(data)} ", "cannot be read", "No such file", "Is a directory", "usage: "
    for wrong in ([data[:-4]], [data + bytes(4)], ["gone"], ["."], [], [raw, "cpu", "more"]):
        if wrong and isinstance(wrong[0], bytes):
            other.write_bytes(wrong[0])
            wrong = [other]
        line = [*map(str, (*command, *wrong) if wrong else command[:-1])]
        found = subprocess.run(line, env=env, capture_output=True, text=True, timeout=120)
        assert found.returncode == 1 and found.stdout == "" and found.stderr.count("\n") == 1, wrong
        assert found.stderr.startswith(("error: ", "usage: "))
        assert any(w in found.stderr for w in ([needed] if wrong == [other] else words)), wrong


def test_c(exported, raw, want, tmp_path):
    program = compiled(exported, tool("cc", "gcc"), "sample.c", tmp_path / "s", "-std=c99")
    env = {"LD_LIBRARY_PATH": str(exported / "lib")}
    check(run(program, exported / "classifier.lite", raw, env=env), want)
    chosen(program, exported / "classifier.lite", raw=raw, env=env)
    refuses(program, exported / "classifier.lite", raw=raw, env=env)
    bad = subprocess.run([program, "/nowhere.lite"], env=env, capture_output=True, text=True)
    assert bad.returncode == 1 and bad.stderr.startswith("error: /nowhere.lite")


def test_cpp(exported, raw, want, tmp_path):
    program = compiled(exported, tool("c++", "g++"), "sample.cpp", tmp_path / "s", "-std=c++17")
    env = {"LD_LIBRARY_PATH": str(exported / "lib")}
    check(run(program, exported / "classifier.lite", raw, env=env), want)
    chosen(program, exported / "classifier.lite", raw=raw, env=env)
    refuses(program, exported / "classifier.lite", raw=raw, env=env)
    bad = subprocess.run([program, raw], env=env, capture_output=True, text=True)
    assert bad.returncode == 1 and "not a .lite file" in bad.stderr


def test_python(exported, raw, want):
    sample = exported / "samples" / "sample.py"
    check(run(sys.executable, "-I", sample, exported / "classifier.lite", raw), want)
    assert "python3 samples/sample.py classifier.lite\n" in (exported / "README.md").read_text()
    run(sys.executable, "samples/sample.py", "classifier.lite", cwd=exported)
    chosen(sys.executable, "-I", sample, exported / "classifier.lite", raw=raw)
    refuses(sys.executable, "-I", sample, exported / "classifier.lite", raw=raw)


def java_sample(exported: Path, tmp_path: Path) -> tuple[object, ...]:
    """The command of the compiled sample."""
    javac, java = tool("javac"), tool("java")
    home = Path(javac).resolve().parents[1] / "include"
    if not (home / "jni.h").is_file():
        pytest.skip("the JDK has no jni.h")
    sources = [exported / "java" / "lite" / "LiteRuntime.java", exported / "samples/Sample.java"]
    run(javac, "-Xlint:all", "-Werror", "-d", tmp_path, *sources)
    run(tool("cc", "gcc"), "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{home}",
        f"-I{home}/linux", f"-I{exported}/include", exported / "java" / "lite_jni.c",
        f"-L{exported}/lib", "-llite_runtime", "-o", tmp_path / "liblite_jni.so")  # fmt: skip
    return java, "-Xcheck:jni", f"-Djava.library.path={tmp_path}", "-cp", tmp_path, "Sample"


def test_java(exported, raw, want, tmp_path):
    start = java_sample(exported, tmp_path)
    env = {**os.environ, "LD_LIBRARY_PATH": str(exported / "lib")}
    check(run(*start, exported / "classifier.lite", raw, env=env), want)
    chosen(*start, exported / "classifier.lite", raw=raw, env=env)
    refuses(*start, exported / "classifier.lite", raw=raw, env=env)
    bad = subprocess.run(
        [*map(str, start), str(raw)], env=env, capture_output=True, text=True, timeout=60
    )
    assert bad.returncode == 1 and bad.stderr.startswith("error: ")
    assert "not a .lite file" in bad.stderr and bad.stderr.count("\n") == 1


#: Outputs of these types, each x + 1 as one.
TYPES = (DType.I8, DType.U8, DType.I16, DType.I32, DType.I64, DType.BOOL)


def test_samples_print_integers(tmp_path, rng):
    graph = Graph("types")
    graph.inputs = [Value("x", DType.F32, (1, 6))]
    y = graph.add("Add", [graph.inputs[0], graph.constant(np.float32(1))]).output
    graph.outputs = [
        graph.add("Cast", [y], {"to": t}, outputs=[t.name.lower()]).output for t in TYPES
    ]
    x = np.float32([[-1, 0, 9, 41, 99, -1]])
    (tmp_path / "x.raw").write_bytes(x.tobytes())
    infer_types(graph)
    folder = export_model(
        optimize(graph, targets=[host_target()]), tmp_path / "out", host_target()
    ).folder
    env = {**os.environ, "LD_LIBRARY_PATH": str(folder / "lib")}
    c = compiled(folder, tool("cc", "gcc"), "sample.c", tmp_path / "c", "-std=c99")
    cpp = compiled(folder, tool("c++", "g++"), "sample.cpp", tmp_path / "cpp", "-std=c++17")
    java = java_sample(folder, tmp_path)
    for start in ([c], [cpp], [sys.executable, "-I", folder / "samples" / "sample.py"], java):
        text = run(*start, folder / "types.lite", tmp_path / "x.raw", env=env)
        told = {
            name: values.split()
            for name, _, values in (t.partition(":") for t in text.splitlines())
        }
        for t in TYPES:
            assert told[t.name.lower()] == [str(int(v)) for v in (x[0] + 1).astype(t.np)], (
                start,
                t,
            )


def test_runner(exported, raw, want, tmp_path):
    run(exported / "bin/lite_run", exported / "classifier.lite", "--input", f"x={raw}",
        "--output", tmp_path)  # fmt: skip
    np.testing.assert_allclose(np.load(tmp_path / "prob.npy").ravel(), want[0], atol=1e-5)


def test_runner_with_opencl(exported, raw, want, tmp_path):
    """It is there for a model with OpenCL only, and gives the CPU's numbers without a device."""
    runner = exported / "bin" / "lite_run_opencl"
    run(runner, exported / "classifier.lite", "--backend", "cpu", "--input", f"x={raw}",
        "--output", tmp_path)  # fmt: skip
    np.testing.assert_allclose(np.load(tmp_path / "prob.npy").ravel(), want[0], atol=1e-5)
    assert "| `bin/lite_run_opencl` | " in (exported / "README.md").read_text()
    plain = export_model(
        optimize(classifier(), targets=[host_target()]), tmp_path / "p", host_target()
    )
    assert "bin/lite_run_opencl" not in plain.sizes


@pytest.mark.opencl
def test_runner_on_opencl(exported, raw, want, tmp_path):
    run(exported / "bin" / "lite_run_opencl", exported / "classifier.lite", "--backend", "opencl",
        "--input", f"x={raw}", "--output", tmp_path)  # fmt: skip
    np.testing.assert_allclose(np.load(tmp_path / "prob.npy").ravel(), want[0], atol=1e-4)


@pytest.mark.arm
def test_c_for_aarch64(raw, want, tmp_path, qemu):
    compiler = tool("aarch64-linux-gnu-gcc") if qemu else tool("cc")
    made = export_model(optimize(classifier(), targets=["arm"]), tmp_path / "out", "arm")
    folder = made.folder
    program = compiled(folder, compiler, "sample.c", tmp_path / "s", "-std=c99")
    library = ["-E", f"LD_LIBRARY_PATH={folder}/lib", "-L", "/usr/aarch64-linux-gnu"]
    prefix = [*qemu, *library] if qemu else ["env", f"LD_LIBRARY_PATH={folder}/lib"]
    check(run(*prefix, program, folder / "classifier.lite", raw), want)
    check_runner = [*qemu, folder / "bin/lite_run", folder / "classifier.lite"]
    run(*check_runner, "--input", f"x={raw}", "--output", tmp_path)
    np.testing.assert_allclose(np.load(tmp_path / "prob.npy").ravel(), want[0], atol=1e-5)
    assert made.sizes["bin/lite_run"] <= MOST_RUNNER


def test_cmake(exported, raw, want, tmp_path):
    cmake = tool("cmake")
    run(cmake, "-S", exported, "-B", tmp_path)
    run(cmake, "--build", tmp_path)
    check(run(tmp_path / "sample_cpp", exported / "classifier.lite", raw), want)


def test_refusals(tmp_path):
    model = optimize(classifier(), targets=["x86"])
    with pytest.raises(TargetMismatchError, match=r"converted for x86, not arm.*lite convert"):
        export_model(model, tmp_path / "a", "arm")
    with pytest.raises(UsageError):
        export_model(model, tmp_path / "a", "opencl")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("was_there", [False, True])
def test_a_folder_is_whole_or_as_it_was(tmp_path, was_there):
    """Stopped while the report is being made, when all else is written."""
    model, out = optimize(classifier(), targets=[host_target()]), tmp_path / "out"
    if was_there:
        out.mkdir()
        (out / "README.md").write_text("mine")

    def stop(made):
        assert (made.folder / "README.md").is_file()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_model(model, out, host_target(), more=stop)
    assert [p.name for p in tmp_path.rglob("*")] == (["out", "README.md"] if was_there else [])
    (tmp_path / "file").write_text("")
    with pytest.raises(LiteError, match="cannot be written"):
        export_model(model, tmp_path / "file", host_target())
    made = export_model(model, out, host_target(), more=lambda m: (m.folder / "x").write_text("x"))
    assert made.folder == out and made.sizes["x"] == 1
    assert (out / "README.md").stat().st_size == made.sizes["README.md"] > 4


def test_the_command(tmp_path, capsys):
    model = optimize(classifier(), targets=["x86", "arm"]).save(tmp_path / "m.lite")
    out = tmp_path / "out"
    arguments = ["export", str(model), "-o", str(out), "--target", host_target(), "--json", "-"]
    assert main(arguments) == 0
    told = json.loads(capsys.readouterr().out)
    files = {str(p.relative_to(out)): p.stat().st_size for p in out.rglob("*") if p.is_file()}
    assert {f["file"]: f["bytes"] for f in told["files"]} == files
    readme = (out / "README.md").read_text()
    assert not re.search(r"@[A-Z]+@", readme)
    for file in files.keys() - {"README.md", "report.html"}:
        assert f"| `{file}` | {files[file] / 1e3:.1f} kB | " in readme
    report = (out / "report.html").read_text()
    assert report.startswith("<!doctype html") and host_target() in report
    assert "/.lite-" not in report  # the name it had while it was filled
    assert main([*arguments[:-2], "--no-report", "-o", str(tmp_path / "b")]) == 0
    assert not (tmp_path / "b" / "report.html").exists()


@pytest.mark.wasm
def test_the_command_for_a_page(tmp_path, capsys):
    """Its model has a name of its own, and is measured as WebAssembly."""
    source = optimize(classifier()).save(tmp_path / "m.lite")
    assert main(["export", str(source), "-o", str(tmp_path / "page"), "--target", "web"]) == 0
    assert "report.html" in capsys.readouterr().out
    report = (tmp_path / "page" / "report.html").read_text("utf-8")
    assert "model.lite" in report and "Where the time goes: wasm" in report


def test_short_list():
    """The list keeps its conditions; every kernel of the full one is found in some file."""
    full = kernel_list()
    short = short_list(full, ["f32_conv2d_gemm", "copy_relayout", "i8_conv2d_gemm"])
    rows = [line for line in short.splitlines() if not line.startswith("#")]
    assert "LITE_ISA_KERNELS(conv_gemm)" in rows and "LITE_BASE_KERNELS(move)" in rows
    assert "LITE_ISA_KERNELS(recurrent)" not in short
    assert short.count("#if") == short.count("#endif") == 2  # one inside the other
    assert "neonfp16" not in short and "(neonfp16, pool)" in short_list(full, ["f16_pool"])
    from lite_engine.backends.cpu.native import kernel_names

    for name in kernel_names():
        assert short_list(full, [name])


def trimmed_beside_the_builds(monkeypatch, root) -> None:
    """A build folder at the depth of scripts/native.sh's: ccache has all but two of its objects."""
    monkeypatch.setenv("LITE_CACHE_DIR", str(root / "build"))
    monkeypatch.setenv("CCACHE_BASEDIR", str(root))


@pytest.mark.sweep
@pytest.mark.arm
def test_trimmed_mobilenet(tmp_path, qemu, monkeypatch, root):
    """MobileNetV1's own AArch64 runner: at most 1.0 MB, and the full one's numbers."""
    onnx = pytest.importorskip("onnx", reason="builds the network")
    from benchmarks import zoo

    trimmed_beside_the_builds(monkeypatch, root)
    onnx.save(zoo.build("mobilenet_v1"), tmp_path / "m.onnx")
    model = optimize(tmp_path / "m.onnx", targets=["arm"])
    full = export_model(model, tmp_path / "full", "arm")
    made = export_model(model, tmp_path / "trimmed", "arm", trimmed=True)
    both = optimize(tmp_path / "m.onnx", targets=["opencl", "arm"])
    with_opencl = export_model(both, tmp_path / "both", "arm", trimmed=True)
    assert with_opencl.sizes["bin/lite_run_opencl"] <= 1_200_000, with_opencl.sizes
    assert made.sizes["bin/lite_run"] <= 1_000_000, made.sizes
    assert made.sizes["bin/lite_run"] < full.sizes["bin/lite_run"] <= MOST_RUNNER
    for one in (full, made):
        run(*qemu, one.folder / "bin/lite_run", one.folder / "m.lite", "--output", one.folder)
    (output,) = [p.name for p in full.folder.glob("*.npy")]
    a, b = (np.load(one.folder / output) for one in (full, made))
    assert np.array_equal(a, b)


@pytest.mark.slow
@pytest.mark.opencl
def test_trimmed_with_opencl(raw, want, tmp_path, monkeypatch, root):
    """It runs on OpenCL, and has the CPU's kernels for what a device may refuse."""
    trimmed_beside_the_builds(monkeypatch, root)
    model = optimize(classifier(), targets=["opencl", host_target()])
    made = export_model(model, tmp_path / "x", host_target(), trimmed=True)
    full = export_model(model, tmp_path / "full", host_target())
    runner = "bin/lite_run_opencl"
    assert made.sizes[runner] < full.sizes[runner] - 500_000, made.sizes
    call = (made.folder / runner, made.folder / "classifier.lite", "--input", f"x={raw}")
    for backend in ("opencl", "cpu"):
        run(*call, "--backend", backend, "--output", tmp_path)
        np.testing.assert_allclose(np.load(tmp_path / "prob.npy").ravel(), want[0], atol=1e-4)
    assert {"f32_softmax", "copy_relayout"} <= set(made.kernels)
