"""The exported Android project: whole, its native part compiles and answers as Python does."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from lite_engine import optimize
from lite_engine.errors import BackendUnavailableError, TargetMismatchError
from lite_engine.export import export_android, sources
from lite_engine.pipeline import Pipeline
from lite_engine.runtime import host_target
from lite_workbench.cli import main
from PIL import Image

from tests.export.test_export import jni_library, run, tool
from tests.small_models import classifier

pytestmark = pytest.mark.cpu
CPP = "app/src/main/cpp"
NDK = "{http://schemas.android.com/apk/res/android}"
#: Files that ask the system for something, on which an NDK's headers differ.
ASKING = ("runtime/crc32", "runtime/cpu", "platform/threads_linux", "platform/memory_posix",
          "platform/files_posix", "plugins/open", "opencl/library", "opencl/child")  # fmt: skip


@pytest.fixture(scope="module")
def project(model, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("android") / "app"
    assert main(["export", str(model), "-o", str(folder), "--android"]) == 0
    return folder


def test_the_project_is_whole(project, model):
    """Gradle's names of files, drivers in the manifest, the model as an asset, nothing unfilled."""
    manifest = ElementTree.parse(project / "app/src/main/AndroidManifest.xml").getroot()
    drivers = {
        node.get(f"{NDK}name"): node.get(f"{NDK}required")
        for node in manifest.iter("uses-native-library")
    }
    assert drivers["libOpenCL.so"] == "false"
    assert manifest.find("application").get(f"{NDK}label") == "it_s _a_ _model"
    asset = Pipeline.open(project / "app/src/main/assets/model.lite")
    assert asset.parts[0].model.targets == Pipeline.open(model).parts[0].model.targets
    gradle = (project / "app/build.gradle.kts").read_text()
    assert (project / "app" / re.search(r'path = file\("(.*)"\)', gradle)[1]).is_file()
    for abi in ("arm64-v8a", "armeabi-v7a"):
        assert abi in gradle
    for file in project.rglob("*"):
        if file.suffix in (".kts", ".kt", ".xml", ".md") or file.name == "CMakeLists.txt":
            assert not re.search(r"@[A-Z]+@", file.read_text()), file
    assert "no OpenCL programs" not in (project / "README.md").read_text()


def test_it_takes_images_of_the_device_and_of_the_camera(project):
    """The camera's app writes through the provider that the manifest declares."""
    kotlin = {p.stem: p.read_text() for p in (project / "app/src/main/kotlin/lite/app").iterdir()}
    activity = kotlin["MainActivity"]
    assert 'INPUT = "image"' in activity and "ACTION_OPEN_DOCUMENT" in activity
    assert "ACTION_IMAGE_CAPTURE" in activity and "PhotoProvider.uri(this)" in activity
    manifest = ElementTree.parse(project / "app/src/main/AndroidManifest.xml").getroot()
    (provider,) = manifest.iter("provider")
    assert provider.get(f"{NDK}name") == ".PhotoProvider"
    assert provider.get(f"{NDK}exported") == "false"
    assert provider.get(f"{NDK}grantUriPermissions") == "true"
    suffix = provider.get(f"{NDK}authorities").removeprefix("${applicationId}")
    assert f"${{context.packageName}}{suffix}/" in kotlin["PhotoProvider"]


def test_natives_are_those_that_kotlin_names(project):
    kotlin = (project / "app/src/main/kotlin/lite/app/LiteApp.kt").read_text()
    named = set(re.findall(r"external fun (\w+)\(", kotlin))
    source = (project / CPP / "lite_app_jni.c").read_text()
    assert set(re.findall(r"Java_lite_app_LiteApp_(\w+)\(", source)) == named
    ours = (Path(__file__).parent / "LiteApp.java").read_text()
    assert set(re.findall(r"private native \S+ (\w+)\(", ours)) == named


def test_the_native_part_answers(project, model, tmp_path):
    """Its native methods, called by a JVM, on a photo; the drawn image; an error for each call."""
    javac, java = tool("javac"), tool("java")
    jni_library(project / CPP / "lite_app_jni.c", project / CPP / "native/include", tmp_path)
    run(javac, "-d", tmp_path, Path(__file__).parent / "LiteApp.java")
    asset = project / "app/src/main/assets/model.lite"
    photo, drawn = tmp_path / "photo.png", tmp_path / "drawn.png"
    Image.linear_gradient("L").convert("RGB").save(photo)
    # An OpenCL driver sets signal handlers of its own, which -Xcheck:jni would report.
    env = {**os.environ, "LC_ALL": "C.UTF-8", "LITE_BACKEND": host_target()}
    done = subprocess.run(
        [java, "-Xcheck:jni", f"-Djava.library.path={tmp_path}", "-Dfile.encoding=UTF-8",
         "-Dsun.stdout.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-cp", str(tmp_path),
         "lite.app.LiteApp", str(asset), str(photo), str(drawn)],
        capture_output=True, encoding="utf-8", timeout=120, env=env,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    got = next(iter(json.loads(done.stdout)["answers"].values()))["items"]
    want = next(iter(Pipeline.open(model).run(photo)["answers"].values()))["items"]
    assert [i["label"] for i in got] == [i["label"] for i in want]
    assert [i["score"] for i in got] == pytest.approx([i["score"] for i in want], rel=1e-3)
    assert Image.open(drawn).size == (256, 256)
    first, second = done.stderr.splitlines()[-2:]
    assert "image" in first and second.startswith("/nowhere.lite: ")


def test_cmake_takes_the_sources_as_they_lie(project, tmp_path):
    """Configured for this machine; the library is a target, with every kernel text found."""
    cmake, jdk = tool("cmake"), Path(tool("javac")).resolve().parents[1] / "include"
    run(cmake, "-S", project / CPP, "-B", tmp_path, f"-DCMAKE_C_FLAGS=-I{jdk} -I{jdk}/linux")
    texts = (tmp_path / "native/opencl/opencl_kernel_texts.inc").read_text()
    kernels = list((project / CPP / "lite_engine/backends/opencl/kernels").glob("*.cl"))
    assert kernels and all(f"kText_{path.stem}[]" in texts for path in kernels)
    assert "lite_jni" in run(cmake, "--build", tmp_path, "--target", "help")


@pytest.mark.offline
def test_sources_compile_for_android(project):
    """With clang for Android's triples, over the cross compilers' headers in place of bionic's."""
    clang = tool("clang++", "clang++-15", "clang++-14")
    for triple, gnu, flags in (
        ("aarch64-linux-android24", "aarch64-linux-gnu", ()),
        ("armv7a-linux-androideabi24", "arm-linux-gnueabihf",
         ("-mfpu=neon", "-mfloat-abi=softfp", "-D__ARM_PCS_VFP")),
    ):  # fmt: skip
        root = Path("/usr") / gnu / "include"
        versions = sorted(root.glob("c++/*"))
        if not versions:
            pytest.skip(f"no C++ headers of {gnu}; sudo apt-get install g++-{gnu}")
        include = [f"-isystem{p}" for p in (versions[-1], versions[-1] / gnu, root)]
        sources = [project / CPP / f"native/src/{name}.cc" for name in ASKING]
        run(clang, f"--target={triple}", "-fsyntax-only", "-std=gnu++17", "-fno-exceptions",
            "-fno-rtti", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-nostdinc++",
            "-nostdlibinc", *include, *flags, f"-I{project / CPP}/native/include",
            f"-I{project / CPP}/native/src", *sources)  # fmt: skip


def test_the_app_s_oldest_android_has_what_the_runtime_calls(project):
    """What bionic got after version 24 or never, by its own list of symbols."""
    newer = {"aligned_alloc", "glob", "getrandom", "memfd_create", "reallocarray", "timespec_get",
             "pthread_setaffinity_np", "posix_spawn", "getloadavg", "pthread_cancel"}  # fmt: skip
    kept = ("runtime", "platform", "ops", "app", "opencl", "plugins", "isa")
    for folder in kept:
        for source in (project / CPP / "native/src" / folder).rglob("*.cc"):
            if not source.stem.endswith(("_wasm", "_windows", "_apple")):
                called = set(re.findall(r"\b(\w+)\(", source.read_text()))
                assert not called & newer, source.name
    assert "minSdk = 24" in (project / "app/build.gradle.kts").read_text()


def test_refusals(model, tmp_path, monkeypatch, capsys):
    other = optimize(classifier(), targets=["x86"]).save(tmp_path / "x86.lite")
    with pytest.raises(TargetMismatchError, match="converted for x86, not arm"):
        export_android(Pipeline.open(other), tmp_path / "a")
    arguments = ["export", str(model), "-o", str(tmp_path / "a"), "--android", "--trim"]
    assert main(arguments) == 2
    assert "--android and --swift do not take --trim" in capsys.readouterr().err
    monkeypatch.setattr(sources, "SOURCES", tmp_path / "nowhere")
    with pytest.raises(BackendUnavailableError, match="which a wheel does not carry"):
        export_android(Pipeline.open(model), tmp_path / "a")
    assert not (tmp_path / "a").exists()
