"""`--list-devices`: libraries with their reasons, devices as the driver describes them."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from lite_engine._native import runner_path
from lite_engine.backends.opencl import discover
from lite_engine.backends.opencl.opening import open_all
from lite_engine.backends.opencl.profile import class_of
from lite_engine.backends.opencl.programs import KERNELS, program_text

from tests.opencl.drivers import shared_object

GOOD = "int clGetPlatformIDs(unsigned n, void *p, unsigned *c) { if (c) *c = 1; return 0; }"
ON_LOAD = (
    "#include <stdlib.h>\n#include <unistd.h>\n__attribute__((constructor)) static void go(void)"
)


def listing(ask, library: Path | str, **more: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What was said of a library that a person names, and the whole answer."""
    answer = json.loads(ask("list-devices", LITE_OPENCL_LIBRARY=str(library), **more).stdout)
    return next(x for x in answer["libraries"] if x["library"] == str(library)), answer


@pytest.fixture(scope="module")
def fake(tmp_path_factory) -> Path:
    source = (Path(__file__).parent / "fake_driver.c").read_text()
    return shared_object(tmp_path_factory.mktemp("fake") / "libfake.so", source)


def test_reasons_are_those_of_the_doctor(ask, tmp_path: Path) -> None:
    needed = shared_object(tmp_path / "libneeded-here.so", "int needed(void) { return 1; }")
    use = GOOD + "int needed(void); int use(void) { return needed(); }"
    libraries = [
        shared_object(tmp_path / "empty.so", GOOD.replace("*c = 1", "*c = 0")),
        shared_object(
            tmp_path / "driver.so", use, f"-L{tmp_path}", "-lneeded-here", "-Wl,--no-as-needed"
        ),
        shared_object(tmp_path / "crash.so", f"{ON_LOAD} {{ abort(); }}"),
        tmp_path / "absent.so",
        tmp_path / "short.so",
        tmp_path / "text.so",
        "libm.so.6",
    ]
    needed.unlink()
    (tmp_path / "short.so").write_bytes(b"\x7fELF")
    (tmp_path / "text.so").write_bytes(b"text that is no library" * 9)
    expected = open_all([str(x) for x in libraries])
    for library in libraries:
        said, _ = listing(ask, library)
        wanted = expected[str(library)]
        found = (said["state"], said["reason"], said["fix"])
        assert found == (wanted.kind, wanted.reason, wanted.fix)
    kinds = {x.kind for x in expected.values()}
    assert kinds >= {"no_platform", "dependency", "crashed", "missing", "damaged", "not_opencl"}


@pytest.mark.parametrize(
    ("words", "kind", "part"),
    [
        ('dlopen failed: library "libfoo.so" not found', "missing", "no such library"),
        (
            'dlopen failed: library "libbar.so" not found: needed by /x/libfoo.so in namespace d',
            "dependency", "needs libbar.so",
        ),
        (
            'dlopen failed: library "libfoo.so" needed or dlopened by "/a" is not accessible for '
            'the namespace "classloader-namespace"',
            "permission", "is not open to this app",
        ),
        (
            "Error loading shared library libbar.so: No such file or directory (needed by l.so)",
            "dependency", "needs libbar.so",
        ),
        ("libfoo.so: cannot open shared object file: Permission denied", "permission", "chmod"),
        ("libfoo.so: undefined symbol: clever", "refused", "undefined symbol: clever"),
        ("", "refused", ""),
    ],
)  # fmt: skip
def test_words_of_several_loaders(ask, words: str, kind: str, part: str) -> None:
    lines = ask("refusal", "libfoo.so", words).stdout.splitlines()
    assert lines[0] == kind and part in "\n".join(lines[1:])
    assert kind == "missing" or lines[2]  # there is always a fix


def test_a_library_that_hangs_is_given_up(base_tool, ask, tmp_path: Path) -> None:
    library = shared_object(tmp_path / "hang.so", f"{ON_LOAD} {{ sleep(60); }}")
    for runner in (base_tool, "/no/such/runner"):  # in a new program, and in a fork alone
        done = ask("list-devices", runner, 2, LITE_OPENCL_LIBRARY=str(library))
        said = json.loads(done.stdout)["libraries"][0]
        assert said["state"] == "hung" and "within 2 s" in said["reason"]


@pytest.mark.parametrize("runner", [True, False])
def test_a_driver_that_fails_with_its_devices(runner, base_tool, ask, fake: Path) -> None:
    """Others are asked all the same."""
    variables = {"LITE_OPENCL_LIBRARY": str(fake), "OCL_ICD_VENDORS": "/nowhere"}
    program = base_tool if runner else "/no/such/runner"
    for what, state in (("crash", "crashed"), ("hang", "hung")):
        done = ask("list-devices", program, 2, FAKE_DEVICES=what, **variables)
        answer = json.loads(done.stdout)
        assert answer["libraries"][0]["state"] == state
        assert len(answer["libraries"]) > 5
    done = ask("list-devices", program, 2, FAKE_DEVICES="none", **variables)
    assert json.loads(done.stdout)["libraries"][0]["state"] == "opened"


def test_a_device_says_why_it_cannot_be_used(ask, fake: Path) -> None:
    name = 'quote " backslash \\ tab\t \u00b5'
    said, answer = listing(ask, fake, FAKE_NAME=name, FAKE_EXTENSIONS="cl_khr_fp16 cl_khr_fp16x")
    (device,) = answer["devices"]
    assert said["state"] == "opened" and device["library"] == str(fake)
    assert device["name"] == 'quote " backslash \\ tab\t ??'
    assert device["reason"] == "a trivial kernel does not run: CL_OUT_OF_RESOURCES"
    assert device["local_memory_bytes"] == 1234 and device["images"] == [0, 0]
    assert device["fp16"] and not device["integer_dot"]
    (device,) = listing(ask, fake, FAKE_EXTENSIONS="x_cl_khr_fp16")[1]["devices"]
    assert not device["fp16"]


def test_classes_are_those_of_python(ask, fake: Path) -> None:
    cases = [
        (4, "ARM Platform", "Mali-G52", "ARM"), (4, "QUALCOMM Snapdragon", "Adreno(TM) 640", ""),
        (4, "NVIDIA CUDA", "NVIDIA H200", "NVIDIA Corporation"), (4, "rusticl", "Mali-G610", ""),
        (4, "Portable Computing Language", "NVIDIA A100", "NVIDIA"), (4, "C", "FD640", "QUALCOMM"),
        (2, "Portable Computing Language", "pthread-Mali", "ARM"), (2, "NVIDIA", "x", "y"),
        (8, "Mali", "accelerator", ""), (4, "Intel", "Iris", "Intel"),
    ]  # fmt: skip
    for number, platform, name, vendor in cases:
        kind = {4: "GPU", 2: "CPU"}.get(number, "other")
        wanted = class_of(kind, platform, name, vendor)
        assert ask("class", kind, platform, name, vendor).stdout.strip() == wanted
    number, platform, name, vendor = cases[0]
    variables = {"FAKE_TYPE": str(number), "FAKE_PLATFORM": platform, "FAKE_NAME": name}
    (device,) = listing(ask, fake, **variables)[1]["devices"]
    assert (device["device_class"], device["kind"]) == ("mali", "GPU")


def test_places_are_those_of_the_doctor(ask, tmp_path: Path, monkeypatch) -> None:
    """Also the libraries that .icd files name, in their order."""
    (tmp_path / "b.icd").write_text("  libb-driver.so \n# more\n")
    (tmp_path / "a.icd").write_text("\n/no/such/liba.so")
    (tmp_path / "c.icd").write_text("")
    (tmp_path / "not-one.txt").write_text("libc.so")
    for variables in ({}, {"OCL_ICD_VENDORS": str(tmp_path)}, {"OCL_ICD_VENDORS": "/nowhere"}):
        answer = json.loads(ask("list-devices", **variables).stdout)
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            wanted = discover.candidates()
        assert [(x["library"], x["found_by"]) for x in answer["libraries"]] == wanted


def test_kernel_texts_are_those_of_the_package(ask) -> None:
    answer = json.loads(ask("list-devices", OCL_ICD_VENDORS="/nowhere").stdout)
    names = sorted(p.stem for p in KERNELS.glob("*.cl"))
    assert sorted(answer["kernels"]) == names
    for name in names:
        wanted = program_text(name).removeprefix("\n")
        assert ask("text", name).stdout == wanted
        assert answer["kernels"][name] == hashlib.sha256(wanted.encode()).hexdigest()


@pytest.mark.opencl
def test_devices_are_those_of_pyopencl(ask) -> None:
    from lite_engine.backends.opencl import device as python

    cl = python.import_pyopencl()
    answer = json.loads(ask("list-devices").stdout)
    assert len(answer["devices"]) == len(python.reports())
    for found, report, device in zip(answer["devices"], python.reports(), python._all_devices(cl)):
        for key in ("platform", "name", "kind", "version", "driver", "compute_units", "reason"):
            assert found[key] == getattr(report, key), key
        profile = python._profile(cl, device, report)
        for key in ("lanes", "fp16", "integer_dot", "fast_fma"):
            assert found[key] == getattr(profile, key), key
        assert found["device_class"] == profile.device_class
        assert found["local_memory_bytes"] == profile.local_memory
        assert tuple(found["images"]) == profile.images
        assert found["extensions"].split() == device.extensions.split()


@pytest.mark.cpu
def test_runners(tmp_path: Path) -> None:
    """The static one says what to start instead; the other one lists what is here."""

    def run(runner: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(runner), "--list-devices", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    said = json.loads(run(runner_path()).stdout)["libraries"]
    assert {x["state"] for x in said} <= {"static", "missing"}
    assert any("lite_run_opencl" in x["fix"] for x in said)
    done = run(runner_path(opencl=True))
    assert done.returncode == 0 and not done.stderr
    assert {x["state"] for x in json.loads(done.stdout)["libraries"]} - {"static"}
    assert run(runner_path(opencl=True), "--probe-seconds", "0").returncode == 2
