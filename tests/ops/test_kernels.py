"""Every registered kernel against its operator's reference, wherever it runs here.

The cases follow from the registration: a new kernel is tested by being registered.
"""

from __future__ import annotations

from functools import lru_cache

import pytest
from lite_engine.ops import all_kernels
from lite_engine.testing import Case, Place, cases, places, run
from lite_engine.testing.__main__ import main


def names(backend: str) -> list[str]:
    return sorted({k.name for k in all_kernels(backend)})


def made(backend: str, name: str, every: int = 1) -> list[Case]:
    kernels = [k for k in all_kernels(backend) if k.name == name]
    return [case for kernel in kernels for case in cases(kernel, every)]


def of_each_type(backend: str, name: str) -> list[Case]:
    """Of each kernel one case, not its first, in each element type and precision."""
    found = made(backend, name, 60)
    kinds = {(c.kernel, c.node.inputs[0].dtype, c.precision): c for c in found}
    return list(kinds.values())


@lru_cache(maxsize=1)
def here() -> dict[str, Place]:
    return {place.name: place for place in places()}


def check(name: str, found: list[Case], threads: int) -> None:
    results = run(found, here()[name], threads=threads)
    wrong = [f"{r.case.kernel} {r.case}: {r.error}" for r in results if r.error]
    assert not wrong, f"{len(wrong)} of {len(results)} wrong; {wrong[:5]}"


@pytest.mark.parametrize("kernel", all_kernels(), ids=str)
def test_has_cases(kernel) -> None:
    """A kernel without one would pass every test below."""
    assert next(iter(cases(kernel)), None), f"{kernel.op} needs `samples`: its schema is not enough"


@pytest.mark.cpu
@pytest.mark.parametrize("kernel", names("cpu"))
def test_native(kernel: str) -> None:
    found = made("cpu", kernel, 2)
    elsewhere = ("emulated ARM", "wasm")
    own = [p.name for p in here().values() if p.backend == "cpu" and p.name not in elsewhere]
    for name in own:
        check(name, found, threads=3 if name == own[-1] else 1)


@pytest.mark.arm
@pytest.mark.parametrize("kernel", names("cpu"))
def test_emulated_arm(kernel: str) -> None:
    check("emulated ARM", made("cpu", kernel, 6), threads=2)


@pytest.mark.wasm
@pytest.mark.parametrize("kernel", names("cpu"))
def test_wasm(kernel: str) -> None:
    check("wasm", made("cpu", kernel, 12), threads=1)


@pytest.mark.slow  # drivers compile a program for most of them
@pytest.mark.opencl
@pytest.mark.usefixtures("unoptimized")
@pytest.mark.parametrize("kernel", names("opencl"))
def test_opencl(kernel: str) -> None:
    check("opencl", of_each_type("opencl", kernel), threads=1)


@pytest.mark.hours
@pytest.mark.opencl
@pytest.mark.parametrize("kernel", names("opencl"))
def test_more_on_opencl(kernel: str) -> None:
    check("opencl", made("opencl", kernel, 5), threads=1)


@pytest.mark.cpu
def test_one_command_runs_an_operator(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["LeakyRelu", "--place", "sse2"]) == 0
    assert "cpu:LeakyRelu:f32_unary" in capsys.readouterr().out
