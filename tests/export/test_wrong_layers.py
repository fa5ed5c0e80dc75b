"""C++ and Java name a layer that a driver computes wrongly, and leave it to the CPU."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine._native import library_path
from lite_engine.backends.cpu import native
from lite_engine.backends.opencl.steps import launches_of
from lite_engine.runtime.inputs import random_feeds

from tests.export.test_export import jni_library, run, tool
from tests.native.opencl.conftest import against, failing_driver  # noqa: F401  fixtures
from tests.opencl import tiny
from tests.small_models import Builder

pytestmark = [pytest.mark.opencl, pytest.mark.cpu]
TEMPLATES = Path(__file__).parents[2] / "engine/lite_engine/export/templates"
CPP = """
#include <cstdio>
#include <fstream>
#include "lite_runtime.hpp"
int main(int, char** argv) try {
  lite::Options options;
  options.backend = "opencl";
  lite::Model model(argv[1], options);
  std::ifstream(argv[2], std::ios::binary).read(model.input(0).as<char>(), model.input(0).bytes);
  model.run();
  const lite::Difference wrong = model.check(1e-3);
  std::printf("%s %d\\n", wrong.layer.c_str(), wrong.error > 1e-3);
  model.leave({wrong.layer}, "wrong here");
  model.run();
  std::printf("%s%d\\n%s\\n", model.check(1e-3).layer.c_str(), model.check(1e-3).error > 0,
              model.warning().c_str());
  const lite::Tensor output = model.output(0);
  for (size_t k = 0; k < output.count<float>(); ++k) std::printf("%.6g ", output.as<float>()[k]);
  try {
    model.leave({"nobody"}, "no reason");
  } catch (const lite::Error& error) {
    std::printf("\\n%s\\n", error.what());
  }
} catch (const lite::Error& error) { std::puts(error.what()); return 1; }
"""
JAVA = """
import java.nio.FloatBuffer;
import java.nio.file.*;
import lite.LiteRuntime;
public final class Wrong {
  public static void main(String[] args) throws Exception {
    LiteRuntime.Options options = new LiteRuntime.Options();
    options.backend = "opencl";
    try (LiteRuntime model = new LiteRuntime(args[0], options)) {
      model.input(0).put(Files.readAllBytes(Path.of(args[1])));
      model.run();
      String wrong = model.check(1e-3);
      System.out.println(wrong + " 1");
      model.leave(new String[] {wrong}, "wrong here");
      model.run();
      System.out.println(model.check(1e-3) == null ? "0" : "1");
      System.out.println(model.warning());
      FloatBuffer values = model.output(0).asFloatBuffer();
      while (values.hasRemaining()) System.out.print(values.get() + " ");
      for (String[] layers : new String[][] {{"nobody"}, {null}}) {
        try { model.leave(layers, "no reason"); }
        catch (RuntimeException e) { System.out.println("\\n" + e.getMessage()); }
      }
    }
  }
}
"""


@pytest.fixture
def model(tmp_path: Path) -> tuple[Path, str, np.ndarray]:
    """Its file, the kernel of its pool alone, and the right output of input.raw."""
    b = Builder((1, 8, 12, 12), "pooled")
    y = b.conv(b.x, 8, 8, 3, name="conv")
    y = b.add("MaxPool", y, name="pool", kernel_shape=[2, 2], strides=[2, 2])
    graph = b.done(b.add("GlobalAveragePool", b.add("Relu", y), name="mean"))
    made = optimize(graph, targets=["opencl", native.target()])
    feeds = random_feeds(graph)
    feeds["x"].tofile(tmp_path / "input.raw")
    plan = Predictor(made, "opencl").plan()
    (step,) = [s for s in plan.steps if s.name == "pool"]
    (launch,) = launches_of(step, plan, tiny.device().target)
    (wanted,) = Predictor(made, native.target()).run(feeds).values()
    return made.save(tmp_path / "m.lite"), launch.kernel, wanted


def told(command: list[object], driver: str, kernel: str) -> list[str]:
    env = {**os.environ, "LITE_OPENCL_LIBRARY": driver, "LAUNCH_FORGOTTEN": kernel}
    env.pop("LITE_BACKEND", None)
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, env=env, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def compare(lines: list[str], wanted: np.ndarray) -> None:
    assert lines[0] == "pool 1" and lines[1] == "0"
    assert "'pool'" in lines[2] and "wrong here" in lines[2]
    found = np.array(lines[3].split(), np.float32)
    np.testing.assert_allclose(found, wanted.ravel(), rtol=1e-4, atol=1e-6)
    assert "'nobody'" in lines[4]


def test_cpp(model, failing_driver, tmp_path):  # noqa: F811
    path, kernel, wanted = model
    (tmp_path / "wrong.cpp").write_text(CPP)
    library = library_path()
    include = library.parent / "include"
    run(tool("c++", "g++"), "-std=c++17", "-Wall", "-Wextra", "-Werror", tmp_path / "wrong.cpp",
        f"-I{include}", f"-I{TEMPLATES}", library, f"-Wl,-rpath,{library.parent}",
        "-o", tmp_path / "wrong")  # fmt: skip
    compare(
        told([tmp_path / "wrong", path, tmp_path / "input.raw"], failing_driver, kernel), wanted
    )


def test_java(model, failing_driver, tmp_path):  # noqa: F811
    path, kernel, wanted = model
    javac, java = tool("javac"), tool("java")
    jni_library(TEMPLATES / "lite_jni.c", library_path().parent / "include", tmp_path)
    (tmp_path / "Wrong.java").write_text(JAVA)
    run(javac, "-d", tmp_path, TEMPLATES / "LiteRuntime.java", tmp_path / "Wrong.java")
    command = [java, f"-Djava.library.path={tmp_path}", "-cp", tmp_path, "Wrong"]
    lines = told([*command, path, tmp_path / "input.raw"], failing_driver, kernel)
    compare(lines, wanted)
    assert lines[-1] == "a layer or the reason is null"
