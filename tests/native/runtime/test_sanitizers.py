"""The kernel tests once more, in a library built with AddressSanitizer and UBSan.

Inputs, outputs and weights are arrays of their own, between NumPy's guarded ends: a kernel that
reads or writes one element beside its tile stops the run.
"""

import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.cpu, pytest.mark.asan, pytest.mark.slow]

MODULES = [
    ["isa/test_compute_f32.py", "isa/test_matmul_f32.py"],
    ["isa/test_compute_int8.py", "ops"],
    [
        "isa/test_elementwise.py",
        "isa/test_float_kernels.py",
        "isa/test_quant_kernels.py",
        "isa/test_recurrent.py",
        "runtime/test_bands.py",
        "runtime/test_turns.py",
        "runtime/test_turns_damage.py",
        "runtime/test_allocation.py",
    ],
    [
        "runtime/test_dirty_memory.py"
    ],  # every kernel's small cases, its own samples where it has no test
]
TOO_SHORT = """
import os, pathlib
import numpy as np
from lite_engine.backends.cpu import native
from tests.native.tiny import load, one_step_plan
native.library_path = lambda: pathlib.Path(os.environ["LITE_TEST_LIBRARY"])
x = np.ones(33, np.float32)
y = np.empty(32, np.float32)
class Lies:
    flags, data, nbytes = y.flags, y.data, x.nbytes
load(one_step_plan("Relu", "f32_unary", [x], [x])).run([x], [Lies])
"""


@pytest.mark.parametrize("modules", MODULES, ids=lambda names: names[0])
def test_kernels(root, tmp_path, modules):
    paths = [str(root / "tests" / "native" / name) for name in modules]
    # AVX512-VNNI has kernels of integers only: elsewhere its tests run those of AVX-512 again.
    integers = {"isa/test_compute_int8.py", "runtime/test_dirty_memory.py"} & {*modules}
    chosen = [] if integers else ["-k", "not avx512vnni"]
    options = [*chosen, "-q", "--all", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore"]
    done, reports = sanitized(root, tmp_path, "-m", "pytest", *options, *paths)
    assert done.returncode == 0, reports or done.stdout[-3000:] + done.stderr[-1000:]
    assert " passed" in done.stdout, done.stdout[-500:]


def test_one_element_too_many_is_seen(root, tmp_path):
    done, reports = sanitized(root, tmp_path, "-c", TOO_SHORT)
    assert done.returncode and "heap-buffer-overflow" in reports, reports or done.stderr


def sanitized(root, tmp_path, *command):
    """Runs Python with the sanitized library: how it ended, and what the sanitizers say."""
    library = root / "build" / "asan" / "liblite_runtime.so"
    log = tmp_path / "sanitizer"
    done = subprocess.run(
        [sys.executable, *command],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=600,
        env={
            **os.environ,
            "LITE_TEST_LIBRARY": str(library),
            "LD_PRELOAD": " ".join(map(runtime_of, ("libasan.so", "libubsan.so"))),
            # Python itself leaves memory behind; the fuzzer looks for leaks.
            "ASAN_OPTIONS": f"detect_leaks=0:allocator_may_return_null=1:log_path={log}",
            "UBSAN_OPTIONS": f"print_stacktrace=1:log_path={log}",
        },
    )
    return done, "\n".join(path.read_text()[:2000] for path in tmp_path.glob("sanitizer*"))


def runtime_of(name: str) -> str:
    """The compiler's own copy of a sanitizer's runtime."""
    found = subprocess.run(
        [os.environ.get("CC", "gcc"), f"-print-file-name={name}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout.strip()
